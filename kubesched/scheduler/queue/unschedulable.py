"""The unschedulable pods: pods that no node takes, and pods that a gate keeps back, until something happens that may help.

Pods are found by the plugin that stands in their way, and under it by their template: an event asks only about pods
whose rejector waits for it, and a hint that reads nothing but the template is asked once for all of a template's pods.
Gated pods are found by their gate alone, because no other event can help them. Who has waited too long comes up in a
heap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubesched.scheduler.queue.heap import Heap
from kubesched.scheduler.queue.hints import Interest
from kubesched.scheduler.queue.queued import QueuedPod

SameTemplate = dict[QueuedPod, None]
"""Pods of one template, in the order in which they came."""

_NO_GROUPS: dict[Any, SameTemplate] = {}


class UnschedulablePods:
    """Pods that wait for an event."""

    name = "unschedulable"
    __slots__ = ("_by_age", "_gated", "_n_gated", "_refused")

    def __init__(self) -> None:
        self._by_age = Heap()
        self._refused: dict[tuple[str, str], dict[Any, SameTemplate]] = {}
        self._gated: dict[str, SameTemplate] = {}
        self._n_gated = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._by_age)

    @property
    def n_gated(self) -> int:
        """Return how many of the pods are kept back by a gate."""
        return self._n_gated

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry; its rejectors and its gate stay as they are while it is here."""
        self._by_age.push(entry.waiting_since, entry)
        if entry.gating_plugin:
            self._gated.setdefault(entry.gating_plugin, {})[entry] = None
            self._n_gated += 1
        else:
            profile, template = entry.profile.name, entry.view.template
            for plugin in entry.rejectors:
                self._refused.setdefault((profile, plugin), {}).setdefault(template, {})[entry] = None
        entry.sub_queue = self

    def remove(self, entry: QueuedPod) -> None:
        """Give an entry up; to be called before its rejectors, its gate or its pod change."""
        self._by_age.remove(entry)
        entry.sub_queue = None
        if entry.gating_plugin:
            gated = self._gated[entry.gating_plugin]
            del gated[entry]
            if not gated:
                del self._gated[entry.gating_plugin]
            self._n_gated -= 1
            return
        profile, template = entry.profile.name, entry.view.template
        for plugin in entry.rejectors:
            groups = self._refused[profile, plugin]
            group = groups[template]
            del group[entry]
            if not group:
                del groups[template]
                if not groups:
                    del self._refused[profile, plugin]

    def is_any_behind(self, interest: Interest) -> bool:
        """Return whether any pod waits behind a plugin that is interested in an event."""
        return not interest.pairs.isdisjoint(self._refused) or not self._gated.keys().isdisjoint(interest.plugins)

    def refused_by(self, profile: str, plugin: str) -> Iterable[SameTemplate]:
        """Return the pods that a profile's plugin refused, gated ones left out, grouped by template; borrowed."""
        return self._refused.get((profile, plugin), _NO_GROUPS).values()

    def gated_by(self, plugin: str) -> Iterable[QueuedPod]:
        """Return the pods that a plugin keeps back; borrowed."""
        return self._gated.get(plugin, ())

    def pop_older(self, before: float) -> list[QueuedPod]:
        """Take out the entries that were last looked at before a moment, the oldest first."""
        found: list[QueuedPod] = []
        while (entry := self._by_age.first()) is not None and entry.waiting_since < before:
            found.append(entry)
            self.remove(entry)
        return found

    def oldest(self) -> float | None:
        """Return when the pod that waits longest was last looked at."""
        entry = self._by_age.first()
        return entry.waiting_since if entry is not None else None
