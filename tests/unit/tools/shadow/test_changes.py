"""Which changes matter to a decision, and to whose."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.testing import node, pod, taint
from kubesched.tools.shadow.changes import Change

PLACED = pod("p", on="n1", requests={"cpu": "1"})
RUNNING = msgspec.structs.replace(PLACED, status=msgspec.structs.replace(PLACED.status, phase="Running"))
HEARTBEAT = msgspec.structs.replace(node("n1"), status=msgspec.structs.replace(node("n1").status, conditions=()))


@pytest.mark.parametrize(
    ("old", "new", "is_of_concern"),
    [
        (PLACED, None, True),
        (None, PLACED, True),
        (PLACED, RUNNING, False),
        (PLACED, pod("p", on="n1", labels={"app": "x"}, requests={"cpu": "1"}), True),
        (PLACED, pod("p", on="n1", requests={"cpu": "1"}, deleted_at="2026-01-01T00:00:00Z"), True),
        (None, pod("waits"), False),
        (pod("waits"), None, False),
        (pod("was promised a node", nominated="n1"), None, True),
        (node("n1"), HEARTBEAT, False),
        (node("n1"), node("n1", cordoned=True), True),
        (node("n1"), node("n1", taints=[taint("gpu")]), True),
        (node("n1"), node("n1", cpu="8"), True),
        (node("n1"), None, True),
    ],
)
def test_what_matters(old: Pod | Node | None, new: Pod | Node | None, is_of_concern: bool) -> None:
    change = Change(0.0, (old or new).kind, old, new)  # type: ignore[union-attr]
    assert change.matters is change.matters_to(pod("other")) is is_of_concern


def test_claims_matter_to_pods_with_claims() -> None:
    volume = pod("v", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    device = pod("d", requests={"example.com/gpu": "1"})
    for kind, api, pods in (
        ("PersistentVolumeClaim", "v1", (True, False)),
        ("ResourceClaim", "resource.k8s.io/v1", (False, True)),
    ):
        raw: dict[str, Any] = {
            "apiVersion": api,
            "kind": kind,
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {},
        }
        change = Change(0.0, kind, None, codec.decode(raw))
        assert (change.matters_to(volume), change.matters_to(device)) == pods and not change.matters_to(pod("plain"))
