"""Affinity, tolerations, taints and the scheduler's name, as pods and nodes of then said them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from legacy_clusters import node, pod

from kubesched.errors import ConfigError
from kubesched.kube.api import codec
from kubesched.scheduler.legacy import LegacyGates, release_of
from kubesched.scheduler.legacy.annotations import PREFIX, AnnotationReader

TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
TOGETHER = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


def read(raw: dict[str, Any], version: str, annotations: dict[str, Any], **gates: bool) -> Any:
    """Return an object with annotations as a release reads it."""
    raw["metadata"]["annotations"] = {
        PREFIX + name: value if isinstance(value, str) else json.dumps(value) for name, value in annotations.items()
    }
    release = release_of(version)
    return AnnotationReader(release, LegacyGates.of(release, gates)).read(codec.decode(raw))


def test_1_4_reads_what_is_a_field_today() -> None:
    said = {"affinity": APART, "tolerations": [{"key": "k", "operator": "Exists"}], "name": "mine"}
    seen = read(pod("p"), "1.4", said)
    assert len(seen.spec.affinity.pod_anti_affinity.required) == 1
    assert [toleration.key for toleration in seen.spec.tolerations] == ["k"]
    assert seen.spec.scheduler_name == "mine"
    tainted = read(node("n"), "1.4", {"taints": [{"key": "k", "effect": "NoSchedule"}]})
    assert [taint.key for taint in tainted.spec.taints] == ["k"]


def test_1_6_reads_affinity_alone_and_behind_its_gate() -> None:
    said = {"affinity": APART, "tolerations": [{"key": "k", "operator": "Exists"}], "name": "mine"}
    assert not AnnotationReader(release_of("1.6"), LegacyGates.of(release_of("1.6"))).reads_any
    seen = read(pod("p"), "1.6", said, AffinityInAnnotations=True)
    assert seen.spec.affinity.pod_anti_affinity is not None
    assert seen.spec.tolerations == () and seen.spec.scheduler_name != "mine"


def test_a_field_wins_over_an_annotation_of_the_same_kind() -> None:
    zone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**TERM, "topologyKey": "host"}]}}
    seen = read(pod("p", affinity=zone), "1.4", {"affinity": {**APART, **TOGETHER}})
    assert seen.spec.affinity.pod_anti_affinity.required[0].topology_key == "host"
    assert seen.spec.affinity.pod_affinity.required[0].topology_key == "zone"


BAD = [("affinity", "{"), ("affinity", "[]"), ("tolerations", '{"a": 1}'), ("tolerations", "[1]")]


@pytest.mark.parametrize(("name", "text"), BAD, ids=[f"{name} {text}" for name, text in BAD])
def test_what_cannot_be_read_is_named_and_left_out(name: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    seen = read(pod("p"), "1.4", {name: text})
    assert (seen.spec.affinity, seen.spec.tolerations) == (None, ())
    assert f"default/p: annotation {PREFIX}{name} is left out: " in caplog.text


def test_the_gate_is_1_6s_alone() -> None:
    with pytest.raises(ConfigError, match=r"legacy feature gate AffinityInAnnotations does not exist in 1\.13"):
        LegacyGates.of(release_of("1.13"), {"AffinityInAnnotations": True})
