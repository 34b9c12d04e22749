"""The pods of one workload of a scenario: they arrive, are scaled, and are rolled out.

In: a workload of the scenario, or a manifest. Out: pods in the simulation. Each is a copy of a pod that was admitted once, so
that the pods of a workload share their spec and it is parsed once. Names are numbered by arrival: NAME-1, NAME-2. The pods of a
manifest that arrives several times are NAME-1-2 and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from kubesched.embedded.controllers.workloads.deployments import whole
from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.api import (
    KINDS,
    LabelSelector,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Quantity,
    ReplicaSet,
    ReplicaSetSpec,
    ResourceClaimTemplate,
    ResourceRequirements,
    codec,
    is_extended_name,
)
from kubesched.kube.values import POD_TEMPLATE_HASH
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.claims import with_claims
from kubesched.tools.plan.manifests import Raw
from kubesched.tools.simulation.arrivals import running_time, times
from kubesched.tools.simulation.cluster.rollout import RollingUpdate
from kubesched.tools.simulation.cluster.simulated_cluster import SCALED, WITHDRAWN
from kubesched.tools.simulation.pod_record import PENDING, PodRecord
from kubesched.tools.simulation.scenario import FOREVER, Rollout, Workload, seconds
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.simulation.traces import TracedPod, arranged, offered_by, read_trace

_with = msgspec.structs.replace
_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController", "Job")
_REPLICAS = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}


class WorkloadRunner:
    """The pods of one workload."""

    def __init__(
        self, workload: Workload, sim: Simulation, admission: Admission, chance: Random, folder: Path = Path(), where: str = ""
    ) -> None:
        self.workload = workload
        self._sim = sim
        self._admission = admission
        self._chance = chance
        self._folder = folder
        self._where = where
        self._runs = running_time(workload.runs, chance)
        self._pods: list[Pod] = []
        self._manifest: Raw | None = None
        self._n_arrivals = self._n_pods = 0
        self._coming: Iterator[float] = iter(())
        self._specs: dict[tuple[Any, ...], PodSpec] = {}
        self._n_revisions = 0
        self._rolling: RollingUpdate | None = None

    @classmethod
    def of_manifest(cls, raw: Raw, sim: Simulation, admission: Admission) -> WorkloadRunner:
        """Return a runner for the pods of a manifest. They arrive at the beginning and run forever."""
        made = cls(Workload(name=raw["metadata"]["name"]), sim, admission, Random(0))
        made.learn(raw)
        return made

    @property
    def is_endless(self) -> bool:
        """Return whether the arrivals have no end."""
        arrivals = self.workload.arrivals
        return (arrivals.every is not None or arrivals.rate is not None) and arrivals.end is None and arrivals.count is None

    def learn(self, raw: Raw) -> None:
        """Take the pods from an admitted manifest, and add their owner and claims to the cluster."""
        spec, field = raw.get("spec") or {}, _REPLICAS.get(raw["kind"], "")
        if self.workload.replicas is not None and field:
            raw = {**raw, "spec": {**spec, field: self.workload.replicas}}
        self._manifest = raw
        self._pods += map(_unborn, self._admission.pods_of(raw, list(self._sim.world.nodes.values())))
        for claim in self._admission.claims_of(raw):
            self._sim.add(claim)
        owner = self._admission.replica_set_of(raw) if raw["kind"] == "Deployment" else raw
        if owner["kind"] in _OWNERS:
            self._sim.add(codec.convert(owner, KINDS[owner["apiVersion"], owner["kind"]]))

    def begin(self) -> None:
        """Schedule the arrivals."""
        arrivals = self.workload.arrivals
        if self._manifest is None:
            self._pods = [self._owned(self._template())] * (self.workload.replicas if self.workload.replicas is not None else 1)
        if arrivals.trace:
            self._follow_trace(self._folder / arrivals.trace)
            return
        self._coming = times(arrivals, self._chance)
        self._await_next()

    def scale(self, replicas: int) -> None:
        """Scale to `replicas` pods. Pending pods are deleted first, then the youngest."""
        cluster = self._sim.world
        alive = sorted(cluster.alive(self.workload.name), key=lambda record: (record.state == PENDING, record.arrived))
        for record in reversed(alive[replicas:]):
            cluster.evict(record, SCALED)
        for _ in range(replicas - len(alive)):
            if not self._pods:
                raise SchedulerError(f"workload {self.workload.name} has no pod that could be made more of")
            self._come(self._next_of(self._pods[0]))

    def roll_out(self, rollout: Rollout) -> None:
        """Start a rollout to a new template."""
        if not self._pods:
            raise SchedulerError(f"workload {self.workload.name} has no pod that could be made anew")
        old, self._n_revisions = self._pods[0], self._n_revisions + 1
        if rollout.pod is not None:
            made = self._template(rollout.pod)
            new = _with(made, metadata=_with(made.metadata, owner_references=old.metadata.owner_references))
        else:
            first, *others = old.spec.containers
            limits = {name: amount for name, amount in rollout.requests.items() if is_extended_name(name)}
            resources = ResourceRequirements(requests=rollout.requests, limits=limits) if rollout.requests else first.resources
            new = _with(old, spec=_with(old.spec, containers=(_with(first, resources=resources), *others)))
        labels = {**(new.metadata.labels or {}), POD_TEMPLATE_HASH: str(self._n_revisions)}
        self._pods = [_with(new, metadata=_with(new.metadata, labels=labels))] * len(self._pods)
        replicas = len(self._sim.world.alive(self.workload.name))
        rolling = (((self._manifest or {}).get("spec") or {}).get("strategy") or {}).get("rollingUpdate") or {}
        surge = rollout.max_surge if rollout.max_surge is not None else rolling.get("maxSurge", "25%")
        missing = rollout.max_unavailable if rollout.max_unavailable is not None else rolling.get("maxUnavailable", "25%")
        if self._rolling is not None:
            self._rolling.stop()
        self._rolling = RollingUpdate(
            self._sim.world,
            self.workload.name,
            str(self._n_revisions),
            replicas=replicas,
            surge=whole(_number(surge), replicas, round_up=True),
            unavailable=whole(_number(missing), replicas, round_up=False),
            ready_after=seconds(rollout.ready_after),
            come=lambda: self._come(self._next_of(self._pods[0])),
            at=self._sim.at,
        )
        self._rolling.begin()

    def daemon_pod(self) -> Pod:
        """Return the pod of a DaemonSet, without a node."""
        assert self._manifest is not None
        return self._admission.daemon_pod_of(self._manifest)

    def follow(self, node: Node) -> None:
        """Create the pod of a DaemonSet for a node that joined later."""
        assert self._manifest is not None
        for pod in self._admission.pods_of(self._manifest, [node]):
            self._come(_renamed(_unborn(pod), f"{self.workload.name}-{node.metadata.name}"))

    def _await_next(self) -> None:
        at = next(self._coming, None)
        if at is not None:
            self._sim.at(at, self._arrive)

    def _arrive(self) -> None:
        self._n_arrivals += 1
        for pod in self._pods:
            if self._manifest is None:
                self._come(self._next_of(pod))
            elif self._n_arrivals == 1:
                self._n_pods += 1
                self._come(pod)
            else:
                self._come(_renamed(pod, f"{pod.metadata.name}-{self._n_arrivals}"))
        self._await_next()

    def _next_of(self, pod: Pod) -> Pod:
        self._n_pods += 1
        return _renamed(pod, f"{self.workload.name}-{self._n_pods}")

    def _come(self, pod: Pod) -> None:
        self._submit(pod, self._runs())

    def _submit(self, pod: Pod, runs: float | None) -> None:
        """Create a pod with its claims, and delete it if it is still pending when its patience is over."""
        cluster, patience = self._sim.world, self.workload.patience
        if pod.spec.resource_claims or any(volume.ephemeral is not None for volume in pod.spec.volumes):
            templates = {each.key: each for each in cluster.objects.values() if isinstance(each, ResourceClaimTemplate)}
            pod, made, _ = with_claims(pod, templates, self._admission)
            for claim in made:
                cluster.put(claim)

        def give_up(record: PodRecord) -> None:
            if record.state == PENDING:
                cluster.remove(record, WITHDRAWN)

        def wait(record: PodRecord) -> None:
            if patience is not None:
                self._sim.at(self._sim.now + seconds(patience), lambda: give_up(record))

        cluster.create(pod, wait, workload=self.workload.name, runs=runs, restarts=self.workload.restarts)

    def _template(self, given: Mapping[str, Any] | None = None) -> Pod:
        """Return the admitted pod that all pods of the workload are copies of; `given` replaces the `pod` of the workload."""
        workload = self.workload
        given = given if given is not None else workload.pod or {}
        metadata = {"namespace": workload.namespace, "labels": {"app": workload.name}, **(given.get("metadata") or {})}
        limits = {name: amount for name, amount in workload.requests.items() if is_extended_name(name)}
        spec = {"containers": [{"resources": {"requests": workload.requests, "limits": limits}}], **(given.get("spec") or {})}
        spec["containers"] = [{"name": f"c{i}", "image": "app", **container} for i, container in enumerate(spec["containers"])]
        try:
            pod = _unborn(self._admission.admit_pod({"metadata": metadata, "spec": spec}, workload.name))
        except SchedulerError as error:
            raise ConfigError(f"{self._where}.pod", str(error)) from error
        if workload.priority is not None:
            pod = _with(pod, spec=_with(pod.spec, priority=workload.priority))
        return pod

    def _owned(self, pod: Pod) -> Pod:
        """Return the pod with an owner: a ReplicaSet if it runs forever, a Job if it ends."""
        if self.workload.restarts is False:
            return pod
        name, namespace = self.workload.name, pod.metadata.namespace
        kind = "ReplicaSet" if self.workload.runs == FOREVER and not self.workload.arrivals.trace else "Job"
        owner = OwnerReference(
            api_version="apps/v1" if kind == "ReplicaSet" else "batch/v1",
            kind=kind,
            name=name,
            uid=f"uid-{namespace}-{name}",
            controller=True,
        )
        if kind == "ReplicaSet":  # PodTopologySpread's default constraints need the selector of the owner
            meta = ObjectMeta(name=name, namespace=namespace, uid=owner.uid, labels=pod.metadata.labels)
            template = PodTemplateSpec(metadata=ObjectMeta(labels=pod.metadata.labels), spec=pod.spec)
            selector = LabelSelector(match_labels=pod.metadata.labels)
            spec = ReplicaSetSpec(replicas=self.workload.replicas or 1, selector=selector, template=template)
            self._sim.add(ReplicaSet(metadata=meta, spec=spec))
        return _with(pod, metadata=_with(pod.metadata, owner_references=(owner,)))

    def _follow_trace(self, file: Path) -> None:
        (template, *_), names, arrivals = self._pods, set(), self.workload.arrivals
        offered = offered_by(self._sim.world.nodes.values()) if arrivals.load else {}
        for traced in arranged(read_trace(file, arrivals.format), arrivals, self._chance, offered):
            key = (traced.namespace or template.metadata.namespace, traced.name)
            if key in names:
                raise ConfigError(str(file), f"the pod {'/'.join(key)} comes twice: names must differ")
            names.add(key)
            self._sim.at(traced.time, lambda traced=traced: self._come_as(template, traced))  # type: ignore[misc]

    def _come_as(self, template: Pod, traced: TracedPod) -> None:
        key = (*traced.requests.items(), traced.priority)
        meta = template.metadata
        spec = self._specs.get(key)
        if spec is None:
            first, *others = template.spec.containers
            limits: dict[str, Quantity] = {name: amount for name, amount in traced.requests.items() if is_extended_name(name)}
            resources = ResourceRequirements(requests={**first.resources.requests, **traced.requests}, limits=limits)
            priority = traced.priority if traced.priority is not None else template.spec.priority
            spec = self._specs[key] = _with(
                template.spec, priority=priority, containers=(_with(first, resources=resources), *others)
            )
        if traced.labels or traced.annotations:
            labels, annotations = {**(meta.labels or {}), **traced.labels}, {**(meta.annotations or {}), **traced.annotations}
            meta = _with(meta, labels=labels, annotations=annotations)
        pod = _renamed(_with(template, metadata=meta, spec=spec), traced.name, traced.namespace)
        self._submit(pod, traced.duration if self.workload.arrivals.durations == "trace" else None)


def _number(value: int | str) -> int | str:
    """Return a number that is written as text as an integer; a percentage stays text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _unborn(pod: Pod) -> Pod:
    """Return a pod without a creation timestamp: it is set on arrival."""
    return _with(pod, metadata=_with(pod.metadata, creation_timestamp=None))


def _renamed(pod: Pod, name: str, namespace: str = "") -> Pod:
    namespace = namespace or pod.metadata.namespace
    return _with(pod, metadata=_with(pod.metadata, name=name, namespace=namespace, uid=f"uid-{namespace}-{name}"))
