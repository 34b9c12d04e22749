"""What the intake makes of arrivals: who is told, in which order, and what becomes of pods."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from kubesched.kube.api.core import Namespace
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.node import Node, NodeCondition, NodePodPreemptionPolicy, NodeSpec, NodeStatus, Taint
from kubesched.kube.api.pod import (
    Container,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
)
from kubesched.kube.api.resource import DeviceTaintRule
from kubesched.kube.api.storage import PersistentVolumeClaim, StorageClass, VolumeAttachment
from kubesched.kube.api.workload import CoschedulingPodGroup
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.arrivals.changes import node_changes, pod_changes
from kubesched.scheduler.engine.arrivals.intake import Intake

OURS = "default-scheduler"


def pod(
    name="p",
    *,
    uid="",
    node="",
    scheduler=OURS,
    version="1",
    nominated="",
    priority=None,
    deleting=False,
    phase="",
    labels=None,
    cpu=None,
    gates=(),
    tolerations=0,
    claims=(),
    extended=None,
):
    requests = {"cpu": cpu} if cpu is not None else {}
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="team-a",
            uid=uid or f"uid-{name}",
            resource_version=version,
            labels=labels or {},
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=PodSpec(
            node_name=node,
            scheduler_name=scheduler,
            priority=priority,
            containers=(Container(name="c", resources=ResourceRequirements(requests=requests)),),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            tolerations=tuple(Toleration(key=f"k{i}", operator="Exists") for i in range(tolerations)),
        ),
        status=PodStatus(
            nominated_node_name=nominated,
            phase=phase,
            resource_claim_statuses=tuple(PodResourceClaimStatus(name=claim, resource_claim_name=claim) for claim in claims),
            extended_resource_claim_status=extended,
        ),
    )


def node(
    name="n1", *, cordoned=False, cpu="4", labels=None, taints=(), ready="True", annotations=None, features=(), heartbeat=None
):
    return Node(
        metadata=ObjectMeta(name=name, labels=labels or {}, annotations=annotations or {}),
        spec=NodeSpec(unschedulable=cordoned, taints=tuple(Taint(key=key, effect="NoSchedule") for key in taints)),
        status=NodeStatus(
            allocatable={"cpu": cpu, "pods": "10"},
            declared_features=tuple(features),
            conditions=(NodeCondition(type="Ready", status=ready, last_heartbeat_time=heartbeat),),
        ),
    )


class Told:
    """A queue that writes down what it is told, together with what the store knew at that moment."""

    def __init__(self, store: Store) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.concerns: list[object] = []
        self.store = store
        self.nominations = SimpleNamespace(verify_with=lambda known: None)

    def add(self, view):
        self.calls.append(("add", view.name))

    def update(self, old, new, events):
        self.calls.append(("update", new.name, [event.label for event in events]))

    def delete(self, view):
        self.calls.append(("delete", view.uid))

    def is_of_interest(self, event):
        return event.resource != "namespaces.v1."

    def wake(self, event, old=None, new=None, concerns=None):
        self.calls.append(("wake", event.label, getattr(old, "name", None), getattr(new, "name", None)))
        self.concerns.append(concerns)
        self.known_nodes = set(self.store.nodes.rows)
        return 0


class World:
    def __init__(self, *, gates=None, waiting=(), members=None) -> None:
        self.store = Store()
        self.told = Told(self.store)
        self.handled: list[str] = []
        self.waiting = set(waiting)
        self.intake = Intake(
            self.store,
            self.told,
            [OURS, "second"],
            gates=gates,
            members=members,
            reject_waiting=lambda uid: uid in self.waiting,
            handled=lambda label, seconds: self.handled.append(label),
        )

    def apply(self, old, new, kind="Pod"):
        """Apply a change and return what the queue was told of it."""
        self.told.calls.clear()
        self.told.concerns.clear()
        self.intake.apply(kind, old, new)
        return list(self.told.calls)

    def assume(self, given, node_name="n1"):
        return self.store.assume(self.store.view(given), node_name)


@pytest.fixture
def world():
    return World()


# Pods


def test_a_pod_with_a_node_goes_to_the_store(world):
    assert world.apply(None, pod(node="n1", scheduler="elsewhere")) == [("wake", "AssignedPodAdd", None, "p")]
    assert world.store.pod("uid-p").node_name == "n1"
    assert world.handled == ["AssignedPodAdd"]


def test_a_pod_of_ours_without_a_node_goes_to_the_queue(world):
    for scheduler in (OURS, "second"):
        assert world.apply(None, pod(scheduler=scheduler)) == [("add", "p")]
    assert world.intake.pod("team-a/p").uid == "uid-p"
    assert world.store.pod("uid-p") is None
    assert world.handled == ["UnscheduledPodAdd"] * 2


def test_a_pod_of_somebody_else_without_a_node_is_ignored_all_its_life(world):
    alien = pod(scheduler="elsewhere")
    assert world.apply(None, alien) == []
    assert world.apply(alien, pod(scheduler="elsewhere", version="2", nominated="n1")) == []
    assert world.apply(pod(scheduler="elsewhere", nominated="n1"), None) == []
    assert world.intake.pod("team-a/p") is None and world.handled == []


def test_binding_is_an_addition_to_the_store_and_a_removal_from_the_queue(world):
    world.apply(None, pod())
    assert world.apply(pod(), pod(node="n1", version="2")) == [("wake", "AssignedPodAdd", None, "p"), ("delete", "uid-p")]
    assert world.store.pod("uid-p").node_name == "n1"
    assert world.intake.pod("team-a/p") is None


def test_binding_confirms_a_booking_even_on_another_node(world):
    world.apply(None, pod())
    world.assume(pod(), "n1")
    world.apply(pod(), pod(node="n2", version="2"))
    assert world.store.pod("uid-p").node_name == "n2"
    assert not world.store.is_assumed("uid-p")


def test_an_aliens_binding_leaves_the_queue_alone(world):
    alien = pod(scheduler="elsewhere")
    assert world.apply(alien, pod(scheduler="elsewhere", node="n1", version="2")) == [("wake", "AssignedPodAdd", None, "p")]


def test_an_update_of_a_placed_pod_wakes_with_what_changed(world):
    before = pod(node="n1", cpu="2", labels={"a": "b"})
    world.apply(None, before)
    after = pod(node="n1", cpu="1", labels={"a": "c"}, version="2")
    assert world.apply(before, after) == [
        ("wake", "AssignedPodUpdatePodLabel", "p", "p"),
        ("wake", "AssignedPodUpdatePodScaleDown", "p", "p"),
    ]
    assert world.store.pod("uid-p").labels == {"a": "c"}
    assert set(world.handled[1:]) == {"AssignedPodUpdate", "AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"}


def test_a_heartbeat_of_a_placed_pod_is_a_general_update(world):
    before = pod(node="n1")
    world.apply(None, before)
    assert world.apply(before, pod(node="n1", version="2")) == [("wake", "AssignedPodUpdate", "p", "p")]
    assert world.handled == ["AssignedPodAdd", "AssignedPodUpdate"]


def test_an_update_of_a_pending_pod_goes_to_the_queue(world):
    world.apply(None, pod())
    assert world.apply(pod(), pod(version="2", labels={"a": "b"})) == [("update", "p", ["TargetPodUpdatePodLabel"])]
    assert world.intake.pod("team-a/p").labels == {"a": "b"}


def test_the_same_version_again_is_nothing(world):
    world.apply(None, pod())
    assert world.apply(pod(), pod()) == []


def test_an_update_of_a_booked_pod_is_remembered_and_nothing_else(world):
    world.apply(None, pod())
    world.assume(pod())
    assert world.apply(pod(), pod(version="2", labels={"a": "b"}, nominated="n1")) == []
    assert world.intake.pod("team-a/p").labels == {"a": "b"}
    assert world.store.pod("uid-p").labels == {}


@pytest.mark.parametrize("waits", [True, False], ids=["waiting for a permit", "being bound"])
@pytest.mark.parametrize("how", ["marked for deletion", "deleted"])
def test_a_booked_pod_that_goes_frees_its_place_at_once(waits, how):
    world = World(waiting=["uid-p"] if waits else [])
    world.apply(None, pod())
    world.assume(pod())
    if how == "deleted":
        assert world.apply(pod(), None) == [("delete", "uid-p"), ("wake", "AssignedPodDelete", "p", None)]
    else:
        assert world.apply(pod(), pod(version="2", deleting=True)) == [("wake", "AssignedPodDelete", "p", None)]
        if waits:
            assert world.apply(pod(version="2", deleting=True), pod(version="3", deleting=True)) == []
    # The one that waits is refused instead, and gives its place back on its way out.
    assert world.store.is_assumed("uid-p") is waits


def test_a_booked_pod_added_again_is_not_queued_a_second_time(world):
    world.assume(pod())
    assert world.apply(None, pod()) == []


def test_a_placed_pod_that_goes_leaves_the_store(world):
    world.apply(None, pod(node="n1"))
    assert world.apply(pod(node="n1"), None) == [("wake", "AssignedPodDelete", "p", None)]
    assert world.store.pod("uid-p") is None


def test_a_pod_that_ends_is_gone(world):
    world.apply(None, pod(node="n1"))
    assert world.apply(pod(node="n1"), pod(node="n1", version="2", phase="Succeeded")) == [
        ("wake", "AssignedPodDelete", "p", None)
    ]
    assert world.apply(pod(node="n1", phase="Failed"), None) == []
    assert world.apply(None, pod(phase="Failed")) == []


def test_a_placed_pod_nobody_knew_still_wakes_when_it_goes(world, caplog):
    assert world.apply(pod(node="n1"), None) == [("wake", "AssignedPodDelete", "p", None)]
    assert "team-a/p" in caplog.text


def test_a_nominated_pod_that_goes_wakes_pods_of_no_higher_priority(world):
    world.apply(None, pod(nominated="n1", priority=5))
    assert world.apply(pod(nominated="n1", priority=5), None) == [("delete", "uid-p"), ("wake", "AssignedPodDelete", "p", None)]
    (concerns,) = world.told.concerns
    assert [concerns(world.store.view(pod(priority=priority))) for priority in (None, 5, 6)] == [True, True, False]


@pytest.mark.parametrize(
    ("before", "after", "wakes"), [("n1", "", True), ("n1", "n2", True), ("", "n1", False), ("n1", "n1", False)]
)
def test_a_nomination_that_moves_counts_as_a_pod_that_went(world, before, after, wakes):
    world.apply(None, pod(nominated=before))
    told = world.apply(pod(nominated=before), pod(nominated=after, version="2"))
    assert told == [("update", "p", ["TargetPodUpdate"])] + ([("wake", "AssignedPodDelete", "p", None)] if wakes else [])


@pytest.mark.parametrize("placed", [True, False])
def test_another_uid_is_another_pod(world, placed):
    before = pod(node="n1" if placed else "")
    world.apply(None, before)
    told = world.apply(before, pod(uid="other", version="2"))
    assert told == [("wake", "AssignedPodDelete", "p", None) if placed else ("delete", "uid-p"), ("add", "p")]
    assert world.intake.pod("team-a/p").uid == "other"
    assert world.store.pod("uid-p") is None


def test_a_new_pod_wakes_others_where_gangs_are_scheduled():
    usual = Gates.defaults()
    gates = SimpleNamespace(
        is_enabled=lambda gate: gate == "GangScheduling" or usual.is_enabled(gate), behaviour=usual.behaviour
    )
    world = World(gates=gates)
    assert world.apply(None, pod()) == [("add", "p"), ("wake", "UnscheduledPodAdd", None, "p")]


def test_members_of_groups_are_counted_before_anybody_is_woken():
    told = []
    members = SimpleNamespace(
        put=lambda view: told.append(("put", view.name, len(world.told.calls))),
        drop=lambda view: told.append(("drop", view.name)),
        key_of=lambda view: None,
    )
    world = World(members=members)
    world.apply(None, pod("a"))
    world.apply(pod("a"), pod("a", node="n1", version="2"))
    world.apply(pod("a", node="n1"), pod("a", node="n1", version="3"))
    world.apply(pod("a", node="n1"), None)
    world.apply(None, pod("b"))
    world.apply(pod("b"), None)
    assert told == [("put", "a", 0), ("put", "a", 0), ("put", "a", 0), ("drop", "a"), ("put", "b", 0), ("drop", "b")]


def test_a_pod_that_cannot_be_read_is_left_out_with_one_line(world, caplog):
    assert world.apply(None, pod(cpu="lots")) == []
    assert "team-a/p" in caplog.text and "lots" in caplog.text
    assert world.intake.pod("team-a/p") is None
    assert world.apply(None, pod("good")) == [("add", "good")]


# What changed about a pod

BASE = {"cpu": "2", "gates": ("g1", "g2"), "tolerations": 1, "claims": ("c",)}

POD_CHANGES = [
    ("nothing", {}, ["Update"]),
    ("labels", {"labels": {"a": "b"}}, ["UpdatePodLabel"]),
    ("a smaller request", {"cpu": "1500m"}, ["UpdatePodScaleDown"]),
    ("no request any more", {"cpu": None}, ["UpdatePodScaleDown"]),
    ("the same request in other words", {"cpu": "2000m"}, ["Update"]),
    ("a larger request", {"cpu": "3"}, ["UpdatePodScaleUp"]),
    ("some gates gone", {"gates": ("g1",)}, ["Update"]),
    ("all gates gone", {"gates": ()}, ["UpdatePodSchedulingGatesEliminated"]),
    ("one more toleration", {"tolerations": 2}, ["UpdatePodToleration"]),
    ("another claim", {"claims": ("d",)}, ["UpdatePodGeneratedResourceClaim"]),
    (
        "a claim for extended resources",
        {"extended": PodExtendedResourceClaimStatus(resource_claim_name="x")},
        ["UpdatePodGeneratedResourceClaim"],
    ),
    (
        "everything",
        {"labels": {"a": "b"}, "cpu": "1", "gates": (), "tolerations": 3, "claims": ()},
        [
            "UpdatePodLabel",
            "UpdatePodScaleDown",
            "UpdatePodSchedulingGatesEliminated",
            "UpdatePodToleration",
            "UpdatePodGeneratedResourceClaim",
        ],
    ),
]


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize(("changed", "labels"), [case[1:] for case in POD_CHANGES], ids=[case[0] for case in POD_CHANGES])
def test_pod_changes(placed, changed, labels):
    store = Store()
    where = {"node": "n1" if placed else ""}
    old, new = store.view(pod(**BASE, **where)), store.view(pod(**{**BASE, **where, **changed}))
    prefix = "AssignedPod" if placed else "TargetPod"
    assert [event.label for event in pod_changes(old, new)] == [prefix + label for label in labels]


# Nodes

NODE_CHANGES = [
    ("a heartbeat", {"heartbeat": "2026-01-01T00:00:00Z"}, []),
    ("closed", {"cordoned": True}, []),
    ("allocatable", {"cpu": "8"}, ["UpdateNodeAllocatable"]),
    ("allocatable in other words", {"cpu": "4000m"}, []),
    ("labels", {"labels": {"a": "b"}}, ["UpdateNodeLabel"]),
    ("taints", {"taints": ["t"]}, ["UpdateNodeTaint"]),
    ("a condition", {"ready": "False"}, ["UpdateNodeCondition"]),
    ("annotations", {"annotations": {"a": "b"}}, ["UpdateNodeAnnotation"]),
    ("features", {"features": ["f"]}, ["UpdateNodeDeclaredFeature"]),
    (
        "everything",
        {"cpu": "8", "labels": {"a": "b"}, "taints": ["t"], "ready": "False", "annotations": {"a": "b"}, "features": ["f"]},
        [
            "UpdateNodeAllocatable",
            "UpdateNodeLabel",
            "UpdateNodeTaint",
            "UpdateNodeCondition",
            "UpdateNodeAnnotation",
            "UpdateNodeDeclaredFeature",
        ],
    ),
]


@pytest.mark.parametrize(("changed", "labels"), [case[1:] for case in NODE_CHANGES], ids=[case[0] for case in NODE_CHANGES])
def test_node_changes(world, changed, labels):
    world.apply(None, node(), "Node")
    told = world.apply(node(), node(**changed), "Node")
    assert told == [("wake", "Node" + label, "n1", "n1") for label in labels]
    assert world.handled == ["NodeAdd"] + ["Node" + label for label in labels]


def test_opening_a_node_comes_first_and_counts_as_a_change_of_taints():
    found = node_changes(node(cordoned=True), node(cpu="8", taints=["t"]))
    assert [event.label for event in found] == ["NodeUpdateNodeTaint", "NodeUpdateNodeAllocatable", "NodeUpdateNodeTaint"]


def test_a_policy_about_evictions_is_a_change():
    closed = node()
    policy = NodePodPreemptionPolicy(disable_resize_preemption=("autoscaler",))
    closed = msgspec.structs.replace(closed, spec=msgspec.structs.replace(closed.spec, pod_preemption_policy=policy))
    assert [event.label for event in node_changes(node(), closed)] == ["NodeUpdateNodePreemptionPolicy"]


@pytest.mark.parametrize(("release", "label"), [((1, 36), "Update"), ((1, 37), "UpdatePodScaleUp")])
def test_a_pod_that_asks_for_more_is_an_event_of_its_own_since_1_37(release, label):
    world = World(gates=Gates.defaults(emulated=release))
    world.apply(None, pod(node="n1", cpu="1"))
    told = world.apply(pod(node="n1", cpu="1"), pod(node="n1", cpu="2", version="2"))
    assert [call[1] for call in told] == [f"AssignedPod{label}"]


@pytest.mark.parametrize(("release", "says"), [((1, 36), "UnschedulablePod"), ((1, 37), "UnscheduledPod")])
def test_what_metrics_call_pods_without_a_node(release, says):
    world = World(gates=Gates.defaults(emulated=release))
    world.apply(None, pod())
    told = world.apply(pod(), pod(version="2", labels={"a": "b"}))
    world.apply(pod(version="2", labels={"a": "b"}), None)
    assert told == [("update", "p", [f"{'TargetPod' if release == (1, 37) else says}UpdatePodLabel"])]
    assert world.handled == [f"{says}{what}" for what in ("Add", "Update", "UpdatePodLabel", "Delete")]


def test_features_count_only_where_they_are_switched_on():
    assert node_changes(node(), node(features=["f"]), with_features=False) == []


def test_a_node_that_comes_is_there_before_anybody_is_woken_and_one_that_goes_is_still_there(world):
    assert world.apply(None, node(), "Node") == [("wake", "NodeAdd", None, "n1")]
    assert world.told.known_nodes == {"n1"}
    assert world.apply(node(), None, "Node") == [("wake", "NodeDelete", "n1", None)]
    assert world.told.known_nodes == {"n1"} and world.store.node("n1") is None


def test_a_node_added_again_is_compared_with_the_one_we_know(world):
    world.apply(None, node(), "Node")
    assert world.apply(None, node(cpu="8"), "Node") == [("wake", "NodeUpdateNodeAllocatable", "n1", "n1")]


def test_an_unknown_node_that_goes_is_one_line(world, caplog):
    assert world.apply(node("ghost"), None, "Node") == [("wake", "NodeDelete", "ghost", None)]
    assert "ghost" in caplog.text


# Everything else

KINDS = [
    (StorageClass, "storage.k8s.io/StorageClass"),
    (VolumeAttachment, "storage.k8s.io/VolumeAttachment"),
    (PersistentVolumeClaim, "PersistentVolumeClaim"),
    (CoschedulingPodGroup, "podgroups.v1alpha1.scheduling.x-k8s.io"),
]


@pytest.mark.parametrize(("kind", "resource"), KINDS, ids=[case[1] for case in KINDS])
def test_other_objects_are_put_and_dropped_and_wake_with_the_whole_update(world, kind, resource):
    first = kind(metadata=ObjectMeta(name="o", namespace="team-a", resource_version="1"))
    second = msgspec.structs.replace(first, metadata=ObjectMeta(name="o", namespace="team-a", resource_version="2"))
    assert world.apply(None, first, first.kind) == [("wake", f"{resource}Add", None, "o")]
    assert world.apply(first, second, first.kind) == [("wake", f"{resource}Update", "o", "o")]
    assert world.store.objects.get(kind, "o", "team-a") is second
    assert world.apply(second, None, first.kind) == [("wake", f"{resource}Delete", "o", None)]
    assert world.store.objects.get(kind, "o", "team-a") is None
    assert world.handled == [f"{resource}Add", f"{resource}Update", f"{resource}Delete"]


def test_events_that_nobody_waits_for_are_not_timed(world):
    world.apply(None, Namespace(metadata=ObjectMeta(name="x")), "Namespace")
    assert world.handled == []
    assert world.store.objects.get(Namespace, "x") is not None


def test_a_rule_about_device_taints_is_news_about_slices(world):
    rule = DeviceTaintRule(metadata=ObjectMeta(name="r"))
    assert ("wake", "resource.k8s.io/ResourceSliceUpdate", None, None) in world.apply(None, rule, "DeviceTaintRule")


def test_objects_that_only_a_plugin_knows_are_kept_by_the_name_of_their_resource(world):
    foo, bar = (
        SimpleNamespace(metadata=ObjectMeta(name="o", namespace="team-a"), name="o", content=what) for what in ("foo", "bar")
    )
    assert world.apply(None, foo, "foos.v1.example.com") == [("wake", "foos.v1.example.comAdd", None, "o")]
    world.apply(None, bar, "bars.v1.example.com")
    assert world.store.objects.get("foos.v1.example.com", "o", "team-a") is foo
    assert world.apply(foo, None, "foos.v1.example.com") == [("wake", "foos.v1.example.comDelete", "o", None)]
    assert list(world.store.objects.all("foos.v1.example.com")) == []
    assert list(world.store.objects.all("bars.v1.example.com")) == [bar]
