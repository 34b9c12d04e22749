"""`kubesched bench perf`: Kubernetes' own scheduler_perf workloads, chosen, run, and printed beside their thresholds."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click
import yaml

from kubesched.cli.layout import print_table
from kubesched.errors import SchedulerError
from kubesched.scheduler.config.releases.gates import read_pairs
from kubesched.tools.bench.perf import cases, runs
from kubesched.tools.bench.perf.cases import Workload

SHORT = "performance,short"
"""What runs if nothing else is chosen: enough for a comparison on one's own machine, in minutes."""

_NONE = "-"


def run_bench_perf(
    folder: Path,
    labels: str | None,
    case_patterns: tuple[str, ...],
    workload_patterns: tuple[str, ...],
    feature_gates: tuple[str, ...],
    kubeconfig: str,
    timeout: float,
    lists: bool,
    output: str,
) -> None:
    named = bool(case_patterns or workload_patterns or lists)
    wanted = labels if labels is not None else "" if named else SHORT
    workloads = cases.chosen(cases.read(folder, read_pairs(feature_gates)), wanted, case_patterns, workload_patterns)
    if not workloads:
        raise SchedulerError(f"{folder}: no workload is chosen by --labels {wanted!r}, --case and --workload; see --list")
    if lists:
        _print([_listed(one) for one in workloads], output, _list_cells)
        return
    rows: list[dict[str, Any]] = []
    for number, workload in enumerate(workloads, 1):
        done = asyncio.run(runs.run(workload, kubeconfig, patience=timeout))
        rows += done
        for row in done:
            click.echo(f"{number} of {len(workloads)}: {_sentence(row)}", err=True)
    _print(rows, output, _run_cells)
    failed = [row for row in rows if row["error"]]
    if failed:
        raise SchedulerError(f"{len(failed)} of {len(workloads)} workloads did not run to their end")


def _listed(workload: Workload) -> dict[str, Any]:
    return {
        "case": workload.case,
        "workload": workload.name,
        "labels": list(workload.labels),
        "threshold": workload.threshold,
        "error": workload.problem or None,
    }


def _sentence(row: dict[str, Any]) -> str:
    name = f"{row['case']}/{row['workload']}"
    if row["error"]:
        return f"{name}: {row['error']}"
    threshold = f" (threshold {row['threshold']:g})" if row["threshold"] else ""
    return f"{name}: {_number(row['throughput'])} pods/s{threshold}"


def _print(rows: list[dict[str, Any]], output: str, cells: Any) -> None:
    if output == "json":
        click.echo(json.dumps(rows))
    elif output == "yaml":
        click.echo(yaml.safe_dump(rows, sort_keys=False, width=120), nl=False)
    else:
        titles, right = cells(None)
        print_table(titles, [cells(row) for row in rows], right=right, sentences=True)


def _list_cells(row: dict[str, Any] | None) -> Any:
    if row is None:
        return ["case", "workload", "labels", "threshold", "cannot run because"], [3]
    return [row["case"], row["workload"], ",".join(row["labels"]) or _NONE, _number(row["threshold"]), row["error"] or ""]


def _run_cells(row: dict[str, Any] | None) -> Any:
    if row is None:
        titles = ["case", "workload", "pods", "pods/s", "p50", "p99", "threshold", "ratio", "attempt p99", "wait p99", "error"]
        return titles, range(2, 10)
    spread = row.get("throughput_percentiles") or {}
    times = [(row.get(name) or {}).get("p99") for name in ("attempt_ms", "wait_ms")]
    return [
        row["case"],
        row["workload"],
        _number(row.get("scheduled")),
        _number(row["throughput"]),
        _number(spread.get("Perc50")),
        _number(spread.get("Perc99")),
        _number(row["threshold"]),
        _NONE if row["ratio"] is None else f"{row['ratio']:.2f}",
        *(_NONE if time is None else f"{time:,.1f} ms" for time in times),
        row["error"] or "",
    ]


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:,.0f}"
