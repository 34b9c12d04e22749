"""Every object of the golden cases can be read, and nothing in it is lost on the way back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.matching import compile_pod_affinity, compile_required_node_affinity
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.requests import host_ports, node_allocatable, non_zero_requests, pod_requests

CASES = sorted((Path(__file__).parents[3] / "conformance").glob("*.jsonl.gz"))
FAMILIES = [path for path in CASES if not path.name.startswith("config")]


NOT_READ = ("image", "imageID", "ready", "resize")
"""Fields of a pod's status that no scheduler looks at and none of our structs holds; `overlay` leaves them alone."""


def objects_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            yield from case.get("objects", [])
            yield from case.get("pods", [])
            if isinstance(case.get("event"), dict):
                yield case["event"]["object"]


def assert_kept(before: Any, after: Any, path: str) -> None:
    """Everything but zeros and empties, which mean the same as nothing, is still there."""
    if isinstance(before, dict):
        for name, value in before.items():
            if path.startswith("Pod.status") and name in NOT_READ:
                continue
            if name in after:
                assert_kept(value, after[name], f"{path}.{name}")
            else:
                assert value in (0, False, "", [], {}, None), f"{path}.{name} was lost"
    elif isinstance(before, list):
        assert len(before) == len(after), path
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            assert_kept(old, new, f"{path}[{index}]")
    else:
        assert before == after, path


@pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.name.partition(".")[0])
def test_every_golden_object_survives_the_round_trip(family: Path) -> None:
    count = 0
    for raw in objects_of(family):
        value = codec.decode(raw)
        written = codec.encode(value)
        assert codec.decode(written) == value
        assert codec.overlay(raw, value) == raw
        assert_kept(raw, json.loads(written), raw["kind"])
        if isinstance(value, Pod):
            pod_requests(value)
            non_zero_requests(value)
            host_ports(value)
            compile_required_node_affinity(value)
            assert compile_pod_affinity(value).error is None
        elif isinstance(value, Node):
            assert node_allocatable(value)["pods"] >= 0
        count += 1
    assert count > 0


def test_the_golden_cases_are_there() -> None:
    assert len(FAMILIES) >= 13
