"""Claims as the search reads them: requests with device class, selectors, mode, and what they consume of a device.

The shape of a claim follows from its spec alone, so claims with equal specs share the cached outcome of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceAttribute,
    DeviceClass,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    Quantity,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.kube.cel import Allowance, CelError, CompileError, DeviceFacts, derive, holds
from kubesched.kube.values import QuantityError, go_quote, quantity
from kubesched.scheduler.cluster import Objects
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import Capacity, DeviceView
from kubesched.scheduler.plugins.dynamic_resources.args import Features

EXACT_COUNT = "ExactCount"
ALL = "All"

_encode = msgspec.json.Encoder().encode


class AllocationError(Exception):
    """The search ended with an error. `claim` is the index of the claim with the error, -1 for none: names are filled in later,
    so that a cached error serves claims of other names."""

    def __init__(self, text: str, claim: int = -1) -> None:
        super().__init__(text)
        self.text = text
        self.claim = claim

    def message(self, claims: Sequence[ResourceClaim]) -> str:
        """Return the text with the claim's name."""
        if self.claim < 0:
            return self.text
        claim = claims[self.claim]
        return self.text.replace("{claim}", claim.key).replace("{name}", claim.name)


_OPTIONAL_CHAINING = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
)


class RequestShape:
    """One request, or one subrequest of a firstAvailable list (`parent` is the request then)."""

    def __init__(
        self,
        claim: int,
        name: str,
        parent: str,
        way: int,
        wanted: ExactDeviceRequest | DeviceSubRequest,
        device_class: DeviceClass | None,
        features: Features,
    ) -> None:
        self._features = features
        self.claim = claim
        self.name = name
        self.parent = parent
        self.way = way
        """The index among the subrequests of its parent."""
        self.class_name = wanted.device_class_name
        self.device_class = device_class
        self.selectors = wanted.selectors
        self.mode = wanted.allocation_mode
        self.count = wanted.count
        self.admin = bool(wanted.admin_access) if isinstance(wanted, ExactDeviceRequest) else False
        self.tolerations = wanted.tolerations
        self.derived = {derived.name: derived.expression for derived in wanted.derived_attributes}
        self.capacity: Mapping[str, Quantity] = wanted.capacity.requests if wanted.capacity is not None else {}
        # Both caches live as long as the shape, which is as long as the outcomes of these specs are cached. They are by
        # facts, not by device, so they stay small and survive a new version of a slice.
        self._matches: dict[DeviceFacts, bool] = {}
        self._consumption: dict[DeviceFacts, tuple[Consumption, ...] | None] = {}

    @property
    def base(self) -> str:
        """Return the name of the request, for a subrequest that of its parent."""
        return self.parent or self.name

    @property
    def full_name(self) -> str:
        """Return the name in allocation results: `request` or `request/subrequest`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    def error_of(self, text: str) -> AllocationError:
        """Return an error about this request; `text` follows its name."""
        # {claim} is a place holder: the shape is cached and serves claims of other names (`AllocationError.message`).
        return AllocationError(f"claim {{claim}}, request {self.name}{text}", self.claim)

    def validate(self) -> None:
        """Raise if the request is of an unknown kind or its device class does not exist."""
        for i, selector in enumerate(self.selectors):
            if selector.cel is None:
                raise self.error_of(f", selector #{i}: CEL expression empty (unsupported selector type?)")
        if not self.class_name:
            raise self.error_of(": missing device class name (unsupported request type?)")
        if self.device_class is None:
            name = self.class_name
            raise self.error_of(f': could not retrieve device class {name}: deviceclass.resource.k8s.io "{name}" not found')

    def selects(self, device: DeviceView, allowance: Allowance | None = None) -> bool:
        """Return whether the CEL selectors of class and request hold for a device; raise `NoAllowance` if the time for CEL is
        used up. Devices with equal facts share the answer."""
        # Devices that differ in nothing that CEL can read share their facts, so a class over thousands of equal GPUs is
        # evaluated once.
        matches = self._matches.get(device.facts)
        if matches is None:
            matches = self._matches[device.facts] = self._evaluate(device, allowance)
        return matches

    def _evaluate(self, device: DeviceView, allowance: Allowance | None) -> bool:
        """Evaluate the selectors of the class, then those of the request. An error names the class or claim, the selector and
        since 1.37 the device."""
        # Kept order: the class first. A device that the class excludes never meets the claim's selectors, whose errors
        # would otherwise fail the node.
        assert self.device_class is not None
        sources = ((f"class {self.class_name}", self.device_class.spec.selectors), ("claim {claim}", self.selectors))
        for source, selectors in sources:
            for i, selector in enumerate(selectors):
                expression = selector.cel.expression if selector.cel is not None else ""
                try:
                    if not holds(expression, device.facts, allowance):
                        return False
                except CelError as error:
                    where = f"{source}: selector #{i}"
                    if isinstance(error, CompileError):
                        raise AllocationError(f"{where}: CEL compile error: {error}", self.claim) from None
                    text = str(error)
                    if self._features.behaviour.names_device_in_cel_errors:
                        where += f" on device {device.id}"
                        text += _OPTIONAL_CHAINING if "no such key:" in text else ""
                    raise AllocationError(f"{where}: CEL runtime error: {text}", self.claim) from None
        return True

    def attribute(self, name: str, device: DeviceView, allowance: Allowance | None = None) -> DeviceAttribute | None:
        """Return an attribute of a device: derived by the request's expression if it has one, else as published."""
        expression = self.derived.get(name)
        if expression is None:
            return device.attribute(name)
        try:
            return derive(expression, device.facts, allowance)
        except CompileError as error:
            raise self.error_of(f": compile derived attribute {name} failed: {error}") from None
        except CelError as error:
            raise self.error_of(f": evaluate derived attribute {name} on device {device.id} failed: {error}") from None

    def consumption(self, device: DeviceView) -> tuple[Consumption, ...] | None:
        """Return what the request consumes of the device's capacities; None if the device cannot serve it."""
        try:
            return self._consumption[device.facts]
        except KeyError:
            try:
                found = self._consumption[device.facts] = consumption(device, self.capacity, self._features)
            except QuantityError as error:
                raise self.error_of(f": capacity on device {device.id}: {error}") from None
            except CapacityError as error:
                raise self.error_of(f": checking capacity for device {device.id}: {error}") from None
            return found

    def tolerates(self, taints: tuple[DeviceTaint, ...]) -> bool:
        """Return whether the request tolerates all of these taints."""
        return all(any(_tolerates(toleration, taint) for toleration in self.tolerations) for taint in taints)


class ClaimShape:
    """One claim. `requests` has for each request its alternatives: one for `exactly`, several for `firstAvailable`."""

    def __init__(self, index: int, spec: ResourceClaimSpec, objects: Objects, features: Features) -> None:
        self.index = index
        self.spec = spec

        def shape(wanted: ExactDeviceRequest | DeviceSubRequest, name: str, parent: str = "", way: int = 0) -> RequestShape:
            device_class = objects.get(DeviceClass, wanted.device_class_name)
            return RequestShape(index, name, parent, way, wanted, device_class, features)

        self.requests = tuple(
            (shape(request.exactly, request.name),)
            if request.exactly is not None
            else tuple(shape(sub, sub.name, request.name, way) for way, sub in enumerate(request.first_available))
            for request in spec.devices.requests
        )


def signature(claims: Sequence[ResourceClaim]) -> bytes:
    """Return the key of a cached outcome: the specs of the claims."""
    return b"\0".join(_encode(claim.spec) for claim in claims)


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


_MILLI = quantity.NANO // 1000
_MAX_INT64 = (1 << 63) - 1


# Consumable capacity. A device that allows several allocations has capacities, and each request consumes a part. The device's
# policy may allow only certain amounts; then the request is rounded up to the next one:
#
#     capacity memory 40Gi, validRange min 2Gi, step 4Gi      request 7Gi  ->  2Gi + 2 * 4Gi = 10Gi
#     no request for a capacity: the policy's default, or the whole capacity if there is none
#
# Amounts are in nano units. Ranges count in whole units, or in thousandths with DRAFractionalCapacityRange.


class CapacityError(SchedulerError):
    """A request cannot be rounded to an amount that the policy allows."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """What one request consumes of one capacity; `limit` is the whole capacity."""

    name: str
    amount: int
    text: str
    limit: int


def consumption(device: DeviceView, asked: Mapping[str, Quantity], features: Features) -> tuple[Consumption, ...] | None:
    """Return what a request consumes of every capacity of a device; None if the device cannot serve it.

    Raise `CapacityError` for an amount that cannot be rounded within the policy.
    """
    # A request for a capacity that the device does not have is no error; the device just cannot serve it.
    names = {capacity.name for capacity in device.capacities}
    if any(name not in names for name in asked):
        return None
    taken = []
    for capacity in device.capacities:
        amount, text = _rounded(asked.get(capacity.name), capacity, features)
        if features.behaviour.refuses_unrepresentable_capacity and amount < 0:
            raise CapacityError(f"capacity {go_quote(capacity.name)}: capacity value is negative")
        taken.append(Consumption(capacity.name, amount, text, capacity.value))
    # After rounding all capacities, so that an error of any of them comes before a refusal by any of them, as in
    # kube-scheduler.
    for capacity, consumed in zip(device.capacities, taken, strict=True):
        if capacity.policy is not None and _violates(consumed.amount, capacity.policy, features):
            return None
    return tuple(taken)


def _rounded(asked: Quantity | None, capacity: Capacity, features: Features) -> tuple[int, str]:
    """Return the amount that a request consumes of a capacity, as a number and as text."""
    policy = capacity.policy
    if asked is None:
        return _read(policy.default if policy is not None and policy.default is not None else capacity.text)
    if policy is None:
        return _read(asked)
    wanted, span = quantity.parse(asked), policy.valid_range
    # A list of valid values: the lowest that is enough. If none is, the request stays as it is, and `_violates` refuses
    # it.
    if span is None or span.min is None:
        return _read(next((allowed for allowed in policy.valid_values if quantity.parse(allowed) >= wanted), asked))
    least = quantity.parse(span.min)
    if wanted < least:
        return _read(span.min)
    unit = _unit(span, features)
    step = _count(span.step, unit)
    if span.step is None or step <= 0:
        return _read(asked)
    #     min 2, step 4, request 7:   steps above min = ceil((7 - 2) / 4) = 2   ->   2 + 2 * 4 = 10
    # Written with -(-a // b), which rounds up where // rounds down.
    start = _count(span.min, unit)
    count = start + step * -(-(_count(asked, unit) - start) // step)
    is_strict = features.behaviour.refuses_unrepresentable_capacity
    if is_strict:
        if wanted % unit and unit == _MILLI:
            raise _unrepresentable(capacity, f"request {quantity.canonical(asked)} is not a representable milli value")
        if wanted > _MAX_INT64 * unit or count > _MAX_INT64:
            raise _unrepresentable(capacity, f"request {quantity.canonical(asked)} exceeds MaxInt64")
    style = quantity.style_of(span.step) if is_strict else quantity.BINARY_SI
    return count * unit, quantity.format_quantity(count * unit, style)


def _unit(span: CapacityRequestPolicyRange, features: Features) -> int:
    """Return the unit in which a range counts: thousandths if all its bounds are whole thousandths, else whole units."""
    bounds = [quantity.parse(bound) for bound in (span.min, span.max, span.step) if bound is not None]
    if not features.fractional_capacity or any(bound % _MILLI or abs(bound) > _MAX_INT64 * _MILLI for bound in bounds):
        return quantity.NANO
    return _MILLI if span.step is None or quantity.parse(span.step) >= _MILLI else quantity.NANO


def _count(amount: Quantity | None, unit: int) -> int:
    """Return an amount in units, rounded up; 0 for None."""
    return -(-quantity.parse(amount) // unit) if amount is not None else 0


def _unrepresentable(capacity: Capacity, why: str) -> CapacityError:
    text = "capacity request cannot be represented in the device's range arithmetic"
    return CapacityError(f"capacity {go_quote(capacity.name)}: {text}: {why}")


def _read(text: Quantity) -> tuple[int, str]:
    return quantity.parse(text), quantity.canonical(text)


def _violates(amount: int, policy: CapacityRequestPolicy, features: Features) -> bool:
    """Return whether a policy forbids an amount after rounding: above the maximum, or not on a step."""
    # Kept quirk: the default passes even if it is not on a step or above the maximum.
    if policy.default is not None and amount == quantity.parse(policy.default):
        return False
    span = policy.valid_range
    if span is None:
        return bool(policy.valid_values) and all(amount != quantity.parse(allowed) for allowed in policy.valid_values)
    if span.max is not None and amount > quantity.parse(span.max):
        return True
    unit = _unit(span, features)
    step = _count(span.step, unit)
    if step <= 0:
        return False
    if unit == _MILLI and amount % _MILLI:
        return True
    return (-(-amount // unit) - _count(span.min, unit)) % step != 0
