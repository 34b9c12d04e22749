"""DefaultPreemption: who may preempt, on which nodes, whom, and in which words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.meta import LabelSelector, ObjectMeta
from kubesched.kube.api.pod import Pod, PodCondition
from kubesched.kube.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView, Snapshot, Store
from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import Input, Plugin
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.scheduler.framework.runtime.building import build_profile
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.scheduler.framework.verdicts import Code
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE
from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption, DefaultPreemptionArgs
from kubesched.testing import node, pod, taint

EARLY, LATE, LATEST = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:09Z"


class Chance:
    """Says the same number again and again, and remembers what it was asked for."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.asked: list[int] = []

    def randrange(self, stop: int) -> int:
        self.asked.append(stop)
        return min(self.number, stop - 1)


class Nominations:
    def __init__(self) -> None:
        self.pods: dict[str, list[PodView]] = {}
        self.changes: ChangeLog[str] = ChangeLog()

    def put(self, view: PodView, node_name: str) -> None:
        self.pods.setdefault(node_name, []).append(view)
        self.changes.append(node_name)

    def on_node(self, node_name: str) -> list[PodView]:
        return self.pods.get(node_name, [])

    def nodes(self) -> list[str]:
        return list(self.pods)


class Scene:
    """A cluster, and one pod that wants in."""

    def __init__(
        self, *objects: object, args: DefaultPreemptionArgs | None = None, number: int = 0, extra: Sequence[type[Plugin]] = ()
    ) -> None:
        self.store = Store()
        self.chance = Chance(number)
        self.nominations = Nominations()
        self.handle = EngineHandle(self.store.objects, random=self.chance, nominations=self.nominations)
        configured = config.defaults(gates=config.Gates.defaults(), registry=IN_TREE_CATALOGUE).profiles[0]
        self.profile = build_profile(configured, Registry(*IN_TREE), self.handle)
        for cls in extra:
            plugin = cls(None, self.handle)
            self.profile.filters = (*self.profile.filters, plugin)
        self.plugin = next(p for p in self.profile.plugins if isinstance(p, DefaultPreemption))
        if args is not None:
            self.plugin.args = args
        for obj in objects:
            self.store.put(obj)

    def try_pod(self, wanted: Pod) -> Attempt:
        return attempt(self.store.view(wanted), self.store.snapshot(), self.profile, Rules(SeededTies(), self.nominations))

    def nominate(self, wanted: Pod, node_name: str) -> None:
        self.nominations.put(self.store.view(wanted), node_name)


def low(name: str, on: str, cpu: str = "1", priority: int = 0, **more: object) -> Pod:
    return pod(name, on=on, requests={"cpu": cpu}, priority=priority, **more)  # type: ignore[arg-type]


def high(cpu: str = "2", priority: int = 1000, **more: object) -> Pod:
    return pod("high", requests={"cpu": cpu}, priority=priority, **more)  # type: ignore[arg-type]


def budget(
    name: str, allowed: int, labels: dict[str, str] | None, namespace: str = "default", disrupted: Sequence[str] = ()
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels) if labels is not None else None),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, EARLY)),
    )


def chosen(made: Attempt) -> tuple[str, list[str]]:
    """Return the node and the victims, most important first; an empty name if there is no way out."""
    result = made.post_filtered
    assert result is not None
    if result.preemption is None:
        return "", []
    assert result.nomination is not None and result.nomination.node_name == result.preemption.node_name
    return result.preemption.node_name, [victim.name for victim in result.preemption.victims]


def message(made: Attempt) -> str:
    assert made.post_filtered is not None
    return made.post_filtered.status.reasons[-1] if made.post_filtered.status.reasons else ""


# Who may preempt

TERMINATING = pod(
    "going",
    on="n1",
    priority=0,
    requests={"cpu": "2"},
    deleted_at=EARLY,
    conditions=[PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")],
)


@pytest.mark.parametrize(
    ("said", "wanted", "going", "expected"),
    [
        (
            "a pod whose policy is Never",
            high(preemption_policy="Never"),
            low("a", "n1", "2"),
            "preemption: not eligible due to preemptionPolicy=Never.",
        ),
        (
            "a pod whose victims are still going",
            high(nominated="n1"),
            TERMINATING,
            "preemption: not eligible due to a terminating pod on the nominated node.",
        ),
    ],
)
def test_is_not_eligible(said: str, wanted: Pod, going: Pod, expected: str):
    made = Scene(node("n1", cpu="2"), going).try_pod(wanted)
    assert message(made) == expected
    assert made.post_filtered is not None and made.post_filtered.nomination is None, "the nomination stays as it is"


@pytest.mark.parametrize(
    ("said", "going"),
    [
        ("it goes for another reason", low("going", "n1", "2", deleted_at=EARLY)),
        (
            "its condition names another cause",
            pod(
                "going",
                on="n1",
                priority=0,
                requests={"cpu": "2"},
                deleted_at=EARLY,
                conditions=[PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")],
            ),
        ),
        ("it is not going at all", low("going", "n1", "2")),
        (
            "it has the preemptor's priority",
            pod(
                "going",
                on="n1",
                priority=1000,
                requests={"cpu": "1"},
                deleted_at=EARLY,
                conditions=[PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")],
            ),
        ),
    ],
)
def test_a_nominated_pod_is_eligible_where_nobody_makes_way_for_it(said: str, going: Pod):
    made = Scene(node("n1", cpu="2"), going, low("other", "n1", "1")).try_pod(high("1500m", nominated="n1"))
    assert "not eligible" not in message(made)


def test_a_nominated_pod_is_eligible_if_its_node_can_no_longer_do():
    scene = Scene(node("n1", cpu="2", taints=[taint("gone")]), TERMINATING, node("n2", cpu="2"), low("b", "n2", "2"))
    assert chosen(scene.try_pod(high(nominated="n1"))) == ("n2", ["b"])


def test_attempts_are_counted():
    scene = Scene(node("n1", cpu="2"), low("a", "n1"))
    scene.try_pod(high(preemption_policy="Never"))
    scene.try_pod(high())
    assert scene.plugin.attempts == 2


# Which nodes, and in which words


def disk(name: str) -> dict[str, object]:
    return {"name": name, "awsElasticBlockStore": {"volumeID": name}}


def uses(claim: str) -> dict[str, object]:
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def bound(claim: str, mode: str = "ReadWriteOnce") -> list[object]:
    """Return a claim and the volume that it has."""
    return [
        codec.decode(raw)
        for raw in (
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim,
                    "namespace": "default",
                    "uid": f"uid-{claim}",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {"accessModes": [mode], "volumeName": f"pv-{claim}", "storageClassName": "any"},
                "status": {"phase": "Bound"},
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"pv-{claim}"},
                "spec": {
                    "accessModes": [mode],
                    "storageClassName": "any",
                    "csi": {"driver": "csi", "volumeHandle": claim},
                    "claimRef": {"name": claim, "namespace": "default", "uid": f"uid-{claim}"},
                },
                "status": {"phase": "Bound"},
            },
        )
    ]


def attaches(on: str, count: int) -> object:
    return codec.decode(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": on},
            "spec": {"drivers": [{"name": "csi", "nodeID": on, "allocatable": {"count": count}}]},
        }
    )


@pytest.mark.parametrize(
    ("said", "objects", "wanted"),
    [
        ("it holds the pod's disk", [], [disk("d")]),
        ("it holds a claim for one pod only", bound("mine", "ReadWriteOncePod"), [uses("mine")]),
        ("it holds the last place for a volume", [*bound("mine"), *bound("theirs"), attaches("n1", 1)], [uses("mine")]),
    ],
    ids=["disk", "claim", "attachment"],
)
@pytest.mark.parametrize("n_others", [0, 6], ids=["one node", "many nodes"])
def test_evicts_who_holds_a_volume(said: str, objects: list[object], wanted: list[dict[str, object]], n_others: int):
    theirs = uses("theirs") if len(objects) > 2 else wanted[0]
    scene = Scene(
        *objects,
        node("n1"),
        low("idle", "n1"),
        low("holder", "n1", volumes=[theirs]),
        *(each for i in range(n_others) for each in (node(f"m{i}", cpu="1"), low(f"o{i}", f"m{i}"))),
    )
    assert chosen(scene.try_pod(high("1", volumes=wanted))) == ("n1", ["holder"])


class BrokenOnFewPods(Plugin):
    """A filter that fails on a node from which pods were taken."""

    depends_on = (Input.PODS_ON_NODE,)

    def filter_node(self, pod: PodView, node: object, state: object) -> None:
        if not list(node.pods):  # type: ignore[attr-defined]
            raise SchedulerError(f"cannot look at {node.name}")  # type: ignore[attr-defined]


def test_a_filter_that_fails_costs_its_node_only():
    objects = [
        node("n1", cpu="2"),
        low("a", "n1", "2"),
        node("n2", cpu="2"),
        low("b", "n2", "1"),
        pod("kept", on="n2", priority=5000),
    ]
    assert chosen(Scene(*objects, extra=[BrokenOnFewPods]).try_pod(high("1500m"))) == ("n2", ["b"])
    made = Scene(*objects[:2], extra=[BrokenOnFewPods]).try_pod(high("1500m"))
    assert made.post_filtered is not None and made.post_filtered.status.code is Code.ERROR
    assert message(made) == "preemption: cannot look at n1"


# Disruption budgets


@pytest.mark.parametrize(
    ("said", "which", "victim"),
    [
        ("a budget of another namespace", budget("b", 0, {"app": "a"}, namespace="other"), "low"),
        ("an empty selector", budget("b", 0, {}), "low"),
        ("no selector", budget("b", 0, None), "low"),
        ("a broken selector", budget("b", 0, {"app": "not valid!"}), "low"),
        ("a pod that is disrupted already", budget("b", 0, {"app": "a"}, disrupted=["low"]), "low"),
        ("a budget that allows enough", budget("b", 1, {"app": "a"}), "low"),
        ("a budget that is used up", budget("b", 0, {"app": "a"}), "top"),
    ],
)
def test_who_is_protected(said: str, which: PodDisruptionBudget, victim: str):
    scene = Scene(node("n1", cpu="2"), low("low", "n1", priority=1, labels={"app": "a"}), low("top", "n1", priority=2), which)
    assert chosen(scene.try_pod(high("1"))) == ("n1", [victim])


def test_a_budget_that_changes_is_noticed():
    scene = Scene(
        node("n1", cpu="2"),
        low("low", "n1", priority=1, labels={"app": "a"}),
        low("top", "n1", priority=2),
        budget("b", 0, {"app": "a"}),
    )
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["top"])
    scene.store.objects.put(budget("b", 1, {"app": "a"}))
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["low"])
    scene.store.objects.put(budget("b", 0, {"app": "a"}))
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["top"])
    scene.store.objects.drop(PodDisruptionBudget, "b", "default")
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["low"])


# Which of the nodes


@pytest.mark.parametrize(
    ("said", "here", "there"),
    [
        ("fewer broken budgets", [low("a", "n1", "2", labels={"app": "x"})], [low("b", "n2", "2", priority=900)]),
        ("a less important first victim", [low("a", "n1", "2", priority=5)], [low("b", "n2", "2", priority=4)]),
        (
            "a smaller sum of priorities",
            [low("a", "n1", priority=5), low("a2", "n1", priority=5)],
            [low("b", "n2", priority=5), low("b2", "n2", priority=4)],
        ),
        (
            "fewer victims, also of negative priority",
            [low("a", "n1", priority=-5), low("a2", "n1", priority=-9)],
            [low("b", "n2", "2", priority=-5)],
        ),
        ("a first victim that started later", [low("a", "n1", "2", start_time=EARLY)], [low("b", "n2", "2", start_time=LATE)]),
        (
            "the earliest of the most important ones counts",
            [low("a", "n1", start_time=EARLY), low("a2", "n1", start_time=LATEST)],
            [low("b", "n2", start_time=LATE), low("b2", "n2", start_time=LATE)],
        ),
        ("not started is later than anything", [low("a", "n1", "2", start_time=LATEST)], [low("b", "n2", "2")]),
    ],
)
def test_n2_is_chosen_for(said: str, here: list[Pod], there: list[Pod]):
    scene = Scene(node("n1", cpu="2"), node("n2", cpu="2"), *here, *there, budget("b", 0, {"app": "x"}))
    name, victims = chosen(scene.try_pod(high("2")))
    assert name == "n2"
    assert sorted(victims) == sorted(p.metadata.name for p in there)


def test_among_equals_chance_decides():
    objects = [obj for i in range(3) for obj in (node(f"n{i}", cpu="2"), low(f"p{i}", f"n{i}", "2"))]
    assert {chosen(Scene(*objects, number=i).try_pod(high()))[0] for i in range(3)} == {"n0", "n1", "n2"}


@pytest.mark.parametrize(
    ("n", "args", "expected"),
    [
        (30, DefaultPreemptionArgs(), 30),
        (1000, DefaultPreemptionArgs(), 100),
        (1200, DefaultPreemptionArgs(), 120),
        (20, DefaultPreemptionArgs(10, 1), 2),
        (20, DefaultPreemptionArgs(0, 3), 3),
        (20, DefaultPreemptionArgs(50, 3), 10),
    ],
)
def test_so_many_candidates_are_looked_for(n: int, args: DefaultPreemptionArgs, expected: int):
    objects = [obj for i in range(n) for obj in (node(f"n{i}", cpu="2"), low(f"p{i}", f"n{i}", "2"))]
    scene = Scene(*objects, args=args)
    seen: list[int] = []
    scene.plugin.narrow = [lambda pod, candidates, nodes: seen.append(len(candidates)) or candidates]
    scene.try_pod(high())
    assert seen == [expected]
    assert scene.chance.asked[0] == n, "the visit starts anywhere"


def test_the_visit_goes_on_until_a_candidate_breaks_no_budget():
    objects = [obj for i in range(8) for obj in (node(f"n{i}", cpu="2"), low(f"p{i}", f"n{i}", "2", labels={"app": "x"}))]
    clean = [node("n8", cpu="2"), low("p8", "n8", "2", priority=900)]
    scene = Scene(*objects, *clean, budget("b", 0, {"app": "x"}), args=DefaultPreemptionArgs(0, 2))
    assert chosen(scene.try_pod(high())) == ("n8", ["p8"])


# Nominated pods


def test_a_pod_does_not_stand_in_its_own_way():
    scene = Scene(node("n1", cpu="2"), low("a", "n1", "2"))
    scene.nominate(high(), "n1")
    assert chosen(scene.try_pod(high())) == ("n1", ["a"])
    assert chosen(scene.try_pod(pod("twin", requests={"cpu": "2"}, priority=1000))) == ("", [])
    assert chosen(scene.try_pod(high())) == ("n1", ["a"])


def test_many_nodes_at_once_reckon_with_nominated_pods_at_every_step():
    objects = [
        obj
        for i in range(12)
        for obj in (
            node(f"n{i}", cpu="4"),
            *(low(f"{name}{i}", f"n{i}", priority=priority) for name, priority in (("a", 4), ("b", 3), ("c", 2), ("d", 1))),
        )
    ]
    scene = Scene(*objects)
    for i in range(12):
        scene.nominate(pod(f"first-{i}", requests={"cpu": "1"}, priority=1000), f"n{i}")
    name, victims = chosen(scene.try_pod(high("1")))
    assert victims == [f"c{name[1:]}", f"d{name[1:]}"]


def test_many_nodes_at_once_leave_the_pods_own_nomination_out():
    objects = [obj for i in range(12) for obj in (node(f"n{i}", cpu="2"), low(f"p{i}", f"n{i}", "2", priority=i))]
    scene = Scene(*objects)
    scene.nominate(high(), "n0")
    assert chosen(scene.try_pod(pod("twin", requests={"cpu": "2"}, priority=1000))) == ("n1", ["p1"])
    assert chosen(scene.try_pod(high())) == ("n0", ["p0"])
    assert chosen(scene.try_pod(pod("twin", requests={"cpu": "2"}, priority=1000))) == ("n1", ["p1"])


# What is remembered of a pod's class


def test_nominations_that_come_and_go_are_noticed():
    scene = Scene(node("n1", cpu="2"), low("a", "n1", "2"), node("n2", cpu="2"), low("b", "n2", "2", priority=500))
    assert chosen(scene.try_pod(high())) == ("n1", ["a"])
    scene.nominate(pod("first", requests={"cpu": "2"}, priority=1000), "n1")
    assert chosen(scene.try_pod(high())) == ("n2", ["b"])
    scene.nominations.pods.clear()
    scene.nominations.changes.append("n1")
    assert chosen(scene.try_pod(high())) == ("n1", ["a"])


def test_pods_that_start_come_and_go_are_noticed():
    first, second = low("first", "n1", start_time=EARLY), low("second", "n1", start_time=LATE)
    scene = Scene(node("n1", cpu="2"), first, second)
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["second"])
    scene.store.put_pod(low("first", "n1", start_time=LATEST))
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["first"])
    scene.store.remove_pod(first.metadata.uid)
    scene.store.put_pod(low("third", "n1", priority=-1))
    assert chosen(scene.try_pod(high("1"))) == ("n1", ["third"])


def test_nodes_that_change_come_and_go_are_noticed():
    scene = Scene(node("n1", cpu="2"), low("a", "n1", "2"), node("n2", cpu="2"), low("b", "n2", "2", priority=500))
    assert chosen(scene.try_pod(high())) == ("n1", ["a"])
    scene.store.put_node(node("n1", cpu="2", taints=[taint("x")]))
    assert chosen(scene.try_pod(high())) == ("n2", ["b"])
    scene.store.put_node(node("n3", cpu="2"))
    scene.store.put_pod(low("c", "n3", "2"))
    assert chosen(scene.try_pod(high())) == ("n3", ["c"])
    scene.store.remove_node("n3")
    assert chosen(scene.try_pod(high())) == ("n2", ["b"])


def test_a_crowded_node_is_treated_like_any_other():
    crowd = [low(f"p{i}", "n0", "10m", priority=i) for i in range(300)]
    others = [obj for i in range(1, 8) for obj in (node(f"n{i}", cpu="3"), low(f"q{i}", f"n{i}", "3", priority=999))]
    scene = Scene(node("n0", cpu="3", pods=500), *crowd, *others)
    assert chosen(scene.try_pod(high("1"))) == ("n0", [f"p{i}" for i in reversed(range(100))])


# What extenders say


def test_extenders_narrow_the_candidates_in_turn():
    scene = Scene(
        node("n1", cpu="2"),
        low("a", "n1", "2"),
        node("n2", cpu="2"),
        low("b", "n2", "2", priority=5),
        node("n3", cpu="2"),
        low("c", "n3", "2", priority=9),
    )
    asked: list[list[str]] = []

    def without_first(wanted: PodView, candidates: Sequence[Preemption], nodes: Snapshot) -> Sequence[Preemption]:
        asked.append(sorted(c.node_name for c in candidates))
        return sorted(candidates, key=lambda c: c.node_name)[1:]

    scene.plugin.narrow = [without_first, without_first]
    assert chosen(scene.try_pod(high())) == ("n3", ["c"])
    assert asked == [["n1", "n2", "n3"], ["n2", "n3"]]


def test_extenders_may_name_other_victims():
    scene = Scene(
        node("n1", cpu="2"),
        low("a", "n1", priority=9),
        low("a2", "n1", priority=8),
        node("n2", cpu="2"),
        low("b", "n2", "2", priority=8),
    )

    def fewer(wanted: PodView, candidates: Sequence[Preemption], nodes: Snapshot) -> Sequence[Preemption]:
        return [Preemption(c.node_name, c.victims[-1:], c.violations) for c in candidates if c.node_name == "n1"]

    scene.plugin.narrow = [fewer]
    assert chosen(scene.try_pod(high())) == ("n1", ["a2"])


def test_extenders_may_leave_nobody():
    scene = Scene(node("n1", cpu="2"), low("a", "n1", "2"))
    scene.plugin.narrow = [lambda pod, candidates, nodes: []]
    made = scene.try_pod(high())
    assert message(made) == "preemption: no candidate node for preemption"
    assert made.post_filtered is not None and made.post_filtered.nomination is None


def test_an_extender_that_fails_ends_the_search():
    scene = Scene(node("n1", cpu="2"), low("a", "n1", "2"))

    def fails(wanted: PodView, candidates: Sequence[Preemption], nodes: Snapshot) -> Sequence[Preemption]:
        raise SchedulerError("extender is away")

    scene.plugin.narrow = [fails]
    made = scene.try_pod(high())
    assert made.post_filtered is not None and made.post_filtered.status.code is Code.ERROR
    assert message(made) == "preemption: extender is away"


# The gate and the wake-up


def test_a_pod_waits_while_its_victims_are_being_evicted():
    scene = Scene(node("n1", cpu="2"), low("a", "n1", "2"))
    view, victim = scene.store.view(high()), next(iter(scene.store.pods()))
    preempting = scene.handle.preempting
    assert scene.plugin.pre_enqueue(view) is None
    preempting.begin(view.uid)
    status = scene.plugin.pre_enqueue(view)
    assert status is not None and status.code is Code.UNRESOLVABLE
    assert status.message == "waiting for the preemption for this pod to be finished"
    preempting.await_last(view.uid, victim)
    assert scene.plugin.pre_enqueue(view) is not None, "the last victim is still there"
    preempting.stays_on = lambda pod: False
    assert scene.plugin.pre_enqueue(view) is None, "it is on its way, whether or not the eviction has returned"
    preempting.end(view.uid)
    assert len(preempting) == 0


def test_a_deleted_pod_is_for_others_to_judge():
    scene = Scene(node("n1"))
    gone = low("a", "n1")
    (wakeup,) = scene.plugin.wakeups() or ()
    assert wakeup.event.label == "PodDelete"
    assert scene.plugin.pod_went(scene.store.view(high()), gone, None) is False
