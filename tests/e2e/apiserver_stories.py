"""Stories for an API server: requests one after the other, told to any server in the same words.

A step is a request. `{ns}` in it is the story's own namespace, `{rv0}` the resourceVersion that step 0 answered with,
`{token0}` its continue token, `{uid0}` its uid. A body may be `again(0, {"spec.replicas": 2})`: what step 0 answered with,
some fields set or, with None, taken away. What comes back is boiled down to what must be the same on every server:
names of time, chance and counting are replaced by placeholders.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any

import aiohttp

Object = dict[str, Any]
JSON = "application/json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

NS = "/api/v1/namespaces/{ns}"
PODS, CONFIGS = f"{NS}/pods", f"{NS}/configmaps"
APPS = "/apis/apps/v1/namespaces/{ns}"
SPEC: Object = {"containers": [{"name": "c", "image": "i"}]}


@dataclass(frozen=True, slots=True)
class Step:
    """One request."""

    method: str
    path: str
    body: Any = None
    kind: str = JSON
    accept: str = JSON
    token: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """Requests that belong together."""

    name: str
    steps: tuple[Step, ...]
    owners: bool = False  # whether managedFields are part of the story


@dataclass(frozen=True, slots=True)
class Again:
    """An earlier answer, changed."""

    step: int
    changes: Object = field(default_factory=dict)


def again(step: int, changes: Object | None = None) -> Again:
    return Again(step, changes or {})


def get(path: str, accept: str = JSON, token: str = "") -> Step:
    return Step("GET", path, accept=accept, token=token)


def post(path: str, body: Any, kind: str = JSON, accept: str = JSON) -> Step:
    return Step("POST", path, body, kind, accept)


def put(path: str, body: Any) -> Step:
    return Step("PUT", path, body)


def patch(path: str, body: Any, kind: str = STRATEGIC) -> Step:
    return Step("PATCH", path, body, kind)


def delete(path: str, body: Any = None) -> Step:
    return Step("DELETE", path, body)


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def pod(name: str = "p", labels: Object | None = None, **spec: Any) -> Object:
    metadata: Object = {"name": name} | ({"labels": labels} if labels else {})
    return {"metadata": metadata, "spec": copy.deepcopy(SPEC) | spec}


def container(name: str = "c", **more: Any) -> Object:
    return {"name": name, "image": "i", **more}


async def tell(story: Story, session: aiohttp.ClientSession, namespace: str) -> list[Any]:
    """Make the requests of a story; return what every server must answer alike."""
    raw: list[Any] = []
    answers: list[Any] = []
    blur = _Blur(namespace, story.owners)
    for step in story.steps:
        headers = {"Accept": step.accept} | ({"Authorization": f"Bearer {step.token}"} if step.token else {})
        data = None
        blur.expect(step.body)
        if step.body is not None:
            headers["Content-Type"] = step.kind
            data = step.body if isinstance(step.body, bytes) else _filled(json.dumps(_body(step.body, raw)), namespace, raw)
        path = _filled(step.path, namespace, raw)
        async with session.request(step.method, path, data=data, headers=headers) as answer:
            text = await answer.read()
            said = _decoded(text)
            warnings = sorted(answer.headers.getall("Warning", []))
        raw.append(said)
        told = [answer.status, _refusal(blur(said)) if answer.status >= 400 else blur(said)]
        answers.append([*told, blur(warnings)] if warnings else told)
    return answers


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text.decode(errors="replace")


def _body(body: Any, raw: list[Any]) -> Any:
    if not isinstance(body, Again):
        return body
    found = copy.deepcopy(raw[body.step])
    for path, value in body.changes.items():
        *above, last = path.split(".")
        place = found
        for one in above:
            place = place[int(one)] if one.isdigit() else place.setdefault(one, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return found


def _filled(text: str, namespace: str, raw: list[Any]) -> str:
    def value(found: re.Match[str]) -> str:
        metadata = raw[int(found.group(2))]["metadata"]
        return str(metadata[{"rv": "resourceVersion", "token": "continue", "uid": "uid"}[found.group(1)]])

    return re.sub(r"\{(rv|token|uid)(\d+)\}", value, text.replace("{ns}", namespace))


def _refusal(said: Any) -> Any:
    """Return what of a refusal must be the same: code, reason, what is named, and every cause.

    The sentences about a body or a parameter that cannot be read are those of the language a server is written in.
    """
    if not isinstance(said, dict):
        return said
    details = dict(said.get("details") or {})
    causes = details.pop("causes", [])
    told = {"reason": said.get("reason", ""), "details": details}
    if causes:
        told["causes"] = sorted({(one.get("reason", ""), one.get("field", ""), _sentence(one)) for one in causes})
    elif said.get("code") not in (400, 406, 415, 500):
        told["message"] = said.get("message", "").partition("\n")[0]
    return json.loads(json.dumps(told))


def _sentence(cause: Object) -> str:
    """Return the first line of a cause, without a value that is written as its server thinks of it."""
    text = str(cause.get("message", "")).partition("\n")[0]
    if cause.get("field") == "patch":
        return ""
    return re.sub(r"value: [\[{].*[\]}]: ", "value: ...: ", text)


# What a typed server writes out and what it leaves out says nothing; to a client they are the same.
_NOTHING: tuple[Any, ...] = (None, "", {}, [])
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_AGE = re.compile(r"\d+(\.\d+)?(ms|s)")


# Where a server listens, how it hashes, what it keeps of old releases.
_NOT_COMPARED = frozenset(
    ("serverAddress", "storageVersionHash", "daemonEndpoints", "deprecated.daemonset.template.generation")
)


class _Blur:
    """Takes time, chance and counting out of an answer; versions are numbered in order of appearance."""

    def __init__(self, namespace: str, owners: bool) -> None:
        self._namespace = namespace
        self._owners = owners
        self._versions: dict[str, str] = {}
        self._prefixes: set[str] = set()

    def expect(self, body: Any) -> None:
        """Look out for names that a server will make from this body."""
        if isinstance(body, dict) and isinstance(body.get("metadata"), dict) and body["metadata"].get("generateName"):
            self._prefixes.add(body["metadata"]["generateName"][:58])

    def __call__(self, value: Any, above: str = "") -> Any:
        if isinstance(value, dict):
            if "continue" in value and above == "metadata":
                value = value | {"continue": "<token>"}
            if value.get("resourceVersion") and above == "metadata" and "uid" not in value:
                value = value | {"resourceVersion": "<version>"}
            kept = {}
            for key, one in value.items():
                if (key == "managedFields" and not self._owners) or (key in ("kind", "apiVersion") and above == "items"):
                    continue
                if key in _NOT_COMPARED:
                    continue
                told = self._version(one) if key == "resourceVersion" else self(one, key)
                if told not in _NOTHING:
                    kept[key] = told
            if "columnDefinitions" in kept:
                kept["columnDefinitions"] = [one | {"description": ""} for one in kept["columnDefinitions"]]
            return kept
        if isinstance(value, list):
            return [self(one, {"cells": "cell", "items": "items"}.get(above, "")) for one in value]
        if isinstance(value, str):
            if above == "cell" and _AGE.fullmatch(value):
                return "<age>"
            for prefix in self._prefixes:
                value = re.sub(re.escape(prefix) + r"[a-z0-9]{5}(?![a-z0-9])", prefix + "<chance>", value)
            text = _UID.sub("<uid>", _TIME.sub("<time>", value.replace(self._namespace, "{ns}")))
            text = re.sub(r"StorageError: .* AdditionalErrorMsg: ", "", text)
            return re.sub(r"(ResourceVersion in record) \(\d+\)", r"\1 (<version>)", text)
        return value

    def _version(self, value: str) -> str:
        if not value or value.startswith("<"):
            return value
        return self._versions.setdefault(value, f"<version {len(self._versions)}>")
