"""CEL expressions as trees.

In: the bytes in which the CEL library hands out a parsed or checked expression, a protocol buffer (cel.expr.ParsedExpr
or CheckedExpr, wrapped in an Any). Out: small frozen nodes. Macros such as `has`, `all` and `cel.bind` are already
spelled out as selections and comprehensions. Only the few message fields that matter are read, by their numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kubesched.plugins._cel.values import CompileError, UInt


@dataclass(frozen=True, slots=True)
class Const:
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    operand: Node
    field: str
    test_only: bool


@dataclass(frozen=True, slots=True)
class Call:
    target: Node | None
    function: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MakeList:
    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class Entry:
    key: Node
    value: Node
    is_optional: bool


@dataclass(frozen=True, slots=True)
class MakeMap:
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    variable: str
    second_variable: str
    over: Node
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node = Const | Ident | Select | Call | MakeList | MakeMap | Comprehension

_MESSAGE = 2
_NULL = Const(None)


def decode(data: bytes) -> Node:
    """Return the tree of a serialized expression."""
    wrapped = _fields(data)
    kind = bytes(wrapped[1][0]).decode()
    message = _fields(wrapped[2][0])
    return _node(message[4 if kind.endswith("CheckedExpr") else 2][0])


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    yield node
    below: tuple[Node | None, ...]
    match node:
        case Select(operand, _, _):
            below = (operand,)
        case Call(target, _, args):
            below = (target, *args)
        case MakeList(elements, _):
            below = elements
        case MakeMap(entries):
            below = tuple(part for entry in entries for part in (entry.key, entry.value))
        case Comprehension(over=over, start=start, condition=condition, step=step, result=result):
            below = (over, start, condition, step, result)
        case _:
            below = ()
    for child in below:
        if child is not None:
            yield from walk(child)


def _node(data: bytes) -> Node:
    fields = _fields(data)
    for number, read in _READERS.items():
        if number in fields:
            return read(_fields(fields[number][0]))
    return _NULL


def _const(fields: dict[int, list[Any]]) -> Node:
    for number, raw in ((number, values[-1]) for number, values in fields.items()):
        if number == 1:
            return _NULL
        if number == 2:
            return Const(bool(raw))
        if number == 3:
            return Const(raw - (1 << 64) if raw >> 63 else raw)
        if number == 4:
            return Const(UInt(raw))
        if number == 5:
            return Const(struct.unpack("<d", raw)[0])
        if number == 6:
            return Const(bytes(raw).decode())
        if number == 7:
            return Const(bytes(raw))
    # A constant that is its type's default may be left out of the message only when it has no kind at all: null.
    return _NULL


def _ident(fields: dict[int, list[Any]]) -> Node:
    return Ident(_text(fields, 1))


def _select(fields: dict[int, list[Any]]) -> Node:
    return Select(_child(fields, 1), _text(fields, 2), bool(fields.get(3, [0])[0]))


def _call(fields: dict[int, list[Any]]) -> Node:
    target = _node(fields[1][0]) if 1 in fields else None
    return Call(target, _text(fields, 2), tuple(_node(raw) for raw in fields.get(3, ())))


def _list(fields: dict[int, list[Any]]) -> Node:
    optional: set[int] = set()
    for raw in fields.get(2, ()):
        optional.update([raw] if isinstance(raw, int) else _varints(raw))
    return MakeList(tuple(_node(raw) for raw in fields.get(1, ())), frozenset(optional))


def _map(fields: dict[int, list[Any]]) -> Node:
    if fields.get(1) and bytes(fields[1][0]):
        raise CompileError(f"undeclared reference to '{_text(fields, 1)}'")
    entries = []
    for raw in fields.get(2, ()):
        entry = _fields(raw)
        entries.append(Entry(_child(entry, 3), _child(entry, 4), bool(entry.get(5, [0])[0])))
    return MakeMap(tuple(entries))


def _comprehension(fields: dict[int, list[Any]]) -> Node:
    return Comprehension(
        _text(fields, 1),
        _text(fields, 8),
        _child(fields, 2),
        _text(fields, 3),
        _child(fields, 4),
        _child(fields, 5),
        _child(fields, 6),
        _child(fields, 7),
    )


_READERS = {3: _const, 4: _ident, 5: _select, 6: _call, 7: _list, 8: _map, 9: _comprehension}


def _child(fields: dict[int, list[Any]], number: int) -> Node:
    return _node(fields[number][0]) if number in fields else _NULL


def _text(fields: dict[int, list[Any]], number: int) -> str:
    return bytes(fields[number][0]).decode() if number in fields else ""


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Return a message's raw fields by number: varints as ints, everything else as bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == _MESSAGE:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value
