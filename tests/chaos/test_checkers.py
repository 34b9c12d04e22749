"""What the checkers of the simulation hold against whom."""

from types import SimpleNamespace
from typing import Any

import pytest

from chaos.checkers import Checker
from kubesched.cluster import Store
from kubesched.testing import node, pod

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "pods": "110"}}}
ROOM = [
    ("who has heard of the pod there is to blame", "n1", ["pod default/late is bound to n1, which has no room for it"]),
    ("who has not heard of it decides on what he knows", "", []),
    ("who has not heard that it is bound, and has booked it elsewhere, does so too", "n2", []),
]


def _wire(name: str, on: str = "") -> dict[str, Any]:
    containers = [{"resources": {"requests": {"cpu": "2"}}}]
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"containers": containers, "nodeName": on}}


@pytest.mark.parametrize(("booked_on", "violations"), [row[1:] for row in ROOM], ids=[row[0] for row in ROOM])
def test_a_node_without_room(booked_on: str, violations: list[str]) -> None:
    violated: list[str] = []
    store = Store()
    for name in ("n1", "n2"):
        store.put_node(node(name))
    if booked_on:
        store.assume(store.view(pod("first", uid="uid-first")), booked_on)
    tables = {"nodes": [NODE], "pods": [_wire("first", on="n1")]}
    world = SimpleNamespace(
        history=SimpleNamespace(violated=violated.append),
        server=SimpleNamespace(entries=tables.__getitem__),
        network=SimpleNamespace(),
    )
    checker = Checker(world)  # type: ignore[arg-type]
    host = SimpleNamespace(scheduler=SimpleNamespace(engine=SimpleNamespace(store=store)))
    checker._last_binder["default/late"] = host  # type: ignore[assignment]
    checker._check_room("default/late", _wire("late"), "n1")
    assert violated == violations
