"""NodeAffinity: keep pods on the nodes that their node selector and node affinity allow, and score the preferred ones.

PreFilter: if all terms name nodes (`metadata.name In [n1, n2]`, as a DaemonSet's do), only these nodes are filtered. Filter: a
node must match `nodeSelector`, and one of the required terms. Score: the sum of the weights of the preferred terms that match,
scaled so that the best node gets 100. `addedAffinity` in the arguments applies to every pod of the profile.
"""

from __future__ import annotations

import msgspec
import numpy as np

from kubesched.kube.api import Node, matching
from kubesched.kube.api import NodeAffinity as ApiNodeAffinity
from kubesched.scheduler.cluster import Bools, Ints, match_node_selector, match_required, match_term
from kubesched.scheduler.config import Args, FieldError, Gates, Path
from kubesched.scheduler.config import NodeAffinity as AddedAffinity
from kubesched.scheduler.framework import (
    ADMITTED_LATER,
    NODE,
    SKIP,
    Action,
    Advice,
    CycleState,
    Handle,
    Input,
    NodeNames,
    NodeView,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Refusal,
    Refused,
    Rejections,
    Snapshot,
    Status,
    failed,
    on,
    unresolvable,
)
from kubesched.scheduler.plugins.shared.demands import advise_on_node_demands
from kubesched.scheduler.plugins.shared.normalizing import scale_to_best

ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", resolvable=False)
UNWANTED = Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False)
CONFLICT = "pod affinity terms conflict"


class NodeAffinityArgs(Args, frozen=True, rename="camel"):
    added_affinity: AddedAffinity | None = None

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        return self.added_affinity.validate(path.child("addedAffinity")) if self.added_affinity else []


class NodeAffinity(Plugin):
    Args = NodeAffinityArgs
    wakes_on = (
        on(NODE, Action.ADD | Action.NODE_LABELS, "matches_now", by_template=True, without_hints=Action.ADD | ADMITTED_LATER),
    )
    depends_on = (Input.POD_NODE_CONSTRAINTS, Input.NODE)

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._added_required: matching.NodeSelectorMatcher | None = None
        self._added_preferred: tuple[matching.PreferredNodeTerm, ...] = ()
        self._adds_preferred = False
        if args.added_affinity is not None:
            added = msgspec.convert(msgspec.to_builtins(args.added_affinity), ApiNodeAffinity)
            if added.required is not None:
                self._added_required = matching.compile_node_selector(added.required)
            self._added_preferred = matching.compile_preferred_terms(added.preferred or ())
            self._adds_preferred = bool(added.preferred)  # also if all terms are empty and match nothing

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Return the nodes that all required terms name, if they do; skip a pod without node selector and required
        affinity."""
        spec = pod.pod.spec
        # Kept quirk: a pod with `nodeSelector: {}` is not skipped, although it selects every node.
        wanted = _node_affinity(pod)
        if wanted is None or wanted.required is None:
            return SKIP if spec.node_selector is None and self._added_required is None else None
        # None: some term does not name nodes. An empty set: the terms of the pod name nodes that contradict each other.
        named = pod.template.named_nodes
        if named is None:
            return None
        return NodeNames(named) if named else unresolvable(CONFLICT)

    def advise(self, refused: Refused) -> list[Advice]:
        return advise_on_node_demands(refused)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        unwanted = ~match_required(pod.template.required_node_affinity, nodes)
        if self._added_required is None:
            return Rejections.where(unwanted, UNWANTED)
        return Rejections.first((~match_node_selector(self._added_required, nodes), ENFORCED), (unwanted, UNWANTED))

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> Refusal:
        added = self._added_required
        if added is not None and not added.matches(node.name, node.labels):
            return (ENFORCED,)
        # A DaemonSet's pod names its node and nothing else, so a set lookup replaces the matching.
        template, name = pod.template, node.name
        if template.wants_named_alone:
            return None if name in (template.named_nodes or ()) else (UNWANTED,)
        return None if template.required_node_affinity.matches(name, node.labels) else (UNWANTED,)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        wanted = _node_affinity(pod)
        # `preferred` may be an empty list, which is not None: then the plugin runs and scores 0, as in kube-scheduler.
        if not self._adds_preferred and (wanted is None or wanted.preferred is None):
            return SKIP
        try:
            _preferred(pod)
        except matching.SelectorError as error:
            return failed(str(error))
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return the sum of the weights of the preferred terms that match, those of the arguments included."""
        scores = np.zeros(nodes.n, dtype=np.int64)
        for preferred in (*self._added_preferred, *_preferred(pod)):
            scores += preferred.weight * match_term(preferred.term, nodes)
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return scale_to_best(scores, feasible, nodes)

    def matches_now(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether a node matches that was not there, or did not match, before.

        A change that only newly satisfies the added affinity does not count, as in the reference.
        """
        added = self._added_required
        if added is not None and not added.matches(new.metadata.name, new.metadata.labels):
            return False
        required = pod.template.required_node_affinity
        if not required.matches(new.metadata.name, new.metadata.labels):
            return False
        return old is None or not required.matches(old.metadata.name, old.metadata.labels)


def _node_affinity(pod: PodView) -> ApiNodeAffinity | None:
    affinity = pod.pod.spec.affinity
    return affinity.node_affinity if affinity is not None else None


def _preferred(pod: PodView) -> tuple[matching.PreferredNodeTerm, ...]:
    wanted = _node_affinity(pod)
    if wanted is None or not wanted.preferred:
        return ()
    terms = wanted.preferred
    compiled: tuple[matching.PreferredNodeTerm, ...] = pod.template.remember(
        "NodeAffinity.preferred", lambda: matching.compile_preferred_terms(terms)
    )
    return compiled
