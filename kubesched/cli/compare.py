"""`kubesched compare`: two configurations on the same scenario or the same cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kubesched.cli.figures import count, print_figures
from kubesched.cli.html_report import Ran, html_report, write_text
from kubesched.cli.layout import print_table, say
from kubesched.cli.printing import bar, print_document
from kubesched.cli.simulate import DEFAULT, Play, collect_seldom
from kubesched.errors import SchedulerError
from kubesched.tools.simulation.compare import compare, decide_both
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.sources import Policy, read_cluster, warn_not_enabled

_MOST_SHOWN = 10


def run_compare(
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
    html_file: Path | None,
    output: str,
) -> None:
    policies = [_policy(name, feature_gates, plugins) for name in (a, b)]
    warn_not_enabled(policies[0].plugins, *(policy.configuration for policy in policies))
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
        ways = ((policy.configuration, policy.gates, policy.registry) for policy in policies)
        sims, until = decide_both(cluster, ways, reschedule=reschedule), None
    with sims[0], sims[1]:
        runs = [Ran(Path(name).name, sim, _run(sim, name, until)) for name, sim in zip((a, b), sims, strict=True)]
        document = {"configurations": {"a": a, "b": b}, **compare(*sims)}
        if html_file is not None:
            of = scenario_file or snapshot_file
            write_text(html_file, html_report(of.name if of is not None else "the cluster", runs, document["moves"]))
    if output == "table":
        _print(document, Path(a).name, Path(b).name)
    else:
        print_document(document, output)


def _policy(name: str, feature_gates: tuple[str, ...], plugins: tuple[str, ...]) -> Policy:
    return Policy.read(None if name == DEFAULT else Path(name), feature_gates, plugins, warns=False)


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
