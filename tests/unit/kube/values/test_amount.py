"""Amounts past 64 bits: what the reference's own numbers make of them."""

from __future__ import annotations

import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.requests import amounts, node_allocatable, pod_requests
from kubesched.kube.values.amount import MILLI, UNITS, Amount, wrapped

LEAST = -(1 << 63)
COUNTED = [
    ("what fits is exact", "8E", UNITS, 8 * 10**18),
    ("a power too large is nothing", "100E", UNITS, 0),
    ("in thousandths sooner", "8E", MILLI, 0),
    ("one step of multiplying loses the upper bits", "9223372036854775", MILLI, 9223372036854775000),
    ("so it does here", "123456789012345678", MILLI, wrapped(123456789012345678000)),
    ("a wide one loses them too", "9223372036854775808", UNITS, LEAST),
    ("a binary one stops at the most", "16Ei", UNITS, (1 << 63) - 1),
    ("a fraction is rounded up", "1.0000000001", UNITS, 2),
]


@pytest.mark.parametrize(("text", "unit", "expected"), [case[1:] for case in COUNTED], ids=[case[0] for case in COUNTED])
def test_counting(text: str, unit: int, expected: int) -> None:
    assert Amount.of(text).count(unit) == expected


def test_a_sum_that_does_not_fit_is_wide_from_then_on() -> None:
    total = Amount.of("100E") + Amount.of("1")
    assert total.is_wide and total.count(UNITS) == wrapped(100 * 10**18 + 1)
    assert (Amount.of("1k") + Amount.of("5")) == Amount(1005, 0)


def test_a_node_that_offers_too_much_offers_nothing() -> None:
    node = codec.convert({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "100E", "memory": "1Gi"}}}, Node)
    assert node_allocatable(node) == {"cpu": 0, "memory": 1 << 30, "ephemeral-storage": 0, "pods": 0}


def test_requests_overflow_as_the_reference_lets_them() -> None:
    containers = [{"name": name, "resources": {"requests": {"memory": "5Ei", "cpu": "1"}}} for name in "ab"]
    pod = codec.convert({"metadata": {"name": "p"}, "spec": {"containers": containers}}, Pod)
    assert amounts(pod_requests(pod)) == {"memory": wrapped(10 << 60), "cpu": 2000}
