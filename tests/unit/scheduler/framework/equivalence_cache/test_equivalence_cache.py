"""Memory: what is kept, what is thrown out, and when the plain path is asked for instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_fakes import profile_of, small_store

from kubesched.errors import PluginRaised
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.resource import DeviceClass, DeviceClassSpec
from kubesched.scheduler.cluster import GroupKey, PodView, Snapshot, Store
from kubesched.scheduler.engine.deciding.cycle import Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import SKIP, CycleState, Input, Plugin, Reason, Rejections, unresolvable
from kubesched.scheduler.framework.equivalence_cache.cache import MOST_CHANGES, EquivalenceCache
from kubesched.scheduler.framework.equivalence_cache.counters import FEWEST_CHANGES, CounterTable, PodCounts
from kubesched.scheduler.framework.grouping import GROUP_TURN, GroupTurn
from kubesched.scheduler.framework.inputs import UNLIKE
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable, failed
from kubesched.testing import near, node, pod

FULL = Reason("full")


class Rows(Plugin):
    """Refuses nodes with two pods, scores the emptier one higher, and counts how many rows it was asked about."""

    depends_on = (Input.POD_TEMPLATE, Input.PODS_ON_NODE)
    broken = False
    rows = 0

    def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
        self.rows += nodes.n
        if self.broken:
            return Rejections(None, (), {0: "no answer"})
        return Rejections.where(nodes.pod_count >= 2, FULL)

    def score(self, pod: Any, nodes: Any, state: CycleState) -> Any:
        return 10 - nodes.pod_count


class Refuses(Plugin):
    depends_on = (Input.NODE,)
    answer: Any = None

    def pre_filter(self, pod: Any, nodes: Any, state: CycleState) -> Any:
        return self.answer

    def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
        return Rejections.none(nodes)


def build(*classes: type[Plugin]) -> tuple[Store, EquivalenceCache, list[Any]]:
    store = small_store("a", "b", "c")
    plugins = [cls(None, EngineHandle(store.objects)) for cls in classes]
    return store, EquivalenceCache(profile_of(*plugins)), plugins


def decide(store: Store, memo: EquivalenceCache, name: str = "new", **fields: Any) -> Any:
    rules = Rules(SeededTies(0), preempts=False)
    return attempt(store.view(pod(name, **fields)), store.snapshot(), memo.profile, rules, memo).decision


def test_a_second_pod_of_a_class_pays_for_the_rows_that_changed() -> None:
    store, memo, (plugin,) = build(Rows)
    first = decide(store, memo)
    assert plugin.rows == 3
    store.assume(store.view(pod("new")), first.node_name)
    second = decide(store, memo, "other")
    assert plugin.rows == 4, "the row that the first was booked onto"
    assert second.node_name != first.node_name
    decide(store, memo, "third")
    assert plugin.rows == 4


def test_a_pod_of_another_class_is_remembered_apart() -> None:
    store, memo, (plugin,) = build(Rows)
    decide(store, memo)
    decide(store, memo, "other", labels={"app": "x"})
    assert (plugin.rows, len(memo.classes)) == (6, 2)


class ForSome(Plugin):
    """Refuses one pod by name, before any node is looked at."""

    def pre_filter(self, pod: Any, nodes: Any, state: CycleState) -> Any:
        return unresolvable("not you") if pod.name == "outcast" else None


class SeesTurn(Plugin):
    """Remembers which turns were known when it filtered."""

    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.seen: list[object] = []

    def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
        self.seen.append(state.find(GROUP_TURN))
        return Rejections.none(nodes)


class HasCpu(Plugin):
    """Refuses nodes that offer no cpu at all."""

    depends_on = (Input.NODE,)

    def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
        return Rejections.where(nodes.allocatable(nodes.resource("cpu")) == 0, FULL)


class NobodyFits(Plugin):
    """Refuses every node, whoever asks."""

    depends_on = (Input.NODE,)

    def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
        return Rejections.where(np.ones(nodes.n, dtype=np.bool_), FULL)


class ByNode(Rows):
    """Looks at nothing but the node."""

    depends_on = (Input.NODE,)  # type: ignore[assignment]


class ForAnybody(Rows):
    """The same for whoever asks."""

    depends_on = (Input.PODS_ON_NODE,)  # type: ignore[assignment]


def test_pods_that_ask_the_same_of_a_node_share_what_is_known_of_nodes() -> None:
    store, memo, (plugin,) = build(ForAnybody)
    first = decide(store, memo)
    other = decide(store, memo, "other", labels={"app": "x"}, namespace="elsewhere", priority=7)
    assert (plugin.rows, len(memo.classes)) == (3, 2), "two classes, and every node was looked at once"
    assert other.feasible == first.feasible == 3
    store.assume(store.view(pod("new")), first.node_name)
    decide(store, memo, "third")
    decide(store, memo, "fourth", labels={"app": "x"})
    assert plugin.rows == 4, "the row that changed was looked at once for both"
    decide(store, memo, "hungry", requests={"cpu": "1"})
    assert plugin.rows == 7, "whoever asks for more has answers of its own"


def test_a_subclass_may_read_more_of_a_pod_than_its_base() -> None:
    class Nosy(ForAnybody):
        def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
            refused = super().filter(pod, nodes, state)
            return refused if pod.labels else Rejections.where(nodes.pod_count >= 0, FULL)

    class Renamed(ForAnybody):
        name = "another"

    assert Nosy.depends_on is None, "who replaces an answer declares for itself"
    assert Renamed.depends_on == ForAnybody.depends_on
    store, memo, _ = build(Nosy)
    assert isinstance(decide(store, memo), Unschedulable)
    assert isinstance(decide(store, memo, "other", labels={"app": "x"}), Placed)


def test_shared_node_answers_that_a_plugin_broke_over_is_not_used_again() -> None:
    store, memo, (plugin,) = build(ForAnybody)
    decide(store, memo)
    decide(store, memo, "other", labels={"app": "x"})
    store.put_pod(pod("one", on="a"))
    store.put_pod(pod("two", on="a"))
    plugin.broken = True
    assert isinstance(decide(store, memo), Failed)
    plugin.broken = False
    assert decide(store, memo, "another", labels={"app": "x"}).feasible == 2


class OwnApp(PodCounts):
    """Counts the pods of one app, and how often it counts all of them."""

    def __init__(self, app: str) -> None:
        super().__init__()
        self.app, self.n, self.recounts = app, 0, 0

    def recount(self, whole: Snapshot) -> None:
        self.n = sum(view is not None and view.labels.get("app") == self.app for view in whole.slots.views)
        self.recounts += 1

    def count(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> bool:
        if other.labels.get("app") != self.app:
            return False
        self.n += sign
        return True


class Lonely(Plugin):
    """Refuses all nodes but the first while there are pods of the pod's app, and counts how often it is asked."""

    depends_on = (Input.POD_TEMPLATE, Input.COUNTED_PODS)
    counts_by: type[OwnApp] = OwnApp
    asked = 0

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
        self.asked += 1
        app = pod.labels["app"]
        counts = state.find(self.name) or state.counted(self.name, app, nodes, lambda: self.counts_by(app))
        return None if counts.n else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        return Rejections.where(np.arange(nodes.n) > 0, FULL)


def test_a_skip_of_a_plugin_that_counts_stands_until_something_is_counted() -> None:
    store, memo, (plugin,) = build(Lonely)
    for _ in range(3):
        assert decide(store, memo, labels={"app": "x"}).feasible == 3
    store.put_pod(pod("other", on="a", labels={"app": "y"}))
    assert decide(store, memo, labels={"app": "x"}).feasible == 3
    assert plugin.asked == 1
    store.put_pod(pod("mine", on="a", labels={"app": "x"}))
    assert decide(store, memo, labels={"app": "x"}).feasible == 1
    store.remove_pod("uid-default-mine")
    assert decide(store, memo, labels={"app": "x"}).feasible == 3
    assert plugin.asked == 3


def test_classes_that_declare_the_same_share_their_counters_which_follow_the_pods() -> None:
    store, table = build(Lonely)[0], CounterTable()
    counts = table.find("x", store.snapshot(), lambda: OwnApp("x"))
    store.put_pod(pod("one", on="a", labels={"app": "x"}))
    store.put_pod(pod("two", on="b", labels={"app": "y"}))
    assert table.find("x", store.snapshot(), lambda: OwnApp("z")) is counts
    assert (counts.n, counts.recounts, counts.version) == (1, 1, 2)
    store.put_node(node("a", labels={"new": "label"}))
    counts.refresh(store.snapshot())
    assert (counts.n, counts.recounts, counts.version) == (1, 2, 3)
    for i in range(FEWEST_CHANGES):
        store.put_pod(pod(f"few-{i}", on="a", labels={"app": "x"}))
    counts.refresh(store.snapshot())
    assert (counts.n, counts.recounts) == (1 + FEWEST_CHANGES, 2)
    for i in range(FEWEST_CHANGES + 2):
        store.put_pod(pod(f"many-{i}", on="a", labels={"app": "x"}))
    counts.refresh(store.snapshot())
    assert (counts.n, counts.recounts) == (3 + 2 * FEWEST_CHANGES, 3), "counting all of them is quicker"


def test_an_attempt_shares_the_counters_of_its_class_and_alone_counts_for_itself() -> None:
    nodes, of_class = build(Lonely)[0].snapshot(), CycleState(None, CounterTable())

    def counts(state: CycleState) -> OwnApp:
        return state.counted("Lonely", "x", nodes, lambda: OwnApp("x"))

    assert counts(CycleState(of_class)) is counts(CycleState(of_class)) is counts(of_class)
    assert counts(CycleState()) is not counts(CycleState())


class Meant(OwnApp):
    """Is no more for a pod once another one says of it what nobody said before."""

    def is_for(self, pod: PodView, nodes: Snapshot) -> bool:
        return not list(nodes.templates.affinity_groups.candidates(pod.namespace, pod.labels))


class CountsMeant(Lonely):
    counts_by = Meant


def test_a_class_that_somebody_new_speaks_of_declares_its_counters_anew() -> None:
    store, memo, (plugin,) = build(CountsMeant)
    decide(store, memo, labels={"app": "web"})
    asked = plugin.asked
    other = store.view(pod("other", affinity=near({"app": "db"}, away=True)))
    decide(store, memo, labels={"app": "web"})
    assert plugin.asked == asked, "it is not about this class"
    jealous = store.view(pod("jealous", affinity=near({"app": "web"}, away=True)))
    decide(store, memo, labels={"app": "web"})
    assert plugin.asked == asked + 1
    assert other.template.affinity_group.serial < jealous.template.affinity_group.serial


def test_a_node_more_makes_it_start_again() -> None:
    store, memo, (plugin,) = build(Rows)
    decide(store, memo)
    store.put_node(node("d"))
    assert decide(store, memo).feasible == 4
    assert plugin.rows == 7


def test_a_budget_keeps_the_classes_that_were_asked_for_last() -> None:
    store, memo, (plugin,) = build(Rows)
    decide(store, memo, labels={"app": "0"})
    one = next(iter(memo.classes.values()))
    memo.budget_bytes = 3 * (one.nbytes + one.node_answers.nbytes)
    for i in (0, 1, 1, 2, 2, 0, 3, 3):
        decide(store, memo, labels={"app": str(i)})
    assert len(memo.classes) == 3
    before = plugin.rows
    for i in (0, 2, 3):
        decide(store, memo, labels={"app": str(i)})
    assert plugin.rows == before, "these three are still known"
    decide(store, memo, labels={"app": "1"})
    assert plugin.rows == before + 3, "this one had not been asked for longest, and went"


def test_a_budget_for_nothing_still_keeps_the_class_in_hand() -> None:
    store, memo, (plugin,) = build(Rows)
    memo.budget_bytes = 0
    decide(store, memo)
    decide(store, memo)
    assert (plugin.rows, len(memo.classes)) == (3, 1)


@pytest.mark.parametrize("answer", [unresolvable("never"), failed("broken")])
def test_a_refusal_before_filtering_is_left_to_the_plain_path(answer: Any) -> None:
    store, memo, (_, refusing) = build(Rows, Refuses)
    decide(store, memo)
    refusing.answer = answer
    memo.classes.clear()
    decision = decide(store, memo)
    assert isinstance(decision, Unschedulable | Failed)
    assert len(memo.classes) == 0


def test_an_error_on_a_row_is_left_to_the_plain_path_and_forgotten() -> None:
    store, memo, (plugin,) = build(Rows)
    decide(store, memo)
    plugin.broken = True
    store.put_pod(pod("old", on="a"))
    decision = decide(store, memo)
    assert isinstance(decision, Failed)
    assert decision.message == 'running "Rows" filter plugin: no answer'
    plugin.broken = False
    assert isinstance(decide(store, memo), Placed)


def test_a_plugin_that_raises_leaves_nothing_half_repaired() -> None:
    class Raises(Rows):
        depends_on = Rows.depends_on

        def score(self, pod: Any, nodes: Any, state: CycleState) -> Any:
            if self.broken:
                raise RuntimeError("a bug")
            return super().score(pod, nodes, state)

        def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
            return Rejections.where(nodes.pod_count >= 2, FULL)

    store, memo, (plugin,) = build(Raises)
    decide(store, memo)
    store.put_pod(pod("one", on="a"))
    store.put_pod(pod("two", on="a"))
    store.put_pod(pod("three", on="b"))
    plugin.broken = True
    with pytest.raises(PluginRaised, match="RuntimeError: a bug"):
        decide(store, memo)
    assert len(memo.classes) == 0
    plugin.broken = False
    assert decide(store, memo).node_name == "c"


@pytest.mark.parametrize("method", ["filter_node", "score_node"])
def test_a_plugin_that_raises_over_a_changed_row_is_named(method: str) -> None:
    class Scalar(Plugin):
        """Answers node by node."""

        depends_on = (Input.PODS_ON_NODE,)

        def filter_node(self, pod: Any, node: Any, state: CycleState) -> Any:
            return self._count(node, "filter_node") and None

        def score_node(self, pod: Any, node: Any, state: CycleState) -> int:
            return self._count(node, "score_node")

        def _count(self, node: Any, asked: str) -> int:
            if asked == method and len(list(node.pods)) == 1:
                raise RuntimeError("a bug")
            return 1

    store, memo, _ = build(Scalar)
    decide(store, memo)
    store.put_pod(pod("one", on="a"))
    point = "Filter" if method == "filter_node" else "Score"
    with pytest.raises(PluginRaised, match="RuntimeError: a bug") as raised:
        decide(store, memo, "second")
    assert (raised.value.plugin, raised.value.point, raised.value.pod) == ("Scalar", point, "default/second")


def test_a_plugin_that_declares_nothing_is_asked_for_every_pod() -> None:
    class Anew(Rows):
        depends_on = None  # type: ignore[assignment]

    store, memo, (plugin,) = build(Anew)
    for _ in range(3):
        decide(store, memo)
    assert plugin.rows == 9


OWN = {
    "a claim": (Input.POD_VOLUMES, {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, 3),
    "a disk": (Input.POD_VOLUMES, {"volumes": [{"name": "v", "iscsi": {"iqn": "x"}}]}, 3),
    "a volume of the pod": (Input.POD_VOLUMES, {"volumes": [{"name": "v", "emptyDir": {}}]}, 1),
    "a node": (Input.POD_NODE_NAME, {"on": "a"}, 3),
    "what devices serve": (Input.POD_DEVICES, {"requests": {"example.com/gpu": "1"}}, 3),
    "what no device serves": (Input.POD_DEVICES, {"requests": {"example.com/tpu": "1"}}, 1),
}


@pytest.mark.parametrize(("declared", "fields", "times"), OWN.values(), ids=list(OWN))
def test_a_pod_that_has_what_a_plugin_reads_of_each_pod_is_asked_about_anew(
    declared: Input, fields: dict[str, Any], times: int
) -> None:
    class Choosy(Rows):
        depends_on = (declared, Input.PODS_ON_NODE)  # type: ignore[assignment]

    store, memo, (plugin,) = build(Choosy)
    store.put(DeviceClass(metadata=ObjectMeta(name="g"), spec=DeviceClassSpec(extended_resource_name="example.com/gpu")))
    for _ in range(3):
        decide(store, memo, **fields)
    assert plugin.rows == 3 * times
    decide(store, memo)
    decide(store, memo)
    assert plugin.rows == 3 * times + 3


def test_scores_that_compare_nodes_are_begun_anew_when_a_node_changes() -> None:
    class Rarest(Plugin):
        """Scores a node by how many others have its disk, normalised."""

        depends_on = (Input.NODE, Input.ALL_NODES)

        def score(self, pod: Any, nodes: Any, state: CycleState) -> Any:
            everywhere = nodes.everything().codes("disk")
            return np.array([10 * int((everywhere == code).sum()) for code in nodes.codes("disk")], dtype=np.int64)

        def normalize(self, scores: Any, feasible: Any, pod: Any, nodes: Any, state: CycleState) -> Any:
            return 100 - scores

    store, memo, _ = build(Rarest)
    for name in "abc":
        store.put_node(node(name, labels={"disk": "ssd" if name == "a" else "hdd"}))
    assert decide(store, memo).node_name == "a"
    store.put_node(node("b", labels={"disk": "ssd"}))
    assert decide(store, memo).node_name == "c"


def test_a_plugin_that_stops_skipping_is_noticed() -> None:
    class Fickle(Plugin):
        """Depends on the cluster, says so, and has something to say only where there are pods."""

        def pre_filter(self, pod: Any, nodes: Any, state: CycleState) -> Any:
            return None if nodes.pod_count.any() else SKIP

        def filter(self, pod: Any, nodes: Any, state: CycleState) -> Rejections:
            return Rejections.where(nodes.pod_count == 0, FULL)

    store, memo, _ = build(Fickle)
    assert decide(store, memo).feasible == 3
    store.put_pod(pod("old", on="b"))
    assert decide(store, memo).node_name == "b"
    store.remove_pod("uid-default-old")
    assert decide(store, memo).feasible == 3


def test_a_scheduler_remembers_what_is_asked_a_second_time() -> None:
    store, memo, (plugin,) = build(ForAnybody)
    memo.waits_for_second = True
    decide(store, memo)
    assert (plugin.rows, len(memo.classes)) == (3, 0), "worked out, and not kept"
    decide(store, memo, "other", labels={"app": "x"})
    assert (plugin.rows, len(memo.classes)) == (6, 1), "another class that asks the same of a node"
    decide(store, memo, "third")
    assert plugin.rows == 6


def test_a_pod_like_no_other_is_answered_from_what_does_not_follow_from_its_amounts() -> None:
    store, memo, (plugin,) = build(ForAnybody)
    memo.waits_for_second = True
    decide(store, memo, "one", requests={"cpu": "1"})
    assert (plugin.rows, len(memo.classes)) == (3, 0), "nobody has asked for such nodes before"
    decide(store, memo, "two", requests={"cpu": "2"}, labels={"app": "x"})
    assert (plugin.rows, len(memo.classes)) == (6, 1), "kept for all that differ in amounts"
    decide(store, memo, "three", requests={"cpu": "3"}, priority=5)
    assert (plugin.rows, len(memo.classes)) == (6, 1)
    decide(store, memo, "picky", requests={"cpu": "4"}, node_selector={"disk": "ssd"})
    assert (plugin.rows, len(memo.classes)) == (9, 1), "it asks for other nodes, for the first time"


def test_a_pod_like_no_other_that_is_refused_before_filtering_takes_nothing_from_the_next() -> None:
    store, memo, (plugin, _) = build(ForAnybody, ForSome)
    memo.waits_for_second = True
    for i, name in enumerate(("one", "two")):
        decide(store, memo, name, requests={"cpu": str(i + 1)})
    assert (plugin.rows, len(memo.classes)) == (6, 1)
    refused = decide(store, memo, "outcast", requests={"cpu": "3"})
    assert isinstance(refused, Unschedulable) and len(memo.classes) == 1
    decide(store, memo, "three", requests={"cpu": "4"})
    assert plugin.rows == 6


def test_a_member_of_a_group_knows_its_turn_while_it_is_decided_from_memory() -> None:
    store, memo, (plugin,) = build(SeesTurn)
    turn = GroupTurn(GroupKey("scheduling.k8s.io", "default", "gang"), is_rehearsal=True)
    for i in range(3):
        view = store.view(pod(f"member-{i}"))
        attempt(view, store.snapshot(), memo.profile, Rules(SeededTies(0), preempts=False), memo, turn=turn)
    assert plugin.seen == [turn] * 3


@pytest.mark.parametrize("amounts", [("1", "1", "1"), ("1", "2", "3")], ids=["replicas", "no two alike"])
def test_a_node_that_offers_other_amounts_is_judged_again_by_who_depends_on_nodes(amounts: tuple[str, ...]) -> None:
    store, memo, _ = build(HasCpu)
    memo.waits_for_second = True
    for name in ("b", "c"):
        store.put_node(node(name, cpu="0"))
    assert [decide(store, memo, f"p{i}", requests={"cpu": cpu}).node_name for i, cpu in enumerate(amounts)] == ["a"] * 3
    store.put_node(node("a", cpu="0"))
    store.put_node(node("c", cpu="4"))
    assert decide(store, memo, "late", requests={"cpu": amounts[-1] + "1"}).node_name == "c"
    assert decide(store, memo, "later", requests={"cpu": amounts[0]}).node_name == "c"


def test_what_was_concluded_of_a_pod_like_no_other_is_not_concluded_of_the_next() -> None:
    """Two pods of other priority may evict others, so that one is refused says nothing about the next."""
    store, memo, _ = build(NobodyFits)
    memo.waits_for_second = True
    for i in range(3):
        decide(store, memo, f"pod-{i}", requests={"cpu": str(i + 1)})
    key, *others = memo.classes
    of_class = memo.classes.get(key)
    assert of_class is not None
    assert not others and key[1] >= UNLIKE
    assert of_class.unschedulable_result is None and of_class.unschedulable_at is None


def test_a_class_that_was_left_behind_is_decided_as_if_it_were_new_unless_it_is_soon_asked_for_again() -> None:
    store, memo, (plugin,) = build(ForAnybody)
    memo.waits_for_second = True
    for _ in range(3):
        decide(store, memo)
    assert plugin.rows == 6, "the first worked it out, the second to remember it"
    for i in range(MOST_CHANGES + 1):
        store.put_pod(pod(f"other-{i}", on="a"))
    decide(store, memo)
    assert plugin.rows == 9, "all nodes once, and nothing is brought up to date"
    decide(store, memo)
    decide(store, memo)
    assert plugin.rows == 10, "asked for again, it is: one node had changed"


COMES_BACK_LATE = [
    ("its answers are not worth remembering", (ByNode,), 0),
    ("its counters are, if they make a difference", (ByNode, Lonely), 1),
    ("that no node takes it is", (ByNode, NobodyFits), 1),
]


@pytest.mark.parametrize(
    ("plugins", "n_kept"), [case[1:] for case in COMES_BACK_LATE], ids=[case[0] for case in COMES_BACK_LATE]
)
def test_of_a_class_that_comes_back_late(plugins: tuple[type[Plugin], ...], n_kept: int) -> None:
    store, memo, _ = build(*plugins)
    memo.waits_for_second = True
    store.put_pod(pod("counted", on="b", labels={"app": "x"}))
    decide(store, memo, "somebody", requests={"cpu": "3"}, labels={"app": "other"})
    for turn in range(3):
        decide(store, memo, f"late-{turn}", requests={"cpu": "1"}, labels={"app": "x"})
        for i in range(MOST_CHANGES + 1):
            store.put_pod(pod(f"other-{turn}-{i}", on="a"))
    assert len([key for key in memo.classes if not key[1] >= UNLIKE]) == n_kept


def test_answers_that_no_pod_changes_are_never_left_behind() -> None:
    store, memo, (plugin,) = build(ByNode)
    memo.waits_for_second = True
    for i in range(2):
        decide(store, memo, f"pod-{i}", requests={"cpu": str(i + 1)})
    assert plugin.rows == 6
    for i in range(MOST_CHANGES + 1):
        store.put_pod(pod(f"other-{i}", on="a"))
    decide(store, memo, "late", requests={"cpu": "3"})
    assert plugin.rows == 6
