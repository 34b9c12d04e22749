"""Zones and the order in which nodes are visited."""

from __future__ import annotations

import pytest

from kubesched.scheduler.cluster.topology import VisitOrder, zone_key

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("sentence", "labels", "key"),
    [
        ("neither region nor zone", {}, ""),
        ("a zone alone", {ZONE: "a"}, ":\x00:a"),
        ("a region alone", {REGION: "r"}, "r:\x00:"),
        ("both", {ZONE: "a", REGION: "r"}, "r:\x00:a"),
        ("the old labels win", {ZONE: "new", OLD_ZONE: "old", REGION: "r", OLD_REGION: "s"}, "s:\x00:old"),
        ("an old label wins even if it is empty", {ZONE: "new", OLD_ZONE: ""}, ""),
    ],
)
def test_a_zone_is_named_by_region_and_zone(sentence: str, labels: dict[str, str], key: str) -> None:
    assert zone_key(labels) == key, sentence


def order_of(*names: str) -> VisitOrder:
    order = VisitOrder()
    for name in names:
        order.put(name, {ZONE: name[0]})
    return order


def test_zones_take_turns() -> None:
    assert order_of("a1", "b1", "c1", "a2", "a3", "c2").names == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_node_that_changes_its_zone_goes_to_the_end_of_the_other() -> None:
    order = order_of("a1", "b1", "c1", "a2", "a3", "c2")
    order.put("b1", {ZONE: "c"})
    assert order.names == ["a1", "c1", "a2", "c2", "a3", "b1"]


def test_a_node_that_stays_in_its_zone_keeps_its_place() -> None:
    order = order_of("a1", "a2", "b1")
    order.put("a1", {ZONE: "a", "disk": "ssd"})
    assert order.names == ["a1", "b1", "a2"]


def test_a_zone_without_nodes_loses_its_place() -> None:
    order = order_of("a1", "b1")
    order.drop("a1")
    order.put("a1", {ZONE: "a"})
    assert order.names == ["b1", "a1"]
