"""What `kubesched bench` takes; the work is in `kubesched.cli.bench`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import config_option, plugin_option

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
NODES_KINDS = ("basic", "spread", "affinity", "antiaffinity")
FAULTS = ("terminate", "nodes", "kill", "freeze", "server")
CLUSTER_KINDS = tuple(kind for kind in _PERF_KINDS if kind not in ("churn", "csi"))


@click.group("bench", short_help="Measure throughput.", epilog="Example:  kubesched bench engine --kind basic")
def command() -> None:
    """Measure throughput on the workloads that kube-scheduler's own benchmarks use."""


@command.command(
    "engine",
    short_help="Decide pods in memory.",
    epilog="Example:  kubesched bench engine --kind spread --nodes 5000 --pods 10000 -o json",
)
@click.option("--kind", type=click.Choice(KINDS), default="basic", show_default=True, help="What the pods ask for.")
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, help="How many nodes.")
@click.option(
    "--init",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="Pods that run already; of kind novelty: how many are there at a time.",
)
@click.option("--pods", type=click.IntRange(1), default=10000, show_default=True, help="Pods to schedule and measure.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the choice among equally good nodes.")
@click.option(
    "--classes",
    type=click.IntRange(0),
    multiple=True,
    help="Of kind unlike: how many different pods there are, 0 for all. Several of these print a row each.",
)
@click.option("--no-memo", is_flag=True, help="Compute every answer anew instead of remembering answers per pod class.")
@click.option("--decision-records", type=click.IntRange(0), default=0, help="Keep so many decisions on record, as `run` does.")
@config_option
@plugin_option
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.bench:run_bench_engine")
def engine() -> None:
    """Decide pods in memory: pop, schedule and assume, without binding; over all nodes unless --config says otherwise."""


@command.command(
    "cluster",
    short_help="Schedule pods through an API server.",
    epilog="Example:  kubesched bench cluster --kind spread --nodes 1000 --pods 3000 -o json",
)
@click.option("--kind", type=click.Choice(CLUSTER_KINDS), default="basic", show_default=True, help="What the pods ask for.")
@click.option("--nodes", type=click.IntRange(1), default=1000, show_default=True, help="How many nodes.")
@click.option(
    "--init",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Pods that run already; of kind novelty: how many are there at a time.",
)
@click.option("--pods", type=click.IntRange(1), default=3000, show_default=True, help="Pods to schedule and measure.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    default="",
    help="A cluster without nodes of its own to measure with; the embedded API server if not given.",
)
@click.option(
    "--timeout",
    "timeout",
    type=click.FloatRange(min=1.0),
    default=600.0,
    show_default=True,
    help="Seconds after which what is not bound is given up.",
)
@click.option(
    "--bare-client", "bare", is_flag=True, help="Bind the pods in turn without a scheduler: what the API server allows."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0.0),
    default=0.0,
    help="Let so many pods come a second instead of having all of them wait, and tell how long they waited to be bound.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.bench:run_bench_cluster")
def cluster() -> None:
    """Schedule pods through an API server: bindings a second as the server saw them, CPU a pod, memory.

    All pods wait when the scheduler starts, unless --rate lets them come. Its CPU is given with its start and (steady) from
    the first binding on.
    """


@command.command(
    "nodes",
    short_help="Find the nodes that pods need.",
    epilog="Example:  kubesched bench nodes --kind spread --pods 51000 -o json",
)
@click.option(
    "--kind", type=click.Choice(NODES_KINDS), default="basic", show_default=True, help="What the pods ask for beside resources."
)
@click.option("--pods", type=click.IntRange(51), default=51000, show_default=True, help="How many; one in 51 is larger.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.bench:run_bench_nodes")
def nodes() -> None:
    """Find out which nodes of a group would have to be added for pods, as `plan --node-groups` does.

    The pods and the node are those of the benchmark of cluster-autoscaler's estimator: 50,000 pods of 50m and 1,000 of 95m,
    nodes of one core, which makes 2,595 nodes. Seconds are those of the clock, cpu_s those of the processor.
    """


@command.command(
    "soak",
    short_help="Churn, failovers and faults for hours.",
    epilog="Example:  kubesched bench soak --nodes 500 --pods 5000 --duration 10m --report soak.md",
)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, help="How many nodes.")
@click.option("--pods", type=click.IntRange(0), default=150_000, show_default=True, help="Pods that there are at any time.")
@click.option("--duration", default="1h", show_default=True, metavar="DURATION", help="How long: 90s, 10m, 8h.")
@click.option(
    "--rate", type=click.FloatRange(0.1), default=20.0, show_default=True, help="Pods a second that come, and as many that go."
)
@click.option("--schedulers", type=click.IntRange(1), default=2, show_default=True, help="How many stand for election.")
@click.option("--fault-every", default="5m", show_default=True, metavar="DURATION", help="Time from one fault to the next.")
@click.option(
    "--fault",
    "kinds_of_faults",
    type=click.Choice(FAULTS),
    multiple=True,
    help="Which faults take turns; all of them if not given.",
)
@click.option("--no-faults", is_flag=True, help="Churn alone.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    default="",
    help="A cluster without nodes of its own to run on; the embedded API server if not given.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of which pods go and which nodes change.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to this file as Markdown, every two minutes and at the end.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.bench_soak:run_bench_soak")
def soak() -> None:
    """Let pods come and go for hours while schedulers are ended, killed and frozen, nodes lost and the API server killed.

    Every pod must be bound once, and no node hold more than fits; else the exit code is 1. Reports percentiles of a decision
    and of the time from asking for a pod to its binding, memory and files of every process, pauses of Python's collector.
    Ctrl-C ends it early, with the report.
    """


@command.command(
    "perf",
    short_help="Run Kubernetes' own scheduler_perf workloads.",
    epilog="Example:  kubesched bench perf kubernetes/test/integration/scheduler_perf --case SchedulingBasic -o json",
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--labels",
    help="Labels that workloads must have, or with - before it must not: `performance,-short`. Without --case, --workload "
    "and --list: `performance,short`.",
)
@click.option("--case", "case_patterns", multiple=True, metavar="PATTERN", help="Test cases of this name, with * and ?.")
@click.option("--workload", "workload_patterns", multiple=True, metavar="PATTERN", help="Workloads of this name, likewise.")
@click.option(
    "--feature-gates",
    "feature_gates",
    multiple=True,
    metavar="A=true,B=false",
    help="Gates to switch, before what a workload asks for.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    default="",
    help="A cluster without nodes of its own to run on; the embedded API server if not given.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1.0),
    default=600.0,
    show_default=True,
    help="Seconds that an operation waits for its pods.",
)
@click.option("--list", "lists", is_flag=True, help="List workloads, and why which of them cannot run, instead of running.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.bench_perf:run_bench_perf")
def perf() -> None:
    """Run the workloads of Kubernetes' own scheduler benchmark, read from its files, and compare with their thresholds.

    DIR is test/integration/scheduler_perf of a Kubernetes release, or a part of it. Pods a second are sampled every second, as
    the original does. A workload that needs an operation, a template function or a gate which is not known here is an error.
    """
