"""PodTopologySpread: keep matching pods evenly spread over zones, hosts or any other topology.

A hard constraint (DoNotSchedule) refuses a node if the pod would make its domain hold more than maxSkew matching pods more than
the emptiest domain. A soft constraint (ScheduleAnyway) gives nodes of emptier domains a higher score. `counts` counts the pods
and has an example. PreFilter and PreScore look the counts up, Filter and Score read them by each node's domain.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from kubesched.kube.api import Node, Pod, ReplicaSet, ReplicationController, Service, StatefulSet, matching
from kubesched.kube.api import TopologySpreadConstraint as ApiConstraint
from kubesched.kube.values import HOSTNAME, ZONE
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.config import (
    Args,
    FieldError,
    Gates,
    Go,
    Path,
    TopologySpreadConstraint,
    TypedString,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    validate_label_key,
)
from kubesched.scheduler.framework import (
    ADD,
    DELETE,
    NODE,
    POD,
    SKIP,
    Action,
    AddsScores,
    Advice,
    CycleState,
    Handle,
    Input,
    PodView,
    PreFilterAnswer,
    Refused,
    Rejections,
    Snapshot,
    Status,
    failed,
    on,
)
from kubesched.scheduler.plugins.pod_topology_spread.counts import (
    MISSING_LABEL,
    TOO_SKEWED,
    Constraint,
    HardCounts,
    SoftCounts,
    declaration,
)
from kubesched.scheduler.plugins.shared.demands import advise_on_spreading
from kubesched.scheduler.plugins.shared.owners import default_selector

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


class PodTopologySpreadArgs(Args, frozen=True, rename="camel"):
    """The constraints of pods without own ones: the built-in pair (System), or `default_constraints` (List)."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Annotated[str, Go("v1.PodTopologySpreadConstraintsDefaulting", omit_empty=True)] = ""

    def defaulted(self, gates: Gates) -> PodTopologySpreadArgs:
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM_DEFAULTING)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        where, kind = path.child("defaultingType"), TypedString(self.defaulting_type)
        if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            errors.append(not_supported(where, kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING)))
        elif kind == SYSTEM_DEFAULTING and self.default_constraints:
            errors.append(invalid(where, kind, "when .defaultConstraints are not empty"))
        seen = set()
        for at, constraint in enumerate(self.default_constraints):
            where = path.child("defaultConstraints").index(at)
            errors += _validate_constraint(constraint, where)
            identity = (constraint.topology_key, constraint.when_unsatisfiable)
            if identity in seen:
                errors.append(duplicate(where, f"{{{identity[0]}, {identity[1]}}}"))
            seen.add(identity)
        return errors


def _validate_constraint(constraint: TopologySpreadConstraint, path: Path) -> list[FieldError]:
    errors = []
    if constraint.max_skew <= 0:
        errors.append(invalid(path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)"))
    if not constraint.topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    else:
        errors += validate_label_key(constraint.topology_key, path.child("topologyKey"))
    where, action = path.child("whenUnsatisfiable"), TypedString(constraint.when_unsatisfiable)
    if not action:
        errors.append(required(where, "can not be empty"))
    elif action not in ACTIONS:
        errors.append(not_supported(where, action, ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(path.child("labelSelector"), detail))
    return errors


HARD, SOFT = ACTIONS

_SOFT, _WEIGHTS = "PodTopologySpread.soft", "PodTopologySpread.weights"

SYSTEM_CONSTRAINTS = (
    ApiConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    ApiConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SOFT),
)


class PodTopologySpread(AddsScores):
    Args = PodTopologySpreadArgs
    wakes_on = (
        on(
            POD,
            ADD | Action.POD_LABELS | Action.POD_TOLERATIONS | DELETE,
            "pod_may_help",
            by_template=True,
            without_hints=ADD | Action.POD_LABELS | DELETE,
        ),
        on(NODE, ADD | DELETE | Action.NODE_LABELS | Action.NODE_TAINTS, "node_may_help", by_template=True),
    )
    needs = (
        ("filter", "pre_filter", 'reading "PreFilterPodTopologySpread" from cycleState: not found'),
        ("score", "pre_score", 'error reading "PreScorePodTopologySpread" from cycleState: not found'),
    )
    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS, Service, ReplicationController, ReplicaSet, StatefulSet)

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        if args.defaulting_type == SYSTEM_DEFAULTING:
            self._defaults: tuple[ApiConstraint, ...] = SYSTEM_CONSTRAINTS
        else:
            given = msgspec.to_builtins(args.default_constraints)
            self._defaults = msgspec.convert(given, tuple[ApiConstraint, ...])
        self._defaults_of = {
            action: tuple(c for c in self._defaults if c.when_unsatisfiable == action) for action in (HARD, SOFT)
        }
        self._merges_keys = handle.gates.is_enabled("MatchLabelKeysInPodTopologySpread")
        self._compares = handle.gates.is_enabled("TaintTolerationComparisonOperators")

    def _constraints(self, pod: PodView, action: str) -> tuple[Constraint, ...]:
        """Return the pod's constraints with one `whenUnsatisfiable`, or the defaults; raise SelectorError for a broken
        selector.

        Defaults count the pods with the same service or controller (`default_selector`); their matchLabelKeys are ignored.
        """
        # Own constraints replace the defaults altogether: a pod with one soft constraint gets no default hard ones.
        own = pod.pod.spec.topology_spread_constraints
        if own:
            wanted = [c for c in own if c.when_unsatisfiable == action]
            return tuple(self._compile(c, self._own_selector(c, pod), pod) for c in wanted)
        defaults = self._defaults_of[action]
        if not defaults:
            return ()
        # A pod that no service and no controller selects belongs to nothing that could be spread, so defaults do not
        # apply.
        selector = default_selector(pod, self.handle.objects)
        if selector.is_everything:
            return ()
        return tuple(self._compile(c, selector, pod) for c in defaults)

    def _own_selector(self, constraint: ApiConstraint, pod: PodView) -> matching.Selector:
        selector = matching.compile_selector(constraint.label_selector)
        # matchLabelKeys: [pod-template-hash] adds pod-template-hash=<the pod's value>, so each revision of a Deployment
        # is spread for itself. A key that the pod does not have is ignored.
        if self._merges_keys:
            for key in constraint.match_label_keys:
                if key in pod.labels:
                    selector = selector.with_equal(key, pod.labels[key])
        return selector

    def _compile(self, constraint: ApiConstraint, selector: matching.Selector, pod: PodView) -> Constraint:
        """Return an API constraint with its defaults: minDomains 1, nodeAffinityPolicy Honor, nodeTaintsPolicy Ignore."""
        return Constraint(
            max_skew=constraint.max_skew,
            key=constraint.topology_key,
            selector=selector,
            min_domains=constraint.min_domains if constraint.min_domains is not None else 1,
            honors_affinity=constraint.node_affinity_policy != "Ignore",
            honors_taints=constraint.node_taints_policy == "Honor",
            matches_self=selector.matches(pod.labels),
        )

    # Hard constraints

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Look the counts of the hard constraints up; skip a pod without any."""
        if state.find(self.name) is None:
            try:
                constraints = self._constraints(pod, HARD)
            except matching.SelectorError as error:
                return failed(str(error))
            if not constraints:
                return SKIP
            key, compare = (HARD, declaration(constraints, pod)), self._compares
            state.counted(self.name, key, nodes, lambda: HardCounts(constraints, pod, compare))
        return None

    def advise(self, refused: Refused) -> list[Advice]:
        return advise_on_spreading(refused)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse a node for the first constraint that it violates, in the order of the spec."""
        counts: HardCounts = state.read(self.name)
        reasons, bits = (MISSING_LABEL, TOO_SKEWED), None
        # The verdict of a domain is a bit, 0 for "fits". `take` spreads it over the nodes; where an earlier constraint
        # has refused a node already, its bit stays.
        for i, constraint in enumerate(counts.constraints):
            judged = counts.judge(i)
            if len(counts.constraints) == 1:
                return Rejections.by_domain(nodes, constraint.key, judged, reasons)
            here = judged.take(nodes.codes(constraint.key))
            bits = here if bits is None else np.where(bits != 0, bits, here)
        return Rejections(bits, reasons)

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        counts: HardCounts = state.read(self.name)
        counts.imagine(other, row, 1, nodes)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        counts: HardCounts = state.read(self.name)
        counts.imagine(other, row, -1, nodes)

    # Soft constraints

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        # "Ignored" nodes lack the label of a constraint that the user has set, in the pod or as a List default. They are
        # feasible, keep score 0, and do not count as domains. With the built-in defaults no node is ignored, because clusters
        # without zones are usual.
        counts = self._soft(pod, nodes, state)
        if isinstance(counts, Status):
            return counts
        ignored = counts.ignored(nodes)
        scored = feasible if ignored is None else feasible & ~ignored
        state.write(_WEIGHTS, counts.weights(scored, int(np.count_nonzero(scored)), nodes))
        return None

    def _soft(self, pod: PodView, nodes: Snapshot, state: CycleState) -> SoftCounts | Status:
        """Return the counts; SKIP if the pod has no soft constraint, an error for a broken one."""
        counts: SoftCounts | None = state.find(_SOFT)
        if counts is None:
            try:
                constraints = self._constraints(pod, SOFT)
            except matching.SelectorError as error:
                return failed(str(error))
            if not constraints or not nodes.n:
                return SKIP
            # The built-in defaults must work in clusters without zones, so nodes need not have all their labels; a
            # user's constraints are taken at their word.
            needs_all_keys = bool(pod.pod.spec.topology_spread_constraints) or self.args.defaulting_type == LIST_DEFAULTING
            key, compare = (SOFT, needs_all_keys, declaration(constraints, pod)), self._compares
            counts = state.counted(_SOFT, key, nodes, lambda: SoftCounts(constraints, needs_all_keys, pod, compare))
        return counts

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counts: SoftCounts = state.read(_SOFT)
        scores = kernels.spread_worth(counts.spreads(state.read(_WEIGHTS), nodes), nodes.n)
        ignored = counts.ignored(nodes)
        if ignored is not None:
            scores[ignored] = 0
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return 100 * (high + low - score) / high among the scored nodes. Nodes without a label of an own constraint get
        0."""
        # Scores are sums of count * weight, so the lowest is the best: 0 for an empty domain. `low` is added so that
        # the best node gets exactly 100, and the fullest one 100 * low / high:
        #     scores 2, 4, 6 (low 2, high 6):   100 * (8 - 2) / 6 = 100   100 * (8 - 4) / 6 = 66   100 * (8 - 6) / 6 = 33
        counts: SoftCounts = state.read(_SOFT)
        ignored = counts.ignored(nodes)
        scored = feasible if ignored is None else feasible & ~ignored
        low, high = kernels.ends_within(scores, scored) or (0, 0)
        if high <= 0 and ignored is None:
            return nodes.uniform(100)  # no matching pod in any domain
        scaled = _scaled(scores, low, max(high, 0))
        if ignored is not None:
            scaled[ignored] = 0
        return scaled

    def add_scores(
        self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState, totals: Ints, weight: int
    ) -> Ints | Status | None:
        counts = self._soft(pod, nodes, state)
        if isinstance(counts, Status):
            return counts
        if counts.is_odd:
            return None
        ignored = counts.ignored(nodes)
        scored = feasible if ignored is None else feasible & ~ignored
        weights = counts.weights(scored, int(np.count_nonzero(scored)), nodes)
        return kernels.add_spread_scores(totals, counts.spreads(weights, nodes), scored, weight)

    # What may help

    def pod_may_help(self, pod: PodView, old: Pod | None, new: Pod | None) -> bool:
        """Return whether a hard constraint counts a pod that was added, deleted or changed, or does no longer."""
        # Only pods of the same namespace that have a node, or are nominated, are in a count; and the waiting pod
        # itself.
        for version in (old, new):
            if version is not None and not _is_involved(version, pod):
                return False
        constraints = self._constraints(pod, HARD)
        if old is not None and new is not None:
            # More tolerations let more nodes count under nodeTaintsPolicy Honor, which may raise the minimum.
            if (
                new.metadata.uid == pod.uid
                and old.spec.tolerations != new.spec.tolerations
                and any(c.honors_taints for c in constraints)
            ):
                return True
            if old.metadata.labels == new.metadata.labels:
                return False
            return any(c.selector.matches(old.metadata.labels) != c.selector.matches(new.metadata.labels) for c in constraints)
        # Added or deleted: an added pod may raise the minimum of the emptiest domain, so both directions may help.
        changed = new if new is not None else old
        assert changed is not None
        return any(c.selector.matches(changed.metadata.labels) for c in constraints)

    def node_may_help(self, pod: PodView, old: Node | None, new: Node | None) -> bool:
        """Return whether a node was added to, removed from or moved between the domains of the hard constraints."""
        keys = [c.key for c in self._constraints(pod, HARD)]

        def is_in_all(node: Node) -> bool:
            return all(key in node.metadata.labels for key in keys)

        # A node counts only if it has all keys. So a change helps if that changed, or if the node counts and moved, or
        # if it counts and its taints changed (nodeTaintsPolicy).
        if old is not None and new is not None:
            if is_in_all(old) != is_in_all(new):
                return True
            moved = any(old.metadata.labels.get(key) != new.metadata.labels.get(key) for key in keys)
            return is_in_all(new) and (moved or old.spec.taints != new.spec.taints)
        node = new if new is not None else old
        assert node is not None
        return is_in_all(node)


def _scaled(scores: Ints, low: int, high: int) -> Ints:
    """Return 100 * (high + low - score) / high: the emptiest domain gets the most. 100 for all if no domain has a pod."""
    return kernels.emptiness(scores, low, high) if high else np.full(len(scores), 100, dtype=np.int64)


def _is_involved(changed: Pod, waiting: PodView) -> bool:
    if changed.metadata.uid == waiting.uid:
        return True
    has_place = bool(changed.spec.node_name or changed.status.nominated_node_name)
    return has_place and changed.metadata.namespace == waiting.namespace
