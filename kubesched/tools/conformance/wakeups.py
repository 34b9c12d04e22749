"""Golden cases of the family wakeups: one pod that no node takes, then one event; does the event bring it back?

In: a case: objects, one pod, an event, and what the reference did. Out: the differences. The pod goes the way of every
pod: the intake hands it to the queue, it is popped, tried and parked; then the event comes in by the same door.
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
    """Try a case's pod, let the event happen, and compare who refused the pod and whether it left the waiting pods."""
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
    """Deliver the event as a watch would: with the version that was there before, and a new resource version."""
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
    """Return the version of an object that is known."""
    meta = changed.metadata
    if isinstance(changed, Node):
        return cluster.store.node(meta.name)
    if isinstance(changed, Pod):
        if changed.key == pod.key:
            return pod
        return next((view.pod for view in cluster.store.pods() if view.key == changed.key), None)
    return cluster.store.objects.get(type(changed), meta.name, meta.namespace)
