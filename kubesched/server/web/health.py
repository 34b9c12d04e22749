"""Health: named checks behind /healthz, /livez and /readyz, and how often each passed.

In: checks. Out: `ok`, or which checks failed. The reason is only in the log, as in kube-scheduler, because these paths are
open to all. /metrics/slis has the latest result and the counts of each check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kubesched.server.web.responses import plain
from kubesched.telemetry.logs import logger

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """A named check. It returns a complaint, empty if all is well."""

    name: str
    complaint: Callable[[], str]


PING = Check("ping", lambda: "")


def shutdown_check(is_stopping: Callable[[], bool]) -> Check:
    """Return the check that fails once the process has begun to stop."""
    return Check("shutdown", lambda: "process is shutting down" if is_stopping() else "")


def handlers_check(are_synced: Callable[[], bool]) -> Check:
    """Return the check that fails until the first lists of all kinds are in."""
    return Check("sched-handler-sync", lambda: "" if are_synced() else "handlers are not fully synchronized")


def leader_election_check(is_late: Callable[[], bool]) -> Check:
    """Return the check that fails if a leader has not renewed its lease for too long."""
    text = "failed election to renew leadership on lease kube-scheduler"
    return Check("leaderElection", lambda: text if is_late() else "")


@dataclass(slots=True, eq=False)
class Results(Collector):
    """The latest result of every check and the counts of all, by endpoint."""

    latest: dict[tuple[str, str], bool] = field(default_factory=dict)
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def note(self, name: str, endpoint: str, passed: bool) -> None:
        """Record a result."""
        self.latest[name, endpoint] = passed
        self.counts[name, endpoint, "success" if passed else "error"] += 1

    def reset(self) -> None:
        """Forget all results."""
        self.latest.clear()
        self.counts.clear()

    def collect(self) -> Iterable[Metric]:
        """Return both metrics, with kube-scheduler's names and texts."""
        gauge = GaugeMetricFamily(
            "kubernetes_healthcheck",
            "[STABLE] This metric records the result of a single healthcheck.",
            labels=("name", "type"),
        )
        for labels, passed in self.latest.items():
            gauge.add_metric(labels, float(passed))
        counter = CounterMetricFamily(
            "kubernetes_healthchecks_total",
            "[STABLE] This metric records the results of all healthcheck.",
            labels=("name", "type", "status"),
        )
        for key, count in self.counts.items():
            counter.add_metric(key, count)
        return (gauge, counter)


class Endpoint:
    """One of /healthz, /livez and /readyz."""

    def __init__(self, name: str, checks: Sequence[Check], results: Results) -> None:
        self.name = name
        self._checks = {check.name: check for check in checks}
        self._results = results

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer for all checks. `verbose` lists them, `exclude` leaves some out."""
        excluded = dict.fromkeys(request.query.getall("exclude", []))
        lines, complaints = [], []
        for check in self._checks.values():
            if check.name in excluded:
                del excluded[check.name]
                lines.append(f"[+]{check.name} excluded: ok\n")
            elif complaint := self._ask(check):
                complaints.append(f"{check.name}: {complaint}")
                lines.append(f"[-]{check.name} failed: reason withheld\n")
            else:
                lines.append(f"[+]{check.name} ok\n")
        if excluded:
            named = ", ".join(f'"{name}"' for name in excluded)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {named}\n")
            log.warning("Cannot exclude some health checks", matches=list(excluded), endpoint=self.name)
        if complaints:
            log.v(2).info("Health check failed", endpoint=self.name, failed=complaints)
            return plain(f"{''.join(lines)}{self.name} check failed", 500)
        if "verbose" not in request.query:
            return plain("ok")
        return plain(f"{''.join(lines)}{self.name} check passed\n")

    async def handle_one(self, request: web.Request) -> web.StreamResponse:
        """Answer for one check with its reason: this path needs authorization."""
        check = self._checks.get(request.match_info["check"])
        if check is None:
            return plain("404 page not found", 404)
        complaint = self._ask(check)
        return plain(f"internal server error: {complaint}", 500) if complaint else plain("ok")

    def _ask(self, check: Check) -> str:
        """Run a check and record its result."""
        complaint = check.complaint()
        self._results.note(check.name, self.name, not complaint)
        return complaint
