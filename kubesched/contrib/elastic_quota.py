"""ElasticQuotas of a cluster, and what is used of them: for CapacityScheduling, which says what they mean.

In: objects ElasticQuota of scheduling.x-k8s.io/v1alpha1, one a namespace (of several the first counts), and the pods on nodes.
Out: whether a namespace, or all of them together, would exceed what they may have. One table a cluster, which all profiles
share. Requests count as the scheduler counts them, sidecars included.
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
"""By the resource's number: cpu in thousandths, the rest in whole units."""


class Quota:
    """What a namespace is sure of (`min`), what it may have (`max`), and what its pods have, by the resource's number.

    As in scheduler-plugins, cpu, memory and ephemeral-storage that `max` leaves out are 0 there unless it leaves out all;
    other resources that it leaves out are not limited.
    """

    def __init__(self, least: Mapping[int, int] | None, most: Mapping[int, int] | None) -> None:
        self.min: defaultdict[int, float] = defaultdict(float, least or {})
        self.max: defaultdict[int, float] = defaultdict(lambda: inf, most or {})
        for resource in (CPU, MEMORY, EPHEMERAL_STORAGE):
            self.max.setdefault(resource, inf if most is None else 0.0)
        self.used: defaultdict[int, int] = defaultdict(int)

    def exceeds_max(self, asked: Amounts) -> bool:
        """Return whether the namespace would have more than its max with so much more."""
        return _exceeds(self.used, asked, self.max)

    def exceeds_min(self, asked: Amounts | None = None) -> bool:
        """Return whether the namespace would have more than its min with so much more; without, whether it borrows now."""
        return _exceeds(self.used, asked if asked is not None else [(resource, 0) for resource in self.used], self.min)


class Quotas:
    """All quotas by namespace. Follows the objects and the cluster's journal."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._log = objects.log(ElasticQuota)
        self._quota_reader: Reader[ObjectChange] = Reader()
        self._pod_reader: Reader[Change] = Reader()
        self.by_namespace: dict[str, Quota] = {}
        self._sum = Quota(None, None)
        """All quotas together: the sum of their min, and what they use."""
        self._alike: PodTemplate | None = None
        self._alike_left = 0.0
        """How many more pods fit that are like the last that was found to: they are counted down, and not added up each."""
        self._alike_reader: Reader[Change] = Reader()

    def fits_like_the_last(self, pod: PodView, nodes: Snapshot) -> bool:
        """Return whether a pod fits because the last that did was like it, and nobody else came since. False: not known."""
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
        """Take notice that a pod is within all quotas, and work out how many like it are."""
        own, self._alike, self._alike_left = self.by_namespace[pod.namespace], pod.template, inf
        for used, limits in ((own.used, own.max), (self._sum.used, self._sum.min)):
            for resource, amount in pod.requests:
                if amount and limits[resource] < inf:
                    self._alike_left = min(self._alike_left, (limits[resource] - used[resource]) // amount)

    def refresh(self, nodes: Snapshot) -> None:
        """Take in what changed; raise a SchedulerError that names a quota which cannot be read."""
        changes = self._pod_reader.changed(nodes.journal)
        if changes is None or not self._quota_reader.is_current(self._log):
            self._read_all(nodes)
            return
        for change in changes:
            if change.pod is not None:
                self._count(change.pod.template, change.sign)

    def _read_all(self, nodes: Snapshot) -> None:
        number, self.by_namespace = nodes.templates.resources.id, {}
        for obj in self._objects.all(ElasticQuota):
            if obj.namespace not in self.by_namespace:
                least, most = _amounts(obj, "min", obj.spec.min, number), _amounts(obj, "max", obj.spec.max, number)
                self.by_namespace[obj.namespace] = Quota(least, most)
        together: Counter[int] = Counter()
        for quota in self.by_namespace.values():
            together.update({resource: int(amount) for resource, amount in quota.min.items()})
        self._sum = Quota(together, None)
        for template, count in Counter(view.template for view in nodes.slots.views if view is not None).items():
            self._count(template, count)
        self._quota_reader.changed(self._log)  # only now: what cannot be read is said again to the next who asks

    def move(self, pod: PodView, sign: int) -> None:
        """Count a pod that came to a node (+1) or left it (-1), or is imagined to."""
        self._count(pod.template, sign)

    def _count(self, template: PodTemplate, times: int) -> None:
        quota = self.by_namespace.get(template.namespace)
        if quota is not None:
            used, of_all = quota.used, self._sum.used
            for resource, amount in template.resources.requested:
                used[resource] += times * amount
                of_all[resource] += times * amount

    def exceed_min(self, asked: Amounts) -> bool:
        """Return whether all namespaces together would have more than the sum of their min with so much more."""
        total = self._sum
        if len(total.used) > len(NATIVE) and total.exceeds_min():  # of devices too, that this pod need not ask for
            return True
        return _exceeds(total.used, asked, total.min)


def _exceeds(used: Mapping[int, int], asked: Amounts, limit: Mapping[int, float]) -> bool:
    """Return whether so much more is over the limit: of native resources, and of the others that are asked for."""
    for resource, amount in asked:
        if used[resource] + amount > limit[resource]:
            return True
    return used[CPU] > limit[CPU] or used[MEMORY] > limit[MEMORY] or used[EPHEMERAL_STORAGE] > limit[EPHEMERAL_STORAGE]


def _amounts(
    obj: ElasticQuota, field: str, given: Mapping[str, Quantity] | None, number: Callable[[str], int]
) -> dict[int, int] | None:
    if given is None:
        return None
    made: dict[int, int] = {}
    for name, text in given.items():
        try:
            amounts = requests.amounts({name: quantity.parse(text)}, pods=True)
        except (SchedulerError, ValueError) as error:
            raise MalformedObject(f"elasticquota {obj.key}", f"spec.{field}[{name}]", text) from error
        made |= {number(resource): amount for resource, amount in amounts.items()}
    return made
