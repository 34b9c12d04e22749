"""Commands whose work is imported when they are called, and a group whose commands are, too."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

INTERRUPTED = 130
CLOSED_PIPE = 141
"""What a shell reports of a program that SIGINT or SIGPIPE ended."""


def runs(where: str) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Let a command whose help is the decorated function's docstring do what `module:function` does."""
    module, _, name = where.partition(":")

    def decorate(declared: Callable[..., None]) -> Callable[..., Any]:
        @functools.wraps(declared)
        def call(**given: Any) -> Any:
            return getattr(importlib.import_module(module), name)(**given)

        call.__dict__["runs"] = where
        return call

    return decorate


class LazyGroup(click.Group):
    """A group whose commands are the modules of a package, and which ends as a shell expects it to."""

    def __init__(self, *args: Any, package: str = "", names: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._package, self._names = package, names

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._names:
            return None
        command: click.Command = importlib.import_module(f"{self._package}.{cmd_name}").command
        return command

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
