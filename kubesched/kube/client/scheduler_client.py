"""Asking a running scheduler: one GET on its secure port or on a demo's page port, and its answer.

In: an address, how to be let in, and whom to trust. Out: what it says of a pod, or its configuration. A refusal is one line
that says what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
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


async def ask_for_configuration(address: SchedulerAddress) -> str:
    """Return the text of a running scheduler's /configz, kube-scheduler's or ours."""
    connection = await connect(address, name="shadow")
    try:
        return (await connection.request("GET", "/configz")).decode("utf-8", "replace")
    except Unauthorized as error:
        raise SchedulerError(f"{address.url} asks who we are: give --token") from error
    except Forbidden as error:
        raise SchedulerError(f"{address.url} does not let us in: the token's user may not get /configz") from error
    except ApiError as error:
        raise SchedulerError(f"{address.url}: {' '.join(str(error).split())}") from error
    finally:
        await connection.close()


async def ask_about_pod(address: SchedulerAddress, namespace: str, name: str) -> dict[str, Any]:
    """Return what a running scheduler knows of a pod; raise NotFound where it is neither queued nor placed there."""
    connection = await connect(address, name="why")
    try:
        answer = await _get(connection, address, f"/ui/api/pods/{quote(namespace, safe='')}/{quote(name, safe='')}", _NOT_HERE)
    finally:
        await connection.close()
    if "state" not in answer:
        raise SchedulerError(f"{address.url} answered with something that is no pod's story: is it a kubesched of our version?")
    return answer


async def ask_for_decisions_about(address: SchedulerAddress, namespace: str, name: str) -> list[dict[str, Any]]:
    """Return the decisions about a pod that a running scheduler has on record, newest first; none if it keeps none."""
    connection = await connect(address, name="decisions")
    try:
        path = f"{_DECISIONS}/{quote(namespace, safe='')}/{quote(name, safe='')}"
        return _decisions_in(await _get(connection, address, path, _NO_RECORD), address)
    except NotFound:
        return []
    finally:
        await connection.close()


async def ask_for_decisions(address: SchedulerAddress, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
    """Return the newest decisions that a running scheduler has on record and that a query asks for, page by page."""
    connection = await connect(address, name="decisions")
    found: list[dict[str, Any]] = []
    before: int | None = None
    try:
        while len(found) < limit:
            words = {
                **query,
                "limit": str(min(limit - len(found), _PAGE)),
                **({} if before is None else {"before": str(before)}),
            }
            answer = await _get(connection, address, f"{_DECISIONS}?{urlencode(words)}", _NO_RECORD)
            found += _decisions_in(answer, address)
            before = answer.get("next")
            if before is None:
                break
    except NotFound as error:
        raise SchedulerError(f"{address.url}: {error}") from error
    finally:
        await connection.close()
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
    except Unauthorized as error:
        raise SchedulerError(f"{address.url} asks who we are: give --token") from error
    except Forbidden as error:
        where = path.partition("?")[0]
        raise SchedulerError(f"{address.url} does not let us in: the token's user may not get {where}") from error
    except ApiError as error:
        raise SchedulerError(f"{address.url}: {' '.join(str(error).split())}") from error
    if not isinstance(answer, dict):
        raise SchedulerError(f"{address.url} answered with something that is no document: is it a kubesched of our version?")
    return answer
