"""Pending pods, grouped by what would help them.

A thousand pending pods usually have a handful of causes. Pods with the same refusals and the same kinds of advice are one
group, whatever the amounts: "lower requests.cpu to 1500m" and "lower requests.cpu to 1200m" are alike. `kubesched why` without
a name and the page show the same groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.explaining import pod_report as reports

_OF_AMOUNTS = frozenset({"lower", "closest", "never", "empty", "pods"})
"""Kinds of advice whose amounts differ from pod to pod."""


def alike(pod: PodView) -> tuple[Any, ...]:
    """Return a key that is equal for pods that have the same report."""
    spec = pod.pod.spec
    own = pod.key if spec.resource_claims else ""  # claims are a pod's own
    return pod.template.signature, pod.namespace, pod.priority, tuple(gate.name for gate in spec.scheduling_gates), own


class PendingGroups:
    """Groups that grow pod by pod."""

    def __init__(self) -> None:
        self.n_pending = 0
        self._groups: dict[str, dict[str, Any]] = {}

    def add(self, pod: PodView, report: Mapping[str, Any]) -> None:
        """Put a pending pod into its group. Other pods are ignored."""
        if report["state"] not in (reports.PENDING, reports.GATED, reports.NOT_OURS):
            return
        self.n_pending += 1
        shown = {"state": report["state"], "why": _why(report), "advice": report.get("advice", [])}
        group = self._groups.setdefault(_key(report), {"count": 0, "pods": [], **shown, "isExact": True})
        group["count"] += 1
        group["pods"].append(pod.key)
        group["isExact"] = group["isExact"] and [a["text"] for a in group["advice"]] == [a["text"] for a in shown["advice"]]

    def document(self) -> dict[str, Any]:
        """Return the groups, the largest first. `isExact`: the amounts in the advice are right for all pods of the group."""
        return {"pendingCount": self.n_pending, "groups": sorted(self._groups.values(), key=lambda each: -each["count"])}


def _key(report: Mapping[str, Any]) -> str:
    advice = [
        (each["kind"], "" if each["kind"] in _OF_AMOUNTS else (each["plugin"], each.get("change") or each["text"]))
        for each in report.get("advice", ())
    ]
    reasons = sorted((each["plugin"], each["reason"]) for each in report.get("refusals", ()))
    state = (report["state"], report.get("gate"), report.get("group"), report.get("failure"), bool(report.get("feasibleCount")))
    other = report["scheduler"] if report["state"] == reports.NOT_OURS else ""
    return json.dumps([state, other, advice, reasons], sort_keys=True)


def _why(report: Mapping[str, Any]) -> str:
    if report["state"] == reports.NOT_OURS:
        return f"for scheduler {report['scheduler']}, which is not configured here"
    if report["state"] == reports.GATED:
        return f"gated by {report['gate']['plugin']}: {report['gate']['text']}"
    if report.get("failure"):
        return str(report["failure"])
    if report["feasibleCount"]:
        with_others = f" alone; its group {report['group']} is tried as a whole" if report.get("group") else ""
        return f"{report['feasibleCount']} of {report['nodeCount']} nodes would take it now{with_others}"
    return str(report["wouldSay"])
