"""Making room for pod groups in both releases: who goes, who waits for which node, and what everybody is told."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from group_scene import Scene, composite, gang, member, trio, two_groups

from kubesched.kube.api.meta import LabelSelector, ObjectMeta
from kubesched.kube.api.node import Taint
from kubesched.kube.api.pod import PodCondition
from kubesched.kube.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubesched.kube.api.workload import DisruptionMode, Nothing, PodGroup
from kubesched.scheduler.framework import SUCCESS, Plugin, PostFiltered
from kubesched.scheduler.framework.verdicts import Nomination
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import run_virtually

GATES = "GenericWorkload=true"
COMPOSITE = f"{GATES},TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"
OF_1_36 = f"{GATES},GangScheduling=true,WorkloadAwarePreemption=true"
ZONE = "topology.kubernetes.io/zone"
AS_ONE = DisruptionMode(all=Nothing())


def test_1_36_makes_room_for_groups_behind_a_gate_of_its_own() -> None:
    def deleted(gates: str) -> list[str]:
        async def main() -> list[str]:
            lows = [pod(f"low{i}", on=f"n{i}", priority=1, requests={"cpu": "1"}) for i in (1, 2)]
            nodes = [node(f"n{i}", cpu="1") for i in (1, 2)]
            made = Scene(*nodes, *lows, gang(min_count=3, priority=10), *trio(priority=10), gates=gates)
            await made.settle(5)
            return made.deleted

        return run_virtually(main())

    plain = "GenericWorkload=true,GangScheduling=true"
    assert deleted(plain) != [], "single members evict although the group does not fit"
    assert deleted(f"{plain},WorkloadAwarePreemption=true") == []


def test_members_that_would_fit_are_told_in_1_36_what_permit_says() -> None:
    async def main() -> None:
        gates = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
        made = Scene(node("n1", cpu="2"), gang(min_count=3), *trio(), gates=gates)
        await made.settle(1)
        assert made.bound == {}
        texts = [made.said(f"g{i}") for i in (1, 2, 3)]
        waits = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"
        assert sum(text.startswith(waits) for text in texts) == 2
        assert "ResourceClaims" not in str(made.conditions)

    run_virtually(main())


@pytest.mark.parametrize(
    "release, gates, victims",
    [
        pytest.param((1, 37), GATES, ["low", "lower"], id="1.37: members stay where they went while pods are spared"),
        pytest.param(
            (1, 36),
            f"{GATES},GangScheduling=true,WorkloadAwarePreemption=true",
            ["lower"],
            id="1.36: the whole group is tried again beside each pod that might be spared",
        ),
    ],
)
def test_who_is_spared(release: tuple[int, int], gates: str, victims: list[str]) -> None:
    async def main() -> list[str]:
        second_best = Taint(key="k", effect="PreferNoSchedule")
        nodes = [node("n1", cpu="2"), node("n2", cpu="2", taints=[second_best])]
        above = pod("above", on="n1", priority=100, requests={"cpu": "1"})
        low = pod("low", on="n1", priority=5, requests={"cpu": "1"})
        lower = pod("lower", on="n2", priority=1, requests={"cpu": "2"})
        group = gang(min_count=2, priority=10)
        made = Scene(*nodes, above, low, lower, group, *trio(2, priority=10), gates=gates, release=release)
        await made.settle(5)
        return sorted(made.deleted)

    assert run_virtually(main()) == victims


class SlowToGo(Scene):
    """A cluster in which pods take their time to go."""

    async def delete_pod(self, view: Any) -> None:
        self.deleted.append(view.name)
        known = self.known[type(view.pod), view.key]
        metadata = msgspec.structs.replace(known.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        target = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
        self.put(
            msgspec.structs.replace(
                known, metadata=metadata, status=msgspec.structs.replace(known.status, conditions=(target,))
            )
        )

    def nominated(self, *names: str) -> list[str]:
        """Return the nodes that pods wait for."""
        return [self.statuses.get(name, {}).get("nominatedNodeName") or "" for name in names]


BEFORE_AND_SINCE = pytest.mark.parametrize("release, gates", [((1, 36), OF_1_36), ((1, 37), GATES)], ids=["1.36", "1.37"])


def slow(
    *objects: Any, gates: str, release: tuple[int, int] = (1, 37), then: Callable[[Scene], None] | None = None
) -> SlowToGo:
    """Return what became of objects whose victims take their time."""

    async def main() -> SlowToGo:
        made = SlowToGo(*objects, gates=gates, release=release)
        await made.settle(5)
        if then is not None:
            then(made)
            await made.settle(30)
        return made

    return run_virtually(main())


def budget(by: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=by, namespace="default", uid=f"uid-{by}"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"by": by})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


WHY_NOT = [
    ("it does not fit even then", 1, {}, {}, "pod group is unschedulable"),
    ("nobody has a lower priority", 10, {}, {}, "No preemption victims found for incoming preemptor"),
    ("it may not", 1, {"preemption_policy": "Never"}, {}, "not eligible due to preemptionPolicy=Never."),
    (
        "it lies in one domain",
        1,
        {},
        {"topology": ZONE},
        "workload aware preemption is not supported for pod groups with scheduling constraints",
    ),
]


@pytest.mark.parametrize("priority, given, grouped, text", [case[1:] for case in WHY_NOT], ids=[case[0] for case in WHY_NOT])
def test_a_group_of_1_36_is_told_first_that_it_is_unschedulable_and_then_why_nobody_goes(
    priority: int, given: dict[str, Any], grouped: dict[str, Any], text: str
) -> None:
    low = pod("low", on="n1", priority=priority, requests={"cpu": "1"})
    group = gang(min_count=3, priority=10, **grouped)
    made = slow(node("n1", cpu="2"), low, group, *trio(priority=10, **given), gates=OF_1_36, release=(1, 36))
    assert made.deleted == []
    assert made.conditions[-1]["message"] == f"pod group is unschedulable, {text}"


def test_who_was_not_looked_at_in_1_36_is_told_so_as_well() -> None:
    nowhere = gang(min_count=3, priority=10, topology=ZONE)
    gates = f"{OF_1_36},TopologyAwareWorkloadScheduling=true"
    made = slow(node("n1"), nowhere, *trio(priority=10), gates=gates, release=(1, 36))
    why = "workload aware preemption is not supported for pod groups with scheduling constraints"
    assert made.said("g1") == made.conditions[-1]["message"] == f"no feasible placements found, {why}"


@BEFORE_AND_SINCE
def test_who_waits_for_which_node(release: tuple[int, int], gates: str) -> None:
    low = pod("low", on="n2", priority=1, requests={"cpu": "1"})
    nodes = [node("n1", cpu="1"), node("n2", cpu="1")]
    made = slow(*nodes, low, gang(min_count=2, priority=10), *trio(2, priority=10), gates=gates, release=release)
    assert made.deleted == ["low"]
    assert sorted(made.nominated("g1", "g2")) == (["", "n1"] if release == (1, 36) else ["n1", "n2"])


@BEFORE_AND_SINCE
def test_who_waits_for_victims_looks_for_no_more_since_1_37(release: tuple[int, int], gates: str) -> None:
    low = pod("low", on="n1", priority=2, requests={"cpu": "1"})
    group = [gang(min_count=1, priority=10), *trio(1, priority=10)]
    above = pod("above", on="n1", priority=20)

    def then(made: Scene) -> None:
        made.put(pod("lower", on="n2", priority=1, requests={"cpu": "1"}), node("n2", cpu="1"))
        made.drop(above)  # which has the group tried again, and is of no use to it

    made = slow(node("n1", cpu="1"), low, above, *group, gates=gates, release=release, then=then)
    assert made.deleted == (["low", "lower"] if release == (1, 36) else ["low"])


@BEFORE_AND_SINCE
@pytest.mark.parametrize("as_one", [False, True])
def test_whose_priority_counts_for_pods_of_a_group(release: tuple[int, int], gates: str, as_one: bool) -> None:
    mode: Any = ("PodGroup" if release == (1, 36) else AS_ONE) if as_one else None
    above = gang("above", min_count=1, priority=20, disruption_mode=mode)
    placed = member("a1", "above", on="n1", priority=1, requests={"cpu": "1"})
    made = slow(
        node("n1", cpu="1"), above, placed, gang(min_count=1, priority=10), *trio(1, priority=10), gates=gates, release=release
    )
    assert made.deleted == (["a1"] if release == (1, 36) and not as_one else [])


@BEFORE_AND_SINCE
def test_since_when_a_group_that_goes_as_one_counts(release: tuple[int, int], gates: str) -> None:
    mode: Any = "PodGroup" if release == (1, 36) else AS_ONE
    seconds = {"x1": 3, "x2": 1, "y1": 2, "y2": 2}
    placed = [
        member(name, name[0], on="n1", priority=1, requests={"cpu": "1"}, start_time=f"2026-01-01T00:00:0{at}Z")
        for name, at in seconds.items()
    ]
    groups = [gang(name, min_count=1, priority=1, disruption_mode=mode) for name in ("x", "y")]
    group = [gang(min_count=2, priority=10), *trio(2, priority=10)]
    made = slow(node("n1", cpu="4"), *groups, *placed, *group, gates=gates, release=release)
    assert sorted(made.deleted) == (["x1", "x2"] if release == (1, 36) else ["y1", "y2"])


@BEFORE_AND_SINCE
def test_how_a_group_that_goes_as_one_is_charged_to_budgets(release: tuple[int, int], gates: str) -> None:
    """The first pod of the group breaks a budget. Whether its second one uses up the other budget says whether that one is
    broken by the pod of lowest priority, which is spared early then."""
    mode: Any = "PodGroup" if release == (1, 36) else AS_ONE
    asks: dict[str, Any] = {"on": "n1", "requests": {"cpu": "1"}}
    placed = [
        member("x1", "x", priority=3, labels={"by": "a"}, **asks),
        member("x2", "x", priority=3, labels={"by": "b"}, **asks),
        pod("z", priority=2, **asks),
        pod("y", priority=1, labels={"by": "b"}, **asks),
    ]
    groups = [gang("x", min_count=1, priority=3, disruption_mode=mode), gang(min_count=1, priority=10)]
    budgets = [budget("a", allowed=0), budget("b", allowed=1)]
    made = slow(node("n1", cpu="4"), *budgets, *groups, *placed, *trio(1, priority=10), gates=gates, release=release)
    assert made.deleted == (["y"] if release == (1, 36) else ["z"])


WITHOUT_PREEMPTION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {POINT: {disabled: [{name: DefaultPreemption}]}}
"""


@pytest.mark.parametrize(
    ("point", "victims", "told"),
    [
        (
            "multiPoint",
            [],
            "pod group is unschedulable, default preemption plugin is not registered, workload aware preemption is disabled",
        ),
        ("postFilter", ["low"], "pod group is unschedulable"),
    ],
)
def test_1_36_makes_room_for_groups_wherever_default_preemption_is_enabled(point: str, victims: list[str], told: str) -> None:
    async def play() -> None:
        made = Scene(
            node("n1", cpu="2"),
            pod("low", on="n1", priority=1, requests={"cpu": "2"}),
            gang(min_count=2, priority=10),
            *trio(2, priority=10),
            gates=OF_1_36,
            release=(1, 36),
            configuration=WITHOUT_PREEMPTION.replace("POINT", point),
        )
        await made.settle(1)
        assert (made.deleted, made.conditions[-1]["message"]) == (victims, told)

    run_virtually(play())


class MakesRoom(Plugin):
    """Knows another way to make room on a node than evictions."""

    def post_filter(self, pod: Any, nodes: Any, state: Any, diagnosis: Any, profile: Any) -> PostFiltered:
        return PostFiltered(SUCCESS, nomination=Nomination("n2"))


WITH_ANOTHER_WAY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {postFilter: {enabled: [{name: MakesRoom}]}}
"""


@pytest.mark.parametrize(
    ("priority", "victims", "told"), [(20, [], ", No preemption victims found for incoming preemptor"), (1, ["other"], "")]
)
def test_a_group_of_1_36_that_waits_for_room_already_looks_for_victims_too(
    priority: int, victims: list[str], told: str
) -> None:
    async def play() -> None:
        made = SlowToGo(
            node("n1", cpu="1"),
            node("n2", cpu="1"),
            pod("other", on="n2", priority=priority, requests={"cpu": "1"}),
            gang(min_count=2, priority=10),
            *trio(2, priority=10),
            gates=OF_1_36,
            release=(1, 36),
            configuration=WITH_ANOTHER_WAY,
            plugins=(MakesRoom,),
        )
        await made.settle(0.5)
        waits = "pod group is unschedulable, pod group is waiting for preemption to complete"
        assert (made.deleted, made.conditions[-1]["message"]) == (victims, waits + told)
        assert sorted(made.nominated("g1", "g2")) == ["n1", "n2"]

    run_virtually(play())


def test_a_group_of_1_36_that_went_while_its_pods_waited_is_said_to_be_missing() -> None:
    async def play() -> None:
        full = pod("low", on="n1", priority=1, requests={"cpu": "2"})
        made = Scene(node("n1", cpu="2"), full, gang(), *trio(2, priority=10), gates=OF_1_36, release=(1, 36))
        made.engine.take_in()
        made.engine.store.objects.drop(PodGroup, "g", "default")
        await made.settle(1)
        assert 'failed to get pod group object: podgroup.scheduling.k8s.io "g" not found' in made.said("g1")
        assert made.deleted == []

    run_virtually(play())


def test_victims_are_told_that_they_go_for_a_group() -> None:
    low = pod("low", on="n1", priority=1, requests={"cpu": "3"})
    made = slow(node("n1", cpu="3"), low, gang(min_count=3, priority=10), *trio(priority=10), gates=GATES)
    (condition,) = made.statuses["low"]["conditions"]
    assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority podgroup"


def test_a_group_of_1_37_is_tried_again_while_its_victims_are_on_their_way_out() -> None:
    low = pod("low", on="n1", priority=1, requests={"cpu": "2"})
    group = [gang(min_count=2, priority=10), *trio(2, priority=10)]
    waiting = slow(node("n1", cpu="2"), low, *group, gates=GATES)
    assert waiting.deleted == ["low"]
    assert waiting.conditions[-1]["message"].endswith("pod group preemption: ongoing preemption on nominated nodes")
    elsewhere = slow(node("n1", cpu="2"), low, *group, gates=GATES, then=lambda made: made.put(node("n2", cpu="2")))
    assert elsewhere.nodes("g1", "g2") == ["n2", "n2"], "it need not wait until they are gone"


def test_everybody_waits_for_a_node_also_whom_nobody_came_to() -> None:
    low = pod("low", on="n1", priority=-1, requests={"cpu": "2"})
    made = slow(node("n1", cpu="2"), low, gang(min_count=2), *trio(2), gates=GATES)
    assert made.deleted == ["low"]
    assert made.nominated("g1", "g2") == ["n1", "n1"], "the second was not looked at: without the first there are too few"


def test_groups_that_fail_with_the_group_around_them_wait_for_nodes_and_are_told_things_as_often_as_they_are() -> None:
    low = pod("low", on="n1", priority=-1, requests={"cpu": "2"})
    made = slow(node("n1", cpu="4"), low, composite(), *two_groups(), gates=COMPOSITE)
    assert made.deleted == ["low"]
    assert made.nominated("g1", "g2", "h1", "h2") == ["n1"] * 4
    found = "pod group preemption: found a placement for podgroup, preempting 1 victims"
    first, second = (condition["message"] for condition in made.conditions[:2])
    assert first.count(found) == 2 and second.count(found) == 1, "the first is told by its own words what its parent is told"


def test_members_of_a_group_that_fails_keep_their_place_while_enough_others_come_about() -> None:
    lows = [pod(f"low{i}", on="n1", priority=-1, requests={"cpu": "1"}) for i in (1, 2, 3)]
    made = slow(node("n1", cpu="3"), *lows, composite(min_groups=1), *two_groups(), gates=COMPOSITE)
    assert sorted(made.deleted) == ["low1", "low2", "low3"], "two would be enough for the group that holds"
    assert made.nominated("g1", "g2", "h1", "h2") == ["n1", "n1", "n1", ""]
