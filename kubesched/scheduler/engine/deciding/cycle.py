"""One attempt for one pod: a pure function from pod, snapshot and profile to a decision.

In: the pod, a snapshot, its profile, the nominated pods, how to choose among equal nodes. Out: an `Attempt`. Nothing is
booked or written here; the engine acts on the decision elsewhere. There are three ways to decide. Each file begins with the
condition under which it may be used:

  cached      from what is cached of the pod's equivalence class: nearly all pods
  few_nodes   PreFilter named a few nodes, and only these are looked at: pods of a DaemonSet
  all_nodes   every plugin is called for every node
"""

from __future__ import annotations

from kubesched.errors import PluginRaised, SchedulerError
from kubesched.scheduler.cluster import Bools, PodView, Snapshot
from kubesched.scheduler.engine.deciding import all_nodes, cached, few_nodes
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Rules
from kubesched.scheduler.framework import (
    CLEAR,
    GROUP_TURN,
    CycleState,
    Diagnosis,
    EquivalenceCache,
    Failed,
    GroupTurn,
    Profile,
    Unschedulable,
)

__all__ = ["NO_NODES", "Attempt", "Rules", "attempt"]

NO_NODES = "no nodes available to schedule pods"


def attempt(
    pod: PodView,
    nodes: Snapshot,
    profile: Profile,
    rules: Rules,
    cache: EquivalenceCache | None = None,
    within: Bools | None = None,
    turn: GroupTurn | None = None,
) -> Attempt:
    """Decide where a pod goes. A cache is given only where it may be used at all (`Rules.may_recall`).

    `within` leaves only some of the nodes to Filter; PreFilter sees all of them. A member of a group knows its `turn`.
    """
    asked = Question(pod, nodes, profile, rules, within, turn)
    try:
        if cache is not None and (made := cached.decide(asked, cache)) is not None:
            return made
        state = CycleState()
        if turn is not None:
            # Before PreFilter: plugins of groups read there how many members are still to come.
            state.write(GROUP_TURN, turn)
        if not asked.n_nodes:
            diagnosis = Diagnosis(0)
            return Attempt(asked, Unschedulable(pod, diagnosis, CLEAR, NO_NODES), state, diagnosis=diagnosis)
        before = profile.pre_filter(pod, nodes, state)
        # `few_nodes` gives up when none of its nodes is feasible. What it wrote into the state is overwritten: Filter runs
        # again for all nodes, and PreScore only after it.
        return few_nodes.decide(asked, state, before) or all_nodes.decide(asked, state, before)
    except PluginRaised:
        # An exception from a plugin goes on to the engine, which names and counts the plugin. An error status is an ordinary
        # outcome: kube-scheduler puts such a pod into backoff with the text as its condition.
        raise  # whoever runs the attempt tells who broke it
    except SchedulerError as error:
        return Attempt(asked, Failed(pod, str(error)), CycleState())
