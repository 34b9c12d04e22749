"""CEL expressions as trees.

In: the bytes in which the CEL library hands out a parsed or checked expression, a protocol buffer (cel.expr.ParsedExpr
or CheckedExpr, wrapped in an Any). Out: small frozen nodes. Macros such as `has`, `all` and `cel.bind` are already
spelled out as selections and comprehensions. Only the few message fields that matter are read, by their numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kubesched.kube.cel.values import TYPE_NAMES, CompileError, UInt


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
    overloads: tuple[str, ...] | None = None
    """Which of the function's overloads the check left open; None if there was no check."""

    @property
    def operands(self) -> tuple[Node, ...]:
        """Return the target, if there is one, and the arguments."""
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(frozen=True, slots=True)
class MakeList:
    elements: tuple[Node, ...]
    optional: frozenset[int]
    types: tuple[str, ...] = field(default=(), compare=False)
    """The types of the elements, as far as the check knows them."""


@dataclass(frozen=True, slots=True)
class Entry:
    key: Node
    value: Node
    is_optional: bool


@dataclass(frozen=True, slots=True)
class MakeMap:
    entries: tuple[Entry, ...]
    types: tuple[tuple[str, str], ...] = field(default=(), compare=False)


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

_TYPES_THAT_HAVE_NAMES = frozenset(name for _, name in TYPE_NAMES)
_MESSAGE = 2
_NULL = Const(None)


def decode(data: bytes) -> Node:
    """Return the tree of a serialized expression."""
    wrapped = _fields(data)
    kind = bytes(wrapped[1][0]).decode()
    message = _fields(wrapped[2][0])
    if not kind.endswith("CheckedExpr"):
        return _Decoder(None, {}).node(message[2][0])
    types = dict(map(_type, message.get(3, ())))
    return _Decoder(dict(map(_reference, message.get(2, ()))), types).node(message[4][0])


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    ahead = [node]
    while ahead:
        current = ahead.pop()
        yield current
        match current:
            case Select(operand, _, _):
                ahead.append(operand)
            case Call():
                ahead += current.operands[::-1]
            case MakeList(elements, _):
                ahead += elements[::-1]
            case MakeMap(entries):
                ahead += [part for entry in reversed(entries) for part in (entry.value, entry.key)]
            case Comprehension(over=over, start=start, condition=condition, step=step, result=result):
                ahead += (result, step, condition, start, over)


def _reference(data: bytes) -> tuple[int, tuple[str, ...]]:
    """Return an expression's number and the overloads that it may mean."""
    entry = _fields(data)
    reference = _fields(entry[2][0]) if 2 in entry else {}
    return entry.get(1, [0])[0], tuple(bytes(name).decode() for name in reference.get(3, ()))


_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "any", 2: "timestamp", 3: "duration"}


def _type(data: bytes) -> tuple[int, str]:
    """Return an expression's number and its type."""
    entry = _fields(data)
    return entry.get(1, [0])[0], _type_text(entry[2][0]) if 2 in entry else ""


def _type_text(data: bytes) -> str:
    """Return a type in the words of CEL, such as `map(string, list(int))`; "" for one that we have no use for."""
    for kind, (value, *_) in _fields(data).items():
        if kind == 3:
            return _PRIMITIVES.get(value, "")
        if kind == 5:
            return _WELL_KNOWN.get(value, "")
        if kind in (6, 7):
            inner = _fields(value)
            return (
                f"list({_type_text(inner[1][0])})"
                if kind == 6
                else f"map({_type_text(inner[1][0])}, {_type_text(inner[2][0])})"
            )
        if kind == 11:
            return f"type({_type_text(value)})"
        if kind == 14:
            inner = _fields(value)
            parameters = ", ".join(map(_type_text, inner.get(2, ())))
            return _text(inner, 1) + (f"({parameters})" if parameters else "")
        return {1: "dyn", 2: "null"}.get(kind, "")
    return ""


class _Decoder:
    """Reads one message; `references` and `types` are what the check found out about its calls and values."""

    def __init__(self, references: dict[int, tuple[str, ...]] | None, types: dict[int, str]) -> None:
        self._references = references
        self._types = types
        self._readers = {
            3: _const,
            4: self._ident,
            5: self._select,
            6: self._call,
            7: self._list,
            8: self._map,
            9: self._comprehension,
        }

    def node(self, data: bytes) -> Node:
        fields = _fields(data)
        for number, read in self._readers.items():
            if number in fields:
                return read(_fields(fields[number][0]), fields.get(2, [0])[0])
        return _NULL

    def _child(self, fields: dict[int, list[Any]], number: int) -> Node:
        return self.node(fields[number][0]) if number in fields else _NULL

    def _children(self, fields: dict[int, list[Any]], number: int) -> tuple[Node, ...]:
        return tuple([self.node(raw) for raw in fields.get(number, ())])

    def _type_of(self, data: bytes) -> str:
        return self._types.get(_fields(data).get(2, [0])[0], "")

    def _ident(self, fields: dict[int, list[Any]], number: int) -> Node:
        name = _text(fields, 1)
        if self._types.get(number, "").startswith("type(") and "." not in name and name not in _TYPES_THAT_HAVE_NAMES:
            # The reference takes every name of that type for the name of a type, also a variable.
            raise CompileError(f"program instantiation failed: reference to undefined type: {name}")
        return Ident(name)

    def _select(self, fields: dict[int, list[Any]], _: int) -> Node:
        return Select(self._child(fields, 1), _text(fields, 2), bool(fields.get(3, [0])[0]))

    def _call(self, fields: dict[int, list[Any]], number: int) -> Node:
        target = self.node(fields[1][0]) if 1 in fields else None
        overloads = None if self._references is None else self._references.get(number, ())
        function, args = _text(fields, 2), self._children(fields, 3)
        if function == "flatten" and not args and (kind := self._type_of(fields[1][0])).startswith("list(list("):
            self._types[number] = kind[5:-1]  # the library forgets of what the inner lists are; the reference does not
        return Call(target, function, args, overloads)

    def _list(self, fields: dict[int, list[Any]], _: int) -> Node:
        optional: set[int] = set()
        for raw in fields.get(2, ()):
            optional.update([raw] if isinstance(raw, int) else _varints(raw))
        elements = self._children(fields, 1)
        return MakeList(elements, frozenset(optional), tuple([self._type_of(raw) for raw in fields.get(1, ())]))

    def _map(self, fields: dict[int, list[Any]], _: int) -> Node:
        if fields.get(1) and bytes(fields[1][0]):
            raise CompileError(f"undeclared reference to '{_text(fields, 1)}'")
        entries, types = [], []
        for raw in fields.get(2, ()):
            entry = _fields(raw)
            entries.append(Entry(self._child(entry, 3), self._child(entry, 4), bool(entry.get(5, [0])[0])))
            types.append((self._type_of(entry[3][0]), self._type_of(entry[4][0])))
        return MakeMap(tuple(entries), tuple(types))

    def _comprehension(self, fields: dict[int, list[Any]], _: int) -> Node:
        over, start, condition, step, result = (self._child(fields, number) for number in (2, 4, 5, 6, 7))
        return Comprehension(_text(fields, 1), _text(fields, 8), over, _text(fields, 3), start, condition, step, result)


def _const(fields: dict[int, list[Any]], _: int) -> Node:
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


def _text(fields: dict[int, list[Any]], number: int) -> str:
    return bytes(fields[number][0]).decode() if number in fields else ""


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Return a message's raw fields by number: varints as ints, everything else as bytes."""
    found: dict[int, list[Any]] = {}
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = _varint(data, at - 1)
        kind = tag & 7
        value: Any
        if kind in (0, _MESSAGE):
            value = data[at]
            at += 1
            if value > 0x7F:
                value, at = _varint(data, at - 1)
            if kind == _MESSAGE:
                value, at = data[at : at + value], at + value
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
