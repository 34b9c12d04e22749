"""VolumeZone: volumes that carry a zone or region label."""

from __future__ import annotations

from typing import Any

import pytest
from volume_scene import Scene, node, pod, pv, pvc, storage_class

from kubesched.kube.values.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.plugins.volume_zone import ZONE_CONFLICT, VolumeZone, zones_in

WRONG = [ZONE_CONFLICT.text]


def labelled(**labels: str) -> dict[str, str]:
    names = {"zone": ZONE, "region": REGION, "old_zone": BETA_ZONE, "old_region": BETA_REGION}
    return {names[key]: value for key, value in labels.items()}


CASES: list[tuple[str, dict[str, str], dict[str, str], bool]] = [
    ("the same zone", labelled(zone="a"), labelled(zone="a"), False),
    ("another zone", labelled(zone="a"), labelled(zone="b"), True),
    ("one of several zones", labelled(zone="a__b"), labelled(zone="b"), False),
    ("none of several zones", labelled(zone="a__b"), labelled(zone="c"), True),
    ("blanks around zones do not count", labelled(zone=" a __ b "), labelled(zone="b"), False),
    ("a node without any such label is not judged", labelled(zone="a"), {}, False),
    ("an old volume on a new node", labelled(old_zone="a"), labelled(zone="a"), False),
    ("an old volume on a new node elsewhere", labelled(old_zone="a"), labelled(zone="b"), True),
    (
        "an old volume on a node with both labels: its own key decides",
        labelled(old_zone="a"),
        labelled(zone="a", old_zone="b"),
        True,
    ),
    ("a new volume on an old node", labelled(zone="a"), labelled(old_zone="a"), True),
    ("zone and region", labelled(zone="a", region="r"), labelled(zone="a", region="r"), False),
    ("a node without the region", labelled(zone="a", region="r"), labelled(zone="a"), True),
    ("the wrong region", labelled(zone="a", region="r"), labelled(zone="a", region="s"), True),
]


@pytest.mark.parametrize(("volume", "place", "refused"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_labels(volume: dict[str, str], place: dict[str, str], refused: bool) -> None:
    scene = Scene(VolumeZone, node("n1", **place), node("n2"), pv("v", claim="c", labels=volume), pvc("c", volume="v"))
    assert scene.ask(pod("p", "c")) == ({"n1": WRONG} if refused else {})


def test_a_label_with_an_empty_part_is_ignored() -> None:
    assert zones_in("a__") == frozenset()
    scene = Scene(VolumeZone, node("n1", zone="b"), pv("v", claim="c", labels=labelled(zone="a__")), pvc("c", volume="v"))
    assert scene.ask(pod("p", "c")) is SKIP


def test_all_volumes_must_agree() -> None:
    scene = Scene(
        VolumeZone,
        node("n1", zone="a"),
        node("n2", zone="b"),
        pv("v", claim="c", labels=labelled(zone="a")),
        pv("w", claim="d", labels=labelled(zone="a__b")),
        pvc("c", volume="v"),
        pvc("d", volume="w"),
    )
    assert scene.ask(pod("p", "c", "d")) == {"n2": WRONG}
    assert scene.ask(pod("p", "d")) == {}


BROKEN: list[tuple[str, list[Any], str, str]] = [
    ("a claim without a name", [], "", "PersistentVolumeClaim had no name"),
    ("a claim that does not exist", [], "c", 'persistentvolumeclaim "c" not found'),
    (
        "neither volume nor class",
        [pvc("c", cls=None)],
        "c",
        "PersistentVolumeClaim had no pv name and storageClass name",
    ),
    ("a class that does not exist", [pvc("c", cls="s")], "c", 'storageclass.storage.k8s.io "s" not found'),
    (
        "a class without mode",
        [pvc("c", cls="s"), storage_class("s", mode=None)],
        "c",
        'VolumeBindingMode not set for StorageClass "s"',
    ),
    (
        "unbound, of an immediate class",
        [pvc("c", cls="s"), storage_class("s", mode="Immediate")],
        "c",
        "PersistentVolume had no name",
    ),
    ("a volume that does not exist", [pvc("c", volume="v")], "c", 'persistentvolume "v" not found'),
]


@pytest.mark.parametrize(("objects", "claim", "text"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_refuses_all_nodes(objects: list[Any], claim: str, text: str) -> None:
    scene = Scene(VolumeZone, node("n1", zone="a"), *objects)
    assert scene.ask(pod("p", claim)) == ("UnschedulableAndUnresolvable", text)
    alone = scene.plugin.filter(scene.view(pod("p", claim)), scene.store.snapshot(), CycleState())
    assert scene.told(alone, scene.store.snapshot()) == {"n1": [text]}


def test_who_is_left_alone() -> None:
    scene = Scene(
        VolumeZone,
        node("n1", zone="a"),
        pvc("c", cls="s"),
        storage_class("s"),
        pv("v", claim="d"),
        pvc("d", volume="v"),
    )
    assert scene.ask(pod("p")) is SKIP
    assert scene.ask(pod("p", "c")) is SKIP
    assert scene.ask(pod("p", "d")) is SKIP
    assert scene.ask(pod("p", ephemeral=("nowhere",))) is SKIP


def test_hints() -> None:
    scene = Scene(VolumeZone)
    plugin, waiting = scene.plugin, scene.view(pod("p", "c"))
    assert isinstance(plugin, VolumeZone)
    assert plugin.class_may_help(waiting, None, storage_class("s"))
    assert not plugin.class_may_help(waiting, None, storage_class("s", mode="Immediate"))
    assert plugin.claim_may_help(waiting, None, pvc("c"))
    assert not plugin.claim_may_help(waiting, None, pvc("d"))
    assert plugin.volume_may_help(waiting, None, pv("v"))
    assert plugin.volume_may_help(waiting, pv("v", labels=labelled(zone="a")), pv("v", labels=labelled(zone="b")))
    assert not plugin.volume_may_help(
        waiting, pv("v", labels=labelled(zone="a")), pv("v", labels={**labelled(zone="a"), "x": "y"})
    )
