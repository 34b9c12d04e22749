"""Long histories of pods that are never alike, to see that nothing grows with what has been and gone.

In: what is new about every pod, or every ten of them. Out: the engine that lived through it, with all that runs around one:
metrics, events, the record of decisions, a queue in virtual time, and an API server that keeps nothing of what is gone. A few
pods are alive at a time; those that were there longest go.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kubesched.errors import NotFound
from kubesched.kube.api import INFO, Pod, PodCondition, TopLevel, codec, format_time
from kubesched.kube.client import Broadcaster
from kubesched.scheduler import config, kernels
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import Changed, DecisionRecorder, Ports, assemble, default_configuration, engine_options
from kubesched.telemetry.metrics import Metrics
from kubesched.telemetry.reporting import Reporter
from kubesched.tools.simulation.clock import VirtualClock, VirtualLoop

Raw = dict[str, Any]
PER_ROLLOUT, SECONDS_A_ROLLOUT = 10, 40.0
HOST, ZONE, HASH = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "pod-template-hash"
_with = msgspec.structs.replace


def _node(name: str, **labels: str) -> Raw:
    offer = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}", "labels": {HOST: name, **labels}},
        "status": {"allocatable": offer, "capacity": offer, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _term(key: str, **labels: str) -> Raw:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def _of_rollout(pod: Raw, rollout: int) -> Raw:
    """Give a pod its rollout's hash, and return a term about this rollout alone, as the API server writes it."""
    pod["metadata"]["labels"][HASH] = f"h{rollout}"
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": HASH, "operator": "In", "values": [f"h{rollout}"]}]}
    return {"topologyKey": ZONE, "labelSelector": selector, "matchLabelKeys": [HASH]}


def _affinity(pod: Raw, side: str, *, term: Raw, is_required: bool) -> None:
    mine = pod["spec"].setdefault("affinity", {}).setdefault(side, {})
    if is_required:
        mine.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)
    else:
        wish = {"weight": 7, "podAffinityTerm": term}
        mine.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(wish)


def _asks(pod: Raw, **amounts: str) -> None:
    pod["spec"]["containers"][0]["resources"]["requests"].update(amounts)


# What is new: each changes the i-th pod, which is of a rollout, and returns the objects that the rollout has.

Novelty = Callable[[Raw, int, int], list[Raw]]


def _label(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["metadata"]["labels"]["job"] = f"j{i}"
    return []


def _label_key(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["metadata"]["labels"][f"own/k{i}"] = "x"
    return []


def _spread(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["metadata"]["labels"][HASH] = f"h{rollout}"
    hard = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": [HASH]}
    soft = {**hard, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}
    selector = {"labelSelector": {"matchLabels": {"app": "x"}}}
    pod["spec"]["topologySpreadConstraints"] = [{**hard, **selector}, {**soft, **selector}]
    return []


def _affine(side: str, *, is_required: bool) -> Novelty:
    def change(pod: Raw, i: int, rollout: int) -> list[Raw]:
        term = _of_rollout(pod, rollout)
        if side == "podAntiAffinity" and is_required:
            term["topologyKey"] = HOST
        _affinity(pod, side, term=term, is_required=is_required)
        return []

    return change


def _selector(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["metadata"]["labels"]["own"] = f"o{i}"
    _affinity(pod, "podAntiAffinity", term=_term(HOST, own=f"o{i}"), is_required=True)
    return []


def _selects_namespaces(pod: Raw, i: int, rollout: int) -> list[Raw]:
    term = {**_term(HOST, own=f"o{i}"), "namespaceSelector": {"matchLabels": {"team": f"t{rollout}"}}}
    _affinity(pod, "podAntiAffinity", term=term, is_required=True)
    return _namespace(pod, i, rollout)


def _node_affinity(pod: Raw, i: int, rollout: int) -> list[Raw]:
    wanted = {"key": "rank", "operator": "NotIn", "values": [f"r{i}"]}
    term = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": term}
    return []


def _toleration(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["tolerations"] = [{"key": f"t{i}", "operator": "Exists"}]
    return []


def _image(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["containers"][0]["image"] = f"app:{i}"
    return []


def _amounts(pod: Raw, i: int, rollout: int) -> list[Raw]:
    _asks(pod, memory=f"{i + 1}Ki")
    return []


def _resource(pod: Raw, i: int, rollout: int) -> list[Raw]:
    name = f"example.com/r{rollout}"
    node = _node(f"offers-{rollout}")
    node["status"]["allocatable"][name] = "100"
    _asks(pod, **{name: "1"})
    return [node]


def _resource_of_nobody(pod: Raw, i: int, rollout: int) -> list[Raw]:
    _asks(pod, **{f"example.com/r{i}": "1"})
    return []


def _namespace(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["metadata"]["namespace"] = name = f"ns{rollout}"
    return [{"kind": "Namespace", "metadata": {"name": name, "labels": {"team": f"t{rollout}"}}}]


def _nodes(pod: Raw, i: int, rollout: int) -> list[Raw]:
    node = _node(f"x{rollout}", rank=f"r{rollout}", **{ZONE: f"zx{rollout}", f"own/k{rollout}": "1"})
    node["spec"] = {"taints": [{"key": "since", "value": f"s{rollout}", "effect": "PreferNoSchedule"}]}
    node["status"]["images"] = [{"names": [f"app:{rollout}"], "sizeBytes": 500 << 20}]
    if i % 2:
        pod["spec"]["nodeSelector"] = {HOST: f"x{rollout}"}
    return [node]


def _claim(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{rollout}"}}]
    asked = {"accessModes": ["ReadWriteMany"], "storageClassName": f"s{rollout}"}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": f"s{rollout}"},
            "provisioner": f"p{rollout}",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "kind": "PersistentVolume",
            "metadata": {"name": f"v{rollout}", "uid": f"v{rollout}"},
            "spec": {
                **asked,
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "default", "name": f"c{rollout}", "uid": f"c{rollout}"},
                "csi": {"driver": f"p{rollout}", "volumeHandle": f"v{rollout}"},
            },
            "status": {"phase": "Bound"},
        },
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": f"c{rollout}",
                "namespace": "default",
                "uid": f"c{rollout}",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {**asked, "volumeName": f"v{rollout}", "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Bound"},
        },
    ]


def _device(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": f"d{rollout}"}]
    exactly = {"deviceClassName": f"k{rollout}", "allocationMode": "ExactCount", "count": 1}
    group = "resource.k8s.io/v1"
    return [
        {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": f"k{rollout}"}, "spec": {}},
        {
            "apiVersion": group,
            "kind": "ResourceSlice",
            "metadata": {"name": f"s{rollout}"},
            "spec": {
                "driver": f"dr{rollout}.example.com",
                "pool": {"name": f"p{rollout}", "resourceSliceCount": 1},
                "nodeName": f"n{rollout % 10}",
                "devices": [{"name": f"d{j}"} for j in range(10)],
            },
        },
        {
            "apiVersion": group,
            "kind": "ResourceClaim",
            "metadata": {"name": f"d{rollout}", "namespace": "default", "uid": f"d{rollout}"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        },
    ]


def _priority(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"] |= {"priority": i, "priorityClassName": f"c{rollout}"}
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"c{rollout}"},
            "value": rollout,
        }
    ]


def _preempting(pod: Raw, i: int, rollout: int) -> list[Raw]:
    _asks(pod, cpu="20")
    pod["spec"]["priority"] = i
    return []


def _owner(pod: Raw, i: int, rollout: int) -> list[Raw]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"r{rollout}", "uid": f"r{rollout}", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    pod["metadata"]["labels"]["set"] = f"r{rollout}"
    meta = {"name": f"r{rollout}", "namespace": "default", "uid": f"r{rollout}"}
    selector = {"matchLabels": {"set": f"r{rollout}"}}
    service = {"kind": "Service", "metadata": {**meta, "uid": f"s{rollout}"}, "spec": {"selector": selector["matchLabels"]}}
    return [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"selector": selector}}, service]


def _host_port(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 1024 + i % 60000}]
    return []


def _gated(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["schedulingGates"] = [{"name": f"example.com/g{i}"}]
    return []


def _service_account(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["serviceAccountName"] = f"sa{i}"
    return []


def _pod_group(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["spec"]["schedulingGroup"] = {"podGroupName": f"g{rollout}"}
    policy = {"gang": {"minCount": PER_ROLLOUT}}
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": f"g{rollout}", "namespace": "default", "uid": f"g{rollout}"},
            "spec": {"schedulingPolicy": policy},
        }
    ]


def _unfit(pod: Raw, i: int, rollout: int) -> list[Raw]:
    _asks(pod, cpu=str(100 + i))
    return []


def _budget(pod: Raw, i: int, rollout: int) -> list[Raw]:
    pod["metadata"]["labels"]["set"] = f"r{rollout}"
    _preempting(pod, i, rollout)
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{rollout}", "namespace": "default", "uid": f"b{rollout}"},
            "spec": {"selector": {"matchLabels": {"set": f"r{rollout}"}}},
            "status": {"disruptionsAllowed": 3},
        }
    ]


KINDS: Mapping[str, Novelty] = {
    "plain": lambda pod, i, rollout: [],
    "label": _label,
    "label-key": _label_key,
    "spread": _spread,
    "affinity": _affine("podAffinity", is_required=True),
    "preferred-affinity": _affine("podAffinity", is_required=False),
    "anti-affinity": _affine("podAntiAffinity", is_required=True),
    "preferred-anti-affinity": _affine("podAntiAffinity", is_required=False),
    "selector": _selector,
    "namespace-selector": _selects_namespaces,
    "node-affinity": _node_affinity,
    "toleration": _toleration,
    "image": _image,
    "amounts": _amounts,
    "resource": _resource,
    "resource-of-nobody": _resource_of_nobody,
    "namespace": _namespace,
    "node": _nodes,
    "claim": _claim,
    "device": _device,
    "priority": _priority,
    "preemption": _preempting,
    "owner": _owner,
    "host-port": _host_port,
    "gate": _gated,
    "service-account": _service_account,
    "pod-group": _pod_group,
    "unfit": _unfit,
    "budget": _budget,
}
"""What can be new about pods."""
_TOGETHER = (
    *("label", "spread", "preferred-affinity", "preferred-anti-affinity", "selector", "node-affinity", "toleration", "image"),
    *("amounts", "namespace", "node", "priority", "host-port", "service-account"),
)
"""What one pod can be asked all at once, and still find a node."""


def _everything(pod: Raw, i: int, rollout: int) -> list[Raw]:
    return [made for kind in _TOGETHER for made in KINDS[kind](pod, i, rollout)]


def _read(raw: Raw) -> TopLevel:
    return codec.decode({"apiVersion": "v1", **raw})


def _kind(obj: TopLevel) -> str:
    return INFO[type(obj)].kind


def _key(obj: TopLevel) -> tuple[str, str, str]:
    return _kind(obj), obj.metadata.namespace, obj.metadata.name


class _Api:
    """The Writer port, and the connection that events go to: what is alive, and nothing else."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.post: Callable[[str, Any, Any], None]
        self.pods: dict[str, Pod] = {}
        self.objects: dict[tuple[str, str, str], TopLevel] = {}
        self._version = 0

    def put(self, obj: TopLevel) -> TopLevel:
        """Take in an object or its new version."""
        self._version += 1
        new = _with(obj, metadata=_with(obj.metadata, resource_version=str(self._version)))
        if isinstance(new, Pod):
            old: TopLevel | None = self.pods.get(new.metadata.uid)
            self.pods[new.metadata.uid] = new
        else:
            key = _key(new)
            old, self.objects[key] = self.objects.get(key), new
        self.post(_kind(new), old, new)
        return new

    def drop(self, obj: TopLevel) -> None:
        """Let an object be gone."""
        if isinstance(obj, Pod):
            old: TopLevel | None = self.pods.pop(obj.metadata.uid, None)
        else:
            old = self.objects.pop(_key(obj), None)
        if old is not None:
            self.post(_kind(old), old, None)

    def _pod(self, view: PodView) -> Pod:
        known = self.pods.get(view.uid)
        if known is None:
            raise NotFound(404, "NotFound", f'pods "{view.name}" not found')
        return known

    async def bind(self, pod: PodView, node_name: str) -> None:
        known = self._pod(pod)
        status = _with(known.status, start_time=format_time(self.clock.now()))
        self.put(_with(known, spec=_with(known.spec, node_name=node_name), status=status))

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        known = self._pod(pod)
        changed = known.status
        if "nominatedNodeName" in status:
            changed = _with(changed, nominated_node_name=status["nominatedNodeName"] or "")
        if "conditions" in status:
            said = ({k: v for k, v in each.items() if v is not None} for each in status["conditions"])
            changed = _with(changed, conditions=tuple(codec.convert(each, PodCondition) for each in said))
        self.put(_with(known, status=changed))

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        pass

    async def delete_pod(self, pod: PodView) -> None:
        self.drop(self._pod(pod))

    async def update(self, changed: Any, subresource: str = "") -> Any:
        return self.put(changed)

    async def create(self, obj: Any) -> Any:
        return self.put(obj)

    async def delete(self, obj: Any) -> None:
        self.drop(obj)

    async def request(self, method: str, path: str, body: Any = None, *rest: Any) -> Any:
        return None


class History:
    """An engine and what happens to it."""

    def __init__(self, kind: str, *, nodes: int = 50, alive: int = 200, decision_records: int = 100, seed: int = 0) -> None:
        """Begin with so many nodes and no pod; `kind` is one of `KINDS`, or all of them that go together if empty."""
        self._change = KINDS[kind] if kind else _everything
        self._alive = alive
        self._loop = VirtualLoop()
        self._clock = clock = VirtualClock(self._loop)
        self._api = _Api(clock)
        gates = config.Gates.defaults()
        if kind == "pod-group":
            gates = config.Gates.of({"GenericWorkload": True, "GangScheduling": True}, emulated=(1, 36))
        self.metrics = Metrics()
        reporter = Reporter(self.metrics, clock.monotonic)
        self.broadcaster = Broadcaster(self._api, host="host")  # type: ignore[arg-type]
        ports = Ports(
            clock=clock,
            writer=self._api,
            recorder=self.broadcaster.recorder("default-scheduler"),
            observer=reporter,
            queue_observer=reporter,
            decisions=DecisionRecorder(decision_records),
            meter=self.metrics,
            seed=seed,
        )
        configuration = default_configuration(gates)
        self.engine = assemble(configuration, gates, ports, options=engine_options(configuration, gates))
        self._api.post = lambda kind, old, new: self.engine.inbox.post(Changed(kind, old, new))
        self.n_pods = 0
        self.n_bound = 0
        self._present: deque[tuple[Pod, tuple[TopLevel, ...]]] = deque()
        """Pods in the order in which they came; each with the objects that go with it, those of its rollout with the last."""
        is_small = kind in ("preemption", "budget")
        for i in range(nodes if not is_small else alive // 4):
            self._api.put(_read(_node(f"n{i}", rank=f"r{i}", **{ZONE: f"z{i % 5}"})))
        self._run(self._begin())

    def _run(self, work: Any) -> None:
        self._loop.run_until_complete(work)

    async def _begin(self) -> None:
        self._writing = asyncio.create_task(self.broadcaster.run())
        await self.engine.settle()

    def go_on(self, n_pods: int) -> None:
        """Let so many more pods come, and as many go."""
        self._run(self._go_on(self.n_pods + n_pods))

    async def _go_on(self, until: int) -> None:
        while self.n_pods < until:
            self._come()
            await self.engine.settle()
            came = [self._api.pods.get(f"u{i}") for i in range(self.n_pods - PER_ROLLOUT, self.n_pods)]
            self.n_bound += sum(bool(pod.spec.node_name) for pod in came if pod is not None)
            while len(self._present) > self._alive:
                pod, objects = self._present.popleft()
                self._api.drop(pod)
                for obj in objects:
                    self._api.drop(obj)
            await self._clock.sleep(SECONDS_A_ROLLOUT)
            await self.engine.settle()

    def _come(self) -> None:
        """Let the pods of a rollout come."""
        rollout = self.n_pods // PER_ROLLOUT
        gated = []
        for i in range(self.n_pods, self.n_pods + PER_ROLLOUT):
            raw: Raw = {
                "metadata": {"name": f"p{i}", "namespace": "default", "uid": f"u{i}", "labels": {"app": "x"}},
                "spec": {
                    "schedulerName": "default-scheduler",
                    "containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "10m"}}}],
                },
            }
            objects = tuple(map(_read, self._change(raw, i, rollout)))
            if i == self.n_pods:
                for obj in objects:
                    self._api.put(obj)
            pod = codec.convert(raw, Pod)
            self._api.put(pod)
            if pod.spec.scheduling_gates:
                gated.append(pod)
            self._present.append((pod, objects if i == self.n_pods + PER_ROLLOUT - 1 else ()))
        for pod in gated:
            self._api.put(_with(pod, spec=_with(pod.spec, scheduling_gates=())))
        self.n_pods += PER_ROLLOUT

    def close(self) -> None:
        """Give back what the event loop holds."""
        self._writing.cancel()
        self._run(asyncio.gather(self._writing, return_exceptions=True))
        self._run(self.engine.abandon())
        self._loop.close()


def measure(
    *, nodes: int, alive: int, pods: int, seed: int = 0, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Let pods come about whom everything is new; return the figures of `bench engine`, and those of the second and last tenth.

    A pod's time is the tenth part of its rollout's, bindings and events included.
    """
    history, tenth = History("", nodes=nodes, alive=alive, seed=seed), max(pods // 10, PER_ROLLOUT)
    seconds: list[float] = []
    sizes: dict[int, int] = {}
    while history.n_pods < pods:
        started = time.perf_counter()
        history.go_on(PER_ROLLOUT)
        seconds.append((time.perf_counter() - started) / PER_ROLLOUT)
        sizes[history.n_pods] = resident_bytes()
        if progress is not None:
            progress(history.n_pods)
    history.close()
    micros, n = np.array(seconds) * 1e6, max(tenth // PER_ROLLOUT, 1)
    second, last = micros[n : 2 * n], micros[-n:]
    return {
        "kind": "novelty",
        "classes": history.n_pods,
        "nodes": nodes,
        "init": alive,
        "pods": history.n_pods,
        "scheduled": history.n_bound,
        "pods_per_s": round(1e6 / micros.mean(), 1),
        "p50_us": round(float(np.percentile(micros, 50)), 1),
        "p99_us": round(float(np.percentile(micros, 99)), 1),
        "first_p99_us": None,
        "rss_mib": max(sizes.values()) >> 20,
        "nodes_evaluated_percent": 100,
        "kernels": kernels.form,
        "seed": seed,
        "second_tenth_pods_per_s": round(1e6 / second.mean(), 1) if len(second) else None,
        "last_tenth_pods_per_s": round(1e6 / last.mean(), 1),
        "second_tenth_bytes": sizes.get(2 * n * PER_ROLLOUT),
        "last_tenth_bytes": sizes[history.n_pods],
    }


def resident_bytes() -> int:
    """Return what this process has in memory now."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize()
