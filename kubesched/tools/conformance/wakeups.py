"""Golden cases of the family wakeups: does an event move an unschedulable pod back to the active or backoff queue?

In: objects, one pod, an event, and what kube-scheduler did. Out: the differences. As in the engine, the intake adds the pod to
the queue, it is popped, tried and parked, and then the intake gets the event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import Node, Pod, TopLevel, codec
from kubesched.scheduler.engine import FirstByName, Intake, Rules, attempt
from kubesched.scheduler.framework import Placed, Unschedulable
from kubesched.tools.conformance.cases import Case, Cluster, Difference

LEFT = ("active", "backoff")


def run_wakeup_case(case: Case) -> list[Difference]:
    """Try the pod, deliver the event, and compare the plugins that refused the pod and whether it was requeued."""
    name, expected = case["name"], case["expected"]
    try:
        found = _play(case)
    except SchedulerError as error:
        return [Difference(name, "error", None, str(error))]
    return [
        Difference(name, what, expected[what], found[what])
        for what in ("unschedulablePlugins", "requeued")
        if found[what] != expected[what]
    ]


def _play(case: Case) -> dict[str, Any]:
    cluster = Cluster.of(case)
    queue = cluster.queue
    intake = Intake(cluster.store, queue, cluster.profiles.keys(), gates=cluster.gates)
    pod = codec.convert(case["pods"][0], Pod)
    intake.apply("Pod", None, pod)
    entry = queue.pop()
    if entry is not None:
        rules = Rules(FirstByName(), nominations=queue.nominations)
        decision = attempt(entry.view, cluster.store.snapshot(), cluster.profile(entry.view), rules).decision
        if isinstance(decision, Placed):
            return {"unschedulablePlugins": None, "requeued": f"placed on {decision.node_name}"}
        refused = decision.diagnosis if isinstance(decision, Unschedulable) else None
        if refused is None:
            queue.park(entry)
        else:
            queue.park(entry, refused.unschedulable_plugins, refused.pending_plugins)
    parked = queue.find(f"{pod.metadata.namespace}/{pod.metadata.name}")
    if parked is None:
        raise SchedulerError(f"pod {pod.key}: spec.schedulerName {pod.spec.scheduler_name!r} is none of the profiles")
    plugins = sorted(parked.rejectors)
    if queue.place_of(parked.key) not in LEFT:
        deliver(cluster, intake, pod, case["event"])
    return {"unschedulablePlugins": plugins, "requeued": queue.place_of(parked.key) in LEFT}


def deliver(cluster: Cluster, intake: Intake, pod: Pod, event: dict[str, Any]) -> None:
    """Deliver the event as a watch does: with the old object, and with a new resource version."""
    changed = codec.decode(dict(event["object"]))
    before = _find(cluster, pod, changed)
    after = None
    if event["type"] == "add":
        before, after = None, changed
    elif event["type"] == "update":
        meta = msgspec.structs.replace(changed.metadata, resource_version="2")
        after = msgspec.structs.replace(changed, metadata=meta)
    intake.apply(changed.kind, before, after)


def _find(cluster: Cluster, pod: Pod, changed: TopLevel) -> TopLevel | None:
    """Return the stored version of an object."""
    meta = changed.metadata
    if isinstance(changed, Node):
        return cluster.store.node(meta.name)
    if isinstance(changed, Pod):
        if changed.key == pod.key:
            return pod
        return next((view.pod for view in cluster.store.pods() if view.key == changed.key), None)
    return cluster.store.objects.get(type(changed), meta.name, meta.namespace)
