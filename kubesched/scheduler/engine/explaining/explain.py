"""Why this node, why not that one: an attempt in words and numbers.

In: an attempt, scored even if only one node was feasible. Out: an `Explanation`: who refused which nodes and why, what the
feasible nodes scored with which plugin, and for a pod that fits nowhere what would help, whether it could ever fit, whom it
would evict and what would wake it. What the attempt computed is read off its columns; only advice about single constraints
decides again, with the constraint left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.core import EngineState
from kubesched.scheduler.engine.deciding.attempt import Attempt, Rules
from kubesched.scheduler.engine.deciding.cycle import attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.explaining.ever import Ever, ever
from kubesched.scheduler.engine.explaining.obstacles import Obstacles, Retrying
from kubesched.scheduler.engine.explaining.suggestions import suggest
from kubesched.scheduler.engine.explaining.waking import Wakes, wakes_on
from kubesched.scheduler.engine.records.refusals import Refusal, refusals_of
from kubesched.scheduler.framework import Advice, Failed, Placed, Preemption, Profile, Status, Unschedulable


@dataclass(frozen=True, slots=True)
class NodeScores:
    """What a feasible node scored."""

    node: str
    total: int
    by_plugin: dict[str, int]


@dataclass(slots=True)
class Explanation:
    """A decision, told."""

    pod: str
    node: str = ""
    message: str = ""
    has_failed: bool = False
    """Whether the attempt broke, which says nothing about whether the pod fits; the message says how."""
    n_nodes: int = 0
    n_feasible: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    ranking: list[NodeScores] = field(default_factory=list)
    suggestions: list[Advice] = field(default_factory=list)
    ever: Ever | None = None
    preemption_said: str | None = None
    """What came of trying to evict somebody, empty if it would help; None if it was not tried."""
    preemption: Preemption | None = None
    """Whom the pod would evict, where that was tried and would help."""
    wakes: list[Wakes] = field(default_factory=list)
    against_home: tuple[str, ...] = ()
    """Why the node that the pod is on would not take one more like it."""

    @property
    def advice(self) -> list[str]:
        """Return what would help, as texts."""
        return [each.text for each in self.suggestions]


def explain(
    made: Attempt, *, top: int = 5, profile: Profile | None = None, rules: Rules | None = None, home: str = ""
) -> Explanation:
    """Tell an attempt; `top` limits how many of the feasible nodes are ranked, to which `home` is added. Who hands in how the
    attempt was made is also told which single constraint stands in the way, and what would wake the pod."""
    told = Explanation(made.pod.key, n_nodes=made.nodes.n)
    decision = made.decision
    if isinstance(decision, Placed):
        told.node = decision.node_name
    elif isinstance(decision, Unschedulable | Failed):
        told.message, told.has_failed = decision.message, isinstance(decision, Failed)
    if made.feasible is not None:
        told.n_feasible = int(np.count_nonzero(made.feasible))
    told.refusals = refusals_of(made)
    told.ranking = _ranking(made, top, made.nodes.row(home) if home else -1)
    if home and made.verdicts is not None and made.nodes.row(home) >= 0:
        told.against_home = made.verdicts.status(made.nodes.row(home)).reasons
    if isinstance(decision, Unschedulable):
        again = Retrying(made.nodes, profile, rules) if profile is not None and rules is not None else None
        plugins = profile.plugins if profile is not None else ()
        obstacles = Obstacles(made, made.verdicts, plugins) if made.verdicts is not None else None
        told.suggestions = suggest(made, obstacles, again)
        told.ever = ever(obstacles) if obstacles is not None else None
        if made.post_filtered is not None:
            told.preemption, told.preemption_said = made.post_filtered.preemption, made.post_filtered.status.message
        if profile is not None:
            told.wakes = wakes_on(profile, decision.diagnosis.unschedulable_plugins | decision.diagnosis.pending_plugins)
    return told


def explain_now(engine: EngineState, pod: PodView, *, top: int = 5, preempts: bool = False) -> Explanation:
    """Tell how every node looks to a pod right now; one that has a node is looked at as if one more like it came.

    To be called in the engine's own turn. Nothing is booked or counted, and extenders are not asked. With `preempts` it is
    also found out whom the pod would evict; that takes dice from the engine, so it is not for one that is running.
    """
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    rules = Rules(SeededTies(), engine.queue.nominations, preempts=preempts, scores_single=True)
    with profile.unobserved():
        made = _attempted(engine, pod, profile, rules)
        return explain(made, top=top, profile=profile, rules=rules, home=pod.node_name)


def attempt_now(engine: EngineState, pod: PodView) -> Attempt:
    """Return an attempt for a pod as `explain_now` makes it, with all its columns."""
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    with profile.unobserved():
        return _attempted(
            engine, pod, profile, Rules(SeededTies(), engine.queue.nominations, preempts=False, scores_single=True)
        )


def _attempted(engine: EngineState, pod: PodView, profile: Profile, rules: Rules) -> Attempt:
    nodes = engine.store.snapshot()
    if pod.node_name:  # one more like it
        status = msgspec.structs.replace(pod.pod.status, nominated_node_name="")
        pod = nodes.templates.view(msgspec.structs.replace(pod.on("").pod, status=status))
    return attempt(pod, nodes, profile, rules)


def gate_of(engine: EngineState, pod: PodView) -> Status:
    """Return what keeps a pod from being tried at all; a success if nothing does."""
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    with profile.unobserved():
        return profile.pre_enqueue(pod)


def _ranking(made: Attempt, top: int, home: int = -1) -> list[NodeScores]:
    """Return the best nodes and, wherever it stands, the one in row `home`."""
    if made.scores is None or made.feasible is None:
        return []
    total = made.scores.total
    rows = [row for row in np.argsort(-total, kind="stable")[:top].tolist() if made.feasible[row]]
    if home >= 0 and home not in rows and made.feasible[home]:
        rows.append(home)
    return [
        NodeScores(
            made.nodes.name(row),
            int(total[row]),
            {plugin: int(column[row]) for plugin, column in made.scores.by_plugin.items()},
        )
        for row in rows
    ]
