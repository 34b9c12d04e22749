"""Warns about objects that the demo's scheduler ignores: groups whose gate is off, pods of other schedulers.

In: objects as they are created, and the scheduler's configuration. Out: one line for each reason, with the first object and
with what would change it.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.embedded import ObjectStore
from kubesched.embedded.storage.watch import Change
from kubesched.scheduler import config
from kubesched.scheduler.config import Stage, spec_of

_GATES = {
    "podgroups.scheduling.k8s.io": ("PodGroup", ("GenericWorkload", "GangScheduling")),
    "workloads.scheduling.k8s.io": ("Workload", ("GenericWorkload",)),
}
_COSCHEDULED = "podgroups.scheduling.x-k8s.io"


class IgnoredObjects:
    """Prints one line for each reason to ignore an object."""

    def __init__(
        self, store: ObjectStore, configuration: config.Configuration, gates: config.Gates, say: Callable[[str], None]
    ) -> None:
        self._say = say
        self._printed: set[str] = set()
        self._schedulers = {profile.scheduler_name for profile in configuration.profiles}
        storage = store.context.storage
        for table, (kind, needed) in _GATES.items():
            known = (name for name in needed if spec_of(name, gates.emulated).stage is not Stage.GONE)
            off = [name for name in known if not gates.is_enabled(name)]
            if off:
                why = f"the gate {off[-1]} is off; --feature-gates {','.join(f'{name}=true' for name in off)} switches it on"
                storage.listen(table, lambda change, kind=kind, why=why: self._came(change, kind, why))  # type: ignore[misc]
        if not any("Coscheduling" in profile.plugin_names for profile in configuration.profiles):
            why = "no profile enables the plugin Coscheduling; see docs/how-to/gangs.md for a --config that does"
            storage.listen(_COSCHEDULED, lambda change: self._came(change, "PodGroup", why))
        storage.listen("pods", self._pod_came)

    def _pod_came(self, change: Change) -> None:
        if change.old is None and change.new is not None and not change.new.obj["spec"].get("nodeName"):
            name = change.new.obj["spec"].get("schedulerName", "")
            if name not in self._schedulers:
                known = ", ".join(sorted(self._schedulers))
                self._came(change, "Pod", f"it asks for the scheduler {name}, and this one is {known}")

    def _came(self, change: Change, kind: str, why: str) -> None:
        if change.old is None and change.new is not None and why not in self._printed:
            self._printed.add(why)
            self._say(f"Ignored: {kind} {change.key}: {why}")
