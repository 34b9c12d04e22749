"""Discovery: which resources this API server serves, and in which version we use them.

`Served.version_of` decides the version of each kind, for reflectors, readers and commands. A writer uses the version that an
object came in. So a cluster without dynamic resources, or with an older version of them, gets a warning instead of an endless
retry.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from kubesched.errors import NotFound, Unreachable
from kubesched.kube.api import Wire
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers.resources import Watched

W = TypeVar("W", bound=Wire)
_FIRST_STREAMING_MINOR = 27  # older servers ignore sendInitialEvents


class _Version(Wire, kw_only=True):
    git_version: str = ""
    major: str = ""
    minor: str = ""


class _Resource(Wire, kw_only=True):
    name: str = ""


class _ResourceList(Wire, kw_only=True):
    resources: tuple[_Resource, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Served:
    """The server's version, and the plural names it serves under each `group/version`."""

    version: str = ""
    minor: int = 0
    resources: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def has(self, api_version: str, plural: str) -> bool:
        """Return whether a resource is served."""
        return plural in self.resources.get(api_version, ())

    def version_of(self, watched: Watched) -> str | None:
        """Return the version in which a resource is used: the first one of its row that is served, None if none is."""
        return next((version for version in watched.api_versions if self.has(version, watched.plural)), None)

    @property
    def knows_streaming_lists(self) -> bool:
        """Return whether the server answers a streaming list, be it with an error. Older servers stay silent."""
        return self.minor == 0 or self.minor >= _FIRST_STREAMING_MINOR


async def discover(connection: Connection, api_versions: Iterable[str]) -> Served:
    """Ask the server. Errors of the connection are raised."""
    version = _decoded(await connection.request("GET", "/version"), _Version, connection, "/version")
    wanted = sorted(set(api_versions))
    found = await asyncio.gather(*(_resources(connection, name) for name in wanted))
    # Managed clusters report a minor version such as "27+".
    digits = re.match(r"\d+", version.minor)
    return Served(version.git_version, int(digits[0]) if digits else 0, dict(zip(wanted, found, strict=True)))


async def _resources(connection: Connection, api_version: str) -> frozenset[str]:
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    try:
        # One request for each group and version that we may need, instead of the whole discovery document.
        body = await connection.request("GET", path)
    except NotFound:
        return frozenset()
    return frozenset(row.name for row in _decoded(body, _ResourceList, connection, path).resources or ())


def _decoded(body: bytes, type_: type[W], connection: Connection, path: str) -> W:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = f"{connection.server}{path} does not answer as a Kubernetes API server does; check {connection.origin}"
        raise Unreachable(text) from error
