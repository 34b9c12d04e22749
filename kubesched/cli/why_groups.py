"""All pods that wait, grouped by what would help them.

In: an engine that believes in a cluster, and pods of it. Out: one document: for each group its pods, who refuses them, and what
would help the first of them. Replicas of one template are explained once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from kubesched.cli.layout import say
from kubesched.cli.printing import fewer
from kubesched.cluster import PodView
from kubesched.engine import pod_report as reports
from kubesched.engine.loop import Engine

_OF_AMOUNTS = frozenset({"lower", "closest", "never", "empty", "pods"})
"""Advice that names other amounts for every pod: the same of two pods if it is of the same kind."""
_MOST_PODS = 6


def pending_report(engine: Engine, pods: Iterable[PodView]) -> dict[str, Any]:
    """Return the pods that wait, in groups; the largest first."""
    stories: dict[tuple[Any, ...], dict[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {}
    n_pending = 0
    for pod in pods:
        spec = pod.pod.spec
        own = pod.key if spec.resource_claims else ""  # claims are a pod's own
        alike = (id(pod.template), pod.namespace, pod.priority, bool(spec.scheduling_gates), own)
        story = stories.get(alike)
        if story is None:
            story = stories[alike] = reports.pod_report(engine, pod, top=1)
        if story["state"] not in (reports.PENDING, reports.GATED, reports.NOT_OURS):
            continue
        n_pending += 1
        group = groups.setdefault(_key(story), {"count": 0, "pods": [], **_told(story)})
        group["count"] += 1
        group["pods"].append(pod.key)
    return {"pendingCount": n_pending, "groups": sorted(groups.values(), key=lambda each: -each["count"])}


def _key(story: dict[str, Any]) -> str:
    advice = [
        (each["kind"], "" if each["kind"] in _OF_AMOUNTS else (each["plugin"], each.get("change") or each["text"]))
        for each in story.get("advice", ())
    ]
    reasons = sorted((each["plugin"], each["reason"]) for each in story.get("refusals", ()))
    state = (story["state"], story.get("gate"), story.get("group"), story.get("failure"), bool(story.get("feasibleCount")))
    other = story["scheduler"] if story["state"] == reports.NOT_OURS else ""
    return json.dumps([state, other, advice, reasons], sort_keys=True)


def _told(story: dict[str, Any]) -> dict[str, Any]:
    return {
        "state": story["state"],
        "why": _why(story),
        "advice": story.get("advice", []),
    }


def _why(story: dict[str, Any]) -> str:
    if story["state"] == reports.NOT_OURS:
        return f"for scheduler {story['scheduler']}, which is not configured here"
    if story["state"] == reports.GATED:
        return f"gated by {story['gate']['plugin']}: {story['gate']['text']}"
    if story.get("failure"):
        return str(story["failure"])
    if story["feasibleCount"]:
        with_others = f" alone; its group {story['group']} is tried as a whole" if story.get("group") else ""
        return f"{story['feasibleCount']} of {story['nodeCount']} nodes would take it now{with_others}"
    return str(story["wouldSay"])


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
