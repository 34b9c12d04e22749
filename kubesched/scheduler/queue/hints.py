"""Who waits for what: the wake-ups of every profile's plugins, looked up by event.

In: profiles, each plugin with the wake-ups it declares. Out: for an event, the hints that it concerns, by profile and
plugin. Matching is done once for each kind of event and remembered, so that most events cost one lookup.

Three things are added to what plugins declare, as in the reference. A plugin that waits for new nodes but not for
taints is woken by every change of taints, without a question. One that could refuse pods and declares nothing is woken
by everything. And where extenders are configured, pods they refused are woken by everything as well. Where no hints are asked,
what plugins declare for that case counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.errors import ConfigError
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
    matches,
    on,
    points_of,
    unhinted,
)

EXTENDER = "Extender"
"""The name under which pods refused by extenders are kept."""

_REFUSING_POINTS = frozenset({"pre_enqueue", "pre_filter", "filter", "reserve", "permit"})


@dataclass(frozen=True, slots=True)
class Registered:
    """One wake-up of one plugin; without a hint the event always wakes."""

    plugin: str
    event: ClusterEvent
    hint: Hint | None
    by_template: bool = False


@dataclass(frozen=True, slots=True)
class Interest:
    """Who is interested in an event: wake-ups by profile, the plugins' names over all profiles, and both in pairs."""

    by_profile: Mapping[str, tuple[Registered, ...]]
    plugins: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]


class ProfileHints:
    """A profile and its plugins' wake-ups, in the plugins' order."""

    __slots__ = ("_matching", "name", "profile", "registered")

    def __init__(
        self,
        profile: Profile,
        *,
        has_extenders: bool = False,
        has_pod_groups: bool = False,
        asks_hints: bool = True,
        taints_announce_nodes: bool = False,
    ) -> None:
        self.profile = profile
        self.name = profile.name
        everything = (*INTERESTED_IN_ALL, on(POD_GROUP, ALL)) if has_pod_groups else INTERESTED_IN_ALL
        found = [
            wakeup
            for plugin in profile.plugins
            for wakeup in _registered(plugin, everything, asks_hints=asks_hints, taints_announce_nodes=taints_announce_nodes)
        ]
        if has_extenders:
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
    """All profiles' wake-ups."""

    __slots__ = ("_interests", "profiles")

    def __init__(
        self,
        profiles: Iterable[Profile],
        *,
        has_extenders: bool = False,
        has_pod_groups: bool = False,
        asks_hints: bool = True,
        taints_announce_nodes: bool = False,
    ) -> None:
        self.profiles = {
            profile.name: ProfileHints(
                profile,
                has_extenders=has_extenders,
                has_pod_groups=has_pod_groups,
                asks_hints=asks_hints,
                taints_announce_nodes=taints_announce_nodes,
            )
            for profile in profiles
        }
        self._interests: dict[tuple[str, int], Interest] = {}

    def interest(self, event: ClusterEvent) -> Interest:
        """Return who is interested in an event."""
        kind = (event.resource, event.action)
        found = self._interests.get(kind)
        if found is None:
            by_profile = {name: registered for name, hints in self.profiles.items() if (registered := hints.matching(event))}
            pairs = [(name, r.plugin) for name, registered in by_profile.items() for r in registered]
            plugins = tuple(dict.fromkeys(plugin for _, plugin in pairs))
            found = self._interests[kind] = Interest(by_profile, plugins, frozenset(pairs))
        return found

    def resources(self) -> dict[str, int]:
        """Return the resources that some plugin waits for, each with the actions that it waits for."""
        found: dict[str, int] = {}
        for hints in self.profiles.values():
            for registered in hints.registered:
                event = registered.event
                found[event.resource] = found.get(event.resource, 0) | event.action
        return found


def _registered(
    plugin: Plugin, everything: tuple[Wakeup, ...], *, asks_hints: bool, taints_announce_nodes: bool
) -> list[Registered]:
    declared = plugin.wakeups()
    if declared is None:
        refuses = not _REFUSING_POINTS.isdisjoint(points_of(type(plugin)))
        return [Registered(plugin.name, wakeup.event, None) for wakeup in everything] if refuses else []
    if not asks_hints:
        declared = unhinted(declared)
    found = [Registered(plugin.name, wakeup.event, _hint(plugin, wakeup), wakeup.by_template) for wakeup in declared]
    of_nodes = 0
    for wakeup in declared:
        if wakeup.event.resource == NODE:
            of_nodes |= wakeup.event.action
    if taints_announce_nodes and of_nodes & ADD and not of_nodes & Action.NODE_TAINTS:
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
