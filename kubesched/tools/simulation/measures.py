"""The figures of a simulation: counts, waiting times, utilisation, spread.

In: calls for each pod that arrives, is placed or ends, and for each node. Out: one document of figures, and rows of a series.
Utilisation is exact: requests over allocatable, weighted by time. For example 50 % for 10 s and 100 % for 30 s have a mean of
87.5 %. Figures that need a pass over all nodes (fragmentation, skew, queue lengths) are sampled at an interval of virtual time.
Nothing here reads a clock.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable
from typing import Any

from kubesched.scheduler.cluster import Snapshot, fragmentation
from kubesched.tools.simulation.pod_record import DELETED, FINISHED, PENDING, RUNNING, PodRecord

_DIGITS = 6
_SAME_TIME = 1e-7


class Level:
    """A value over time: its time-weighted mean, its peak, and its present value."""

    __slots__ = ("area", "now", "peak")

    def __init__(self) -> None:
        self.now = self.peak = self.area = 0.0

    def hold(self, seconds: float) -> None:
        """Add a time during which the value did not change."""
        self.area += self.now * seconds
        self.peak = max(self.peak, self.now)

    def figures(self, seconds: float) -> dict[str, float]:
        """Return mean, peak and end."""
        return {
            "mean": rounded(self.area / seconds if seconds else self.now),
            "peak": rounded(max(self.peak, self.now)),
            "end": rounded(self.now),
        }


class Usage:
    """Requests for one resource, over the allocatable amount."""

    __slots__ = ("level", "offered", "requested")

    def __init__(self) -> None:
        self.requested = self.offered = 0
        self.level = Level()

    def change(self, requested: int = 0, offered: int = 0) -> None:
        """Add to the requests and to the allocatable amount."""
        self.requested += requested
        self.offered += offered
        self.level.now = self.requested / self.offered if self.offered else 0.0


class Measures:
    """Counts, weighs and samples."""

    def __init__(self, sample_seconds: float) -> None:
        self.sample_seconds = sample_seconds
        self.look: Callable[[], dict[str, Any]] = dict
        """Returns the lengths of the queue, the nodes as `snapshot`, and the names of unreachable nodes as `out`."""
        self.on_row: Callable[[dict[str, Any]], None] | None = None
        """Takes each row of the series."""
        self.states: Counter[str] = Counter()
        self.because: Counter[str] = Counter()
        self.n_scaled_up = self.n_scaled_down = self.n_reclaimed = self.n_refused_by_quota = self.n_waiting_for_quota = 0
        self.rollouts: list[float] = []
        """The seconds that each finished rollout took."""
        self.n_there = self.n_arrived = self.n_again = self.n_placed = self.n_preempted = self.n_refused = 0
        self.cpu, self.memory, self.nodes_used = Usage(), Usage(), Level()
        self.n_nodes = 0
        self._seconds = 0.0
        self._n_samples = 0
        self._waits: list[float] = []
        self._n_in_rows = (0, 0)
        """How many placements and preemptions are in rows already."""
        self._sizes: tuple[list[int], list[int]] = ([], [])
        self.pending: dict[str, PodRecord] = {}
        """Pending pods by uid, oldest first."""
        self._price = Level()
        self._users: Counter[str] = Counter()
        self._in_zones: dict[str, Counter[str]] = {}
        self._zones: Counter[str] = Counter()
        self._fragmentation: list[float] = []
        self._widest: tuple[int, str] = (0, "")

    def advance(self, now: float) -> None:
        """Advance to a time, with the values unchanged since the last call. Call it before each change."""
        if now <= self._seconds:
            return
        while (at := self._n_samples * self.sample_seconds) < now - _SAME_TIME:
            self._n_samples += 1
            self._sample(at)
        passed = now - self._seconds
        for level in (self.cpu.level, self.memory.level, self.nodes_used, self._price):
            level.hold(passed)
        self._seconds = now

    def arrived(self, record: PodRecord) -> None:
        """Count a pod that arrived."""
        self.states[record.state] += 1
        if record.state == RUNNING:
            self.n_there += 1
            self._settle(record, 1)
            return
        self.n_arrived += 1
        self.n_again += bool(record.n_before)
        self.pending[record.pod.metadata.uid] = record
        insort(self._sizes[0], record.cpu_milli)
        insort(self._sizes[1], record.memory_bytes)

    def placed(self, record: PodRecord) -> None:
        """Count a pending pod that was bound."""
        self.states[PENDING] -= 1
        self.states[RUNNING] += 1
        del self.pending[record.pod.metadata.uid]
        self.n_placed += 1
        assert record.placed is not None
        self._waits.append(record.placed - record.arrived)
        self._settle(record, 1)

    def ended(self, record: PodRecord, before: str) -> None:
        """Count a pod that finished or was deleted; `before` is its last state."""
        self.states[before] -= 1
        self.states[record.state] += 1
        self.pending.pop(record.pod.metadata.uid, None)
        if record.state == DELETED:
            self.because[record.why] += 1
        if before == RUNNING:
            self._settle(record, -1)

    def pay(self, now: float, price: float) -> None:
        """Add to the price per hour, from now on."""
        self.advance(now)
        self._price.now += price

    def node_offers(self, cpu_milli: int, memory_bytes: int, zone: str, sign: int) -> None:
        """Count a node that joined (1) or left (-1)."""
        self.n_nodes += sign
        self.cpu.change(offered=sign * cpu_milli)
        self.memory.change(offered=sign * memory_bytes)
        if zone:
            self._zones[zone] += sign

    def _settle(self, record: PodRecord, sign: int) -> None:
        self.cpu.change(requested=sign * record.cpu_milli)
        self.memory.change(requested=sign * record.memory_bytes)
        if record.zone:
            self._in_zones.setdefault(record.workload, Counter())[record.zone] += sign
        if not record.is_daemon:
            before = self._users[record.node]
            self._users[record.node] = before + sign
            self.nodes_used.now += (before + sign > 0) - (before > 0)

    @property
    def n_pods(self) -> int:
        """Return the number of pods so far."""
        return self.n_there + self.n_arrived

    def longest_pending(self) -> float:
        """Return how long the oldest pending pod has waited."""
        return self._seconds - min((record.arrived for record in self.pending.values()), default=self._seconds)

    def _sample(self, at: float) -> None:
        seen = self.look()
        share = self.fragmentation(seen["snapshot"], seen["out"])
        self._fragmentation.append(share)
        self._widest = max(self._widest, skew := self._skew())
        if self.on_row is not None:
            self.on_row(
                {
                    "time": rounded(at),
                    "nodes": self.n_nodes,
                    "cpu": rounded(self.cpu.level.now),
                    "memory": rounded(self.memory.level.now),
                    "running": self.states[RUNNING],
                    "pending": self.states[PENDING],
                    "active": seen["active"],
                    "backoff": seen["backoff"],
                    "unschedulable": seen["unschedulable"],
                    "gated": seen["gated"],
                    "nodesUsed": int(self.nodes_used.now),
                    "fragmentation": rounded(share),
                    "maxSkew": skew[0],
                    **self._since_last_row(),
                }
            )

    def _since_last_row(self) -> dict[str, Any]:
        """Return the placements and preemptions since the last row, and percentiles of the waiting times."""
        n_placed, n_preempted = self._n_in_rows
        self._n_in_rows = len(self._waits), self.n_preempted
        waits = sorted(self._waits[n_placed:])
        return {
            "placed": len(waits),
            "preempted": self.n_preempted - n_preempted,
            **{f"waitedP{p}": rounded(percentile(waits, p)) if waits else None for p in (50, 99)},
        }

    def fragmentation(self, nodes: Snapshot, out_of_service: set[str]) -> float:
        """Return the share of the free CPU that pods of median size cannot use.

        Each schedulable node is filled with as many such pods as fit; the CPU that is left over counts. The median is that
        of the pending pods, or of all pods so far if none is pending. Example: two nodes with 3 free cores each, a median of
        2 cores: one pod fits on each node, and 2 of 6 cores are left over, a share of 0.33.
        """
        usable = ~nodes.is_unschedulable
        usable[nodes.rows_of(out_of_service)] = False
        return fragmentation(nodes, *self._median(), usable)

    def _median(self) -> tuple[int, int]:
        cpus, memories = self._sizes
        if self.pending:
            cpus = sorted(record.cpu_milli for record in self.pending.values())
            memories = sorted(record.memory_bytes for record in self.pending.values())
        return (cpus[len(cpus) // 2], memories[len(memories) // 2]) if cpus else (0, 0)

    def _skew(self) -> tuple[int, str]:
        """Return the largest difference between two zones in pods of one workload, and the workload."""
        zones = [zone for zone, n in self._zones.items() if n]
        if len(zones) < 2:
            return 0, ""
        return max(
            (
                (max(counts[zone] for zone in zones) - min(counts[zone] for zone in zones), name)
                for name, counts in self._in_zones.items()
            ),
            default=(0, ""),
        )

    def figures(self) -> dict[str, Any]:
        """Return all figures at this time; times in virtual seconds, shares between 0 and 1."""
        seconds, waits, seen = self._seconds, sorted(self._waits), self.look()
        shares, end_skew = self._fragmentation, self._skew()
        peak_skew = max(self._widest, end_skew)
        return {
            "seconds": rounded(seconds),
            "pods": {
                "there": self.n_there,
                "arrived": self.n_arrived,
                "again": self.n_again,
                "placed": self.n_placed,
                "pending": self.states[PENDING],
                "running": self.states[RUNNING],
                "finished": self.states[FINISHED],
                "deleted": self.states[DELETED],
                "preempted": self.n_preempted,
                "deletedBecause": dict(sorted(self.because.items())),
            },
            "refusals": self.n_refused,
            "timeToPlacement": {
                **{f"p{p}": rounded(percentile(waits, p)) for p in (50, 90, 99)},
                "max": rounded(waits[-1] if waits else 0.0),
            },
            "longestPending": rounded(self.longest_pending()),
            "utilisation": {"cpu": self.cpu.level.figures(seconds), "memory": self.memory.level.figures(seconds)},
            "packing": {
                "nodes": self.n_nodes,
                "nodesUsed": self.nodes_used.figures(seconds),
                "fragmentation": {
                    "mean": rounded(sum(shares) / len(shares) if shares else 0.0),
                    "end": rounded(self.fragmentation(seen["snapshot"], seen["out"])),
                },
            },
            "nodes": {"scaledUp": self.n_scaled_up, "scaledDown": self.n_scaled_down, "reclaimed": self.n_reclaimed},
            "cost": {"total": rounded(self._price.area / 3600), "perHour": self._price.figures(seconds)},
            "quotas": {"refused": self.n_refused_by_quota, "waiting": self.n_waiting_for_quota},
            "rollouts": {"finished": len(self.rollouts), "longest": rounded(max(self.rollouts, default=0.0))},
            "spread": {
                "zones": sum(1 for n in self._zones.values() if n),
                "maxSkew": {"peak": peak_skew[0], "end": end_skew[0], "workload": peak_skew[1]},
            },
        }


def percentile(ordered: list[float], percent: int) -> float:
    """Return a percentile of sorted values by the nearest-rank method."""
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1] if ordered else 0.0


def rounded(value: float) -> float:
    """Return a figure rounded for output, without the rounding noise of virtual time."""
    return round(value, _DIGITS) + 0.0
