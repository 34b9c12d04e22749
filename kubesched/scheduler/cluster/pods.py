"""Pods as numbers, computed once for each template.

In: API pods. Out: a `PodView`, which stands for one pod, and the `PodTemplate` that it shares with all pods that look the
same to the scheduler. Replicas of one Deployment differ in name and uid, which no plugin reads. Expensive work (summing
requests, parsing affinity) is done when a template is first seen.

A template's signature leaves out three things on purpose. The node is the answer, not the question. Claims for volumes and
devices differ between the replicas of a StatefulSet; the answers of plugins that read them are never cached. The status does
not count, except for the parts that matter to in-place resizing.
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
    """Resources by number: those that a pod or a node names now, and those that the configuration names."""

    __slots__ = ("_kept", "values")

    def __init__(self) -> None:
        super().__init__(reserved=0)
        self.values: list[str] = []
        """Their names; empty where a number is free."""
        self._kept: dict[str, ResourceName] = {}
        for name in NATIVE_RESOURCES:
            self.id(name)

    def of(self, name: str) -> ResourceName:
        """Return a resource. It keeps its number as long as the caller keeps it."""
        found = self.intern(name, lambda: ResourceName(name))
        if found.number == len(self.values):
            self.values.append(name)
        else:
            self.values[found.number] = name
        return found

    def id(self, name: str) -> int:
        """Return the number of a resource that the configuration names. It keeps this number for good."""
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
    """Pods of equal namespace and inter-pod affinity, with their parsed terms about other pods."""

    __slots__ = ("terms",)

    def __init__(self, terms: matching.PodAffinityTerms) -> None:
        super().__init__()
        self.terms = terms

    @property
    def selects_namespaces(self) -> bool:
        """Return whether a term is about namespaces by their labels, other than all or none of them."""
        return any(term.ns_selector.requirements for term in self.terms.every_term)


NO_AFFINITY = AffinityGroup(matching.PodAffinityTerms())
"""Group 0: pods without inter-pod affinity."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The feature gates that change how pods and nodes are read."""

    pod_level_resources: bool = True
    in_place_resize: bool = True
    in_place_pod_level_resize: bool = True
    node_allocatable_claims: bool = False
    toleration_comparison: bool = False
    whole_pod_resize: bool = True
    """Not a gate: since 1.37 sums over the whole pod are compared while it is being resized."""


class PodResources:
    """The resources that pods ask for, as different plugins read them. Templates with equal containers share it."""

    def __init__(self, pod: Pod, interners: Templates) -> None:
        self._sample = pod
        self._interners = interners
        self._used = self._requests(use_status=True)
        self._used_amounts = requests.amounts(self._used)
        self._named: list[ResourceName] = []
        """The resources that it names; this keeps their numbers theirs."""
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
        """Whether the status does not matter: then all readings take the spec alone."""
        self._drift = _drift(pod.spec) if gates.pod_level_resources else {}
        self.requested = self.usage
        """The requests when the pod is placed: the spec alone counts."""
        if not is_plain:
            self.requested = self._by_number(requests.amounts(self._requests(use_status=False)))
        self.asks_for_scalars = any(resource > EPHEMERAL_STORAGE for resource, _ in self.requested)
        """Whether the pod asks for anything beyond cpu, memory and ephemeral storage."""
        self.scored = self._used_amounts
        """The requests that NodeResourcesFit scores with. A container without a request counts as 100m and 200Mi. Kept quirk:
        pod-level requests do not count."""
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
        """Return requests as kube-scheduler finds them after it has read them `times` times.

        Kept quirk. Each reading adds the overhead to a pod-level quantity. If Go keeps the quantity as an arbitrary-precision
        number, it adds in place, so each reading finds one overhead more. Example: with an overhead of 1Mi such a memory
        request is right in NodeResourcesFit, 1Mi too large in DynamicResources, and 2Mi too large for the first resource of
        NodeResourcesBalancedAllocation. (An API server writes quantities in a form that is not affected.)
        """
        if not self._drift:
            return asked
        return {name: amount + times * self._drift.get(name, 0) for name, amount in asked.items()}


def _drift(spec: PodSpec) -> dict[str, int]:
    """Return how much more of each resource kube-scheduler finds with each reading (`PodResources._read_again`)."""
    if not spec.overhead or spec.resources is None:
        return {}
    return {
        name: quantity.parse(spec.overhead[name])
        for name, text in spec.resources.requests.items()
        if name in spec.overhead and quantity.is_wide(text) and requests.is_pod_level_name(name)
    }


class PodTemplate(Interned):
    """The parts of a pod that all pods of one signature share."""

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
        """The signature of what the pod asks of a node: a part of the whole signature."""
        affinity = pod.spec.affinity
        wanted = affinity.node_affinity if affinity is not None else None
        required = wanted.required if wanted is not None else None
        self.named_nodes = matching.named_nodes(required) if required is not None else None
        """The names of the only nodes that the required node affinity allows; None if not every term names nodes."""
        self.wants_named_alone = required is not None and not pod.spec.node_selector and matching.is_names_alone(required)
        """Whether the pod demands nothing of its node but one of these names, so that no selector need be compiled."""
        self.node_constraints = _sign_node_constraints(pod, self.ports) if self.named_nodes is None else b""
        """The signature of `asking` without resources and images. Empty if the pod names its nodes: it is never cached."""
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
        """Return what `make` returned when it was first called for this key. A plugin keeps here what it reads from the spec;
        never None.

        The key is a text, a class, or an `object()` that the plugin made for it; never the plugin itself. Pods keep their
        template, and Python's cycle collector does not see what pods keep (see PodView). A key that leads to the plugin, and
        by its handle to the engine, would keep a dropped engine in memory for ever.
        """
        # `get` is faster than catching KeyError, because every pod may be the first of its template.
        found = self.remembered.get(key)
        if found is None:
            found = self.remembered[key] = make()
        return found


class PodView(msgspec.Struct, eq=False, gc=False):
    """One pod as the scheduler sees it. Shared by the queue, the cycle and the store.

    Python's cycle collector does not track it (`gc=False`): there is one for each pod of the cluster, and walking all of them
    stopped the scheduler for 0.1 s at 150,000 pods. That is safe as long as nothing that a view holds leads back to an engine:
    the collector could not free that engine. `PodTemplate.remember` says what that means for plugins.
    """

    pod: Pod
    template: PodTemplate
    key: str
    uid: str
    node_name: str
    slot: int = -1

    @staticmethod
    def of(pod: Pod, template: PodTemplate, key: str = "") -> PodView:
        """Return a view of a pod; `key` is its namespace and name where they are known already."""
        meta = pod.metadata
        return PodView(pod, template, key or f"{meta.namespace}/{meta.name}", meta.uid, pod.spec.node_name or "")

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
        """Return the same pod with a node; it shares the template."""
        spec = msgspec.structs.replace(self.pod.spec, node_name=node_name)
        return PodView(msgspec.structs.replace(self.pod, spec=spec), self.template, self.key, self.uid, node_name)


class LabelClasses(WeakInterner[tuple[str, frozenset[tuple[str, str]], bool], LabelClass]):
    """Label classes, each under all its labels."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def __getitem__(self, number: int) -> LabelClass:
        return self.at(number) or NOBODY

    def of(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> LabelClass:
        """Return the class of pods with this namespace and these labels. It keeps its number as long as the caller keeps it."""
        key = (namespace, frozenset(labels.items()), terminating)
        return self.intern(key, lambda: LabelClass(namespace, dict(labels), terminating))

    def filed_under(self, value: LabelClass) -> Iterable[Hashable]:
        return [(value.namespace, label, text) for label, text in value.labels.items()]

    def candidates(self, namespace: str, selector: matching.Selector, among: Collection[LabelClass]) -> Iterable[LabelClass]:
        """Return the classes of `among`, all of one namespace, that a selector could match.

        They are looked up in the index by label: of all requirements `key in (values)` the one with the fewest classes is
        taken. If even this one has more classes than `among`, that is returned as it is.
        """
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
"""The namespace under which a term is filed that selects namespaces by labels."""


class AffinityGroups(WeakInterner[bytes, AffinityGroup]):
    """Affinity groups with an index by label.

    A group is filed under one label of each of its terms: the label that the fewest groups are filed under. If pods of a
    rollout refer to each other alone (`matchLabelKeys`), this is the rollout's own label. So a new pod with ten labels finds
    the few groups that could match it, and not all groups of its namespace.
    """

    __slots__ = ()

    def of(self, pod: Pod) -> AffinityGroup:
        """Return a pod's group. It keeps its number as long as the caller keeps it."""
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
        """Return the groups with a term that could match a pod of this namespace with these labels, newer than a serial
        number."""
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
        """Weak: a template is kept alive by its pods."""
        self._resources: WeakValueDictionary[bytes, PodResources] = WeakValueDictionary()

    def view(self, pod: Pod) -> PodView:
        """Return the pod as the scheduler sees it."""
        signature = sign(pod)
        return PodView.of(pod, self._templates.intern(signature, lambda: PodTemplate(pod, signature, self)))

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
    """Return a pod's signature: everything of the pod that a cached answer may depend on."""
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
    """Return the signature of what a pod asks of a node: without its labels, owner, priority and terms about other pods."""
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
    """Return the signature of what a pod asks of a node, without resources and images and with host ports.

    Every application has its own image, so pods with equal images are few; and only one score reads them.
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
