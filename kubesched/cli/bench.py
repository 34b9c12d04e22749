"""`kubesched bench`: decisions a second in memory and through an API server, pauses, and hours of churn and faults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.layout import print_table
from kubesched.cli.options import (
    NEW_FILE,
    Options,
    Seconds,
    config_option,
    option,
    output_without_default_option,
    plugin_option,
    shared,
    takes,
    with_default,
)
from kubesched.cli.printing import bar, print_document, write_file
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.bench.perf.cases import Workload
    from kubesched.tools.bench.soak.run import Soak

_PERF_KINDS = ("basic", "spread", "softspread", "affinity", "antiaffinity", "prefaffinity", "mixed", "churn", "csi", "dra")
KINDS = (
    *_PERF_KINDS,
    "owned",
    "statefulset",
    "apart",
    "indexed-job",
    "daemonset",
    "gang",
    "unlike",
    "appspread",
    "gpu",
    "novelty",
)
SOLVER_QUESTIONS = ("worlds", "estimate", "groups", "drains")
NODES_KINDS = ("basic", "spread", "affinity", "antiaffinity")
FAULTS = ("terminate", "nodes", "kill", "freeze", "server")
CLUSTER_KINDS = tuple(kind for kind in _PERF_KINDS if kind not in ("churn", "csi"))
SHORT = "performance,short"
"""What `bench perf` runs if nothing else is chosen: enough for a comparison on one's own machine, in minutes."""
_NONE = "-"
_TEXTS = ("kind", "question", "what", "found")


def _kubeconfig(use: str) -> Any:
    text = f"A cluster without nodes of its own to {use}; the embedded API server if not given."
    return option("--kubeconfig", type=click.Path(dir_okay=False), default="", help=text)


@click.group("bench", epilog="Example:  kubesched bench engine --kind basic")
def command() -> None:
    """Measure throughput on the workloads that kube-scheduler's own benchmarks use."""


def print_figures(rows: list[dict[str, Any]], output: str) -> None:
    """Print one or more rows of figures."""
    import json

    if output == "json":
        click.echo(json.dumps(rows[0] if len(rows) == 1 else rows))
    elif output == "yaml":
        for row in rows:
            click.echo("\n".join(f"{key}: {value}" for key, value in row.items()))
    else:
        cells = [[f"{value:,}" if isinstance(value, int | float) else str(value) for value in row.values()] for row in rows]
        print_table(list(rows[0]), cells, right=[i for i, title in enumerate(rows[0]) if title not in _TEXTS])


# --- engine -----------------------------------------------------------------------------------------------------------


class EngineOptions(Options):
    """What is decided in memory, and how."""

    kind: str = with_default("--kind", click.Choice(KINDS), "basic", "Kind of pods.")
    nodes: int = with_default("--nodes", click.IntRange(1), 5000, "How many nodes.")
    init: int = with_default(
        "--init", click.IntRange(0), 1000, "Pods that run already; of kind novelty: how many are there at a time."
    )
    pods: int = with_default("--pods", click.IntRange(1), 10000, "Pods to schedule and measure.")
    seed: int = with_default("--seed", int, 0, "Seed of the choice among equally good nodes.")
    classes: tuple[int, ...] = option(
        "--classes",
        type=click.IntRange(0),
        multiple=True,
        help="Of kind unlike: how many different pods there are, 0 for all. Several of these print a row each.",
    )
    no_memo: bool = option("--no-memo", is_flag=True, help="Compute every answer; do not use the cache of pod classes.")
    decision_records: int = option(
        "--decision-records", type=click.IntRange(0), default=0, help="How many decisions to keep on record, as `run` does."
    )
    config_file: Path | None = shared(config_option)
    plugins: tuple[str, ...] = shared(plugin_option)


@command.command(
    "engine",
    short_help="Decide pods in memory.",
    epilog="Example:  kubesched bench engine --kind spread --nodes 5000 --pods 10000 -o json",
)
@takes(options=EngineOptions)
@output_without_default_option
def engine(options: EngineOptions, output: str) -> None:
    """Decide pods in memory: pop, schedule and assume, without binding; over all nodes unless --config says otherwise."""
    from kubesched.tools.bench.engine import Bench, run
    from kubesched.tools.bench.novelty import measure
    from kubesched.tools.snapshots.sources import Policy

    if options.classes and options.kind != "unlike":
        raise click.UsageError("--classes is for --kind unlike")
    if options.kind == "novelty" and (options.config_file or options.plugins or options.no_memo or options.decision_records):
        raise click.UsageError(
            "--kind novelty runs the default configuration: no --config, --plugin, --no-memo, --decision-records"
        )
    rows, policy = [], Policy.read(options.config_file, (), options.plugins)
    decided_by = (policy.configuration, policy.registry) if options.config_file is not None else (None, None)
    for n_classes in options.classes or (0,):
        size = options.nodes, options.init, options.pods, options.seed
        bench = Bench(options.kind, *size, not options.no_memo, n_classes, options.decision_records, *decided_by)
        with bar(f"{options.kind}, {options.nodes} nodes", options.pods) as done:
            if options.kind == "novelty":
                rows.append(
                    measure(nodes=options.nodes, alive=options.init, pods=options.pods, seed=options.seed, progress=done)
                )
            else:
                rows.append(run(bench, done))
    print_figures(rows, output)


# --- cluster ----------------------------------------------------------------------------------------------------------


class ClusterOptions(Options):
    """What is scheduled through an API server."""

    kind: str = with_default("--kind", click.Choice(CLUSTER_KINDS), "basic", "Kind of pods.")
    nodes: int = with_default("--nodes", click.IntRange(1), 1000, "How many nodes.")
    init: int = with_default("--init", click.IntRange(0), 0, "Pods that run already.")
    pods: int = with_default("--pods", click.IntRange(1), 3000, "Pods to schedule and measure.")
    kubeconfig: str = _kubeconfig("measure with")
    timeout: float = with_default("--timeout", Seconds(1.0), "10m", "After how long pods that are not bound are given up.")
    bare: bool = option(
        "--bare-client", is_flag=True, help="Bind the pods in turn without a scheduler: what the API server allows."
    )
    rate: float = option(
        "--rate",
        type=click.FloatRange(min=0.0),
        default=0.0,
        help="Create this many pods a second, instead of all at the start, and print how long they waited.",
    )


@command.command(
    "cluster",
    short_help="Schedule pods through an API server.",
    epilog="Example:  kubesched bench cluster --kind spread --nodes 1000 --pods 3000 -o json",
)
@takes(options=ClusterOptions)
@output_without_default_option
def cluster(options: ClusterOptions, output: str) -> None:
    """Schedule pods through an API server: bindings a second as the server saw them, CPU a pod, memory.

    All pods wait when the scheduler starts, unless --rate lets them come. Its CPU is given with its start and (steady) from
    the first binding on.
    """
    import asyncio

    from kubesched.tools.bench.cluster import ClusterBench, run

    if options.bare and options.rate:
        raise click.UsageError("--bare-client binds pods that wait; it knows no --rate")
    bench = ClusterBench(
        options.kind, options.nodes, options.pods, options.init, options.kubeconfig, options.timeout, options.bare, options.rate
    )
    with bar(f"{options.kind}, {options.nodes} nodes", options.pods) as done:
        figures = asyncio.run(run(bench, done))
    print_figures([figures], output)
    if figures["bound"] < options.pods:
        raise SchedulerError(f"only {figures['bound']} of {options.pods} pods were bound within {options.timeout:g} s")


# --- nodes ------------------------------------------------------------------------------------------------------------


@command.command(
    "nodes",
    short_help="Find the nodes that pods need.",
    epilog="Example:  kubesched bench nodes --kind spread --pods 51000 -o json",
)
@click.option(
    "--kind", type=click.Choice(NODES_KINDS), default="basic", show_default=True, help="What the pods ask for beside resources."
)
@click.option("--pods", type=click.IntRange(51), default=51000, show_default=True, help="How many; one in 51 is larger.")
@output_without_default_option
def nodes(kind: str, pods: int, output: str) -> None:
    """Find out which nodes of a group would have to be added for pods, as `plan --node-groups` does.

    The pods and the node are those of the benchmark of cluster-autoscaler's estimator: 50,000 pods of 50m and 1,000 of 95m,
    nodes of one core, which makes 2,595 nodes. Seconds are those of the clock, cpu_s those of the processor.
    """
    from kubesched.tools.node_groups.bench import run

    print_figures([run(kind, pods)], output)


# --- pauses -----------------------------------------------------------------------------------------------------------


@command.command(
    "pauses",
    short_help="Find how long decisions stop.",
    epilog="Example:  kubesched bench pauses --pods 150000 --turns 300000 -o json",
)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, help="How many nodes.")
@click.option("--pods", type=click.IntRange(1), default=150_000, show_default=True, help="Pods that there are at any time.")
@click.option(
    "--turns", type=click.IntRange(1), default=300_000, show_default=True, help="Pods that come, and as many that go."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the choice among equally good nodes.")
@output_without_default_option
def pauses(nodes: int, pods: int, turns: int, seed: int, output: str) -> None:
    """Let pods come and go in a large cluster, in memory, and print how long the scheduler stops between two decisions.

    Each turn one pod arrives, is decided and bound, and the oldest pod leaves. Collections are those of Python's cycle
    collector.
    """
    from kubesched.tools.bench.pauses import Pauses, run

    with bar(f"{pods} pods on {nodes} nodes", turns) as done:
        figures = run(Pauses(nodes, pods, turns, seed), done)
    print_figures([figures], output)


# --- solver -----------------------------------------------------------------------------------------------------------


@command.command("solver", short_help="Ask what if, many times.", epilog="Example:  kubesched bench solver drains -o json")
@click.argument("questions", nargs=-1, type=click.Choice(SOLVER_QUESTIONS))
@click.option("--shrink", type=click.IntRange(1, 100), default=1, help="Divide the sizes of clusters and questions by this.")
@output_without_default_option
def solver(questions: tuple[str, ...], shrink: int, output: str) -> None:
    """Ask the Python API what autoscalers and deschedulers ask; all of the questions if none is named.

    worlds: fits and worlds on 5,000 nodes with 100,000 pods. estimate: the nodes that 51,000 pods of two shapes need. groups:
    the cheapest of 30 groups for 10,000 pods on 2,000 nodes. drains: 5,000 times, could this node of 2,000 go?
    """
    from kubesched.tools.bench.solver import run

    print_figures(list(run(questions or SOLVER_QUESTIONS, shrink)), output)


# --- soak -------------------------------------------------------------------------------------------------------------


class SoakOptions(Options):
    """How much comes and goes, for how long, and what breaks meanwhile."""

    nodes: int = with_default("--nodes", click.IntRange(1), 5000, "How many nodes.")
    pods: int = with_default("--pods", click.IntRange(0), 150_000, "Pods that there are at any time.")
    duration: float = with_default("--duration", Seconds(), "1h", "How long: 90s, 10m, 8h.")
    rate: float = with_default("--rate", click.FloatRange(0.1), 20.0, "Pods a second that come, and as many that go.")
    schedulers: int = with_default("--schedulers", click.IntRange(1), 2, "How many stand for election.")
    fault_every: float = with_default("--fault-every", Seconds(), "5m", "Time from one fault to the next.")
    kinds_of_faults: tuple[str, ...] = option(
        "--fault", type=click.Choice(FAULTS), multiple=True, help="Which faults take turns; all of them if not given."
    )
    no_faults: bool = option("--no-faults", is_flag=True, help="Churn alone.")
    kubeconfig: str = _kubeconfig("run on")
    seed: int = with_default("--seed", int, 0, "Seed of which pods go and which nodes change.")
    page: Path | None = option(
        "--report", type=NEW_FILE, help="Write the report to this file as Markdown, every two minutes and at the end."
    )


@command.command(
    "soak",
    short_help="Churn, failovers and faults for hours.",
    epilog="Example:  kubesched bench soak --nodes 500 --pods 5000 --duration 10m --report soak.md",
)
@takes(options=SoakOptions)
@output_without_default_option
def soak(options: SoakOptions, output: str) -> None:
    """Let pods come and go for hours while schedulers are ended, killed and frozen, nodes lost and the API server killed.

    Every pod must be bound once, and no node hold more than fits; else the exit code is 1. Reports percentiles of a decision
    and of the time from asking for a pod to its binding, memory and files of every process, pauses of Python's collector.
    Ctrl-C ends it early, with the report.
    """
    import asyncio

    from kubesched.http import raise_file_limit
    from kubesched.tools.bench.soak.page import markdown
    from kubesched.tools.bench.soak.run import Soak

    if options.no_faults and options.kinds_of_faults:
        raise click.UsageError("--fault and --no-faults exclude each other")
    given = Soak(
        options.nodes,
        options.pods,
        options.duration,
        options.rate,
        options.schedulers,
        options.fault_every,
        () if options.no_faults else options.kinds_of_faults or FAULTS,
        kubeconfig=options.kubeconfig,
        seed=options.seed,
    )
    raise_file_limit()
    report = asyncio.run(_soak(given, options.page))
    if options.page is not None:
        write_file(options.page, markdown(report))
    if output == "table":
        click.echo(markdown(report))
    else:
        print_document(report, output)
    if report["complaints"]:
        raise SchedulerError(f"{len(report['complaints'])} things are wrong, the first: {report['complaints'][0]}")


async def _soak(given: Soak, page: Path | None) -> dict[str, Any]:
    import asyncio
    import signal

    from kubesched.tools.bench.soak.page import markdown
    from kubesched.tools.bench.soak.run import run

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    def publish(report: dict[str, Any]) -> None:
        if page is not None:
            write_file(page, markdown(report))

    return await run(given, stopped, lambda text: click.echo(text, err=True), publish)


# --- perf -------------------------------------------------------------------------------------------------------------


class PerfOptions(Options):
    """Which workloads are run, and where."""

    labels: str | None = option(
        "--labels",
        help="Labels that workloads must have, or with - before it must not: `performance,-short`. Without --case, --workload "
        "and --list: `performance,short`.",
    )
    case_patterns: tuple[str, ...] = option(
        "--case", multiple=True, metavar="PATTERN", help="Test cases of this name, with * and ?."
    )
    workload_patterns: tuple[str, ...] = option(
        "--workload", multiple=True, metavar="PATTERN", help="Workloads of this name, likewise."
    )
    feature_gates: tuple[str, ...] = option(
        "--feature-gates", multiple=True, metavar="A=true,B=false", help="Gates to switch, before what a workload asks for."
    )
    kubeconfig: str = _kubeconfig("run on")
    timeout: float = with_default("--timeout", Seconds(1.0), "10m", "How long an operation waits for its pods.")
    lists: bool = option("--list", is_flag=True, help="List workloads, and why which of them cannot run, instead of running.")


@command.command(
    "perf",
    short_help="Run Kubernetes' own scheduler_perf workloads.",
    epilog="Example:  kubesched bench perf kubernetes/test/integration/scheduler_perf --case SchedulingBasic -o json",
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@takes(options=PerfOptions)
@output_without_default_option
def perf(folder: Path, options: PerfOptions, output: str) -> None:
    """Run the workloads of Kubernetes' own scheduler benchmark, read from its files, and compare with their thresholds.

    DIR is test/integration/scheduler_perf of a Kubernetes release, or a part of it. Pods a second are sampled every second, as
    the original does. A workload that needs an operation, a template function or a gate which is not known here is an error.
    """
    import asyncio

    from kubesched.scheduler.config import read_pairs
    from kubesched.tools.bench.perf import cases, runs

    is_named = bool(options.case_patterns or options.workload_patterns or options.lists)
    labels = options.labels if options.labels is not None else "" if is_named else SHORT
    known = cases.read(folder, read_pairs(options.feature_gates))
    workloads = cases.chosen(known, labels, options.case_patterns, options.workload_patterns)
    if not workloads:
        raise SchedulerError(f"{folder}: no workload is chosen by --labels {labels!r}, --case and --workload; see --list")
    if options.lists:
        _print_perf([_listed(one) for one in workloads], output, is_list=True)
        return
    rows: list[dict[str, Any]] = []
    for number, workload in enumerate(workloads, 1):
        done = asyncio.run(runs.run(workload, options.kubeconfig, patience=options.timeout))
        rows += done
        for row in done:
            click.echo(f"{number} of {len(workloads)}: {_sentence(row)}", err=True)
    _print_perf(rows, output, is_list=False)
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


def _print_perf(rows: list[dict[str, Any]], output: str, *, is_list: bool) -> None:
    import json

    if output == "json":
        click.echo(json.dumps(rows))
    elif output == "yaml":
        print_document(rows, "yaml")
    elif is_list:
        known = ("case", "workload", "labels", "threshold", "cannot run because")
        print_table(known, [_listed_cells(row) for row in rows], right=(3,), sentences=True)
    else:
        titles = ("case", "workload", "pods", "pods/s", "p50", "p99", "threshold", "ratio", "attempt p99", "wait p99", "error")
        print_table(titles, [_run_cells(row) for row in rows], right=range(2, 10), sentences=True)


def _listed_cells(row: dict[str, Any]) -> list[str]:
    labels = ",".join(row["labels"]) or _NONE
    return [row["case"], row["workload"], labels, _number(row["threshold"]), row["error"] or ""]


def _run_cells(row: dict[str, Any]) -> list[str]:
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


# --- serve ------------------------------------------------------------------------------------------------------------


class ServeBenchOptions(Options):
    """How large the cluster is, and how often what happens."""

    nodes: int = with_default("--nodes", click.IntRange(1), 1000, "How many nodes.")
    pods: int = with_default("--pods", click.IntRange(0), 10000, "Pods that run at first.")
    callers: int = with_default("--callers", click.IntRange(1, 1000), 8, "Connections that ask.")
    rate: float = with_default("--rate", click.FloatRange(1), 1000, "Questions a second, of all callers.")
    changes: float = with_default("--changes", click.FloatRange(0), 500, "Changes of the cluster a second.")
    seconds: float = with_default("--seconds", click.FloatRange(1), 60, "How long to ask.")


@command.command(
    "serve",
    short_help="Ask the service over gRPC while the cluster changes.",
    epilog="Example:  kubesched bench serve --rate 1000 --changes 500 --seconds 120 -o json",
)
@takes(options=ServeBenchOptions)
@output_without_default_option
def serve(options: ServeBenchOptions, output: str) -> None:
    """Ask `kubesched serve` whether pods fit, from several connections, while pods come and go (docs/how-to/serve.md)."""
    from importlib.util import find_spec

    from kubesched.cli.serve import NO_GRPC

    if find_spec("grpc") is None:
        raise SchedulerError(NO_GRPC)
    from kubesched.tools.serve.load import ServeBench, run

    bench = ServeBench(options.nodes, options.pods, options.callers, options.rate, options.changes, options.seconds)
    print_figures([run(bench, lambda text: click.echo(text, err=True))], output)
