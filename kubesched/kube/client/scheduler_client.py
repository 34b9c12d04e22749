"""Asking a running scheduler: one GET on its secure port or on a demo's page port, and its answer.

In: an address, how to be let in, and whom to trust. Out: what it says of a pod, or its configuration. A refusal is one line
that says what to do about it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kubesched.errors import ApiError, ConfigError, Forbidden, NotFound, SchedulerError, Unauthorized
from kubesched.kube.api import codec
from kubesched.kube.client.connection import Connection, connect
from kubesched.kube.client.credentials import Credentials

_NOT_HERE = "neither queued nor placed here"
_NO_RECORD = "no decision"
_DECISIONS = "/api/decisions"
"""Callers need the right to get this below /ui."""
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """Where a scheduler listens, and how to talk to it; a source of credentials that never change."""

    url: str
    token: str = ""
    ca_file: str = ""
    verify: bool = True
    option: str = "--server"
    """Where the address comes from, for messages."""

    async def load(self) -> Credentials:
        """Return the credentials."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(self.option, f"{self.url!r} is not an address like https://127.0.0.1:10259")
        return Credentials(
            f"{parts.scheme}://{parts.netloc}",
            self.option,
            f"Bearer {self.token}" if self.token else "",
            self.ca_file or None,
            verify=self.verify,
        )

    async def renew(self, *, refused: bool) -> Credentials:
        """Return the same again."""
        return await self.load()


@asynccontextmanager
async def _asking(address: SchedulerAddress, name: str, what: str) -> AsyncIterator[Connection]:
    """Lend a connection to a scheduler; a refusal says what to do about it. NotFound is the caller's to understand."""
    connection = await connect(address, name=name)
    try:
        yield connection
    except NotFound:
        raise
    except Unauthorized as error:
        raise SchedulerError(f"{address.url} asks who we are: give --token") from error
    except Forbidden as error:
        raise SchedulerError(f"{address.url} does not let us in: the token's user may not get {what}") from error
    except ApiError as error:
        raise SchedulerError(f"{address.url}: {' '.join(str(error).split())}") from error
    finally:
        await connection.close()


async def ask_for_configuration(address: SchedulerAddress) -> str:
    """Return the text of a running scheduler's /configz, kube-scheduler's or ours."""
    try:
        async with _asking(address, "shadow", "/configz") as connection:
            return (await connection.request("GET", "/configz")).decode("utf-8", "replace")
    except NotFound as error:
        raise SchedulerError(f"{address.url}: {' '.join(str(error).split())}") from error


async def ask_about_pod(address: SchedulerAddress, namespace: str, name: str) -> dict[str, Any]:
    """Return what a running scheduler knows of a pod; raise NotFound where it is neither queued nor placed there."""
    path = f"/ui/api/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"
    async with _asking(address, "why", path) as connection:
        answer = await _get(connection, address, path, _NOT_HERE)
    if "state" not in answer:
        raise SchedulerError(f"{address.url} answered with something that is no pod's story: is it a kubesched of our version?")
    return answer


async def ask_for_decisions_about(address: SchedulerAddress, namespace: str, name: str) -> list[dict[str, Any]]:
    """Return the decisions about a pod that a running scheduler has on record, newest first; none if it keeps none."""
    path = f"{_DECISIONS}/{quote(namespace, safe='')}/{quote(name, safe='')}"
    try:
        async with _asking(address, "decisions", f"/ui{path}") as connection:
            return _decisions_in(await _get(connection, address, path, _NO_RECORD), address)
    except NotFound:
        return []


async def ask_for_decisions(address: SchedulerAddress, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
    """Return the newest decisions that a running scheduler has on record and that a query asks for, page by page."""
    found: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    try:
        async with _asking(address, "decisions", f"/ui{_DECISIONS}") as connection:
            while len(found) < limit:
                words = {**query, "limit": str(min(limit - len(found), _PAGE)), **before}
                answer = await _get(connection, address, f"{_DECISIONS}?{urlencode(words)}", _NO_RECORD)
                found += _decisions_in(answer, address)
                if answer.get("next") is None:
                    break
                before = {"before": str(answer["next"])}
    except NotFound as error:
        raise SchedulerError(f"{address.url}: {error}") from error
    return found


def _decisions_in(answer: dict[str, Any], address: SchedulerAddress) -> list[dict[str, Any]]:
    decisions = answer.get("decisions")
    if not isinstance(decisions, list):
        raise SchedulerError(f"{address.url} answered with something that is no record: is it a kubesched of our version?")
    return decisions


async def _get(connection: Connection, address: SchedulerAddress, path: str, absence: str) -> dict[str, Any]:
    """Return an answer; raise NotFound where it says that what is asked for is not there, in words that contain `absence`."""
    try:
        answer = codec.decode_json(await connection.request("GET", path))
    except NotFound as error:
        if absence in str(error):
            raise
        raise SchedulerError(f"{address.url} does not know {path.partition('?')[0]}: is it a kubesched?") from error
    if not isinstance(answer, dict):
        raise SchedulerError(f"{address.url} answered with something that is no document: is it a kubesched of our version?")
    return answer
