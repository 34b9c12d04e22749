"""`kubesched demo`: the embedded cluster, the scheduler, the page and a sample workload in one process."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.group import INTERRUPTED
from kubesched.cli.layout import print_table, say
from kubesched.cli.options import FOLDER, Options, PolicyOptions, option, takes, with_default
from kubesched.cli.printing import bar
from kubesched.kube.values import ZONE

if TYPE_CHECKING:
    import asyncio

    from kubesched.embedded import ObjectStore
    from kubesched.scheduler.cluster import PodView
    from kubesched.scheduler.engine import Explanation
    from kubesched.scheduler.queue import QueuedPod
    from kubesched.server.app import Scheduler
    from kubesched.tools.demo.cluster import Demo, Settings

_LINES_EVERY_SECONDS = 1.0
_MOST_EXPLAINED = 3


class DemoOptions(Options):
    """How large the demo is, and where it is served."""

    nodes: int = with_default("--nodes", click.IntRange(1, 5000), 20, "How many nodes.")
    pods: int = with_default("--pods", click.IntRange(6, 50000), 100, "About how many pods.")
    once: bool = option("--once", is_flag=True, help="Print the placements, and exit.")
    port: int = option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API; 0 picks a free one.")
    page_port: int = option(
        "--page-port", type=click.IntRange(0, 65535), default=0, help="Port of the page; 0 picks a free one."
    )
    data_dir: Path | None = option("--data-dir", type=FOLDER, help="Folder that keeps the objects across restarts.")


@click.command("demo", epilog="Example:  kubesched demo --nodes 50 --pods 400 --once")
@takes(options=DemoOptions, policy=PolicyOptions)
@click.option(
    "--decision-records",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="How many decisions to keep on record.",
)
def command(options: DemoOptions, policy: PolicyOptions, decision_records: int) -> None:
    """Run an API server, fake kubelets, controllers, the scheduler and its page in this process. kubectl works beside it."""
    import asyncio
    import tempfile

    from kubesched.tools.demo.cluster import Settings

    settings = Settings(
        options.nodes, options.pods, options.port, options.page_port, options.data_dir, policy.read(), decision_records
    )
    with tempfile.TemporaryDirectory(prefix="kubesched-demo-") as scratch:
        was_cut_short = asyncio.run(_demo(settings, options.once, Path(scratch)))
    if was_cut_short:
        sys.exit(INTERRUPTED)


async def _demo(settings: Settings, once: bool, scratch: Path) -> bool:
    """Run the demo; return whether it was stopped before it was through."""
    import asyncio

    from kubesched.tools.demo.cluster import demo_cluster

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with demo_cluster(settings, scratch, stopped, say) as demo:
        store = demo.server.store
        _print_nodes(store)
        say(f"The page is at http://127.0.0.1:{demo.page.port}/ui/\n")
        await _watch_placing(store, demo.scheduler, stopped)
        if not stopped.is_set():
            _print_placed(store)
            _print_pending(demo.scheduler)
        if not once and not stopped.is_set():
            _invite(demo)
            await stopped.wait()
        was_stopped = stopped.is_set()
    if was_stopped:
        say("Stopped." if settings.data_dir is None else f"Stopped; the objects are kept in {settings.data_dir}.")
    return was_stopped and once


async def _watch_placing(store: ObjectStore, scheduler: Scheduler, stopped: asyncio.Event) -> None:
    """Show a bar, or plain lines, until every pod is placed or was tried."""
    from kubesched.tools.demo.placing import Tally, placing

    tally, is_watched, told_at = Tally(store), sys.stdout.isatty(), time.monotonic()
    with bar("placing pods", None, patience_seconds=0) as done:
        async for now in placing(store, scheduler, tally, stopped):
            if not is_watched and now.has_changed and time.monotonic() - told_at >= _LINES_EVERY_SECONDS:
                say(f"placed {tally.n_placed} of {tally.n_pods} pods")
                told_at = time.monotonic()
            done(tally.n_placed, max(tally.n_pods, 1), f"{now.pods_a_second:,.0f} pods/s")
    say(f"placed {tally.n_placed} of {tally.n_pods} pods")


def _invite(demo: Demo) -> None:
    """Say what to try next."""
    from kubesched.tools.demo import sample

    line = f"kubectl --kubeconfig {shlex.quote(str(demo.kubeconfig))}"
    say(f"\nThe page:  http://127.0.0.1:{demo.page.port}/ui/")
    say(f"The API:   {demo.server.url}  (kubeconfig: {demo.kubeconfig})", hang="           ")
    say("Try:")
    for words in (
        f"get pods -n {sample.NAMESPACE} -o wide",
        f"describe pod whale -n {sample.NAMESPACE}",
        f"scale deployment web -n {sample.NAMESPACE} --replicas 60",
    ):
        click.echo(f"  {line} {words}")  # whole, to be copied
    say("Press Ctrl-C to end.")


def _print_nodes(store: ObjectStore) -> None:
    """Show the nodes, a row a zone."""
    from kubesched.tools.demo import sample

    nodes = store.list("nodes").items
    say("kubesched demo: an API server, fake kubelets, controllers and the scheduler in this process", bold=True)
    say(f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}", bold=True)
    rows = []
    for zone in sorted({_zone(node) for node in nodes}):
        here = [node for node in nodes if _zone(node) == zone]
        offers = [node["status"]["allocatable"] for node in here]
        rows.append(
            (
                zone or "none",
                str(len(here)),
                str(sum(int(offer["cpu"]) for offer in offers)),
                f"{sum(int(offer['memory'].removesuffix('Gi')) for offer in offers)}Gi",
                str(sum(int(offer.get(sample.GPU, "0")) for offer in offers)),
                str(sum(1 for node in here if node["spec"].get("taints"))),
            )
        )
    print_table(("zone", "nodes", "cpu", "memory", "GPUs", "tainted"), rows, right=range(1, 6))


def _print_placed(store: ObjectStore) -> None:
    """Show where the pods of each workload went."""
    from kubesched.tools.demo import sample

    zone_of = {node["metadata"]["name"]: _zone(node) for node in store.list("nodes").items}
    zones = sorted(set(zone_of.values()))
    placed: dict[str, Counter[str]] = {}
    nodes_used: dict[str, set[str]] = {}
    for pod in store.list("pods", sample.NAMESPACE).items:
        app, node = pod["metadata"].get("labels", {}).get("app", pod["metadata"]["name"]), pod["spec"].get("nodeName", "")
        placed.setdefault(app, Counter())[zone_of.get(node, "") if node else "pending"] += 1
        nodes_used.setdefault(app, set()).update({node} if node else set())
    titles = ("workload", *(zone or "no zone" for zone in zones), "nodes", "pending", "rule")
    rows = [
        (
            app,
            *(str(counts[zone]) for zone in zones),
            str(len(nodes_used[app])),
            str(counts["pending"] or ""),
            sample.RULES.get(app, ""),
        )
        for app, counts in placed.items()
    ]
    say("What went where", bold=True)
    print_table(titles, rows, right=range(1, len(titles) - 1), sentences=True)


def _print_pending(scheduler: Scheduler) -> None:
    """Say why the pods that wait do, once for each kind of them."""
    from kubesched.scheduler.engine import explain_now

    engine = scheduler.engine
    kinds: dict[str, list[QueuedPod]] = {}
    for entry in list(engine.queue) if engine is not None else ():
        owner = entry.view.pod.metadata.controller()
        kinds.setdefault(owner.uid if owner is not None else entry.view.uid, []).append(entry)
    for entries in list(kinds.values())[:_MOST_EXPLAINED]:
        assert engine is not None
        told = explain_now(engine, entries[0].view)
        _print_explanation(told, entries[0].view, len(entries) - 1)
    if len(kinds) > _MOST_EXPLAINED:
        rest = sum(len(entries) for entries in list(kinds.values())[_MOST_EXPLAINED:])
        click.echo()
        say(f"{rest} more {'pod is' if rest == 1 else 'pods are'} pending; the page tells why.")


def _print_explanation(told: Explanation, pod: PodView, n_more: int) -> None:
    others = f", like {n_more} more," if n_more else ""
    click.echo()
    say(f"Why {told.pod}{others} is pending ({told.n_feasible} of {told.n_nodes} nodes would do):", bold=True)
    condition = next((each for each in pod.pod.status.conditions if each.type == "PodScheduled"), None)
    say(condition.message if condition is not None else told.message, indent="  ")
    for refusal in told.refusals:
        who = f"({refusal.plugin}; {', '.join(refusal.examples)})"
        say(f"{refusal.count:>5} x {refusal.reason}  {who}", indent="  ", hang="        ")
    for line in told.advice:
        say(line, indent="  ", hang="  ")


def _zone(node: dict[str, Any]) -> str:
    found: str = node["metadata"].get("labels", {}).get(ZONE, "")
    return found
