"""Advice as patches: the right object, the smallest change, and a command that applies it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.engine.explaining.patches import patches_of, workload_of
from kubesched.scheduler.framework.advice import Advice
from kubesched.scheduler.plugins.node_resources_fit.shortage import _asking_less
from kubesched.testing import pod

_with = msgspec.structs.replace


def owned(kind: str, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=name, uid="u", controller=True)
    found = pod("p", labels=labels or {}, **spec)
    return _with(found, metadata=_with(found.metadata, owner_references=(owner,)))


OWNERS = [
    ("a pod of nobody", pod("p"), ("Pod", "p")),
    ("of a Deployment", owned("ReplicaSet", "web-7f", labels={"pod-template-hash": "7f"}), ("Deployment", "web")),
    ("of a bare ReplicaSet", owned("ReplicaSet", "web"), ("ReplicaSet", "web")),
    ("of a StatefulSet", owned("StatefulSet", "db"), ("StatefulSet", "db")),
]


@pytest.mark.parametrize(("made", "expected"), [case[1:] for case in OWNERS], ids=[case[0] for case in OWNERS])
def test_what_a_pod_comes_from(made: Pod, expected: tuple[str, str]) -> None:
    assert workload_of(made) == expected


def test_a_demand_is_taken_out_of_the_workloads_template() -> None:
    before = owned("StatefulSet", "db", node_selector={"disk": "ssd", "zone": "a"})
    after = _with(before, spec=_with(before.spec, node_selector={"zone": "a"}))
    (patch,) = patches_of(Advice("selector", "", changed=after), before)
    assert patch["patch"] == {"spec": {"template": {"spec": {"nodeSelector": {"disk": None}}}}}
    assert patch["command"] == (
        "kubectl patch -n default statefulset db --type=merge -p "
        '\'{"spec":{"template":{"spec":{"nodeSelector":{"disk":null}}}}}\''
    )
    assert "note" not in patch


def test_the_container_that_asks_for_most_asks_for_less() -> None:
    before = owned("ReplicaSet", "web", requests={"cpu": "3", "example.com/gpu": "4"})
    (one,) = before.spec.containers
    one = _with(one, resources=_with(one.resources, limits={"example.com/gpu": "4"}))
    before = _with(before, spec=_with(before.spec, containers=(one,)))
    after = _asking_less(before, {"cpu": 500, "example.com/gpu": 1})
    assert after is not None
    (patch,) = patches_of(Advice("lower", "", changed=after), before)
    (container,) = patch["patch"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "2500m", "example.com/gpu": "3"},
        "limits": {"example.com/gpu": "3"},
    }
    assert patch["type"] == "strategic"
    assert _asking_less(before, {"cpu": 3000}) is None, "nothing would be left"


def test_a_pod_takes_tolerations_and_nothing_else() -> None:
    before = pod("p", node_selector={"disk": "ssd"})
    (patch,) = patches_of(Advice("selector", "", changed=_with(before, spec=_with(before.spec, node_selector=None))), before)
    assert patch["note"] == "a Pod cannot be changed so in place: this deletes it and makes it again"
    assert patch["command"] == (
        "kubectl get -n default pod p -o json"
        """ | kubectl patch --local -f - --type=merge -p '{"spec":{"nodeSelector":null}}' -o json"""
        " | kubectl replace --force -f -"
    )


def test_a_node_is_uncordoned() -> None:
    (patch,) = patches_of(Advice("uncordon", "", examples=("n1",)), pod("p"))
    assert patch["command"] == 'kubectl patch node n1 --type=merge -p \'{"spec":{"unschedulable":false}}\''


def test_advice_that_is_no_change_of_one_object_has_no_patch() -> None:
    assert patches_of(Advice("never", ""), pod("p")) == []
