"""The report of a soak as Markdown.

In: the document of `report`. Out: a page for the docs, with at most 24 of the samples over time.
"""

from __future__ import annotations

from typing import Any

_ROWS = 24
_WIDTH = 100


def markdown(report: dict[str, Any]) -> str:
    """Return the report as a Markdown page."""
    given, pods, machine, samples = report["settings"], report["pods"], report["machine"], report["samples"]
    if len(samples) > _ROWS:  # evenly spread, the first and the last among them
        samples = [samples[round(i * (len(samples) - 1) / (_ROWS - 1))] for i in range(_ROWS)]
    waits = "" if report["isFinal"] else f" {pods['waiting']} waited when this was written."
    fine = f"Nothing was missed, nothing was bound twice, no node held more than fits.{waits}"
    lines = [
        "# Soak report",
        "",
        f"{given['nodes']:,} nodes and {given['pods']:,} pods, {given['podsPerSecond']:g} pods a second that come and as many "
        f"that go, {given['schedulers']} schedulers, the {given['server']} API server, "
        f"a fault every {given['faultSeconds']:g} s: {report['seconds'] / 60:.0f} minutes on {machine['cores']} cores "
        f"(mean load {machine['meanLoad']}), Python {machine['python']}. Written by `kubesched bench soak`.",
        "",
        *(f"**{each}**\n" for each in report["complaints"] or (fine,)),
        "| | count | p50 | p99 | p99.9 | highest |",
        "|---|---:|---:|---:|---:|---:|",
        _row("decision, µs", report["decisionMicroseconds"]),
        _row("pod to bound, ms", report["podToBoundMilliseconds"]),
        _row("pod to bound between faults, ms", report["podToBoundBetweenFaultsMilliseconds"]),
        _pause_row(report["collectorPauses"]),
        "",
        f"{pods['askedFor']:,} pods were asked for and {pods['bound']:,} bound; {pods['gone']:,} went, and "
        f"{report['nodeChanges']:,} labels of nodes changed. "
        f"The fullest node had {pods['mostOnANode']} of the {pods['fitOnANode']} pods that fit in the end.",
        "",
        "## Faults",
        "",
        "| after | fault | whom | no API server for | first pod bound after |",
        "|---:|---|---|---:|---:|",
        *(
            f"| {_clock(each['seconds'])} | {each['kind']} | {each['whom']} | "
            f"{_lasted(each['serverAwaySeconds'])} | {_lasted(each['boundAfterSeconds'])} |"
            for each in report["faults"]
        ),
        "",
        "## Processes",
        "",
        "| process | lived | RSS first, last, most (MiB) | growth after a minute | most files | CPU |",
        "|---|---|---|---:|---:|---:|",
        *map(_process_row, report["processes"]),
        "",
        "## Over time",
        "",
        "| after | bound | waiting | leader's RSS, files | API server's RSS, files | load |",
        "|---:|---:|---:|---|---|---:|",
        *map(_sample_row, samples),
        "",
    ]
    return "\n".join(lines)


def _lasted(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds} s"


def _row(title: str, found: dict[str, Any]) -> str:
    cells = [f"{found[key]:,}" if key in found else "-" for key in ("count", "p50", "p99", "p99.9", "max")]
    return f"| {title} | {' | '.join(cells)} |"


def _pause_row(found: dict[str, Any]) -> str:
    if not found["count"]:
        return "| pause of the collector, ms | 0 | - | - | - | - |"
    cells = [f"at most {found[f'{key}AtMostMilliseconds']:g}" for key in ("p50", "p99", "p99.9", "max")]
    return f"| pause of the collector, ms | {found['count']:,} | {' | '.join(cells)} |"


def _process_row(each: dict[str, Any]) -> str:
    lived = f"{_clock(each['from'])} to {'the end' if each['to'] is None else _clock(each['to'])}"
    if each["endedByItself"]:
        lived += f", by itself: {each['lastWords'][:_WIDTH].replace('|', '/')}"
    if "rssMiB" not in each:
        return f"| {each['name']} | {lived} | - | - | - | - |"
    rss, growth = each["rssMiB"], each["growthMiBPerHour"]
    trend = "too short to say" if growth is None else f"{growth:+} MiB/h"
    return (
        f"| {each['name']} | {lived} | {rss['first']:.0f}, {rss['last']:.0f}, {rss['max']:.0f} | {trend} | "
        f"{each['mostFiles']} | {each['cpuSeconds']:.0f} s |"
    )


def _sample_row(row: dict[str, Any]) -> str:
    used = [f"{row[name]['rssMiB']:.0f}, {row[name]['files']}" if name in row else "-" for name in ("leader", "server")]
    return f"| {_clock(row['seconds'])} | {row['bound']:,} | {row['waiting']} | {used[0]} | {used[1]} | {row['load']} |"


def _clock(seconds: float) -> str:
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"
