"""What commands that print data share: a document as JSON or YAML, and a bar for what takes longer than a moment."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import yaml
from rich.console import Console
from rich.progress import Progress

_PATIENCE_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.1
_MOST_ALIKE = 3


def print_document(document: dict[str, Any], output: str) -> None:
    """Print a document as `json` or as `yaml`."""
    if output == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), nl=False)


@contextmanager
def bar(label: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Give something to call with how much is done, as often as one likes: a bar appears after two seconds, if anybody looks
    at the output. Without a total it only moves."""
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


class _Warnings(logging.Handler):
    """Says each thing once, and of many like it only the first ones: what breaks for one pod breaks for all."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[str, set[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text, said = record.getMessage(), self._said.setdefault(str(record.msg), set())
        if text not in said and len(said) < _MOST_ALIKE:
            said.add(text)
            click.echo(f"Warning: {text}", err=True)


@contextmanager
def warned() -> Iterator[None]:
    """Say what the engine logs meanwhile as warnings, a line each: the log of a dry run is its user's to read."""
    log, handler = logging.getLogger("kubesched"), _Warnings()
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
