"""TargetLoadPacking: fill nodes up to a target of measured CPU use, as in the scheduler-plugins project.

    target 40 percent, use with the pod:     0%: 40    20%: 70    40%: 100    41%: 39    70%: 20    100%: 0

The CPU that a pod will use is estimated: its limit, else its request times a factor, else a default. Pods that are too new to
be in the measurements are estimated too. A node without measurements scores 0.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec
import numpy as np

from kubesched.contrib.node_load import LoadFollower, NodeLoad, TrimaranArgs, Usage, follow
from kubesched.errors import SchedulerError
from kubesched.kube.api import Container
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import STARTED, Change, Ints, PodView, Reader, Snapshot
from kubesched.scheduler.config import FieldError, Gates, Int64, Path, invalid
from kubesched.scheduler.framework import CycleState, Handle, Input, Plugin

UNKNOWN = Usage()
REPORTING_SECONDS = 60.0
"""The time until a pod's use shows in the measurements."""


class TargetLoadPackingArgs(TrimaranArgs, frozen=True, rename="camel"):
    default_requests: dict[str, str] = msgspec.field(default_factory=lambda: {"cpu": "1000m"})
    default_requests_multiplier: str = "1.5"
    target_utilization: Int64 = 40

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = super().validate(path, gates)
        try:
            usable = float(self.default_requests_multiplier) >= 0
        except ValueError:
            usable = False
        if not usable:
            errors.append(
                invalid(path.child("defaultRequestsMultiplier"), self.default_requests_multiplier, "must be a number")
            )
        if self.target_utilization > 100:
            errors.append(invalid(path.child("targetUtilization"), self.target_utilization, "must be a percentage"))
        try:
            quantity.parse(self.default_requests.get("cpu", "1000m"))
        except SchedulerError as error:
            errors.append(invalid(path.child("defaultRequests").key("cpu"), self.default_requests["cpu"], str(error)))
        return errors


class TargetLoadPacking(Plugin):
    Args = TargetLoadPackingArgs
    depends_on = (Input.POD_REQUIREMENTS, Input.NODE, Input.PODS_ON_NODE, NodeLoad)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._target = self.args.target_utilization if self.args.target_utilization > 0 else 40
        self._multiplier = float(self.args.default_requests_multiplier)
        self._default_milli = quantity.milli_value(quantity.parse(self.args.default_requests.get("cpu", "1000m")))
        self._guess_key = object()
        self._reader: Reader[Change] = Reader()
        self._load: NodeLoad | None = None
        self._capacity = self._measured = self._late = np.zeros(0)
        """By node, in thousandths of a CPU: capacity, measured use (NaN: none), and the estimate for late pods."""
        self._late_pods: dict[str, tuple[PodView, float]] = {}
        """Pods that may not be in the measurements, by uid, with the time when they came."""

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return the score of the use with the pod: rising up to the target, falling beyond it."""
        self._refresh(nodes)
        used, capacity = self._measured + self._late, self._capacity
        if nodes.rows is not None:
            used, capacity = used[nodes.rows], capacity[nodes.rows]
        # Two lines with a step at the target: from (0, target) up to (target, 100), then from (target, target) down to
        # (100, 0). At the target the score drops from 100 to the target, so a node is filled up to it and then avoided.
        # NaN: not measured.
        with np.errstate(divide="ignore", invalid="ignore"):
            percent = np.where(capacity > 0, 100 * (used + self._guess(pod)) / capacity, np.where(np.isnan(used), np.nan, 0.0))
            target = self._target
            beyond = (
                np.where(percent > 100, 0.0, target * (100 - percent) / (100 - target)) if target < 100 else np.zeros(nodes.n)
            )
            scores = np.where(percent > target, beyond, (100 - target) * percent / target + target)
        rounded: Ints = np.floor(np.where(np.isnan(scores), 0.0, scores) + 0.5).astype(np.int64)
        return rounded

    def _guess(self, pod: PodView) -> int:
        """Return the estimated CPU use of a pod, in thousandths."""

        def estimate() -> int:
            spec, overhead = pod.pod.spec, pod.pod.spec.overhead.get("cpu")
            return sum(map(self._of_container, spec.containers)) + (_milli(overhead) if overhead is not None else 0)

        # The key is this plugin's own: two profiles may have other factors.
        guess: int = pod.template.remember(self._guess_key, estimate)
        return guess

    def _of_container(self, container: Container) -> int:
        limit, request = container.resources.limits.get("cpu"), container.resources.requests.get("cpu")
        if limit is not None:
            return _milli(limit)
        return int(_milli(request) * self._multiplier + 0.5) if request is not None else self._default_milli

    # The use of each row, following the load and the cluster's journal

    @cached_property
    def _source(self) -> LoadFollower:
        return follow(self.args, self.handle.objects)  # lazily: a check of the configuration sends no query

    def _refresh(self, nodes: Snapshot) -> None:
        load = self._source.load()
        if load is not self._load:
            self._load = load
            # Measurements need some time: pods that came less than a minute before `end` are not in them yet and stay
            # estimated.
            since = (load.end if load is not None else self.handle.clock.now()) - REPORTING_SECONDS
            self._follow(nodes)
            self._late_pods = {uid: late for uid, late in self._late_pods.items() if late[1] > since}
            self._read_all(nodes.everything())
        else:
            self._follow(nodes)

    def _follow(self, nodes: Snapshot) -> None:
        """Follow the journal: new pods are late pods of their row, removed ones no longer; changed nodes are read again."""
        changes = self._reader.changed(nodes.journal)
        if changes is None:
            self._read_all(nodes.everything())
            return
        late_pods, late = self._late_pods, self._late
        for change in changes:
            row, pod = change.row, change.pod
            if pod is None:
                # A pod's start changes nothing here; everything else about a node may change its capacity.
                if change.what != STARTED:
                    self._read_row(nodes.everything(), row)
            elif change.sign > 0:
                late_pods[pod.uid] = pod, self.handle.clock.now()
                late[row] = late.item(row) + self._guess(pod)  # faster than +=
            elif late_pods.pop(pod.uid, None) is not None:
                late[row] = late.item(row) - self._guess(pod)

    def _read_all(self, whole: Snapshot) -> None:
        self._measured, self._late, self._capacity = np.zeros(whole.n), np.zeros(whole.n), np.zeros(whole.n)
        # Late pods are counted again from the list; a pod whose node is gone counts nowhere.
        for pod, _ in self._late_pods.values():
            if (row := whole.row(pod.node_name)) >= 0:
                self._late[row] += self._guess(pod)
        for row in range(whole.n):
            self._read_row(whole, row)

    def _read_row(self, whole: Snapshot, row: int) -> None:
        node = whole.node(row)
        capacity = node.status.capacity.get("cpu")
        usage = self._load.usage.get(node.metadata.name, UNKNOWN) if self._load is not None else UNKNOWN
        self._capacity[row] = milli = _milli(capacity) if capacity is not None else 0
        self._measured[row] = usage.cpu / 100 * milli


@lru_cache
def _milli(text: Any) -> int:
    return quantity.milli_value(quantity.parse(text))
