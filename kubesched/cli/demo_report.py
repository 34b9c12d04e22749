"""What the demo prints: the nodes, what went where, and why the pods that wait do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.apiserver import Store
from kubesched.app import Scheduler
from kubesched.cli import sample
from kubesched.cluster import PodView
from kubesched.engine.explain import Explanation, explain_now
from kubesched.queue.queued import QueuedPod

_MOST_EXPLAINED = 3


def print_nodes(console: Console, store: Store) -> None:
    """Show the nodes, a row a zone."""
    nodes = store.list("nodes").items
    title = f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}"
    table = _table(title, "zone", "nodes", "cpu", "memory", "GPUs", "tainted")
    for zone in sorted({_zone(node) for node in nodes}):
        here = [node for node in nodes if _zone(node) == zone]
        offers = [node["status"]["allocatable"] for node in here]
        table.add_row(
            zone or "none",
            str(len(here)),
            str(sum(int(offer["cpu"]) for offer in offers)),
            f"{sum(int(offer['memory'].removesuffix('Gi')) for offer in offers)}Gi",
            str(sum(int(offer.get(sample.GPU, "0")) for offer in offers)),
            str(sum(1 for node in here if node["spec"].get("taints"))),
        )
    console.print("[bold]kubesched demo[/]: an API server, fake kubelets, controllers and the scheduler in this process")
    console.print(table)


def print_placed(console: Console, store: Store) -> None:
    """Show where the pods of each workload went."""
    zone_of = {node["metadata"]["name"]: _zone(node) for node in store.list("nodes").items}
    zones = sorted(set(zone_of.values()))
    placed: dict[str, Counter[str]] = {}
    nodes_used: dict[str, set[str]] = {}
    for pod in store.list("pods", sample.NAMESPACE).items:
        app, node = pod["metadata"].get("labels", {}).get("app", pod["metadata"]["name"]), pod["spec"].get("nodeName", "")
        placed.setdefault(app, Counter())[zone_of.get(node, "") if node else "pending"] += 1
        nodes_used.setdefault(app, set()).update({node} if node else set())
    table = _table("What went where", "workload", "rule", *(zone or "no zone" for zone in zones), "nodes used", "pending")
    table.columns[1].justify = "left"
    for app, counts in placed.items():
        table.add_row(
            escape(app),
            sample.RULES.get(app, ""),
            *(str(counts[zone]) for zone in zones),
            str(len(nodes_used[app])),
            str(counts["pending"] or ""),
        )
    console.print(table)


def print_pending(console: Console, scheduler: Scheduler) -> None:
    """Say why the pods that wait do, once for each kind of them."""
    engine = scheduler.engine
    kinds: dict[str, list[QueuedPod]] = {}
    for entry in list(engine.queue) if engine is not None else ():
        owner = entry.view.pod.metadata.controller()
        kinds.setdefault(owner.uid if owner is not None else entry.view.uid, []).append(entry)
    for entries in list(kinds.values())[:_MOST_EXPLAINED]:
        assert engine is not None
        told = explain_now(engine, entries[0].view)
        _print_explanation(console, told, entries[0].view, len(entries) - 1)
    if len(kinds) > _MOST_EXPLAINED:
        rest = sum(len(entries) for entries in list(kinds.values())[_MOST_EXPLAINED:])
        console.print(f"\n{rest} more {'pod is' if rest == 1 else 'pods are'} pending; the page tells why.")


def _print_explanation(console: Console, told: Explanation, pod: PodView, n_more: int) -> None:
    others = f", like {n_more} more," if n_more else ""
    console.print(f"\nWhy [bold]{escape(told.pod)}[/]{others} is pending ({told.n_feasible} of {told.n_nodes} nodes would do):")
    condition = next((each for each in pod.pod.status.conditions if each.type == "PodScheduled"), None)
    console.print(f"  {escape(condition.message if condition is not None else told.message)}", soft_wrap=True)
    for refusal in told.refusals:
        who = f"({refusal.plugin}; {', '.join(refusal.examples)})"
        console.print(f"  {refusal.count:>5} x {escape(refusal.reason)}  [dim]{escape(who)}[/]", soft_wrap=True)
    for line in told.advice:
        console.print(f"  {escape(line)}", soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right")
    return table


def _zone(node: dict[str, Any]) -> str:
    found: str = node["metadata"].get("labels", {}).get(sample.ZONE, "")
    return found
