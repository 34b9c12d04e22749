"""VolumeZone: claims and volumes that are missing, and who is not asked; the golden families `volumes` compare the verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from volume_scene import Scene, node, pod, pv, pvc, storage_class

from kubesched.kube.values.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.plugins.volume_zone import VolumeZone


def labelled(**labels: str) -> dict[str, str]:
    names = {"zone": ZONE, "region": REGION, "old_zone": BETA_ZONE, "old_region": BETA_REGION}
    return {names[key]: value for key, value in labels.items()}


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
