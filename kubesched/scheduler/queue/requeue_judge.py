"""Is an event worth another try: what the hints of the plugins that refused a pod say together.

In: a waiting pod, or all of them, and an event with the object before and after. Out: a strategy for each pod. A hint
that raises counts as "try": a pod that is tried in vain costs an attempt, one that is forgotten costs everything.
"""

from __future__ import annotations

import logging
import time
from enum import IntEnum
from typing import Any

from kubesched.kube.api import Pod
from kubesched.scheduler.framework import ClusterEvent, blamed
from kubesched.scheduler.queue.hints import Hints, Registered
from kubesched.scheduler.queue.observer import BROKE, QUEUED, SKIPPED, QueueObserver
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.unschedulable import SameTemplate, UnschedulablePods

log = logging.getLogger(__name__)


class Strategy(IntEnum):
    """What becomes of a pod; the larger, the sooner."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


SKIP, AFTER_BACKOFF, IMMEDIATELY = Strategy.SKIP, Strategy.AFTER_BACKOFF, Strategy.IMMEDIATELY


class RequeueJudge:
    """Asks the hints."""

    __slots__ = ("_hints", "_observer")

    def __init__(self, hints: Hints, observer: QueueObserver | None) -> None:
        self._hints = hints
        self._observer = observer

    def strategy(self, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """Return what an event means for one pod."""
        rejectors = entry.rejectors
        if not rejectors:
            return AFTER_BACKOFF
        if event.is_wildcard:
            # An object beside a wildcard names the one pod that is meant.
            is_meant = new is None or (isinstance(new, Pod) and new.metadata.uid == entry.view.uid)
            return AFTER_BACKOFF if is_meant else SKIP
        best = SKIP
        for registered in entry.profile.matching(event):
            if registered.plugin in rejectors and self._says_queue(registered, entry, event, old, new):
                if registered.plugin in entry.pending_plugins:
                    return IMMEDIATELY
                if not entry.pending_plugins:
                    return AFTER_BACKOFF
                best = AFTER_BACKOFF
        return best

    def awakened(
        self, waiting: UnschedulablePods, event: ClusterEvent, old: Any, new: Any, itself: QueuedPod | None = None
    ) -> dict[QueuedPod, Strategy]:
        """Return the waiting pods that an event concerns, with what it means for them; pods it is nothing to are left
        out. `itself` is the waiting pod that the event is about, if it is about one."""
        found: dict[QueuedPod, Strategy] = {}
        interest = self._hints.interest(event)
        for profile, matching in interest.by_profile.items():
            for registered in matching:
                for group in waiting.refused_by(profile, registered.plugin):
                    self._ask_group(found, registered, group, event, old, new, itself)
        for plugin in interest.plugins:
            for entry in waiting.gated_by(plugin):
                strategy = self.strategy(entry, event, old, new)
                if strategy is not SKIP:
                    found[entry] = strategy
        return found

    def _ask_group(
        self,
        found: dict[QueuedPod, Strategy],
        registered: Registered,
        group: SameTemplate,
        event: ClusterEvent,
        old: Any,
        new: Any,
        itself: QueuedPod | None,
    ) -> None:
        answer: bool | None = None
        if registered.hint is None:
            answer = True
        elif registered.by_template:
            sample = next((entry for entry in group if entry is not itself), None)
            answer = sample is not None and self._says_queue(registered, sample, event, old, new)
            if not answer:
                group = {itself: None} if itself in group else {}
        for entry in group:
            strategy = IMMEDIATELY if registered.plugin in entry.pending_plugins else AFTER_BACKOFF
            if found.get(entry, SKIP) >= strategy:
                continue
            asks = answer is None or (entry is itself and registered.hint is not None)
            if self._says_queue(registered, entry, event, old, new) if asks else answer:
                found[entry] = strategy

    def _says_queue(self, registered: Registered, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> bool:
        if registered.hint is None:
            return True
        started = time.perf_counter() if self._observer is not None else 0.0
        try:
            says = bool(registered.hint(entry.view, old, new))
            word = QUEUED if says else SKIPPED
        except BaseException as error:  # whatever a plugin raises, the pod must not be forgotten, nor the process end
            says, word = True, BROKE
            broken = blamed(error, registered.plugin, "QueueingHint", entry.key)
            log.error("plugin %s broke at QueueingHint of pod %s: %s", broken.plugin, entry.key, broken)
            if self._observer is not None:
                self._observer.broke(broken.plugin, "QueueingHint", entry.key, broken)
        if self._observer is not None:
            self._observer.hint(registered.plugin, event.label, word, time.perf_counter() - started)
        return says
