"""Which release to emulate where no flag says so: that of the API server.

In: the command line. Out: a release that we know, or None: the command line names one itself, or wants no server, or the
server cannot be asked just now. Gates and configuration are read as the release has them, so it is asked before either; what
is wrong with the command line is for others to say. Never waits long: a server that is away is found out about later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kubesched.cli.flagset import Parsed, UsageError, parse
from kubesched.cli.usage import ALL_FLAGS
from kubesched.client.connection import connect
from kubesched.client.credentials import CredentialSource, find_credentials
from kubesched.client.discovery import discover
from kubesched.config.documents import Object
from kubesched.config.versions import Version, nearest_recorded
from kubesched.config.wire import plain
from kubesched.config.yamltext import read_yaml
from kubesched.errors import SchedulerError

_PATIENCE_SECONDS = 5.0
_SAYS_ITSELF = ("help", "version", "write-config-to", "emulated-version", "legacy-version")


def release_of_server(words: Sequence[str]) -> Version | None:
    """Return the release of the API server that a command line leads to, as near as we can emulate it."""
    try:
        parsed = parse(ALL_FLAGS, words)
        if any(name in parsed.given for name in _SAYS_ITSELF):
            return None
        return release_of(find_credentials(_kubeconfig(parsed), master=parsed["master"]))
    except (SchedulerError, UsageError, OSError):
        return None


def release_of(source: CredentialSource) -> Version | None:
    """Return the release of the API server that credentials are for, as near as we can emulate it; None if it does not say."""
    try:
        minor = asyncio.run(asyncio.wait_for(_minor(source), _PATIENCE_SECONDS))
    except (SchedulerError, OSError, TimeoutError):
        return None
    return nearest_recorded(minor)


def _kubeconfig(parsed: Parsed) -> str:
    """Return the kubeconfig that will be used: a file's own, or the flag's where there is no file."""
    if not parsed["config"]:
        return str(parsed["kubeconfig"])
    tree, _ = read_yaml(Path(parsed["config"]).read_text(encoding="utf-8", errors="replace"))
    document = plain(tree) if isinstance(tree, Object) else {}
    connection = document.get("clientConnection") if isinstance(document, dict) else None
    return str(connection.get("kubeconfig") or "") if isinstance(connection, dict) else ""


async def _minor(source: CredentialSource) -> int:
    connection = await connect(source, name="version")
    try:
        return (await discover(connection, ())).minor
    finally:
        await connection.close()
