"""Golden cases with answers remembered per pod class: each pod is decided twice, plainly and from memory.

The plain way is compared with the recording elsewhere; here the two ways are compared with each other, on a cluster that
changes with every pod that is placed, so that memory is built, repaired and used.
"""

from __future__ import annotations

from kubesched.api import codec
from kubesched.api.pod import Pod
from kubesched.engine.cycle import Attempt, Rules, attempt
from kubesched.engine.ties import SeededTies
from kubesched.errors import SchedulerError
from kubesched.framework.equivalence_cache import EquivalenceCache
from kubesched.framework.verdicts import Failed, Placed, Unschedulable
from kubesched.simulator.golden import Case, Cluster, Difference

_REPEATS = 3
"""How often each pod is tried, under other names: the second time from memory."""


def run_decision_case_from_memory(case: Case) -> list[Difference]:
    """Return where a decision from memory differs from one computed anew."""
    try:
        cluster = Cluster.of(case)
    except SchedulerError:
        return []
    memos = {name: EquivalenceCache(profile) for name, profile in cluster.profiles.items()}
    rules = Rules(SeededTies(1), cluster.queue.nominations, preempts=bool(case.get("preempt")))
    differences: list[Difference] = []
    for raw in case["pods"]:
        for repeat in range(_REPEATS):
            meta = {
                **raw["metadata"],
                "name": f"{raw['metadata']['name']}-{repeat}",
                "uid": f"{raw['metadata'].get('uid', raw['metadata']['name'])}-{repeat}",
            }
            pod = cluster.store.view(codec.convert({**raw, "metadata": meta}, Pod))
            profile = cluster.profile(pod)
            if not profile.pre_enqueue(pod).is_success:
                continue
            plain = attempt(pod, cluster.store.snapshot(), profile, rules)
            recalled = attempt(pod, cluster.store.snapshot(), profile, rules, memos[profile.name])
            expected, found = said(plain), said(recalled)
            if expected != found:
                differences.append(Difference(f"{case['name']} {pod.key}", "from memory", expected, found))
            if isinstance(plain.decision, Placed):
                booked = cluster.store.assume(pod, plain.decision.node_name)
                profile.reserve(booked, plain.decision.node_name, plain.state)
    return differences


def said(made: Attempt) -> dict[str, object]:
    decision = made.decision
    if isinstance(decision, Placed):
        return {"node": decision.node_name, "feasible": decision.feasible}
    if isinstance(decision, Unschedulable):
        return {"message": decision.message, "plugins": sorted(decision.diagnosis.unschedulable_plugins)}
    assert isinstance(decision, Failed)
    return {"error": decision.message}
