"""What `kubesched run` takes: kube-scheduler's flags, read as kube-scheduler reads them; the work is in `kubesched.cli.run`."""

from __future__ import annotations

import importlib
import shutil

import click
from click.shell_completion import CompletionItem

NAME = "kubesched run"


class _Run(click.Command):
    """A command whose flags are not click's."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if not incomplete.startswith("-"):
            return []
        flags = importlib.import_module("kubesched.server.options.usage").ALL_FLAGS
        return [CompletionItem(name) for flag in flags if (name := f"--{flag.name}").startswith(incomplete)]


@click.command(
    "run",
    cls=_Run,
    short_help="Run the scheduler, with kube-scheduler's flags.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Run the scheduler; takes kube-scheduler's flags (see `run --help`)."""
    columns = shutil.get_terminal_size().columns
    usage = importlib.import_module("kubesched.server.options.usage")
    if usage.asks_for_help(words):
        click.echo(usage.help_text(columns=columns, command=NAME), nl=False)
    else:
        importlib.import_module("kubesched.cli.run").run_scheduler(words, columns, NAME)
