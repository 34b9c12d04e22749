"""Golden cases with answers remembered per pod class: each pod is decided plainly and from memory, as one of its class and as
one that is like no other.

The plain way is compared with the recording elsewhere; here the ways are compared with each other, on a cluster that
changes with every pod that is placed, so that memory is built, repaired and used.
"""

from __future__ import annotations

from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache, Key
from kubesched.scheduler.framework.inputs import UNLIKE, own_inputs
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable
from kubesched.tools.conformance.cases import Case, Cluster, Difference

_REPEATS = 3
"""How often each pod is tried, under other names: the second time from memory."""


class UnlikeOnly(EquivalenceCache):
    """Takes every pod for one that is like no other, also the second time."""

    def find(self, pod: PodView, nodes: Snapshot) -> Key:
        return pod.template.node_constraints, own_inputs(pod, nodes.objects) | UNLIKE


def memories(profile: Profile) -> tuple[EquivalenceCache, ...]:
    """Return every way to remember; each must lead to the plain decision."""
    return EquivalenceCache(profile), UnlikeOnly(profile)


def run_decision_case_from_memory(case: Case) -> list[Difference]:
    """Return where a decision from memory differs from one computed anew."""
    try:
        cluster = Cluster.of(case)
    except SchedulerError:
        return []
    memos = {name: memories(profile) for name, profile in cluster.profiles.items()}
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
            for memo in memos[profile.name]:
                expected, found = said(plain), said(attempt(pod, cluster.store.snapshot(), profile, rules, memo))
                if expected != found:
                    where = f"{case['name']} {pod.key}"
                    differences.append(Difference(where, f"from memory, {type(memo).__name__}", expected, found))
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
