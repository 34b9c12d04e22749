"""NodeResourcesFit: refuse nodes that cannot hold a pod's requests, and score the others by how full they would be.

The request of a pod (kube/api/requests) is the larger one of two: the sum over its containers, and its largest init container.
A pod-level request replaces it for the resources that it names, and overhead is added. A placed pod that is being resized
counts with the largest of its spec, its allocated and its actual resources, until the kubelet has finished. Filter compares
the request with what is free, for each resource:

    node: allocatable 4 cpu, requested 3    pod: 2 cpu    "Insufficient cpu", resolvable: an eviction may help
    node: allocatable 1 cpu                 pod: 2 cpu    the same text, not resolvable: too small even when empty

Score depends on the strategy (`shared/allocation`). Kept quirk: scoring counts 100m and 200Mi for a container without requests,
on the node and in the pod, and ignores pod-level requests.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from kubesched.kube.api import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass, Node, Pod, is_resize_deferred, requests
from kubesched.kube.values import wrapped
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import EPHEMERAL_STORAGE, Bools, GroupKey, Ints
from kubesched.scheduler.config import (
    CPU_AND_MEMORY,
    Args,
    FieldError,
    Gates,
    Go,
    Path,
    ResourceSpec,
    TypedString,
    UtilizationShapePoint,
    Wire,
    forbidden,
    invalid,
    not_supported,
    required,
    validate_label_key,
    validate_shape,
)
from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    DELETE,
    DEVICE_CLASS,
    NODE,
    POD,
    UPDATE,
    Action,
    Advice,
    CycleState,
    Handle,
    Input,
    NodeView,
    Plugin,
    PodView,
    PreFilterAnswer,
    Proposal,
    Reason,
    Refusal,
    Refused,
    Rejections,
    Snapshot,
    Status,
    Wakeup,
    on,
)
from kubesched.scheduler.plugins.node_resources_fit.shortage import advise_on_resources
from kubesched.scheduler.plugins.shared.allocation import Asked, Strategy, most_allocated
from kubesched.scheduler.plugins.shared.device_classes import ServedByDevices, delegated

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class RequestedToCapacityRatioParam(Wire, frozen=True, rename="camel"):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Wire, frozen=True, rename="camel"):
    """How nodes are scored. If a strategy is given, its type has no default."""

    type: Annotated[str, Go("v1.ScoringStrategyType", omit_empty=True)] = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def validate(self, path: Path) -> list[FieldError]:
        errors = []
        if self.type not in STRATEGIES:
            errors.append(not_supported(path.child("type"), TypedString(self.type), STRATEGIES))
        for at, resource in enumerate(self.resources):
            if not 0 < resource.weight <= 100:
                where = path.child("resources").index(at).child("weight")
                detail = f"resource weight of {resource.name} not in valid range (0, 100]"
                errors.append(invalid(where, resource.weight, detail))
        where, ratio = path.child("requestedToCapacityRatio"), self.requested_to_capacity_ratio
        if self.type == REQUESTED_TO_CAPACITY_RATIO and ratio is None:
            errors.append(required(where, "must be specified when type is RequestedToCapacityRatio"))
        elif self.type == REQUESTED_TO_CAPACITY_RATIO and ratio is not None:
            errors += validate_shape(ratio.shape, where.child("shape"))
        elif ratio is not None:
            errors.append(forbidden(where, "must be nil when type is not RequestedToCapacityRatio"))
        return errors


class NodeResourcesFitArgs(Args, frozen=True, rename="camel"):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None

    def defaulted(self, gates: Gates) -> NodeResourcesFitArgs:
        # The strategy is defaulted as a whole or not at all: `scoringStrategy: {}` has an empty type, which validation
        # refuses. Only resources and their weights (1) are filled in.
        strategy = self.scoring_strategy or ScoringStrategy(LEAST_ALLOCATED)
        resources = tuple(resource.with_weight() for resource in strategy.resources) or CPU_AND_MEMORY
        strategy = msgspec.structs.replace(strategy, resources=resources)
        return msgspec.structs.replace(self, scoring_strategy=strategy)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        for at, name in enumerate(self.ignored_resources):
            errors += validate_label_key(name, path.child("ignoredResources").index(at))
        for at, group in enumerate(self.ignored_resource_groups):
            where = path.child("ignoredResourceGroups").index(at)
            if "/" in group:
                errors.append(invalid(where, group, "resource group name can't contain '/'"))
            errors += validate_label_key(group, where)
        where = path.child("scoringStrategy")
        if self.scoring_strategy is None:
            errors.append(required(where, "ScoringStrategy field is required"))
        else:
            errors += self.scoring_strategy.validate(where)
        return errors


TOO_MANY_PODS = Reason("Too many pods")


class NodeResourcesFit(Plugin):
    Args = NodeResourcesFitArgs
    needs = (("filter", "pre_filter", 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'),)
    depends_on = (Input.POD_REQUIREMENTS, Input.POD_DEVICES, Input.NODE, Input.PODS_ON_NODE, DeviceClass)
    judges_size = True

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        assert args.scoring_strategy is not None
        self._delegates = handle.gates.is_enabled("DRAExtendedResource")
        self._devices = ServedByDevices(handle.objects, self._delegates)
        self._makes_room = handle.gates.is_enabled("InPlacePodVerticalScalingSchedulerPreemption")
        self._strategy = Strategy(args.scoring_strategy, self._devices)
        self._asked_key, self._usage_key = object(), object()

    def wakeups(self) -> tuple[Wakeup, ...]:
        """Return the events that may help. Resizes and device classes count behind their gates."""
        more = ADD | Action.NODE_ALLOCATABLE
        alike = not self._makes_room  # a deferred resize depends on the pod's node, which its template does not have
        declared = [on(POD, DELETE, "pod_went", by_template=alike)]
        if self.handle.gates.is_enabled("InPlacePodVerticalScaling"):
            declared.append(on(POD, Action.POD_SCALE_DOWN, "pod_shrank", by_template=alike))
        declared.append(on(NODE, more, "node_grew", by_template=alike, without_hints=more | ADMITTED_LATER))
        if self._makes_room:
            declared.append(on(POD, Action.POD_SCALE_UP, "pod_grew"))
        if self._delegates:
            declared.append(on(DEVICE_CLASS, ADD | UPDATE, "class_serves", by_template=True))
        return tuple(declared)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None

    def advise(self, refused: Refused) -> list[Advice]:
        return advise_on_resources(refused, TOO_MANY_PODS.text)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes with too many pods, and for each resource the nodes with too little free. A resource of which every
        node has enough costs one comparison of the lowest free amount."""
        cases: list[tuple[Bools, Reason]] = []
        if not nodes.n:
            return Rejections.none(nodes)
        count, allowed = nodes.pod_count, nodes.allowed_pods
        if kernels.lowest_difference(allowed, count) <= 0:
            cases.append((count >= allowed, TOO_MANY_PODS))
        # Kept order: pods first, then cpu, memory and ephemeral storage, then the others. All reasons of a node are
        # reported.
        for resource, amount in self._asked(pod):
            allocatable, requested = nodes.allocatable(resource), nodes.requested(resource)
            # The lowest free amount of all nodes in one pass, without a temporary column. In a cluster with room this
            # ends most resources.
            if kernels.lowest_difference(allocatable, requested) >= amount:
                continue
            short = allocatable - requested < amount
            name = nodes.templates.resources.values[resource]
            # On a node that does not offer the resource itself, DynamicResources decides about it.
            if self._devices.serves(resource, nodes.templates):
                short &= allocatable != 0
            # More than the node has altogether: no eviction helps, so the status is UnschedulableAndUnresolvable and
            # preemption leaves the node out.
            never = amount > allocatable
            for some, resolvable in ((short & ~never, True), (short & never, False)):
                if some.any():  # there are bits for 64 reasons only
                    cases.append((some, Reason(f"Insufficient {name}", resolvable=resolvable)))
        return Rejections.every(*cases) if cases else Rejections.none(nodes)

    def room_for(self, pod: PodView, nodes: Snapshot) -> Ints:
        """Return how many more pods like this one fit each node, by resources and number of pods."""
        #     free 5 cpu, the pod requests 2, one pod uses 2 of it once it is placed: (5 - 2) // 2 + 1 = 2 pods
        #
        # `each` is what the pod takes once it is placed, `amount` what the filter compares. They differ for a pod whose status
        # has a resize: the filter reads the spec alone.
        room: Ints = np.maximum(nodes.allowed_pods - nodes.pod_count, 0)
        used_by_one = dict(pod.template.usage)
        for resource, amount in self._asked(pod):
            left = nodes.allocatable(resource) - nodes.requested(resource)
            if each := used_by_one.get(resource, 0):
                room = np.minimum(room, (left - amount) // each + 1)
            room = np.where(left >= amount, room, 0)
        return room

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> Refusal:
        """Do the same for one node, with Go's wrapping subtraction."""
        # `filter` for one node, when there is only one to look at: a pod that names its node, or a row of the dry run.
        # Go's int64 wraps where Python's does not, hence `wrapped`.
        reasons: list[Reason] = []
        if node.free_pods <= 0:
            reasons.append(TOO_MANY_PODS)
        for resource, amount in self._asked(pod):
            offered, used = node.usage(resource)
            if amount > wrapped(offered - used):
                if offered == 0 and self._devices.serves(resource, pod.template.interners):
                    continue
                name = pod.template.interners.resources.values[resource]
                reasons.append(Reason(f"Insufficient {name}", resolvable=amount <= offered))
        return tuple(reasons) or None

    def _asked(self, pod: PodView) -> tuple[tuple[int, int], ...]:
        """Return (resource, amount) of the requests that count, native resources first; without ignored ones, and without
        amounts of zero or, after an overflow, below."""
        # Worked out once for each pod template, with a key of this plugin alone, because each profile may ignore other
        # resources. Numbers of resources are in the order cpu, memory, ephemeral storage, others, so sorting gives
        # kube-scheduler's order.
        asked: tuple[tuple[int, int], ...] = pod.template.remember(
            self._asked_key,
            lambda: tuple(
                sorted(
                    [
                        (resource, amount)
                        for resource, amount in pod.requests
                        if amount > 0 and (resource <= EPHEMERAL_STORAGE or not self._is_ignored(resource, pod))
                    ]
                )
            ),
        )
        return asked

    def _is_ignored(self, resource: int, pod: PodView) -> bool:
        # Only extended resources (`example.com/gpu`) can be ignored; a native one in the list has no effect.
        name = pod.template.interners.resources.values[resource]
        if not requests.is_extended_name(name):
            return False
        return name in self._ignored or name.split("/", 1)[0] in self._ignored_groups

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return self._strategy.columns(self._usage(pod), nodes)

    def score_placement(self, group: GroupKey, proposal: Proposal, nodes: Snapshot) -> int | Status:
        """Return how full the nodes of a placement would be together, whatever the strategy for single nodes."""
        # `None` for the placement without a topology constraint: all nodes.
        rows = proposal.placement.rows
        asked = [self._usage(pod) for pod, _ in proposal.assignments]
        return most_allocated(asked, nodes if rows is None else nodes.take(rows))

    def _usage(self, pod: PodView) -> Asked:
        asked: Asked = pod.template.remember(self._usage_key, lambda: self._strategy.read(pod))
        return asked

    # Queueing hints

    def pod_went(self, pod: PodView, old: Pod, new: Pod | None) -> bool:
        """Return whether the deleted pod had a node or a nominated node; for a deferred resize, whether it was the pod's
        node."""
        # The resize can only be made on the pod's own node, so pods of other nodes do not matter.
        if self._is_to_grow(pod):
            return old.spec.node_name == pod.node_name
        return bool(old.spec.node_name or old.status.nominated_node_name)

    def _is_to_grow(self, pod: PodView) -> bool:
        """Return whether the waiting pod has a node, and waits there for its deferred resize."""
        return self._makes_room and is_resize_deferred(pod.pod)

    def pod_grew(self, pod: PodView, old: Pod, new: Pod) -> bool:
        """Return whether a pod on the node of a deferred resize requests more now, the waiting pod included: it is tried
        again."""
        # Only of interest for a deferred resize: a pod with a larger request never makes room for another one.
        return self._is_to_grow(pod) and new.spec.node_name == pod.node_name

    def pod_shrank(self, pod: PodView, old: Pod, new: Pod) -> bool:
        """Return whether a placed pod requests less than before of a resource that the waiting pod requests."""
        # Two kinds of waiting pods. One with a deferred resize is helped by pods of its own node only. A pending pod is
        # helped by any node's pods, or by itself requesting less.
        if self._is_to_grow(pod):
            if new.spec.node_name != pod.node_name:
                return False
        elif new.metadata.uid == pod.uid:
            return True
        if not new.spec.node_name or not pod.template.interners.gates.in_place_resize:
            return False
        # `use_status`: what counts on the node is the largest of spec, allocated and actual resources, so a pod only
        # frees something once the kubelet has made the resize.
        names = pod.template.interners.resources.values
        whole_pod = pod.template.interners.gates.whole_pod_resize
        before = requests.amounts(requests.pod_requests(old, use_status=True, whole_pod=whole_pod))
        after = requests.amounts(requests.pod_requests(new, use_status=True, whole_pod=whole_pod))
        return any(amount > 0 and after.get(names[r], 0) < before.get(names[r], 0) for r, amount in pod.requests)

    def node_grew(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether the pod would fit the empty node, and the node has more than before of a resource that the pod
        requests, or allows more pods."""
        if self._is_to_grow(pod) and new.metadata.name != pod.node_name:
            return False
        # First whether the pod would fit the *empty* node: if not, nothing about the node helps. Then whether something
        # the pod needs has grown, or the node is new.
        names = pod.template.interners.resources.values
        wanted = {names[resource]: amount for resource, amount in pod.requests}
        offer = requests.node_allocatable(new)
        if offer.get("pods", 0) < 1:
            return False

        def is_served(name: str) -> bool:
            return self._delegates and not offer.get(name, 0) and delegated(name, self.handle.objects)

        if any(amount > offer.get(name, 0) and not is_served(name) for name, amount in wanted.items()):
            return False
        if old is None:
            return True
        before = requests.node_allocatable(old)
        if offer.get("pods", 0) > before.get("pods", 0):
            return True
        return any(offer.get(name, 0) > before.get(name, 0) or is_served(name) for name, amount in wanted.items() if amount > 0)

    def class_serves(self, pod: PodView, old: DeviceClass | None, new: DeviceClass) -> bool:
        """Return whether a device class newly serves an extended resource of the pod."""
        names = pod.template.interners.resources.values
        wanted = {names[resource] for resource, _ in pod.requests}
        if old is not None and old.spec.extended_resource_name == new.spec.extended_resource_name:
            return False
        if old is None and DEVICE_CLASS_RESOURCE_PREFIX + new.metadata.name in wanted:
            return True
        return bool(new.spec.extended_resource_name) and new.spec.extended_resource_name in wanted
