"""`kubesched decisions`: what was decided and by what, from a running scheduler, a decision log or an inbox log."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.options import (
    FILE_OR_STDIN,
    Options,
    PolicyOptions,
    ServerOptions,
    namespace_option,
    option,
    output_option,
    takes,
    with_default,
)
from kubesched.cli.printing import bar, print_document
from kubesched.errors import SchedulerError

OUTCOMES = ("placed", "unschedulable", "preempted", "error")
Decision = Mapping[str, Any]
_COLOURS = {"placed": "green", "unschedulable": "yellow", "preempted": "yellow", "error": "red"}
_AGO = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class LogOptions(Options):
    """Which file the decisions are read from."""

    log_file: Path | None = option(
        "--log",
        type=FILE_OR_STDIN,
        help="Read what `run --decision-log` wrote instead; FILE.1 and older beside it are read too.",
    )
    inbox_log: Path | None = option(
        "--inbox-log", type=FILE_OR_STDIN, help="Decide again what `run --inbox-log` wrote, and tell every decision in full."
    )


class FilterOptions(Options):
    """Which decisions are shown."""

    node: str = option("--node", default="", help="Only decisions for this node, or that evict pods from it.")
    outcome: str | None = option(
        "--outcome", type=click.Choice(OUTCOMES), default=None, help="Only decisions with this outcome."
    )
    refused_by: str = option(
        "--refused-by", default="", metavar="PLUGIN", help="Only decisions in which this plugin refused nodes."
    )
    since: str = option(
        "--since",
        default="",
        metavar="TIME",
        help="Only decisions after this time: 2026-01-31T12:00:00Z, 10m (ago), or seconds since 1970.",
    )
    until: str = option("--until", default="", metavar="TIME", help="Only decisions before this time.")
    limit: int = with_default("--limit", click.IntRange(1), 100, "How many decisions to show, newest first.")


@click.command(
    "decisions", epilog="Example:  kubesched decisions --server https://127.0.0.1:10259 --token $TOKEN --outcome preempted"
)
@click.argument("pod", metavar="[[NS/]POD]", default="")
@namespace_option
@takes(server=ServerOptions, logs=LogOptions, policy=PolicyOptions, only=FilterOptions)
@output_option
def command(
    pod: str, namespace: str, server: ServerOptions, logs: LogOptions, policy: PolicyOptions, only: FilterOptions, output: str
) -> None:
    """List the recorded decisions of a scheduler, newest first, or show those of one pod in full.

    They come from a running scheduler (--server), a decision log (--log), or an inbox log (--inbox-log). An inbox log holds the
    inputs of the decisions: they are repeated, with every score.
    """
    from kubesched.scheduler.engine import DecisionFilter
    from kubesched.tools.decisions.finding import ask, decided_again, read_log
    from kubesched.tools.snapshots.sources import named

    given, _, name = pod.rpartition("/")
    if pod and (not name or (given and namespace and given != namespace)):
        raise click.UsageError(f"{pod!r} is not a pod's name" if not name else f"{pod} is not in namespace {namespace}")
    if sum(map(bool, (server.server, logs.log_file, logs.inbox_log))) != 1:
        raise click.UsageError("say where the decisions are: --server URL, --log FILE or --inbox-log FILE")
    if policy.has_any and logs.inbox_log is None:
        raise click.UsageError("--config, --feature-gates and --plugin go with --inbox-log: what is recorded is decided")
    address = server.address()
    where = given or namespace or ("default" if pod else "")
    key = f"{where}/{name}" if pod else ""
    times = _moment(only.since, "--since"), _moment(only.until, "--until")
    wanted = DecisionFilter(where, key, only.node, only.outcome or "", only.refused_by, *times)
    if address is not None:
        found = ask(address, wanted, only.limit)
    else:
        if logs.inbox_log is not None:
            lines, chosen = policy.read_log(logs.inbox_log)
            with named(logs.inbox_log), bar("deciding again", None):
                decisions = decided_again(lines, chosen)
        else:
            assert logs.log_file is not None
            decisions = list(read_log(logs.log_file))
        found = [each for each in decisions if wanted.takes(each)][-only.limit :][::-1]
    if pod and not found:
        raise SchedulerError(f"no decision about pod {key} is on record there")
    if output != "table":
        print_document({"decisions": found}, output)
    elif pod:
        for decision in found:
            print_decision(decision)
    else:
        print_decisions(found)


def _moment(text: str, option: str) -> float | None:
    """Return a time as people write it: RFC 3339, seconds since 1970, or how long ago."""
    if not text:
        return None
    ago = _AGO.fullmatch(text.removesuffix(" ago"))
    if ago:
        return time.time() - float(ago[1]) * _SECONDS[ago[2]]
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is no time; try 2026-01-31T12:00:00Z or 10m") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


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
