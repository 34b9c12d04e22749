"""`kubesched run`: the scheduler; its flags are kube-scheduler's, and are read as kube-scheduler reads them."""

from __future__ import annotations

import shutil

import click
from click.shell_completion import CompletionItem

NAME = "kubesched run"


class _Run(click.Command):
    """A command whose flags are not click's."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if not incomplete.startswith("-"):
            return []
        from kubesched.server.options.usage import ALL_FLAGS

        return [CompletionItem(name) for flag in ALL_FLAGS if (name := f"--{flag.name}").startswith(incomplete)]


@click.command(
    "run", cls=_Run, add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Run the scheduler; takes kube-scheduler's flags (see `run --help`)."""
    from kubesched.server.options.usage import asks_for_help, help_text

    columns = shutil.get_terminal_size().columns
    if asks_for_help(words):
        click.echo(help_text(columns=columns, command=NAME), nl=False)
        return
    from kubesched.tools.run.program import run_scheduler

    run_scheduler(words, columns, NAME)
