"""The search: the first devices, in order, that serve all claims together.

In: the claims' shapes, the pools that a group of nodes reaches, and who holds what. Out: picks for every claim, "none",
or an error. Depth first, first solution wins: claims in the pod's order, requests in the claim's, devices in the
group's; a later failure takes back earlier picks. The result depends on nothing else, so it can be remembered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from kubesched.kube.api import DeviceAttribute, DeviceConstraint
from kubesched.kube.cel import Allowance
from kubesched.scheduler.cluster import DeviceClaims, DeviceId, PoolId
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import Counters, DeviceView
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Candidate, Group, Pool
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import (
    ALL,
    EXACT_COUNT,
    AllocationError,
    ClaimShape,
    Consumption,
    RequestShape,
)
from kubesched.scheduler.plugins.dynamic_resources.args import Features

MAX_RESULTS = 32
"""A claim may not have more devices."""

MAX_SUB_REQUESTS = 8
_SHALLOW = 500
_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK = 256


class TookTooLong(Exception):
    """The search did not end in time."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for a request; `shared` is what it takes of a device that others may use too."""

    device: DeviceView
    request: RequestShape
    shared: tuple[Consumption, ...] | None = None
    counted_in: Pool | None = None
    """The pool whose counters it uses up."""


Allocation = tuple[tuple[Pick, ...], ...]
"""A solution: the picks of each claim, which tell by their requests which way of a list was taken, too."""


class _Found(Enum):
    YES = 1
    NO = 2
    TOO_MANY = 3
    """No device would help: the claim has all that it may have."""


class Search:
    """One search on one group of nodes."""

    def __init__(
        self,
        claims: Sequence[ClaimShape],
        group: Group,
        book: DeviceClaims,
        features: Features,
        is_late: Callable[[], bool] | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self._claims = claims
        self._group = group
        self._book = book
        self._features = features
        self._is_late = is_late
        self._allowance = allowance
        self._steps = 0
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._taken: list[set[DeviceId]] = [set() for _ in claims]
        """What each claim has picked for itself. Admin access looks past what other claims have, but what it picks is as
        much in the way of the others in this search as anything."""
        self._shared: dict[DeviceId, list[tuple[Consumption, ...]]] = {}
        self._counters = CounterBook(book)
        self._constraints: list[list[Constraint]] = []
        self._all: dict[RequestShape, list[Candidate]] = {}

    def run(self) -> Allocation | None:
        """Return the first solution, or None if there is none; raise `AllocationError`, `TookTooLong` or `NoAllowance`."""
        if self._group.error is not None:
            raise AllocationError(self._group.error)
        deepest = sum(self._validate(claim) for claim in self._claims)
        if deepest > _SHALLOW:
            # Calls of Python functions by Python functions do not use up the machine's stack.
            sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + deepest))
        if self._claim(0) is not _Found.YES:
            return None
        return tuple(map(tuple, self._picks))

    # Before the search

    def _validate(self, claim: ClaimShape) -> int:
        """Raise if the claim cannot be searched for; return how many calls deep its search may go."""
        least = sum(min(map(self._size, ways), default=0) for ways in claim.requests)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {{claim}}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}", claim.index
            )
        constraints = []
        for i, wanted in enumerate(claim.spec.devices.constraints):
            constraint = constraint_for(wanted, self._features)
            if constraint is None:
                raise AllocationError(
                    f"claim {{claim}}, constraint #{i}: empty constraint (unsupported constraint type?)", claim.index
                )
            constraints.append(constraint)
        self._constraints.append(constraints)
        return MAX_RESULTS + 3 * len(claim.requests) + 1

    def _size(self, request: RequestShape) -> int:
        """Return how many devices a request needs; for one that wants all devices, find out which these are."""
        request.validate()
        if request.admin and not self._features.admin_access:
            raise request.error_of(": admin access is requested, but the feature is disabled")
        if request.derived and not self._features.derived_attributes:
            raise request.error_of(": cannot handle request with derived attributes, the feature is disabled")
        if request.mode == EXACT_COUNT:
            return request.count
        if request.mode != ALL:
            raise request.error_of(f": unsupported count mode {request.mode}")
        counts_full = self._features.behaviour.counts_full_devices_in_all
        wanted: list[Candidate] = []
        remaining = iter(self._group.candidates)
        for pool in self._group.pools:
            if not pool.is_usable:
                state = "currently being updated" if pool.is_incomplete else "currently invalid"
                raise request.error_of(f": asks for all devices, but resource pool {pool} is {state}")
            for _ in pool.devices:
                candidate = next(remaining)
                if self._is_selectable(request, candidate) and self._has_room(request, candidate.device, if_empty=counts_full):
                    wanted.append(candidate)
        self._all[request] = wanted
        return len(wanted)

    # The search

    def _claim(self, c: int) -> _Found:
        return _Found.YES if c == len(self._claims) else self._request(c, 0)

    def _request(self, c: int, r: int) -> _Found:
        claim = self._claims[c]
        if r == len(claim.requests):
            # That a later claim has too many devices says nothing about this one.
            return _Found.YES if self._claim(c + 1) is _Found.YES else _Found.NO
        always_too_many = True
        for request in claim.requests[r]:
            found = self._devices(c, r, request, 0, 0)
            if found is _Found.YES:
                return found
            always_too_many &= found is _Found.TOO_MANY
        return _Found.TOO_MANY if always_too_many else _Found.NO

    def _devices(self, c: int, r: int, request: RequestShape, k: int, start: int) -> _Found:
        """Find the k-th device of a request and all after it, looking at candidates from `start` on."""
        self._look_at_the_clock()
        wanted = self._all.get(request)
        if wanted is not None and not wanted:
            return _Found.NO
        needed = request.count if wanted is None else len(wanted)
        if k >= needed:
            return self._request(c, r + 1)
        if len(self._picks[c]) + needed - k > MAX_RESULTS:
            return _Found.TOO_MANY
        if wanted is not None:
            if not self._take(c, request, wanted[k], must=True):
                return _Found.NO
            found = self._devices(c, r, request, k + 1, 0)
            if found is not _Found.YES:
                self._give_back(c)
            return found
        candidates = self._group.candidates
        for at in range(start, len(candidates)):
            candidate = candidates[at]
            device = candidate.device
            if (
                self._is_in_use(c, request, device)
                or not self._is_selectable(request, candidate)
                or not self._has_room(request, device)
                or not self._take(c, request, candidate, must=False)
            ):
                continue
            found = self._devices(c, r, request, k + 1, at + 1)
            if found is _Found.YES:
                return found
            self._give_back(c)
            if found is _Found.TOO_MANY:
                return found
        return _Found.NO

    def _look_at_the_clock(self) -> None:
        self._steps += 1
        if self._is_late is not None and self._steps % _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK == 0 and self._is_late():
            raise TookTooLong

    # One device

    def _is_in_use(self, c: int, request: RequestShape, device: DeviceView) -> bool:
        if device.id in self._taken[c]:
            return True
        if request.admin:
            return False
        if device.id in self._book.exclusive or any(device.id in taken for taken in self._taken):
            return True
        return not self._features.consumable_capacity and device.id in self._book.shares

    def _is_selectable(self, request: RequestShape, candidate: Candidate) -> bool:
        device = candidate.device
        if device.binding_conditions and not self._features.binding_conditions:
            return False
        return request.selects(device, self._allowance) and candidate.is_reachable

    def _has_room(self, request: RequestShape, device: DeviceView, *, if_empty: bool = False) -> bool:
        """Return whether a device has enough left for a request, or would have if nobody used it."""
        if not self._features.consumable_capacity:
            return True
        taken = request.consumption(device)
        if taken is None:
            return False
        before = self._book.consumed.get(device.id) if not if_empty else None
        now = self._shared.get(device.id) if not if_empty else None
        for consumed in taken:
            total = consumed.amount
            if before:
                total += before.get(consumed.name, 0)
            if now:
                total += sum(other.amount for share in now for other in share if other.name == consumed.name)
            if total > consumed.limit:
                return False
        return True

    def _take(self, c: int, request: RequestShape, candidate: Candidate, *, must: bool) -> bool:
        """Pick a device for a request if nothing speaks against it."""
        device, pool = candidate.device, candidate.pool
        features = self._features
        is_shared = device.allow_multiple and features.consumable_capacity
        if self._is_in_use(c, request, device):
            return False
        if device.compatible and not features.partitionable_devices:
            return False
        if device.skip_operations and not (features.optional_node_operations and self._group.skips_operations):
            return False
        is_counted_already = is_shared and (device.id in self._book.shares or device.id in self._shared)
        counts = bool(device.compatible) and not is_counted_already
        if counts and features.compatibility_groups and not self._counters.is_compatible(pool, device):
            return False
        if counts and not self._counters.fits(pool, device):
            return False
        if features.device_taints and device.taints and not request.tolerates(device.taints):
            return False
        if not self._satisfies(c, request, device):
            if must:
                raise request.error_of(f": cannot add device {device.id} because a claim constraint would not be satisfied")
            return False
        if not self._has_room(request, device):
            self._unconstrain(c, request, len(self._constraints[c]))
            return False
        if counts:
            self._counters.take(pool, device)
        share = None
        if is_shared:
            share = request.consumption(device) or ()
            self._shared.setdefault(device.id, []).append(share)
        else:
            self._taken[c].add(device.id)
        self._picks[c].append(Pick(device, request, share, pool if counts else None))
        return True

    def _satisfies(self, c: int, request: RequestShape, device: DeviceView) -> bool:
        for i, constraint in enumerate(self._constraints[c]):
            attribute = request.attribute(constraint.attribute, device, self._allowance)
            if not constraint.add(request, attribute):
                self._unconstrain(c, request, i)
                return False
        return True

    def _unconstrain(self, c: int, request: RequestShape, count: int) -> None:
        for constraint in self._constraints[c][:count]:
            constraint.remove(request)

    def _give_back(self, c: int) -> None:
        """Take the last pick of a claim back."""
        pick = self._picks[c].pop()
        self._unconstrain(c, pick.request, len(self._constraints[c]))
        if pick.counted_in is not None:
            self._counters.give_back(pick.counted_in, pick.device)
        device = pick.device.id
        if pick.shared is not None:
            shares = self._shared[device]
            shares.pop()
            if not shares:
                del self._shared[device]
        else:
            self._taken[c].discard(device)


Value = tuple[str, object]


def constraint_for(wanted: DeviceConstraint, features: Features) -> Constraint | None:
    """Return the constraint that a claim states, or None for one of a kind that we do not know."""
    if wanted.match_attribute is not None:
        return Constraint(wanted.requests, wanted.match_attribute, is_match=True)
    if wanted.distinct_attribute is not None and features.consumable_capacity:
        keeps_last = not features.behaviour.compares_all_distinct
        return Constraint(wanted.requests, wanted.distinct_attribute, is_match=False, keeps_last=keeps_last)
    return None


class Constraint:
    """One constraint of one claim during one search: devices have the same value of an attribute, or different ones.

    `keeps_last`, as before 1.37: only the last value of each request is remembered, so values may repeat within one.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str, *, is_match: bool, keeps_last: bool = False) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)
        self._is_match = is_match
        self._keeps_last = keeps_last
        self._seen: list[tuple[str, Value | None]] = []

    def add(self, request: RequestShape, attribute: DeviceAttribute | None) -> bool:
        """Accept a device, with its value of the attribute that this is about, or refuse it."""
        if not self._is_about(request):
            return True
        if attribute is None:
            return False
        value = _value(attribute)
        if self._seen and (value is None or any(value == other for _, other in self._seen) != self._is_match):
            return False
        if self._keeps_last:
            self.remove(request)
        self._seen.append((request.base, value))
        return True

    def remove(self, request: RequestShape) -> None:
        """Take the last device of a request back."""
        if not self._is_about(request):
            return
        if self._keeps_last:
            self._seen = [each for each in self._seen if each[0] != request.base]
        else:
            self._seen.pop()

    def _is_about(self, request: RequestShape) -> bool:
        wanted = self._requests
        return not wanted or request.base in wanted or request.full_name in wanted


def _value(attribute: DeviceAttribute) -> Value | None:
    """Return the typed value; None for one that is never equal to another."""
    typed = (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    )
    return next(((kind, value) for kind, value in typed if value is not None), None)


class CounterBook:
    """The counters of all pools during one search."""

    def __init__(self, book: DeviceClaims) -> None:
        self._book = book
        self._left: dict[PoolId, Counters] = {}
        self._beside: dict[tuple[PoolId, str], list[frozenset[str]]] = {}
        """What the devices that use a counter set say about beside whom they may be used."""

    def fits(self, pool: Pool, device: DeviceView) -> bool:
        """Return whether a device can be taken without overdrawing any counter of its pool."""
        left = self._left_in(pool)
        return all(amount >= device.consumes.get(counter, 0) for counter, amount in left.items())

    def is_compatible(self, pool: Pool, device: DeviceView) -> bool:
        """Return whether a device shares a group with all that use its counter sets; one of no group goes with such only."""
        self._left_in(pool)
        for counter_set, groups in device.compatible.items():
            beside = self._beside.get((pool.id, counter_set), ())
            if beside and (not groups.intersection(*beside) if groups else any(beside)):
                return False
        return True

    def take(self, pool: Pool, device: DeviceView) -> None:
        """Use what a device needs."""
        left = self._left_in(pool)
        for counter_set, groups in device.compatible.items():
            self._beside.setdefault((pool.id, counter_set), []).append(groups)
        for counter, amount in device.consumes.items():
            left[counter] -= amount

    def give_back(self, pool: Pool, device: DeviceView) -> None:
        """Return what a device used."""
        left = self._left_in(pool)
        for counter_set in device.compatible:
            self._beside[pool.id, counter_set].pop()
        for counter, amount in device.consumes.items():
            left[counter] += amount

    def _left_in(self, pool: Pool) -> Counters:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for device in (*pool.devices, *pool.elsewhere):
                if device.compatible and (device.id in self._book.exclusive or device.id in self._book.shares):
                    self.take(pool, device)
        return left
