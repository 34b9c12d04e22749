"""All pods that wait, grouped by what would help them, for `kubesched why` without a name.

In: an engine that believes in a cluster, and pods of it. Out: the groups of `engine.pending_groups`, and the same printed.
Replicas of one template are explained once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from kubesched.cli.layout import say
from kubesched.cli.printing import fewer
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.explaining.pending_groups import PendingGroups, alike
from kubesched.scheduler.engine.explaining.pod_report import pod_report
from kubesched.scheduler.engine.loop import Engine

_MOST_PODS = 6


def pending_report(engine: Engine, pods: Iterable[PodView]) -> dict[str, Any]:
    """Return the pods that wait, in groups; the largest first."""
    reports: dict[tuple[Any, ...], dict[str, Any]] = {}
    groups = PendingGroups()
    for pod in pods:
        key = alike(pod)
        if (report := reports.get(key)) is None:
            report = reports[key] = pod_report(engine, pod, top=1)
        groups.add(pod, report)
    return groups.document()


def print_pending(document: dict[str, Any]) -> None:
    """Print the groups: what would help first, then why, then who."""
    n_pending = document["pendingCount"]
    if not n_pending:
        say("no pod waits")
        return
    say(f"{n_pending} {'pod waits' if n_pending == 1 else 'pods wait'}", bold=True)
    for group in document["groups"]:
        click.echo()
        pods = "1 pod" if group["count"] == 1 else f"{group['count']} pods"
        say(f"{pods}: {fewer(dict.fromkeys(group['pods'], 1), _MOST_PODS)}", hang="  ")
        say(group["why"], indent="  ", hang="  ")
        for advice in group["advice"]:
            say(f"- {advice['text']}", indent="  ", hang="  ")


def print_patches(advice: Iterable[dict[str, Any]]) -> None:
    """Print what would help as commands, each under a comment that says what it does."""
    has_any = False
    for each in advice:
        for patch in each.get("patches", ()):
            has_any = True
            click.echo(f"# {each['text']}")
            if patch.get("note"):
                click.echo(f"# {patch['note']}")
            click.echo(patch["command"])
    if not has_any:
        click.echo("# no change of one object would help")
