"""The command `kubesched`: what each command takes is in `commands`, the work beside it, both loaded only when needed.

Exit codes: 0 done, 1 a failure explained in one line on stderr, 2 wrong usage, 130 and 141 as a shell reports a program
that Ctrl-C or a closed pipe has ended. No traceback reaches a user.
"""

from __future__ import annotations

import sys

import click

from kubesched.cli.commands.completion import COMPLETE_VARIABLE, PROGRAM
from kubesched.cli.commands.lazy import INTERRUPTED, LazyGroup
from kubesched.errors import SchedulerError

COMMANDS = (
    "apiserver",
    "bench",
    "capacity",
    "compare",
    "completion",
    "config",
    "conformance",
    "decisions",
    "demo",
    "plan",
    "plugins",
    "rebalance",
    "replay",
    "run",
    "schema",
    "shadow",
    "simulate",
    "snapshot",
    "sweep",
    "tune",
    "why",
)


@click.group(
    cls=LazyGroup,
    package="kubesched.cli.commands",
    names=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="kubesched", prog_name=PROGRAM)
def cli() -> None:
    """A Kubernetes scheduler that decides as kube-scheduler does, explains itself, and simulates."""


def main() -> None:
    """Run the command line."""
    run_program(cli, PROGRAM)


def run_program(group: click.Group, name: str, words: list[str] | None = None) -> None:
    """Run a group of commands under a name; turn our errors into one line and exit code 1."""
    try:
        group(words, prog_name=name, complete_var=COMPLETE_VARIABLE)
    except SchedulerError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:  # in the moments before a command runs, and after
        sys.exit(INTERRUPTED)
