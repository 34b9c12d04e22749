"""What `decisions` and `why` print of decisions on record: a table of many, or one in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from kubesched.cli.layout import print_table, say

Decision = Mapping[str, Any]
_COLOURS = {"placed": "green", "unschedulable": "yellow", "preempted": "yellow", "error": "red"}


def print_decisions(decisions: Sequence[Decision]) -> None:
    """Print many decisions, a row each."""
    if not decisions:
        say("no decision on record is like that")
        return
    rows = [
        (time_text(each["at"]), each["pod"], each["outcome"], each["node"], str(each["attempt"]), each["sentence"])
        for each in decisions
    ]
    print_table(("when", "pod", "outcome", "node", "attempt", "why"), rows, right=(4,), sentences=True)


def print_decision(decision: Decision) -> None:
    """Print one decision in full."""
    outcome = decision["outcome"]
    say(f"{decision['pod']}: {outcome}{' on ' + decision['node'] if decision['node'] else ''}", bold=True, fg=_COLOURS[outcome])
    parts = [f"decided at {time_text(decision['at'])}", f"attempt {decision['attempt']}"]
    parts.append(f"in {decision['latencySeconds'] * 1e6:.0f} us")
    if decision.get("boundSeconds") is not None:
        parts.append(f"bound {decision['boundSeconds']:.3g} s after its first attempt")
    if decision.get("group"):
        parts.append(f"of group {decision['group']}")
    say(f"{'; '.join(parts)}; decision {decision['sequence']} by {decision['scheduler']}", dim=True)
    print_facts(decision)
    click.echo()


def print_facts(decision: Decision) -> None:
    """Print what a decision was made by."""
    click.echo()
    say(decision["sentence"])
    if "levelCount" in decision:
        number, feasible = decision["levelCount"] or "several", decision["feasibleCount"]
        level = f"{number} of {feasible} feasible nodes had its total of {decision['total']}"
        behind = f"next was {decision['runnerUp']}, {decision['margin']} behind" if decision["margin"] else ""
        also = f"one of the others is {decision['runnerUp']}" if decision["runnerUp"] else ""
        say("; ".join(filter(None, (level, behind or also))))
    if decision["refusals"]:
        click.echo()
        say(f"{decision['feasibleCount']} of {decision['nodeCount']} nodes passed; who refused the others", bold=True)
        rows = [(str(each["count"]), each["plugin"], each["reason"]) for each in decision["refusals"]]
        print_table(("nodes", "plugin", "reason"), rows, right=(0,), sentences=True)
    elif decision["refusals"] is None:
        passed = f"{decision['feasibleCount']} of {decision['nodeCount']} nodes passed"
        say(f"{passed}; who refused the others was not counted (decisions --inbox-log counts it)")
    evicted = decision.get("preemption")
    if evicted:
        broken = f", {evicted['budgetViolations']} against a disruption budget" if evicted["budgetViolations"] else ""
        say(f"evicted from {evicted['node']}{broken}: {', '.join(evicted['victims'])}")
    if decision.get("ranking"):
        print_scores(decision["ranking"])


def print_scores(ranking: Sequence[Decision]) -> None:
    """Print the best nodes by plugin, as weighted (normalised, raw); what is the same for all is said once."""
    click.echo()
    say("Best nodes, as decided: weighted (normalised, raw)", bold=True)
    names = list(ranking[0]["byPlugin"])
    alike = [name for name in names if len({tuple(each["byPlugin"][name].values()) for each in ranking}) == 1]
    rows = [
        (str(each["total"]), each["node"], ", ".join(_score(name, each) for name in names if name not in alike))
        for each in ranking
    ]
    shared = ", ".join(_score(name, ranking[0]) for name in alike if ranking[0]["byPlugin"][name]["weighted"])
    if shared:
        rows.append(("", "all of them", shared))
    print_table(("total", "node", "made of"), rows, right=(0,), sentences=True)


def _score(name: str, node: Decision) -> str:
    score = node["byPlugin"][name]
    return f"{name} {score['weighted']} ({score['normalized']}, {score['raw']})"


def time_text(seconds: float) -> str:
    """Return a moment as people read it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
