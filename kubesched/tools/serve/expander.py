"""Cluster Autoscaler's external expander: of the node groups that could grow, the cheapest for the pods that it really helps.

In: options as Cluster Autoscaler sends them (`protos/expander.proto`): a node group, how many nodes, the pods it is for. Out:
the options of the lowest price for a pod that is placed. Each option is tried by the solver on the live cluster: its nodes are
added, its pods are placed, everything is undone. Cluster Autoscaler adds as many nodes as it has computed itself, so that many
are paid.

Prices are those of `--node-groups`. A group without one comes after all that have one; among those fewer nodes are better. If
no option helps any pod, all options are returned: Cluster Autoscaler's own estimate has found room that we do not see, and a
wrong "none" would stop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kubesched.embedded.schema.protobuf import MAGIC, Unreadable, decode
from kubesched.solver.node_groups import NodeGroup
from kubesched.tools.serve.descriptors import Message, protocol
from kubesched.tools.serve.service import Service
from kubesched.tools.serve.wire import INVALID, Refusal

MOST_OPTIONS = 500


class Tried(msgspec.Struct, rename="camel"):
    """What became of one option."""

    placed: int
    nodes_needed: int
    message: str = ""


class Expander:
    """Answers Cluster Autoscaler."""

    def __init__(self, service: Service, groups: Sequence[NodeGroup] = ()) -> None:
        self._service, self._groups = service, groups
        self._messages = protocol("expander").messages

    async def best_options(self, caller: str, asked: Message, seconds: float | None) -> Message:
        """Return the best of the options; raise Refusal."""
        if len(asked.options) > MOST_OPTIONS:
            raise Refusal(INVALID, f"options: {len(asked.options)} are given, at most {MOST_OPTIONS} are taken")
        nodes = {
            id_: _read(raw, "Node", f"nodeBytesMap[{id_}]")
            for id_, raw in (*asked.nodeMap.items(), *asked.nodeBytesMap.items())
        }
        body = msgspec.json.encode([_question(option, nodes, i) for i, option in enumerate(asked.options)])
        reply = await self._service.ask(caller, "options", body, seconds=seconds)
        tried = msgspec.json.decode(reply.body, type=list[Tried])
        ranked = []
        for option, found in zip(asked.options, tried, strict=True):
            price = self._price(option.nodeGroupId, nodes[option.nodeGroupId])
            if found.placed:
                ranked.append(
                    ((price is None, (price if price is not None else 1.0) * option.nodeCount / found.placed), option, found)
                )
        if not ranked:
            return self._messages["BestOptionsResponse"](options=asked.options)
        best = min(rank for rank, _, _ in ranked)
        response = self._messages["BestOptionsResponse"]()
        for rank, option, found in ranked:
            if rank == best:
                of_pod = "no price is known" if rank[0] else f"{rank[1]:g} a pod"
                text = f"kubesched: places {found.placed} pods on {found.nodes_needed} of {option.nodeCount} nodes, {of_pod}"
                response.options.add(nodeGroupId=option.nodeGroupId, nodeCount=option.nodeCount, debug=text)
        return response

    def _price(self, id_: str, node: dict[str, Any]) -> float | None:
        """Return the price of a node of a group, which is named as in the cloud, by its last part, or by its nodes' labels."""
        labels = (node.get("metadata") or {}).get("labels") or {}
        for group in self._groups:
            if group.name in (id_, id_.rpartition("/")[2]):
                return group.price
        for group in self._groups:
            if group.selector and group.selector.items() <= labels.items():
                return group.price
        return None


def _question(option: Message, nodes: dict[str, dict[str, Any]], i: int) -> dict[str, Any]:
    if option.nodeGroupId not in nodes:
        raise Refusal(INVALID, f"options[{i}].nodeGroupId: there is no node for {option.nodeGroupId}")
    if option.nodeCount < 0:
        raise Refusal(INVALID, f"options[{i}].nodeCount: {option.nodeCount} is below 0")
    pods = [_read(raw, "Pod", f"options[{i}].podBytes[{j}]") for j, raw in enumerate(option.podBytes or option.pod)]
    return {"node": nodes[option.nodeGroupId], "count": option.nodeCount, "pods": pods}


def _read(raw: bytes, kind: str, where: str) -> dict[str, Any]:
    """Return an object of Kubernetes' protobuf: the message alone, without the envelope that names its kind."""
    about = _field(1, b"v1") + _field(2, kind.encode())
    try:
        return decode(MAGIC + _field(1, about) + _field(2, raw))
    except Unreadable as error:
        raise Refusal(INVALID, f"{where}: {error}") from error


def _field(number: int, value: bytes) -> bytes:
    length, head = len(value), bytearray([number << 3 | 2])
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + value
