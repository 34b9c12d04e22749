"""VolumeBinding's PreFilter and Filter: which nodes a pod's claims allow, and what would be done there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from volume_scene import (
    DRIVER,
    HOSTNAME,
    ZONE,
    Scene,
    capacity,
    csi_driver,
    csi_node,
    node,
    pod,
    pv,
    pvc,
    relabelled,
    storage_class,
)

from kubesched.errors import MalformedObject
from kubesched.kube.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.kube.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.storage import CSIStorageCapacity, PersistentVolume, StorageClass, VolumeNodeAffinity
from kubesched.kube.api.volumes import AwsElasticBlockStore, AzureDisk, CsiVolume, Volume
from kubesched.scheduler.config import Gates
from kubesched.scheduler.framework.cycle_state import CycleState, StateMissing
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_binding.plugin import AFFINITY, NO_SPACE, NOTHING_TO_BIND, VOLUME_MISSING

REACH, BIND, SPACE, GONE = AFFINITY.text, NOTHING_TO_BIND.text, NO_SPACE.text, VOLUME_MISSING.text
SELECTED = "volume.kubernetes.io/selected-node"
NODES = (node("n1", zone="a"), node("n2", zone="b"), node("n3"))


def stage(*objects: Any, gates: str = "") -> Scene:
    return Scene(VolumeBinding, *NODES, storage_class(), *objects, gates=gates)


def chosen(scene: Scene, wanted: Pod, node_name: str) -> tuple[dict[str, str], list[str]]:
    """Return which volume each claim would be given on a node, and for which one would be made."""
    scene.ask(wanted)
    plan = scene.state.read("VolumeBinding").plan
    row = plan.nodes.row(node_name)
    return (
        {claim.name: volume.name for claim, volume in plan.bindings_on(row)},
        [claim.name for claim in plan.provisions_on(row)],
    )


# Before any node


def test_pods_without_claims_are_left_alone() -> None:
    assert stage().ask(pod()) is SKIP


REFUSED: list[tuple[str, list[Any], Pod, str]] = [
    ("a claim that does not exist", [], pod("p", "c"), 'persistentvolumeclaim "c" not found'),
    (
        "an ephemeral claim not made yet",
        [],
        pod("p", ephemeral=("v",)),
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',
    ),
    (
        "an ephemeral claim of another pod",
        [pvc("p-v", owner="x")],
        pod("p", ephemeral=("v",)),
        "PVC default/p-v was not created for pod default/p (pod is not owner)",
    ),
    (
        "a lost claim",
        [pvc("c", volume="v", phase="Lost")],
        pod("p", "c"),
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
    ),
    ("a claim on its way out", [pvc("c", deleting=True)], pod("p", "c"), 'persistentvolumeclaim "c" is being deleted'),
    (
        "an unbound claim of an immediate class",
        [storage_class("now", mode="Immediate"), pvc("c", cls="now")],
        pod("p", "c"),
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    (
        "an unbound claim without class",
        [pvc("c", cls=None)],
        pod("p", "c"),
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    (
        "an unbound claim of a class that does not exist",
        [pvc("c", cls="x")],
        pod("p", "c"),
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    (
        "a claim that its owner gave a volume, not yet bound",
        [pvc("c", volume="v", bound=False)],
        pod("p", "c"),
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    (
        "the first problem wins",
        [pvc("c", deleting=True), pvc("d", cls=None)],
        pod("p", "d", "c"),
        'persistentvolumeclaim "c" is being deleted',
    ),
]


@pytest.mark.parametrize(("objects", "wanted", "text"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_refuses_all_nodes(objects: list[Any], wanted: Pod, text: str) -> None:
    assert stage(*objects).ask(wanted) == ("UnschedulableAndUnresolvable", text)


def test_the_old_annotation_names_the_class_even_when_empty() -> None:
    old = {"volume.beta.kubernetes.io/storage-class": ""}
    assert stage(pvc("c", annotations=old)).ask(pod("p", "c"))[0] == "UnschedulableAndUnresolvable"
    assert stage(pvc("c", cls="x", annotations={next(iter(old)): "wait"})).ask(pod("p", "c")) == {
        name: [BIND] for name in ("n1", "n2", "n3")
    }


def test_a_class_without_mode_is_an_error() -> None:
    found = stage(storage_class("odd", mode=None), pvc("c", cls="odd")).ask(pod("p", "c"))
    assert found == ("Error", 'VolumeBindingMode not set for StorageClass "odd"')


def test_filter_without_prefilter_is_an_error() -> None:
    scene = stage()
    with pytest.raises(StateMissing, match="VolumeBinding"):
        scene.plugin.filter(scene.view(pod("p", "c")), scene.store.snapshot(), CycleState())


# Bound claims


def test_bound_volumes_tie_the_pod_to_the_nodes_they_reach() -> None:
    scene = stage(pv("v", zones=("a",), claim="c"), pvc("c", volume="v"), pv("w", claim="d"), pvc("d", volume="w"))
    assert scene.ask(pod("p", "c")) == {"n2": [REACH], "n3": [REACH]}
    assert scene.ask(pod("p", "d")) == {}
    assert scene.ask(pod("p", "c", "d"), scene.store.snapshot().take([2, 0])) == {"n3": [REACH]}


def test_an_ephemeral_claim_that_is_bound() -> None:
    scene = stage(pv("v", on=("n2",), claim="p-v"), pvc("p-v", volume="v", owner="p"))
    assert scene.ask(pod("p", ephemeral=("v",))) == {"n1": [REACH], "n3": [REACH]}


def test_changed_labels_are_followed() -> None:
    scene = stage(pv("v", zones=("a",), claim="c"), pvc("c", volume="v"))
    scene.ask(pod("p", "c"))
    scene.put(relabelled(NODES[2], **{ZONE: "a"}))
    assert scene.ask(pod("p", "c")) == {"n2": [REACH]}
    scene.put(node("n4", zone="a"), node("n5", zone="c"))
    assert scene.ask(pod("p", "c")) == {"n2": [REACH], "n5": [REACH]}


def affinity(*terms: NodeSelectorTerm) -> VolumeNodeAffinity:
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


AFFINITIES: list[tuple[str, VolumeNodeAffinity | None, set[str]]] = [
    ("none at all", None, {"n1", "n2", "n3"}),
    ("nothing required", VolumeNodeAffinity(), {"n1", "n2", "n3"}),
    ("no terms match nothing", affinity(), set()),
    ("an empty term matches nothing", affinity(NodeSelectorTerm()), set()),
    ("terms are alternatives", affinity(term(ZONE, "In", "a"), term(HOSTNAME, "In", "n3")), {"n1", "n3"}),
    (
        "expressions are all needed",
        affinity(
            NodeSelectorTerm(
                match_expressions=(
                    *term(ZONE, "In", "a", "b").match_expressions,
                    *term(HOSTNAME, "NotIn", "n1").match_expressions,
                )
            )
        ),
        {"n2"},
    ),
    ("a broken term matches nothing, the others may", affinity(term(ZONE, "In"), term(ZONE, "Exists")), {"n1", "n2"}),
    ("an absent label is not in", affinity(term(ZONE, "NotIn", "a")), {"n2", "n3"}),
    ("values nobody has", affinity(term("rack", "In", "r1")), set()),
]


@pytest.mark.parametrize(("wanted", "fits"), [case[1:] for case in AFFINITIES], ids=[case[0] for case in AFFINITIES])
def test_node_affinity_of_volumes(wanted: VolumeNodeAffinity | None, fits: set[str]) -> None:
    scene = stage(pv("v", claim="c", node_affinity=wanted), pvc("c", volume="v"))
    assert {"n1", "n2", "n3"} - scene.ask(pod("p", "c")).keys() == fits


def test_a_bound_volume_that_does_not_exist() -> None:
    scene = stage(pvc("c", volume="gone"), pv("v", on=("n1",), claim="d"), pvc("d", volume="v"))
    assert scene.ask(pod("p", "c")) == {name: [GONE] for name in ("n1", "n2", "n3")}
    # Each node is left at its first misfit, in the order of the pod's volumes.
    assert scene.ask(pod("p", "d", "c")) == {"n1": [GONE], "n2": [REACH], "n3": [REACH]}
    assert scene.ask(pod("p", "c", "d")) == {name: [GONE] for name in ("n1", "n2", "n3")}


def test_migrated_volumes_are_judged_by_their_drivers_labels() -> None:
    disk = AwsElasticBlockStore(volume_id="vol-1")
    moved = node("n4", **{"topology.ebs.csi.aws.com/zone": "a"})
    scene = stage(pv("v", zones=("a",), claim="c", aws_elastic_block_store=disk), pvc("c", volume="v"), moved)
    assert scene.ask(pod("p", "c")) == {"n2": [REACH], "n3": [REACH], "n4": [REACH]}
    scene.put(
        csi_node("n1", migrated="kubernetes.io/aws-ebs"),
        csi_node("n4", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs"),
    )
    assert scene.ask(pod("p", "c")) == {"n1": [REACH], "n2": [REACH], "n3": [REACH]}


def test_a_volume_without_csi_form_is_an_error_where_it_is_migrated() -> None:
    scene = stage(
        pv("v", claim="c", azure_disk=AzureDisk(kind="Dedicated")),
        pvc("c", volume="v"),
        csi_node("n2", migrated="kubernetes.io/azure-disk"),
    )
    assert scene.ask(pod("p", "c")) == {
        "n2": "Error: could not translate pv: kind(Dedicated) is not supported in csi migration"
    }
    assert scene.meter.volume_errors == ["predicate"]
    assert scene.ask(pod("p", "c"), scene.store.snapshot().take([0])) == {}
    assert scene.meter.volume_errors == ["predicate"]


# Claims that are bound when their pod is placed


def test_the_smallest_volume_that_suits_is_chosen_on_each_node() -> None:
    scene = stage(
        pvc("c", "2Gi"), pv("small", "1Gi", on=("n1",)), pv("big", "9Gi", on=("n1", "n2")), pv("fit", "2Gi", on=("n1",))
    )
    assert scene.ask(pod("p", "c")) == {"n3": [BIND]}
    assert chosen(scene, pod("p", "c"), "n1") == ({"c": "fit"}, [])
    assert chosen(scene, pod("p", "c"), "n2") == ({"c": "big"}, [])


def test_small_claims_choose_first_and_no_volume_is_chosen_twice() -> None:
    scene = stage(pvc("c1", "5Gi"), pvc("c2", "1Gi"), pv("a", "1Gi", on=("n1",)), pv("b", "5Gi", on=("n1",)))
    assert chosen(scene, pod("p", "c1", "c2"), "n1") == ({"c1": "b", "c2": "a"}, [])
    scene = stage(
        pvc("c1"),
        pvc("c2"),
        pvc("c3"),
        *(pv(f"v{i}", f"{i}Gi", zones=("a", "b")) for i in (1, 2, 3)),
        pv("own", "2Gi", on=("n2",)),
    )
    assert scene.ask(pod("p", "c1", "c2", "c3")) == {"n3": [BIND]}
    assert sorted(chosen(scene, pod("p", "c1", "c2", "c3"), "n1")[0].values()) == ["v1", "v2", "v3"]
    on_n2 = chosen(scene, pod("p", "c1", "c2", "c3"), "n2")[0]
    assert len(set(on_n2.values())) == 3 and "v1" in on_n2.values() and "v3" not in on_n2.values()


SUITS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("as big as wanted", {"size": "1Gi"}, {"size": "1024Mi"}, True),
    ("a byte too small", {"size": "1Gi"}, {"size": "1073741823"}, False),
    ("access modes are a subset", {"modes": ("ReadWriteOnce",)}, {"modes": ("ReadOnlyMany", "ReadWriteOnce")}, True),
    ("an access mode is missing", {"modes": ("ReadWriteMany",)}, {}, False),
    ("no mode is Filesystem", {"volume_mode": "Filesystem"}, {}, True),
    ("Block is not Filesystem", {"volume_mode": "Block"}, {}, False),
    ("the same attributes class", {"volume_attributes_class_name": "g"}, {"volume_attributes_class_name": "g"}, True),
    ("no attributes class is the empty one", {"volume_attributes_class_name": ""}, {}, True),
    ("another attributes class", {"volume_attributes_class_name": "g"}, {}, False),
    ("another storage class", {}, {"cls": "other"}, False),
    (
        "the old annotation is the volume's class",
        {},
        {"cls": "other", "annotations": {"volume.beta.kubernetes.io/storage-class": "wait"}},
        True,
    ),
    ("a volume in use", {}, {"claim": "x"}, False),
    ("a volume on its way out", {}, {"deleting": True}, False),
    ("a volume that is not available yet", {}, {"phase": "Pending"}, False),
    ("a selector that matches", {"selector": LabelSelector(match_labels={"k": "v"})}, {"labels": {"k": "v"}}, True),
    ("a selector that does not", {"selector": LabelSelector(match_labels={"k": "v"})}, {"labels": {"k": "w"}}, False),
    ("an empty selector is everything", {"selector": LabelSelector()}, {}, True),
]


@pytest.mark.parametrize(("claim", "volume", "suits"), [case[1:] for case in SUITS], ids=[case[0] for case in SUITS])
def test_what_suits_a_claim(claim: dict[str, Any], volume: dict[str, Any], suits: bool) -> None:
    scene = stage(pvc("c", **claim), pv("v", **volume))
    assert scene.ask(pod("p", "c")) == ({} if suits else {name: [BIND] for name in ("n1", "n2", "n3")})


def test_a_broken_selector_is_an_error() -> None:
    broken = LabelSelector(match_expressions=(LabelSelectorRequirement(key="k", operator="Near", values=("v",)),))
    found = stage(pvc("c", selector=broken), pv("v")).ask(pod("p", "c"))
    assert found["n1"] == (
        'Error: error creating internal label selector for claim: default/c: "Near" is not a valid label selector operator'
    )


def test_a_class_of_attributes_is_an_error_where_its_gate_is_off() -> None:
    """Only who emulates an older release can switch it off."""
    claim = pvc("c", volume_attributes_class_name="gold")
    scene = stage(claim)
    scene.plugin = VolumeBinding(None, replace(scene.handle, gates=Gates.defaults((1, 33))))
    answer = scene.ask(pod("p", "c"))
    text = (
        "unsupported volumeAttributesClassName is set on claim default/c when the feature-gate VolumeAttributesClass is "
        "disabled"
    )
    assert set(answer.values()) == {f"Error: {text}"}


def test_a_volume_meant_for_the_claim_ends_the_search() -> None:
    scene = stage(pvc("c"), pv("meant", "5Gi", on=("n2",), claim="c", modes=()), pv("open", "1Gi"))
    assert scene.ask(pod("p", "c")) == {"n1": [BIND], "n3": [BIND]}
    assert chosen(scene, pod("p", "c"), "n2") == ({"c": "meant"}, [])
    for wrong in (
        pv("meant", "5Gi", on=("n2",), claim="c", claim_uid="another", version="2"),
        pv("meant", "1Ki", on=("n2",), claim="c", version="3"),
        pv("meant", "5Gi", on=("n2",), claim="elsewhere/c", version="4"),
    ):
        scene.put(wrong)
        assert chosen(scene, pod("p", "c"), "n2") == ({"c": "open"}, [])


def test_a_claim_named_twice_is_given_its_own_volume_once() -> None:
    scene = stage(pvc("c"), pv("meant", on=("n1",), claim="c"), pv("open", on=("n1",)))
    assert scene.ask(pod("p", "c", "c")) == {"n2": [BIND], "n3": [BIND]}
    scene.state.read("VolumeBinding")
    plan = scene.state.read("VolumeBinding").plan
    assert sorted(volume.name for _, volume in plan.bindings_on(0)) == ["meant", "open"]


def test_volumes_that_come_go_and_change_are_followed() -> None:
    scene = stage(pvc("c", "2Gi"))
    everywhere = {name: [BIND] for name in ("n1", "n2", "n3")}
    assert scene.ask(pod("p", "c")) == everywhere
    scene.put(pv("v", "2Gi", on=("n1",)))
    assert scene.ask(pod("p", "c")).keys() == {"n2", "n3"}
    scene.put(pv("v", "2Gi", on=("n1",), claim="x", version="2"))
    assert scene.ask(pod("p", "c")) == everywhere
    scene.put(pv("v", "2Gi", on=("n1",), version="3"))
    assert scene.ask(pod("p", "c")).keys() == {"n2", "n3"}
    scene.put(pv("v", "2Gi", on=("n2",), version="4"))
    assert scene.ask(pod("p", "c")).keys() == {"n1", "n3"}
    scene.put(pv("v", "1Gi", on=("n2",), version="5"))
    assert scene.ask(pod("p", "c")) == everywhere
    scene.put(pv("v", "3Gi", on=("n2",), cls="other", version="6"))
    assert scene.ask(pod("p", "c")) == everywhere
    scene.put(pv("v", "3Gi", version="7"))
    assert scene.ask(pod("p", "c")) == {}
    scene.store.objects.drop(PersistentVolume, "v")
    assert scene.ask(pod("p", "c")) == everywhere


# Volumes that are made


def made(*objects: Any, topologies: tuple[dict[str, tuple[str, ...]], ...] = ()) -> Scene:
    return Scene(VolumeBinding, *NODES, storage_class(provisioner=DRIVER, topologies=topologies), *objects)


def test_what_is_not_there_is_made_if_somebody_can() -> None:
    scene = made(pvc("c1", "1Gi"), pvc("c2", "5Gi"), pv("a", "5Gi", on=("n1",)))
    assert scene.ask(pod("p", "c1", "c2")) == {}
    assert chosen(scene, pod("p", "c1", "c2"), "n1") == ({"c1": "a"}, ["c2"])
    assert chosen(scene, pod("p", "c1", "c2"), "n2") == ({}, ["c1", "c2"])
    scene.put(storage_class())
    assert scene.ask(pod("p", "c1", "c2")) == {name: [BIND] for name in ("n1", "n2", "n3")}
    scene.put(storage_class(provisioner=""))
    assert scene.ask(pod("p", "c1", "c2")) == {name: [BIND] for name in ("n1", "n2", "n3")}


TOPOLOGIES: list[tuple[str, tuple[dict[str, tuple[str, ...]], ...], set[str]]] = [
    ("none allows all", (), {"n1", "n2", "n3"}),
    ("one zone", ({ZONE: ("a",)},), {"n1"}),
    ("terms are alternatives", ({ZONE: ("a",)}, {HOSTNAME: ("n3",)}), {"n1", "n3"}),
    ("a term needs all its labels", ({ZONE: ("a", "b"), HOSTNAME: ("n2", "n3")},), {"n2"}),
    ("an empty term allows nothing", ({},), set()),
    ("a label without values allows nothing", ({ZONE: ()},), set()),
]


@pytest.mark.parametrize(("allowed", "fits"), [case[1:] for case in TOPOLOGIES], ids=[case[0] for case in TOPOLOGIES])
def test_allowed_topologies(allowed: tuple[dict[str, tuple[str, ...]], ...], fits: set[str]) -> None:
    found = made(pvc("c"), topologies=allowed).ask(pod("p", "c"))
    assert found == {name: [BIND] for name in {"n1", "n2", "n3"} - fits}


def test_a_selected_node_is_the_only_one() -> None:
    scene = made(pvc("c", annotations={SELECTED: "n2"}), pvc("d"), pv("v", on=("n1",)))
    assert scene.ask(pod("p", "c")) == {"n1": [BIND], "n3": [BIND]}
    assert chosen(scene, pod("p", "d", "c"), "n2") == ({}, ["c", "d"])
    scene.put(pvc("d", annotations={SELECTED: "n1"}))
    assert scene.ask(pod("p", "c", "d")) == {name: [BIND] for name in ("n1", "n2", "n3")}
    scene.put(pvc("c", annotations={SELECTED: "nowhere"}))
    assert scene.ask(pod("p", "c")) == {name: [BIND] for name in ("n1", "n2", "n3")}


CAPACITIES: list[tuple[str, list[CSIStorageCapacity], set[str]]] = [
    ("none at all", [], set()),
    ("enough in one zone", [capacity("x", "1Gi", **{ZONE: "a"})], {"n1"}),
    ("exactly enough", [capacity("x", "100Mi", **{ZONE: "a"})], {"n1"}),
    ("too little", [capacity("x", "99Mi", **{ZONE: "a"})], set()),
    ("nothing left", [capacity("x", "0", **{ZONE: "a"})], set()),
    ("it does not say", [capacity("x", None, **{ZONE: "a"})], set()),
    ("volumes may not be that large", [capacity("x", "1Gi", largest="1Mi", **{ZONE: "a"})], set()),
    ("the largest volume counts, not the rest", [capacity("x", "0", largest="1Gi", **{ZONE: "a"})], {"n1"}),
    ("for everybody", [capacity("x", "1Gi")], {"n1", "n2", "n3"}),
    ("of another class", [capacity("x", "1Gi", cls="other")], set()),
    ("one of several is enough", [capacity("x", "1Mi", **{ZONE: "a"}), capacity("y", "1Gi", **{ZONE: "a"})], {"n1"}),
]


@pytest.mark.parametrize(("found", "fits"), [case[1:] for case in CAPACITIES], ids=[case[0] for case in CAPACITIES])
def test_storage_capacity(found: list[CSIStorageCapacity], fits: set[str]) -> None:
    scene = made(pvc("c", "100Mi"), csi_driver(), *found)
    assert scene.ask(pod("p", "c")) == {name: [SPACE] for name in {"n1", "n2", "n3"} - fits}


def test_capacity_is_asked_only_of_drivers_that_keep_count() -> None:
    assert made(pvc("c")).ask(pod("p", "c")) == {}
    assert made(pvc("c"), csi_driver(capacity=None)).ask(pod("p", "c")) == {}
    assert made(pvc("c", size=""), csi_driver()).ask(pod("p", "c")) == {}


def test_capacities_that_change_are_followed() -> None:
    scene = made(pvc("c", "5Gi"), csi_driver(), capacity("x", "9Gi", **{ZONE: "a"}))
    assert scene.ask(pod("p", "c")).keys() == {"n2", "n3"}
    scene.put(capacity("x", "4Gi", **{ZONE: "a"}))
    assert scene.ask(pod("p", "c")).keys() == {"n1", "n2", "n3"}
    scene.put(capacity("x", "9Gi", **{ZONE: "b"}), capacity("y", "9Gi", **{HOSTNAME: "n3"}))
    assert scene.ask(pod("p", "c")).keys() == {"n1"}
    scene.put(capacity("y", "9Gi", cls="other", **{HOSTNAME: "n3"}))
    assert scene.ask(pod("p", "c")).keys() == {"n1", "n3"}
    scene.store.objects.drop(CSIStorageCapacity, "x", "kube-system")
    assert scene.ask(pod("p", "c")).keys() == {"n1", "n2", "n3"}


def test_an_absent_topology_reaches_nobody() -> None:
    nowhere = CSIStorageCapacity(metadata=capacity("x", "9Gi").metadata, storage_class_name="wait", capacity="9Gi")
    assert made(pvc("c"), csi_driver(), nowhere).ask(pod("p", "c")) == {name: [SPACE] for name in ("n1", "n2", "n3")}


def test_a_node_is_left_at_the_first_claim_that_cannot_be_made_there() -> None:
    only_a = storage_class("only-a", DRIVER, topologies=({ZONE: ("a",)},))
    scene = made(only_a, csi_driver(), pvc("c", "1Gi", cls="only-a"), pvc("d", "2Gi"))
    assert scene.ask(pod("p", "c")) == {"n1": [SPACE], "n2": [BIND], "n3": [BIND]}
    scene.put(capacity("x", "9Gi", cls="only-a"))
    assert scene.ask(pod("p", "c", "d")) == {"n1": [SPACE], "n2": [BIND], "n3": [BIND]}
    scene.put(pvc("d", "1Ki"))
    assert scene.ask(pod("p", "c", "d")) == {name: [SPACE] for name in ("n1", "n2", "n3")}


def test_reasons_add_up_in_their_order() -> None:
    scene = stage(pv("v", on=("n1",), claim="c"), pvc("c", volume="v"), pvc("d"))
    assert scene.ask(pod("p", "c", "d")) == {"n1": [BIND], "n2": [REACH, BIND], "n3": [REACH, BIND]}
    scene = made(pv("v", on=("n1",), claim="c"), pvc("c", volume="v"), pvc("d"), pvc("gone", volume="g"), csi_driver())
    assert scene.ask(pod("p", "c", "gone", "d")) == {"n1": [SPACE, GONE], "n2": [REACH, SPACE], "n3": [REACH, SPACE]}


def test_a_class_that_goes_away_between_the_points_is_an_error() -> None:
    scene = made(pvc("c"))
    seen, nodes, state = scene.view(pod("p", "c")), scene.store.snapshot(), CycleState()
    assert scene.plugin.pre_filter(seen, nodes, state) is None
    scene.store.objects.drop(StorageClass, "wait")
    assert scene.told(scene.plugin.filter(seen, nodes, state), nodes)["n1"] == 'Error: failed to find storage class "wait"'


def test_hints() -> None:
    scene = stage()
    plugin, waiting = scene.plugin, scene.view(pod("p", "c", ephemeral=("v",)))
    assert isinstance(plugin, VolumeBinding)
    assert plugin.class_may_help(waiting, None, storage_class())
    assert plugin.class_may_help(waiting, storage_class(), storage_class(topologies=({ZONE: ("a",)},)))
    assert not plugin.class_may_help(waiting, storage_class(), storage_class(provisioner="x"))
    assert plugin.claim_may_help(waiting, pvc("p-v"), pvc("p-v"))
    assert not plugin.claim_may_help(waiting, None, pvc("other"))
    assert plugin.csi_node_may_help(waiting, None, csi_node("n"))
    assert plugin.csi_node_may_help(waiting, csi_node("n"), csi_node("n", migrated="x"))
    assert not plugin.csi_node_may_help(waiting, csi_node("n", a=1), csi_node("n", a=2))
    assert not plugin.driver_may_help(waiting, csi_driver(), csi_driver(capacity=False))
    assert plugin.capacity_may_help(waiting, None, capacity("x", "1Gi"))
    assert plugin.capacity_may_help(waiting, capacity("x", None), capacity("x", "1Gi"))
    assert plugin.capacity_may_help(waiting, capacity("x", "1Gi"), capacity("x", "2Gi"))
    assert not plugin.capacity_may_help(waiting, capacity("x", "2Gi"), capacity("x", "1Gi"))
    assert not plugin.capacity_may_help(waiting, capacity("x", "2Gi", largest="1Gi"), capacity("x", "3Gi", largest="1Gi"))


def test_a_driver_that_stops_counting_wakes_pods_with_inline_volumes_of_it() -> None:
    scene = stage()
    plugin, waiting = scene.plugin, scene.view(pod("p", volumes=(Volume(csi=CsiVolume(driver=DRIVER)),)))
    assert isinstance(plugin, VolumeBinding)
    assert plugin.driver_may_help(waiting, csi_driver(), csi_driver(capacity=False))
    assert not plugin.driver_may_help(waiting, csi_driver(capacity=False), csi_driver())
    assert not plugin.driver_may_help(waiting, csi_driver("x"), csi_driver("x", capacity=False))


def test_a_volume_with_an_unreadable_size_is_named() -> None:
    with pytest.raises(MalformedObject, match=r"persistentvolume v: spec\.capacity\.storage: invalid value 'much'"):
        stage(pvc("c"), pv("v", "much")).ask(pod("p", "c"))
