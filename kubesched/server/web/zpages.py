"""/flagz and /statusz: how the process was started and what it is, for people and for programs.

The text begins with a warning and uses a random separator, so that no program parses it, as in Kubernetes. With `Accept:
application/json;as=Flagz;g=config.k8s.io;v=v1beta1` (or yaml, or cbor) a program gets a versioned object. Any other type gets
406.
"""

from __future__ import annotations

import datetime
import platform
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from aiohttp import web

from kubesched.server.web.responses import accepted, compact, refusal

COMPONENT = "kube-scheduler"
GROUP = "config.k8s.io"
CURRENT, OLD = "v1beta1", "v1alpha1"
WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_SELF_DESCRIBED = b"\xd9\xd9\xf7"  # how Kubernetes marks its CBOR
_SEPARATORS = (":", ": ", "=", " ")
_STRUCTURED = ("application/json", "application/yaml", "application/cbor")


@dataclass(frozen=True, slots=True)
class About:
    """The facts that /statusz shows."""

    started_at: float  # seconds since the epoch
    binary_version: str
    emulation_version: str


class Zpage:
    """One of the two pages: a kind, the lines of its text, the fields of its object."""

    def __init__(
        self,
        kind: str,
        lines: Callable[[], Sequence[tuple[str, str]]],
        fields: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._kind = kind
        self._lines = lines
        self._fields = fields
        self._separator = random.choice(_SEPARATORS)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer in the first acceptable form."""
        for media, parameters in accepted(request.headers.get("Accept", "")):
            if media in ("text/plain", "text/*", "*/*") and not parameters.get("as"):
                return web.Response(text=self._text(), content_type="text/plain", charset="utf-8")
            if media in _STRUCTURED and self._is_asked_for(parameters):
                return self._structured(media, parameters["v"])
        forms = ", ".join(sorted([*_STRUCTURED, "text/plain"]))
        return refusal(request, 406, "NotAcceptable", f"only the following media types are accepted: {forms}")

    def _is_asked_for(self, parameters: Mapping[str, str]) -> bool:
        return parameters.get("as") == self._kind and parameters.get("g") == GROUP and parameters.get("v") in (CURRENT, OLD)

    def _text(self) -> str:
        lines = "".join(f"{key}{self._separator}{value}\n" for key, value in self._lines())
        return f"\n{COMPONENT} {self._kind.lower()}\n{WARNING}\n\n{lines}"

    def _structured(self, media: str, version: str) -> web.Response:
        document = {
            "kind": self._kind,
            "apiVersion": f"{GROUP}/{version}",
            "metadata": {"name": COMPONENT},
            **self._fields(),
        }
        if media == "application/json":
            body = compact(document).encode()
        elif media == "application/yaml":
            body = yaml.safe_dump(document, sort_keys=False).encode()
        else:
            body = encode_cbor(document)
        headers = {"Content-Type": f"{media};as={self._kind};v={version};g={GROUP}"}
        if version == OLD:
            name = self._kind.lower()
            text = f"This version of the {name} endpoint is deprecated. Please use a newer version."
            headers["Warning"] = f'299 - "{text}"'
        return web.Response(body=body, headers=headers)


def flagz(flags: Mapping[str, str]) -> Zpage:
    """Return the page of the flags with their values."""
    listed = sorted(flags.items())
    return Zpage("Flagz", lambda: listed, lambda: {"flags": dict(listed)})


def statusz(about: About, paths: Sequence[str], now: Callable[[], float] = time.time) -> Zpage:
    """Return the page of the process; `paths` are those that are served."""
    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    begun = datetime.datetime.fromtimestamp(about.started_at, datetime.UTC)

    def lines() -> list[tuple[str, str]]:
        return [
            ("Started", begun.strftime("%a %b %d %H:%M:%S UTC %Y")),
            ("Up", _duration(now() - about.started_at)),
            ("Go version", runtime),  # kube-scheduler's label, with what really runs
            ("Binary version", about.binary_version.removeprefix("v")),
            ("Emulation version", about.emulation_version),
            ("Paths", " ".join(paths)),
        ]

    def fields() -> dict[str, Any]:
        return {
            "startTime": begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": int(now() - about.started_at),
            "goVersion": runtime,
            "binaryVersion": about.binary_version.removeprefix("v"),
            "emulationVersion": about.emulation_version,
            "paths": list(paths),
        }

    return Zpage("Statusz", lines, fields)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} hr {minutes:02d} min {rest:02d} sec"


# CBOR, as much of it as these pages need: maps, lists, texts, whole numbers, truths and nothing


def encode_cbor(document: Any) -> bytes:
    """Return a document as CBOR, with texts as byte strings, as Kubernetes writes them. No dependency has an encoder."""
    return _SELF_DESCRIBED + _value(document)


def _value(value: Any) -> bytes:
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, str):
        text = value.encode()
        return _head(2, len(text)) + text
    if isinstance(value, (list, tuple)):
        return _head(4, len(value)) + b"".join(map(_value, value))
    if isinstance(value, dict):
        return _head(5, len(value)) + b"".join(_value(key) + _value(item) for key, item in value.items())
    raise TypeError(f"no CBOR for {type(value).__name__}")


def _head(major: int, amount: int) -> bytes:
    for limit, code, size in ((24, amount, 0), (1 << 8, 24, 1), (1 << 16, 25, 2), (1 << 32, 26, 4), (1 << 64, 27, 8)):
        if amount < limit:
            return bytes([major << 5 | code]) + (amount.to_bytes(size, "big") if size else b"")
    raise ValueError(f"{amount} does not fit 64 bits")
