"""How commands print: text in columns that breaks between words and never inside one, and is not padded.

In: titles and rows, or sentences. Out: lines on stdout. On a terminal lines are as wide as it is; what does not fit beside
the other columns goes below them. In a pipe nothing is wrapped: a row is a line, for grep and awk to read.
Colours only on a terminal, and not with NO_COLOR.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

_GAP = "  "
_INDENT = "    "
_LEAST_TEXT = 40
"""Columns below which a last column of sentences stands better under its row than beside it."""


def columns() -> int | None:
    """Return how wide a line may be; None in a pipe, where nothing is to be wrapped."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def say(text: str = "", *, indent: str = "", hang: str = "", **style: bool | str) -> None:
    """Print sentences: the first line after `indent`, what is left of it after `hang` more."""
    for line in wrapped(text, columns(), indent, indent + hang):
        click.echo(styled(line, **style))


def styled(text: str, **style: bool | str) -> str:
    """Return a text in a style of `click.style`; plain if nobody wants colours."""
    return click.style(text, **style) if style and not os.environ.get("NO_COLOR") else text  # type: ignore[arg-type]


def wrapped(text: str, width: int | None, first: str = "", rest: str = "") -> list[str]:
    """Return the lines of a text; a word that is wider than the width stays whole."""
    import textwrap

    lines: list[str] = []
    for paragraph in text.split("\n"):
        if width is None or len(first) + len(paragraph) <= width:
            lines.append((first + paragraph).rstrip())
        else:
            lines += textwrap.wrap(
                paragraph,
                max(width, len(rest) + 1),
                initial_indent=first,
                subsequent_indent=rest,
                break_long_words=False,
                break_on_hyphens=False,
            ) or [first.rstrip()]
        first = rest
    return lines


def print_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), sentences: bool = False
) -> None:
    """Print rows under their titles. `right`: columns of numbers. `sentences`: the last column may be wrapped."""
    for number, line in enumerate(table(titles, rows, columns(), right=right, sentences=sentences)):
        click.echo(styled(line, dim=True) if number == 0 and any(titles) else line)


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None,
    *,
    right: Sequence[int] = (),
    sentences: bool = False,
) -> list[str]:
    """Return the lines of a table. If it is too wide and has no last column to wrap, each row becomes a list of its fields."""
    n_fixed = len(titles) - 1 if sentences else len(titles)
    all_rows = [titles, *rows] if any(titles) else rows
    widths = [max((len(row[i]) for row in all_rows), default=0) for i in range(n_fixed)]
    taken = sum(widths) + len(_GAP) * (n_fixed - 1)

    def fixed(row: Sequence[str]) -> str:
        return _GAP.join(row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in range(n_fixed))

    if not sentences:
        return _as_lists(titles, rows) if width is not None and taken > width else [fixed(row).rstrip() for row in all_rows]
    lines: list[str] = []
    is_below = width is not None and width - taken - len(_GAP) < _LEAST_TEXT
    for row in all_rows:
        start, text = fixed(row), row[-1]
        if is_below:
            lines.append(start.rstrip())
            lines += wrapped(text, width, _INDENT, _INDENT) if text and row is not titles else []
        else:
            lines += wrapped(text, width, start + _GAP, " " * (taken + len(_GAP)))
    return lines


def _as_lists(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each row as a line a field, with an empty line between rows."""
    widest = max(map(len, titles))
    blocks = [[f"{title.ljust(widest)}{_GAP}{cell}".rstrip() for title, cell in zip(titles, row, strict=True)] for row in rows]
    return [line for number, block in enumerate(blocks) for line in ([""] if number else []) + block]
