"""/metrics/resources: requests and limits of every pod, as the scheduler counts them.

In: the pods that the scheduler knows. Out: two gauges with a line for each pod and resource that is not zero. Only the leader
answers with them; finished pods on nodes are left out. A cluster has many pods and few templates, so the part of a line that
replicas share is made once. The event loop gets its turn between chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod, is_finished, is_pod_level_name, pod_requests, sum_of_containers
from kubesched.kube.values import milli_value, parse, value
from kubesched.scheduler.cluster import PodView
from kubesched.telemetry.logs import logger

log = logger(__name__)

CHUNK = 500  # pods whose lines are made at a time: one or two milliseconds
_HELP = {
    kind: f"[STABLE] {what} on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect"
    " per pod for resources along with the unit for the resource if any."
    for kind, what in (("request", "Resources requested by workloads"), ("limit", "Resources limit for workloads"))
}
_BYTES = ("memory", "storage", "ephemeral-storage")


def lines(pods: Iterable[PodView]) -> Iterator[str]:
    """Yield the text in chunks. The pods are read before the first one."""
    known = list(pods)
    for kind, text in _HELP.items():
        name = f"kube_pod_resource_{kind}"
        yield f"# HELP {name} {text}\n# TYPE {name} gauge\n"
        for start in range(0, len(known), CHUNK):
            yield "".join([_lines_of(name, kind, view) for view in known[start : start + CHUNK]])


def _lines_of(name: str, kind: str, view: PodView) -> str:
    """Return the lines of one pod."""
    if view.node_name and is_finished(view.pod):
        return ""
    ends: list[str] = view.template.remember(name, lambda: _ends(kind, view))
    if not ends:
        return ""
    start = f'{name}{{namespace="{view.namespace}",node="{view.node_name}",pod="{view.name}"'
    return "".join([f"{start}{end}" for end in ends])


def _ends(kind: str, view: PodView) -> list[str]:
    """Return the lines of a template's pods, from where the names of pod and node end."""
    spec = view.pod.spec
    try:
        nano = pod_requests(view.pod) if kind == "request" else pod_limits(view.pod)
    except SchedulerError as error:  # one pod that makes no sense does not hide the others
        log.v(2).info("Pod left out of /metrics/resources", pod=view.key, err=error)
        return []
    priority = "" if spec.priority is None else spec.priority
    scheduler = spec.scheduler_name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    ends = []
    for resource, amount in sorted(nano.items()):
        shown = milli_value(amount) / 1000 if resource == "cpu" else value(amount)
        if shown:
            labels = f'priority="{priority}",resource="{resource}",scheduler="{scheduler}",unit="{unit_of(resource)}"'
            ends.append(f",{labels}}} {float(shown)!r}\n")
    return ends


def unit_of(resource: str) -> str:
    """Return the unit of a resource; empty if it has none."""
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def pod_limits(pod: Pod) -> dict[str, int]:
    """Return the limits of a pod in billionths. Overhead is added only to what is limited."""
    total = sum_of_containers(pod, lambda container: _parsed(container.resources.limits))
    if pod.spec.resources is not None:
        total |= {name: n for name, n in _parsed(pod.spec.resources.limits).items() if is_pod_level_name(name)}
    for name, amount in _parsed(pod.spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return total


def _parsed(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    return {name: parse(text) for name, text in quantities.items()}
