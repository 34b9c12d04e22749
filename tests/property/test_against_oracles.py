"""Columns against the slow and obvious way: the same verdicts, reasons, codes, scores and texts, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from oracles.comparing import (
    Scene,
    compare_adjusting,
    compare_arriving,
    compare_attempt,
    compare_plugins,
    nominate,
)
from oracles.shrinking import shown, shrink

Raw = dict[str, Any]
Compare = Callable[[Scene, Raw], Iterator[str]]


def plugins(scene: Scene, pod: Raw) -> Iterator[str]:
    return compare_plugins(scene, pod, Random(scene.seed))


def together(scene: Scene, pod: Raw) -> Iterator[str]:
    return compare_attempt(scene, pod)


def adjusting(scene: Scene, pod: Raw) -> Iterator[str]:
    return compare_adjusting(scene, pod, Random(scene.seed))


def arriving(scene: Scene, pod: Raw) -> Iterator[str]:
    return compare_arriving(scene, pod, Random(scene.seed))


def nominated(scene: Scene, pod: Raw) -> Iterator[str]:
    return compare_attempt(scene, *nominate(scene, pod, Random(scene.seed)))


def check(compare: Compare, seeds: range) -> None:
    for seed in seeds:
        scene = Scene(seed)
        for pod in scene.pods:
            if list(compare(scene, pod)):
                fail(compare, scene, pod)


def fail(compare: Compare, scene: Scene, pod: Raw) -> None:
    """Say what differs, for the smallest part of the scene that shows it."""

    def differences(things: list[Any]) -> list[str]:
        scene.objects, scene.args, (one,) = things[:-2], things[-2], things[-1]
        return list(compare(scene, one))

    first = next(compare(scene, pod)).split(":")[0]
    small = shrink(
        [*scene.objects, scene.args, [pod]], lambda things: any(d.split(":")[0] == first for d in differences(things))
    )
    pytest.fail(
        f"seed {scene.seed}, pod {pod['metadata']['name']}:\n" + "\n".join(differences(small)) + "\n\nin\n" + shown(small),
        pytrace=False,
    )


WAYS = {
    "every plugin says what its oracle says": (plugins, 200),
    "an attempt ends as its oracle ends": (together, 200),
    "so it does beside nominated pods": (nominated, 120),
    "counters are adjusted as the oracle adjusts its own": (adjusting, 80),
    "a node with imagined pods is judged as if they were there": (arriving, 80),
}
BLOCK = 40


def blocks(times: int, first: int) -> list[Any]:
    """Return the ways with seeds, in blocks that can run beside each other."""
    found = []
    for nth, (sentence, (compare, n)) in enumerate(WAYS.items()):
        start = first + nth * 1_000_000
        found += [
            pytest.param(compare, range(at, at + BLOCK), id=f"{sentence}, {at}..")
            for at in range(start, start + n * times, BLOCK)
        ]
    return found


@pytest.mark.parametrize(("compare", "seeds"), blocks(1, 0))
def test_columns_agree_with_oracles(compare: Compare, seeds: range) -> None:
    check(compare, seeds)


@pytest.mark.nightly
@pytest.mark.parametrize(("compare", "seeds"), blocks(15, 100_000))
def test_columns_agree_with_oracles_on_many_clusters(compare: Compare, seeds: range) -> None:
    check(compare, seeds)
