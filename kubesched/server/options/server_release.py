"""Which release to emulate where no flag says so: that of the API server.

In: the command line. Out: a release that we know, or None: the command line names one itself, or wants no server, or the
server cannot be asked just now. Gates and configuration are read as the release has them, so it is asked before either; what
is wrong with the command line is for others to say. Never waits long: a server that is away is found out about later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kubesched.errors import SchedulerError
from kubesched.kube.client import CredentialSource, Served, connect, discover, find_credentials
from kubesched.scheduler.config import (
    OLDEST_EMULATED,
    OUR_GATES,
    Gates,
    Object,
    Version,
    nearest_recorded,
    plain,
    read_yaml,
    text_of,
)
from kubesched.server.options.flagset import Parsed, UsageError, parse
from kubesched.server.options.usage import ALL_FLAGS

_PATIENCE_SECONDS = 5.0
_SAYS_ITSELF = ("help", "version", "write-config-to", "emulated-version", "legacy-version")


def server_of(words: Sequence[str]) -> Served | None:
    """Return what the API server that a command line leads to says of itself; None where its release is not to be emulated."""
    try:
        parsed = parse(ALL_FLAGS, words)
        if any(name in parsed.given for name in _SAYS_ITSELF):
            return None
        return _ask(find_credentials(_kubeconfig(parsed), master=parsed["master"]))
    except (SchedulerError, UsageError, OSError):
        return None


def release_of(source: CredentialSource) -> Version | None:
    """Return the release of the API server that credentials are for, as near as we can emulate it; None if it does not say."""
    served = _ask(source)
    return nearest_recorded(served.minor) if served is not None else None


def what_differs(minor: int, emulated: Version) -> str:
    """Return what is different when a release is emulated for a server of 1.MINOR, as clauses."""
    if minor > emulated[1]:
        return f"what 1.{minor} changed is not known here"
    known = max((1, minor), OLDEST_EMULATED)
    its, ours = Gates.defaults(known).states, Gates.defaults(emulated).states
    gates = sorted(name for name in OUR_GATES if its.get(name, False) != ours.get(name, False))
    unknown = "" if known == (1, minor) else f"; gates of releases before {text_of(known)} are not known here"
    return (
        f"decisions are those of {text_of(emulated)}; other than in {text_of(known)} by default are {', '.join(gates)}{unknown}"
    )


def _ask(source: CredentialSource) -> Served | None:
    """Return what the server says of itself; None if it does not say its release, or is away."""
    try:
        served = asyncio.run(asyncio.wait_for(_served(source), _PATIENCE_SECONDS))
    except (SchedulerError, OSError, TimeoutError):
        return None
    return served if served.minor else None


def _kubeconfig(parsed: Parsed) -> str:
    """Return the kubeconfig that will be used: a file's own, or the flag's where there is no file."""
    if not parsed["config"]:
        return str(parsed["kubeconfig"])
    tree, _ = read_yaml(Path(parsed["config"]).read_text(encoding="utf-8", errors="replace"))
    document = plain(tree) if isinstance(tree, Object) else {}
    connection = document.get("clientConnection") if isinstance(document, dict) else None
    return str(connection.get("kubeconfig") or "") if isinstance(connection, dict) else ""


async def _served(source: CredentialSource) -> Served:
    connection = await connect(source, name="version")
    try:
        return await discover(connection, ())
    finally:
        await connection.close()
