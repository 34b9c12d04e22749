"""Pods boiled down to numbers, once per template.

In: API pods. Out: `PodView`, a thin handle on one pod, and the `PodTemplate` it shares with every pod that looks the
same to the scheduler: replicas of one Deployment differ in name and uid, which no plugin reads. What is expensive
(summing requests, parsing affinity) is done when a template is first seen.

A template's signature leaves out three things on purpose: the node, which is the answer and not the question; claims
for volumes and devices, which differ between the replicas of a StatefulSet and are read only by plugins whose answers
are never remembered; and the status, except for the parts that in-place resizing makes count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from kubesched.kube.api import Pod, PodSpec, Taint, Toleration, matching, requests
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster.intern import Interned, WeakInterner

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")

Amounts = tuple[tuple[int, int], ...]
"""(resource id, amount) pairs: cpu in thousandths, everything else in whole units."""

_encode = msgspec.json.Encoder().encode


class ResourceName(Interned):
    """A resource that a pod asks for or a node offers."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class Resources(WeakInterner[str, ResourceName]):
    """Resources by number: those that a pod or a node speaks of, and those that are known for good."""

    __slots__ = ("_kept", "values")

    def __init__(self) -> None:
        super().__init__(reserved=0)
        self.values: list[str] = []
        """Their names; empty where a number is free."""
        self._kept: dict[str, ResourceName] = {}
        for name in NATIVE_RESOURCES:
            self.id(name)

    def of(self, name: str) -> ResourceName:
        """Return a resource, for whoever will keep it."""
        found = self.intern(name, lambda: ResourceName(name))
        if found.number == len(self.values):
            self.values.append(name)
        else:
            self.values[found.number] = name
        return found

    def id(self, name: str) -> int:
        """Return the number of a resource that the configuration speaks of: it is known for good from now on."""
        return self._kept.setdefault(name, self.of(name)).number

    def by_name(self) -> dict[str, int]:
        """Return the number of every resource."""
        return {name: known.number for name, known in self._by_key.items()}

    def _drop(self, known: Any) -> None:
        super()._drop(known)
        self.values[known.number] = ""


class LabelClass(Interned):
    """Pods of equal namespace and labels; a selector is evaluated once for all of them."""

    __slots__ = ("labels", "namespace", "terminating")

    def __init__(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> None:
        super().__init__()
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating


NOBODY = LabelClass("", {}, True)
"""Class 0: slots of the pod table that hold no pod."""


class AffinityGroup(Interned):
    """Pods of equal namespace and inter-pod affinity, and what they say about other pods."""

    __slots__ = ("terms",)

    def __init__(self, terms: matching.PodAffinityTerms) -> None:
        super().__init__()
        self.terms = terms

    @property
    def selects_namespaces(self) -> bool:
        """Return whether a term is about namespaces by their labels, other than all or none of them."""
        return any(term.ns_selector.requirements for term in self.terms.every_term)


NO_AFFINITY = AffinityGroup(matching.PodAffinityTerms())
"""Group 0: pods that say nothing."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The feature gates that change how pods and nodes are read; everything else asks the configuration."""

    pod_level_resources: bool = True
    in_place_resize: bool = True
    in_place_pod_level_resize: bool = True
    node_allocatable_claims: bool = False
    toleration_comparison: bool = False
    whole_pod_resize: bool = True
    """Not a gate, but since 1.37: sums over the whole pod are compared while it is being resized."""


class PodResources:
    """What pods ask for, in the several ways in which it is read; the same for all templates of equal containers."""

    def __init__(self, pod: Pod, interners: Templates) -> None:
        self._sample = pod
        self._interners = interners
        self._used = self._requests(use_status=True)
        self._used_amounts = requests.amounts(self._used)
        self._named: list[ResourceName] = []
        """The resources that it speaks of: these have a number for as long as it is there."""
        self.usage = self._by_number(self._used_amounts)
        gates = interners.gates
        self.non_zero_cpu, self.non_zero_memory = requests.non_zero_requests(
            pod,
            pod_level=gates.pod_level_resources,
            use_status=gates.in_place_resize,
            in_place_pod_level=gates.in_place_pod_level_resize,
            claim_resources=gates.node_allocatable_claims,
            whole_pod=gates.whole_pod_resize,
        )
        status = pod.status
        is_resized = status.container_statuses or status.init_container_statuses or status.resources is not None
        is_plain = not (is_resized or status.conditions or gates.node_allocatable_claims)
        """Whether the pod's status says nothing about what it uses: then the spec alone counts in every reading."""
        self._drift = _drift(pod.spec) if gates.pod_level_resources else {}
        self.requested = self.usage
        """What the pod asks for when it is placed: the spec alone counts."""
        if not is_plain:
            self.requested = self._by_number(requests.amounts(self._requests(use_status=False)))
        self.asks_for_scalars = any(resource > EPHEMERAL_STORAGE for resource, _ in self.requested)
        """Whether the pod asks for anything beyond cpu, memory and ephemeral storage."""
        self.scored = self._used_amounts
        """What NodeResourcesFit scores with: a container without a request counts as 100m and 200Mi, and pod-level requests are
        not looked at (a quirk of the reference)."""
        if not (is_plain and requests.asks_for_all(pod, requests.NON_ZERO_DEFAULTS)):
            with_defaults = self._requests(use_status=False, non_missing=requests.NON_ZERO_DEFAULTS, pod_level=False)
            self.scored = requests.amounts(with_defaults)

    def _by_number(self, by_name: Mapping[str, int]) -> Amounts:
        """Return amounts by resource number; entries of zero stay, as a scalar asked for with zero counts as asked."""
        names = [self._interners.resources.of(name) for name in by_name]
        self._named += names
        return tuple((name.number, amount) for name, amount in zip(names, by_name.values(), strict=True))

    def _requests(
        self, *, use_status: bool, non_missing: Mapping[str, int] | None = None, pod_level: bool | None = None
    ) -> dict[str, int]:
        gates = self._interners.gates
        return requests.pod_requests(
            self._sample,
            use_status=use_status and gates.in_place_resize,
            pod_level=gates.pod_level_resources if pod_level is None else pod_level,
            non_missing=non_missing,
            in_place_pod_level=gates.in_place_pod_level_resize,
            claim_resources=use_status and gates.node_allocatable_claims,
            whole_pod=gates.whole_pod_resize,
        )

    def balanced(self, names: tuple[str, ...]) -> dict[str, int]:
        """Return what NodeResourcesBalancedAllocation scores with: plain requests, resized ones included."""
        if not self._drift:
            return {name: self._used_amounts.get(name, 0) for name in names}
        return {name: requests.amounts(self._read_again(self._used, 2 + nth)).get(name, 0) for nth, name in enumerate(names)}

    def _read_again(self, asked: dict[str, int], times: int) -> dict[str, int]:
        """Return requests as the reference finds them after it has read them so many times before.

        Reading adds the overhead to a pod-level quantity; where that is kept as an arbitrary-precision number, the
        reference adds it in place, so that each reading is larger by one overhead than the one before. A pod is read
        by NodeResourcesFit, by DynamicResources, then once for each resource of the balance. (An API server writes such
        quantities back in a form that is not affected.)
        """
        if not self._drift:
            return asked
        return {name: amount + times * self._drift.get(name, 0) for name, amount in asked.items()}


def _drift(spec: PodSpec) -> dict[str, int]:
    """Return by how much more of each resource the reference finds whenever it reads a pod's requests once more."""
    if not spec.overhead or spec.resources is None:
        return {}
    return {
        name: quantity.parse(spec.overhead[name])
        for name, text in spec.resources.requests.items()
        if name in spec.overhead and quantity.is_wide(text) and requests.is_pod_level_name(name)
    }


class PodTemplate(Interned):
    """What all pods of one signature have in common."""

    def __init__(self, pod: Pod, signature: bytes, interners: Templates) -> None:
        super().__init__()
        self.signature = signature
        self.interners = interners
        self.namespace = pod.metadata.namespace
        self.labels: Mapping[str, str] = pod.metadata.labels or {}
        self.sample = pod
        self.priority = pod.spec.priority or 0
        self.label_class = interners.label_classes.of(
            self.namespace, self.labels, terminating=pod.metadata.deletion_timestamp is not None
        )
        self.class_id = self.label_class.number
        self.affinity_group = interners.affinity_groups.of(pod)
        self.ports = tuple(dict.fromkeys(requests.host_ports(pod)))  # a sidecar may name a container's port once more
        self.resources = interners.pod_resources(pod)
        self.usage = self.resources.usage
        self.non_zero_cpu, self.non_zero_memory = self.resources.non_zero_cpu, self.resources.non_zero_memory
        self.asking = sign_asking(pod)
        """The signature of what the pod asks of a node: a part of its own signature."""
        affinity = pod.spec.affinity
        wanted = affinity.node_affinity if affinity is not None else None
        required = wanted.required if wanted is not None else None
        self.named_nodes = matching.named_nodes(required) if required is not None else None
        """The only nodes that the required node affinity leaves, by name; None where not every term names nodes."""
        self.wants_named_alone = required is not None and not pod.spec.node_selector and matching.is_names_alone(required)
        """Whether these names are all that the pod demands of its node, so that nothing has to be compiled to tell."""
        self.node_constraints = _sign_node_constraints(pod, self.ports) if self.named_nodes is None else b""
        """The signature of what of the asking is neither a resource nor an image; empty where the pod names its nodes: nothing
        is kept for it."""
        self.remembered: dict[Any, Any] = {}

    @property
    def requested(self) -> Amounts:
        """Return what the pod asks for when it is placed: the spec alone counts."""
        return self.resources.requested

    @property
    def required_node_affinity(self) -> matching.RequiredNodeAffinity:
        """Return the node selector and the required node affinity, parsed."""
        found: matching.RequiredNodeAffinity = self.remember(
            "required_node_affinity", lambda: matching.compile_required_node_affinity(self.sample)
        )
        return found

    @property
    def affinity(self) -> matching.PodAffinityTerms:
        """Return the parsed inter-pod affinity."""
        return self.affinity_group.terms

    def remember(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` returned the first time for this key: a plugin's reading of the pod's spec, not None."""
        # To catch what is missing would take longer, and every pod may be the first of its kind.
        found = self.remembered.get(key)
        if found is None:
            found = self.remembered[key] = make()
        return found


class PodView:
    """One pod as the scheduler sees it. Shared by the queue, the cycle and the store."""

    __slots__ = ("key", "node_name", "pod", "slot", "template", "uid")

    def __init__(self, pod: Pod, template: PodTemplate, key: str = "") -> None:
        self.pod = pod
        self.template = template
        self.uid = pod.metadata.uid
        self.key = key or f"{pod.metadata.namespace}/{pod.metadata.name}"
        self.node_name = pod.spec.node_name or ""
        self.slot = -1

    def __repr__(self) -> str:
        return f"PodView({self.key}{' on ' + self.node_name if self.node_name else ''})"

    @property
    def name(self) -> str:
        """Return the pod's name without its namespace."""
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        """Return the pod's namespace."""
        return self.template.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the pod's labels, never None."""
        return self.template.labels

    @property
    def priority(self) -> int:
        """Return the pod's priority; none means zero."""
        return self.template.priority

    @property
    def requests(self) -> Amounts:
        """Return what the pod asks for, as (resource id, amount)."""
        return self.template.resources.requested

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """Return the pod's tolerations."""
        return self.pod.spec.tolerations

    def tolerates(self, taint: Taint) -> bool:
        """Return whether any toleration of the pod covers the taint."""
        compare = self.template.interners.gates.toleration_comparison
        return any(matching.tolerates(t, taint, comparison_operators=compare) for t in self.pod.spec.tolerations)

    def on(self, node_name: str) -> PodView:
        """Return the same pod as it will be on a node; what was computed for it comes along."""
        spec = msgspec.structs.replace(self.pod.spec, node_name=node_name)
        return PodView(msgspec.structs.replace(self.pod, spec=spec), self.template, self.key)


class LabelClasses(WeakInterner[tuple[str, frozenset[tuple[str, str]], bool], LabelClass]):
    """Label classes, each under all its labels."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def __getitem__(self, number: int) -> LabelClass:
        return self.at(number) or NOBODY

    def of(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> LabelClass:
        """Return the class of pods with this namespace and these labels, for whoever will keep it."""
        key = (namespace, frozenset(labels.items()), terminating)
        return self.intern(key, lambda: LabelClass(namespace, dict(labels), terminating))

    def filed_under(self, value: LabelClass) -> Iterable[Hashable]:
        return [(value.namespace, label, text) for label, text in value.labels.items()]

    def candidates(self, namespace: str, selector: matching.Selector, among: Collection[LabelClass]) -> Iterable[LabelClass]:
        """Return the classes that a selector can match at all, out of some of a namespace: those with one of its labels, and
        maybe others, if these are fewer."""
        fewest, rarest = len(among), None
        for wanted in selector.requirements:
            if wanted.operator == matching.IN:
                size = sum(self.n_under((namespace, wanted.key, value)) for value in wanted.values)
                if size < fewest:
                    fewest, rarest = size, wanted
        if rarest is None:
            return among
        return chain.from_iterable(self.under((namespace, rarest.key, value)) for value in rarest.values)


_ANYWHERE = ""
"""Stands for the namespace where a term is filed that selects namespaces by their labels."""


class AffinityGroups(WeakInterner[bytes, AffinityGroup]):
    """Affinity groups, each under one label of every term: the one that the fewest groups are found by. Where pods of one
    rollout mean each other alone (`matchLabelKeys`), that is the rollout's own label."""

    __slots__ = ()

    def of(self, pod: Pod) -> AffinityGroup:
        """Return a pod's group, for whoever will keep it."""
        affinity = pod.spec.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return NO_AFFINITY
        key = _encode((pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity))
        return self.intern(key, lambda: AffinityGroup(matching.compile_pod_affinity(pod)))

    def filed_under(self, value: AffinityGroup) -> Iterable[Hashable]:
        found: set[Hashable] = set()
        for term in value.terms.every_term:
            if not term.selector.is_nothing:
                namespaces = term.namespaces if term.ns_selector.is_nothing else (_ANYWHERE,)
                wanted = [one for one in term.selector.requirements if one.operator == matching.IN]
                ways: list[list[Hashable]] = [
                    [(namespace, one.key, text) for namespace in namespaces for text in one.values] for one in wanted
                ]
                found.update(min(ways, key=lambda way: sum(map(self.n_under, way)), default=namespaces))
        return found

    def candidates(self, namespace: str, labels: Mapping[str, str], newer_than: int = 0) -> Iterable[AffinityGroup]:
        """Return the groups that can mean a pod of this namespace with these labels at all, out of those that are newer than
        the one with this serial number."""
        for where in (namespace, _ANYWHERE):
            yield from self.under(where, newer_than)
            for label, text in labels.items():
                yield from self.under((where, label, text), newer_than)


class Templates:
    """The interners: templates by signature, label classes, affinity groups and resources by number."""

    def __init__(self, gates: Gates | None = None) -> None:
        self.gates = gates or Gates()
        self.resources = Resources()
        self.label_classes = LabelClasses()
        self.affinity_groups = AffinityGroups()
        self._templates: WeakInterner[bytes, PodTemplate] = WeakInterner()
        """Each is kept by its pods."""
        self._resources: WeakValueDictionary[bytes, PodResources] = WeakValueDictionary()

    def view(self, pod: Pod) -> PodView:
        """Return the pod as the scheduler sees it."""
        signature = sign(pod)
        return PodView(pod, self._templates.intern(signature, lambda: PodTemplate(pod, signature, self)))

    def pod_resources(self, pod: Pod) -> PodResources:
        """Return what a pod asks for; pods whose containers ask for the same share it."""
        signed: list[Any] = []
        _sign_resources(signed, pod)
        key = _encode(signed)
        found = self._resources.get(key)
        if found is None:
            found = self._resources[key] = PodResources(pod, self)
        return found


def sign(pod: Pod) -> bytes:
    """Return a pod's signature: everything about it that a remembered answer may depend on."""
    meta, spec = pod.metadata, pod.spec
    signed: list[Any] = [
        meta.namespace,
        meta.labels,
        meta.deletion_timestamp is not None,
        spec.affinity,
        spec.topology_spread_constraints,
        spec.priority,
        spec.preemption_policy,
        spec.scheduler_name,
        meta.controller() if meta.owner_references else None,
    ]
    _sign_asking(signed, pod)
    return _encode(signed)


def sign_asking(pod: Pod) -> bytes:
    """Return the signature of what a pod asks of a node, whoever it is and whatever it wishes for about other pods."""
    affinity = pod.spec.affinity
    signed: list[Any] = [affinity.node_affinity if affinity is not None else None]
    _sign_asking(signed, pod)
    return _encode(signed)


def _sign_asking(signed: list[Any], pod: Pod) -> None:
    spec = pod.spec
    signed += (
        spec.tolerations,
        spec.node_selector,
        spec.host_network,
        spec.host_users,
        [v.image.reference for v in spec.volumes if v.image is not None] if spec.volumes else None,
    )
    _sign_resources(signed, pod)


def _sign_node_constraints(pod: Pod, ports: Iterable[requests.HostPort]) -> bytes:
    """Return the signature of what a pod asks of a node apart from resources and images, with the host ports of its containers.

    Images are not in it: every application has its own, so pods would have little in common, and one score alone reads them.
    """
    spec = pod.spec
    return _encode(
        (
            spec.affinity.node_affinity if spec.affinity is not None else None,
            spec.tolerations,
            spec.node_selector,
            spec.host_network,
            spec.host_users,
            [c.restart_policy_rules for c in (*spec.containers, *spec.init_containers) if c.restart_policy_rules],
            ports,
        )
    )


def _sign_resources(signed: list[Any], pod: Pod) -> None:
    spec, status = pod.spec, pod.status
    signed += (spec.containers, spec.init_containers, spec.overhead, spec.resources)
    resized = [c for c in status.conditions if c.type == "PodResizePending"] if status.conditions else None
    if resized or status.container_statuses or status.init_container_statuses or status.resources is not None:
        signed += (
            resized,
            [(c.name, c.resources, c.allocated_resources) for c in status.container_statuses],
            [(c.name, c.resources, c.allocated_resources) for c in status.init_container_statuses],
            status.resources,
            status.allocated_resources,
        )
    if status.node_allocatable_resource_claim_statuses:
        signed.append(status.node_allocatable_resource_claim_statuses)
