"""The ElasticQuotas of a cluster and what is used of them, for CapacityScheduling.

One ElasticQuota (scheduling.x-k8s.io/v1alpha1) counts for each namespace: of several the first. There is one table for each
cluster, which all profiles share. It follows the pods on nodes; their requests are computed as for scheduling.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import inf

from kubesched.errors import MalformedObject, SchedulerError
from kubesched.kube.api import ElasticQuota, Quantity, requests
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Change,
    ObjectChange,
    Objects,
    PodTemplate,
    PodView,
    Reader,
    Snapshot,
)

NATIVE = ("cpu", "memory", "ephemeral-storage")
Amounts = Iterable[tuple[int, int]]
"""(resource number, amount): cpu in thousandths, others in whole units."""


class Quota:
    """The quota of a namespace: min, max and used, by resource number.

    As in scheduler-plugins, a max without cpu, memory or ephemeral-storage means 0 of it, unless there is no max at all. Other
    resources without a max are not limited.
    """

    def __init__(self, least: Mapping[int, int] | None, most: Mapping[int, int] | None) -> None:
        # A min that does not name a resource guarantees 0 of it, so any use of it is borrowed; a max that does not name
        # it does not limit it, except for the three below.
        self.min: defaultdict[int, float] = defaultdict(float, least or {})
        self.max: defaultdict[int, float] = defaultdict(lambda: inf, most or {})
        for resource in (CPU, MEMORY, EPHEMERAL_STORAGE):
            self.max.setdefault(resource, inf if most is None else 0.0)
        self.used: defaultdict[int, int] = defaultdict(int)

    def exceeds_max(self, asked: Amounts) -> bool:
        """Return whether the namespace would exceed its max with these amounts more."""
        return _exceeds(self.used, asked, self.max)

    def exceeds_min(self, asked: Amounts | None = None) -> bool:
        """Return whether the namespace would exceed its min with these amounts more; without amounts, whether it borrows
        now."""
        return _exceeds(self.used, asked if asked is not None else [(resource, 0) for resource in self.used], self.min)


class Quotas:
    """All quotas by namespace. It follows the ElasticQuotas and the pods."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._log = objects.log(ElasticQuota)
        self._quota_reader: Reader[ObjectChange] = Reader()
        self._pod_reader: Reader[Change] = Reader()
        self.by_namespace: dict[str, Quota] = {}
        self._sum = Quota(None, None)
        """The sum of all min, and of what is used."""
        self._alike: PodTemplate | None = None
        self._alike_left = 0.0
        """How many more pods with the template of the last accepted pod fit. So a thousand replicas are checked once."""
        self._alike_reader: Reader[Change] = Reader()

    def fits_like_the_last(self, pod: PodView, nodes: Snapshot) -> bool:
        """Return whether a pod fits because it is like the last accepted pod and no other pod came since; False: not known."""
        # Taken away first: whatever makes the short way impossible leaves it off until the next full check.
        template, self._alike = self._alike, None
        changes = self._alike_reader.changed(nodes.journal)
        if pod.template is not template or changes is None or not self._quota_reader.is_current(self._log):
            return False
        for change in changes:
            if change.pod is not None:
                if change.pod.template is not template:
                    return False
                self._alike_left -= change.sign
        self._alike = template
        return self._alike_left >= 1

    def note_that_it_fits(self, pod: PodView) -> None:
        """Note that a pod fits, and work out how many more like it do."""
        #     max 10 cpu, used 4, the pod requests 2: (10 - 4) // 2 = 3 pods like it, this one included
        own, self._alike, self._alike_left = self.by_namespace[pod.namespace], pod.template, inf
        for used, limits in ((own.used, own.max), (self._sum.used, self._sum.min)):
            for resource, amount in pod.requests:
                if amount and limits[resource] < inf:
                    self._alike_left = min(self._alike_left, (limits[resource] - used[resource]) // amount)

    def refresh(self, nodes: Snapshot) -> None:
        """Follow the changes; raise a SchedulerError that names a quota with an invalid quantity."""
        # A changed quota reads everything again, because the sum of all min changes with it. Pods are counted one by
        # one.
        changes = self._pod_reader.changed(nodes.journal)
        if changes is None or not self._quota_reader.is_current(self._log):
            self._read_all(nodes)
            return
        for change in changes:
            if change.pod is not None:
                self._count(change.pod.template, change.sign)

    def _read_all(self, nodes: Snapshot) -> None:
        """Read all quotas and count all placed pods again."""
        number, self.by_namespace = nodes.templates.resources.id, {}
        for obj in self._objects.all(ElasticQuota):
            if obj.namespace not in self.by_namespace:
                least, most = _amounts(obj, "min", obj.spec.min, number), _amounts(obj, "max", obj.spec.max, number)
                self.by_namespace[obj.namespace] = Quota(least, most)
        together: Counter[int] = Counter()
        for quota in self.by_namespace.values():
            together.update({resource: int(amount) for resource, amount in quota.min.items()})
        self._sum = Quota(together, None)
        # By template: a thousand replicas are counted with one multiplication.
        for template, count in Counter(view.template for view in nodes.slots.views if view is not None).items():
            self._count(template, count)
        self._quota_reader.changed(self._log)  # last, so that an invalid quota is reported again

    def move(self, pod: PodView, sign: int) -> None:
        """Count a pod that comes to a node (1) or leaves it (-1), also in a what-if."""
        self._count(pod.template, sign)

    def _count(self, template: PodTemplate, times: int) -> None:
        # Pods in namespaces without a quota count nowhere, not even in the sum.
        quota = self.by_namespace.get(template.namespace)
        if quota is not None:
            used, of_all = quota.used, self._sum.used
            for resource, amount in template.resources.requested:
                used[resource] += times * amount
                of_all[resource] += times * amount

    def exceed_min(self, asked: Amounts) -> bool:
        """Return whether all namespaces together would exceed the sum of their min with these amounts more."""
        total = self._sum
        if len(total.used) > len(NATIVE) and total.exceeds_min():  # also extended resources that the pod does not request
            return True
        return _exceeds(total.used, asked, total.min)


def _exceeds(used: Mapping[int, int], asked: Amounts, limit: Mapping[int, float]) -> bool:
    """Return whether used plus asked exceeds the limit, in the asked resources and in cpu, memory and ephemeral-storage."""
    for resource, amount in asked:
        if used[resource] + amount > limit[resource]:
            return True
    return used[CPU] > limit[CPU] or used[MEMORY] > limit[MEMORY] or used[EPHEMERAL_STORAGE] > limit[EPHEMERAL_STORAGE]


def _amounts(
    obj: ElasticQuota, field: str, given: Mapping[str, Quantity] | None, number: Callable[[str], int]
) -> dict[int, int] | None:
    """Return the amounts of min or max by resource number; raise MalformedObject for an invalid quantity."""
    if given is None:
        return None
    made: dict[int, int] = {}
    # `requests.amounts` turns cpu into thousandths and others into whole units, and may leave out a resource that is
    # not counted.
    for name, text in given.items():
        try:
            amounts = requests.amounts({name: quantity.parse(text)}, pods=True)
        except (SchedulerError, ValueError) as error:
            raise MalformedObject(f"elasticquota {obj.key}", f"spec.{field}[{name}]", text) from error
        made |= {number(resource): amount for resource, amount in amounts.items()}
    return made
