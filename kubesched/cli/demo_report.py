"""What the demo prints: the nodes, what went where, and why the pods that wait do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from kubesched.cli.layout import print_table, say
from kubesched.embedded import ObjectStore
from kubesched.kube.values.well_known import ZONE
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.explaining.explain import Explanation, explain_now
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.server.app import Scheduler
from kubesched.tools.demo import sample

_MOST_EXPLAINED = 3


def print_nodes(store: ObjectStore) -> None:
    """Show the nodes, a row a zone."""
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


def print_placed(store: ObjectStore) -> None:
    """Show where the pods of each workload went."""
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


def print_pending(scheduler: Scheduler) -> None:
    """Say why the pods that wait do, once for each kind of them."""
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
