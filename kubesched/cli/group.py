"""A group of commands that imports a command only when it is called, and that ends as a shell expects."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

INTERRUPTED = 130
CLOSED_PIPE = 141
"""What a shell reports of a program that SIGINT or SIGPIPE ended."""


class LazyGroup(click.Group):
    """A group whose commands are modules of `kubesched.cli`. `summaries` has a line of help for each: neither `--help` nor the
    completion of a command's name imports a command."""

    def __init__(self, *args: Any, summaries: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return None
        command: click.Command = importlib.import_module(f"kubesched.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [CompletionItem(name, help=text) for name, text in self._summaries.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _ends():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _ends():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@contextlib.contextmanager
def _ends() -> Iterator[None]:
    """Turn Ctrl-C and a reader that went away into exit codes; click would make 1 of both."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # What is still buffered has nowhere to go: the interpreter would complain about it at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(CLOSED_PIPE) from None
