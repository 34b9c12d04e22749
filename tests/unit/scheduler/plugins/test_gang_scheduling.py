"""GangScheduling point by point, and the books it counts with."""

from typing import Any

import msgspec
import pytest

from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod, PodSchedulingGroup
from kubesched.kube.api.workload import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from kubesched.scheduler.cluster import GroupKey, Groups, Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import Code, CycleState
from kubesched.scheduler.framework.grouping import GROUP_TURN, WORKLOAD, GroupTurn, workload_of
from kubesched.scheduler.plugins.gang_scheduling import GangScheduling
from kubesched.testing import check_plugin, node, pod

KEY = GroupKey(WORKLOAD, "default", "g")


def member(name: str, group: str = "g", **given: Any) -> Pod:
    plain = pod(name, **given)
    named = PodSchedulingGroup(pod_group_name=group)
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, scheduling_group=named))


def group(min_count: int | None, name: str = "g", namespace: str = "default") -> PodGroup:
    gang = GangSchedulingPolicy(min_count=min_count) if min_count is not None else None
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=gang)),
    )


class Waits:
    """A pod at Permit that remembers who allowed it."""

    def __init__(self) -> None:
        self.allowed: list[str] = []

    def allow(self, plugin: str) -> None:
        self.allowed.append(plugin)


class Bench:
    def __init__(self, *objects: Any) -> None:
        self.store = Store()
        self.store.groups.read_with([workload_of])
        self.activated: list[str] = []
        self.waiting: dict[str, Waits] = {}
        self.handle = EngineHandle(
            self.store.objects,
            groups=self.store.groups,
            waiting=self.waiting,  # type: ignore[arg-type]
            activate=lambda pods: self.activated.extend(p.name for p in pods),
        )
        self.plugin = GangScheduling(None, self.handle)
        self.store.put_node(node("n1"))
        for obj in objects:
            if isinstance(obj, Pod):
                self.store.groups.put(self.store.put_pod(obj) if obj.spec.node_name else self.store.view(obj))
            else:
                self.store.objects.put(obj)

    def permit(self, name: str, *, is_rehearsal: bool = False) -> Any:
        state = CycleState()
        state.write(GROUP_TURN, GroupTurn(KEY, is_rehearsal, frozenset({"uid-default-p1"})))
        return self.plugin.permit(self.store.assume(self.store.view(member(name)), "n1"), "n1", state)


GATED = [
    ("a pod of no group passes", [], pod("p"), None),
    ("the group is not there", [], member("p"), 'waiting for pods\'s pod group "g" to appear in scheduling queue'),
    (
        "the group is another namespace's",
        [group(1, namespace="other")],
        member("p"),
        'waiting for pods\'s pod group "g" to appear in scheduling queue',
    ),
    ("a group without a gang policy", [group(None)], member("p"), None),
    ("too few pods", [group(2)], member("p"), "waiting for minCount pods from a gang to appear in scheduling queue"),
    ("pods enough", [group(2), member("q")], member("p"), None),
    ("a running pod counts", [group(2), member("q", on="n1")], member("p"), None),
    (
        "another group's pod does not",
        [group(2), member("q", "other")],
        member("p"),
        "waiting for minCount pods from a gang to appear in scheduling queue",
    ),
]


@pytest.mark.parametrize(("objects", "asking", "expected"), [case[1:] for case in GATED], ids=[case[0] for case in GATED])
def test_pre_enqueue(objects: list[Any], asking: Pod, expected: str | None) -> None:
    bench = Bench(*objects, asking)
    status = bench.plugin.pre_enqueue(bench.store.view(asking))
    assert (status.message if status is not None else None) == expected
    assert status is None or status.code is Code.UNRESOLVABLE


def test_permit_holds_a_gang_until_enough_of_it_is_booked() -> None:
    bench = Bench(group(3), *(member(f"p{i}") for i in range(4)))
    status, seconds = bench.permit("p0")
    assert (status.code, status.message, seconds) == (Code.WAIT, "waiting for minCount pods from a gang to be scheduled", 300.0)
    assert bench.activated == ["p2", "p3"], "p1 is on its way in this turn"
    bench.waiting["uid-default-p0"] = first = Waits()
    bench.permit("p1")
    bench.waiting["uid-default-p1"] = second = Waits()
    assert first.allowed == []
    status, _ = bench.permit("p2")
    assert status.is_success
    assert first.allowed == second.allowed == ["GangScheduling"]


def test_a_rehearsal_leaves_no_trace() -> None:
    bench = Bench(group(2), member("p0"), member("p1"))
    bench.waiting["uid-default-p0"] = waits = Waits()
    assert bench.permit("p0", is_rehearsal=True)[0].code is Code.WAIT
    assert bench.permit("p1", is_rehearsal=True)[0].is_success
    assert bench.activated == [] and waits.allowed == []


def test_permit_of_others_and_of_groups_that_are_gone() -> None:
    bench = Bench(group(None), member("p0"))
    assert bench.permit("p0")[0].is_success
    assert bench.plugin.permit(bench.store.view(pod("x")), "n1", CycleState())[0].is_success
    bench = Bench(member("p0"))
    status, _ = bench.permit("p0")
    assert (status.code, status.message) == (
        Code.ERROR,
        'failed to get podGroup default/g: podgroup.scheduling.k8s.io "g" not found',
    )


def test_what_may_help() -> None:
    bench = Bench()
    mine = bench.store.view(member("p"))
    assert bench.plugin.sibling_came(mine, None, member("q"))
    assert not bench.plugin.sibling_came(mine, None, member("q", "other"))
    assert not bench.plugin.sibling_came(mine, None, member("q", namespace="other"))
    assert not bench.plugin.sibling_came(mine, None, pod("q"))
    assert bench.plugin.group_came(mine, None, group(1))
    assert not bench.plugin.group_came(mine, None, group(1, "other"))
    assert not bench.plugin.group_came(mine, None, group(1, namespace="other"))
    for count, helps in ((3, False), (2, True)):
        bench = Bench(group(count), member("p"), member("q"))
        assert bench.plugin.sibling_came(bench.store.view(member("p")), None, member("q")) is helps


def test_it_keeps_the_contract() -> None:
    check_plugin(GangScheduling, seed=1)


def test_the_books_follow_a_pod_from_the_queue_to_its_node_and_back() -> None:
    bench = Bench(member("p"), member("q"))
    books = bench.store.groups.get(KEY)
    assert books is not None
    pending = bench.store.view(member("p"))
    bench.store.assume(pending, "n1")
    assert (books.n_all, books.n_scheduled, list(books.unscheduled)) == (2, 1, ["uid-default-q"])
    newer = bench.store.view(member("p", gates=["held"]))
    bench.store.groups.put(newer)
    bench.store.forget(pending.uid)
    assert books.unscheduled["uid-default-p"] is newer, "the newest version comes back"
    bench.store.assume(newer, "n1")
    bench.store.groups.put(bench.store.put_pod(member("p", on="n1")))
    assert (list(books.assigned), list(books.assumed)) == (["uid-default-p"], [])
    assert [p.node_name for p in books.scheduled()] == ["n1"]
    for name in ("p", "q"):
        bench.store.groups.drop(bench.store.view(member(name)))
    assert bench.store.groups.get(KEY) is None


def test_a_pod_that_changes_its_group_leaves_the_old_one() -> None:
    groups, store = Groups(), Store()
    groups.read_with([lambda view: GroupKey("k", view.namespace, view.labels["g"]) if "g" in view.labels else None])
    groups.put(store.view(pod("p", labels={"g": "one"})))
    groups.put(store.view(pod("p", labels={"g": "two"})))
    assert groups.get(GroupKey("k", "default", "one")) is None
    assert groups.get(GroupKey("k", "default", "two")).n_all == 1  # type: ignore[union-attr]
    groups.put(store.view(pod("p")))
    assert groups.get(GroupKey("k", "default", "two")) is None


def test_pods_that_were_placed_before_anybody_asked_are_counted() -> None:
    store = Store()
    store.put_node(node("n1"))
    store.put_pod(member("p", on="n1"))
    store.groups.read_with([workload_of], store.pods())
    found = store.groups.get(KEY)
    assert found is not None and found.n_scheduled == 1
