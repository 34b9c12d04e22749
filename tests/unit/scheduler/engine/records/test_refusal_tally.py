"""Who is said to have refused a node that several filters refuse, where answers are remembered."""

from __future__ import annotations

import msgspec

from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder, refusal_counts
from kubesched.scheduler.engine.records.refusal_tally import counted
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.testing import node, pod
from kubesched.tools.conformance.cases import Cluster

FEATURE = "UserNamespacesHostNetworkSupport"


def test_a_node_that_is_full_and_lacks_a_feature_is_refused_by_the_fit_also_for_pods_like_no_other() -> None:
    """NodeResourcesFit is asked for each of them, and stands before NodeDeclaredFeatures, whose answers are kept."""
    cluster = Cluster([], None, (1, 36))
    for name, cpu, features in (("a", "4", (FEATURE,)), ("b", "4", (FEATURE,)), ("full", "0", ()), ("old", "4", ())):
        cluster.store.put_node(node(name, cpu=cpu, features=features))
    (profile,) = cluster.profiles.values()
    rules = Rules(SeededTies(1), cluster.queue.nominations)
    recorder = DecisionRecorder(10, share=1e-9)
    recorder.attach(rules, recorder._clock)
    memo = EquivalenceCache(profile, waits_for_second=True)
    made: Attempt | None = None
    for i in range(1, 5):
        asking = pod(f"p{i}", requests={"cpu": f"{i}m"})
        spec = msgspec.structs.replace(asking.spec, host_network=True, host_users=False)
        view, nodes = cluster.store.view(msgspec.structs.replace(asking, spec=spec)), cluster.store.snapshot()
        made, plain = attempt(view, nodes, profile, rules, memo), attempt(view, nodes, profile, rules)
        refused = recorder.record_of(made).refused
        assert refused is None or counted(refused) == refusal_counts(plain)
    assert made is not None and made.ranking is not None and made.ranking.recalled is not None, "from memory in the end"
