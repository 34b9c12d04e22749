"""Which events may help which waiting pods: the wake-ups and hints of every profile's plugins.

A plugin declares the events that could change its answer, and may name a hint, a method that looks at one pod and one event:

    NodeResourcesFit refused web-1 (needs 2 CPUs). Its wake-up: "a node is added or grows", hint `has_room_now`.
    node-added event, node of 1 CPU:  the hint returns False, web-1 goes on waiting
    node-added event, node of 8 CPUs: the hint returns True, web-1 goes to backoff or to the active queue

A hint that raises counts as True: a useless attempt costs little, a pod that nobody wakes is lost. Which wake-ups an event
matches is computed once for each kind of event.

Three wake-ups are added to what plugins declare, as in kube-scheduler. Before 1.37 a plugin that waits for new nodes but not
for taints is woken by every change of taints, without a hint. A plugin that can refuse pods and declares nothing is woken by
every event. Pods that an extender refused are woken by every event too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kubesched.errors import ConfigError
from kubesched.kube.api import Pod
from kubesched.scheduler.framework import (
    ADD,
    ALL,
    INTERESTED_IN_ALL,
    NODE,
    NODE_TAINTS,
    POD_GROUP,
    Action,
    ClusterEvent,
    Hint,
    Plugin,
    Profile,
    Wakeup,
    blamed,
    matches,
    on,
    points_of,
    unhinted,
)
from kubesched.scheduler.queue.ports import QueueObserver, QueueOptions
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.sub_queues import SameTemplate, UnschedulablePods

EXTENDER = "Extender"
"""The plugin name of pods that extenders refused."""
QUEUED, SKIPPED, BROKE = "Queue", "QueueSkip", "Error"
"""The metric's names for a hint's answers."""

_REFUSING_POINTS = frozenset({"pre_enqueue", "pre_filter", "filter", "reserve", "permit"})

log = logging.getLogger(__name__)


class Strategy(IntEnum):
    """What an event means for a pod; the larger, the sooner it is tried."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


SKIP, AFTER_BACKOFF, IMMEDIATELY = Strategy.SKIP, Strategy.AFTER_BACKOFF, Strategy.IMMEDIATELY


@dataclass(frozen=True, slots=True)
class Registered:
    """One wake-up of one plugin. Without a hint every such event wakes."""

    plugin: str
    event: ClusterEvent
    hint: Hint | None
    by_template: bool = False
    """Whether the hint's answer is the same for all pods of a template."""


@dataclass(frozen=True, slots=True)
class Interest:
    """The wake-ups that an event matches, by profile; and their plugins, alone and in pairs with the profile."""

    by_profile: Mapping[str, tuple[Registered, ...]]
    plugins: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    is_wildcard: bool


class ProfileHints:
    """A profile and its plugins' wake-ups, in the plugins' order."""

    __slots__ = ("_matching", "name", "profile", "registered")

    def __init__(self, profile: Profile, options: QueueOptions) -> None:
        self.profile = profile
        self.name = profile.name
        everything = (*INTERESTED_IN_ALL, on(POD_GROUP, ALL)) if options.has_pod_groups else INTERESTED_IN_ALL
        found = [wakeup for plugin in profile.plugins for wakeup in _registered(plugin, everything, options)]
        if options.has_extenders:
            found += [Registered(EXTENDER, wakeup.event, None) for wakeup in everything]
        self.registered = tuple(found)
        self._matching: dict[tuple[str, int], tuple[Registered, ...]] = {}

    def matching(self, event: ClusterEvent) -> tuple[Registered, ...]:
        """Return the wake-ups that an event matches."""
        kind = (event.resource, event.action)
        found = self._matching.get(kind)
        if found is None:
            found = tuple(r for r in self.registered if matches(r.event, event))
            self._matching[kind] = found
        return found


class Hints:
    """All profiles' wake-ups, and what their hints say together."""

    __slots__ = ("_interests", "_observer", "profiles")

    def __init__(self, profiles: Iterable[Profile], options: QueueOptions, observer: QueueObserver | None) -> None:
        self.profiles = {profile.name: ProfileHints(profile, options) for profile in profiles}
        self._interests: dict[tuple[str, int], Interest] = {}
        self._observer = observer

    def interest(self, event: ClusterEvent) -> Interest:
        """Return the plugins that wait for an event."""
        kind = (event.resource, event.action)
        found = self._interests.get(kind)
        if found is None:
            by_profile = {name: registered for name, hints in self.profiles.items() if (registered := hints.matching(event))}
            pairs = [(name, r.plugin) for name, registered in by_profile.items() for r in registered]
            plugins = tuple(dict.fromkeys(plugin for _, plugin in pairs))
            found = self._interests[kind] = Interest(by_profile, plugins, frozenset(pairs), event.is_wildcard)
        return found

    def resources(self) -> dict[str, int]:
        """Return the resources that some plugin waits for, each with the actions that it waits for."""
        found: dict[str, int] = {}
        for hints in self.profiles.values():
            for registered in hints.registered:
                event = registered.event
                found[event.resource] = found.get(event.resource, 0) | event.action
        return found

    def strategy(self, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """Return what an event means for one pod.

        A plugin that returned Pending (`pending_plugins`) did not refuse the pod, it was not ready yet. When its hint says so
        the pod is tried at once, without backoff. Any other plugin's hint sends the pod through its backoff.
        """
        rejectors = entry.rejectors
        if not rejectors:
            return AFTER_BACKOFF
        if event.is_wildcard:
            # A wildcard with an object is about that pod alone.
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

    def strategies(
        self, waiting: UnschedulablePods, event: ClusterEvent, old: Any, new: Any, itself: QueuedPod | None = None
    ) -> dict[QueuedPod, Strategy]:
        """Return the unschedulable pods that an event helps, each with what it means for the pod. `itself` is the waiting pod
        that the event is about, if it is about one."""
        found: dict[QueuedPod, Strategy] = {}
        interest = self.interest(event)
        for profile, matching in interest.by_profile.items():
            for registered in matching:
                for group in waiting.refused.get((profile, registered.plugin), {}).values():
                    self._ask_group(found, registered, group, event, old, new, itself)
        for plugin in interest.plugins:
            for entry in waiting.gated.get(plugin, ()):
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
        """Call a plugin's hint for pods of one template, once for all of them if it reads nothing else of a pod.

        A pod that is itself what changed is asked on its own: the hint compares its old and new version, and no sibling's
        answer holds for it.
        """
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
        except BaseException as error:  # whatever a plugin raises, the pod must not be lost, nor the process end
            says, word = True, BROKE
            broken = blamed(error, registered.plugin, "QueueingHint", entry.key)
            log.error("plugin %s broke at QueueingHint of pod %s: %s", broken.plugin, entry.key, broken)
            if self._observer is not None:
                self._observer.broke(broken.plugin, "QueueingHint", entry.key, broken)
        if self._observer is not None:
            self._observer.hint(registered.plugin, event.label, word, time.perf_counter() - started)
        return says


def _registered(plugin: Plugin, everything: tuple[Wakeup, ...], options: QueueOptions) -> list[Registered]:
    declared = plugin.wakeups()
    if declared is None:
        refuses = not _REFUSING_POINTS.isdisjoint(points_of(type(plugin)))
        return [Registered(plugin.name, wakeup.event, None) for wakeup in everything] if refuses else []
    if not options.asks_hints:
        declared = unhinted(declared)
    found = [Registered(plugin.name, wakeup.event, _hint(plugin, wakeup), wakeup.by_template) for wakeup in declared]
    of_nodes = 0
    for wakeup in declared:
        if wakeup.event.resource == NODE:
            of_nodes |= wakeup.event.action
    if options.taints_announce_nodes and of_nodes & ADD and not of_nodes & Action.NODE_TAINTS:
        found.append(Registered(plugin.name, NODE_TAINTS.event, None))
    return found


def _hint(plugin: Plugin, wakeup: Wakeup) -> Hint | None:
    if wakeup.hint is None:
        return None
    method: Any = getattr(plugin, wakeup.hint, None)
    if not callable(method):
        raise ConfigError("", f"plugin {plugin.name}: wakeups() names the hint {wakeup.hint}, which is not a method")
    hint: Hint = method
    return hint
