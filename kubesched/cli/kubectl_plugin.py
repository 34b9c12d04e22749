"""`kubectl kubesched`: the commands that only read a cluster, as a plugin of kubectl.

kubectl runs the program `kubectl-kubesched` for `kubectl kubesched ...`, and `kubectl-kubesched_why` for
`kubectl kubesched-why ...`: any file of such a name may be a link to this one. To complete a line it runs
`kubectl_complete-kubesched` with the words after the plugin's name, and reads a candidate a line, then `:4` (no files) or `:0`.
Nothing that writes to a cluster is offered here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click
from click.shell_completion import ShellComplete

from kubesched.cli import COMMANDS as ALL
from kubesched.cli import run_program
from kubesched.cli.group import LazyGroup
from kubesched.cli.version import refuse_alone, version_options

PLUGIN = "kubesched"
PROGRAM = f"kubectl-{PLUGIN}"
COMMANDS = {name: ALL[name] for name in ("capacity", "compare", "decisions", "plan", "shadow", "simulate", "snapshot", "why")}
ASKING = ("decisions", "why")
"""The commands that a running `observe` answers, where there is one."""
COMPLETE = "__complete"
"""The command by which the completion of a single-file plugin asks it."""
NO_FILES, MAY_BE_FILES = ":4", ":0"
"""What kubectl is to do besides: cobra's directives."""


@version_options(f"kubectl {PLUGIN}")
@click.group(
    cls=LazyGroup, summaries=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
def cli(verbose: bool) -> None:
    """Ask why pods wait, where others would go, and how much more fits. The cluster is only read."""
    refuse_alone(verbose)


def command_of(program: str) -> list[str]:
    """Return the command that a program's name stands for: `kubectl-kubesched_why` is `why`, `kubectl-kubesched` none."""
    name = Path(program).name.removesuffix(".exe").removeprefix(PROGRAM)
    return [name[1:].replace("_", "-")] if name[:1] in ("_", "-") and name[1:] else []


def main() -> None:
    """Run as the plugin, under whatever name it was called."""
    if sys.argv[1:2] == [COMPLETE]:
        complete(sys.argv[2:])
        return
    named = command_of(sys.argv[0])
    run_program(cli, " ".join(["kubectl", "-".join([PLUGIN, *named])]), [*named, *sys.argv[1:]], observer_options())


def observer_options() -> dict[str, dict[str, object]]:
    """Return the options by which commands ask a running `observe`, or scheduler: the environment says where it is. On a
    loopback address it is reached through `kubectl port-forward`, which the API server vouches for."""
    server = os.environ.get("KUBESCHED_SERVER", "")
    if not server:
        return {}
    is_near = urlsplit(server).hostname in ("localhost", "127.0.0.1", "::1")
    options = {"server": server, "token": os.environ.get("KUBESCHED_TOKEN", ""), "is_trusting": is_near}
    return dict.fromkeys(ASKING, options)


def complete(words: list[str] | None = None) -> None:
    """Print what the last of the words may become."""
    click.echo("\n".join(completions(sys.argv[1:] if words is None else words)))


def completions(words: list[str]) -> list[str]:
    """Return the candidates for the last of the words, each with its help after a tab, and what else kubectl is to do."""
    *before, incomplete = words or [""]
    found = ShellComplete(cli, {}, PLUGIN, "").get_completions(before, incomplete)
    plain = [item for item in found if item.type == "plain"]
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in plain]
    return [*lines, NO_FILES if len(plain) == len(found) else MAY_BE_FILES]
