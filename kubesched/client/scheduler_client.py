"""Asking a running scheduler: one GET on its secure port or on a demo's page port, and its answer.

In: an address, how to be let in, and whom to trust. Out: what it says of a pod, or its configuration. A refusal is one line
that says what to do about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from kubesched.api import codec
from kubesched.client.connection import connect
from kubesched.client.credentials import Credentials
from kubesched.errors import ApiError, ConfigError, Forbidden, NotFound, SchedulerError, Unauthorized

_NOT_HERE = "neither queued nor placed here"


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
    """Return what a running scheduler knows of a pod."""
    connection = await connect(address, name="why")
    path = f"/ui/api/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"
    try:
        answer = codec.decode_json(await connection.request("GET", path))
    except NotFound as error:
        if _NOT_HERE in str(error):
            raise SchedulerError(f"pod {namespace}/{name} is {_NOT_HERE}, says the scheduler at {address.url}") from error
        raise SchedulerError(f"{address.url} does not know {path}: is it a kubesched?") from error
    except Unauthorized as error:
        raise SchedulerError(f"{address.url} asks who we are: give --token") from error
    except Forbidden as error:
        raise SchedulerError(f"{address.url} does not let us in: the token's user may not get {path}") from error
    except ApiError as error:
        raise SchedulerError(f"{address.url}: {' '.join(str(error).split())}") from error
    finally:
        await connection.close()
    if not isinstance(answer, dict) or "state" not in answer:
        raise SchedulerError(f"{address.url} answered with something that is no pod's story: is it a kubesched of our version?")
    return answer
