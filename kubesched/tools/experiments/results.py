"""What came of an experiment, as tables.

In: trials and their outcomes. Out: one row a trial, as CSV, Parquet or Arrow, and in notebooks; means with confidence
intervals over seeds, and differences from a baseline that are paired: seed by seed, so that what all configurations met
alike falls out. Rows stand in the order of the trials, whoever ran them: the same experiment gives the same bytes.
"""

from __future__ import annotations

import csv
import html
import importlib
import importlib.util
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kubesched.errors import SchedulerError
from kubesched.solver.arrow import table_of, write_parquet
from kubesched.tools.experiments.experiment import Trial
from kubesched.tools.experiments.trial import Outcome

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]
Group = tuple[str, ...]
"""What a mean is taken over the seeds of: scenario, configuration, and the values of the parameters."""
_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
    2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for a two-sided interval of 95 %, by degrees of freedom from 1 on; beyond these 1.96 will do."""


class Estimate(NamedTuple):
    """A mean over seeds, and how far the truth may lie from it (95 %); infinite for a single seed."""

    mean: float
    half_width: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Return the estimate from values that were drawn independently, at least one."""
        n = len(values)
        mean = math.fsum(values) / n
        if n == 1:
            return cls(mean, math.inf, 1)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
        factor = _T_95[n - 2] if n - 2 < len(_T_95) else 1.96
        return cls(mean, factor * deviation / math.sqrt(n), n)

    def __str__(self) -> str:
        spread = f" ± {self.half_width:.3g}" if math.isfinite(self.half_width) else ""
        return f"{self.mean:.4g}{spread}"

    @property
    def is_other_than_zero(self) -> bool:
        """Return whether the interval leaves zero out."""
        return abs(self.mean) > self.half_width


@dataclass(frozen=True)
class Results:
    """The rows of an experiment."""

    rows: tuple[Row, ...]
    parameters: tuple[str, ...] = ()
    baseline: str = ""

    @classmethod
    def of(cls, trials: Iterable[Trial], outcomes: Mapping[int, Outcome], baseline: str = "") -> Results:
        """Put together what came of trials; those without an outcome are left out."""
        rows: list[Row] = []
        parameters: tuple[str, ...] = ()
        for i, trial in enumerate(trials):
            parameters = tuple(path for path, _ in trial.parameters)
            if i in outcomes:
                rows.append(
                    {
                        "scenario": trial.scenario,
                        "configuration": trial.configuration,
                        **{path: _plain(value) for path, value in trial.parameters},
                        "seed": trial.seed,
                        **outcomes[i].figures,
                        "error": outcomes[i].error,
                    }
                )
        return cls(tuple(rows), parameters, baseline)

    @property
    def columns(self) -> list[str]:
        """Return the names of all columns; a figure that only some trials have stands where it first came."""
        first = ["scenario", "configuration", *self.parameters, "seed"]
        figures = dict.fromkeys(name for row in self.rows for name in row if name not in first and name != "error")
        return [*first, *figures, "error"]

    @property
    def errors(self) -> list[Row]:
        """Return the rows of trials that failed."""
        return [row for row in self.rows if row["error"]]

    # Tables of other libraries

    def to_csv(self) -> str:
        """Return the rows as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table."""
        return table_of(self.rows, self.columns)

    def to_parquet(self, file: str) -> None:
        """Write the rows as a Parquet file."""
        write_parquet(self.to_arrow(), file)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to any library that takes Arrow, as in `polars.DataFrame(results)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return a pandas data frame, where pandas is installed."""
        if importlib.util.find_spec("pandas") is None:
            raise SchedulerError("pandas is not installed")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a polars data frame, where polars is installed."""
        if importlib.util.find_spec("polars") is None:
            raise SchedulerError("polars is not installed")
        return importlib.import_module("polars").DataFrame(self)

    def _repr_html_(self) -> str:
        def cells(tag: str, values: Iterable[Any]) -> str:
            return "".join(f"<{tag}>{html.escape('' if value is None else str(value))}</{tag}>" for value in values)

        columns = self.columns
        body = "".join(f"<tr>{cells('td', (row.get(name) for name in columns))}</tr>" for row in self.rows)
        return f"<table><thead><tr>{cells('th', columns)}</tr></thead><tbody>{body}</tbody></table>"

    # Figures over seeds

    def group(self, row: Row) -> Group:
        """Return what a row is a seed of."""
        return (row["scenario"], row["configuration"], *(str(row[path]) for path in self.parameters))

    def groups(self) -> list[Group]:
        """Return all groups in the order of the trials."""
        return list(dict.fromkeys(map(self.group, self.rows)))

    def summary(self, figure: str) -> dict[Group, Estimate]:
        """Return the mean of a figure over the seeds of each group that has it."""
        values: dict[Group, list[float]] = {}
        for row in self.rows:
            if isinstance(row.get(figure), (int, float)):
                values.setdefault(self.group(row), []).append(row[figure])
        return {group: Estimate.of(found) for group, found in values.items()}

    def deltas(self, figure: str, baseline: str = "") -> dict[Group, Estimate]:
        """Return by how much a figure differs from the baseline configuration's, seed by seed."""
        against = baseline or self.baseline
        known = {
            (row["scenario"], self.group(row)[2:], row["seed"]): row[figure]
            for row in self.rows
            if row["configuration"] == against and isinstance(row.get(figure), (int, float))
        }
        values: dict[Group, list[float]] = {}
        for row in self.rows:
            at = (row["scenario"], self.group(row)[2:], row["seed"])
            if row["configuration"] != against and at in known and isinstance(row.get(figure), (int, float)):
                values.setdefault(self.group(row), []).append(row[figure] - known[at])
        return {group: Estimate.of(found) for group, found in values.items()}


def _plain(value: Any) -> Any:
    """Return a parameter's value as a cell holds it."""
    return value if isinstance(value, (str, int, float, bool)) or value is None else msgspec.json.encode(value).decode()
