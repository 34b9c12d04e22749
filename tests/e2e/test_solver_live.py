"""What `Cluster.fits` says just before is what the live scheduler does: pods of many shapes, one at a time.

It is kube-scheduler where KUBEBUILDER_ASSETS has one, else our own; on the embedded API server, and on etcd and kube-apiserver
where KUBEBUILDER_ASSETS has these. A `Cluster` follows the API server. It is asked about each pod when this arrives. Its answer
is right if the pod gets one of the best nodes, or none, for the reasons that the scheduler then writes on the pod. Only one pod
waits at a time, so the state when it arrives is the state that the scheduler decides on. A pod that evicts others may be tried
again after each of them; it is asked about each time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from control_planes import Api, ControlPlane, Object, Refused, a_node, process, scheduler_program

from kubesched.kube.api import Pod
from kubesched.solver import Cluster, Fits

N_PLACED = int(os.environ.get("LIVE_PLACEMENTS", "300"))
SEED = int(os.environ.get("LIVE_SEED", "1"))
N_NODES = 40
N_PODS = 8 * N_NODES
"""How many pods stay: with these some shapes find no room, and pods with a priority evict others."""
PODS_BETWEEN_CHANGES = 40
SETTLE_SECONDS = 0.4
"""How long the scheduler has to see a node that changed: its watch of nodes is not ordered with that of pods."""
PATIENCE_SECONDS = 30.0
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = 8
NAMESPACES = ("default", "other")
PRIORITIES = {"low": -10, "high": 1000}
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


# Nodes and pods


def some_node(chance: random.Random, number: int) -> Object:
    """Return a node; they differ in size, zone, labels, taints, images and devices."""
    labels = {"disk": chance.choice(("ssd", "hdd")), "rank": str(number)}
    if number % 10:  # some have no zone
        labels[ZONE] = f"zone-{number % 3}"
    taints = [
        {"key": key, "value": chance.choice("ab"), "effect": chance.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))}
        for key in ("dedicated", "old")
        if chance.random() < 0.15
    ]
    memory = f"{chance.choice((8, 16, 24))}Gi"
    node = a_node(f"node-{number}", str(chance.choice((3, 4, 6, 8))), memory, labels=labels, taints=taints)
    if number % 4 == 0:
        node["status"]["allocatable"] = node["status"]["capacity"] | {"example.com/card": "4"}
    node["status"]["images"] = [
        {"names": [f"registry.example.com/app:{image}"], "sizeBytes": (50 + 300 * image) * 2**20}
        for image in chance.sample(range(4), 2)
    ]
    return node


def matching(chance: random.Random) -> Object:
    """Return a selector of the pods of one app, or of some."""
    apps = [f"app-{chance.randrange(APPS)}" for _ in range(2)]
    if chance.random() < 0.7:
        return {"matchLabels": {"app": apps[0]}}
    return {"matchExpressions": [{"key": "app", "operator": chance.choice(("In", "NotIn")), "values": apps}]}


def pod_terms(chance: random.Random, hard: float) -> Object:
    """Return required or preferred terms about other pods."""

    def term() -> Object:
        found = {"labelSelector": matching(chance), "topologyKey": chance.choice((ZONE, HOST, "disk"))}
        if chance.random() < 0.2:
            found |= chance.choice(({"namespaceSelector": {}}, {"namespaces": list(NAMESPACES)}, {"matchLabelKeys": ["rev"]}))
        return found

    if chance.random() < hard:
        return {_REQUIRED: [term()]}
    return {_PREFERRED: [{"weight": chance.randint(1, 100), "podAffinityTerm": term()} for _ in range(chance.randint(1, 2))]}


def node_terms(chance: random.Random) -> Object:
    """Return required or preferred terms about nodes."""

    def term() -> Object:
        operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"matchExpressions": [{"key": "rank", "operator": operator, "values": [str(chance.randrange(N_NODES))]}]}
        values = {"values": [chance.choice(("ssd", "hdd"))]} if operator in ("In", "NotIn") else {}
        return {"matchExpressions": [{"key": "disk" if values else ZONE, "operator": operator, **values}]}

    if chance.random() < 0.5:
        return {_REQUIRED: {"nodeSelectorTerms": [term() for _ in range(chance.randint(1, 2))]}}
    return {_PREFERRED: [{"weight": chance.randint(1, 100), "preference": term()} for _ in range(chance.randint(1, 3))]}


def spread(chance: random.Random) -> Object:
    found: Object = {
        "maxSkew": chance.randint(1, 3),
        "topologyKey": chance.choice((ZONE, HOST)),
        "whenUnsatisfiable": chance.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": matching(chance),
    }
    for key, values in (("nodeTaintsPolicy", ("Honor", "Ignore")), ("nodeAffinityPolicy", ("Honor", "Ignore"))):
        if chance.random() < 0.3:
            found[key] = chance.choice(values)
    if chance.random() < 0.2:
        found["matchLabelKeys"] = ["rev"]
    if chance.random() < 0.2 and found["whenUnsatisfiable"] == "DoNotSchedule":
        found["minDomains"] = chance.randint(1, 4)
    return found


def some_pod(chance: random.Random, number: int) -> Object:
    """Return a pod that asks for a few of the things that pods ask for."""
    asks: Object = {"cpu": f"{50 * chance.randint(1, 24)}m", "memory": f"{64 * chance.randint(1, 24)}Mi"}
    asks = {resource: asked for resource, asked in asks.items() if chance.random() < 0.9}
    if chance.random() < 0.08:
        asks["example.com/card"] = str(chance.randint(1, 2))
    limits = {name: asked for name, asked in asks.items() if "/" in name}
    container: Object = {"name": "main", "image": "app", "resources": {"requests": asks, "limits": limits}}
    if chance.random() < 0.3:
        container["image"] = f"registry.example.com/app:{chance.randrange(4)}"
    if chance.random() < 0.08:
        container["ports"] = [{"containerPort": 80, "hostPort": 8000 + chance.randrange(3)}]
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 0, "affinity": {}}
    if chance.random() < 0.1:
        asked = {"cpu": f"{chance.randint(1, 3)}", "memory": "256Mi"}
        spec["initContainers"] = [{"name": "first", "image": "app", "resources": {"requests": asked}}]
    if chance.random() < 0.2:
        spec["nodeSelector"] = chance.choice(({"disk": "ssd"}, {ZONE: "zone-1"}, {"disk": "hdd", ZONE: "zone-2"}))
    if chance.random() < 0.25:
        toleration = {"key": chance.choice(("dedicated", "old", "busy")), "operator": "Exists"}
        spec["tolerations"] = [chance.choice((toleration, {"operator": "Exists"}, toleration | {"effect": "NoSchedule"}))]
    if chance.random() < 0.25:
        constraints = [spread(chance) for _ in range(chance.randint(1, 2))]
        # The API server takes a key and what to do without only once.
        spec["topologySpreadConstraints"] = list(
            {(each["topologyKey"], each["whenUnsatisfiable"]): each for each in constraints}.values()
        )
    if chance.random() < 0.2:
        spec["affinity"]["nodeAffinity"] = node_terms(chance)
    if chance.random() < 0.15:
        spec["affinity"]["podAffinity"] = pod_terms(chance, hard=0.4)
    if chance.random() < 0.2:
        spec["affinity"]["podAntiAffinity"] = pod_terms(chance, hard=0.4)
    if chance.random() < 0.3:
        spec["priorityClassName"] = chance.choice((*PRIORITIES, "polite"))
    labels = {"app": f"app-{chance.randrange(APPS)}", "rev": str(chance.randrange(2))}
    namespace = NAMESPACES[chance.random() < 0.1]
    return {"kind": "Pod", "metadata": {"name": f"pod-{number}", "namespace": namespace, "labels": labels}, "spec": spec}


def ground(chance: random.Random) -> Iterable[Object]:
    """Return what is there before the first pod."""
    yield {"kind": "Namespace", "metadata": {"name": "other"}}
    for name, value in PRIORITIES.items():
        yield {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    yield {"kind": "PriorityClass", "metadata": {"name": "polite"}, "value": 500, "preemptionPolicy": "Never"}
    for app in range(3):  # pods of a service are spread by default
        spec = {"clusterIP": "None", "selector": {"app": f"app-{app}"}}
        yield {"kind": "Service", "metadata": {"name": f"app-{app}"}, "spec": spec}
    for number in range(N_NODES):
        yield some_node(chance, number)


async def change_a_node(api: Api, chance: random.Random) -> tuple[str, str]:
    """Change something about a node; return its name and what was done."""
    name, what = f"node-{chance.randrange(N_NODES)}", chance.choice(("cordon", "free", "taint", "label", "size", "lose"))
    path, busy = f"/api/v1/nodes/{name}", {"key": "busy", "effect": chance.choice(("NoSchedule", "PreferNoSchedule"))}
    if what == "lose":
        new = some_node(chance, int(name.rpartition("-")[2]))
        await api.delete(path)
        await api.create(new)
    elif what == "size":
        cpu = {"cpu": str(chance.randint(2, 8))}
        await api.patch(f"{path}/status", {"status": {"capacity": cpu, "allocatable": cpu}})
    else:
        patches: dict[str, Object] = {
            "cordon": {"spec": {"unschedulable": True}},
            "free": {"spec": {"unschedulable": None, "taints": None}},
            "taint": {"spec": {"taints": [busy]}},
            "label": {"metadata": {"labels": {"disk": chance.choice(("ssd", "hdd", "tape"))}}},
        }
        await api.patch(path, patches[what])
    return name, what


# Following and judging


@dataclass(frozen=True, slots=True)
class Told:
    """What the scheduler did with a pod, and what `fits` had said of it."""

    pod: Pod
    node_name: str
    """Empty if it found none."""
    said: tuple[Fits, ...]
    """When the pod arrived or was refused last, and after each eviction since then."""


class Asked(Cluster):
    """A cluster that is followed. It is asked about each pod when this arrives, before the change is taken in."""

    told: asyncio.Queue[Told] | None = None
    """What was decided; None before anything is."""

    def begin(self) -> None:
        self.told, self.loop = asyncio.Queue(), asyncio.get_running_loop()
        self.waiting: Pod | None = None
        self.said: list[Fits] = []

    def arrived(self, kind: str, old: Any, new: Any) -> bool:
        if kind != "Pod" or self.told is None:
            return super().arrived(kind, old, new)
        is_asked = self.waiting is not None and (new or old).metadata.uid == self.waiting.metadata.uid
        if old is None and not new.spec.node_name:
            self.waiting, self.said = new, [self.fits(new)]
        elif is_asked and new is not None:
            self.waiting = None if new.spec.node_name else new
            if new.spec.node_name or (refusal(new) and not refusal(old)):
                self.loop.call_soon_threadsafe(self.told.put_nowait, Told(new, new.spec.node_name, tuple(self.said)))
        elif is_asked:
            self.waiting = None
        was_free = super().arrived(kind, old, new)
        if self.waiting is not None and (new is None or (is_asked and refusal(new))):
            self.said.append(self.fits(self.waiting))
        return was_free


def refusal(pod: Pod | None) -> str:
    """Return what the scheduler wrote on a pod that it found no node for."""
    conditions = pod.status.conditions if pod is not None else ()
    return next((each.message for each in conditions if each.type == "PodScheduled" and each.status == "False"), "")


def disagreement(pod: Pod, node_name: str, said: Fits) -> str:
    """Return in which way the answer differs from what the scheduler did; "" where it does not."""
    if not node_name:
        if said.node:
            return "placed by us, refused by it"
        told = refusal(pod).partition(" preemption:")[0]
        return "" if told == said.message.partition(" preemption:")[0] else "other reasons"
    if not said.node:
        return "refused by us, placed by it"
    assert said.nodes is not None
    answer = said.nodes.of(node_name)
    if not answer.fits:
        return f"the node is refused by {answer.plugin}"
    if said.nodes.totals is not None and answer.total != max(each.total for each in said.nodes if each.fits):
        return "the node is not among the best"
    return ""


async def play(api: Api, cluster: Asked, n_placed: int, seed: int) -> tuple[Counter[str], list[Object]]:
    """Create pods one after another until so many were placed; return what happened, and the disagreements."""
    assert cluster.told is not None
    chance, happened, differences = random.Random(seed), Counter[str](), list[Object]()
    placed: dict[str, Pod] = {}
    number = 0

    async def delete(pod: Pod) -> None:
        placed.pop(pod.metadata.uid, None)
        try:
            await api.delete(f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.name}")
        except Refused as error:
            assert error.status == 404, error  # it was evicted

    async def hear() -> tuple[Pod, str]:
        told = await asyncio.wait_for(cluster.told.get(), PATIENCE_SECONDS)
        pod, node_name, said = told.pod, told.node_name, told.said
        problems = [disagreement(pod, node_name, each) for each in said]
        if all(problems):
            happened[f"difference: {problems[0]}"] += 1
            fit = [[each.as_dict() for each in one.nodes or () if each.fits] for one in said]
            differences.append(
                {"class": problems, "pod": pod.key, "node": node_name, "said": repr(said), "told": refusal(pod), "fit": fit}
            )
        elif node_name:
            several = any(each.n_feasible > 1 for each, problem in zip(said, problems, strict=True) if not problem)
            happened["placed where several fit" if several else "placed where one fits"] += 1
            happened["placed while others are evicted"] += bool(problems[-1])
        return pod, node_name

    while happened["placed"] < n_placed:
        number += 1
        if number % PODS_BETWEEN_CHANGES == 0:
            changed = [await change_a_node(api, chance) for _ in range(4)]
            happened.update(what for _, what in changed)
            await asyncio.sleep(SETTLE_SECONDS)
        leaving = chance.sample(sorted(placed), min(len(placed), max(0, len(placed) - chance.randint(N_PODS // 2, N_PODS))))
        await asyncio.gather(*(delete(placed[uid]) for uid in leaving[:20]))
        await api.create(some_pod(chance, number))
        pod, node_name = await hear()
        if not node_name:
            happened["refused"] += 1
            if pod.status.nominated_node_name:
                happened["nominated"] += 1
                pod, node_name = await hear()
        if node_name:
            happened["placed"] += 1
            placed[pod.metadata.uid] = pod
        else:
            await delete(pod)
    return happened, differences


async def test_what_fits_says_just_before_is_what_the_scheduler_does(
    control_plane: ControlPlane, api: Api, tmp_path: Path
) -> None:
    kubeconfig, config = control_plane.kubeconfig("admin"), tmp_path / "scheduler.yaml"
    connection = {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
    }
    config.write_text(json.dumps(configuration), encoding="utf-8")
    for obj in ground(random.Random(SEED)):
        await api.create(obj)
    cluster = await asyncio.to_thread(Asked.from_kubeconfig, str(kubeconfig), configuration=config)
    try:
        cluster.begin()
        log = tmp_path / "scheduler.log"
        async with process(*scheduler_program(), f"--config={config}", "--secure-port=0", log=log):
            began = time.monotonic()
            happened, differences = await play(api, cluster, N_PLACED, SEED)
            seconds = time.monotonic() - began
    finally:
        await asyncio.to_thread(cluster.close)
    print(json.dumps({"seconds": round(seconds, 1), "happened": happened, "differences": differences[:20]}, indent=1))
    assert not differences
    assert happened["placed where several fit"] > N_PLACED // 2 and happened["refused"] and happened["nominated"]
