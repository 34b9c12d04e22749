"""No node is feasible: run PostFilter, and make the message.

In: a question, and the verdicts. Out: the attempt, `Unschedulable`.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import Bools
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question
from kubesched.scheduler.framework import CLEAR, CycleState, Diagnosis, PostFiltered, PreFiltered, Unschedulable


def give_up(
    asked: Question, state: CycleState, before: PreFiltered, diagnosis: Diagnosis, feasible: Bools | None = None
) -> Attempt:
    """Conclude that no node takes a pod; the diagnosis is completed with the plugins that refused, and with what PostFilter
    says."""
    pod, profile, rules = asked.pod, asked.profile, asked.rules
    if diagnosis.verdicts is not None:
        refusing, pending = diagnosis.verdicts.plugins()
        diagnosis.unschedulable_plugins |= refusing
        diagnosis.pending_plugins |= pending
    found: PostFiltered | None = None
    nomination = CLEAR if rules.preempts else None
    if rules.preempts and profile.post_filters:
        found = profile.post_filter(pod, asked.nodes, state, diagnosis)
        diagnosis.post_filter_message = found.status.message
        nomination = found.nomination
    wording = profile.word(pod, diagnosis) if profile.word is not None else ""
    decision = Unschedulable(pod, diagnosis, nomination, wording)
    return Attempt(asked, decision, state, before, diagnosis, feasible, post_filtered=found)
