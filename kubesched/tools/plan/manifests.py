"""Manifests: what stands in files, one object after the other.

In: paths of YAML or JSON, as kubectl takes them. Out: objects as plain dicts, each with the place where it stands, so that
whoever finds something wrong with one can say where. `admission.py` makes of them what an API server would.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.api.kinds import KINDS
from kubesched.kube.api.meta import TopLevel
from kubesched.scheduler.config.documents.reading import compact, is_json
from kubesched.scheduler.config.documents.yamltext import read_yaml

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

_SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)


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


def read_manifests(paths: Iterable[str | Path], *, recursive: bool = False, stdin: TextIO | None = None) -> list[Manifest]:
    """Return the objects of files, of the files in folders (with `recursive` also of folders in them), and for `-` of the
    standard input.

    Raise SchedulerError, with the file and the number of the document in it, for what is no object.
    """
    return [manifest for name, text in _texts(paths, recursive, stdin) for manifest in manifests_in(name, text)]


def manifests_in(name: str, text: str) -> list[Manifest]:
    """Return the objects of a text; `name` is where it comes from, for what is wrong with it."""
    found: list[Manifest] = []
    for number, document in enumerate(_documents(name, text), 1):
        found += _objects(f"{name}, document {number}", document)
    return found


def _texts(paths: Iterable[str | Path], recursive: bool, stdin: TextIO | None) -> Iterator[tuple[str, str]]:
    for given in paths:
        if str(given) == "-":
            yield "standard input", (stdin or sys.stdin).read()
            continue
        path = Path(given)
        files = sorted(p for p in path.glob("**/*" if recursive else "*") if p.suffix in _SUFFIXES) if path.is_dir() else [path]
        if not files:
            raise SchedulerError(
                f"{path}: no .yaml, .yml or .json file in this folder{'' if recursive else '; -R looks deeper'}"
            )
        for file in files:
            try:
                yield str(file), file.read_text()
            except OSError as error:
                raise SchedulerError(f"{file} cannot be read: {error.strerror}") from error
            except UnicodeDecodeError as error:
                raise SchedulerError(f"{file} cannot be read: it is not UTF-8") from error


def _documents(name: str, text: str) -> Iterator[Any]:
    """Yield the documents of a text that are not empty. It is cut where kubectl cuts: at lines that begin with `---`."""
    if is_json(text):
        try:
            yield from list(_json_documents(text))
            return
        except RecursionError as error:
            raise SchedulerError(f"{name}: nested too deep") from error
        except ValueError as error:
            if '"' in text[: text.find(":")]:  # YAML may begin with a brace too, but hardly with a brace and a quote
                raise SchedulerError(f"{name}: not JSON: {error}") from error
    number = 0
    for part in _SEPARATOR.split(text):
        if not part.strip():
            continue
        number += 1
        try:
            tree, repeated = read_yaml(part)
        except ConfigError as error:
            raise SchedulerError(f"{name}, document {number}: {error}") from error
        if repeated:
            raise SchedulerError(f"{name}, document {number}: {repeated[0]}")
        if tree is None:
            number -= 1  # comments only
            continue
        yield json.loads(compact(tree))


def _json_documents(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        found, at = decoder.raw_decode(text, at)
        yield found


def _objects(where: str, document: Any) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        raise SchedulerError(f"{where}: not an object but {_shown(document)}")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise SchedulerError(f"{where}: {field}: invalid value {document.get(field)!r}: a text is needed")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for number, item in enumerate(document["items"], 1):
            yield from _objects(f"{where}, item {number}", item)
        return
    if not isinstance(document.get("metadata"), dict):
        raise SchedulerError(f"{where}: metadata: invalid value {document.get('metadata')!r}: an object is needed")
    if not (document["metadata"].get("name") or document["metadata"].get("generateName")):
        raise SchedulerError(f"{where}: metadata.name: invalid value {document['metadata'].get('name')!r}: a name is needed")
    yield Manifest(where, document)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else f"{text[:36]} ..."
