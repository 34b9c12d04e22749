"""The release to emulate if no flag names one: that of the API server.

In: the command line. Out: a release that is known here; None if the command line names one, needs no server, or the server
does not answer. Gates and configuration depend on the release, so the server is asked before they are read. Errors in the
command line are reported later, by those who need it. It waits five seconds at most.
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
    """Return what the API server of a command line reports about itself; None if its release is not to be emulated."""
    try:
        parsed = parse(ALL_FLAGS, words)
        if any(name in parsed.given for name in _SAYS_ITSELF):
            return None
        return _ask(find_credentials(_kubeconfig(parsed), master=parsed["master"]))
    except (SchedulerError, UsageError, OSError):
        return None


def release_of(source: CredentialSource) -> Version | None:
    """Return the release to emulate for the API server of these credentials; None if it does not report one."""
    served = _ask(source)
    return nearest_recorded(served.minor) if served is not None else None


def what_differs(minor: int, emulated: Version) -> str:
    """Return what is different if a release is emulated for a server of 1.MINOR."""
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
    """Return what a server reports about itself; None if it has no release or does not answer."""
    try:
        served = asyncio.run(asyncio.wait_for(_served(source), _PATIENCE_SECONDS))
    except (SchedulerError, OSError, TimeoutError):
        return None
    return served if served.minor else None


def _kubeconfig(parsed: Parsed) -> str:
    """Return the kubeconfig that will be used: that of the file, or of the flag if there is no file."""
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
