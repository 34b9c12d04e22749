"""Golden cases of the family legacy: a policy or provider, a cluster, one pod, and what release 1.17 decided."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import INFO, Node, Pod, codec
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine import EngineHandle, FirstByName, Rules, attempt
from kubesched.scheduler.framework import Failed, Unschedulable
from kubesched.scheduler.legacy import Algorithm, Options, load_policy, profile_from_policy, profile_from_provider
from kubesched.scheduler.legacy.shared.pod_requests import as_placed
from kubesched.tools.conformance.cases import Case, Difference

TO_THE_LETTER = Options(to_the_letter=True)
"""Keeps the bugs of the release that was recorded."""


def run_legacy_case(case: Case) -> list[Difference]:
    """Build the old scheduler, decide the pod, and compare with what was recorded."""
    name, wanted = case["name"], case["expected"]
    try:
        found = _decide(case)
    except SchedulerError as error:
        found = {"error": str(error)}
    differences = []
    for what in ("error", "feasible", "totals", "fitError"):
        expected, got = wanted.get(what), found.get(what)
        if (expected or None) != (got or None):
            differences.append(Difference(name, what, expected, got))
    expected, got = wanted.get("rejected") or {}, found.get("rejected") or {}
    for node in sorted(expected.keys() | got.keys()):
        if Counter(expected.get(node, ())) != Counter(got.get(node, ())):
            differences.append(Difference(name, f"rejected {node}", expected.get(node), got.get(node)))
    return differences


def algorithm_of(case: Case) -> tuple[Store, Algorithm]:
    """Return the cluster of a case and the old scheduler to decide with."""
    store, handle = store_of(case)
    if "policy" in case:
        policy = load_policy(msgspec.json.encode(case["policy"]).decode())
        return store, profile_from_policy(policy, handle, options=TO_THE_LETTER)
    return store, profile_from_provider(case["provider"], handle, options=TO_THE_LETTER)


def _decide(case: Case) -> dict[str, Any]:
    store, algorithm = algorithm_of(case)
    pod = store.view(codec.convert(case["pods"][0], Pod))
    rules = Rules(FirstByName(), preempts=False, scores_single=True)
    made = attempt(pod, store.snapshot(), algorithm.profile, rules)
    if isinstance(made.decision, Failed):
        return {"error": made.decision.message}
    rows = made.feasible.nonzero()[0].tolist() if made.feasible is not None else []
    found: dict[str, Any] = {"feasible": sorted(made.nodes.name(row) for row in rows)}
    if made.verdicts is not None:
        found["rejected"] = {node: list(status.reasons) for node, status in made.verdicts.statuses().items()}
    if made.scores is not None:
        found["totals"] = {node: int(made.scores.total[made.nodes.row(node)]) for node in found["feasible"]}
    if isinstance(made.decision, Unschedulable):
        found["fitError"] = made.decision.message
    return found


def store_of(case: Case) -> tuple[Store, EngineHandle]:
    """Return the cluster of a case. A duplicate object is an error, as in the test API of the recorded release."""
    store = Store()
    seen: set[tuple[type, str, str]] = set()
    for raw in case["objects"]:
        obj = codec.decode(dict(raw))
        identity = (type(obj), obj.namespace, obj.name)
        if identity in seen:
            info = INFO[type(obj)]
            resource = f"{info.plural}.{info.group}" if info.group else info.plural
            raise SchedulerError(f'panic: {resource} "{obj.name}" already exists')
        seen.add(identity)
        if isinstance(obj, Node):
            store.put_node(obj)
        elif isinstance(obj, Pod):
            if obj.spec.node_name:
                store.put_pod(as_placed(obj, overhead=False))
        else:
            store.objects.put(obj)
    return store, EngineHandle(store.objects, config.Gates.defaults())
