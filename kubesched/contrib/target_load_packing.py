"""TargetLoadPacking: fills nodes up to a target of CPU really in use, as scheduler-plugins' plugin of that name does.

Up to the target the fuller node is the better one; beyond it the emptier, down to 0 at 100 percent. What a pod will use is
guessed: its limit, else its request times a factor, else a default. Pods that came too late to be in the measures are counted
by the same guess. A node that nobody measured scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from kubesched.api import quantity
from kubesched.api.pod import Container
from kubesched.cluster import Ints, PodView, Snapshot
from kubesched.cluster.changelog import Reader
from kubesched.cluster.journal import USAGE, Change
from kubesched.config.fielderrors import FieldError, Path, invalid
from kubesched.config.gates import Gates
from kubesched.config.wire import Int64
from kubesched.contrib.node_load import LoadFollower, NodeLoad, TrimaranArgs, Usage, follow
from kubesched.errors import SchedulerError
from kubesched.framework import CycleState, Input, NodeView, Plugin
from kubesched.framework.ports import Handle

UNKNOWN = Usage()
REPORTING_SECONDS = 60.0
"""How long it takes until a pod's use shows in the measures."""


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
        self._reader: Reader[Change] = Reader()
        self._load: NodeLoad | None = None
        self._capacity = self._measured = self._late = np.zeros(0)
        """Of every node in thousandths of a CPU: what it has, what was measured (NaN: nothing), and the guess for late pods."""
        self._late_pods: dict[str, tuple[str, float, int]] = {}
        """Pods that may not be in the measures: by uid their node, when they came, and the guess."""

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        self._refresh(nodes)
        used, capacity = self._measured + self._late, self._capacity
        if nodes.rows is not None:
            used, capacity = used[nodes.rows], capacity[nodes.rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            percent = np.where(capacity > 0, 100 * (used + self._guess(pod)) / capacity, np.where(np.isnan(used), np.nan, 0.0))
            target = self._target
            beyond = (
                np.where(percent > 100, 0.0, target * (100 - percent) / (100 - target)) if target < 100 else np.zeros(nodes.n)
            )
            scores = np.where(percent > target, beyond, (100 - target) * percent / target + target)
        rounded: Ints = np.floor(np.where(np.isnan(scores), 0.0, scores) + 0.5).astype(np.int64)
        return rounded

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        whole = node.nodes.everything()
        return self.row_score(pod, whole, state)(whole.row(node.name))

    def row_score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Callable[[int], int]:
        guess, target = self._guess(pod), self._target

        def score(row: int) -> int:
            self._refresh(nodes)
            used, capacity = self._measured.item(row) + self._late.item(row), self._capacity.item(row)
            if used != used:
                return 0
            percent = 100 * (used + guess) / capacity if capacity > 0 else 0.0
            if percent <= target:
                return int((100 - target) * percent / target + target + 0.5)
            return int(target * (100 - percent) / (100 - target) + 0.5) if percent <= 100 else 0

        return score

    def _guess(self, pod: PodView) -> int:
        """Return the CPU that a pod will use, in thousandths."""
        guess: int = pod.template.remember((self, "guess"), lambda: self._guessed(pod))
        return guess

    def _guessed(self, pod: PodView) -> int:
        spec = pod.pod.spec
        overhead = spec.overhead.get("cpu")
        return sum(map(self._of_container, spec.containers)) + (_milli(overhead) if overhead is not None else 0)

    def _of_container(self, container: Container) -> int:
        limit, request = container.resources.limits.get("cpu"), container.resources.requests.get("cpu")
        if limit is not None:
            return _milli(limit)
        return int(_milli(request) * self._multiplier + 0.5) if request is not None else self._default_milli

    @cached_property
    def _source(self) -> LoadFollower:
        return follow(self.args, self.handle.objects)  # not when it is built: who only checks a configuration asks nobody

    # What is in use, row by row, following the cluster's journal

    def _refresh(self, nodes: Snapshot) -> None:
        load = self._source.load()
        if load is self._load and self._reader.is_current(nodes.journal):
            return
        whole, changes = nodes.everything(), self._reader.changed(nodes.journal)
        if load is None:
            self._load, self._late_pods = None, {}
            self._measured, self._late, self._capacity = np.full(whole.n, np.nan), np.zeros(whole.n), np.zeros(whole.n)
        elif load is not self._load or changes is None:
            self._load = load
            self._note_late(whole, changes or ())
            self._read_all(whole, load)
        else:
            self._note_late(whole, changes)
            for row in {change.row for change in changes if change.what != USAGE}:
                self._read_row(whole, load, row)

    def _note_late(self, whole: Snapshot, changes: Iterable[Change]) -> None:
        now = self.handle.clock.now()
        for row, _, pod, sign in changes:
            if pod is None:
                continue
            if sign > 0:
                guess = self._guess(pod)
                self._late_pods[pod.uid] = (whole.name(row), now, guess)
                self._late[row] += guess
            elif pod.uid in self._late_pods:
                self._late[row] -= self._late_pods.pop(pod.uid)[2]

    def _read_all(self, whole: Snapshot, load: NodeLoad) -> None:
        since = load.end - REPORTING_SECONDS
        self._late_pods = {uid: late for uid, late in self._late_pods.items() if late[1] > since and whole.row(late[0]) >= 0}
        self._measured, self._late, self._capacity = np.zeros(whole.n), np.zeros(whole.n), np.zeros(whole.n)
        for name, _, guess in self._late_pods.values():
            self._late[whole.row(name)] += guess
        for row in range(whole.n):
            self._read_row(whole, load, row)

    def _read_row(self, whole: Snapshot, load: NodeLoad, row: int) -> None:
        node = whole.node(row)
        capacity = node.status.capacity.get("cpu")
        self._capacity[row] = milli = _milli(capacity) if capacity is not None else 0
        self._measured[row] = load.usage.get(node.metadata.name, UNKNOWN).cpu / 100 * milli


def _milli(text: Any) -> int:
    return quantity.milli_value(quantity.parse(text))
