"""The report about a pod, as a JSON document: its state, how every node looks to it now, and what would help.

The status page, its endpoint and `kubesched why` show the same document. The engine may be a running one, or one that was made
from a file.
"""

from __future__ import annotations

from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.api import COSCHEDULING_LABEL, COSCHEDULING_LABEL_OLD, Pod, is_finished
from kubesched.kube.values import amount_text
from kubesched.scheduler.cluster import GroupKey, PodView
from kubesched.scheduler.engine.core import EngineState
from kubesched.scheduler.engine.explaining.explain import Explanation, explain_now, gate_of
from kubesched.scheduler.engine.explaining.patches import patches_of
from kubesched.scheduler.engine.explaining.waking import wakes_on
from kubesched.scheduler.framework import Preemption, Profile
from kubesched.scheduler.plugins.dynamic_resources.plugin import DynamicResources

PLACED, PENDING, GATED, LEAVING, NOT_OURS, FINISHED = "placed", "pending", "gated", "leaving", "notOurs", "finished"
GONE = "gone"
"""The state of a pod that only the decision records still have."""
_MOST_VICTIMS = 50


def pod_report(engine: EngineState, pod: PodView, *, top: int = 5, preempts: bool = False) -> dict[str, Any]:
    """Return the report. For a placed pod, nodes are judged for a second pod like it."""
    spec, status = pod.pod.spec, pod.pod.status
    state = state_of(engine, pod)
    document: dict[str, Any] = {
        "pod": pod.key,
        "state": state,
        "phase": status.phase,
        "node": pod.node_name,
        "scheduler": spec.scheduler_name,
        "requests": requests_of(pod),
        "priority": pod.priority,
        "priorityClass": spec.priority_class_name,
        "nominatedNode": status.nominated_node_name,
        "message": condition_of(pod),
    }
    profile = engine.profiles.get(spec.scheduler_name)
    # Nothing below makes sense for a pod that is never tried again.
    if profile is None or state in (FINISHED, LEAVING):
        return document
    group = engine.store.groups.key_of(pod)
    if group is not None:
        document["group"] = str(group)
        document["groupNote"] = _company(engine, group)
    elif ignored := _ignored_group(pod):
        document["groupNote"] = ignored
    if spec.resource_claims:
        document["claims"] = _claims(engine, profile, pod)
    if state == GATED:
        gate = gate_of(engine, pod)
        document["gate"] = {"plugin": gate.plugin, "text": gate.message}
    try:
        now = explain_now(engine, pod, top=top, preempts=preempts and state != PLACED)
    except SchedulerError as error:
        return document | {"failure": str(error)}
    document |= _now(now, pod.pod)
    if state == GATED:
        document["wakesOn"] = [
            {"plugin": each.plugin, "events": each.events, "text": each.text}
            for each in wakes_on(profile, [document["gate"]["plugin"]])
        ]
    if state == PLACED:
        document["nodeNow"] = {"takesOneMore": not now.against_home and bool(now.n_feasible), "reasons": now.against_home}
    return document


def _company(engine: EngineState, key: GroupKey) -> str:
    """Return a note about the pod's group: how many of its pods have a node, and that the report is about one pod alone."""
    group = engine.store.groups.get(key)
    n_placed, n_all = (group.n_scheduled, group.n_all) if group is not None else (0, 0)
    return (
        f"group {key} is tried as a whole: {n_placed} of its {n_all} pods are placed; what is said here is about this pod alone"
    )


def _ignored_group(pod: PodView) -> str:
    """Return why a group that the pod names is ignored; empty if it names none."""
    named = pod.pod.spec.scheduling_group
    if named is not None and named.pod_group_name:
        remedy = "--feature-gates GenericWorkload=true switches it on"
        return f"PodGroup {named.pod_group_name} is ignored: the feature gate GenericWorkload is off; {remedy}"
    label = next((key for key in (COSCHEDULING_LABEL, COSCHEDULING_LABEL_OLD) if pod.labels.get(key)), "")
    return f"the label {label}={pod.labels[label]} is ignored: no profile enables Coscheduling" if label else ""


def _claims(engine: EngineState, profile: Profile, pod: PodView) -> list[dict[str, Any]]:
    """Return the pod's resource claims, and how many nodes have such devices."""
    plugin = next((each for each in profile.plugins if isinstance(each, DynamicResources)), None)
    if plugin is None:
        return []
    return [
        {
            "claim": each.claim,
            "request": each.request,
            "deviceClass": each.device_class,
            "nodeCount": each.n_nodes,
            "freeNodeCount": each.n_free_nodes,
            "examples": each.examples,
            "text": each.text,
        }
        for each in plugin.offers(pod, engine.store.snapshot())
    ]


def _now(now: Explanation, pod: Pod) -> dict[str, Any]:
    document: dict[str, Any] = {
        "nodeCount": now.n_nodes,
        "feasibleCount": now.n_feasible,
        "wouldSay": now.message,
        "wouldGoTo": now.node,
        "refusals": [
            {"plugin": r.plugin, "reason": r.reason, "count": r.count, "helpsToEvict": r.helps_to_evict, "examples": r.examples}
            for r in now.refusals
        ],
        "ranking": [{"node": n.node, "total": n.total, "byPlugin": n.by_plugin} for n in now.ranking],
        "advice": [
            {
                "kind": a.kind,
                "text": a.text,
                "plugin": a.plugin,
                "nodeCount": a.n_nodes,
                "examples": a.examples,
                **({"change": a.change} if a.change else {}),
                **({"patches": patches} if (patches := patches_of(a, pod)) else {}),
            }
            for a in now.suggestions
        ],
        "wakesOn": [{"plugin": each.plugin, "events": each.events, "text": each.text} for each in now.wakes],
    }
    if now.has_failed:
        document["failure"] = now.message
    if now.ever is not None:
        document["ever"] = {
            "fits": now.ever.n_open > 0,
            "largeEnoughCount": now.ever.n_large,
            "openCount": now.ever.n_open,
            "text": now.ever.text,
        }
    if now.preemption_result is not None:
        document["preemption"] = _preemption(now.preemption, now.preemption_result)
    return document


def _preemption(found: Preemption | None, problem: str) -> dict[str, Any]:
    if found is None:
        return {"helps": False, "text": problem}
    victims = [{"pod": victim.key, "priority": victim.priority} for victim in found.victims[:_MOST_VICTIMS]]
    return {
        "helps": True,
        "node": found.node_name,
        "victimCount": len(found.victims),
        "victims": victims,
        "budgetsBroken": found.violations,
    }


def state_of(engine: EngineState, pod: PodView) -> str:
    """Return the state of a pod as one word."""
    if is_finished(pod.pod):
        return FINISHED
    if pod.node_name:
        return PLACED
    if pod.pod.spec.scheduler_name not in engine.profiles:
        return NOT_OURS
    if pod.pod.metadata.deletion_timestamp is not None:
        return LEAVING
    # The queue may not have asked the gates since the pod changed, so a pod counts as gated only if a gate refuses it now.
    entry = engine.queue.find(pod.key)
    gated = entry.is_gated if entry is not None else bool(pod.pod.spec.scheduling_gates)
    return GATED if gated and not gate_of(engine, pod).is_success else PENDING


def condition_of(pod: PodView) -> str:
    """Return the message of the pod's PodScheduled condition if it is False; otherwise an empty text."""
    condition = next((c for c in pod.pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), None)
    return condition.message if condition is not None else ""


def requests_of(pod: PodView) -> dict[str, str]:
    """Return a pod's requests, formatted for people."""
    names = pod.template.interners.resources.values
    return {names[i]: amount_text(names[i], amount) for i, amount in pod.requests if amount}
