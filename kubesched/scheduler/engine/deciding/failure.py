"""How an attempt ended that placed no pod: the message for the pod, and the events that it waits for.

In: a decision without a node, a refusal at Reserve or Permit, or an exception of a plugin. Out: a `Failure`, which
`acting/failures` carries out.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from kubesched.errors import PluginRaised, SchedulerError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.observer import EngineObserver
from kubesched.scheduler.framework import CLEAR, Diagnosis, Nomination, Preemption, Status, Unschedulable
from kubesched.telemetry.throttle import Throttle

log = logging.getLogger(__name__)
_tracebacks: dict[tuple[str, str, type[BaseException]], Throttle] = {}

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class Failure(Struct, frozen=True):
    """How an attempt ended. `diagnosis` names the refusing plugins; without one, something broke."""

    message: str
    is_rejection: bool
    diagnosis: Diagnosis | None = None
    nomination: Nomination | None = None
    is_silent: bool = False
    """No event and no condition: every Bind plugin left the pod to the next."""
    is_gone: bool = False
    """The API server has no such pod any more, which the watch may not have told yet."""
    preemption: Preemption | None = None
    """Whom the pod evicts."""

    @property
    def reason(self) -> str:
        """Return the reason for the pod's condition."""
        return UNSCHEDULABLE if self.is_rejection else SCHEDULER_ERROR


def broken(message: str, nomination: Nomination | None = CLEAR) -> Failure:
    """Return what it means that an attempt broke: no plugin refused the pod."""
    return Failure(message, False, None, nomination)


def refusal(decision: Unschedulable) -> Failure:
    """Return what it means that no node takes a pod; where there is no node at all, nobody refused it."""
    diagnosis = decision.diagnosis if decision.diagnosis.n_nodes else None
    return Failure(decision.message, True, diagnosis, decision.nomination)


def refused_on_node(node_name: str, status: Status) -> Failure:
    """Return what a refusal at Reserve or Permit means: one node was tried, and it refused."""
    if not status.is_rejected:
        return broken(status.message)
    # Kept quirk: the message says `0/1 nodes are available`, whatever the number of nodes, because only the chosen node was
    # tried.
    diagnosis = Diagnosis(1, extra={node_name: status})
    diagnosis.unschedulable_plugins.add(status.plugin)
    return Failure(diagnosis.message(), True, diagnosis, CLEAR)


def explain(error: Exception, pod: PodView, observer: EngineObserver) -> str:
    """Return what a pod is told of an error that ended its attempt. A plugin that broke is named, in the log and to
    whoever counts; so is our own fault, as nobody's plugin. What was raised on purpose speaks for itself."""
    if isinstance(error, SchedulerError) and not isinstance(error, PluginRaised):
        return str(error)
    plugin, point = (error.plugin, error.point) if isinstance(error, PluginRaised) else ("", "")
    observer.plugin_broke(plugin, point, pod, error)
    # Every pod meets a broken plugin, at every attempt: the log has its traceback once a minute, metrics and events have all.
    if _tracebacks.setdefault((plugin, point, type(error.__cause__ or error)), Throttle()).is_due():
        if plugin:
            log.error("plugin %s broke at %s for pod %s: %s", plugin, point, pod.key, error, exc_info=error)
        else:
            log.error("the attempt of pod %s broke: %s", pod.key, error, exc_info=error)
    return str(error) or type(error).__name__
