"""Races: the states of a cluster that a scheduler may have seen when it decided a pod.

In: what happened around the moment at which we saw the pod's node. Out: those states, the likeliest first. They differ from
what we had seen for three reasons. A scheduler counts its own placements at once, and we when their bindings arrive, which
need not be in the order of the decisions; a binding takes time, and what others did meanwhile it had not seen; and each kind
of object has a watch of its own, so that one may run ahead of the others. The order of decisions is that of the scheduler's
queue: of two pods that wait, the one of higher priority first, then the one that came first. All pods come by one watch, in
order: who decided a pod before this one has seen all that happened to pods until that one came. So a scheduler of another mind
is not excused by a state that never was. Nor is every state tried: from one to the next something happened on the node that was
chosen or on the one that we would have taken, and the rest is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.engine.agreement import Comparison
from kubesched.simulator.shadow.history import Change, IsUndone

POD = "Pod"
MOST_STATES = 320
MOST_OVERTAKEN = 32
"""How many bindings that were decided later may overtake one on their way; of kube-scheduler on busy cores we saw 11."""
MOST_UNSURE = 2
"""How many placements may be on the other side than they arrived though the queue does not say so: each more
is one more excuse for a scheduler of another mind."""
_OF_DOMAINS = frozenset({"PodTopologySpread", "InterPodAffinity"})
"""Plugins whose answer for a node depends on pods on other nodes."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A state: what others did is seen up to one change, the scheduler's own placements up to this one's."""

    others: int
    swapped: frozenset[int] = frozenset()
    """Changes for which it is the other way round."""
    floor: int = 0
    """What happened to pods before this change is seen in any case."""


@dataclass(slots=True)
class Surroundings:
    """What happened around the decision about one pod; the nearest first."""

    base: int
    """The number of the change before which it was decided: its placement, or the first of its traces."""
    traces: frozenset[int]
    """What the scheduler wrote about this pod, its placement included; never part of a state in which it was decided."""
    own_before: list[int] = field(default_factory=list)
    own_after: list[int] = field(default_factory=list)
    others_before: list[int] = field(default_factory=list)
    others_after: list[int] = field(default_factory=list)
    """Of other kinds than pods: all pods come by one watch, in order."""
    own: set[int] = field(default_factory=set)
    reordered: frozenset[int] = frozenset()
    """Own placements that were decided on the other side of this one than they arrived, by the order of the queue."""
    unsure: list[int] = field(default_factory=list)
    """Own placements about whose order the queue says nothing, the nearest first: of pods of higher priority that came later,
    which may have been there when the judged pod's turn came, and of lower priority that came earlier."""
    came: dict[int, int] = field(default_factory=dict)
    """The numbers of own placements, and with which change each of their pods came."""
    of_pods: set[int] = field(default_factory=set)
    """What others did to pods."""
    where: dict[int, str] = field(default_factory=dict)
    """The node on which a change took place; empty for what may concern every node."""
    seen: set[int] = field(default_factory=set)
    """What is certain to be part of the state: who has seen this pod has seen what happened to others before it came."""

    @property
    def now(self) -> Moment:
        """Return the state that we saw."""
        return Moment(self.base)

    @property
    def first(self) -> int:
        """Return the first change that any of the states may undo."""
        return min((self.base, *self.traces, *self.own_before, *self.others_before))

    def undone_at(self, moment: Moment) -> IsUndone:
        """Return which changes are not part of a state."""

        def is_undone(number: int, change: Change) -> bool:
            if number in self.traces:
                return True
            if number in self.seen or (number < moment.floor and change.kind == POD and number not in self.own):
                return False
            after = self.base if number in self.own else moment.others
            return (number >= after) is (number not in moment.swapped)

        return is_undone

    def words_for(self, moment: Moment) -> str:
        """Return how a state differs from the one that we saw."""
        later = sum(number in moment.swapped for number in self.own_after)
        earlier = sum(number in moment.swapped for number in self.own_before)
        undone = [number for number in self.others_before if number >= moment.others]
        unseen = sum(number >= moment.floor or number not in self.of_pods for number in undone)
        ahead = sum(number in moment.swapped for number in self.others_after)
        parts = (
            (later, "with {} of its placements that arrived later"),
            (earlier, "without {} of its placements that arrived earlier"),
            (unseen, "before {} changes by others"),
            (ahead, "with {} changes that other watches told later"),
        )
        return ", ".join(text.format(n) for n, text in parts if n)

    def search(self, compare: Callable[[Moment], Comparison]) -> Iterator[tuple[Moment, Comparison]]:
        """Yield states other than the one that we saw, the likeliest first, each with how we compare in it."""
        yield from self._back(self.reordered, compare)
        yield from self._ahead(self.reordered, compare)
        for n in range(1, len(self.unsure[:MOST_UNSURE]) + 1):
            yield from self._back(self.reordered ^ frozenset(self.unsure[:n]), compare)

    def _floor(self, order: frozenset[int]) -> int:
        """Return up to where the watch of pods was read: whoever decided a pod before this one had seen that one come, and all
        that happened to pods before."""
        before = (came for number, came in self.came.items() if (number < self.base) is (number not in order))
        return max(before, default=0)

    def _back(self, order: frozenset[int], compare: Callable[[Moment], Comparison]) -> Iterator[tuple[Moment, Comparison]]:
        """Undo what others did, back to where it makes a difference, and on from there."""
        floor = self._floor(order)
        last = compare(Moment(self.base, order, floor))
        yield Moment(self.base, order, floor), last
        for number in self.others_before:
            if (number >= floor or number not in self.of_pods) and self._concerns(number, last):
                last = compare(Moment(number, order, floor))
                yield Moment(number, order, floor), last

    def _ahead(self, order: frozenset[int], compare: Callable[[Moment], Comparison]) -> Iterator[tuple[Moment, Comparison]]:
        """Take in what other watches told later, likewise."""
        last = compare(Moment(self.base, order))
        for n, number in enumerate(self.others_after, 1):
            if self._concerns(number, last):
                moment = Moment(self.base, order | frozenset(self.others_after[:n]))
                last = compare(moment)
                yield moment, last

    def _concerns(self, number: int, found: Comparison) -> bool:
        """Return whether a change may turn a comparison."""
        if not _OF_DOMAINS.isdisjoint((found.refused_by, *found.by_plugin)):
            return True
        return self.where[number] in ("", found.chosen, found.ours)


def surroundings(
    changes: Iterable[tuple[int, Change]],
    pod: Pod,
    base: int,
    traces: Collection[int],
    *,
    names: Collection[str],
    seconds: float,
    at: float,
    arrived: Mapping[str, int],
) -> Surroundings:
    """Sort what happened within some seconds of a decision about a pod; `names` are those that the scheduler answers to, and
    `arrived` says by uid in which order pods came."""
    found, of_pods = Surroundings(base, frozenset(traces)), []
    certain, came = set(), arrived.get(pod.metadata.uid)
    for number, change in changes:
        new = change.new
        is_own = (change.is_placement or change.is_nomination) and new is not None and new.spec.scheduler_name in names
        if is_own:
            found.own.add(number)
        if change.kind == POD and number < base:
            of_pods.append(number)
            if change.old is None and new is not None and new.metadata.uid == pod.metadata.uid:
                found.seen.update(of_pods)
        if number in found.traces or abs(change.at - at) > seconds or not (is_own or matters(change)):
            continue
        found.where[number] = _where(change)
        if is_own:
            (found.own_before if number < base else found.own_after).append(number)
            other: Pod = change.old  # type: ignore[assignment]  # it had waited
            if (its_came := arrived.get(other.metadata.uid)) is not None:
                found.came[number] = its_came
            if _is_first(other, pod, arrived) if number > base else _is_first(pod, other, arrived):
                certain.add(number)
            elif its_came is not None and came is not None and _is_unsure(_priority(other) - _priority(pod), its_came - came):
                found.unsure.append(number)
        elif number < base:
            found.others_before.append(number)
            if change.kind == POD:
                found.of_pods.add(number)
        elif change.kind != POD:
            found.others_after.append(number)
    found.own_before = [number for number in reversed(found.own_before) if number not in found.seen]
    found.others_before = [number for number in reversed(found.others_before) if number not in found.seen]
    certain -= found.seen
    if sum(number < base for number in certain) > MOST_OVERTAKEN:  # it was held back by something that we do not know
        certain = {number for number in certain if number > base}
    found.reordered = frozenset(certain)
    found.unsure = sorted((each for each in found.unsure if each not in found.seen), key=lambda number: abs(number - base))
    return found


def _where(change: Change) -> str:
    for each in (change.new, change.old):
        if isinstance(each, Node):
            return each.metadata.name
        if isinstance(each, Pod) and each.spec.node_name:
            return each.spec.node_name
    return ""


def _is_unsure(more_important: int, later: int) -> bool:
    """Return whether the queue says nothing about two pods: one is more important and came later, or the other way round."""
    return (more_important > 0 and later > 0) or (more_important < 0 and later < 0)


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _is_first(first: Pod, second: Pod, arrived: Mapping[str, int]) -> bool:
    """Return whether a queue gives away one pod before the other whenever both wait in it for the first time."""
    if is_refused(first) or is_refused(second) or _priority(first) < _priority(second):
        return False
    came, came_too = arrived.get(first.metadata.uid), arrived.get(second.metadata.uid)
    return came is not None and came_too is not None and came < came_too


def is_refused(pod: Pod) -> bool:
    """Return whether the last attempt for a pod failed."""
    return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)


def matters(change: Change) -> bool:
    """Return whether a decision about another pod could depend on a change: most of what kubelets write is of no concern."""
    old, new = change.old, change.new
    if isinstance(old, Pod) or isinstance(new, Pod):
        placed = [each for each in (old, new) if each is not None and each.spec.node_name]
        return len(placed) == 1 or (len(placed) == 2 and _of_pod(placed[0]) != _of_pod(placed[1]))
    if isinstance(old, Node) and isinstance(new, Node):
        return _of_node(old) != _of_node(new)
    return True


def _of_pod(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return meta.uid, meta.labels, meta.deletion_timestamp is None, pod.spec, pod.status.phase in ("Succeeded", "Failed")


def _of_node(node: Node) -> tuple[object, ...]:
    status = node.status
    return node.metadata.labels, node.spec, status.allocatable, status.images, status.declared_features


def is_trace(change: Change, pod: Pod) -> bool:
    """Return whether a change is what a scheduler writes about a pod between deciding and binding it: the node that it
    expects, the volumes of its claims, its devices."""
    old, new = change.old, change.new
    if old is None or new is None:
        return False
    if isinstance(new, Pod):
        is_promise = change.is_placement or (change.is_nomination and bool(new.status.nominated_node_name))
        return is_promise and new.metadata.uid == pod.metadata.uid
    if isinstance(new, ResourceClaim):
        return _reserves(new, pod) and not _reserves(old, pod)
    if isinstance(new, PersistentVolumeClaim):
        return new.metadata.name in claim_names(pod) and new.metadata.namespace == pod.metadata.namespace
    if isinstance(new, PersistentVolume):
        claim = new.spec.claim_ref
        if claim is None or old.spec.claim_ref is not None:
            return False
        return claim.namespace == pod.metadata.namespace and claim.name in claim_names(pod)
    return False


def _reserves(claim: ResourceClaim, pod: Pod) -> bool:
    return any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)


def claim_names(pod: Pod) -> set[str]:
    """Return the names of the volume claims of a pod."""
    names = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.add(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.add(f"{pod.metadata.name}-{volume.name}")
    return names
