"""The input and the result of an attempt: two values that are complete when they are made.

In: a `Question`, the pod with everything that its decision follows from. Out: an `Attempt`, the decision with everything that
it was made of. The scheduler, the dry run, `why` and the golden cases read the same value, whichever way the pod was decided.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec import Struct

from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot, Store
from kubesched.scheduler.engine.deciding.extenders import Extenders
from kubesched.scheduler.engine.deciding.sampling import Sampling
from kubesched.scheduler.engine.deciding.ties import Ties
from kubesched.scheduler.framework import (
    NODE_ALLOCATABLE,
    CachedAnswer,
    CycleState,
    Decision,
    Diagnosis,
    GroupTurn,
    LevelRows,
    Nominations,
    PostFiltered,
    PreFiltered,
    Profile,
    Scores,
    Verdicts,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """How attempts are made, apart from what is decided: the same for all pods of a run."""

    ties: Ties
    nominations: Nominations | None = None
    preempts: bool = True
    percentage_of_nodes: int = 0
    """How many of the nodes are looked at, in percent, where a profile does not say; 0 and 100 mean all of them."""
    sampling: Sampling | None = None
    extenders: Extenders | None = None
    scores_single: bool = False
    """Score even when only one node is feasible; the reference does not, explanations and golden cases want it."""

    def percentage_for(self, profile: Profile) -> int:
        """Return how many percent of the nodes are looked at for a profile; 0 for all."""
        percentage = self.percentage_of_nodes if profile.percentage_of_nodes is None else profile.percentage_of_nodes
        return percentage if percentage < 100 else 0

    def may_recall(self, profile: Profile) -> bool:
        """Return whether a profile's pods may be decided from cached answers, which are about all nodes: not where some are
        left out by lot or by extenders, nor where even a single node is scored."""
        return not (self.scores_single or self.extenders or self.percentage_for(profile))


class Question(Struct, frozen=True):
    """Where a pod goes, on these nodes, by this profile and these rules."""

    pod: PodView
    nodes: Snapshot
    profile: Profile
    rules: Rules
    within: Bools | None = None
    """The nodes that Filter looks at, where not all: a pod group is being tried in one of its placements."""
    turn: GroupTurn | None = None
    """The turn of the pod's group in which it is tried; plugins find it in the state."""

    @property
    def n_nodes(self) -> int:
        """Return how many nodes are looked at."""
        return self.nodes.n if self.within is None else int(np.count_nonzero(self.within))


class Ranking(Struct, frozen=True):
    """What a node was chosen by where several were scored. The columns are borrowed, and right until anything is booked."""

    totals: Ints
    """Below zero where a node was refused."""
    level: LevelRows
    """Which rows have the highest total."""
    row: int
    """The one of them that was chosen."""
    recalled: CachedAnswer | None = None
    """What the totals are of, where they are cached."""


class Attempt(Struct, frozen=True):
    """A decision and how it came about."""

    asked: Question
    decision: Decision
    state: CycleState
    pre_filtered: PreFiltered | None = None
    diagnosis: Diagnosis | None = None
    """Who refused which nodes. An attempt that found a node has it only if all nodes were filtered for it."""
    feasible: Bools | None = None
    scores: Scores | None = None
    """What each plugin scored, where that was computed for all nodes."""
    ranking: Ranking | None = None
    post_filtered: PostFiltered | None = None

    @property
    def pod(self) -> PodView:
        """Return the pod that was to be placed."""
        return self.asked.pod

    @property
    def nodes(self) -> Snapshot:
        """Return the cluster as it was."""
        return self.asked.nodes

    @property
    def verdicts(self) -> Verdicts | None:
        """Return what each filter said of each node, where they were asked about all."""
        return None if self.diagnosis is None else self.diagnosis.verdicts

    def pod_as_booked(self, node_name: str, store: Store) -> PodView:
        """Return the pod as it is counted on a node: with what its devices use up of the node."""
        # With DRANodeAllocatableResources the devices of a claim may use up resources of the node itself, such as memory. How
        # much depends on the node, so it is known only now, and the booking must count it.
        pod, found = self.asked.pod, self.state.find(NODE_ALLOCATABLE)
        statuses = found(node_name) if found is not None else ()
        if not statuses:
            return pod
        status = msgspec.structs.replace(pod.pod.status, node_allocatable_resource_claim_statuses=statuses)
        return store.view(msgspec.structs.replace(pod.pod, status=status))
