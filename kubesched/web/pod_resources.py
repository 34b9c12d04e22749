"""/metrics/resources: what every pod asks for and may use at most, as the scheduler counts it.

In: the pods that the scheduler knows. Out: two gauges with a series for each pod and resource that is not zero. Only
the leader answers with them; pods on a node that have ended are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kubesched.api.pod import Pod
from kubesched.api.quantity import milli_value, parse, value
from kubesched.api.requests import is_pod_level_name, pod_requests
from kubesched.cluster import PodView
from kubesched.errors import SchedulerError
from kubesched.telemetry.logs import logger

log = logger(__name__)

LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_ENDED = ("Succeeded", "Failed")
_BYTES = ("memory", "storage", "ephemeral-storage")


class PodResources(Collector):
    """Reads the pods whenever somebody asks."""

    def __init__(self, pods: Callable[[], Iterable[PodView]]) -> None:
        self._pods = pods

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not read all pods."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield both gauges."""
        asked = GaugeMetricFamily(
            "kube_pod_resource_request",
            "[STABLE] What the pod asks for, its containers, sidecars and overhead added up.",
            labels=LABELS,
        )
        limited = GaugeMetricFamily(
            "kube_pod_resource_limit", "[STABLE] What the pod may use at most, added up likewise.", labels=LABELS
        )
        for view in self._pods():
            pod = view.pod
            if view.node_name and pod.status.phase in _ENDED:
                continue
            try:
                _add(asked, view, pod_requests(pod))
                _add(limited, view, pod_limits(pod))
            except SchedulerError as error:  # one pod that makes no sense does not hide the others
                log.v(2).info("Pod left out of /metrics/resources", pod=view.key, err=error)
        yield asked
        yield limited


def _add(gauge: GaugeMetricFamily, view: PodView, nano: Mapping[str, int]) -> None:
    spec = view.pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    for resource, amount in sorted(nano.items()):
        shown = milli_value(amount) / 1000 if resource == "cpu" else float(value(amount))
        if shown:
            labels = (view.namespace, view.name, view.node_name, spec.scheduler_name, priority, resource)
            gauge.add_metric((*labels, unit_of(resource)), shown)


def unit_of(resource: str) -> str:
    """Return the unit that a resource is counted in, empty where nobody knows."""
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def pod_limits(pod: Pod) -> dict[str, int]:
    """Return what the pod may use at most, in nano units; overhead only widens what is limited."""
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.containers:
        _sum_up(total, _parsed(container.resources.limits))
    for container in pod.spec.init_containers:
        limits = _parsed(container.resources.limits)
        if container.is_restartable:
            _sum_up(total, limits)
            _sum_up(sidecars, limits)
            used = sidecars
        else:
            used = dict(sidecars)
            _sum_up(used, limits)
        for name, amount in used.items():
            peak[name] = max(peak.get(name, amount), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, amount), amount)
    if pod.spec.resources is not None:
        total |= {name: n for name, n in _parsed(pod.spec.resources.limits).items() if is_pod_level_name(name)}
    for name, amount in _parsed(pod.spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return total


def _parsed(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    return {name: parse(text) for name, text in quantities.items()}


def _sum_up(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
