"""What commands that print data share: a document as JSON or YAML, warnings, and a bar for what takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from pathlib import Path

_PATIENCE_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.1
_MOST_ALIKE = 3


def print_document(document: Any, output: str) -> None:
    """Print a document as `json` or as `yaml`."""
    if output == "json":
        import json

        click.echo(json.dumps(document, indent=2))
    else:
        import yaml

        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), nl=False)


@contextmanager
def bar(label: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Give something to call with how much is done, as often as one likes: a bar appears after two seconds, if anybody looks
    at the output. Without a total it only moves."""
    from rich.console import Console
    from rich.progress import Progress

    started, shown = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task, is_watched, last = shown.add_task(label, total=total), sys.stdout.isatty() and sys.stderr.isatty(), started

    def done(count: float) -> None:
        nonlocal last
        now = time.monotonic()
        if not is_watched or now - last < _LOOK_EVERY_SECONDS:
            return
        last = now
        shown.update(task, completed=count)
        if not shown.live.is_started and now - started > _PATIENCE_SECONDS:
            shown.start()

    try:
        yield done
    finally:
        if shown.live.is_started:
            shown.stop()


@contextmanager
def warned() -> Iterator[None]:
    """Print what the engine logs meanwhile as warnings, each thing once, and of many like it only the first ones: what breaks
    for one pod breaks for all. The log of a dry run is its user's to read."""
    import logging

    said: dict[str, set[str]] = {}

    def emit(record: logging.LogRecord) -> None:
        text, alike = record.getMessage(), said.setdefault(str(record.msg), set())
        if text not in alike and len(alike) < _MOST_ALIKE:
            alike.add(text)
            warn(text)

    log, handler = logging.getLogger("kubesched"), logging.Handler(logging.WARNING)
    handler.emit = emit  # type: ignore[method-assign]
    log.addHandler(handler)
    propagated, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated


def fewer(counts: dict[str, int], most: int) -> str:
    """Return names and counts in one line, the largest first: `a x3, b, and 4 more`."""
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    shown = [name if count == 1 else f"{name} x{count}" for name, count in ranked[:most]]
    if len(ranked) > most:
        shown.append(f"and {len(ranked) - most} more")
    return ", ".join(shown)


def warn(text: str) -> None:
    """Say something on stderr that does not stop the command."""
    click.echo(f"Warning: {text}", err=True)


def write_file(file: Path, text: str) -> None:
    """Write a file that an option names."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from error
