"""The questions that callers ask, read from JSON, and put to the library (`kubesched.solver`), whose documents are the answers.

In: a call and a body. Out: the JSON of the library's `as_dict()`. What cannot be used is refused with the path of the field:
`pods[3].spec.containers: unknown field`. A body says how much work it is: there are bounds on all that it counts.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

import msgspec

from kubesched.embedded.schema.checking import Undecodable, settle
from kubesched.embedded.schema.language import Shape, root_shape
from kubesched.errors import SchedulerError
from kubesched.kube.api import INFO, KINDS, Node, Pod, TopLevel, codec
from kubesched.solver import Cluster, NodeTemplate
from kubesched.solver.objects import pod_of
from kubesched.tools.serve.wire import INVALID, Refusal

MOST_PODS = 100_000
MOST_NEW_NODES = 10_000
MOST_NAMES = 10_000
MOST_TEMPLATES = 1000
MOST_OBJECTS = 500_000
_SPECS, _PODS, _MOST_KEPT_BYTES = 2048, 512, 8192
"""How many specs and pods are kept that were read already, and how long they are at most."""
_PATH = re.compile(r" - at `\$\.?([^`]*)`$")
_encode = msgspec.json.Encoder().encode
Raw = msgspec.Raw
T = TypeVar("T")
Object = TypeVar("Object", bound=TopLevel)


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A part of a question; a field that nobody knows is a mistake of the caller."""


class PodQuestion(Strict):
    """Fits, Explain, Watch."""

    pod: Raw
    nodes: bool = False
    """Whether the answer has a row for every node."""


class PlaceQuestion(Strict):
    """Place."""

    pods: list[Raw]
    preempt: bool = False


class Addition(Strict):
    """Nodes to add."""

    template: Raw
    count: int = 1


class WhatIfQuestion(Strict):
    """What if: first the nodes come, then the drains and deletions happen, then the pods are placed."""

    pods: list[Raw] = []
    preempt: bool = False
    add_nodes: list[Addition] = []
    drain: list[str] = []
    delete: list[str] = []


class Offer(Strict):
    """A template of nodes, and what one costs."""

    name: str
    node: Raw
    price: float = 0.0
    max: int = 0


class CheapestQuestion(Strict):
    """Cheapest nodes."""

    pods: list[Raw]
    templates: list[Offer]


class Option(Strict):
    """One of the ways to grow that an expander chooses from."""

    node: Raw
    count: int
    pods: list[Raw]


class ObjectName(Strict):
    """An object of a session that is gone."""

    kind: str
    name: str
    namespace: str = ""


class Changes(Strict):
    """Deltas to a session."""

    put: list[Raw] = []
    remove: list[ObjectName] = []


class AskedCluster:
    """A cluster of the library, as a solver process asks it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._calls: dict[str, Callable[[bytes], Any]] = {
            "fits": self._fits,
            "explain": self._explain,
            "place": self._place,
            "what-if": self._what_if,
            "cheapest-nodes": self._cheapest,
            "options": self._options,
            "change": self._change,
            "sizes": self._sizes,
        }

    def answer(self, call: str, body: bytes) -> bytes:
        """Return the answer as JSON; raise SchedulerError."""
        return _encode(self._calls[call](body))

    @property
    def revision(self) -> int:
        """Return how many changes it has seen."""
        return self.cluster.version

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take in a change, as reflectors tell it."""
        self.cluster.arrived(kind, old, new)

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list has been delivered."""

    # The calls

    def _fits(self, body: bytes) -> Any:
        asked = decoded(body, PodQuestion)
        return self.cluster.fits(_pod(asked.pod), nodes=asked.nodes).as_dict()

    def _explain(self, body: bytes) -> Any:
        return self.cluster.why(_pod(decoded(body, PodQuestion).pod))

    def _place(self, body: bytes) -> Any:
        asked = decoded(body, PlaceQuestion)
        with self.cluster.what_if() as world:
            return world.place(_pods(asked.pods), preempt=asked.preempt).as_dict()

    def _what_if(self, body: bytes) -> Any:
        asked = decoded(body, WhatIfQuestion)
        pods = _pods(asked.pods)
        _bound("addNodes", sum(max(each.count, 0) for each in asked.add_nodes), MOST_NEW_NODES)
        _bound("drain", len(asked.drain), MOST_NAMES)
        _bound("delete", len(asked.delete), MOST_PODS)
        with self.cluster.what_if() as world:
            for i, each in enumerate(asked.add_nodes):
                if each.count < 1:
                    raise Refusal(INVALID, f"addNodes[{i}].count: {each.count} is below 1")
                world.add_nodes(template(bytes(each.template), f"addNodes[{i}].template"), each.count)
            for key in asked.delete:
                world.delete(key)
            for name in asked.drain:
                world.drain(name)
            return world.place(pods, preempt=asked.preempt).as_dict()

    def _cheapest(self, body: bytes) -> Any:
        asked = decoded(body, CheapestQuestion)
        pods = _pods(asked.pods)
        _bound("templates", len(asked.templates), MOST_TEMPLATES)
        return self.cluster.cheapest_nodes(pods, list(_offers(asked.templates))).as_dict()

    def _options(self, body: bytes) -> Any:
        found = []
        pods: dict[bytes, Pod] = {}  # an option has mostly the pods of the one before it
        for i, each in enumerate(decoded(body, list[Option])):
            _bound(f"options[{i}].nodeCount", each.count, MOST_NEW_NODES)
            node = codec.decode_as(Node, bytes(each.node))
            wanted = [pods.get(raw) or pods.setdefault(raw, codec.decode_as(Pod, raw)) for raw in map(bytes, each.pods)]
            with self.cluster.what_if() as world:
                world.add_nodes(node, each.count)
                placement = world.place(wanted)
                told = {"placed": len(placement.placed), "nodesNeeded": placement.nodes_needed}
                found.append(told | ({"message": placement.unplaced[0].why} if placement.unplaced else {}))
        return found

    def _change(self, body: bytes) -> Any:
        asked = decoded(body, Changes)
        put, gone = objects_in(asked.put, "put"), []
        for i, each in enumerate(asked.remove):
            kind = next((info for info in INFO.values() if info.kind == each.kind), None)
            if kind is None:
                raise Refusal(INVALID, f"remove[{i}].kind: {each.kind!r} is no kind that decisions depend on")
            named = {"apiVersion": kind.api_version, "kind": kind.kind}
            gone.append({**named, "metadata": {"name": each.name, "namespace": each.namespace}})
        for obj in gone:
            self.cluster.remove(obj)
        self.cluster.put(*put)
        return self._sizes(b"")

    def _sizes(self, _: bytes) -> Any:
        store = self.cluster.engine.store
        return {"nodes": len(store.nodes), "pods": store.n_pods + len(self.cluster.pending())}


# Reading


def decoded(body: bytes, type_: type[T]) -> T:
    """Return a question; raise `Refusal` with the path of what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.DecodeError as error:
        raise refusal_of(error) from error


def refusal_of(error: msgspec.DecodeError, where: str = "") -> Refusal:
    """Return what msgspec says with the path in front, as everywhere else."""
    text = str(error)
    found = _PATH.search(text)
    path = ".".join(filter(None, (where, found[1] if found else "")))
    text = _PATH.sub("", text)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", text)
    if unknown is not None:
        path, text = ".".join(filter(None, (path, unknown[1]))), "unknown field"
    return Refusal(INVALID, f"{path}: {text}" if path else text)


def objects_in(raws: Iterable[Raw], where: str) -> list[TopLevel]:
    """Return the objects of a session; what no decision depends on is left out."""
    found = list(_objects(raws, where))
    _refuse_cycles(found, where)
    return found


def _objects(raws: Iterable[Raw], where: str) -> Iterator[TopLevel]:
    for i, raw in enumerate(raws):
        if i >= MOST_OBJECTS:
            raise Refusal(INVALID, f"{where}: more than {MOST_OBJECTS} objects")
        head = _head(bytes(raw), f"{where}[{i}]")
        for field, found in (("apiVersion", head.api_version), ("kind", head.kind)):
            if not found:
                raise Refusal(INVALID, f"{where}[{i}].{field}: is missing")
        type_ = KINDS.get((head.api_version, head.kind))
        if type_ is not None:
            obj = checked(bytes(raw), type_, f"{where}[{i}]")
            yield pod_of(obj) if isinstance(obj, Pod) else obj


def _refuse_cycles(objects: list[TopLevel], where: str) -> None:
    """Refuse objects that own themselves, over however many steps: whatever follows owners would not come to an end."""
    owners = {obj.metadata.uid: {each.uid for each in obj.metadata.owner_references} for obj in objects if obj.metadata.uid}
    place = {obj.metadata.uid: i for i, obj in enumerate(objects)}
    try:
        deque(TopologicalSorter(owners).static_order(), maxlen=0)
    except CycleError as error:
        uid = next(uid for uid in error.args[1] if uid in place)
        raise Refusal(INVALID, f"{where}[{place[uid]}].metadata.ownerReferences: the object owns itself") from error


def template(raw: bytes, where: str) -> Node:
    """Return a node that says what it offers."""
    node = checked(raw, Node, where)
    if not node.status.allocatable:
        raise Refusal(INVALID, f"{where}.status.allocatable: is missing")
    return node


def _offers(offers: list[Offer]) -> Iterator[NodeTemplate]:
    for i, each in enumerate(offers):
        if each.price < 0 or each.max < 0:
            raise Refusal(INVALID, f"templates[{i}].{'price' if each.price < 0 else 'max'}: is below 0")
        node = template(bytes(each.node), f"templates[{i}].node")
        yield NodeTemplate(node, each.price, each.max or None, name=each.name)


def _pods(raws: list[Raw]) -> list[Pod]:
    _bound("pods", len(raws), MOST_PODS)
    return [checked(bytes(raw), Pod, f"pods[{i}]") for i, raw in enumerate(raws)]


def _pod(raw: Raw) -> Pod:
    """Return the pod of a question."""
    return _kept_pod(bytes(raw)) if len(memoryview(raw)) <= _MOST_KEPT_BYTES else checked(bytes(raw), Pod, "pod")


@lru_cache(maxsize=_PODS)
def _kept_pod(raw: bytes) -> Pod:
    """Return the pod of a question, which callers ask again and again."""
    return checked(raw, Pod, "pod")


def _bound(where: str, count: int, most: int) -> None:
    if count > most:
        raise Refusal(INVALID, f"{where}: {count} are given, at most {most} are taken")


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _Whole(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    metadata: Raw = Raw(b"{}")
    spec: Raw = Raw(b"{}")
    status: Raw = Raw(b"{}")


def _head(raw: bytes, where: str) -> _Head:
    try:
        return msgspec.json.decode(raw, type=_Head)
    except msgspec.DecodeError as error:
        raise refusal_of(error, where) from error


def checked(raw: bytes, type_: type[Object], where: str) -> Object:
    """Return an object whose every field is known; raise `Refusal` with the path of one that is not."""
    info = INFO[type_]
    try:
        if type_ in (Pod, Node):
            whole = msgspec.json.decode(raw, type=_Whole)
            if whole.kind not in ("", info.kind):
                raise Refusal(INVALID, f"{where}.kind: found {whole.kind}, expected {info.kind}")
            for part in ("metadata", "spec", "status"):
                found = bytes(getattr(whole, part))
                (_check_kept if len(found) <= _MOST_KEPT_BYTES else _check)(info.kind, part, found)
        return codec.decode_as(type_, raw)
    except msgspec.DecodeError as error:
        raise refusal_of(error, where) from error
    except _Unknown as error:
        raise Refusal(INVALID, f"{where}.{error}") from error
    except Refusal:
        raise
    except SchedulerError as error:
        raise Refusal(INVALID, f"{where}: {error}") from error


class _Unknown(Exception):
    """A field that nobody knows, or of a wrong type."""


def _check(kind: str, part: str, raw: bytes) -> None:
    """Raise for a part of an object that has a field which nobody knows."""
    shape = _shape(kind).fields[part].shape
    try:
        unknown = settle(codec.decode_json(raw), shape)
    except Undecodable as error:
        raise _Unknown(f"{part}.{error.field}: {error}") from error
    if unknown:
        raise _Unknown(f"{part}.{unknown[0]}: unknown field")


_check_kept = lru_cache(maxsize=_SPECS)(_check)
"""Pods of a workload share a spec, which is looked at once."""


def _shape(kind: str) -> Shape:
    shape = root_shape("v1", kind)
    assert shape is not None
    return shape
