"""What `why` prints: the verdict first, then who refuses, then what would help, then the rest; for one glance at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from kubesched.cli.decision_report import print_facts, time_text
from kubesched.cli.layout import print_table, say
from kubesched.scheduler.engine.explaining import pod_report

Story = Mapping[str, Any]
_MOST_VICTIMS = 8


def print_story(story: Story) -> None:
    """Print a pod's story."""
    verdict, colour = _verdict(story)
    say(f"{story['pod']} {verdict}", bold=True, fg=colour)
    if story["state"] == pod_report.GONE:
        _print_decided(story)
        return
    say(_about(story), dim=True)
    if story["state"] == pod_report.PLACED:
        _print_decided(story)
    if story.get("othersLikeIt"):
        say(f"of {story['of']}, like {story['othersLikeIt']} more", dim=True)
    if story.get("groupNote"):
        say(story["groupNote"], fg="yellow")
    if story.get("claims"):
        _section("Devices", [each["text"] for each in story["claims"]], "-")
    if story.get("failure"):
        _section("An attempt breaks", [story["failure"]])
    if story.get("refusals"):
        _print_refusals(story)
    waits = story["state"] in (pod_report.PENDING, pod_report.GATED)
    advice = [each["text"] for each in story.get("advice", ()) if each["kind"] != "empty"]  # said again below
    if waits and advice:
        _section("What would help", advice, "-")
    if waits and story.get("preemption"):
        _section("Preemption", [_preemption(story["preemption"])])
    if waits and story.get("ever"):
        _section("Will it ever fit", [story["ever"]["text"]])
    if story.get("ranking"):
        _print_ranking(story)
    _print_home(story)
    would_say = story.get("wouldSay") if story["state"] == pod_report.PENDING and not story.get("failure") else ""
    said = story.get("message") or would_say
    if said:
        _section("The scheduler's message" if story.get("message") else "The scheduler would say", [said])
    if waits and story.get("wakesOn"):
        _section("It is tried again when", [f"{each['plugin']}: {each['text']}" for each in story["wakesOn"]], "-")


def _print_decided(story: Story) -> None:
    """Print how the pod came to be where it is, before how it looks now."""
    decided = story.get("decided")
    if decided is None:
        _section("As decided", ["there is no record of that here; a running kubesched has one (--server), or its decision log"])
    else:
        _title(f"As decided, at {time_text(decided['at'])}")
        print_facts(decided)
    if story["state"] != pod_report.GONE:
        _title("As it would be now")


def _verdict(story: Story) -> tuple[str, str]:
    """Return the answer in one line, and the style to print it in."""
    state, n, total = story["state"], story.get("feasibleCount", 0), story.get("nodeCount", 0)
    if state == pod_report.FINISHED:
        return f"is finished ({story['phase']}); it is not scheduled any more", "reset"
    if state == pod_report.NOT_OURS:
        return f"waits for a scheduler that is not configured here: {story['scheduler']}", "yellow"
    if state == pod_report.GONE:
        return (f"is gone; it was on {story['node']}" if story["node"] else "is gone; it had no node"), "reset"
    if state == pod_report.PLACED:
        return f"is on {story['node']}", "green"
    if state == pod_report.LEAVING:
        return "is being deleted; it is not scheduled any more", "yellow"
    if state == pod_report.GATED:
        then = f"; without the gate {n} of {total} nodes would take it" if n else ""
        return f"is gated by {story['gate']['plugin']}: {story['gate']['text']}{then}", "yellow"
    if story.get("failure"):
        return "is pending, and trying to place it fails", "red"
    if n and story.get("group"):
        return f"is pending with its group; alone, {n} of {total} nodes would take it now", "yellow"
    if n:
        return f"is pending, and {n} of {total} nodes would take it now; it would go to {story['wouldGoTo']}", "green"
    ever = story.get("ever")
    if ever is not None and total and not ever["largeEnoughCount"]:
        return f"is pending: none of {total} nodes takes it, and none ever could", "red"
    return f"is pending: none of {total} nodes takes it" if total else "is pending: there are no nodes", "red"


def _about(story: Story) -> str:
    asks = ", ".join(f"{amount} {resource}" for resource, amount in story["requests"].items()) or "nothing"
    parts = [f"asks for {asks}", f"priority {story['priority']}"]
    if story.get("priorityClass"):
        parts[1] += f" ({story['priorityClass']})"
    parts.append(f"scheduler {story['scheduler']}")
    if story.get("attempts"):
        parts.append(f"tried {story['attempts']} time{'s' if story['attempts'] != 1 else ''}, {story['place']}")
    if story.get("nominatedNode"):
        parts.append(f"nominated to {story['nominatedNode']}")
    return "; ".join(parts)


def _print_refusals(story: Story) -> None:
    whom = "one more like it" if story["node"] else "it"
    then = ", once it is not gated" if story["state"] == pod_report.GATED else ""
    n, total = story["feasibleCount"], story["nodeCount"]
    _title(f"{n} of {total} nodes would take {whom}{then}; who refuses {'the others' if n else 'which'}")
    rows = [
        (
            str(each["count"]),
            each["plugin"],
            "may help" if each["helpsToEvict"] else "no",
            f"{each['reason']} ({', '.join(each['examples'])}{', ...' if each['count'] > len(each['examples']) else ''})",
        )
        for each in story["refusals"]
    ]
    print_table(("nodes", "plugin", "evicting", "reason"), rows, right=(0,), sentences=True)


def _print_ranking(story: Story) -> None:
    ranking = story["ranking"]
    _title("Best nodes for one more like it, now" if story["node"] else "Best nodes, now")
    scores = {name: [each["byPlugin"][name] for each in ranking] for name in ranking[0]["byPlugin"]}
    alike = {name: column[0] for name, column in scores.items() if len(set(column)) == 1}
    rows = []
    for each in ranking:
        parts = [f"{name} {score}" for name, score in each["byPlugin"].items() if name not in alike]
        name = f"{each['node']} (it is here)" if each["node"] == story["node"] else each["node"]
        rows.append((str(each["total"]), name, ", ".join(parts)))
    shared = ", ".join(f"{name} {score}" for name, score in alike.items() if score)
    if shared:
        rows.append(("", "all of them", shared))
    print_table(("total", "node", "made of"), rows, right=(0,), sentences=True)


def _print_home(story: Story) -> None:
    now = story.get("nodeNow")
    if now is not None and now["reasons"]:
        click.echo()
        say(f"{story['node']} would not take one more like it: {', '.join(now['reasons'])}")


def _preemption(found: Story) -> str:
    if not found["helps"]:
        return "would not help"
    victims = [f"{each['pod']} (priority {each['priority']})" for each in found["victims"][:_MOST_VICTIMS]]
    more = found["victimCount"] - len(victims)
    broken = f"; breaks {found['budgetsBroken']} disruption budgets" if found["budgetsBroken"] else ""
    return f"would help: on {found['node']} it would evict {', '.join(victims)}{f' and {more} more' if more else ''}{broken}"


def _section(title: str, lines: Sequence[str], mark: str = "") -> None:
    _title(title)
    for line in lines:
        say(f"{mark} {line}" if mark else line, indent=" " if mark else "  ", hang="  " if mark else "")


def _title(text: str) -> None:
    click.echo()
    say(text, bold=True)
