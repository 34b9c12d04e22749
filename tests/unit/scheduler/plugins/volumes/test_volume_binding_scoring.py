"""VolumeBinding's Score: nodes compared by the storage that they have left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from volume_scene import DRIVER, HOSTNAME, Scene, capacity, csi_driver, node, pod, pv, pvc, storage_class

from kubesched.kube.api.pod import Pod
from kubesched.scheduler.config.args import UtilizationShapePoint
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.plugins.shared.allocation import scores_of_shape
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_binding.plugin import VolumeBindingArgs

GATE = "StorageCapacityScoring"
RISING = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
NODES = tuple(node(f"n{i}") for i in (1, 2, 3))


def scores(*objects: Any, wanted: Pod, shape: tuple[UtilizationShapePoint, ...] | None = None) -> list[int]:
    scene = Scene(
        VolumeBinding,
        *NODES,
        storage_class("local"),
        storage_class("made", DRIVER),
        storage_class("also", DRIVER),
        csi_driver(),
        *objects,
        args=VolumeBindingArgs(600, shape),
        gates=GATE,
    )
    assert scene.ask(wanted) == {}
    seen, nodes = scene.view(wanted), scene.store.snapshot()
    assert scene.plugin.pre_score(seen, nodes, np.ones(nodes.n, dtype=np.bool_), scene.state) is None
    found: list[int] = scene.plugin.score(seen, nodes, scene.state).tolist()
    assert scene.plugin.score(seen, nodes.take([2, 0]), scene.state).tolist() == [found[2], found[0]]
    return found


def volumes(cls: str, *sizes: str) -> list[Any]:
    return [pv(f"{cls}-{i}", size, on=(f"n{i}",), cls=cls) for i, size in enumerate(sizes, 1)]


def capacities(cls: str, *sizes: str) -> list[Any]:
    return [capacity(f"{cls}-{i}", size, cls=cls, **{HOSTNAME: f"n{i}"}) for i, size in enumerate(sizes, 1)]


CASES: list[tuple[str, list[Any], Pod, Any, list[int]]] = [
    (
        "volumes with much left",
        [pvc("c", "10Gi", cls="local"), *volumes("local", "100Gi", "20Gi", "10Gi")],
        pod("p", "c"),
        None,
        [90, 50, 0],
    ),
    (
        "volumes with little left",
        [pvc("c", "10Gi", cls="local"), *volumes("local", "100Gi", "20Gi", "10Gi")],
        pod("p", "c"),
        RISING,
        [10, 50, 100],
    ),
    (
        "capacity",
        [pvc("c", "10Gi", cls="made"), *capacities("made", "100Gi", "20Gi", "10Gi")],
        pod("p", "c"),
        None,
        [90, 50, 0],
    ),
    (
        "two claims of one class share its capacity",
        [pvc("c", "50Gi", cls="made"), pvc("d", "50Gi", cls="made"), *capacities("made", "100Gi", "200Gi", "400Gi")],
        pod("p", "c", "d"),
        RISING,
        [100, 50, 25],
    ),
    (
        "more wanted than there is",
        [pvc("c", "80Gi", cls="made"), pvc("d", "80Gi", cls="made"), *capacities("made", "100Gi", "160Gi", "320Gi")],
        pod("p", "c", "d"),
        RISING,
        [100, 100, 50],
    ),
    (
        "where volumes are given only they count",
        [
            pvc("c", "10Gi", cls="local"),
            pvc("d", "10Gi", cls="made"),
            *volumes("local", "100Gi", "20Gi", "10Gi"),
            *capacities("made", "10Gi", "10Gi", "10Gi"),
        ],
        pod("p", "c", "d"),
        None,
        [90, 50, 0],
    ),
    (
        "classes are averaged, halves up",
        [
            pvc("c", "10Gi", cls="made"),
            pvc("d", "10Gi", cls="also"),
            *capacities("made", "20Gi", "40Gi", "10Gi"),
            *capacities("also", "20Gi", "20Gi", "10Gi"),
        ],
        pod("p", "c", "d"),
        RISING,
        [50, 38, 100],
    ),
    (
        "a volume that names the claim",
        [pvc("c", "10Gi", cls="local"), pv("meant", "40Gi", cls="local", claim="c")],
        pod("p", "c"),
        RISING,
        [25, 25, 25],
    ),
    (
        "nobody keeps count",
        [pvc("c", "10Gi", cls="free"), storage_class("free", "other.example.com")],
        pod("p", "c"),
        None,
        [0, 0, 0],
    ),
    ("bound claims score nothing", [pvc("c", "10Gi", volume="v"), pv("v", claim="c")], pod("p", "c"), None, [0, 0, 0]),
]


@pytest.mark.parametrize(("objects", "wanted", "shape", "found"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_scores(objects: list[Any], wanted: Pod, shape: Any, found: list[int]) -> None:
    assert scores(*objects, wanted=wanted, shape=shape) == found


def test_without_the_gate_nothing_is_scored() -> None:
    scene = Scene(VolumeBinding, *NODES, storage_class("local"), pvc("c", cls="local"), pv("v", cls="local"), release=(1, 36))
    assert scene.ask(pod("p", "c")) == {}
    nodes = scene.store.snapshot()
    assert scene.plugin.pre_score(scene.view(pod("p", "c")), nodes, np.ones(3, dtype=np.bool_), scene.state) is SKIP


def test_with_the_gate_pods_without_claims_score_zero() -> None:
    scene = Scene(VolumeBinding, *NODES, gates=GATE)
    assert scene.ask(pod()) is SKIP
    nodes = scene.store.snapshot()
    assert scene.plugin.pre_score(scene.view(pod()), nodes, np.ones(3, dtype=np.bool_), scene.state) is None
    assert scene.plugin.score(scene.view(pod()), nodes, scene.state).tolist() == [0, 0, 0]


LINES: list[tuple[str, tuple[tuple[int, int], ...], dict[int, int]]] = [
    ("a falling line", ((0, 10), (100, 0)), {0: 100, 33: 67, 50: 50, 100: 0}),
    (
        "flat before the first and after the last corner",
        ((50, 0), (80, 3), (90, 5)),
        {0: 0, 50: 0, 60: 10, 80: 30, 100: 50},
    ),
    ("cut toward zero where it falls", ((0, 10), (40, 3)), {33: 43}),
]


@pytest.mark.parametrize(("corners", "points"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_the_broken_line(corners: tuple[tuple[int, int], ...], points: dict[int, int]) -> None:
    line = scores_of_shape([UtilizationShapePoint(*corner) for corner in corners])
    assert {at: int(line[at]) for at in points} == points
