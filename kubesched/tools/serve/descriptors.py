"""The messages of our .proto files, made when they are first used: nothing is generated, and no compiler is needed to install.

In: a file of `protos/`, in the part of proto3 that ours use: messages with scalar, message, repeated and map fields,
`reserved`, services. Out: a descriptor, the classes of its messages, and its methods. A test compares the descriptors with
protoc's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Message = Any
"""A message of protobuf, whose class is made at run time."""

_WORD = re.compile(r'"[^"]*"|[A-Za-z_][\w.]*|\d+|[{}();=<>,\[\]]')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _FIELD.TYPE_DOUBLE,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
    "bool": _FIELD.TYPE_BOOL,
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
}


@dataclass(frozen=True, slots=True)
class Method:
    """One call of a service."""

    name: str
    request: type[Message]
    answer: type[Message]
    is_stream: bool
    """Whether it answers with a stream."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """What one .proto file declares."""

    messages: Mapping[str, type[Message]]
    services: Mapping[str, Mapping[str, Method]]
    """By the service's full name, its methods by name."""


@cache
def protocol(name: str) -> Protocol:
    """Return what `protos/NAME.proto` declares."""
    file = described(f"{name}.proto", (resources.files(__package__) / "protos" / f"{name}.proto").read_text(encoding="utf-8"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName(file.name)
    messages = {name: message_factory.GetMessageClass(each) for name, each in found.message_types_by_name.items()}
    services = {
        service.full_name: {
            method.name: Method(
                method.name, messages[method.input_type.name], messages[method.output_type.name], method.server_streaming
            )
            for method in service.methods
        }
        for service in found.services_by_name.values()
    }
    return Protocol(messages, services)


def described(name: str, text: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a .proto file; raise ValueError for what is not of the part of proto3 that we use."""
    return _Reader(_WORD.findall(_COMMENT.sub("", text))).file(name)


class _Reader:
    """Reads words from first to last."""

    def __init__(self, words: list[str]) -> None:
        self._words: Iterator[str] = iter(words)

    def file(self, name: str) -> descriptor_pb2.FileDescriptorProto:
        file = descriptor_pb2.FileDescriptorProto(name=name)
        for word in self._words:
            if word == "syntax":
                self._expect("=", '"proto3"', ";")
                file.syntax = "proto3"
            elif word == "package":
                file.package = self._next()
                self._expect(";")
            elif word == "message":
                self._message(file.message_type.add(), file.package)
            elif word == "service":
                self._service(file.service.add(), file.package)
            else:
                raise ValueError(f"{name}: {word} is not understood")
        return file

    def _message(self, message: descriptor_pb2.DescriptorProto, package: str) -> None:
        message.name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "reserved":
                self._reserved(message)
            elif word == "map":
                self._map_field(message, package)
            else:
                label = _FIELD.LABEL_REPEATED if word == "repeated" else _FIELD.LABEL_OPTIONAL
                self._field(message, label, self._next() if word == "repeated" else word, package)

    def _field(self, message: descriptor_pb2.DescriptorProto, label: Any, type_: str, package: str) -> None:
        field = message.field.add(name=self._next(), label=label)
        self._expect("=")
        field.number = int(self._next())
        self._expect(";")
        field.json_name = re.sub(r"_(\w)", lambda found: found[1].upper(), field.name)
        if type_ in _SCALARS:
            field.type = _SCALARS[type_]
        else:
            field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{package}.{type_}"

    def _map_field(self, message: descriptor_pb2.DescriptorProto, package: str) -> None:
        """Read a map, which on the wire is a repeated message of key and value."""
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        entry = message.nested_type.add()
        self._field(message, _FIELD.LABEL_REPEATED, "", package)
        field = message.field[-1]
        entry.name = field.name[0].upper() + field.name[1:] + "Entry"
        field.type_name = f".{package}.{message.name}.{entry.name}"
        entry.options.map_entry = True
        for number, (name, type_) in enumerate((("key", key), ("value", value)), 1):
            entry.field.add(name=name, json_name=name, number=number, label=_FIELD.LABEL_OPTIONAL, type=_SCALARS[type_])

    def _reserved(self, message: descriptor_pb2.DescriptorProto) -> None:
        while (word := self._next()) != ";":
            if word.startswith('"'):
                message.reserved_name.append(word.strip('"'))
            elif word != ",":
                message.reserved_range.add(start=int(word), end=int(word) + 1)

    def _service(self, service: descriptor_pb2.ServiceDescriptorProto, package: str) -> None:
        service.name = self._next()
        self._expect("{")
        while self._next() == "rpc":
            method = service.method.add(name=self._next())
            self._expect("(")
            method.input_type = f".{package}.{self._next()}"
            self._expect(")", "returns", "(")
            word = self._next()
            if word == "stream":
                method.server_streaming, word = True, self._next()
            method.output_type = f".{package}.{word}"
            self._expect(")", ";")

    def _next(self) -> str:
        return next(self._words, "")

    def _expect(self, *words: str) -> None:
        for word in words:
            if (found := self._next()) != word:
                raise ValueError(f"found {found!r} where {word!r} belongs")
