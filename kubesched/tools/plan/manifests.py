"""Manifests: what stands in files, one object after the other.

In: files of YAML or JSON, as kubectl takes them. What is in a file says which it is, its name does not. Out: objects, each
with the place where it stands, so that whoever finds something wrong with one can say where. `admission.py` makes of them
what an API server would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.api import KINDS, TopLevel, codec
from kubesched.kube.values import content_of, shown
from kubesched.scheduler.config import compact, read_yaml

Raw = dict[str, Any]

WORKLOADS = ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "DaemonSet")
"""The kinds that stand for pods."""

SILENT = frozenset(
    {
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "Ingress",
        "IngressClass",
        "NetworkPolicy",
        "CustomResourceDefinition",
        "Endpoints",
        "EndpointSlice",
        "Lease",
        "Event",
    }
)
"""The kinds that no placement depends on; whoever reads manifests may pass over them without a word."""

SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = re.compile(rb"^---.*$", re.MULTILINE)
_BRACE = re.compile(rb"\s*\{")
_DEEPEST_LIST = 10
_MOST_YAML_BYTES = 256 << 20
_BYTE_ORDER = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
"""What files begin with that PowerShell wrote."""


class _Head(msgspec.Struct, rename="camel"):
    """What is read of an object before its kind is known."""

    api_version: Any = None
    kind: Any = None
    metadata: Any = None
    items: msgspec.Raw = msgspec.Raw()


_documents_in = msgspec.json.Decoder(msgspec.Raw).decode_lines
"""Takes one JSON document after another, wherever their lines end."""
_head_of = msgspec.json.Decoder(_Head).decode
_items_of = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One object in a file, of which only the head is decoded yet."""

    where: str
    api_version: str
    kind: str
    is_stored: bool
    """Whether an API server has stored it: it has a uid and a time of creation."""
    json: msgspec.Raw

    @property
    def struct(self) -> type[TopLevel] | None:
        """Return the struct for this kind; None if we do not know it."""
        return KINDS.get((self.api_version, self.kind))

    def decoded(self, type_: type[TopLevel]) -> TopLevel:
        """Return the object as a struct; raise SchedulerError, with where it stands, for what cannot be read."""
        try:
            return codec.decode_as(type_, bytes(self.json))
        except SchedulerError as error:
            raise SchedulerError(f"{self.where}: {error}") from error

    def manifest(self) -> Manifest:
        """Return the object as plain dicts."""
        try:
            content = codec.decode_json(bytes(self.json))
        except SchedulerError as error:
            raise SchedulerError(f"{self.where}: {error}") from error
        return Manifest(self.where, {**content, "apiVersion": self.api_version, "kind": self.kind})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it stands in a file, and where that is."""

    where: str
    content: Raw

    @property
    def kind(self) -> str:
        return str(self.content.get("kind"))

    @property
    def type(self) -> type[TopLevel] | None:
        """Return the struct for this kind; None if we do not know it."""
        return KINDS.get((str(self.content.get("apiVersion")), self.kind))


def read_manifests(paths: Iterable[str | Path], *, recursive: bool = False) -> list[Manifest]:
    """Return the objects of files, of the files in folders (with `recursive` also of folders in them), and for `-` of the
    standard input.

    Raise SchedulerError, with the file and the number of the document in it, for what is no object.
    """
    return [each for file in _files(paths, recursive) for each in manifests_in(shown(file), content_of(file).data)]


def manifests_in(name: str, text: str | bytes | bytearray) -> list[Manifest]:
    """Return the objects of a text; `name` is where it comes from, for what is wrong with it."""
    return [found.manifest() for found in objects_in(name, text.encode() if isinstance(text, str) else text)]


def objects_in(name: str, data: bytes | bytearray) -> Iterator[FoundObject]:
    """Yield the objects of JSON or YAML, of one document or several, those of Lists one by one."""
    for number, document in enumerate(_documents(name, data), 1):
        yield from _objects(f"{name}, document {number}", document)


def _files(paths: Iterable[str | Path], recursive: bool) -> Iterator[Path]:
    for path in map(Path, paths):
        files = sorted(p for p in path.glob("**/*" if recursive else "*") if p.suffix in SUFFIXES) if path.is_dir() else [path]
        if not files:
            raise SchedulerError(
                f"{path}: no .yaml, .yml or .json file in this folder{'' if recursive else '; -R looks deeper'}"
            )
        yield from files


def _documents(name: str, data: bytes | bytearray) -> Iterator[msgspec.Raw]:
    """Yield the documents that are not empty, as JSON. A text is cut where kubectl cuts: at lines that begin with `---`."""
    encoding = next((encoding for mark, encoding in _BYTE_ORDER.items() if data.startswith(mark)), "")
    number = 0
    try:
        if encoding:
            data = data.decode(encoding).encode()
        for part in _SEPARATOR.split(data) if data.startswith(b"---") or b"\n---" in data else (data,):
            found = _of_part(part, name, number + 1)
            number += len(found)
            yield from found
    except UnicodeDecodeError as error:
        raise SchedulerError(f"{name} cannot be read: it is not UTF-8") from error


def _of_part(part: bytes | bytearray, name: str, number: int) -> list[msgspec.Raw]:
    """Return the documents between two separators: one of YAML, or any number in JSON."""
    where = f"{name}, document {number}"
    if _BRACE.match(part):
        try:
            return _documents_in(part)
        except RecursionError as error:
            raise SchedulerError(f"{name}: nested too deep") from error
        except msgspec.DecodeError as error:
            if b'"' in part[: part.find(b":")]:  # YAML may begin with a brace too, but hardly with a brace and a quote
                raise SchedulerError(f"{name if number == 1 else where}: not JSON: {error}") from error
    if not part.strip():
        return []
    if len(part) > _MOST_YAML_BYTES:
        raise SchedulerError(f"{where}: larger than {_MOST_YAML_BYTES >> 20} MiB: as JSON it can be read (kubectl get -o json)")
    try:
        tree, repeated = read_yaml(part.decode())
    except ConfigError as error:
        raise SchedulerError(f"{where}: {error}") from error
    if repeated:
        raise SchedulerError(f"{where}: {repeated[0]}")
    return [] if tree is None else [msgspec.Raw(compact(tree).encode())]


def _objects(
    where: str, document: msgspec.Raw, listed_as: tuple[Any, Any] = (None, None), depth: int = 0
) -> Iterator[FoundObject]:
    """Yield an object, or those of a List. The items of a PodList, as the API server answers it, do not name their kind."""
    try:
        head = _head_of(document)
    except msgspec.ValidationError as error:
        raise SchedulerError(f"{where}: not an object but {_shown(document)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SchedulerError(f"{where}: not JSON: {error}") from error
    version, kind = (given or listed for given, listed in zip((head.api_version, head.kind), listed_as, strict=True))
    for field, value in (("apiVersion", version), ("kind", kind)):
        if not isinstance(value, str) or not value:
            raise SchedulerError(f"{where}: {field}: invalid value {value!r}: a text is needed")
    if kind.endswith("List") and bytes(memoryview(head.items)[:1]) == b"[":
        if depth == _DEEPEST_LIST:
            raise SchedulerError(f"{where}: Lists in Lists, deeper than {_DEEPEST_LIST} levels")
        inside = (version, kind.removesuffix("List")) if kind != "List" else (None, None)
        for number, item in enumerate(_items_of(head.items), 1):
            yield from _objects(f"{where}, item {number}", item, inside, depth + 1)
        return
    meta = head.metadata
    if not isinstance(meta, dict):
        raise SchedulerError(f"{where}: metadata: invalid value {meta!r}: an object is needed")
    if not (meta.get("name") or meta.get("generateName")):
        raise SchedulerError(f"{where}: metadata.name: invalid value {meta.get('name')!r}: a name is needed")
    yield FoundObject(where, version, kind, bool(meta.get("uid") and meta.get("creationTimestamp")), document)


def _shown(value: msgspec.Raw) -> str:
    text = " ".join(bytes(value)[:1000].decode(errors="replace").split())
    return text if len(text) < 40 else f"{text[:36]} ..."
