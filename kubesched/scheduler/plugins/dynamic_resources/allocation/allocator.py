"""The search for devices: depth first, in a fixed order, the first solution wins.

    claim 1: request a, 2 devices, with matchAttribute numa          devices in order: d0 (numa 0), d1 (numa 1), d2 (numa 1)
    claim 2: request b, 1 device
    a[0] = d0, a[1] = d1?  numa differs, no      a[1] = d2?  numa differs, no      so give d0 back and go on with
    a[0] = d1, a[1] = d2, b[0] = d0              solution: a gets d1 and d2, b gets d0

Claims are tried in the pod's order, requests in the claim's, alternatives (firstAvailable) in their list's, devices in the
group's. `_devices` picks device k of a request and calls itself for k + 1, then `_request` for the next request, which goes on
to the next claim. If the rest fails, the pick is given back and the next device is tried. The order is kube-scheduler's, so the
solution is the same. It depends on nothing else, so it can be cached (`outcomes`).

A pick must pass, in this order: not in use, selected by class and request, enough capacity, compatible and with counters left,
taints tolerated, constraints of the claim satisfied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from kubesched.kube.api import DeviceAttribute
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
"""The API allows no more devices for one claim."""
MAX_SUB_REQUESTS = 8
_SHALLOW = 500
_STEPS_PER_CLOCK_READ = 256


class TookTooLong(Exception):
    """The search did not end in time (filterTimeout)."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for a request. `shared` is what it takes of the capacities of a device that allows several allocations."""

    device: DeviceView
    request: RequestShape
    shared: tuple[Consumption, ...] | None = None
    counted_in: Pool | None = None
    """The pool whose counters the pick uses."""


Allocation = tuple[tuple[Pick, ...], ...]
"""A solution: the picks of each claim. Their requests tell which alternative of a list was taken."""


class _Found(Enum):
    YES = 1
    NO = 2
    TOO_MANY = 3
    """The claim would exceed MAX_RESULTS, so no other device helps."""


class Search:
    """One search, for all claims of a pod, on one group of nodes."""

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
        # State by claim is a list with an entry for each claim of the pod; `_take` adds to it and `_give_back` removes
        # the newest entry. A pick is undone exactly: whatever `_take` changes must be put back there, or the next
        # branch of the search starts wrong.
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._taken: list[set[DeviceId]] = [set() for _ in claims]
        """The devices that each claim has picked. A request with admin access may use devices that other claims hold, but
        within this search its picks are in use for the other requests."""
        self._shared: dict[DeviceId, list[tuple[Consumption, ...]]] = {}
        self._counters = CounterBook(book)
        self._constraints: list[list[Constraint]] = []
        self._all: dict[RequestShape, list[Candidate]] = {}
        """The devices of each request with allocationMode All."""

    def run(self) -> Allocation | None:
        """Return the first solution, or None if there is none; raise `AllocationError`, `TookTooLong` or `NoAllowance`."""
        if self._group.error is not None:
            raise AllocationError(self._group.error)
        deepest = sum(self._validate(claim) for claim in self._claims)
        if deepest > _SHALLOW:
            # Safe: calls from Python to Python do not use the C stack.
            sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + deepest))
        if self._claims and self._request(0, 0) is not _Found.YES:
            return None
        return tuple(map(tuple, self._picks))

    def _validate(self, claim: ClaimShape) -> int:
        """Raise if the claim cannot be searched for; return how deep the calls for it may go."""
        # The smallest alternative of each request counts: if even these are too many, nothing can fit. A claim that is
        # only too large with some alternatives is refused within the search (TOO_MANY), and other alternatives are
        # tried.
        least = sum(min(map(self._size, ways), default=0) for ways in claim.requests)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {{claim}}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}", claim.index
            )
        constraints = []
        for i, wanted in enumerate(claim.spec.devices.constraints):
            if wanted.match_attribute is not None:
                constraints.append(Constraint(wanted.requests, wanted.match_attribute, is_match=True))
            elif wanted.distinct_attribute is not None and self._features.consumable_capacity:
                keeps_last = not self._features.behaviour.compares_all_distinct
                constraints.append(
                    Constraint(wanted.requests, wanted.distinct_attribute, is_match=False, keeps_last=keeps_last)
                )
            else:
                text = f"claim {{claim}}, constraint #{i}: empty constraint (unsupported constraint type?)"
                raise AllocationError(text, claim.index)
        self._constraints.append(constraints)
        # `_devices` calls itself once for each pick and once more at the end of each request; `_request` comes once for
        # each. The bound need not be tight.
        return MAX_RESULTS + 3 * len(claim.requests) + 1

    def _size(self, request: RequestShape) -> int:
        """Return how many devices a request needs. For allocationMode All these are found here."""
        request.validate()
        if request.admin and not self._features.admin_access:
            raise request.error_of(": admin access is requested, but the feature is disabled")
        if request.derived and not self._features.derived_attributes:
            raise request.error_of(": cannot handle request with derived attributes, the feature is disabled")
        # Mode All: the number of devices is not in the claim. It is how many devices of usable pools the request
        # selects, taken or not. Kept quirk: one pool that is incomplete or invalid is an error for the whole node,
        # because the missing slices may have devices that would have to be taken. Older releases leave out devices
        # whose capacity is used up; newer ones count them, and then the search fails (`counts_full_devices_in_all`).
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

    def _request(self, c: int, r: int) -> _Found:
        """Find devices for request r of claim c and all requests and claims after it."""
        claim = self._claims[c]
        if r == len(claim.requests):
            if c + 1 == len(self._claims):
                return _Found.YES
            # TOO_MANY in a later claim does not mean that this claim has too many devices.
            return _Found.YES if self._request(c + 1, 0) is _Found.YES else _Found.NO
        # Alternatives in the order of the list; the first with which everything after it can be allocated is taken. A
        # request without alternatives is a list of one.
        always_too_many = True
        for request in claim.requests[r]:
            found = self._devices(c, r, request, 0, 0)
            if found is _Found.YES:
                return found
            always_too_many &= found is _Found.TOO_MANY
        return _Found.TOO_MANY if always_too_many else _Found.NO

    def _devices(self, c: int, r: int, request: RequestShape, k: int, start: int) -> _Found:
        """Find device k of a request and everything after it, among the candidates from `start` on.

        The devices of a request are picked in rising order, so each set of devices is tried once.
        """
        self._steps += 1
        if self._is_late is not None and self._steps % _STEPS_PER_CLOCK_READ == 0 and self._is_late():
            raise TookTooLong
        # None for ExactCount; for mode All the devices that must be taken, in the order of the group. Mode All with no
        # device does not succeed with nothing: it is refused.
        wanted = self._all.get(request)
        if wanted is not None and not wanted:
            return _Found.NO
        needed = request.count if wanted is None else len(wanted)
        if k >= needed:
            return self._request(c, r + 1)
        if len(self._picks[c]) + needed - k > MAX_RESULTS:
            return _Found.TOO_MANY
        if wanted is not None:  # allocationMode All: each device must be taken
            if not self._take(c, request, wanted[k], must=True):
                return _Found.NO
            found = self._devices(c, r, request, k + 1, 0)
            if found is not _Found.YES:
                self._give_back(c)
            return found
        # CEL (`_is_selectable`) is evaluated once for each set of device facts, so it costs little after the first time. If the
        # rest of the search fails, the pick is given back and the loop goes on with the next device: this is the
        # backtracking of the example above.
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
            # The number of devices does not depend on which device it is, so no other one can help: without this the
            # search would try all combinations before it fails.
            if found is _Found.TOO_MANY:
                return found
        return _Found.NO

    # One device

    def _is_in_use(self, c: int, request: RequestShape, device: DeviceView) -> bool:
        if device.id in self._taken[c]:
            return True
        # Admin access looks at a device beside its users, so devices that others hold are free for it. It never books
        # them either: `DeviceClaims` leaves these results out.
        if request.admin:
            return False
        if device.id in self._book.exclusive or any(device.id in taken for taken in self._taken):
            return True
        # With the gate off, a device that has been allocated in shares counts as taken as a whole.
        return not self._features.consumable_capacity and device.id in self._book.shares

    def _is_selectable(self, request: RequestShape, candidate: Candidate) -> bool:
        device = candidate.device
        if device.binding_conditions and not self._features.binding_conditions:
            return False
        return request.selects(device, self._allowance) and candidate.is_reachable

    def _has_room(self, request: RequestShape, device: DeviceView, *, if_empty: bool = False) -> bool:
        """Return whether each capacity of the device has enough left for the request, after what other claims and this search
        consume; with `if_empty`, whether it would be enough if nothing was consumed."""
        if not self._features.consumable_capacity:
            return True
        taken = request.consumption(device)
        if taken is None:
            return False
        before = self._book.consumed.get(device.id) if not if_empty else None
        now = self._shared.get(device.id) if not if_empty else None
        #     capacity memory 40Gi: other claims 20Gi, earlier picks of this search 10Gi, this request 15Gi
        #     20 + 10 + 15 = 45, more than 40: no room
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
        """Pick a device for a request if all checks pass. `must`: a violated constraint is an error (allocationMode All)."""
        # Two parts: first all checks, of which only `constraint.add` changes something and is undone on failure; then the
        # changes, which `_give_back` undoes.
        device, pool = candidate.device, candidate.pool
        features, constraints = self._features, self._constraints[c]
        is_shared = device.allow_multiple and features.consumable_capacity
        if self._is_in_use(c, request, device):
            return False
        if device.compatible and not features.partitionable_devices:
            return False
        if device.skip_operations and not (features.optional_node_operations and self._group.skips_operations):
            return False
        # A shared device uses its counters once, with its first share.
        is_counted_already = is_shared and (device.id in self._book.shares or device.id in self._shared)
        counts = bool(device.compatible) and not is_counted_already
        if counts and features.compatibility_groups and not self._counters.is_compatible(pool, device):
            return False
        if counts and not self._counters.fits(pool, device):
            return False
        if features.device_taints and device.taints and not request.tolerates(device.taints):
            return False
        for i, constraint in enumerate(constraints):
            attribute = request.attribute(constraint.attribute, device, self._allowance)
            if not constraint.add(request, attribute):
                for added in constraints[:i]:
                    added.remove(request)
                if must:
                    text = f": cannot add device {device.id} because a claim constraint would not be satisfied"
                    raise request.error_of(text)
                return False
        # Again, because for mode All `_size` has judged each device alone, before the picks of this search consumed
        # anything.
        if not self._has_room(request, device):
            for constraint in constraints:
                constraint.remove(request)
            return False
        if counts:
            self._counters.take(pool, device)
        # A shared device stays available: it gets one more share and does not count as taken.
        share = None
        if is_shared:
            share = request.consumption(device) or ()
            self._shared.setdefault(device.id, []).append(share)
        else:
            self._taken[c].add(device.id)
        self._picks[c].append(Pick(device, request, share, pool if counts else None))
        return True

    def _give_back(self, c: int) -> None:
        """Undo the last pick of a claim."""
        pick = self._picks[c].pop()
        for constraint in self._constraints[c]:
            constraint.remove(pick.request)
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


class Constraint:
    """A constraint of a claim during one search: the devices have equal values of an attribute, or all different ones.

    `keeps_last`, as before 1.37: distinctAttribute compares only with the last device of each request, so values may repeat
    within a request.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str, *, is_match: bool, keeps_last: bool = False) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)
        self._is_match = is_match
        self._keeps_last = keeps_last
        self._seen: list[tuple[str, tuple[str, object] | None]] = []
        """(request, typed value) of each pick; the value is None for one that is equal to no other."""

    def add(self, request: RequestShape, attribute: DeviceAttribute | None) -> bool:
        """Add a device with its value of the attribute; return False if it violates the constraint."""
        if not self._is_about(request):
            return True
        # A device without the attribute satisfies neither matchAttribute nor distinctAttribute.
        if attribute is None:
            return False
        typed = (
            ("string", attribute.string_value),
            ("int", attribute.int_value),
            ("bool", attribute.bool_value),
            ("version", attribute.version_value),
        )
        value = next(((kind, value) for kind, value in typed if value is not None), None)
        # matchAttribute: equal to one seen before means equal to all of them, because they are equal to each other.
        # distinctAttribute: equal to any of them is a violation. A value of an unknown type (None) is equal to nothing,
        # so it is fine only as the first one.
        if self._seen and (value is None or any(value == other for _, other in self._seen) != self._is_match):
            return False
        if self._keeps_last:
            self.remove(request)
        self._seen.append((request.base, value))
        return True

    def remove(self, request: RequestShape) -> None:
        """Remove the last device of a request. Picks are undone in reverse order, so it is the last one of all."""
        if not self._is_about(request):
            return
        if self._keeps_last:
            self._seen = [each for each in self._seen if each[0] != request.base]
        else:
            self._seen.pop()

    def _is_about(self, request: RequestShape) -> bool:
        wanted = self._requests
        return not wanted or request.base in wanted or request.full_name in wanted


class CounterBook:
    """The shared counters of partitionable devices during one search.

    A pool declares counters, and each device consumes some: of a GPU with counter memory 40, two halves consume 20 each, and
    the whole GPU 40. What is left is what the pool declares, less what its allocated devices consume, also those that this node
    cannot reach. Kept quirk: every pick compares all counters of the pool, so a pool with a negative counter gives no device at
    all.
    """

    def __init__(self, book: DeviceClaims) -> None:
        self._book = book
        self._left: dict[PoolId, Counters] = {}
        self._beside: dict[tuple[PoolId, str], list[frozenset[str]]] = {}
        """By pool and counter set, the compatibility groups of each device in use."""

    def fits(self, pool: Pool, device: DeviceView) -> bool:
        """Return whether no counter of the pool becomes negative with the device."""
        left = self._left_in(pool)
        return all(amount >= device.consumes.get(counter, 0) for counter, amount in left.items())

    def is_compatible(self, pool: Pool, device: DeviceView) -> bool:
        """Return whether the device has a compatibility group in common with all devices in use of its counter sets. A device
        without groups is compatible with devices without groups only."""
        self._left_in(pool)
        #     in use: d1 {a, b}, d2 {b}      d3 {b, c}: has b in common with both, fits      d4 {a}: not with d2, refused
        for counter_set, groups in device.compatible.items():
            beside = self._beside.get((pool.id, counter_set), ())
            if beside and (not groups.intersection(*beside) if groups else any(beside)):
                return False
        return True

    def take(self, pool: Pool, device: DeviceView) -> None:
        """Subtract what a device consumes."""
        left = self._left_in(pool)
        for counter_set, groups in device.compatible.items():
            self._beside.setdefault((pool.id, counter_set), []).append(groups)
        for counter, amount in device.consumes.items():
            left[counter] -= amount

    def give_back(self, pool: Pool, device: DeviceView) -> None:
        """Add it again."""
        left = self._left_in(pool)
        for counter_set in device.compatible:
            self._beside[pool.id, counter_set].pop()
        for counter, amount in device.consumes.items():
            left[counter] += amount

    def _left_in(self, pool: Pool) -> Counters:
        # Made when the first device of the pool is tried, and changed with each pick. `elsewhere` has the devices of
        # other nodes: a pool of network cards for a rack may have counters for all its nodes together.
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for device in (*pool.devices, *pool.elsewhere):
                if device.compatible and (device.id in self._book.exclusive or device.id in self._book.shares):
                    self.take(pool, device)
        return left
