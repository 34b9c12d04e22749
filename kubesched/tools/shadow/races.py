"""Races: the states of a cluster that a scheduler may have seen when it decided a pod.

In: what happened around the moment at which we saw the pod's node. Out: those states, the likeliest first. They differ from
what we had seen for three reasons. A scheduler counts its own decisions at once, and we when what it writes about them
arrives, which need not be in their order; a binding takes time, and what others did meanwhile it had not seen; and each kind
of object has a watch of its own, so that one may run ahead of the others.

Which decisions came before this one is hardly a matter of choice. All pods come by one watch, in order; so a state is first
of all a place in it, up to which the scheduler had read, and a pod that came later was not yet decided. Of two pods that wait
for the first time the queue gives away the more important one first, then the one that came first: a more important one was
decided before this one if the scheduler had read of it, an equal one if it came earlier. Less important ones that came
earlier were decided before it in their order, up to one of them. Only for pods that were refused before nothing is known but
when their bindings arrived. So a scheduler of another mind is not excused by a state that never was. Nor is every state
tried: from one to the next something changes on the node that was chosen or on the one that we would have taken, and the rest
is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from typing import Any

from kubesched.kube.api import Pod
from kubesched.scheduler.engine import Comparison
from kubesched.tools.shadow.changes import POD, Change, Key, is_refused, priority_of

MOST_STATES = 320
LONGEST_SKEW_SECONDS = 15.0
"""How far one of our watches may be ahead of another; what is further apart is of servers whose versions do not compare."""
MOST_OVERTAKEN = 32
"""How many decisions that were made later may overtake one on their way; of kube-scheduler on busy cores we saw 11."""
MOST_SWAPPED = 3
"""How many decisions about whose order nothing is known may be on the other side than they arrived: each more is one more
excuse for a scheduler of another mind."""
_MOST_TRIED_EACH = 4
_OF_DOMAINS = frozenset({"PodTopologySpread", "InterPodAffinity"})
"""Plugins whose answer for a node depends on pods on other nodes."""


class Order(Enum):
    """What is known about the order of another decision and the one in question."""

    BEFORE = "before"
    AFTER = "after"
    AS_READ = "before, if it had been read of"
    IN_TURN = "before, up to one of them in the order of the queue"
    ANY = "as it arrived, or the other way round"


@dataclass(slots=True)
class Other:
    """A decision about another pod."""

    number: float
    """The place in the watch of pods at which we learned of it."""
    node: str
    came: int
    """With which change the pod came; -1 for one that was there from the beginning."""
    order: Order = Order.ANY
    turn: tuple[float, float] = (0, 0)


@dataclass(frozen=True, slots=True)
class Moment:
    """A state: how far the scheduler had read, and what else is special about it."""

    read: float
    """What others did is seen up to this change, and pods that came."""
    swapped: frozenset[float] = frozenset()
    """The numbers of decisions that are on the other side than they arrived, and of what other watches told later."""


@dataclass(slots=True)
class Surroundings:
    """What happened around the decision about one pod; the nearest first."""

    base: float
    """The number of the change before which it was decided: its placement, or the first of its traces. Numbers are places in
    the watch of pods; what other watches told lies between two of these, by the versions of the cluster if they are known."""
    floor: int = 0
    """Up to where the watch of pods was read in any case: whoever decided a pod had seen it come, and all before it."""
    decisions: list[Other] = field(default_factory=list)
    before: list[tuple[float, str, bool]] = field(default_factory=list)
    """What others did: number, node, and whether the watch of pods told it."""
    places: list[tuple[float, str, bool]] = field(default_factory=list)
    """The same, and where more important pods came: up to which of them the scheduler had read makes a difference."""
    after: list[tuple[float, str]] = field(default_factory=list)
    """What other watches than that of pods told later."""
    _steps: list[tuple[float, Key, Any, bool, Other | None]] = field(default_factory=list)
    """Number, object, its version before, whether it is never part of a state, and which decision it belongs to."""

    @property
    def now(self) -> Moment:
        """Return the state that the order of queues suggests."""
        return Moment(self.base)

    def versions(self, moment: Moment) -> dict[Key, Any | None]:
        """Return the objects that are shown in an older version in a state. What happened to an object after a change that is
        undone is undone with it."""
        read_of_pods = max(moment.read, self.floor)
        later = {id(other) for other in self.decisions if not self._is_before(other, moment)}
        wanted: dict[Key, Any | None] = {}
        for number, key, old, is_trace, other in self._steps:
            if key in wanted:
                continue
            if is_trace:
                is_undone = True
            elif other is not None:
                is_undone = id(other) in later
            else:
                is_undone = number >= (read_of_pods if key[0] == POD else moment.read) and number not in moment.swapped
            if is_undone:
                wanted[key] = old
        return wanted

    def _is_before(self, other: Other, moment: Moment) -> bool:
        """Return whether another decision counts as made before this one in a state."""
        if other.order is Order.AFTER or other.came >= max(moment.read, self.floor):
            return False
        if other.order in (Order.BEFORE, Order.AS_READ):
            return True
        return (other.number < self.base) is (other.number not in moment.swapped)

    def words_for(self, moment: Moment) -> str:
        """Return how a state differs from the one that we saw."""
        of_pods = max(moment.read, self.floor)
        seen = [(other.number < self.base, self._is_before(other, moment)) for other in self.decisions]
        unseen = sum(number >= (of_pods if is_of_pods else moment.read) for number, _, is_of_pods in self.before)
        parts = (
            (seen.count((False, True)), "with {} of its placements that arrived later"),
            (seen.count((True, False)), "without {} of its placements that arrived earlier"),
            (unseen, "before {} changes by others"),
            (sum(number in moment.swapped for number, _ in self.after), "with {} changes that other watches told later"),
        )
        return ", ".join(text.format(n) for n, text in parts if n)

    # The search

    def search(self, compare: Callable[[Moment], Comparison]) -> Iterator[tuple[Moment, Comparison]]:
        """Yield states, the likeliest first, each with how we compare in it: from each one the next are those in which
        something is different on the nodes in question."""
        seen, turn = {self.now}, count()
        heap = [(0, next(turn), 0, self.now)]
        while heap:
            cost, _, n_swapped, moment = heappop(heap)
            found = compare(moment)
            yield moment, found
            following = [(cost + 1, n_swapped, each) for each in (*self._back(moment, found), *self._ahead(moment, found))]
            if n_swapped < MOST_SWAPPED:
                following += [(cost + 2, n_swapped + 1, each) for each in self._swaps(moment, found)]
            for price, n, each in following:
                if each not in seen:
                    seen.add(each)
                    heappush(heap, (price, next(turn), n, each))

    def _back(self, moment: Moment, found: Comparison) -> Iterator[Moment]:
        """Let the scheduler have read less, back to where it makes a difference."""
        for number, node, is_of_pods in self.places:
            if number < moment.read and (number >= self.floor or not is_of_pods) and _concerns(node, found):
                yield Moment(number, moment.swapped)
                return

    def _ahead(self, moment: Moment, found: Comparison) -> Iterator[Moment]:
        """Take in what other watches told later, likewise."""
        if moment.read < self.base:
            return
        for n, (number, node) in enumerate(self.after, 1):
            if number not in moment.swapped and _concerns(node, found):
                yield Moment(moment.read, moment.swapped | {number for number, _ in self.after[:n]})
                return

    def _swaps(self, moment: Moment, found: Comparison) -> Iterator[Moment]:
        """Put one of the nearest decisions on the other side, likewise, with those that go with it."""
        near = (
            other
            for other in self.decisions
            if other.number not in moment.swapped
            and (other.order in (Order.ANY, Order.IN_TURN) and other.came < self.base)
            and (other.node and _concerns(other.node, found))
        )
        for other in islice(near, _MOST_TRIED_EACH):
            yield Moment(moment.read, moment.swapped | self._with(other))

    def _with(self, other: Other) -> frozenset[float]:
        """Return the decisions that change sides if one does: those whose turn is between."""
        if other.order is Order.ANY:
            return frozenset({other.number})
        is_before = other.number < self.base
        return frozenset(
            each.number
            for each in self.decisions
            if each.order is Order.IN_TURN
            and (each.number < self.base) is is_before
            and (each.turn >= other.turn if is_before else each.turn <= other.turn)
        )


def _concerns(node: str, found: Comparison) -> bool:
    """Return whether what happens on a node may turn a comparison."""
    return node in ("", found.chosen, found.ours) or not _OF_DOMAINS.isdisjoint((found.refused_by, *found.by_plugin))


def surroundings(
    changes: Iterable[tuple[int, Change]],
    pod: Pod,
    base: float,
    traces: Collection[int],
    *,
    seconds: float,
    at: float,
    arrived: Mapping[str, int],
) -> Surroundings:
    """Sort what happened within some seconds of a decision about a pod; `traces` are the numbers of what the scheduler wrote
    about this pod, and `arrived` says by uid with which changes pods came."""
    changes = list(changes)
    place_of = _Places(changes)
    base, came = next((place_of(n, each)[0] for n, each in changes if n == base), base), arrived.get(pod.metadata.uid, -1)
    found, others = Surroundings(base), dict[object, Other]()
    for number, change in changes:
        if not change.matters and not change.of and number not in traces:
            continue
        place, its_time = place_of(number, change)
        is_near = abs(its_time - at) <= seconds
        if number in traces:
            found._steps.append((place, change.key, change.old, True, None))
        elif change.of and is_near:
            # A nomination and the placement that follows it are two decisions.
            name = (change.of, number) if change.is_nomination else change.of
            other = others.setdefault(name, Other(place, "", arrived.get(change.of, -1)))
            if isinstance(change.old, Pod):
                other.node = change.where
                _put_in_order(other, change.old, pod, came)
            found._steps.append((place, change.key, change.old, False, other))
        elif place >= base or is_near:
            found._steps.append((place, change.key, change.old, False, None))
            if not is_near or not change.matters_to(pod):
                continue
            if place < base:
                found.before.append((place, change.where, change.kind == POD))
            elif change.kind != POD:
                found.after.append((place, change.where))
    found.decisions = sorted(others.values(), key=lambda other: abs(other.number - base))
    overtook = [other for other in found.decisions if other.order is Order.AFTER and other.number < base]
    if len(overtook) > MOST_OVERTAKEN:  # something that we do not know held this pod back: the queue's order says nothing
        for other in overtook:
            other.order = Order.ANY
    found.before.sort(reverse=True)
    found.after.sort()
    found.floor = max((came, *(other.came for other in found.decisions if other.order is Order.BEFORE))) + 1
    more_important = [(other.came, other.node, True) for other in found.decisions if other.order is Order.AS_READ]
    found.places = sorted((each for each in (*found.before, *more_important) if each[0] < base), reverse=True)
    return found


class _Places:
    """Finds out where in the watch of pods something lies that another watch told, and when that was."""

    def __init__(self, changes: Iterable[tuple[int, Change]]) -> None:
        self._known = [(each.version, n, each.at) for n, each in changes if each.is_from_watch_of_pods and each.version]

    def __call__(self, number: int, change: Change) -> tuple[float, float]:
        if not change.version or change.is_from_watch_of_pods:
            return number, change.at
        following = bisect_right(self._known, (change.version, inf))
        near = self._known[following : following + 1] or self._known[-1:]
        if not near or abs(near[0][2] - change.at) > LONGEST_SKEW_SECONDS:
            return number, change.at
        version, place, at = near[0]
        if version < change.version:  # the watch of pods is not as far yet
            return max(number, place + 1 - 1 / (1 + change.version - version)), max(at, change.at)
        before = self._known[following - 1][0] if following else change.version - 1
        return place - (version - change.version) / (version - before), at


def _put_in_order(other: Other, waiting: Pod, pod: Pod, came: int) -> None:
    """Find out what is known about when another pod was decided."""
    other.turn = (-priority_of(waiting), other.came)
    if other.number < came:
        other.order = Order.BEFORE
    elif is_refused(waiting) or other.came < 0 or came < 0:
        other.order = Order.ANY
    elif is_refused(pod):  # its turn came between two of them
        other.order, other.turn = Order.IN_TURN, (0, other.number)
    elif other.came < came:
        other.order = Order.BEFORE if priority_of(waiting) >= priority_of(pod) else Order.IN_TURN
    else:
        other.order = Order.AS_READ if priority_of(waiting) > priority_of(pod) else Order.AFTER
