"""Explain an attempt: which plugins refused which nodes, and what the feasible nodes scored.

For a pod that no node takes the explanation also has what would help, whether the pod could ever fit, which pods it would
evict and which events would wake it. Everything is read off the attempt's columns; only advice is checked by filtering once
more with a changed pod.
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
from kubesched.scheduler.engine.explaining.suggestions import Ever, Obstacles, Retrying, ever, suggest
from kubesched.scheduler.engine.explaining.waking import Wakes, wakes_on
from kubesched.scheduler.engine.records.refusals import Refusal, refusals_of
from kubesched.scheduler.framework import Advice, Failed, Placed, Preemption, Profile, Status, Unschedulable


@dataclass(frozen=True, slots=True)
class NodeScores:
    """The scores of a feasible node."""

    node: str
    total: int
    by_plugin: dict[str, int]


@dataclass(slots=True)
class Explanation:
    """An attempt, ready to be printed."""

    pod: str
    node: str = ""
    message: str = ""
    has_failed: bool = False
    """Whether a plugin or extender broke. Then nothing is known about whether the pod fits, and the message has the error."""
    n_nodes: int = 0
    n_feasible: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    ranking: list[NodeScores] = field(default_factory=list)
    suggestions: list[Advice] = field(default_factory=list)
    ever: Ever | None = None
    preemption_result: str | None = None
    """Why evictions would not help, or an empty text if they would; None if that was not tried."""
    preemption: Preemption | None = None
    """Which pods it would evict, if that was tried and would help."""
    wakes: list[Wakes] = field(default_factory=list)
    against_home: tuple[str, ...] = ()
    """Why the pod's own node would not take a second pod like it."""

    @property
    def advice(self) -> list[str]:
        """Return what would help, as texts."""
        return [each.text for each in self.suggestions]


def explain(
    made: Attempt, *, top: int = 5, profile: Profile | None = None, rules: Rules | None = None, home: str = ""
) -> Explanation:
    """Explain an attempt. The ranking has the `top` best nodes, and the node `home`. With `profile` and `rules`, those that
    the attempt was made by, the explanation also has advice, and what would wake the pod."""
    found = Explanation(made.pod.key, n_nodes=made.nodes.n)
    decision = made.decision
    if isinstance(decision, Placed):
        found.node = decision.node_name
    elif isinstance(decision, Unschedulable | Failed):
        found.message, found.has_failed = decision.message, isinstance(decision, Failed)
    if made.feasible is not None:
        found.n_feasible = int(np.count_nonzero(made.feasible))
    found.refusals = refusals_of(made)
    found.ranking = _ranking(made, top, made.nodes.row(home) if home else -1)
    if home and made.verdicts is not None and made.nodes.row(home) >= 0:
        found.against_home = made.verdicts.status(made.nodes.row(home)).reasons
    if isinstance(decision, Unschedulable):
        again = Retrying(made.nodes, profile, rules) if profile is not None and rules is not None else None
        plugins = profile.plugins if profile is not None else ()
        obstacles = Obstacles(made, made.verdicts, plugins) if made.verdicts is not None else None
        found.suggestions = suggest(made, obstacles, again)
        found.ever = ever(obstacles) if obstacles is not None else None
        if made.post_filtered is not None:
            found.preemption, found.preemption_result = made.post_filtered.preemption, made.post_filtered.status.message
        if profile is not None:
            found.wakes = wakes_on(profile, decision.diagnosis.unschedulable_plugins | decision.diagnosis.pending_plugins)
    return found


def explain_now(engine: EngineState, pod: PodView, *, top: int = 5, preempts: bool = False) -> Explanation:
    """Explain how every node looks to a pod right now. For a pod that has a node: to a second pod like it.

    Call this in the engine's loop. Nothing is booked or counted, and extenders are not called. `preempts` also finds the pods
    that it would evict. That takes random numbers from the engine, so do not use it with an engine that schedules.
    """
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    rules = Rules(SeededTies(), engine.queue.nominations, preempts=preempts, scores_single=True)
    with profile.unobserved():
        made = _attempted(engine, pod, profile, rules)
        return explain(made, top=top, profile=profile, rules=rules, home=pod.node_name)


def attempt_now(engine: EngineState, pod: PodView) -> Attempt:
    """Return the attempt that `explain_now` explains, with all its columns."""
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    with profile.unobserved():
        return _attempted(
            engine, pod, profile, Rules(SeededTies(), engine.queue.nominations, preempts=False, scores_single=True)
        )


def _attempted(engine: EngineState, pod: PodView, profile: Profile, rules: Rules) -> Attempt:
    # Without a cache, and with every node scored: the columns of all plugins are needed.
    nodes = engine.store.snapshot()
    if pod.node_name:  # a second pod like it
        status = msgspec.structs.replace(pod.pod.status, nominated_node_name="")
        pod = nodes.templates.view(msgspec.structs.replace(pod.on("").pod, status=status))
    return attempt(pod, nodes, profile, rules)


def gate_of(engine: EngineState, pod: PodView) -> Status:
    """Return the PreEnqueue status of a pod: a success if it may be tried."""
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    with profile.unobserved():
        return profile.pre_enqueue(pod)


def _ranking(made: Attempt, top: int, home: int = -1) -> list[NodeScores]:
    """Return the best nodes, and the one in row `home` if it is feasible."""
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
