"""`kubesched why`: why a pod is pending, or why it is where it is.

Prints the verdict first, then who refuses, then what would help, then the rest; for one glance at a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from kubesched.cli.decisions import print_facts, time_text
from kubesched.cli.layout import print_table, say
from kubesched.cli.options import ClusterOptions, PolicyOptions, ServerOptions, namespace_option, takes
from kubesched.cli.printing import fewer, print_document

Story = Mapping[str, Any]
_MOST_VICTIMS = 8
_MOST_PODS = 6
POD = "Pod"
_KINDS = {
    alias: kind
    for kind, aliases in {
        POD: ("pod", "pods", "po"),
        "Deployment": ("deployment", "deployments", "deploy"),
        "StatefulSet": ("statefulset", "statefulsets", "sts"),
        "DaemonSet": ("daemonset", "daemonsets", "ds"),
        "ReplicaSet": ("replicaset", "replicasets", "rs"),
        "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
        "Job": ("job", "jobs"),
        "CronJob": ("cronjob", "cronjobs", "cj"),
    }.items()
    for alias in aliases
}
"""As kubectl calls them."""


@click.command("why", epilog="Example:  kubesched why team-a/web-0 --kubeconfig ~/.kube/config")
@click.argument("what", metavar="[[NS/]POD|KIND/NAME]", default="")
@namespace_option
@takes(cluster=ClusterOptions, server=ServerOptions, policy=PolicyOptions)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="How many nodes to rank. A running scheduler ranks five.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "patch"]),
    default="table",
    show_default=True,
    help="Output format. patch: each change that would help, as a kubectl command.",
)
def command(
    what: str, namespace: str, cluster: ClusterOptions, server: ServerOptions, policy: PolicyOptions, top: int, output: str
) -> None:
    """Explain a pending pod, or a placed one: which plugins refuse which nodes, what would help, which pods it would evict.

    Takes a pod (web-0, team-a/web-0, pod/web-0), a workload (deploy/web, sts/db, job/report, ...), or nothing: then all pending
    pods, grouped by what would help. -o patch prints each change that would help as a kubectl command.

    The pod is looked for in a cluster, which is only read, in a file that `snapshot` or `run --inbox-log` wrote, or in the
    memory of a running scheduler.
    """
    import asyncio

    from kubesched.tools.why import story

    asked, kind, name = _asked_for(what)
    if asked and namespace and asked != namespace:
        raise click.UsageError(f"{what} is not in namespace {namespace}")
    where = asked or namespace
    if address := server.address(asks_else=cluster.has_any or policy.has_any or kind != POD):
        if cluster.has_any or policy.has_any:
            raise click.UsageError("--server asks a running scheduler: it has its own cluster and its own configuration")
        if kind != POD:
            raise click.UsageError("--server asks a running scheduler about one pod: name it")
        found = story.story_of_scheduler(address, where or "default", name, top)
    else:
        captured, chosen = cluster.read_for_dry_run(policy)
        if not kind:
            found = story.story_of_pending(captured, chosen, story.pending_pods(captured, where))
        elif kind == POD:
            where = cluster.namespace(where)
            pod = story.find_pod(captured, where, name)
            if pod is None and cluster.snapshot_file is None:
                pod = asyncio.run(story.read_finished_pod(cluster.kubeconfig, cluster.context, where, name))
            if pod is None:
                raise story.no_such_pod(captured, where, name)
            found = story.story_of_pod(captured, chosen, pod, top)
        else:
            found = story.story_of_workload(captured, chosen, kind, cluster.namespace(where), name, top)
    if output == "patch":
        parts = found.get("groups", [found])
        print_patches(advice for part in parts for advice in part.get("advice", ()))
    elif output != "table":
        print_document(found, output)
    elif "groups" in found:
        print_pending(found)
    else:
        print_story(found)


def _asked_for(what: str) -> tuple[str, str, str]:
    """Return namespace, kind and name of what was asked for; nothing of it for all that waits."""
    if not what:
        return "", "", ""
    *before, name = what.split("/")
    kind = POD
    if before and before[-1].partition(".")[0].lower() in _KINDS:
        kind = _KINDS[before.pop().partition(".")[0].lower()]
    if len(before) > 1 or not name or not all(before):
        raise click.UsageError(f"{what!r} is not a pod's name" if not name else f"{what!r} is not NS/POD or KIND/NAME")
    return (before[0] if before else ""), kind, name


def print_story(story: Story) -> None:
    """Print a pod's story."""
    verdict, colour = _verdict(story)
    say(f"{story['pod']} {verdict}", bold=True, fg=colour)
    if story["state"] == "gone":
        _print_decided(story)
        return
    say(_about(story), dim=True)
    if story["state"] == "placed":
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
    waits = story["state"] in ("pending", "gated")
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
    would_say = story.get("wouldSay") if story["state"] == "pending" and not story.get("failure") else ""
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
    if story["state"] != "gone":
        _title("As it would be now")


def _verdict(story: Story) -> tuple[str, str]:
    """Return the answer in one line, and the style to print it in."""
    state, n, total = story["state"], story.get("feasibleCount", 0), story.get("nodeCount", 0)
    if state == "finished":
        return f"is finished ({story['phase']}); it is not scheduled any more", "reset"
    if state == "notOurs":
        return f"waits for a scheduler that is not configured here: {story['scheduler']}", "yellow"
    if state == "gone":
        return (f"is gone; it was on {story['node']}" if story["node"] else "is gone; it had no node"), "reset"
    if state == "placed":
        return f"is on {story['node']}", "green"
    if state == "leaving":
        return "is being deleted; it is not scheduled any more", "yellow"
    if state == "gated":
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
    then = ", once it is not gated" if story["state"] == "gated" else ""
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
