"""What is kept of decisions, how it is told, and that the ring forgets the oldest."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

import numpy as np
import pytest
from group_scene import Scene, gang, member

from kubesched.scheduler.engine.records.decision_record import (
    ERROR,
    NOMINATED,
    ONLY,
    PLACED,
    PREEMPTED,
    UNSCHEDULABLE,
    DecisionFilter,
    DecisionRecord,
    DecisionRing,
    PreemptionRecord,
    RefusalCount,
    ScoreTable,
    document,
    sentence,
)
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.testing import node, pod
from kubesched.testing.builders import even
from kubesched.tools.simulation.clock import VirtualLoop, run_virtually


def table(*rows: tuple[str, int, int]) -> ScoreTable:
    """Return the scores of nodes with two plugins."""
    weighted = np.array([[spread, fit] for _, spread, fit in rows])
    totals = tuple(spread + fit for _, spread, fit in rows)
    names = tuple(name for name, _, _ in rows)
    return ScoreTable(("PodTopologySpread", "NodeResourcesFit"), names, totals, np.array([weighted] * 3))


def placed(**given: Any) -> DecisionRecord:
    return DecisionRecord("default/web", "u", "default-scheduler", 0.0, PLACED, "node-b", 8, 8, 8, **given)


SENTENCES = [
    (
        "who won by which plugins, and how many were level",
        placed(
            chosen_by="seed",
            level=3,
            scores=table(("node-b", 200, 70), ("node-c", 200, 70), ("node-d", 200, 70), ("node-a", 100, 86)),
        ),
        "node-b won by 84 over node-a: PodTopologySpread +100, NodeResourcesFit -16; 3 were level, the seed chose",
    ),
    (
        "one that was ahead of all",
        placed(chosen_by="score", level=1, scores=table(("node-b", 90, 5), ("node-a", 90, 1))),
        "node-b won by 4 over node-a: NodeResourcesFit +4",
    ),
    (
        "beyond the budget no plugin is named",
        placed(chosen_by="score", level=1, margin=7, runner_up="node-a"),
        "node-b won by 7 over node-a",
    ),
    (
        "all were level",
        placed(chosen_by="seed", level=8, scores=table(("node-b", 1, 1), ("node-a", 1, 1))),
        "node-b won: 8 were level, the seed chose",
    ),
    (
        "in a hurry nobody counts who was level",
        placed(chosen_by="seed", level=None, runner_up="node-a"),
        "node-b won: several were level, the seed chose",
    ),
    ("the only one", placed(chosen_by=ONLY), "node-b was the only one of 8 nodes that took it"),
    ("the nominated one", placed(chosen_by=NOMINATED), "node-b was nominated, and took it"),
    (
        "whom it evicts",
        DecisionRecord("default/web", "u", "s", outcome=PREEMPTED, preemption=PreemptionRecord("node-a", ("x/a", "x/b"), 1)),
        "no node took it; it evicts 2 from node-a, 1 of them against a disruption budget",
    ),
    ("what the scheduler said", DecisionRecord("default/web", "u", "s", outcome=ERROR, message="it broke"), "it broke"),
]


@pytest.mark.parametrize(("record", "expected"), [case[1:] for case in SENTENCES], ids=[case[0] for case in SENTENCES])
def test_a_decision_in_a_sentence(record: DecisionRecord, expected: str) -> None:
    assert sentence(record) == expected


def test_the_ring_keeps_the_newest_and_numbers_on() -> None:
    ring = DecisionRing(3)
    for i in range(5):
        ring.append(DecisionRecord(f"default/p{i % 2}", "u", "s"))
    assert (len(ring), ring.oldest, ring.next_sequence) == (3, 2, 5)
    assert [record.sequence for record in ring.newest_first()] == [4, 3, 2]
    assert [record.sequence for record in ring.of_pod("default/p0")] == [4, 2]


def test_how_long_a_pod_waited_is_noted_while_its_record_is_there() -> None:
    ring = DecisionRing(2)
    numbers = [ring.append(DecisionRecord(f"default/{name}", "u", "s")) for name in ("gone", "web", "db")]
    for number, seconds in zip(numbers, (9.0, 0.75, 0.5), strict=True):
        ring.bound(number, seconds)
    assert [(each.pod, each.bound_seconds) for each in ring.newest_first()] == [("default/db", 0.5), ("default/web", 0.75)]


def test_a_record_takes_as_little_as_is_said() -> None:
    one = placed(chosen_by="seed", level=3, total=471, runner_up="node-c")
    one.at, one.sequence, one.latency_seconds = 1.5, 100_000, 2.5
    own = sys.getsizeof(one) + sum(sys.getsizeof(value) for value in ("default/web-12345", "a" * 36, 1.5, 2.5, 100_000, 471))
    assert own <= 500
    scores = table(*[(f"node-{i}", 1, 2) for i in range(5)])
    values = np.zeros((3, 5, 8), dtype=np.int64)
    assert sys.getsizeof(scores) + sys.getsizeof(scores.nodes) + sys.getsizeof(scores.totals) + sys.getsizeof(values) <= 1400


FILTERS = [
    ("all", DecisionFilter(), True),
    ("its namespace", DecisionFilter(namespace="default"), True),
    ("another namespace", DecisionFilter(namespace="other"), False),
    ("its name", DecisionFilter(pod="web"), True),
    ("its whole name", DecisionFilter(pod="default/web"), True),
    ("the same name elsewhere", DecisionFilter(pod="other/web"), False),
    ("where it evicts", DecisionFilter(node="node-a"), True),
    ("another node", DecisionFilter(node="node-x"), False),
    ("its outcome", DecisionFilter(outcome=PREEMPTED), True),
    ("another outcome", DecisionFilter(outcome=PLACED), False),
    ("who refused", DecisionFilter(plugin="NodeName"), True),
    ("who did not", DecisionFilter(plugin="NodePorts"), False),
    ("since before", DecisionFilter(since=9.0), True),
    ("since later", DecisionFilter(since=11.0), False),
    ("until later", DecisionFilter(until=11.0), True),
    ("until before", DecisionFilter(until=9.0), False),
    ("after an earlier one", DecisionFilter(after=6), True),
    ("after itself", DecisionFilter(after=7), False),
]


@pytest.mark.parametrize(("asked", "expected"), [case[1:] for case in FILTERS], ids=[case[0] for case in FILTERS])
def test_which_decisions_are_asked_for(asked: DecisionFilter, expected: bool) -> None:
    record = DecisionRecord(
        "default/web",
        "u",
        "s",
        outcome=PREEMPTED,
        refused=(RefusalCount("NodeName", "no", 3),),
        preemption=PreemptionRecord("node-a", ("x/a",), 0),
        at=10.0,
        sequence=7,
    )
    assert asked.takes(document(record)) is expected


# What the engine records


class Broken(Plugin):
    """Breaks at Reserve."""

    def reserve(self, pod: Any, node_name: str, state: Any) -> None:
        raise ValueError("out of order")


class BrokenScore(Plugin):
    """Breaks at Score."""

    def score_node(self, pod: Any, node: Any, state: Any) -> int:
        raise ValueError("out of order")


class BrokenFilter(Plugin):
    """Breaks at Filter."""

    def filter_node(self, pod: Any, node: Any, state: Any) -> None:
        raise ValueError("out of order")


def enabled(plugin: type[Plugin]) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {plugin.name}}}]}}}}}}]
"""


async def told(scene: Scene, seconds: float = 0.5) -> list[DecisionRecord]:
    await scene.settle(seconds)
    return list(scene.decisions.ring.newest_first())[::-1]


async def a_pod_that_is_placed() -> None:
    scene = Scene(node("a", cpu="4"), node("b", cpu="4"), node("c", cordoned=True), pod("p", requests={"cpu": "1"}))
    (record,) = await told(scene)
    assert (record.outcome, record.pod, record.attempt) == (PLACED, "default/p", 1)
    assert record.node == scene.bound["p"] and record.runner_up in ("a", "b") and record.runner_up != record.node
    assert (record.level, record.chosen_by, record.feasible, record.evaluated) == (2, "seed", 2, 3)
    assert record.refusals == (RefusalCount("NodeUnschedulable", "node(s) were unschedulable", 1),)
    assert record.scores is not None and record.scores.totals == (record.total, record.total)
    assert record.bound_seconds is not None


async def a_pod_that_fits_nowhere() -> None:
    scene = Scene(node("a", cpu="1"), pod("p", requests={"cpu": "2"}))
    (record,) = await told(scene)
    assert (record.outcome, record.node, record.feasible) == (UNSCHEDULABLE, "", 0)
    assert record.refusals == (RefusalCount("NodeResourcesFit", "Insufficient cpu", 1),)
    assert record.message == scene.said("p")


async def a_pod_that_evicts() -> None:
    low = pod("low", on="a", requests={"cpu": "1"}, priority=1)
    scene = Scene(node("a", cpu="1"), low, pod("high", requests={"cpu": "1"}, priority=9))
    (record, *_) = await told(scene)
    assert (record.outcome, record.pod) == (PREEMPTED, "default/high")
    assert record.preemption == PreemptionRecord("a", ("default/low",), 0)


async def a_binding_that_fails() -> None:
    scene = Scene(node("a"))
    scene.failing_binds["p"] = 1
    scene.put(pod("p"))
    first, second, *_ = await told(scene)
    assert (first.outcome, first.chosen_by, first.bound_seconds) == (PLACED, ONLY, None)
    assert (second.outcome, second.node, second.attempt) == (ERROR, "a", 1) and second.message


async def a_plugin_that_breaks() -> None:
    scene = Scene(node("a"), pod("p"), configuration=enabled(Broken), plugins=(Broken,))
    (record, *_) = await told(scene)
    assert record.outcome == ERROR and "out of order" in record.message and record.node == "a"


async def an_attempt_that_breaks_halfway() -> None:
    for plugin in (BrokenFilter, BrokenScore):
        nodes = [node("a"), node("b"), node("c", cordoned=True)]
        scene = Scene(*nodes, pod("p"), configuration=enabled(plugin), plugins=(plugin,))
        (record, *_) = await told(scene)
        assert (record.outcome, record.node, record.node_count) == (ERROR, "", 3) and "out of order" in record.message
        assert record.refusals == (RefusalCount("NodeUnschedulable", "node(s) were unschedulable", 1),)


async def an_attempt_that_breaks_when_there_is_no_time() -> None:
    scene = Scene(node("c", cordoned=True), configuration=enabled(BrokenFilter), plugins=(BrokenFilter,))
    scene.decisions.idle_until = float("inf")
    scene.put(pod("p"))
    (record, *_) = await told(scene)
    assert record.outcome == ERROR and record.refusals is None


async def a_gang_that_has_no_room() -> None:
    members = [member(f"m{i}", "g", requests={"cpu": "1"}) for i in range(2)]
    scene = Scene(node("a", cpu="1"), gang(min_count=2), *members, gates="GenericWorkload=true,GangScheduling=true")
    records = await told(scene)
    assert {record.pod for record in records} == {"default/m0", "default/m1"}
    assert {record.outcome for record in records} == {UNSCHEDULABLE} and all(record.group for record in records)


STORIES: list[Callable[[], Awaitable[None]]] = [
    a_pod_that_is_placed,
    a_pod_that_fits_nowhere,
    a_pod_that_evicts,
    a_binding_that_fails,
    a_plugin_that_breaks,
    an_attempt_that_breaks_halfway,
    an_attempt_that_breaks_when_there_is_no_time,
    a_gang_that_has_no_room,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_engine_records(story: Callable[[], Any]) -> None:
    run_virtually(story())


def test_what_takes_longer_is_left_out_beyond_the_share() -> None:
    async def live() -> None:
        scene = Scene(node("a"), node("b"))
        scene.decisions._share, work_out = 0.001, scene.decisions._work_out

        def slowly(*args: Any) -> None:
            cast(VirtualLoop, asyncio.get_running_loop()).advance(0.001)
            work_out(*args)

        scene.decisions._work_out = slowly  # type: ignore[method-assign]
        scene.put(*[pod(f"p{i}") for i in range(5)])
        records = await told(scene)
        assert [record.scores is not None for record in records] == [True, False, False, False, False]
        assert all(record.level and record.runner_up and record.total for record in records)

    run_virtually(live())


def spreading_scene(pause_seconds: float) -> Scene:
    """Return four nodes in two zones and one that is cordoned; nothing that takes longer is worked out."""
    scene = Scene(*[node(f"n{i}", cpu="2", labels={"zone": f"z{i % 2}"}) for i in range(4)], node("c", cordoned=True))
    scene.decisions.idle_until, scene.decisions._pause = float("inf"), pause_seconds
    return scene


async def spread_records(scene: Scene, n_pods: int, *, hard: bool) -> list[DecisionRecord]:
    limit = even({"app": "web"}, "zone", hard=hard)
    for i in range(n_pods):
        scene.put(pod(f"p{i}", labels={"app": "web"}, requests={"cpu": "1"}, spread=[limit]))
        await scene.settle(1.0)
    return list(scene.decisions.ring.newest_first())[::-1]


def test_who_refused_is_followed_where_nothing_else_is_worked_out() -> None:
    async def live() -> None:
        records = await spread_records(spreading_scene(0.0), 8, hard=True)
        counts = [{each.plugin: each.count for each in record.refusals or ()} for record in records]
        assert [record.scores for record in records] == [None] * 8
        assert counts[3] == {"NodeUnschedulable": 1, "PodTopologySpread": 2}
        assert counts[5] == {"NodeUnschedulable": 1, "PodTopologySpread": 1, "NodeResourcesFit": 1}

    run_virtually(live())


def test_in_a_hurry_the_runner_up_is_known_and_how_many_are_level_is_not() -> None:
    async def live() -> None:
        records = await spread_records(spreading_scene(float("inf")), 3, hard=False)
        assert [record.level for record in records] == [None, None, None]
        assert all(record.runner_up not in ("", record.node) and record.margin == 0 for record in records)
        assert document(records[1])["levelCount"] is None

    run_virtually(live())
