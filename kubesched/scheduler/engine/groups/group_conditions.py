"""The condition in a pod group's status that says whether the group was scheduled.

There is one patch at a time for each group, and the newest condition is written last. A group that was scheduled stays so,
whatever becomes of members that come later. A condition is kept until it comes back by the watch, because the next attempt may
follow before that:

    attempt 1 fails      write False, kept as latest; the group that we see has no condition yet
    attempt 2 fails      same words as latest: nothing is written
    attempt 3 succeeds   write True, after the first patch
    attempt 4 fails      latest is True: nothing is written, a scheduled group stays scheduled
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
class _Condition:
    """A condition: status, reason, message and generation; since when; and the group's resourceVersion that it was written
    for."""

    words: tuple[str, str, str, int]
    since: str
    about: str
    is_written: bool = False


class GroupConditions:
    """Writes the conditions of pod groups."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._handle = core.handle
        self._type = INITIALLY_SCHEDULED if core.handle.gates.behaviour.judges_groups_whole else SCHEDULED_CONDITION
        self.latest: dict[str, _Condition] = {}
        """By the group's uid."""

    def tell(self, key: GroupKey, rehearsal: Rehearsal) -> None:
        """Write the result of an attempt into the group's status, if it is new."""
        group = self._handle.objects.get(PodGroup, key.name, key.namespace)
        if group is None:
            return
        if rehearsal.verdict is Verdict.SCHEDULED:
            state = ("True", SCHEDULED_REASON, "")
        elif rehearsal.verdict is Verdict.ERROR:
            state = ("False", SCHEDULER_ERROR, rehearsal.message)
        else:
            state = ("False", UNSCHEDULABLE, rehearsal.message)
        words = (*state, group.metadata.generation or 0)
        uid, version = group.metadata.uid, group.metadata.resource_version
        latest = self.latest.get(uid)
        # The resourceVersion has moved on since our write, so what the watch has now is newer than what we kept.
        if latest is not None and latest.is_written and latest.about != version:
            latest = None  # it came back by the watch, or another writer changed the group
        last = latest or self._seen(group)
        if last is not None and (last.words == words or (last.words[0] == "True" and words[0] != "True")):
            return
        since = last.since if last is not None and last.words[0] == words[0] else ""
        self.latest.pop(uid, None)
        while len(self.latest) >= MOST_REMEMBERED:
            # Only a written condition may go: it costs at most one patch more. One that is still to be written would be lost,
            # and with a burst of groups and a slow API server more than MOST_REMEMBERED of them wait.
            written = next((known for known, each in self.latest.items() if each.is_written), None)
            if written is None:
                break
            del self.latest[written]
        self.latest[uid] = _Condition(words, since or format_time(self._handle.clock.now()), version)
        # Otherwise the task that is writing the older one finds this one when it is done (`_write` loops).
        if latest is None or latest.is_written:
            self._core.spawn(self._write(group))

    def _seen(self, group: PodGroup) -> _Condition | None:
        found = next((condition for condition in group.status.conditions if condition.type == self._type), None)
        if found is None:
            return None
        words = (found.status, found.reason, found.message, found.observed_generation or 0)
        return _Condition(words, found.last_transition_time or "", group.metadata.resource_version)

    async def _write(self, group: PodGroup) -> None:
        """Write the newest condition, and again while there is a newer one."""
        uid = group.metadata.uid
        while (latest := self.latest.get(uid)) is not None and not latest.is_written:
            status, reason, message, generation = latest.words
            condition: dict[str, Any] = {
                "type": self._type,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": latest.since,
            }
            if generation:
                condition["observedGeneration"] = generation
            try:
                await self._handle.writer.patch_status(group, {"conditions": [condition]})
            except SchedulerError as error:
                log.error("pod group %s: cannot write its status: %s", group.key, error)
                if self.latest.get(uid) is latest:
                    del self.latest[uid]
            latest.is_written = True
