"""What `kubesched compare` takes; the work is in `kubesched.cli.compare`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import cluster_options, gates_option, output_option, plugin_option


@click.command(
    "compare",
    short_help="Run two configurations on the same thing.",
    epilog="Example:  kubesched compare default packing.yaml --scenario batch.yaml",
)
@click.argument("a")
@click.argument("b")
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Simulate this scenario, inbox log or snapshot under both, as `simulate` does.",
)
@cluster_options
@click.option("--reschedule", is_flag=True, help="Take all pods off their nodes first, and place them again, oldest first.")
@click.option("--duration", help="How long to simulate, instead of what the scenario says.")
@click.option("--seed", type=int, help="Another seed than the scenario's.")
@gates_option
@plugin_option
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a report to this file: both side by side, plots over time, the pods that moved, in one file.",
)
@output_option
@runs("kubesched.cli.compare:run_compare")
def command() -> None:
    """Run two KubeSchedulerConfigurations, A and B, on the same thing, and print side by side what comes of it.

    The thing is a scenario (--scenario), or a cluster as it is now: a snapshot (--snapshot) or a live one, which is only
    read. Of a cluster, the pending pods are decided under both. The word `default` stands for the default configuration.
    """
