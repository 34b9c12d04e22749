"""`kubesched simulate`: a scenario or a trace under a virtual clock."""

from __future__ import annotations

import contextlib
import csv
import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from kubesched.cli.figures import print_figures
from kubesched.cli.html_report import Ran, html_report, write_text
from kubesched.cli.printing import bar, print_document
from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.values.bounds import content_of, shown
from kubesched.tools.experiments.arrow import check_arrow, table_of, write_parquet
from kubesched.tools.plan.cluster_files import holds_cluster, inbox_log_in
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.cluster.simulated_cluster import LogWriter
from kubesched.tools.simulation.from_log import simulation_of_log
from kubesched.tools.simulation.replay import entries_of
from kubesched.tools.simulation.scenario import Scenario, read_scenario, seconds
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.sources import Policy, named, say_on_stderr

DEFAULT = "default"
"""What the configuration is called that is used when none is given."""
RowWriter = Callable[[dict[str, Any]], None]


def run_simulate(
    scenario: Path,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    duration: str | None,
    seed: int | None,
    events_file: Path | None,
    series_file: Path | None,
    html_file: Path | None,
    output: str,
) -> None:
    policy = Policy.read(config_file, feature_gates, plugins)
    play = Play.read(scenario, duration, seed)
    collect_seldom()
    with contextlib.ExitStack() as files:
        journal = _rows_to(events_file, files, _json_lines) if events_file is not None else None
        sim = files.enter_context(play.simulation(policy, journal))
        series: list[dict[str, Any]] = []
        write_row = _rows_to(series_file, files, _csv_rows) if series_file is not None else None

        def take(row: dict[str, Any]) -> None:
            if write_row is not None:
                write_row(row)
            if html_file is not None:
                series.append(row)

        sim.measures.on_row = take
        with bar(f"{scenario.name}, virtual seconds", play.until) as done:
            figures = sim.run(play.until, done)
        if html_file is not None:
            by = config_file.name if config_file is not None else DEFAULT
            write_text(html_file, html_report(scenario.name, [Ran(by, sim, series)]))
    if output == "table":
        click.echo(f"{scenario.name}: {figures['seconds']:,g} s of virtual time, seed {figures['seed']}")
        print_figures([figures])
    else:
        print_document(figures, output)


def collect_seldom() -> None:
    """Let the collector look less often: a simulation makes hundreds of thousands of objects that stay."""
    gc.set_threshold(50_000, 20, 100)


@dataclass(frozen=True, slots=True)
class Play:
    """A scenario or a log that was read, to be simulated once or more often."""

    scenario: Scenario | None
    entries: list[dict[str, Any]]
    seed: int | None
    until: float | None

    @classmethod
    def read(cls, file: Path, duration: str | None, seed: int | None) -> Play:
        """Read a file; a duration and a seed that are given win over what it says."""
        try:
            until = seconds(duration, "--duration") if duration is not None else None
        except ConfigError as error:
            raise click.UsageError(str(error)) from error
        with named(file):
            content = content_of(file, may_be_cut_off=True)
            if holds_cluster(content.data):
                return cls(None, entries_of(inbox_log_in(shown(file), content, say_on_stderr)), seed, until)
        scenario = read_scenario(file, content.data)
        if until is not None:
            scenario = msgspec.structs.replace(scenario, duration=until)
        elif scenario.duration is not None:
            until = seconds(scenario.duration)
        return cls(scenario if seed is None else msgspec.structs.replace(scenario, seed=seed), [], seed, until)

    def simulation(self, policy: Policy, journal: LogWriter | None = None) -> Simulation:
        """Return a simulation that has not begun."""
        if self.scenario is None:
            return simulation_of_log(
                self.entries,
                seed=self.seed,
                configuration=policy.configuration,
                gates=policy.gates,
                registry=policy.registry,
                journal=journal,
            )
        return build_simulation(
            self.scenario, configuration=policy.configuration, gates=policy.gates, registry=policy.registry, journal=journal
        )


def _rows_to(file: Path, files: contextlib.ExitStack, as_text: Callable[[IO[str]], RowWriter]) -> RowWriter:
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


def _json_lines(file: IO[str]) -> RowWriter:
    encode = msgspec.json.Encoder().encode

    def write(event: dict[str, Any]) -> None:
        file.write(encode(event).decode() + "\n")

    return write


def _csv_rows(file: IO[str]) -> RowWriter:
    writer = csv.writer(file, lineterminator="\n")
    is_first = True

    def write(row: dict[str, Any]) -> None:
        nonlocal is_first
        if is_first:
            writer.writerow(row)
            is_first = False
        writer.writerow(row.values())

    return write
