"""Write rows to a file while they come: JSON lines, CSV, or a Parquet table at the end."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.solver.arrow import check_arrow, table_of, write_parquet

RowWriter = Callable[[dict[str, Any]], None]


def rows_to(file: Path, files: contextlib.ExitStack, as_text: Callable[[IO[str]], RowWriter]) -> RowWriter:
    """Return what writes rows to a file: as text, row by row, or as a Parquet table at the end if it is named so."""
    is_table = file.suffix == ".parquet"
    if is_table:
        check_arrow()
    try:
        opened = files.enter_context(file.open("w", newline="", encoding="utf-8"))
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from error
    if not is_table:
        return as_text(opened)
    rows: list[dict[str, Any]] = []
    files.callback(lambda: write_parquet(table_of(rows), str(file)))
    return rows.append


def json_lines(file: IO[str]) -> RowWriter:
    """Return what writes a row as a line of JSON."""
    encode = msgspec.json.Encoder().encode

    def write(event: dict[str, Any]) -> None:
        file.write(encode(event).decode() + "\n")

    return write


def csv_rows(file: IO[str]) -> RowWriter:
    """Return what writes rows as CSV, with a title from the first one."""
    writer = csv.writer(file, lineterminator="\n")
    is_first = True

    def write(row: dict[str, Any]) -> None:
        nonlocal is_first
        if is_first:
            writer.writerow(row)
            is_first = False
        writer.writerow(row.values())

    return write
