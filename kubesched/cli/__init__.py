"""The command `kubesched`: a file a command, with its options, the call of the tool that does the work, and what is printed.

A command's file is imported when the command is called, completed or asked for help. It imports click, `options` and what
prints (`layout`, `printing`), which are light; the tool, and with it NumPy, aiohttp and the engine, is imported in the body of
the command. So `--help` and completion answer at once. This is the only place where imports stand inside functions.

Exit codes: 0 done, 1 a failure explained in one line on stderr, 2 wrong usage, 130 and 141 as a shell reports a program
that Ctrl-C or a closed pipe has ended. No traceback reaches a user.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from kubesched.cli.completion import COMPLETE_VARIABLE, PROGRAM
from kubesched.cli.group import INTERRUPTED, LazyGroup
from kubesched.cli.version import refuse_alone, version_options
from kubesched.errors import SchedulerError

COMMANDS = {
    "apiserver": "Serve a Kubernetes API from this process.",
    "bench": "Measure speed, pauses and endurance.",
    "capacity": "Count how many more of a pod fit.",
    "compare": "Compare two configurations on the same cluster or scenario.",
    "completion": "Print the completion script of a shell.",
    "config": "Check, show or convert a configuration.",
    "conformance": "Run golden cases of kube-scheduler.",
    "decisions": "Show recorded decisions and their reasons.",
    "demo": "Run an embedded cluster with the scheduler and its page.",
    "observe": "Show a cluster beside its scheduler, read-only.",
    "plan": "Show where the pods of manifests would go.",
    "plugins": "List, create and check plugins.",
    "rebalance": "Plan pod moves towards a goal.",
    "replay": "Repeat the decisions of a log or snapshot.",
    "run": "Run the scheduler, with kube-scheduler's flags.",
    "schema": "Print the JSON Schema of a file.",
    "serve": "Answer fits, place and what-if over HTTP and gRPC.",
    "shadow": "Compare with a live scheduler, read-only.",
    "simulate": "Run a scenario in virtual time.",
    "snapshot": "Write the state of a cluster to a file.",
    "sweep": "Run many simulations.",
    "tune": "Search for the best weights and arguments.",
    "why": "Explain why a pod is pending, or why it is on its node.",
}


@version_options(PROGRAM)
@click.group(
    cls=LazyGroup, summaries=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
def cli(verbose: bool) -> None:
    """A Kubernetes scheduler that decides as kube-scheduler does, explains itself, and simulates."""
    refuse_alone(verbose)


def main() -> None:
    """Run the command line."""
    run_program(cli, PROGRAM)


def run_program(group: click.Group, name: str, words: list[str] | None = None, defaults: dict[str, Any] | None = None) -> None:
    """Run a group of commands; our errors become one line and exit code 1. `defaults` has options by command."""
    try:
        group(words, prog_name=name, complete_var=COMPLETE_VARIABLE, default_map=defaults)
    except SchedulerError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except NotImplementedError:
        if sys.platform != "win32":
            raise
        click.echo("Error: this command runs until a signal ends it, and Windows has none: use Linux, macOS or WSL", err=True)
        sys.exit(1)
    except KeyboardInterrupt:  # in the moments before a command runs, and after
        sys.exit(INTERRUPTED)
