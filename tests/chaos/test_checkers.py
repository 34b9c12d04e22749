"""What the checkers of the simulation hold against whom."""

from types import SimpleNamespace
from typing import Any

import pytest

from chaos.checkers import Checker
from chaos.world import SchedulerHost
from kubesched.kube.api import codec
from kubesched.kube.api.resource import ResourceClaim
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.records.decision_record import PLACED, DecisionRecord
from kubesched.testing import node, pod

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "pods": "110"}}}
ROOM = [
    ("who has heard of the pod there is to blame", "n1", "", ["pod default/late is bound to n1, which has no room for it"]),
    ("who has not heard of it decides on what he knows", "", "", []),
    ("who has not heard that it is bound, and has booked it elsewhere, does so too", "n2", "", []),
    ("who hears of it when he has decided, and waits in PreBind, does so too", "", "n1", []),
]


def _wire(name: str, on: str = "") -> dict[str, Any]:
    containers = [{"resources": {"requests": {"cpu": "2"}}}]
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"containers": containers, "nodeName": on}}


@pytest.mark.parametrize(("booked_on", "heard_later", "violations"), [row[1:] for row in ROOM], ids=[row[0] for row in ROOM])
def test_a_node_without_room(booked_on: str, heard_later: str, violations: list[str]) -> None:
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
    host: Any = SimpleNamespace(scheduler=SimpleNamespace(engine=SimpleNamespace(store=store)), known_beside={})
    SchedulerHost._decided(host, DecisionRecord("default/late", "uid-late", "default-scheduler", 0.0, PLACED, "n1"))
    if heard_later:
        store.put_pod(pod("first", uid="uid-first", on=heard_later))
    checker._last_binder["default/late"] = host
    checker._check_room("default/late", _wire("late"), "n1")
    assert violated == violations


DEVICE = ("device", "driver", "pool", "device-0")
GIVEN = [
    ("who has heard that another claim has the device is to blame", True, 1),
    ("who has not heard it yet gives away what is free as far as he knows", False, 0),
]


@pytest.mark.parametrize(("has_heard", "n_violations"), [row[1:] for row in GIVEN], ids=[row[0] for row in GIVEN])
def test_a_device_that_two_claims_get(has_heard: bool, n_violations: int) -> None:
    violated: list[str] = []
    store = Store()
    allocation = {"devices": {"results": [{"request": "r", "driver": "driver", "pool": "pool", "device": "device-0"}]}}
    first = {"metadata": {"name": "first", "namespace": "default", "uid": "uid-first"}, "spec": {}}
    store.objects.put(codec.convert({**first, "status": {"allocation": allocation} if has_heard else {}}, ResourceClaim))
    host = SimpleNamespace(scheduler=SimpleNamespace(engine=SimpleNamespace(store=store)))
    world = SimpleNamespace(
        history=SimpleNamespace(violated=violated.append),
        server=SimpleNamespace(),
        network=SimpleNamespace(),
        schedulers=[host],
    )
    checker = Checker(world)  # type: ignore[arg-type]
    checker._leader = lambda: ""  # type: ignore[method-assign]
    checker._check_holdings("resourceclaims.resource.k8s.io", "default/first", [DEVICE])
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/second/status"
    checker.requested(SimpleNamespace(name="scheduler-0.1"), "PUT", path, b"\r\n\r\n{}")  # type: ignore[arg-type]
    checker._check_holdings("resourceclaims.resource.k8s.io", "default/second", [DEVICE])
    assert len(violated) == n_violations
