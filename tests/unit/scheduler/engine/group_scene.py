"""A little cluster in virtual time for tests about pod groups: objects are told, time passes, outcomes are read."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.errors import NotFound, ServerFault
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod, PodSchedulingGroup
from kubesched.kube.api.workload import (
    BasicSchedulingPolicy,
    CompositeGangSchedulingPolicy,
    CompositePodGroup,
    CompositePodGroupSchedulingPolicy,
    CompositePodGroupSpec,
    CoschedulingPodGroup,
    CoschedulingPodGroupSpec,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupStatus,
    TopologyConstraint,
)
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration, registry_with
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.telemetry import Metrics
from kubesched.telemetry.reporting import Reporter
from kubesched.testing import pod as any_pod
from kubesched.tools.simulation.clock import VirtualClock

LABEL = "scheduling.x-k8s.io/pod-group"
GATES = "GenericWorkload=true,GangScheduling=true"
COSCHEDULING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
"""


def member(name: str, group: str, **given: Any) -> Pod:
    """Return a pod that names its PodGroup of scheduling.k8s.io."""
    plain = any_pod(name, **given)
    grouped = msgspec.structs.replace(plain.spec, scheduling_group=PodSchedulingGroup(pod_group_name=group))
    return msgspec.structs.replace(plain, spec=grouped)


def labelled(name: str, group: str, **given: Any) -> Pod:
    """Return a pod that carries the label of the coscheduling project."""
    return any_pod(name, labels={LABEL: group, **given.pop("labels", {})}, **given)


def gang(name: str = "g", min_count: int = 0, topology: str = "", generation: int = 1, **given: Any) -> PodGroup:
    """Return a PodGroup; without a count its policy is basic."""
    policy = (
        PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min_count))
        if min_count
        else (PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy()))
    )
    constraints = PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology),)) if topology else None
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", generation=generation),
        spec=PodGroupSpec(scheduling_policy=policy, scheduling_constraints=constraints, **given),
    )


def trio(count: int = 3, group: str = "g", **given: Any) -> list[Any]:
    return [member(f"{group}{i}", group, requests={"cpu": "1"}, **given) for i in range(1, count + 1)]


def composite(name: str = "all", min_groups: int = 2, parent: str | None = None, topology: str = "") -> CompositePodGroup:
    constraints = PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology),)) if topology else None
    policy = CompositePodGroupSchedulingPolicy(gang=CompositeGangSchedulingPolicy(min_group_count=min_groups))
    return CompositePodGroup(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=CompositePodGroupSpec(
            scheduling_policy=policy, scheduling_constraints=constraints, parent_composite_pod_group_name=parent
        ),
    )


def two_groups(parent: str = "all", **given: Any) -> list[Any]:
    return [
        *(gang(name, min_count=2, parent_composite_pod_group_name=parent, **given) for name in ("g", "h")),
        *trio(2, "g"),
        *trio(2, "h"),
    ]


def crew(name: str = "g", min_member: int = 1, created: str = "2026-01-01T00:00:00Z", **given: Any) -> CoschedulingPodGroup:
    """Return a PodGroup of the coscheduling project."""
    return CoschedulingPodGroup(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", creation_timestamp=created),
        spec=CoschedulingPodGroupSpec(min_member=min_member, **given),
    )


class Scene:
    """The engine and everything around it. Must be made inside a running event loop, virtual or, with extenders, real."""

    def __init__(
        self,
        *objects: Any,
        gates: str = "",
        configuration: str = "",
        plugins: tuple[Any, ...] = (),
        poster: Any = None,
        release: tuple[int, int] = (1, 36),
    ) -> None:
        self.gates = config.Gates.parse(gates, emulated=release)
        registry = registry_with(plugins)
        loaded = (
            config.load(configuration, gates=self.gates, registry=catalogue(registry))
            if configuration
            else default_configuration(self.gates, registry)
        )
        self.metrics = Metrics()
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.known: dict[tuple[type, str], Any] = {}
        self.bound: dict[str, str] = {}
        self.bind_order: list[str] = []
        self.failing_binds: dict[str, int] = {}
        self.deleted: list[str] = []
        self.events: list[tuple[str, str, str]] = []
        self.statuses: dict[str, dict[str, Any]] = {}
        self.conditions: list[dict[str, Any]] = []
        self.decisions = DecisionRecorder(100, share=1.0)
        self.engine = assemble(
            loaded,
            self.gates,
            Ports(
                clock=self.clock,
                writer=self,
                recorder=self,
                observer=Reporter(self.metrics),
                poster=poster,
                decisions=self.decisions,
            ),
            registry=registry,
        )
        self.running = asyncio.create_task(self.engine.run())
        self.put(*objects)

    def put(self, *objects: Any) -> None:
        """Tell the engine that objects came or changed."""
        for obj in objects:
            key = type(obj), obj.key
            self.engine.inbox.post(Changed(type(obj).__name__, self.known.get(key), obj))
            self.known[key] = obj

    def drop(self, obj: Any) -> None:
        """Tell the engine that an object is gone."""
        self.engine.inbox.post(Changed(type(obj).__name__, self.known.pop((type(obj), obj.key)), None))

    async def settle(self, seconds: float = 0.5) -> None:
        """Let some time pass."""
        await asyncio.sleep(seconds)
        assert not self.running.done(), self.running.exception()

    def nodes(self, *names: str) -> list[str]:
        """Return where pods are bound, empty where they are not."""
        return [self.bound.get(name, "") for name in names]

    def said(self, name: str) -> str:
        """Return the message of a pod's newest failure."""
        return next((note for pod, reason, note in reversed(self.events) if pod == name and reason == "FailedScheduling"), "")

    def place(self, name: str) -> str:
        """Return where in the queue a pod is."""
        return self.engine.queue.place_of(f"default/{name}")

    # The Writer and Recorder ports

    async def bind(self, view: PodView, node_name: str) -> None:
        await asyncio.sleep(0.01)
        if self.failing_binds.get(view.name, 0) > 0:
            self.failing_binds[view.name] -= 1
            raise ServerFault(500, "InternalError", "not now")
        self.bound[view.name] = node_name
        self.bind_order.append(view.name)
        known = self.known[Pod, view.key]
        self.put(msgspec.structs.replace(known, spec=msgspec.structs.replace(known.spec, node_name=node_name)))

    async def patch_pod_status(self, view: PodView, status: Mapping[str, Any]) -> None:
        self.statuses.setdefault(view.name, {}).update(status)
        known = self.known.get((Pod, view.key))
        if known is not None and "nominatedNodeName" in status:
            changed = msgspec.structs.replace(known.status, nominated_node_name=status["nominatedNodeName"] or "")
            version = str(int(known.metadata.resource_version or "1") + 1)
            meta = msgspec.structs.replace(known.metadata, resource_version=version)
            self.put(msgspec.structs.replace(known, status=changed, metadata=meta))

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        self.conditions.extend(status["conditions"])
        known = self.known[type(obj), obj.key]
        conditions = msgspec.convert(status["conditions"], tuple[Any, ...])
        self.put(msgspec.structs.replace(known, status=msgspec.convert({"conditions": conditions}, PodGroupStatus)))

    async def delete_pod(self, view: PodView) -> None:
        if (Pod, view.key) not in self.known:
            raise NotFound(404, "NotFound", f'pods "{view.name}" not found')
        self.deleted.append(view.name)
        self.drop(self.known[Pod, view.key])

    async def update(self, changed: Any, subresource: str = "") -> Any:
        return changed

    async def create(self, obj: Any) -> Any:
        return obj

    async def delete(self, obj: Any) -> None:
        return None

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        self.events.append((regarding.name, reason, note))
