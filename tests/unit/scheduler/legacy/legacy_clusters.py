"""Small clusters for the tests of the legacy room: written down object by object, or drawn at random from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import FirstByName
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, Plugin, Profile

Raw = dict[str, Any]
MEBI = 1024 * 1024
ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def node(name: str, labels: dict[str, str] | None = None, **status: Any) -> Raw:
    """Return a ready node with 4 cpus, 8 GiB and room for 10 pods, unless told otherwise."""
    spec = {key: status.pop(key) for key in ("taints", "unschedulable") if key in status}
    annotations = status.pop("annotations", {})
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "100Gi", **status.pop("allocatable", {})}
    conditions = status.pop("conditions", [{"type": "Ready", "status": "True"}])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}, "annotations": annotations},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions, **status},
    }


def pod(
    name: str,
    node_name: str = "",
    labels: dict[str, str] | None = None,
    *,
    namespace: str = "default",
    requests: Raw | None = None,
    limits: Raw | None = None,
    **spec: Any,
) -> Raw:
    """Return a pod of one container."""
    metadata: Raw = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels or {}}
    for key in ("deletionTimestamp", "ownerReferences"):
        if key in spec:
            metadata[key] = spec.pop(key)
    resources = {"requests": requests or {}, "limits": limits or {}}
    container: Raw = {"name": "c", "image": spec.pop("image", "app"), "resources": resources}
    container["ports"] = spec.pop("ports", [])
    if node_name:
        spec["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Raw:
    """Return a service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector},
    }


def controller(name: str, selector: dict[str, str], namespace: str = "default") -> Raw:
    """Return a replication controller."""
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"selector": selector},
    }


@dataclass
class World:
    """Objects as the wire has them, and the store made of them."""

    objects: list[Raw]
    incoming: Raw = field(default_factory=lambda: pod("new"))

    def __post_init__(self) -> None:
        self.store = Store()
        for raw in self.objects:
            obj = codec.decode(raw)
            self.store.put(obj)
        self.handle = EngineHandle(self.store.objects)

    @property
    def nodes(self) -> list[Raw]:
        return [raw for raw in self.objects if raw["kind"] == "Node"]

    @property
    def placed(self) -> list[Raw]:
        return [raw for raw in self.objects if raw["kind"] == "Pod"]

    def on(self, name: str) -> list[Raw]:
        return [raw for raw in self.placed if raw["spec"]["nodeName"] == name]

    def of(self, kind: str) -> list[Raw]:
        return [raw for raw in self.objects if raw["kind"] == kind]

    def view(self, raw: Raw | None = None) -> PodView:
        return self.store.view(codec.convert(raw or self.incoming, Pod))

    # Asking

    def attempt(self, profile: Profile, raw: Raw | None = None, *, preempts: bool = False) -> Attempt:
        rules = Rules(FirstByName(), preempts=preempts, scores_single=True)
        return attempt(self.view(raw), self.store.snapshot(), profile, rules)

    def reasons(self, *predicates: Plugin) -> dict[str, list[str]]:
        """Return for each node why the predicates refuse it, in their order."""
        profile = Profile(
            "test",
            {"pre_filter": [(p, 0) for p in predicates if p.implements("pre_filter")], "filter": [(p, 0) for p in predicates]},
        )
        state, snapshot = CycleState(), self.store.snapshot()
        before = profile.pre_filter(self.view(), snapshot, state)
        assert before.status is None, before.status
        statuses = profile.filter(self.view(), snapshot, state, before.considered).statuses()
        return {name: list(statuses[name].reasons) if name in statuses else [] for name in snapshot.names}

    def scores(self, priority: Plugin, feasible: set[str] | None = None) -> dict[str, int]:
        """Return the score of each feasible node."""
        profile = Profile(
            "test", {"pre_score": [(priority, 0)] if priority.implements("pre_score") else [], "score": [(priority, 1)]}
        )
        state, snapshot = CycleState(), self.store.snapshot()
        passing = np.array([feasible is None or name in feasible for name in snapshot.names])
        profile.pre_score(self.view(), snapshot, passing, state)
        total = profile.score(self.view(), snapshot, passing, state).total
        return {name: int(total[row]) for row, name in enumerate(snapshot.names) if passing[row]}


def random_world(seed: int) -> World:
    """Return a cluster in which everything that predicates and priorities look at occurs."""
    return _Drawn(random.Random(seed)).world()


class _Drawn:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def world(self) -> World:
        chance = self.chance
        nodes = [self.node(i) for i in range(chance.randint(1, 7))]
        names = [raw["metadata"]["name"] for raw in nodes]
        placed = [self.pod(f"old-{i}", chance.choice(names)) for i in range(chance.randint(0, 14))]
        objects = nodes + placed
        for i in range(chance.randint(0, 2)):
            objects.append(
                service(
                    f"svc-{i}",
                    chance.choice([None, {}, self.labels(2), self.labels(1)]) if chance.random() < 0.8 else {"app": "a"},
                )
            )
        for i in range(chance.randint(0, 2)):
            objects.append(controller(f"rc-{i}", self.labels(2) or {"app": "b"}))
        if chance.random() < 0.4:
            objects.append(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": {"name": "rs", "namespace": "default", "uid": "uid-rs"},
                    "spec": {"selector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}]}},
                }
            )
        incoming = self.pod("new", "")
        if chance.random() < 0.15:
            incoming["spec"]["nodeName"] = chance.choice([*names, "elsewhere"])
        if chance.random() < 0.5:
            incoming["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": chance.choice(["ReplicationController", "ReplicaSet", "Job"]),
                    "name": "rc-0",
                    "uid": chance.choice(["uid-rc-0", "uid-rs"]),
                    "controller": True,
                }
            ]
        if chance.random() < 0.5:
            incoming["spec"]["initContainers"] = [
                {"name": "i", "image": "init", "resources": self.resources(), "restartPolicy": chance.choice(["Always", None])}
            ]
        if chance.random() < 0.3:
            incoming["spec"]["overhead"] = {"cpu": "250m", "memory": "64Mi"}
        incoming["spec"]["tolerations"] = [self.toleration() for _ in range(chance.randint(0, 2))]
        if chance.random() < 0.4:
            incoming["spec"]["nodeSelector"] = self.node_labels()
        incoming["spec"]["topologySpreadConstraints"] = [self.constraint() for _ in range(chance.randint(0, 2))]
        return World(objects, incoming)

    def node(self, i: int) -> Raw:
        chance = self.chance
        allocatable: Raw = {
            "cpu": f"{chance.choice([0, 500, 2000, 4000])}m",
            "memory": str(chance.choice([0, 1, 4]) * 512 * MEBI),
            "pods": str(chance.choice([1, 3, 10])),
            "ephemeral-storage": chance.choice(["0", "10Gi"]),
        }
        if chance.random() < 0.5:
            allocatable["example.com/gpu"] = str(chance.randint(0, 2))
        conditions = [
            {"type": kind, "status": chance.choice(["True", "False", "Unknown"])}
            for kind in ("Ready", "OutOfDisk", "NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure")
            if chance.random() < 0.5
        ]
        annotations = {}
        if chance.random() < 0.4:
            annotations["scheduler.alpha.kubernetes.io/preferAvoidPods"] = chance.choice(
                [
                    "not json",
                    '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicationController", '
                    '"uid": "uid-rc-0"}}}]}',
                    '{"preferAvoidPods": [{"podSignature": {}}, {"podSignature": {"podController": {"kind": "ReplicaSet", '
                    '"uid": "uid-rs"}}}]}',
                ]
            )
        images = [
            {"names": [f"{name}:latest", name], "sizeBytes": chance.randint(10, 1500) * MEBI}
            for name in ("app", "web")
            if chance.random() < 0.5
        ]
        return node(
            f"n{i}",
            self.node_labels(),
            allocatable=allocatable,
            conditions=conditions,
            images=images,
            annotations=annotations,
            unschedulable=chance.random() < 0.2,
            taints=[self.taint() for _ in range(chance.choice([0, 0, 1, 2]))],
        )

    def node_labels(self) -> dict[str, str]:
        chance = self.chance
        drawn = {}
        for key, values in ((ZONE, ["z1", "z2"]), (REGION, ["r1"]), ("disk", ["ssd", "hdd"]), ("pool", ["1", "2"])):
            if chance.random() < 0.6:
                drawn[key] = chance.choice(values)
        return drawn

    def labels(self, most: int = 2) -> dict[str, str]:
        chance = self.chance
        drawn = {"app": chance.choice("ab"), "tier": chance.choice("xy")}
        return dict(chance.sample(sorted(drawn.items()), chance.randint(0, most)))

    def taint(self) -> Raw:
        chance = self.chance
        return {
            "key": chance.choice("kl"),
            "value": chance.choice(["", "v"]),
            "effect": chance.choice(["NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"]),
        }

    def toleration(self) -> Raw:
        chance = self.chance
        return chance.choice(
            [
                {"operator": "Exists"},
                {"key": "k", "operator": "Exists"},
                {"key": "l", "value": "v"},
                {"key": "l", "operator": "Exists", "effect": "PreferNoSchedule"},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            ]
        )

    def resources(self) -> Raw:
        chance = self.chance
        requests = {
            "cpu": f"{chance.choice([0, 100, 700, 1500])}m",
            "memory": str(chance.choice([0, 100, 900]) * MEBI),
            "ephemeral-storage": "1Gi",
            "example.com/gpu": str(chance.randint(0, 1)),
        }
        kept = {
            name: amount for name, amount in requests.items() if chance.random() < (0.7 if name in ("cpu", "memory") else 0.2)
        }
        limits = {name: amount for name, amount in requests.items() if chance.random() < 0.3}
        return {"requests": kept, "limits": limits}

    def constraint(self) -> Raw:
        chance = self.chance
        return {
            "maxSkew": chance.randint(1, 2),
            "topologyKey": chance.choice([ZONE, "disk", "kubernetes.io/hostname"]),
            "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {"matchLabels": {"app": chance.choice("ab")}},
        }

    def pod(self, name: str, node_name: str) -> Raw:
        chance = self.chance
        drawn = pod(
            name,
            node_name,
            self.labels(),
            namespace=chance.choice(["default", "default", "other"]),
            image=chance.choice(["app", "web:latest", "unknown"]),
        )
        if name == "new":
            drawn["metadata"]["namespace"] = "default"
        drawn["spec"]["containers"][0]["resources"] = self.resources()
        if chance.random() < 0.3:
            drawn["spec"]["containers"].append({"name": "d", "image": "web", "resources": self.resources()})
        if chance.random() < 0.4:
            drawn["spec"]["containers"][0]["ports"] = [
                {
                    "hostPort": chance.choice([80, 81]),
                    "containerPort": 1,
                    "protocol": chance.choice(["TCP", "UDP"]),
                    "hostIP": chance.choice(["", "10.0.0.1"]),
                }
            ]
        if node_name and chance.random() < 0.15:
            drawn["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        affinity: Raw = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if chance.random() < 0.25:
                affinity[kind] = {
                    "requiredDuringSchedulingIgnoredDuringExecution": [self.term() for _ in range(chance.randint(1, 2))]
                }
            if chance.random() < 0.3:
                affinity.setdefault(kind, {})["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": chance.randint(1, 100), "podAffinityTerm": self.term()}
                ]
        if name == "new" and chance.random() < 0.6:
            affinity["nodeAffinity"] = self.node_affinity()
        if affinity:
            drawn["spec"]["affinity"] = affinity
        return drawn

    def term(self) -> Raw:
        chance = self.chance
        term: Raw = {
            "topologyKey": chance.choice([ZONE, "disk", "kubernetes.io/hostname"]),
            "labelSelector": {"matchLabels": self.labels(1)},
        }
        if chance.random() < 0.3:
            term["namespaces"] = ["other"]
        return term

    def node_affinity(self) -> Raw:
        chance = self.chance

        def preference() -> Raw:
            drawn: Raw = {}
            if chance.random() < 0.8:
                drawn["matchExpressions"] = [
                    {"key": "disk", "operator": "In", "values": ["ssd"]}
                    if chance.random() < 0.5
                    else {"key": "pool", "operator": "Gt", "values": ["1"]}
                ]
            if chance.random() < 0.3:
                drawn["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]
            return drawn

        affinity: Raw = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": chance.randint(0, 100), "preference": preference()} for _ in range(chance.randint(0, 3))
            ]
        }
        if chance.random() < 0.5:
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": [preference() for _ in range(chance.randint(0, 2))]
            }
        return affinity
