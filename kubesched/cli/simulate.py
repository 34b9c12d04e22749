"""`kubesched simulate`: a scenario or a trace under a virtual clock."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.layout import print_table
from kubesched.cli.options import FILE_OR_STDIN, NEW_FILE, Options, PolicyOptions, Seconds, option, output_option, takes
from kubesched.cli.printing import bar, print_document, write_file

if TYPE_CHECKING:
    from kubesched.tools.simulation.play import Play

DEFAULT = "default"
"""What the configuration is called that is used when none is given."""


class FileOptions(Options):
    """Which files are written."""

    events_file: Path | None = option(
        "--events",
        type=NEW_FILE,
        help="File for all events, one JSON line each; a table if it ends in .parquet.",
    )
    series_file: Path | None = option(
        "--series",
        type=NEW_FILE,
        help="File for utilisation and queue lengths over time: CSV, or Parquet if it ends in .parquet.",
    )
    html_file: Path | None = option(
        "--html",
        type=NEW_FILE,
        help="HTML file for a report: figures, plots over time, and the nodes at the end.",
    )


@click.command("simulate", epilog="Example:  kubesched simulate docs/examples/shop.yaml --series series.csv")
@click.argument("scenario", type=FILE_OR_STDIN)
@takes(policy=PolicyOptions)
@click.option("--duration", type=Seconds(0), help="How long to simulate: 90s, 5m, 1h30m. Default: as the scenario says.")
@click.option("--seed", type=int, help="Seed, instead of that of the scenario.")
@takes(files=FileOptions)
@output_option
def command(
    scenario: Path, policy: PolicyOptions, duration: float | None, seed: int | None, files: FileOptions, output: str
) -> None:
    """Run SCENARIO in virtual time against a cluster in memory, with the real scheduling engine, and print the figures.

    SCENARIO is a scenario file (docs/reference/scenario.md), an inbox log, or a file that --snapshot of other commands takes.
    The same scenario, configuration and seed print the same bytes.
    """
    from kubesched.tools.simulation.html_report import Ran, html_report
    from kubesched.tools.simulation.row_files import csv_rows, json_lines, rows_to

    chosen = policy.read()
    play = read_play(scenario, duration, seed)
    series: list[dict[str, Any]] = []
    with contextlib.ExitStack() as opened:
        journal = rows_to(files.events_file, opened, json_lines) if files.events_file is not None else None
        sim = opened.enter_context(play.simulation(chosen, journal))
        write_row = rows_to(files.series_file, opened, csv_rows) if files.series_file is not None else None

        def take(row: dict[str, Any]) -> None:
            if write_row is not None:
                write_row(row)
            if files.html_file is not None:
                series.append(row)

        sim.measures.on_row = take
        with bar(f"{scenario.name}, virtual seconds", play.until) as done:
            figures = sim.run(play.until, done)
        if files.html_file is not None:
            by = policy.config_file.name if policy.config_file is not None else DEFAULT
            write_file(files.html_file, html_report(scenario.name, [Ran(by, sim, series)]))
    if output == "table":
        click.echo(f"{scenario.name}: {figures['seconds']:,g} s of virtual time, seed {figures['seed']}")
        print_figures([figures])
    else:
        print_document(figures, output)


def read_play(file: Path, duration: float | None, seed: int | None) -> Play:
    """Read a scenario or a log, to be simulated for so many seconds."""
    from kubesched.tools.simulation.play import Play, collect_seldom

    collect_seldom()
    return Play.read(file, duration, seed)


def print_figures(documents: Sequence[Mapping[str, Any]], titles: Sequence[str] = ()) -> None:
    """Print a table of the figures."""
    from kubesched.tools.simulation.figures import figure_rows

    heads = ["", *(titles or [""] * len(documents)), *(["difference"] if len(documents) == 2 else [])]
    print_table(heads, figure_rows(documents), right=range(1, len(heads)))
