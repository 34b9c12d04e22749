"""The text of `run --help`, and all flags. Light: it imports no part of the scheduler."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from kubesched.server.options.flags import FLAGS
from kubesched.server.options.flagset import UsageError, parse, usage
from kubesched.server.options.own_flags import LEGACY_FLAGS, OWN_FLAGS

PROGRAM = "kube-scheduler"
ALL_FLAGS = (*FLAGS, *OWN_FLAGS, *LEGACY_FLAGS)
STORY = """\
Runs the scheduler: it follows a cluster, finds a node for each pod that asks for it by spec.schedulerName, and binds
the pod. It takes kube-scheduler's place, or works beside it under another name. All flags are optional: without
--config or --kubeconfig it schedules for the cluster that it runs in.
"""


def help_text(*, columns: int = 0, command: str = PROGRAM) -> str:
    """Return what --help prints."""
    story = textwrap.fill(STORY, columns) if columns else STORY.rstrip()
    return f"{story}\n\n{usage_text(columns=columns, command=command)}"


def usage_text(*, columns: int = 0, command: str = PROGRAM) -> str:
    return f"{usage(ALL_FLAGS, command, columns)}\nExample:  {command} --config scheduler.yaml --v=2\n"


def asks_for_help(words: Sequence[str]) -> bool:
    """Return whether a command line asks for help and has no errors."""
    try:
        return bool(parse(ALL_FLAGS, words)["help"])
    except UsageError:
        return False  # whoever runs it says what is wrong
