"""`kubesched compare`: two configurations on the same scenario or the same cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kubesched.cli.figures import count, print_table, table_of
from kubesched.cli.printing import bar, print_document
from kubesched.cli.simulate import Play, collect_seldom
from kubesched.cli.sources import Policy, cluster_options, gates_option, output_option, plugin_option, read_cluster
from kubesched.errors import SchedulerError
from kubesched.simulator.scenarios.comparing import compare, decide_anew
from kubesched.simulator.scenarios.simulation import Simulation

DEFAULT = "default"
_MOST_SHOWN = 10


@click.command("compare", epilog="Example:  kubesched compare default packing.yaml --scenario batch.yaml")
@click.argument("a")
@click.argument("b")
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Simulate this scenario, inbox log or snapshot under both, as `simulate` does.",
)
@cluster_options
@click.option("--reschedule", is_flag=True, help="Take all pods off their nodes first, and place them again, oldest first.")
@click.option("--duration", help="How long to simulate, instead of what the scenario says.")
@click.option("--seed", type=int, help="Another seed than the scenario's.")
@gates_option
@plugin_option
@output_option
def compare_command(
    a: str,
    b: str,
    scenario_file: Path | None,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    reschedule: bool,
    duration: str | None,
    seed: int | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    output: str,
) -> None:
    """Run two KubeSchedulerConfigurations, A and B, on the same thing, and print side by side what comes of it.

    The thing is a scenario (--scenario), or a cluster as it is now: a snapshot (--snapshot) or a live one, which is only
    read. Of a cluster, the pending pods are decided under both. The word `default` stands for the default configuration.
    """
    policies = [_policy(name, feature_gates, plugins) for name in (a, b)]
    collect_seldom()
    if scenario_file is not None:
        if snapshot_file is not None or kubeconfig or context or reschedule:
            raise click.UsageError(
                "--scenario brings its own cluster: --snapshot, --kubeconfig, --context and --reschedule have no part in it"
            )
        play = Play.read(scenario_file, duration, seed)
        sims, until = [play.simulation(policy) for policy in policies], play.until
    else:
        if duration is not None or seed is not None:
            raise click.UsageError("--duration and --seed are for scenarios")
        cluster = read_cluster(snapshot_file, kubeconfig, context, policies[0].gates)
        movable = set.intersection(*({p.scheduler_name for p in policy.configuration.profiles} for policy in policies))
        sims, until = (
            [
                decide_anew(
                    cluster,
                    reschedule=reschedule,
                    movable=movable,
                    configuration=policy.configuration,
                    gates=policy.gates,
                    registry=policy.registry,
                )
                for policy in policies
            ],
            None,
        )
    with sims[0], sims[1]:
        for name, sim in zip((a, b), sims, strict=True):
            _run(sim, name, until)
        document = {"configurations": {"a": a, "b": b}, **compare(*sims)}
    if output == "table":
        _print(document, Path(a).name, Path(b).name)
    else:
        print_document(document, output)


def _policy(name: str, feature_gates: tuple[str, ...], plugins: tuple[str, ...]) -> Policy:
    return Policy.read(None if name == DEFAULT else Path(name), feature_gates, plugins)


def _run(sim: Simulation, name: str, until: float | None) -> None:
    with bar(f"{name}, virtual seconds", until) as done:
        sim.run(until, done)
    if not sim.measures.n_pods:
        raise SchedulerError("there is no pod to decide")


def _print(document: dict[str, Any], a: str, b: str) -> None:
    print_table(table_of([document["a"], document["b"]], [f"A: {a}", f"B: {b}"]))
    moves = document["moves"]
    click.echo(
        f"\n{count(moves['moved'])} of {count(moves['placed'])} pods that both place land on another node, "
        f"{count(moves['otherZone'])} in another zone; {count(moves['onlyA'])} are placed by A only, "
        f"{count(moves['onlyB'])} by B only."
    )
    changed = [row for row in moves["workloads"] if row["moved"] or row["onlyA"] or row["onlyB"]]
    if not changed:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("workload")
    for title in ("placed by both", "moved", "other zone", "A only", "B only"):
        table.add_column(title, justify="right")
    for row in changed[:_MOST_SHOWN]:
        table.add_row(row["workload"], *(count(row[name]) for name in ("placed", "moved", "otherZone", "onlyA", "onlyB")))
    print_table(table)
    if len(changed) > _MOST_SHOWN:
        click.echo(f"and {count(len(changed) - _MOST_SHOWN)} workloads more; -o json lists every pod")
