"""Which events would requeue an unschedulable pod, as text: "a node comes or changes its labels".

They are what the plugins that refused the pod declare in `wakes_on`. When such an event happens, the plugin's hint decides
whether it helps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.scheduler.framework import INTERESTED_IN_ALL, Action, ClusterEvent, Profile, Wakeup, wakeups

_NOUNS = {
    wakeups.POD: "a pod",
    wakeups.ASSIGNED_POD: "a placed pod",
    wakeups.UNSCHEDULABLE_POD: "a waiting pod",
    wakeups.UNSCHEDULED_POD: "a waiting pod",
    wakeups.TARGET_POD: "the pod",
    wakeups.NODE: "a node",
    wakeups.PV: "a persistent volume",
    wakeups.PVC: "a volume claim",
    wakeups.CSI_NODE: "a CSINode",
    wakeups.CSI_DRIVER: "a CSIDriver",
    wakeups.CSI_CAPACITY: "a storage capacity",
    wakeups.STORAGE_CLASS: "a storage class",
    wakeups.VOLUME_ATTACHMENT: "a volume attachment",
    wakeups.RESOURCE_CLAIM: "a resource claim",
    wakeups.RESOURCE_SLICE: "a resource slice",
    wakeups.DEVICE_CLASS: "a device class",
    wakeups.POD_GROUP: "a pod group",
    wakeups.ANY: "anything",
}
_VERBS = {
    Action.ADD: "comes",
    Action.DELETE: "goes",
    Action.NODE_ALLOCATABLE: "offers other amounts",
    Action.NODE_LABELS: "changes its labels",
    Action.NODE_TAINTS: "changes its taints",
    Action.NODE_CONDITIONS: "changes its conditions",
    Action.NODE_ANNOTATIONS: "changes its annotations",
    Action.NODE_FEATURES: "changes its features",
    Action.NODE_PREEMPTION_POLICY: "changes its preemption policy",
    Action.POD_LABELS: "changes its labels",
    Action.POD_SCALE_DOWN: "asks for less",
    Action.POD_SCALE_UP: "asks for more",
    Action.POD_TOLERATIONS: "tolerates more",
    Action.POD_GATES_GONE: "loses its scheduling gates",
    Action.POD_CLAIMS: "gets its resource claims",
}


@dataclass(frozen=True, slots=True)
class Wakes:
    """The events that one plugin waits for."""

    plugin: str
    events: tuple[str, ...]
    text: str


def wakes_on(profile: Profile, plugins: Iterable[str]) -> list[Wakes]:
    """Return the events that the named plugins wait for, sorted by plugin."""
    known = {plugin.name: plugin for plugin in profile.plugins}
    found = []
    for name in sorted(plugins):
        if name in known:
            declared = known[name].wakeups()
            declared = INTERESTED_IN_ALL if declared is None else declared
            if declared:
                events = tuple(f"{each.event.resource}/{word}" for each in declared for word in _words(each, "name"))
                found.append(Wakes(name, events, "; ".join(map(_text, declared))))
    return found


def _text(wakeup: Wakeup) -> str:
    noun = _NOUNS.get(wakeup.event.resource, wakeup.event.resource)
    return f"{noun} {' or '.join(dict.fromkeys(_words(wakeup, 'verb')))}"


def _words(wakeup: Wakeup, which: str) -> list[str]:
    action = wakeup.event.action
    if action & Action.UPDATE == Action.UPDATE:
        rest = [flag for flag in (Action.ADD, Action.DELETE) if action & flag]
        return [_word(flag, which) for flag in rest] + ["Update" if which == "name" else "changes"]
    return [_word(flag, which) for flag in _VERBS if action & flag]


def _word(flag: Action, which: str) -> str:
    return _VERBS[flag] if which == "verb" else ClusterEvent("", flag).label
