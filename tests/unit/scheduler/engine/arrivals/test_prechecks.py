"""Who is woken by what, with queueing hints and without them: the same story told to both."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod, PodCondition
from kubesched.kube.api.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.deciding.cycle import Rules, attempt
from kubesched.scheduler.engine.deciding.ties import FirstByName
from kubesched.scheduler.framework.verdicts import Unschedulable
from kubesched.scheduler.framework.wakeups import NODE, POD, Action
from kubesched.scheduler.queue import QueueOptions
from kubesched.scheduler.queue.hints import ProfileHints
from kubesched.testing import FakeClock, even, namespace, near, node, pod, taint

GPU, SPOT, NOT_READY = taint("gpu"), taint("spot"), taint("node.kubernetes.io/not-ready")
WEB, DB = {"app": "web"}, {"app": "db"}

Event = tuple[Any, Any]
"""(before, after)"""


def annotated(changed: Pod, **more: Any) -> Pod:
    meta = replace(changed.metadata, resource_version="2", **(more or {"annotations": {"a": "b"}}))
    return replace(changed, metadata=meta)


def told(changed: Pod) -> Pod:
    """Return a pod of which only the status has changed."""
    status = replace(changed.status, conditions=(PodCondition(type="PodScheduled", status="False"),))
    return replace(annotated(changed, labels=changed.metadata.labels), status=status)


def group(name: str, value: str, **more: Any) -> Any:
    return node(name, labels={"group": value}, **more)


def in_group(value: str) -> Pod:
    return pod(value, node_selector={"group": value})


def storage_class(mode: str) -> StorageClass:
    return StorageClass(metadata=ObjectMeta(name="fast"), provisioner="disks", volume_binding_mode=mode)


def cpu(name: str, amount: str, **more: Any) -> Pod:
    return pod(name, requests={"cpu": amount}, **more)


WITH_CLAIM = pod("claiming", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
CLAIM = PersistentVolumeClaim(
    metadata=ObjectMeta(name="data", namespace="default", uid="data"), spec=PersistentVolumeClaimSpec(storage_class_name="fast")
)
PLACED = pod("placed", labels=WEB, on="n", requests={"cpu": "3"})
LONER = pod("loner", labels=WEB, affinity=near(WEB, away=True))
SPREAD = pod("spread", labels=WEB, spread=[even(WEB)])
UNEVEN = [node("a", zone="a", cpu="4"), node("b", zone="b", taints=[GPU]), pod("one", labels=WEB, on="a")]

STORIES: dict[str, tuple[list[Any], list[Pod], list[Event], str, str]] = {
    # what: (what is there, who waits, what happens, who is woken with hints, who without them)
    "a node gets a label that one of two pods selects": (
        [group("n", "a")],
        [in_group("b"), in_group("c")],
        [(group("n", "a"), group("n", "b"))],
        "b",
        "b",
    ),
    "a node comes that one of two pods selects": (
        [group("n", "a")],
        [in_group("b"), in_group("c")],
        [(None, group("m", "b"))],
        "b",
        "b",
    ),
    "a node comes whose taint one of two pods tolerates": (
        [node("n", taints=[GPU])],
        [pod("spot", tolerates=[SPOT]), pod("plain")],
        [(None, node("m", taints=[SPOT]))],
        "spot",
        "spot",
    ),
    "a node comes that has room for one of two pods": (
        [node("n", cpu="1")],
        [cpu("four", "4"), cpu("eight", "8")],
        [(None, node("m", cpu="5"))],
        "four",
        "four",
    ),
    "a node grows so that one of two pods has room": (
        [node("n", cpu="1")],
        [cpu("four", "4"), cpu("eight", "8")],
        [(node("n", cpu="1"), node("n", cpu="5"))],
        "four",
        "four",
    ),
    "a node grows, and what its pods leave is still too little": (
        [node("n", cpu="3"), PLACED],
        [cpu("four", "4")],
        [(node("n", cpu="3"), node("n", cpu="5"))],
        "four",
        "",
    ),
    "a node gets room for more pods": (
        [node("n", pods=1), PLACED],
        [pod("second")],
        [(node("n", pods=1), node("n", pods=2))],
        "second",
        "second",
    ),
    "a taint goes from the zone that one of two pods is spread to": (
        UNEVEN,
        [SPREAD, replace(cpu("large", "8", spread=[even(WEB)], labels=WEB))],
        [(node("b", zone="b", taints=[GPU]), node("b", zone="b"))],
        "spread large",
        "spread",
    ),
    "a node that is not ready comes": (
        [node("n", zone="a"), PLACED],
        [LONER],
        [(None, node("m", zone="b", taints=[NOT_READY]))],
        "loner",
        "",
    ),
    "a node comes and then becomes ready": (
        [node("n", zone="a"), PLACED],
        [LONER],
        [(None, node("m", zone="b", taints=[NOT_READY])), (node("m", zone="b", taints=[NOT_READY]), node("m", zone="b"))],
        "loner",
        "loner",
    ),
    "a node comes without the label, which it gets later": (
        [node("n", cpu="1")],
        [cpu("four", "4", node_selector={"group": "a"})],
        [(None, group("m", "b")), (group("m", "b"), group("m", "a"))],
        "four",
        "four",
    ),
    "a cordoned node comes: the check without hints looks at taints alone": (
        [node("n", cordoned=True)],
        [pod("plain")],
        [(None, node("m", cordoned=True))],
        "",
        "plain",
    ),
    "a node comes where the host port is taken": (
        [node("n"), pod("a", host_ports=[80], on="n"), pod("b", host_ports=[80], on="m")],
        [pod("c", host_ports=[80])],
        [(None, node("m"))],
        "c",
        "",
    ),
    "a pod without host ports goes": (
        [node("n"), pod("a", host_ports=[80], on="n"), PLACED],
        [pod("c", host_ports=[80])],
        [(PLACED, None)],
        "",
        "c",
    ),
    "a pod gets an annotation": (
        [node("n", cpu="1")],
        [cpu("four", "4")],
        [(cpu("four", "4"), annotated(cpu("four", "4")))],
        "",
        "four",
    ),
    "a pod's status is written": (
        [node("n", cpu="1")],
        [cpu("four", "4")],
        [(cpu("four", "4"), told(cpu("four", "4")))],
        "",
        "",
    ),
    "a pod gets a finalizer": (
        [node("n", cpu="1")],
        [cpu("four", "4")],
        [(cpu("four", "4"), annotated(cpu("four", "4"), finalizers=("f",)))],
        "",
        "",
    ),
    "a pod loses its gates": ([node("n")], [pod("p", gates=["g"])], [(pod("p", gates=["g"]), annotated(pod("p")))], "p", "p"),
    "a placed pod comes that a pod is to be near": (
        [node("n", zone="a"), node("m", zone="b", taints=[GPU])],
        [pod("friend", affinity=near(WEB)), pod("other", affinity=near(DB))],
        [(None, PLACED)],
        "friend",
        "friend",
    ),
    "a placed pod comes that a pod of another namespace is to be near: hints do not look at namespaces' labels": (
        [node("n", zone="a"), namespace("default", team="a")],
        [
            pod(
                "friend",
                namespace="elsewhere",
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "topology.kubernetes.io/zone",
                                "labelSelector": {"matchLabels": WEB},
                                "namespaceSelector": {"matchLabels": {"team": "a"}},
                            }
                        ]
                    }
                },
            )
        ],
        [(None, PLACED)],
        "",
        "friend",
    ),
    "a placed pod is no longer one to stay away from": (
        [node("n", zone="a"), PLACED],
        [LONER],
        [(PLACED, annotated(PLACED, labels=DB))],
        "loner",
        "",
    ),
    "a placed pod comes that is not counted for spreading": (
        UNEVEN,
        [SPREAD],
        [(None, pod("x", labels=DB, on="b"))],
        "",
        "spread",
    ),
    "a placed pod of another namespace comes": (
        UNEVEN,
        [SPREAD],
        [(None, pod("x", namespace="y", labels=WEB, on="b"))],
        "",
        "",
    ),
    "a placed pod tolerates more": (
        [node("n", taints=[GPU]), PLACED],
        [pod("plain", affinity=near(WEB))],
        [(PLACED, annotated(pod("placed", labels=WEB, on="n", requests={"cpu": "3"}, tolerates=[SPOT])))],
        "",
        "",
    ),
    "a placed pod asks for less": (
        [node("n", cpu="4"), PLACED],
        [cpu("two", "2")],
        [(PLACED, annotated(pod("placed", labels=WEB, on="n", requests={"cpu": "1"})))],
        "two",
        "two",
    ),
    "a storage class comes that binds late": (
        [node("n"), CLAIM],
        [WITH_CLAIM],
        [(None, storage_class("WaitForFirstConsumer"))],
        "claiming",
        "claiming",
    ),
    "a storage class comes that binds at once": (
        [node("n"), CLAIM],
        [WITH_CLAIM],
        [(None, storage_class("Immediate"))],
        "claiming",
        "",
    ),
}


def woken(gates: str, there: list[Any], waiting: list[Pod], events: list[Event]) -> set[str]:
    """Try pods in vain, let something happen, and return who is to be tried again."""
    given = Gates.parse(gates, emulated=(1, 33))
    engine = assemble(default_configuration(given), given, Ports(clock=FakeClock(1000.0)))
    for obj in (*there, *waiting):
        engine.intake.apply(obj.kind, None, obj)
    queue = engine.queue
    for _ in range(queue.n_active):
        entry = queue.pop()
        assert entry is not None
        profile = engine.profiles[entry.view.pod.spec.scheduler_name]
        rules = Rules(FirstByName(), nominations=queue.nominations)
        decision = attempt(entry.view, engine.store.snapshot(), profile, rules).decision
        assert isinstance(decision, Unschedulable), decision
        queue.park(entry, decision.diagnosis.unschedulable_plugins, decision.diagnosis.pending_plugins)
    assert not queue.has_next
    for old, new in events:
        engine.intake.apply((new or old).kind, old, new)
    return {entry.view.name for entry in queue if queue.place_of(entry.key) in ("active", "backoff")}


@pytest.mark.parametrize("gates", ["", "SchedulerQueueingHints=false"], ids=["with hints", "without"])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_an_event_wakes_whom_the_reference_wakes(story: tuple[Any, ...], gates: str) -> None:
    there, waiting, events, with_hints, without = story
    assert woken(gates, there, waiting, events) == set((without if gates else with_hints).split())


def test_pods_of_one_template_are_checked_once() -> None:
    replicas = [cpu(f"p{i}", "4") for i in range(20)]
    assert len(woken("SchedulerQueueingHints=false", [node("n", cpu="1")], replicas, [(None, node("m", cpu="5"))])) == 20


@pytest.mark.parametrize(("gates", "names"), [("", {"four"}), ("InPlacePodVerticalScaling=false", set())])
@pytest.mark.parametrize("hints", ["true", "false"])
def test_a_placed_pod_that_asks_for_less_is_an_event_only_where_pods_can_be_resized(
    gates: str, names: set[str], hints: str
) -> None:
    smaller = annotated(pod("placed", labels=WEB, on="n", requests={"cpu": "1"}))
    switched = f"SchedulerQueueingHints={hints}" + (f",{gates}" if gates else "")
    assert woken(switched, [node("n", cpu="4"), PLACED], [cpu("four", "2")], [(PLACED, smaller)]) == names


SOMETHING_OPENS = Action.ADD | Action.NODE_LABELS | Action.NODE_TAINTS
OF_NODES = {
    "DynamicResources": SOMETHING_OPENS | Action.NODE_ALLOCATABLE,
    "InterPodAffinity": SOMETHING_OPENS,
    "NodeAffinity": SOMETHING_OPENS,
    "NodeName": SOMETHING_OPENS,
    "NodePorts": SOMETHING_OPENS,
    "NodeResourcesFit": SOMETHING_OPENS | Action.NODE_ALLOCATABLE,
    "NodeUnschedulable": SOMETHING_OPENS,
    "PodTopologySpread": SOMETHING_OPENS | Action.DELETE,
    "TaintToleration": SOMETHING_OPENS,
    "VolumeBinding": SOMETHING_OPENS,
    "VolumeRestrictions": SOMETHING_OPENS,
    "VolumeZone": SOMETHING_OPENS,
}
OF_PODS = {
    "DefaultPreemption": Action.DELETE,
    "DynamicResources": Action.POD_CLAIMS,
    "InterPodAffinity": Action.ADD | Action.POD_LABELS | Action.DELETE,
    "NodePorts": Action.DELETE,
    "NodeResourcesFit": Action.DELETE | Action.POD_SCALE_DOWN,
    "NodeVolumeLimits": Action.DELETE,
    "PodTopologySpread": Action.ADD | Action.POD_LABELS | Action.DELETE,
    "VolumeRestrictions": Action.DELETE,
}


@pytest.mark.parametrize(("resource", "expected"), [(NODE, OF_NODES), (POD, OF_PODS)])
def test_what_plugins_wait_for_without_hints(resource: str, expected: dict[str, int]) -> None:
    given = Gates.parse("SchedulerQueueingHints=false,DynamicResourceAllocation=true", emulated=(1, 33))
    engine = assemble(default_configuration(given), given, Ports(clock=FakeClock(1000.0)))
    found: dict[str, int] = {}
    options = QueueOptions(asks_hints=False, taints_announce_nodes=True)
    for registered in ProfileHints(engine.profiles["default-scheduler"], options).registered:
        assert registered.hint is None
        if registered.event.resource == resource:
            found[registered.plugin] = found.get(registered.plugin, 0) | registered.event.action
    assert found == expected
