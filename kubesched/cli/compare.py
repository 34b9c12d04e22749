"""`kubesched compare`: two configurations on the same scenario or the same cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.options import (
    FILE_OR_STDIN,
    NEW_FILE,
    ClusterOptions,
    Options,
    Seconds,
    gates_option,
    option,
    output_option,
    plugin_option,
    shared,
    takes,
)
from kubesched.cli.printing import bar, print_document, write_file
from kubesched.cli.simulate import DEFAULT, print_figures, read_play
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.simulation.simulation import Simulation

_MOST_SHOWN = 10


class CompareOptions(Options):
    """What is done under both configurations."""

    reschedule: bool = option(
        "--reschedule", is_flag=True, help="Remove all pods from their nodes first, and place them again, oldest first."
    )
    duration: float | None = option("--duration", type=Seconds(0), help="How long to simulate. Default: as the scenario says.")
    seed: int | None = option("--seed", type=int, help="Seed, instead of that of the scenario.")
    feature_gates: tuple[str, ...] = shared(gates_option)
    plugins: tuple[str, ...] = shared(plugin_option)


@click.command("compare", epilog="Example:  kubesched compare default packing.yaml --scenario batch.yaml")
@click.argument("a")
@click.argument("b")
@click.option(
    "--scenario",
    "scenario_file",
    type=FILE_OR_STDIN,
    help="Scenario, inbox log or snapshot to simulate under both, as `simulate` does.",
)
@takes(cluster=ClusterOptions, options=CompareOptions)
@click.option(
    "--html",
    "html_file",
    type=NEW_FILE,
    help="HTML file for a report: both side by side, plots over time, and the pods that moved.",
)
@output_option
def command(
    a: str,
    b: str,
    scenario_file: Path | None,
    cluster: ClusterOptions,
    options: CompareOptions,
    html_file: Path | None,
    output: str,
) -> None:
    """Run two KubeSchedulerConfigurations, A and B, on the same input, and print the results side by side.

    The input is a scenario (--scenario), or a cluster: a snapshot (--snapshot) or a live one, which is only read. Of a cluster,
    the pending pods are decided under both. `default` stands for the default configuration.
    """
    from kubesched.tools.simulation.compare import compare, decide_both
    from kubesched.tools.simulation.html_report import Ran, html_report
    from kubesched.tools.simulation.play import collect_seldom
    from kubesched.tools.snapshots.sources import Policy, warn_not_enabled

    files = [None if name == DEFAULT else Path(name) for name in (a, b)]
    policies = [Policy.read(file, options.feature_gates, options.plugins, warns=False) for file in files]
    warn_not_enabled(policies[0].plugins, *(policy.configuration for policy in policies))
    if scenario_file is not None:
        if cluster.has_any or options.reschedule:
            raise click.UsageError(
                "--scenario brings its own cluster: --snapshot, --kubeconfig, --context and --reschedule have no part in it"
            )
        play = read_play(scenario_file, options.duration, options.seed)
        sims, until = [play.simulation(policy) for policy in policies], play.until
    else:
        if options.duration is not None or options.seed is not None:
            raise click.UsageError("--duration and --seed are for scenarios")
        collect_seldom()
        captured = cluster.read(policies[0].gates)
        ways = ((policy.configuration, policy.gates, policy.registry) for policy in policies)
        sims, until = decide_both(captured, ways, reschedule=options.reschedule), None
    with sims[0], sims[1]:
        runs = [Ran(Path(name).name, sim, _run(sim, name, until)) for name, sim in zip((a, b), sims, strict=True)]
        document = {"configurations": {"a": a, "b": b}, **compare(*sims)}
        if html_file is not None:
            of = scenario_file or cluster.snapshot_file
            title = of.name if of is not None else "the cluster"
            write_file(html_file, html_report(title, runs, document["moves"]))
    if output == "table":
        _print(document, Path(a).name, Path(b).name)
    else:
        print_document(document, output)


def _run(sim: Simulation, name: str, until: float | None) -> list[dict[str, Any]]:
    """Run it, and return the rows of its series."""
    series: list[dict[str, Any]] = []
    sim.measures.on_row = series.append
    with bar(f"{name}, virtual seconds", until) as done:
        sim.run(until, done)
    if not sim.measures.n_pods:
        raise SchedulerError("there is no pod to decide")
    return series


def _print(document: dict[str, Any], a: str, b: str) -> None:
    from kubesched.tools.simulation.figures import count

    print_figures([document["a"], document["b"]], [f"A: {a}", f"B: {b}"])
    moves = document["moves"]
    click.echo()
    say(
        f"{count(moves['moved'])} of {count(moves['placed'])} pods that both place land on another node, "
        f"{count(moves['otherZone'])} in another zone; {count(moves['onlyA'])} are placed by A only, "
        f"{count(moves['onlyB'])} by B only."
    )
    changed = [row for row in moves["workloads"] if row["moved"] or row["onlyA"] or row["onlyB"]]
    if not changed:
        return
    fields = ("placed", "moved", "otherZone", "onlyA", "onlyB")
    print_table(
        ("workload", "placed by both", "moved", "other zone", "A only", "B only"),
        [(row["workload"], *(count(row[name]) for name in fields)) for row in changed[:_MOST_SHOWN]],
        right=range(1, 6),
    )
    if len(changed) > _MOST_SHOWN:
        click.echo(f"and {count(len(changed) - _MOST_SHOWN)} workloads more; -o json lists every pod")
