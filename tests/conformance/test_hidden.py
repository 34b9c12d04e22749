"""Golden cases with their names hidden are decided as before: volumes, device claims, budgets and all that refers to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.framework.verdicts import Placed
from kubesched.tools.conformance.cases import Cluster, decide, read_cases
from kubesched.tools.snapshots.anonymizing import hide_names
from kubesched.tools.snapshots.captured import Captured

FAMILIES = ("volumes", "dra", "preemption", "nodeaffinity")
CASES = [
    case
    for family in FAMILIES
    for _, case in read_cases([Path(__file__).with_name(f"{family}.jsonl.gz")])
    if not case.get("config") and "error" not in case["expected"]
]


def decided(cluster: Captured, pods: list[Pod], preempts: bool) -> list[dict[str, Any]]:
    scene = Cluster([], version=(1, 36))
    for obj in cluster.objects:
        scene.put(obj)
    found = []
    for each in pods:
        pod = scene.store.view(each)
        profile = scene.profile(pod)
        said, made = decide(scene, profile, pod, preempts=preempts)
        found.append(said)
        if made is not None and isinstance(made.decision, Placed):
            booked = scene.store.assume(pod, made.decision.node_name)
            profile.reserve(booked, made.decision.node_name, made.state)
    return found


def under(names: dict[str, str], said: dict[str, Any]) -> dict[str, Any]:
    """Return a decision under pseudonyms, without the texts in which names may stand."""

    def name(word: str) -> str:
        return "/".join(names.get(part, part) for part in word.split("/"))

    preemption = said.get("preemption") or {"node": "", "victims": []}
    return {
        "pod": name(said["pod"]),
        "decision": name(said.get("decision", "")),
        "failed": "error" in said,
        "feasible": sorted(map(name, said.get("feasible", ()))),
        "scores": {name(node): scores for node, scores in said.get("scores", {}).items()},
        "rejected": {name(node): (status["code"], status["plugin"]) for node, status in said.get("rejected", {}).items()},
        "preemption": (name(preemption["node"]), sorted(map(name, preemption["victims"]))),
    }


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_hidden_case_is_decided_alike(case: dict[str, Any]) -> None:
    objects = [codec.decode(dict(raw)) for raw in case["objects"]]
    pods = [codec.convert(raw, Pod) for raw in case["pods"]]
    hidden, names = hide_names(Captured(0.0, [*objects, *pods]))
    n, preempts = len(objects), bool(case.get("preempt"))
    wanted = [under(names, said) for said in decided(Captured(0.0, objects), pods, preempts)]
    assert [under({}, said) for said in decided(Captured(0.0, hidden.objects[:n]), hidden.objects[n:], preempts)] == wanted
