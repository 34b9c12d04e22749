"""What became of a pod group, written into its status.

In: the verdict about a group. Out: patches, one at a time for each group, and the newest one last. A group that was scheduled
stays so, whatever becomes of members that come later. What was said is remembered until it comes back by the watch: the next
attempt, which may follow at once, must neither say it again nor take it back.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.api import PodGroup, format_time
from kubesched.scheduler.cluster import GroupKey
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.failure import SCHEDULER_ERROR, UNSCHEDULABLE
from kubesched.scheduler.engine.groups.group import Rehearsal, Verdict

log = logging.getLogger(__name__)

SCHEDULED_CONDITION = "PodGroupScheduled"
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
SCHEDULED_REASON = "Scheduled"
MOST_REMEMBERED = 1000


@dataclass(slots=True)
class _Said:
    """A condition: status, reason, message and generation, since when, and the version of the group that it was said about."""

    words: tuple[str, str, str, int]
    since: str
    about: str
    is_written: bool = False


class GroupConditions:
    """Tells groups what became of them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._handle = core.handle
        self._type = INITIALLY_SCHEDULED if core.handle.gates.behaviour.judges_groups_whole else SCHEDULED_CONDITION
        self.said: dict[str, _Said] = {}
        """By the group's uid."""

    def tell(self, key: GroupKey, rehearsal: Rehearsal) -> None:
        """Write what became of a group into its status, if that is news."""
        group = self._handle.objects.get(PodGroup, key.name, key.namespace)
        if group is None:
            return
        if rehearsal.verdict is Verdict.SCHEDULED:
            says = ("True", SCHEDULED_REASON, "")
        elif rehearsal.verdict is Verdict.ERROR:
            says = ("False", SCHEDULER_ERROR, rehearsal.message)
        else:
            says = ("False", UNSCHEDULABLE, rehearsal.message)
        words = (*says, group.metadata.generation or 0)
        uid, version = group.metadata.uid, group.metadata.resource_version
        said = self.said.get(uid)
        if said is not None and said.is_written and said.about != version:
            said = None  # it has come back, or somebody else has the last word
        last = said or self._seen(group)
        if last is not None and (last.words == words or (last.words[0] == "True" and words[0] != "True")):
            return
        since = last.since if last is not None and last.words[0] == words[0] else ""
        self.said.pop(uid, None)
        while len(self.said) >= MOST_REMEMBERED:
            self.said.pop(next(iter(self.said)))
        self.said[uid] = _Said(words, since or format_time(self._handle.clock.now()), version)
        if said is None or said.is_written:
            self._core.spawn(self._write(group))

    def _seen(self, group: PodGroup) -> _Said | None:
        found = next((condition for condition in group.status.conditions if condition.type == self._type), None)
        if found is None:
            return None
        words = (found.status, found.reason, found.message, found.observed_generation or 0)
        return _Said(words, found.last_transition_time or "", group.metadata.resource_version)

    async def _write(self, group: PodGroup) -> None:
        """Write the newest condition, and again while there is a newer one."""
        uid = group.metadata.uid
        while (said := self.said.get(uid)) is not None and not said.is_written:
            status, reason, message, generation = said.words
            condition: dict[str, Any] = {
                "type": self._type,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": said.since,
            }
            if generation:
                condition["observedGeneration"] = generation
            try:
                await self._handle.writer.patch_status(group, {"conditions": [condition]})
            except SchedulerError as error:
                log.error("pod group %s: cannot write its status: %s", group.key, error)
                if self.said.get(uid) is said:
                    del self.said[uid]
            said.is_written = True
