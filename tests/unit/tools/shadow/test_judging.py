"""A live scheduler's placements, judged on the states that it may have seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod, PodCondition, PodResourceClaim
from kubesched.kube.values.well_known import SELECTED_NODE
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import default_configuration, registry_with
from kubesched.scheduler.engine.deciding.agreement import Agreement
from kubesched.testing import node, pod
from kubesched.testing.fakes import FakeClock
from kubesched.tools.shadow import history
from kubesched.tools.shadow.history import HELD_BACK
from kubesched.tools.shadow.judging import PROMISED, RACE, Judge, Judged, Settings
from kubesched.tools.shadow.report import Report
from kubesched.tools.simulation.replay import replay
from kubesched.tools.snapshots.captured import read_captured

ASKS = {"cpu": "1", "memory": "8Gi"}
SOME = {"cpu": "200m", "memory": "1Gi"}
REFUSED = (PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
"""What a pod has for which an attempt has failed."""
ALMOST_ALL = {"cpu": "3", "memory": "24Gi"}


class Cluster:
    """A cluster that a judge follows, and its versions."""

    def __init__(self, *listed: Any, window_seconds: float = 2.0, control: float = 0.0) -> None:
        self.clock = FakeClock()
        self.told: list[Judged] = []
        self.kept: list[list[bytes]] = []
        gates, registry = config.Gates.defaults(), registry_with()
        configuration = default_configuration(gates, registry)
        settings = Settings(configuration, gates, registry, window_seconds=window_seconds, control=control)
        self.judge = Judge(settings, self.tell, self.clock)
        self.objects: dict[tuple[str, str], Any] = {}
        self.put(*listed)
        self.judge.begin()

    def tell(self, judged: Judged) -> None:
        self.told.append(judged)
        if judged.state is not None:
            self.kept.append(list(judged.state().lines(judged.document())))

    def put(self, *objects: Any) -> None:
        for obj in objects:
            key = (obj.kind, obj.key)
            old, self.objects[key] = self.objects.get(key), obj
            self.judge.deliver(obj.kind, old, obj)

    def drop(self, obj: Any) -> None:
        self.judge.deliver(obj.kind, self.objects.pop((obj.kind, obj.key)), None)

    def bind(self, name: str, to: str) -> None:
        waiting = self.objects["Pod", f"default/{name}"]
        self.put(msgspec.structs.replace(waiting, spec=msgspec.structs.replace(waiting.spec, node_name=to)))

    def nominate(self, name: str, to: str, *, preempts: bool = True) -> None:
        """Write the node that a pod may expect: after a preemption with why it waits, otherwise alone."""
        waiting = self.objects["Pod", f"default/{name}"]
        status = msgspec.structs.replace(waiting.status, nominated_node_name=to, conditions=REFUSED if preempts else ())
        self.put(msgspec.structs.replace(waiting, status=status))

    def wait(self, seconds: float) -> None:
        self.clock.time += seconds
        self.judge.settle()

    def kinds(self) -> list[tuple[str, str, str]]:
        return [(judged.pod.partition("/")[2], str(judged.comparison.kind), judged.note) for judged in self.told]


def test_a_choice_that_is_ours_or_as_good_is_told_at_once() -> None:
    cluster = Cluster(node("n1"), node("n2"))
    cluster.put(pod("a", requests=ASKS), pod("b", requests=ASKS))
    cluster.bind("a", "n1")
    cluster.bind("b", "n2")
    assert {(name, note) for name, _, note in cluster.kinds()} == {("a", ""), ("b", "")}
    assert cluster.kinds()[0][1] in ("same", "tie") and cluster.kinds()[1][1] == "same"


def test_a_worse_choice_is_told_when_the_window_is_over() -> None:
    cluster = Cluster(node("n1"), node("n2"), pod("old", on="n1", requests=ASKS))
    cluster.put(pod("a", requests=ASKS))
    cluster.bind("a", "n1")
    cluster.wait(1.9)
    assert cluster.told == []
    cluster.wait(0.2)
    assert cluster.kinds() == [("a", "worse", "")]
    found = cluster.told[0].comparison
    assert (found.chosen, found.ours, set(found.by_plugin)) == ("n1", "n2", {"NodeResourcesFit"})


def test_an_infeasible_choice_is_told_with_who_refuses_it() -> None:
    cluster = Cluster(node("n1"), node("n2", cordoned=True))
    cluster.put(pod("a"))
    cluster.bind("a", "n2")
    cluster.judge.finish()
    assert cluster.kinds() == [("a", "infeasible", "")]
    assert cluster.told[0].comparison.refused_by == "NodeUnschedulable"


def test_bindings_that_arrive_in_another_order_than_they_were_decided_are_a_race() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("first", requests=ALMOST_ALL), pod("second", requests=ALMOST_ALL))
    cluster.bind("second", "n2")
    cluster.wait(0.5)
    cluster.bind("first", "n1")
    cluster.wait(3.0)
    assert sorted(cluster.kinds()) == [("first", "same", ""), ("second", "same", RACE)]
    assert cluster.told[-1].document()["stateSeen"] == "with 1 of its placements that arrived later"


def test_a_binding_that_arrives_too_late_excuses_nothing() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"), window_seconds=0.25)
    cluster.put(pod("first", requests=ALMOST_ALL), pod("second", requests=ALMOST_ALL))
    cluster.bind("second", "n2")
    cluster.wait(0.5)
    cluster.bind("first", "n1")
    cluster.wait(3.0)
    assert ("second", "worse", "") in cluster.kinds()


def test_bindings_that_overtake_many_others_are_put_in_the_order_of_the_queue() -> None:
    names = [f"{number:02}" for number in range(24)]
    sizes = [f"{16_000 - 400 * number}m" for number in range(24)]
    cluster = Cluster(*(node(f"n{name}", cpu=cpu) for name, cpu in zip(names, sizes, strict=True)))
    cluster.put(*(pod(f"p{name}", requests=ALMOST_ALL) for name in names))
    for name in reversed(names):  # each took the largest node that was left, and they are told the other way round
        cluster.bind(f"p{name}", f"n{name}")
    cluster.wait(3.0)
    assert {kind for _, kind, _ in cluster.kinds()} <= {"same", "tie"} and len(cluster.told) == 24


def test_a_pod_decided_before_another_and_bound_after_it_is_a_race() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("slow", requests=ASKS), pod("quick", requests=ALMOST_ALL))
    cluster.bind("quick", "n1")  # decided when "slow", which is small, was on n1 already
    cluster.bind("slow", "n1")
    cluster.wait(3.0)
    assert ("slow", "same", RACE) in cluster.kinds()


def of_sizes(*cpus: str) -> list[Any]:
    """Return nodes of which the first is the best, and so on."""
    return [node(f"n{number}", cpu=cpu) for number, cpu in enumerate(cpus, 1)]


def test_a_less_important_pod_waits_for_all_who_came_until_its_turn() -> None:
    cluster = Cluster(*of_sizes("16", "14", "12", "10", "8"))
    cluster.put(pod("low", priority=-9, requests=ALMOST_ALL))
    cluster.put(*(pod(f"p{number}", requests=ALMOST_ALL) for number in (1, 2, 3, 5)))
    cluster.bind("low", "n4")  # "p5" came when "low" was decided already
    for number in (1, 2, 3, 5):
        cluster.bind(f"p{number}", f"n{number}")
    cluster.wait(3.0)
    assert ("low", "same", RACE) in cluster.kinds() and {kind for _, kind, _ in cluster.kinds()} <= {"same", "tie"}


def test_a_pod_that_was_refused_before_may_have_been_decided_earlier_than_it_was_told() -> None:
    cluster = Cluster(*of_sizes("16", "14"))
    cluster.put(pod("again", conditions=REFUSED, requests=ALMOST_ALL), pod("a", requests=ALMOST_ALL))
    cluster.bind("a", "n2")
    cluster.bind("again", "n1")
    cluster.wait(3.0)
    assert ("a", "same", RACE) in cluster.kinds()


def test_with_a_decision_its_devices_change_sides() -> None:
    cluster = Cluster(*of_sizes("64", "8"), a_device_class(), *(gpu_of(name) for name in ("n1", "n2")))
    cluster.put(a_device_claim("again"), a_device_claim("a"))
    cluster.put(with_device(pod("again", conditions=REFUSED, requests=SOME)), with_device(pod("a", requests=SOME)))
    for name, to in (("a", "n2"), ("again", "n1")):
        cluster.put(a_device_claim(name, to))
        cluster.bind(name, to)
    cluster.wait(3.0)
    assert ("a", "same", RACE) in cluster.kinds(), "n1 has room for both, but one device"


def with_device(waiting: Pod) -> Pod:
    claims = (PodResourceClaim(name="gpu", resource_claim_name=waiting.metadata.name),)
    return msgspec.structs.replace(waiting, spec=msgspec.structs.replace(waiting.spec, resource_claims=claims))


def a_device_class() -> Any:
    return codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}})


def gpu_of(node_name: str) -> Any:
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node_name, "pool": pool, "devices": [{"name": "gpu-0"}]}
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node_name}, "spec": spec}
    return codec.decode(raw)


def a_device_claim(name: str, node_name: str = "") -> Any:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    raw: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-claim-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    if node_name:
        given = {"request": "gpu", "driver": "gpu.example.com", "pool": node_name, "device": "gpu-0"}
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
        raw["status"] = {
            "allocation": {"devices": {"results": [given]}, "nodeSelector": {"nodeSelectorTerms": [term]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": pod(name).metadata.uid}],
        }
    return codec.decode(raw)


def test_claims_may_be_told_to_be_gone_before_their_pods_come() -> None:
    """Each kind has a watch of its own, and where cores are scarce one of them may be seconds behind another."""
    cluster = Cluster(*of_sizes("64", "8"), a_device_class(), gpu_of("n1"), late_class())
    cluster.put(a_device_claim("a"), a_device_claim("a", "n1"), a_claim())
    cluster.drop(a_device_claim("a"))
    cluster.drop(a_claim())
    cluster.put(with_device(pod("a", requests=SOME)))
    cluster.put(pod("v", requests=SOME, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
    cluster.bind("a", "n1")
    cluster.bind("v", "n1")
    assert [(name, kind in ("same", "tie"), note) for name, kind, note in cluster.kinds()] == [("a", True, ""), ("v", True, "")]


def test_what_was_not_read_and_a_less_important_pod_before_may_come_together() -> None:
    cluster = Cluster(*of_sizes("16", "14", "8"), pod("old", on="n1", requests={"cpu": "9", "memory": "24Gi"}))
    cluster.put(pod("low", priority=-9, requests=ALMOST_ALL), pod("a", requests=ALMOST_ALL))
    cluster.drop(pod("old"))
    cluster.bind("a", "n3")  # "old" was on n1 still, and "low" on n2 already
    cluster.bind("low", "n2")
    cluster.wait(3.0)
    assert ("a", "same", RACE) in cluster.kinds()


def test_a_promise_to_a_pod_that_went_may_not_have_been_forgotten_yet() -> None:
    high = pod("high", priority=9, requests=ALMOST_ALL)
    cluster = Cluster(*of_sizes("4", "3900m"), high)
    cluster.nominate("high", "n1")
    cluster.put(pod("a", requests=ALMOST_ALL))
    cluster.drop(high)
    cluster.bind("a", "n2")
    cluster.wait(3.0)
    assert cluster.kinds() == [("a", "same", RACE)]


UNSEEN: dict[str, Callable[[Cluster], None]] = {
    "a pod went": lambda cluster: cluster.drop(pod("old")),
    "a node was uncordoned": lambda cluster: cluster.put(node("n3")),
    "a node came": lambda cluster: cluster.put(node("n4")),
}


@pytest.mark.parametrize("happen", UNSEEN.values(), ids=UNSEEN)
def test_what_the_scheduler_had_not_seen_is_a_race(happen: Callable[[Cluster], None]) -> None:
    cluster = Cluster(
        node("n1"),
        node("n2", cpu="3900m"),
        node("n3", cordoned=True),
        pod("old", on="n1", requests=ASKS),
    )
    cluster.put(pod("a", requests=ASKS))
    happen(cluster)
    cluster.bind("a", "n2")
    cluster.wait(3.0)
    assert cluster.kinds() == [("a", "same", RACE)]


def test_what_happened_to_other_pods_before_this_one_came_was_seen() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"), pod("old", on="n1", requests=ASKS))
    cluster.drop(pod("old"))
    cluster.put(pod("a", requests=ASKS))
    cluster.put(node("n3", cordoned=True))
    cluster.bind("a", "n2")
    cluster.wait(3.0)
    assert cluster.kinds() == [("a", "worse", "")]


def test_what_our_other_watches_see_a_moment_later_is_a_race() -> None:
    cluster = Cluster(node("n1"), node("n2", cordoned=True))
    cluster.put(pod("a", requests=ASKS))
    cluster.bind("a", "n2")
    cluster.put(node("n2", cpu="8"))
    cluster.wait(3.0)
    assert cluster.kinds() == [("a", "same", RACE)]


def test_the_newest_state_is_back_after_looking_into_the_past() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("old", on="n1", requests=ASKS), pod("a", requests=ASKS))
    cluster.bind("a", "n1")
    cluster.drop(pod("old"))
    cluster.put(node("n3"))
    cluster.judge.finish()
    store = cluster.judge.history.store
    assert (len(store.nodes), [(each.key, each.node_name) for each in store.pods()]) == (3, [("default/a", "n1")])


def test_a_pod_on_the_node_that_was_freed_for_it_keeps_a_promise() -> None:
    """It is not the best node any more when the victims are gone, and still the one to take."""
    cluster = Cluster(node("n1", cpu="2"), node("n2", cpu="2"))
    cluster.put(pod("low-1", on="n1", requests={"cpu": "1"}), pod("other-1", on="n1", requests={"cpu": "1"}))
    cluster.put(pod("low-2", on="n2", requests={"cpu": "2"}), pod("high", priority=9, requests={"cpu": "1"}))
    cluster.nominate("high", "n1")
    cluster.drop(pod("low-1"))
    cluster.drop(pod("low-2"))
    cluster.bind("high", "n1")
    assert cluster.kinds() == [("high", "same", PROMISED)]


def test_a_nominated_pod_is_in_the_way_of_others() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("high", priority=9, requests=ALMOST_ALL), pod("a", requests=ALMOST_ALL))
    cluster.nominate("high", "n1")
    cluster.bind("a", "n2")
    assert cluster.kinds() == [("a", "same", "")]


def test_a_pod_that_expects_its_node_is_counted_there_like_a_placed_one() -> None:
    """It waits for its volumes to be bound, say; the scheduler scores other pods beside it, as nobody is who preempts."""
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("slow", requests=ASKS), pod("a", requests=ASKS))
    cluster.nominate("slow", "n1", preempts=False)
    cluster.wait(20.0)
    cluster.bind("a", "n2")
    cluster.bind("slow", "n1")
    assert cluster.kinds() == [("a", "same", ""), ("slow", "same", "")]


def test_a_pod_that_expects_its_node_no_longer_is_not_counted() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("slow", requests=ASKS), pod("a", requests=ASKS))
    cluster.nominate("slow", "n1", preempts=False)
    cluster.nominate("slow", "")
    cluster.bind("a", "n1")
    assert cluster.kinds() == [("a", "same", "")]
    assert [each.key for each in cluster.judge.history.store.pods()] == ["default/a"]


def test_a_pod_whose_claim_got_its_node_is_counted_there_long_before_it_is_bound() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.put(late_class(), a_claim(), pod("slow", requests=ASKS, volumes=[volume]), pod("a", requests=ASKS))
    cluster.put(a_claim(annotations={SELECTED_NODE: "n1"}))
    cluster.wait(20.0)
    cluster.bind("a", "n2")
    cluster.put(a_claim(annotations={SELECTED_NODE: "n1", "touched": "again"}))
    cluster.bind("slow", "n1")
    assert cluster.kinds() == [("a", "same", ""), ("slow", "same", "")]


def a_claim(**metadata: Any) -> Any:
    raw = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "uid-data", **metadata},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }
    return codec.decode(raw)


def late_class() -> Any:
    return codec.decode(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "late"},
            "provisioner": "example.com/disks",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


@pytest.mark.parametrize(("chosen", "kind", "note"), [("n1", "same", ""), ("n2", "same", PROMISED)])
def test_a_pod_with_a_claim_is_decided_before_the_claim_got_its_node(chosen: str, kind: str, note: str) -> None:
    """Afterwards only one node would be left, and any choice would look right; that is told apart."""
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(late_class(), a_claim())
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.put(pod("a", requests=ASKS, volumes=[volume]))
    cluster.put(a_claim(annotations={SELECTED_NODE: chosen}))
    cluster.put(a_claim(annotations={SELECTED_NODE: chosen, "touched": "again"}))
    cluster.bind("a", chosen)
    cluster.wait(3.0)
    assert cluster.kinds() == [("a", kind, note)]


def test_what_is_to_be_looked_at_again_is_not_forgotten_however_far_we_are_behind() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"))
    cluster.put(pod("first", requests=ALMOST_ALL), pod("second", requests=ALMOST_ALL))
    cluster.bind("second", "n2")
    cluster.bind("first", "n1")
    cluster.clock.time += 100.0
    cluster.put(*(pod(f"p{number}") for number in range(300)))
    cluster.judge.settle()
    assert (("second", "same", RACE) in cluster.kinds(), cluster.judge.n_missed) == (True, 0)


def test_a_placement_whose_surroundings_are_forgotten_is_counted_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_CHANGES", 200)
    cluster = Cluster(node("n1"), node("n2"), pod("old", on="n1", requests=ASKS))
    cluster.put(pod("a", requests=ASKS))
    cluster.bind("a", "n1")
    cluster.clock.time += 100.0  # we are that far behind
    cluster.put(*(pod(f"p{number}") for number in range(300)))
    cluster.judge.settle()
    assert (cluster.told, cluster.judge.n_missed) == ([], 1)


def test_others_pods_and_those_that_were_missed_are_counted_and_not_judged() -> None:
    cluster = Cluster(node("n1"))
    cluster.put(pod("theirs", scheduler="other"), pod("missed"), pod("fixed", on="n1"))
    cluster.bind("theirs", "n1")
    cluster.judge.is_relisting = lambda: True
    cluster.bind("missed", "n1")
    assert (cluster.kinds(), cluster.judge.skipped, cluster.judge.n_missed) == ([], {"other": 1}, 1)


def test_a_difference_is_kept_as_a_state_from_which_replay_decides_as_we_did() -> None:
    cluster = Cluster(node("n1"), node("n2"), node("n3"), pod("old", on="n1", requests=ASKS))
    wanted = pod("a", requests={"cpu": "2"})
    cluster.put(pod("waits", requests={"cpu": "99"}), pod("high", priority=9, requests=ALMOST_ALL), wanted)
    cluster.nominate("high", "n2")
    cluster.bind("a", "n1")
    cluster.put(pod("later", on="n3", requests=ALMOST_ALL))
    cluster.judge.finish()
    (lines,) = cluster.kept
    told = msgspec.json.decode(lines[0])["shadow"]
    assert (told["chosen"], told["ours"], told["agreement"]) == ("n1", "n3", "worse")
    waiting = {each.metadata.name: each for each in read_captured(lines).of(Pod) if not each.spec.node_name}
    assert set(waiting) == {"a", "high"}
    assert [gate.name for gate in waiting["high"].spec.scheduling_gates] == [HELD_BACK]
    decided = {line["pod"]: line["note"] for line in replay(lines) if line["event"] == "Scheduled"}
    assert decided == {"default/a": "Successfully assigned default/a to n3"}


def test_the_report_counts_by_kind_and_by_plugin() -> None:
    cluster = Cluster(node("n1"), node("n2", cpu="3900m"), node("n3", cordoned=True))
    cluster.put(*(pod(name, requests=ASKS) for name in "abc"))
    for name, to in (("a", "n1"), ("b", "n1"), ("c", "n3")):
        cluster.wait(5.0)
        cluster.bind(name, to)
    cluster.judge.finish()
    report = Report(cluster.clock.time)
    report.judge = cluster.judge
    for judged in cluster.told:
        report.add(judged)
    found = report.document(cluster.clock.time + 7)
    assert found["agreement"] == {"same": 1, "tie": 0, "sampled": 0, "worse": 1, "infeasible": 1, "failed": 0}
    assert (found["judged"], found["seconds"], found["explainedPercent"], found["nodes"]) == (3, 7.0, 33.333, 3)
    assert found["byPlugin"]["NodeUnschedulable"] == {"infeasible": 1}
    worse = next(judged for judged in cluster.told if judged.comparison.kind is Agreement.WORSE)
    assert found["byPlugin"]["NodeResourcesFit"]["points"] == worse.comparison.by_plugin["NodeResourcesFit"]
    assert [each["pod"] for each in found["differences"]] == ["default/b", "default/c"]
    samples = {(s.name, *s.labels.values()): s.value for family in report.collect() for s in family.samples}
    assert samples["kubesched_shadow_placements_total", "default-scheduler", "worse", ""] == 1
    assert samples["kubesched_shadow_differences_total", "NodeUnschedulable", "infeasible"] == 1


def test_a_control_draws_nodes_by_lot_and_tells_how_many_would_pass() -> None:
    cluster = Cluster(node("n1"), node("n2"), node("n3", cordoned=True), control=1.0)
    cluster.put(pod("old", on="n1", requests=SOME))
    for number in range(12):
        cluster.wait(5.0)
        cluster.put(pod(f"p{number}", requests=SOME))
        cluster.bind(f"p{number}", "n2" if number % 2 == 0 else "n1")
    cluster.judge.finish()
    report = Report(cluster.clock.time)
    report.judge = cluster.judge
    for judged in cluster.told:
        report.add(judged)
    found = report.document(cluster.clock.time)
    assert (found["judged"], found["differences"]) == (12, []), "what was drawn is no difference"
    control = found["control"]
    assert control["drawn"] == 12 and control["foundOut"] > 6 and control["passedAsRaces"] == 0
    assert control["level"] + control["foundOut"] == 12 and control["passedPercent"] == 0.0
