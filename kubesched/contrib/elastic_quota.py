"""ElasticQuotas of a cluster, and what is used of them: for CapacityScheduling, which says what they mean.

In: objects ElasticQuota of scheduling.x-k8s.io/v1alpha1, one a namespace (of several the first counts), and the pods on nodes.
Out: whether a namespace, or all of them together, would exceed what they may have. One table a cluster, which all profiles
share. Requests count as the scheduler counts them, sidecars included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf

from kubesched.api import quantity, requests
from kubesched.api.meta import Quantity
from kubesched.api.workload import ElasticQuota
from kubesched.cluster import Objects, PodView, Snapshot
from kubesched.cluster.changelog import Reader
from kubesched.cluster.journal import Change
from kubesched.cluster.objects import ObjectChange
from kubesched.cluster.pods import PodTemplate
from kubesched.errors import MalformedObject, SchedulerError

NATIVE = ("cpu", "memory", "ephemeral-storage")
Amounts = Mapping[str, int]
NOTHING: Amounts = {}


class Quota:
    """What a namespace is sure of (`min`), what it may have (`max`), and what its pods have.

    As in scheduler-plugins, cpu, memory and ephemeral-storage that `max` leaves out are 0 there unless it leaves out all;
    other resources that it leaves out are not limited.
    """

    def __init__(self, least: Amounts | None, most: Amounts | None) -> None:
        self.min: dict[str, float] = dict.fromkeys(NATIVE, 0.0) | dict(least or {})
        self.max: dict[str, float] = dict.fromkeys(NATIVE, inf if most is None else 0.0) | dict(most or {})
        self.used: dict[str, int] = dict.fromkeys(NATIVE, 0)

    def exceeds_max(self, asked: Amounts) -> bool:
        """Return whether the namespace would have more than its max with so much more."""
        return _exceeds(self.used, asked, self.max, inf)

    def exceeds_min(self, asked: Amounts | None = None) -> bool:
        """Return whether the namespace would have more than its min with so much more; without, whether it borrows now."""
        return _exceeds(self.used, asked, self.min, 0) if asked is not None else _exceeds(NOTHING, self.used, self.min, 0)


class Quotas:
    """All quotas by namespace. Follows the objects and the cluster's journal."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._quota_reader: Reader[ObjectChange] = Reader()
        self._pod_reader: Reader[Change] = Reader()
        self.by_namespace: dict[str, Quota] = {}
        self._sum = Quota(None, None)
        """All quotas together: the sum of their min, and what they use."""

    def refresh(self, nodes: Snapshot) -> None:
        """Take in what changed; raise a SchedulerError that names a quota which cannot be read."""
        log = self._objects.log(ElasticQuota)
        has_same_quotas = self._quota_reader.is_current(log)
        changes = self._pod_reader.changed(nodes.journal)
        if has_same_quotas and changes is not None:
            for _, _, pod, sign in changes:
                if pod is not None:
                    self._count(pod.template, sign)
            return
        self.by_namespace = {}
        for obj in self._objects.all(ElasticQuota):
            if obj.namespace not in self.by_namespace:
                quota = Quota(_amounts(obj, "min", obj.spec.min), _amounts(obj, "max", obj.spec.max))
                self.by_namespace[obj.namespace] = quota
        least: Counter[str] = Counter()
        for quota in self.by_namespace.values():
            least.update({name: int(amount) for name, amount in quota.min.items()})
        self._sum = Quota(least, None)
        for template, count in Counter(view.template for view in nodes.slots.views if view is not None).items():
            self._count(template, count)
        self._quota_reader.changed(log)  # only now: what cannot be read is said again to the next who asks

    def move(self, pod: PodView, sign: int) -> None:
        """Count a pod that came to a node (+1) or left it (-1), or is imagined to."""
        self._count(pod.template, sign)

    def _count(self, template: PodTemplate, times: int) -> None:
        quota = self.by_namespace.get(template.namespace)
        if quota is not None:
            for name, amount in _asked(template).items():
                quota.used[name] = quota.used.get(name, 0) + times * amount
                self._sum.used[name] = self._sum.used.get(name, 0) + times * amount

    def exceed_min(self, asked: Amounts) -> bool:
        """Return whether all namespaces together would have more than the sum of their min with so much more."""
        others = len(self._sum.used) > len(NATIVE)  # devices that this pod need not ask for
        return self._sum.exceeds_min(asked) or (others and self._sum.exceeds_min())


def asked_by(pod: PodView) -> Amounts:
    """Return what a pod asks for, by name: cpu in thousandths, the rest in whole units."""
    return _asked(pod.template)


def _asked(template: PodTemplate) -> Amounts:
    made: Amounts | None = template.remembered.get(Quotas)
    if made is None:
        names = template.interners.resources.values
        made = template.remembered[Quotas] = {names[resource]: amount for resource, amount in template.requested}
    return made


def _exceeds(used: Amounts, asked: Amounts, limit: Mapping[str, float], unnamed: float) -> bool:
    """Return whether so much more is over the limit: of native resources, and of the others that are asked for."""
    for name, amount in asked.items():
        if used.get(name, 0) + amount > limit.get(name, unnamed):
            return True
    for name in NATIVE:  # noqa: SIM110  asked for every pod, and a generator costs more
        if name not in asked and used.get(name, 0) > limit[name]:
            return True
    return False


def _amounts(obj: ElasticQuota, field: str, given: Mapping[str, Quantity] | None) -> Amounts | None:
    if given is None:
        return None
    made: dict[str, int] = {}
    for name, text in given.items():
        try:
            made |= requests.amounts({name: quantity.parse(text)}, pods=True)
        except (SchedulerError, ValueError) as error:
            raise MalformedObject(f"elasticquota {obj.key}", f"spec.{field}[{name}]", text) from error
    return made
