"""The report of a soak: percentiles, processes, faults, and complaints.

In: `Measured`. Out: plain values, for JSON and for `page`. Complaints come first.
"""

from __future__ import annotations

import os
import platform
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kubesched.tools.bench.processes import last_line
from kubesched.tools.bench.soak.churn import PODS_PER_NODE, Users
from kubesched.tools.bench.soak.faults import Fault, Faults
from kubesched.tools.bench.soak.replicas import Replica, Replicas

if TYPE_CHECKING:
    from kubesched.tools.bench.soak.run import Soak

QUANTILES = (50.0, 99.0, 99.9)
SHORTEST_TREND_SECONDS = 300.0
_WARM_UP_SECONDS = 60.0


@dataclass(slots=True)
class Measured:
    """What a soak has measured so far."""

    soak: Soak
    began: float
    users: Users
    replicas: Replicas
    faults: Faults
    churn_seconds: float = 0.0
    decisions: array[float] = field(default_factory=lambda: array("d"))
    samples: list[dict[str, Any]] = field(default_factory=list)

    def sample(self, now: float, load: float) -> None:
        """Add a row to the samples over time."""
        leader, server, ledger = self.replicas.leader, self.replicas.server, self.users.ledger
        row: dict[str, Any] = {
            "seconds": round(now - self.began),
            "bound": ledger.n_bound,
            "waiting": len(ledger.created),
            "load": round(load, 2),
        }
        for name, replica in (("leader", leader), ("server", server)):
            if replica is not None and replica.usages:
                usage = replica.usages[-1][1]
                row[name] = {"rssMiB": round(usage.rss_mib, 1), "files": usage.n_files}
        self.samples.append(row)


def document(measured: Measured, *, is_final: bool = False) -> dict[str, Any]:
    """Return the report as plain values."""
    soak, ledger, users = measured.soak, measured.users.ledger, measured.users
    delays, bound_at = np.frombuffer(ledger.delays), np.frombuffer(ledger.bound_at)
    load = round(float(np.mean([row["load"] for row in measured.samples])), 2) if measured.samples else 0.0
    calm = _calm(bound_at - delays, measured.faults.done) if len(delays) else np.zeros(0, bool)
    return {
        "complaints": complaints(measured, is_final=is_final),
        "seconds": round(measured.churn_seconds or measured.samples[-1]["seconds"]),
        "isFinal": is_final,
        "settings": {
            "nodes": soak.nodes,
            "pods": soak.pods,
            "podsPerSecond": soak.rate,
            "schedulers": soak.schedulers,
            "faultSeconds": soak.fault_seconds,
            "server": "given" if soak.kubeconfig else "embedded",
            "seed": soak.seed,
        },
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "meanLoad": load},
        "pods": {
            "askedFor": users.n_asked,
            "bound": ledger.n_bound,
            "gone": ledger.n_gone,
            "waiting": len(ledger.created),
            "boundTwice": len(ledger.bound_twice),
            "overbookedNodes": len(ledger.overbooked),
            "mostOnANode": ledger.most_on_a_node,
            "fitOnANode": PODS_PER_NODE,
        },
        "nodeChanges": users.n_node_changes,
        "decisionMicroseconds": quantiles(np.frombuffer(measured.decisions), 1e6),
        "podToBoundMilliseconds": quantiles(delays, 1e3),
        "podToBoundBetweenFaultsMilliseconds": quantiles(delays[calm], 1e3),
        "collectorPauses": pauses(measured.replicas.all),
        "faults": [
            {
                "seconds": round(fault.at - measured.began),
                "kind": fault.kind,
                "whom": fault.whom,
                "serverAwaySeconds": None if fault.away is None else round(fault.away, 2),
                "boundAfterSeconds": None if fault.bound_after is None else round(fault.bound_after, 2),
            }
            for fault in measured.faults.done
        ],
        "processes": [_process(each, measured.began) for each in measured.replicas.all],
        "samples": measured.samples,
    }


def complaints(measured: Measured, *, is_final: bool) -> list[str]:
    """Return a sentence for each thing that must not happen and did."""
    ledger = measured.users.ledger
    found = [f"bound twice: {text}" for text in ledger.bound_twice]
    found += [f"{node} held {n} pods, {PODS_PER_NODE} fit" for node, n in ledger.overbooked.items()]
    found += [fault.complaint for fault in measured.faults.done if fault.complaint]
    if is_final and ledger.created:
        names = sorted(ledger.created)
        found.append(f"{len(names)} pods were never bound, {names[0]} among them")
    return found


def quantiles(values: np.ndarray[Any, np.dtype[np.float64]], scale: float) -> dict[str, Any]:
    """Return the count, three percentiles and the maximum."""
    if not len(values):
        return {"count": 0}
    found = np.percentile(values, QUANTILES) * scale
    named = {f"p{q:g}": round(float(value), 1) for q, value in zip(QUANTILES, found, strict=True)}
    return {"count": len(values), **named, "max": round(float(values.max()) * scale, 1)}


def pauses(replicas: Sequence[Replica]) -> dict[str, Any]:
    """Return the pauses of the schedulers' collectors. A percentile is the upper bound of its bucket."""
    bounds: dict[float, float] = {}
    summed = 0.0
    for replica in replicas:
        summed += replica.pauses.get("sum", 0.0)
        for bound, n in replica.pauses.items():
            if bound != "sum":
                bounds[float(bound)] = bounds.get(float(bound), 0.0) + n
    ordered = sorted(bounds.items())
    if not ordered or not ordered[-1][1]:
        return {"count": 0}
    total = ordered[-1][1]

    def at_most(share: float) -> float:
        return next(bound for bound, n in ordered if n >= share * total) * 1e3

    return {
        "count": int(total),
        "seconds": round(summed, 3),
        **{f"p{q:g}AtMostMilliseconds": at_most(q / 100) for q in QUANTILES},
        "maxAtMostMilliseconds": at_most(1.0),
    }


def _calm(created: np.ndarray[Any, np.dtype[np.float64]], done: Sequence[Fault]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which pods were created between faults: after the first binding after one fault, before the next."""
    calm = np.ones(len(created), bool)
    for fault in done:
        ends = fault.at + (fault.bound_after if fault.bound_after is not None else np.inf)
        calm &= (created < fault.at - 1.0) | (created > ends)
    return calm


def _process(replica: Replica, began: float) -> dict[str, Any]:
    usages = replica.usages
    row: dict[str, Any] = {
        "name": replica.name,
        "from": round(replica.started - began),
        "to": None if replica.ended is None else round(replica.ended - began),
        "exitCode": replica.process.poll(),
        "endedByItself": replica.ended is not None and not replica.has_to_end,
    }
    if row["endedByItself"]:
        row["lastWords"] = last_line(replica.log)
    if usages:
        rss = [usage.rss_mib for _, usage in usages]
        row |= {
            "rssMiB": {"first": round(rss[0], 1), "last": round(rss[-1], 1), "max": round(max(rss), 1)},
            "mostFiles": max(usage.n_files for _, usage in usages),
            "cpuSeconds": round(usages[-1][1].cpu_seconds, 1),
            "growthMiBPerHour": _growth(usages),
        }
    return row


def _growth(usages: Sequence[tuple[float, Any]]) -> float | None:
    """Return the slope of a process's memory after its first minute; None if it ran too short for a trend."""
    started = usages[0][0] + _WARM_UP_SECONDS
    points = [(at, usage.rss_mib) for at, usage in usages if at >= started]
    if len(points) < 3 or points[-1][0] - points[0][0] < SHORTEST_TREND_SECONDS:
        return None
    at, rss = np.array(points).T
    return round(float(np.polyfit((at - at[0]) / 3600.0, rss, 1)[0]), 1)
