"""Rows as an Arrow table and as a Parquet file, where pyarrow is installed.

In: rows, which may have different fields. Out: a column for each field, in the order of first use; empty where a row has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    import pyarrow


def check_arrow() -> None:
    """Raise SchedulerError if pyarrow is missing. Call it before a long run."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise SchedulerError("Arrow and Parquet need the extra: pip install 'kubesched[experiments]'") from error


def table_of(rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> pyarrow.Table:
    """Return rows as a table."""
    check_arrow()
    import pyarrow

    names = columns if columns is not None else dict.fromkeys(name for row in rows for name in row)
    return pyarrow.table({name: [row.get(name) for row in rows] for name in names})


def write_parquet(table: pyarrow.Table, file: str) -> None:
    """Write a table as a Parquet file."""
    import pyarrow.parquet

    try:
        pyarrow.parquet.write_table(table, file)
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror or error}") from error
