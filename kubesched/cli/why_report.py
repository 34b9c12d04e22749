"""What `why` prints: the verdict first, then who refuses, then what would help, then the rest; for one glance at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.web import telling

Story = Mapping[str, Any]
_MOST_VICTIMS = 8


def print_story(console: Console, story: Story) -> None:
    """Print a pod's story."""
    verdict, style = _verdict(story)
    console.print(f"[{style}]{escape(story['pod'])} {escape(verdict)}[/]")
    console.print(f"[dim]{escape(_about(story))}[/]")
    if story.get("failure"):
        _section(console, "An attempt breaks", [story["failure"]])
    if story.get("refusals"):
        _print_refusals(console, story)
    waits = story["state"] in (telling.PENDING, telling.GATED)
    advice = [each["text"] for each in story.get("advice", ()) if each["kind"] != "empty"]  # said again below
    if waits and advice:
        _section(console, "What would help", advice, "-")
    if waits and story.get("preemption"):
        _section(console, "Preemption", [_preemption(story["preemption"])])
    if waits and story.get("ever"):
        _section(console, "Will it ever fit", [story["ever"]["text"]])
    if story.get("ranking"):
        _print_ranking(console, story)
    _print_home(console, story)
    would_say = story.get("wouldSay") if story["state"] == telling.PENDING and not story.get("failure") else ""
    said = story.get("message") or would_say
    if said:
        _section(console, "The scheduler's message" if story.get("message") else "The scheduler would say", [said])
    if waits and story.get("wakesOn"):
        _section(console, "It is tried again when", [f"{each['plugin']}: {each['text']}" for each in story["wakesOn"]], "-")


def _verdict(story: Story) -> tuple[str, str]:
    """Return the answer in one line, and the style to print it in."""
    state, n, total = story["state"], story.get("feasibleCount", 0), story.get("nodeCount", 0)
    if state == telling.FINISHED:
        return f"is finished ({story['phase']}); it is not scheduled any more", "bold"
    if state == telling.NOT_OURS:
        return f"waits for a scheduler that is not configured here: {story['scheduler']}", "bold yellow"
    if state == telling.PLACED:
        return f"is on {story['node']}", "bold green"
    if state == telling.LEAVING:
        return "is being deleted; it is not scheduled any more", "bold yellow"
    if state == telling.GATED:
        return f"is gated by {story['gate']['plugin']}: {story['gate']['text']}", "bold yellow"
    if story.get("failure"):
        return "is pending, and trying to place it fails", "bold red"
    if n:
        return f"is pending, and {n} of {total} nodes would take it now; it would go to {story['wouldGoTo']}", "bold green"
    ever = story.get("ever")
    if ever is not None and total and not ever["largeEnoughCount"]:
        return f"is pending: none of {total} nodes takes it, and none ever could", "bold red"
    return f"is pending: none of {total} nodes takes it" if total else "is pending: there are no nodes", "bold red"


def _about(story: Story) -> str:
    asks = ", ".join(f"{amount} {resource}" for resource, amount in story["requests"].items()) or "nothing"
    parts = [f"asks for {asks}", f"priority {story['priority']}"]
    if story.get("priorityClass"):
        parts[1] += f" ({story['priorityClass']})"
    parts.append(f"scheduler {story['scheduler']}")
    if story.get("attempts"):
        parts.append(f"tried {story['attempts']} time{'s' if story['attempts'] != 1 else ''}, {story['place']}")
    if story.get("group"):
        parts.append(f"of group {story['group']}, which is tried as a whole")
    if story.get("nominatedNode"):
        parts.append(f"nominated to {story['nominatedNode']}")
    return "; ".join(parts)


def _print_refusals(console: Console, story: Story) -> None:
    whom = "one more like it" if story["node"] else "it"
    then = ", once it is not gated" if story["state"] == telling.GATED else ""
    n, total = story["feasibleCount"], story["nodeCount"]
    console.print(f"\n[bold]{n} of {total} nodes would take {whom}{then}; who refuses {'the others' if n else 'which'}[/]")
    table = _table("nodes", "plugin", "reason", "evicting", "such as")
    for each in story["refusals"]:
        table.add_row(
            str(each["count"]),
            escape(each["plugin"]),
            escape(each["reason"]),
            "may help" if each["helpsToEvict"] else "no",
            escape(", ".join(each["examples"])),
        )
    console.print(table)


def _print_ranking(console: Console, story: Story) -> None:
    ranking = story["ranking"]
    title = "Best nodes for one more like it, now" if story["node"] else "Best nodes, now"
    console.print(f"\n[bold]{title}[/]")
    scores = {name: [each["byPlugin"][name] for each in ranking] for name in ranking[0]["byPlugin"]}
    alike = {name: column[0] for name, column in scores.items() if len(set(column)) == 1}
    table = _table("total", "node", "made of")
    for each in ranking:
        parts = [f"{name} {score}" for name, score in each["byPlugin"].items() if name not in alike]
        name = f"{each['node']} (it is here)" if each["node"] == story["node"] else each["node"]
        table.add_row(str(each["total"]), escape(name), escape(", ".join(parts)))
    shared = ", ".join(f"{name} {score}" for name, score in alike.items() if score)
    if shared:
        table.add_row("", "all of them", escape(shared))
    console.print(table)


def _print_home(console: Console, story: Story) -> None:
    now = story.get("nodeNow")
    if now is not None and now["reasons"]:
        console.print(f"\n{escape(story['node'])} would not take one more like it: {escape(', '.join(now['reasons']))}")


def _preemption(found: Story) -> str:
    if not found["helps"]:
        return "would not help"
    victims = [f"{each['pod']} (priority {each['priority']})" for each in found["victims"][:_MOST_VICTIMS]]
    more = found["victimCount"] - len(victims)
    broken = f"; breaks {found['budgetsBroken']} disruption budgets" if found["budgetsBroken"] else ""
    return f"would help: on {found['node']} it would evict {', '.join(victims)}{f' and {more} more' if more else ''}{broken}"


def _section(console: Console, title: str, lines: Sequence[str], mark: str = "") -> None:
    console.print(f"\n[bold]{title}[/]")
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row(f" {mark}", escape(line))
    console.print(grid)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number == 0 else "left", overflow="fold")
    return table
