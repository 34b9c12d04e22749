"""The expander, asked with the bytes that Cluster Autoscaler sends."""

from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("grpc")
from asking import AtOnce

from kubesched.solver import Cluster
from kubesched.solver.node_groups import NodeGroup
from kubesched.testing import node
from kubesched.tools.serve.descriptors import protocol
from kubesched.tools.serve.expander import Expander
from kubesched.tools.serve.service import Service
from kubesched.tools.serve.wire import INVALID, Refusal


def message(*fields: tuple[int, bytes]) -> bytes:
    """Return a message of protobuf, of fields with a length."""
    return b"".join(bytes([number << 3 | 2, len(value)]) + value for number, value in fields)


def amounts(number: int, **of: str) -> list[tuple[int, bytes]]:
    return [(number, message((1, name.encode()), (2, message((1, amount.encode()))))) for name, amount in of.items()]


def a_pod(name: str, cpu: str) -> bytes:
    container = message((1, b"c"), (2, b"image"), (8, message(*amounts(2, cpu=cpu, memory="1Gi"))))
    return message((1, message((1, name.encode()), (3, b"team"), (5, b"uid-" + name.encode()))), (2, message((2, container))))


def a_node(name: str, cpu: str, **labels: str) -> bytes:
    held = [(11, message((1, key.encode()), (2, value.encode()))) for key, value in labels.items()]
    return message((1, message((1, name.encode()), *held)), (3, message(*amounts(2, cpu=cpu, memory="64Gi", pods="110"))))


def group(name: str, price: float, **selector: str) -> NodeGroup:
    return NodeGroup(name=name, capacity={"cpu": 1}, price=price, selector=selector)


GROUPS = [group("small", 1.0), group("large", 3.0), group("gpu", 9.0, pool="gpu")]
PODS = [a_pod(f"p{i}", "2") for i in range(8)]
Options = list[tuple[str, bytes, int, list[bytes]]]


async def best(options: Options, groups: list[NodeGroup] = GROUPS, *, older: bool = False) -> list[Any]:
    service = AtOnce(Cluster([node("full", cpu="1")]))
    expander = Expander(cast(Service, service), groups)
    asked = protocol("expander").messages["BestOptionsRequest"]()
    for id_, template, count, pods in options:
        asked.options.add(nodeGroupId=id_, nodeCount=count, **{"pod" if older else "podBytes": pods})
        (asked.nodeMap if older else asked.nodeBytesMap)[id_] = template
    return list((await expander.best_options("autoscaler", asked, 5.0)).options)


SMALL: tuple[str, bytes] = ("small", a_node("small-template", "4"))
LARGE: tuple[str, bytes] = ("https://cloud/zones/a/large", a_node("large-template", "32"))


@pytest.mark.parametrize("older", [False, True])
async def test_the_cheapest_option_wins(older: bool) -> None:
    (option,) = await best([(*SMALL, 4, PODS), (*LARGE, 1, PODS)], older=older)
    assert option.nodeGroupId == LARGE[0] and option.nodeCount == 1
    assert option.debug == "kubesched: places 8 pods on 1 of 1 nodes, 0.375 a pod"
    (option,) = await best([(*SMALL, 1, PODS[:2]), (*LARGE, 1, PODS[:2])], older=older)
    assert option.nodeGroupId == "small"


async def test_what_does_not_really_fit_does_not_count() -> None:
    """Cluster Autoscaler believes that one small node takes all pods; it takes two."""
    (option,) = await best([(*SMALL, 1, PODS), (*LARGE, 1, PODS)])
    assert option.nodeGroupId == LARGE[0]
    tainted = ("tainted", a_node("tainted-template", "1"))
    (option,) = await best([(*tainted, 1, PODS), (*SMALL, 4, PODS)], [group("tainted", 0.01), *GROUPS])
    assert option.nodeGroupId == "small"


async def test_groups_without_a_price_come_last_and_then_fewer_nodes_win() -> None:
    unknown = ("unknown", a_node("unknown-template", "32"))
    (option,) = await best([(*unknown, 1, PODS), (*SMALL, 4, PODS)])
    assert option.nodeGroupId == "small"
    (option,) = await best([(*SMALL, 4, PODS), (*unknown, 1, PODS)], [])
    assert option.nodeGroupId == "unknown" and "no price is known" in option.debug


async def test_a_price_is_found_by_labels_and_equals_are_all_returned() -> None:
    one, two = (("mig-1", a_node("a", "32", pool="gpu")), ("mig-2", a_node("b", "32", pool="gpu")))
    found = await best([(*one, 1, PODS), (*two, 1, PODS)])
    assert [option.nodeGroupId for option in found] == ["mig-1", "mig-2"]
    assert all("1.125 a pod" in option.debug for option in found)


async def test_if_nothing_helps_all_options_stay() -> None:
    tiny = ("tiny", a_node("tiny-template", "1"))
    assert [option.nodeGroupId for option in await best([(*tiny, 3, PODS)])] == ["tiny"]
    assert await best([]) == []


BAD: list[tuple[Options, str]] = [
    ([("a", b"\xff\xff", 1, [])], "nodeBytesMap[a]: "),
    ([("small", SMALL[1], 1, [b"\x08"])], "options[0].podBytes[0]: "),
    ([("small", SMALL[1], 1_000_000, PODS)], "options[0].nodeCount: 1000000 are given, at most 10000 are taken"),
    ([("small", SMALL[1], -1, PODS)], "options[0].nodeCount: -1 is below 0"),
    ([("empty", message((1, message((1, b"x")))), 1, PODS)], "node x: status.allocatable is missing"),
]


@pytest.mark.parametrize(("options", "says"), BAD)
async def test_bad_input_is_refused(options: Options, says: str) -> None:
    with pytest.raises(Refusal) as refused:
        await best(options)
    assert refused.value.code == INVALID and str(refused.value).startswith(says)
