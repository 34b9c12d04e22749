"""Races: the states of a cluster that a scheduler may have seen when it decided a pod.

In: what happened around the moment at which we saw the pod's node. Out: those states, the likeliest first. They differ from
what we had seen for three reasons. A scheduler counts its own placements at once, and we when their bindings arrive, which
need not be in the order of the decisions; a binding takes time, and what others did meanwhile it had not seen; and each kind
of object has a watch of its own, so that one may run ahead of the others. How far back or ahead any of this may lie is
bounded, so that a scheduler of another mind is not excused by a state that never was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.simulator.shadow.history import Change, IsUndone

POD = "Pod"
MOST_STATES = 160
MOST_PLACEMENTS = 16
"""How many of its own placements, before or after, a scheduler may have made in another order than their bindings arrived."""
_ALONE = 8
_FEW = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """A state: what others did is seen up to one change, the scheduler's own placements up to another."""

    others: int
    own: int
    swapped: frozenset[int] = frozenset()
    """Changes for which it is the other way round."""

    def is_undone(self, number: int, is_own: bool) -> bool:
        """Return whether a change is not part of the state."""
        return (number >= (self.own if is_own else self.others)) is (number not in self.swapped)


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
    seen: set[int] = field(default_factory=set)
    """What is certain to be part of the state: who has seen this pod has seen what happened to others before it came."""

    @property
    def now(self) -> Moment:
        """Return the state that we saw."""
        return Moment(self.base, self.base)

    @property
    def first(self) -> int:
        """Return the first change that any of the states may undo."""
        return min((self.base, *self.traces, *self.own_before, *self.others_before))

    def undone_at(self, moment: Moment) -> IsUndone:
        """Return which changes are not part of a state."""

        def is_undone(number: int, change: Change) -> bool:
            return number in self.traces or (number not in self.seen and moment.is_undone(number, number in self.own))

        return is_undone

    def words_for(self, moment: Moment) -> str:
        """Return how a state differs from the one that we saw."""
        later = sum(number in moment.swapped or number < moment.own for number in self.own_after)
        earlier = sum(number in moment.swapped or number >= moment.own for number in self.own_before)
        unseen = sum(number >= moment.others for number in self.others_before)
        ahead = sum(number in moment.swapped for number in self.others_after)
        parts = (
            (later, "with {} of its placements that arrived later"),
            (earlier, "without {} of its placements that arrived earlier"),
            (unseen, "before {} changes by others"),
            (ahead, "with {} changes that other watches told later"),
        )
        return ", ".join(text.format(n) for n, text in parts if n)

    def moments(self) -> Iterator[Moment]:
        """Yield the states other than the one that we saw, the likeliest first."""
        base, before, after = self.base, self.own_before[:MOST_PLACEMENTS], self.own_after[:MOST_PLACEMENTS]
        for number in after:
            yield Moment(base, number + 1)
        for number in before:
            yield Moment(base, number)
        back = [self.others_before[n - 1] for n in _steps(len(self.others_before))]
        for number in back:
            yield Moment(number, base)
        for n in _steps(len(self.others_after)):
            yield Moment(base, base, frozenset(self.others_after[:n]))
        for number in (*before[1:_ALONE], *after[1:_ALONE]):
            yield Moment(base, base, frozenset({number}))
        for number in back[:_ALONE]:
            for other in before[:_FEW]:
                yield Moment(number, other)
            for other in after[:_FEW]:
                yield Moment(number, other + 1)


def _steps(n: int) -> Iterator[int]:
    """Yield 1, 2, 3, ... as long as one looks closely, then with doubled steps, and at last n."""
    count, step = 1, 1
    while count < n:
        yield count
        step *= 2 if count >= MOST_PLACEMENTS else 1
        count += step
    if n:
        yield n


def surroundings(
    changes: Iterable[tuple[int, Change]],
    pod: Pod,
    base: int,
    traces: Collection[int],
    *,
    names: Collection[str],
    seconds: float,
    at: float,
) -> Surroundings:
    """Sort what happened within some seconds of a decision about a pod; `names` are those that the scheduler answers to."""
    found, of_pods = Surroundings(base, frozenset(traces)), []
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
        if is_own:
            (found.own_before if number < base else found.own_after).append(number)
        elif number < base:
            found.others_before.append(number)
        elif change.kind != POD:
            found.others_after.append(number)
    found.own_before = [number for number in reversed(found.own_before) if number not in found.seen]
    found.others_before = [number for number in reversed(found.others_before) if number not in found.seen]
    return found


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
