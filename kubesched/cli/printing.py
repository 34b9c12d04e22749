"""What commands that print data share: a document as JSON or YAML, warnings, and a bar for what takes longer than a moment."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from pathlib import Path

_PATIENCE_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.1
_MOST_ALIKE = 3
_BAR_WIDTH = 24
_CLEAR_TO_END = "\x1b[K"


def print_document(document: Any, output: str) -> None:
    """Print a document as `json` or as `yaml`."""
    if output == "json":
        import json

        click.echo(json.dumps(document, indent=2))
    else:
        import yaml

        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), nl=False)


class Done(Protocol):
    """What is called with how much is done, as often as one likes."""

    def __call__(self, count: float, total: float | None = None, note: str = "") -> None: ...


@contextmanager
def bar(label: str, total: float | None, patience_seconds: float = _PATIENCE_SECONDS) -> Iterator[Done]:
    """Show on stderr how much is done, once that takes longer than a moment and if a person looks at the output. Without a
    total it only counts. The line is gone at the end."""
    started, is_watched = time.monotonic(), sys.stdout.isatty() and sys.stderr.isatty()
    shown_at = started + patience_seconds - _LOOK_EVERY_SECONDS
    is_shown = False

    def done(count: float, total: float | None = total, note: str = "") -> None:
        nonlocal shown_at, is_shown
        now = time.monotonic()
        if not is_watched or now - shown_at < _LOOK_EVERY_SECONDS:
            return
        shown_at, is_shown = now, True
        line = f"{label}  {count:,.0f}"
        if total:
            filled = round(min(count / total, 1.0) * _BAR_WIDTH)
            line = f"{label}  [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]  {count:,.0f}/{total:,.0f}"
        line += f"  {note}" * bool(note) + f"  {now - started:.0f} s"
        click.echo(f"\r{line[: shutil.get_terminal_size().columns - 1]}{_CLEAR_TO_END}", err=True, nl=False, color=True)

    try:
        yield done
    finally:
        if is_shown:
            click.echo(f"\r{_CLEAR_TO_END}", err=True, nl=False, color=True)


@contextmanager
def warned() -> Iterator[None]:
    """Print what the engine logs meanwhile as warnings, each thing once, and of many like it only the first ones: what breaks
    for one pod breaks for all. The log of a dry run is its user's to read."""
    import logging

    printed: dict[str, set[str]] = {}

    def emit(record: logging.LogRecord) -> None:
        text, alike = record.getMessage(), printed.setdefault(str(record.msg), set())
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
