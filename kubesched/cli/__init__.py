"""The command `kubesched`: one file a command, loaded only when it is called.

Exit codes: 0 done, 1 a failure explained in one line on stderr, 2 wrong usage. No traceback reaches a user.
"""

from __future__ import annotations

import importlib
import sys

import click

from kubesched.errors import SchedulerError

COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("kubesched.cli.bench", "bench_group"),
    "capacity": ("kubesched.cli.capacity", "capacity_command"),
    "compare": ("kubesched.cli.compare", "compare_command"),
    "demo": ("kubesched.cli.demo", "demo_command"),
    "plan": ("kubesched.cli.plan", "plan_command"),
    "plugins": ("kubesched.cli.plugins", "plugins_group"),
    "replay": ("kubesched.cli.replay", "replay_command"),
    "run": ("kubesched.cli.run", "run_command"),
    "simulate": ("kubesched.cli.simulate", "simulate_command"),
    "snapshot": ("kubesched.cli.snapshot", "snapshot_command"),
    "why": ("kubesched.cli.why", "why_command"),
    "conformance": ("kubesched.cli.conformance", "conformance_command"),
    "config": ("kubesched.cli.config", "config_group"),
    "apiserver": ("kubesched.cli.apiserver", "apiserver_command"),
}
"""Command -> where it lives. Importing all of them would make `--help` slow."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = COMMANDS.get(cmd_name)
        if where is None:
            return None
        module, name = where
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="kubesched", prog_name="kubesched")
def cli() -> None:
    """A Kubernetes scheduler that decides as kube-scheduler does, explains itself, and simulates."""


def main() -> None:
    """Run the command line; turn our errors into one line and exit code 1."""
    try:
        cli(prog_name="kubesched")
    except SchedulerError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
