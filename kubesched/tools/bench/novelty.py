"""Long histories of pods of which no two are alike. They show whether memory or time per pod grows with deleted objects.

In: what is new about each pod, or about each rollout of ten pods. Out: an engine after such a history, with metrics, events,
decision records and a queue in virtual time, as in the program. The API server here forgets deleted objects. A few pods exist
at a time: when new ones arrive, the oldest are deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from kubesched.errors import NotFound
from kubesched.kube.api import Pod, TopLevel, codec, format_time
from kubesched.kube.client import Broadcaster
from kubesched.scheduler import config, kernels
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import Changed, DecisionRecorder, Ports, assemble, default_configuration, engine_options
from kubesched.telemetry.metrics import Metrics
from kubesched.telemetry.reporting import Reporter
from kubesched.tools.bench.pauses import resident_bytes
from kubesched.tools.simulation.clock import VirtualClock, VirtualLoop
from kubesched.tools.simulation.cluster.fake_api import with_status
from kubesched.tools.simulation.cluster.simulated_cluster import key_of

Raw = dict[str, Any]
PER_ROLLOUT, SECONDS_A_ROLLOUT = 10, 40.0
HOST, ZONE, HASH = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "pod-template-hash"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_with = msgspec.structs.replace


def _object(kind: str, name: str, *, group: str = "v1", namespace: str = "", **rest: Any) -> Raw:
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": f"{kind}-{name}"},
        **rest,
    }


def _node(name: str, **labels: str) -> Raw:
    offer = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    status = {"allocatable": offer, "capacity": offer, "conditions": [{"type": "Ready", "status": "True"}]}
    made = _object("Node", name, spec={}, status=status)
    made["metadata"]["labels"] = {HOST: name, **labels}
    return made


class New(msgspec.Struct, frozen=True):
    """What is new about a pod. It is merged into a plain pod: dicts key by key, lists one after the other."""

    labels: Raw = {}
    requests: Raw = {}
    container: Raw = {}
    spec: Raw = {}
    metadata: Raw = {}
    objects: tuple[Raw, ...] = ()
    """Created before the first pod of the rollout, deleted with its last one."""


Novelty = Callable[[int, int], New]
"""Returns what is new about pod number i of a rollout."""


def _spread(i: int, rollout: int) -> New:
    """Spread constraints over the pods of the own rollout, over zones and over nodes."""
    common = {"maxSkew": 1, "matchLabelKeys": [HASH], "labelSelector": {"matchLabels": {"app": "x"}}}
    hard = {**common, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    soft = {**common, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}
    return New(labels={HASH: f"h{rollout}"}, spec={"topologySpreadConstraints": [hard, soft]})


def _affinity(side: str, strength: str, topology_key: str) -> Novelty:
    """Return pods with a term about the pods of their own rollout, written as the API server fills in `matchLabelKeys`."""

    def new(i: int, rollout: int) -> New:
        own = {"key": HASH, "operator": "In", "values": [f"h{rollout}"]}
        selector = {"matchLabels": {"app": "x"}, "matchExpressions": [own]}
        term: Raw = {"topologyKey": topology_key, "labelSelector": selector, "matchLabelKeys": [HASH]}
        if strength == PREFERRED:
            term = {"weight": 7, "podAffinityTerm": term}
        return New(labels={HASH: f"h{rollout}"}, spec={"affinity": {side: {strength: [term]}}})

    return new


def _selector(i: int, rollout: int, **namespaces: Any) -> New:
    """Required anti-affinity with a label selector that only this pod matches."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"own": f"o{i}"}}, **namespaces}
    return New(labels={"own": f"o{i}"}, spec={"affinity": {"podAntiAffinity": {REQUIRED: [term]}}})


def _namespace(i: int, rollout: int) -> New:
    """A namespace for each rollout."""
    namespace = _object("Namespace", f"ns{rollout}")
    namespace["metadata"]["labels"] = {"team": f"t{rollout}"}
    return New(metadata={"namespace": f"ns{rollout}"}, objects=(namespace,))


def _namespace_selector(i: int, rollout: int) -> New:
    """The same anti-affinity with a namespace selector for the rollout's own namespace."""
    selecting = _selector(i, rollout, namespaceSelector={"matchLabels": {"team": f"t{rollout}"}})
    return _with(_namespace(i, rollout), spec=selecting.spec)


def _node_affinity(i: int, rollout: int) -> New:
    """A required node affinity that excludes one rank, a different one for each pod."""
    other = {"key": "rank", "operator": "NotIn", "values": [f"r{i}"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [other]}]}
    return New(spec={"affinity": {"nodeAffinity": {REQUIRED: terms}}})


def _resource(i: int, rollout: int) -> New:
    """An extended resource for each rollout, and a node that offers it."""
    node = _node(f"offers-{rollout}")
    node["status"]["allocatable"][f"example.com/r{rollout}"] = "100"
    return New(requests={f"example.com/r{rollout}": "1"}, objects=(node,))


def _new_node(i: int, rollout: int) -> New:
    """A node for each rollout, with labels, a taint and an image of its own. Every other pod selects it."""
    node = _node(f"x{rollout}", rank=f"r{rollout}", **{ZONE: f"zx{rollout}", f"own/k{rollout}": "1"})
    node["spec"] = {"taints": [{"key": "since", "value": f"s{rollout}", "effect": "PreferNoSchedule"}]}
    node["status"]["images"] = [{"names": [f"app:{rollout}"], "sizeBytes": 500 << 20}]
    return New(spec={"nodeSelector": {HOST: f"x{rollout}"}} if i % 2 else {}, objects=(node,))


def _claim(i: int, rollout: int) -> New:
    """A bound claim for each rollout, with a storage class, volume and driver of its own."""
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": f"s{rollout}"}
    claim = _object(
        "PersistentVolumeClaim",
        f"c{rollout}",
        namespace="default",
        spec={**common, "volumeName": f"v{rollout}", "resources": {"requests": {"storage": "1Gi"}}},
        status={"phase": "Bound"},
    )
    volume = _object(
        "PersistentVolume",
        f"v{rollout}",
        spec={
            **common,
            "capacity": {"storage": "1Gi"},
            "claimRef": dict(claim["metadata"]),
            "csi": {"driver": f"p{rollout}", "volumeHandle": f"v{rollout}"},
        },
        status={"phase": "Bound"},
    )
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    mode = {"provisioner": f"p{rollout}", "volumeBindingMode": "WaitForFirstConsumer"}
    storage_class = _object("StorageClass", f"s{rollout}", group="storage.k8s.io/v1", **mode)
    mounted = {"name": "v", "persistentVolumeClaim": {"claimName": f"c{rollout}"}}
    return New(spec={"volumes": [mounted]}, objects=(storage_class, volume, claim))


def _device(i: int, rollout: int) -> New:
    """A device claim for each rollout, with a class, driver and slice of its own."""
    group, devices = "resource.k8s.io/v1", [{"name": f"d{j}"} for j in range(10)]
    pool = {"name": f"p{rollout}", "resourceSliceCount": 1}
    offer = {"driver": f"dr{rollout}.example.com", "pool": pool, "nodeName": f"n{rollout % 10}", "devices": devices}
    exactly = {"deviceClassName": f"k{rollout}", "allocationMode": "ExactCount", "count": 1}
    request = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return New(
        spec={"resourceClaims": [{"name": "d", "resourceClaimName": f"d{rollout}"}]},
        objects=(
            _object("DeviceClass", f"k{rollout}", group=group, spec={}),
            _object("ResourceSlice", f"s{rollout}", group=group, spec=offer),
            _object("ResourceClaim", f"d{rollout}", group=group, namespace="default", spec=request),
        ),
    )


def _priority(i: int, rollout: int) -> New:
    """A priority for each pod, and a priority class for each rollout."""
    priority_class = _object("PriorityClass", f"c{rollout}", group="scheduling.k8s.io/v1", value=rollout)
    return New(spec={"priority": i, "priorityClassName": f"c{rollout}"}, objects=(priority_class,))


def _preempting(i: int, rollout: int) -> New:
    """Large pods of rising priority, which preempt older ones."""
    return New(requests={"cpu": "20"}, spec={"priority": i})


def _budget(i: int, rollout: int) -> New:
    """Preempting pods with a disruption budget for each rollout."""
    budget = _object(
        "PodDisruptionBudget",
        f"b{rollout}",
        group="policy/v1",
        namespace="default",
        spec={"selector": {"matchLabels": {"set": f"r{rollout}"}}},
        status={"disruptionsAllowed": 3},
    )
    return _with(_preempting(i, rollout), labels={"set": f"r{rollout}"}, objects=(budget,))


def _owner(i: int, rollout: int) -> New:
    """A ReplicaSet and a Service for each rollout."""
    name, labels = f"r{rollout}", {"set": f"r{rollout}"}
    replica_set = _object("ReplicaSet", name, group="apps/v1", namespace="default", spec={"selector": {"matchLabels": labels}})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"ReplicaSet-{name}", "controller": True}
    service = _object("Service", name, namespace="default", spec={"selector": labels})
    return New(labels=labels, metadata={"ownerReferences": [owner]}, objects=(replica_set, service))


def _pod_group(i: int, rollout: int) -> New:
    """A gang for each rollout."""
    policy = {"schedulingPolicy": {"gang": {"minCount": PER_ROLLOUT}}}
    group = _object("PodGroup", f"g{rollout}", group="scheduling.k8s.io/v1beta1", namespace="default", spec=policy)
    return New(spec={"schedulingGroup": {"podGroupName": f"g{rollout}"}}, objects=(group,))


KINDS: Mapping[str, Novelty] = {
    "plain": lambda i, rollout: New(),
    "label": lambda i, rollout: New(labels={"job": f"j{i}"}),
    "label-key": lambda i, rollout: New(labels={f"own/k{i}": "x"}),
    "spread": _spread,
    "affinity": _affinity("podAffinity", REQUIRED, ZONE),
    "preferred-affinity": _affinity("podAffinity", PREFERRED, ZONE),
    "anti-affinity": _affinity("podAntiAffinity", REQUIRED, HOST),
    "preferred-anti-affinity": _affinity("podAntiAffinity", PREFERRED, ZONE),
    "selector": _selector,
    "namespace-selector": _namespace_selector,
    "node-affinity": _node_affinity,
    "toleration": lambda i, rollout: New(spec={"tolerations": [{"key": f"t{i}", "operator": "Exists"}]}),
    "image": lambda i, rollout: New(container={"image": f"app:{i}"}),
    "amounts": lambda i, rollout: New(requests={"memory": f"{i + 1}Ki"}),
    "resource": _resource,
    "resource-of-nobody": lambda i, rollout: New(requests={f"example.com/r{i}": "1"}),
    "namespace": _namespace,
    "node": _new_node,
    "claim": _claim,
    "device": _device,
    "priority": _priority,
    "preemption": _preempting,
    "owner": _owner,
    "host-port": lambda i, rollout: New(container={"ports": [{"containerPort": 80, "hostPort": 1024 + i % 60000}]}),
    "gate": lambda i, rollout: New(spec={"schedulingGates": [{"name": f"example.com/g{i}"}]}),
    "service-account": lambda i, rollout: New(spec={"serviceAccountName": f"sa{i}"}),
    "pod-group": _pod_group,
    "unfit": lambda i, rollout: New(requests={"cpu": str(100 + i)}),
    "budget": _budget,
}
"""What can be new about pods."""
_TOGETHER = (
    *("label", "spread", "preferred-affinity", "preferred-anti-affinity", "selector", "node-affinity", "toleration", "image"),
    *("amounts", "namespace", "node", "priority", "host-port", "service-account"),
)
"""What can all be new about one pod that still finds a node."""


def _merge(into: Raw, new: Raw) -> None:
    """Merge a patch into a dict: dicts by key, lists appended, other values replaced."""
    for key, value in new.items():
        match into.get(key), value:
            case dict() as known, dict():
                _merge(known, value)
            case list() as known, list():
                known += value
            case _:
                into[key] = value


def _pod(i: int, rollout: int, kinds: Iterable[str]) -> tuple[Pod, tuple[TopLevel, ...]]:
    """Return pod number i, and the objects that its rollout needs."""
    container: Raw = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "10m"}}}
    spec: Raw = {"schedulerName": "default-scheduler", "containers": [container]}
    raw: Raw = {"metadata": {"name": f"p{i}", "namespace": "default", "uid": f"u{i}", "labels": {"app": "x"}}, "spec": spec}
    objects: list[Raw] = []
    for kind in kinds:
        new = KINDS[kind](i, rollout)
        _merge(container, {**new.container, "resources": {"requests": new.requests}})
        _merge(raw, {"metadata": {**new.metadata, "labels": new.labels}, "spec": new.spec})
        objects += new.objects
    return codec.convert(raw, Pod), tuple(map(codec.decode, objects))


class _Api:
    """The Writer port, and the connection that events go to. It keeps the objects that exist, and nothing of deleted ones."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.post: Callable[[str, Any, Any], None]
        self.objects: dict[tuple[str, str, str], Any] = {}
        self._version = 0

    def put(self, obj: Any) -> Any:
        """Store an object, or its new version."""
        self._version += 1
        new = _with(obj, metadata=_with(obj.metadata, resource_version=str(self._version)))
        key = key_of(new)
        old, self.objects[key] = self.objects.get(key), new
        self.post(key[0], old, new)
        return new

    def drop(self, obj: TopLevel) -> None:
        """Delete an object, unless that has been done."""
        old = self.objects.pop(key_of(obj), None)
        if old is not None:
            self.post(key_of(old)[0], old, None)

    def _pod(self, view: PodView) -> Pod:
        known: Pod | None = self.objects.get(("Pod", view.namespace, view.name))
        if known is None:
            raise NotFound(404, "NotFound", f'pods "{view.name}" not found')
        return known

    async def bind(self, pod: PodView, node_name: str) -> None:
        known = self._pod(pod)
        status = _with(known.status, start_time=format_time(self.clock.now()))
        self.put(_with(known, spec=_with(known.spec, node_name=node_name), status=status))

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        self.put(with_status(self._pod(pod), status))

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
    """An engine, and the pods that come to it."""

    def __init__(self, kind: str, *, nodes: int = 50, alive: int = 200, decision_records: int = 100, seed: int = 0) -> None:
        """Begin with `nodes` nodes and no pod. `kind` is one of `KINDS`; empty means all kinds that fit one pod."""
        self._kinds = (kind,) if kind else _TOGETHER
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
        """Pods, oldest first, each with the objects to delete together with it: the last pod of a rollout has the rollout's."""
        is_small = kind in ("preemption", "budget")
        for i in range(nodes if not is_small else alive // 4):
            self._api.put(codec.decode(_node(f"n{i}", rank=f"r{i}", **{ZONE: f"z{i % 5}"})))
        self._run(self._begin())

    def _run(self, work: Any) -> None:
        self._loop.run_until_complete(work)

    async def _begin(self) -> None:
        self._writing = asyncio.create_task(self.broadcaster.run())
        await self.engine.settle()

    def go_on(self, n_pods: int) -> None:
        """Create `n_pods` more pods, and delete as many."""
        self._run(self._go_on(self.n_pods + n_pods))

    async def _go_on(self, until: int) -> None:
        while self.n_pods < until:
            self._come()
            await self.engine.settle()
            came = (self._api.objects.get(key_of(pod)) for pod, _ in islice(reversed(self._present), PER_ROLLOUT))
            self.n_bound += sum(pod is not None and bool(pod.spec.node_name) for pod in came)
            while len(self._present) > self._alive:
                pod, objects = self._present.popleft()
                self._api.drop(pod)
                for obj in objects:
                    self._api.drop(obj)
            await self._clock.sleep(SECONDS_A_ROLLOUT)
            await self.engine.settle()

    def _come(self) -> None:
        """Create the pods of one rollout."""
        rollout = self.n_pods // PER_ROLLOUT
        gated = []
        for i in range(self.n_pods, self.n_pods + PER_ROLLOUT):
            pod, objects = _pod(i, rollout, self._kinds)
            if i == self.n_pods:
                for obj in objects:
                    self._api.put(obj)
            self._api.put(pod)
            if pod.spec.scheduling_gates:
                gated.append(pod)
            self._present.append((pod, objects if i == self.n_pods + PER_ROLLOUT - 1 else ()))
        for pod in gated:
            self._api.put(_with(pod, spec=_with(pod.spec, scheduling_gates=())))
        self.n_pods += PER_ROLLOUT

    def close(self) -> None:
        """End the tasks, and close the event loop."""
        self._writing.cancel()
        self._run(asyncio.gather(self._writing, return_exceptions=True))
        self._run(self.engine.abandon())
        self._loop.close()


def measure(
    *, nodes: int, alive: int, pods: int, seed: int = 0, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Schedule pods that are new in every way; return the figures of `bench engine`, and those of the second and last tenth.

    The time of a pod is a tenth of its rollout's, with bindings and events.
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
