"""Preemption over columns finds what the slow and obvious way finds, and keeps finding it while the cluster changes.

The oracle takes one node after the other, one pod after the other, with the plain filters and counters of its own, and
knows neither arrays of pods, nor remembered results, nor disruption budgets as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.errors import SchedulerError
from kubesched.kube.api import matching
from kubesched.kube.api.meta import LabelSelector, ObjectMeta, parse_time
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.plugin import PostFiltered
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.runtime import with_nominated
from kubesched.scheduler.framework.runtime.building import build_profile
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.scheduler.framework.verdicts import Code, Placed, Status
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE
from kubesched.scheduler.plugins.default_preemption import dry_run as _dry_run
from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption, DefaultPreemptionArgs
from kubesched.testing import even, namespace, near, node, pod, taint

HOST = "kubernetes.io/hostname"
NODES = [f"n{i}" for i in range(6)]
LABELS = ({}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}, {"tier": "x"})


class Chance:
    """Numbers given beforehand."""

    def __init__(self, number: int) -> None:
        self.number = number

    def randrange(self, stop: int) -> int:
        return self.number % stop


class Nominations:
    """Who is nominated where, with a log, as the queue keeps it."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, PodView]] = {}
        self.changes: ChangeLog[str] = ChangeLog()

    def put(self, view: PodView, node_name: str) -> None:
        self.drop(view.uid)
        self.pods.setdefault(node_name, {})[view.uid] = view
        self.changes.append(node_name)

    def drop(self, uid: str) -> None:
        for node_name, pods in list(self.pods.items()):
            if pods.pop(uid, None) is not None:
                self.changes.append(node_name)
                if not pods:
                    del self.pods[node_name]

    def on_node(self, node_name: str) -> list[PodView]:
        return list(self.pods.get(node_name, {}).values())

    def nodes(self) -> list[str]:
        return list(self.pods)


class World:
    """A cluster, a profile with its remembered results, and who is nominated."""

    def __init__(self, objects: list[object], percentage: int, absolute: int, number: int) -> None:
        self.store = Store()
        self.nominations = Nominations()
        self.handle = EngineHandle(self.store.objects, random=Chance(number), nominations=self.nominations)
        configured = config.defaults(gates=config.Gates.defaults(), registry=IN_TREE_CATALOGUE).profiles[0]
        self.profile = build_profile(configured, Registry(*IN_TREE), self.handle)
        self.plugin = next(p for p in self.profile.plugins if isinstance(p, DefaultPreemption))
        self.plugin.args = DefaultPreemptionArgs(percentage, absolute)
        self.memo = EquivalenceCache(self.profile)
        for obj in objects:
            self.put(obj)

    def put(self, obj: object) -> None:
        self.store.put(obj)

    def decide(self, wanted: Pod) -> Attempt:
        """Decide the plain way; what memory says must be the same."""
        rules, view, nodes = Rules(SeededTies(), self.nominations), self.store.view(wanted), self.store.snapshot()
        made = attempt(view, nodes, self.profile, rules)
        assert said(attempt(view, nodes, self.profile, rules, self.memo)) == said(made)
        return made


def said(made: Attempt) -> tuple[object, ...]:
    """Return everything that a decision tells the world."""
    decision, result = made.decision, made.post_filtered
    proposed = (
        None
        if result is None or result.preemption is None
        else (result.preemption.node_name, [victim.key for victim in result.preemption.victims])
    )
    if isinstance(decision, Placed):
        return decision.node_name, decision.feasible
    assert made.diagnosis is not None
    return (decision.message, made.diagnosis.unschedulable_plugins, decision.nomination, proposed)


# The slow and obvious way


@dataclass
class Candidate:
    name: str
    victims: list[PodView]
    violations: int

    def cost(self) -> tuple[float, ...]:
        top = max(v.priority for v in self.victims)
        return (
            self.violations,
            top,
            sum(v.priority + 2**31 for v in self.victims),
            len(self.victims),
            -min(started(v) for v in self.victims if v.priority == top),
        )


@dataclass
class Found:
    candidates: list[Candidate] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def started(view: PodView) -> float:
    return parse_time(view.pod.status.start_time) if view.pod.status.start_time else inf


def split(pods: list[PodView], budgets: list[PodDisruptionBudget]) -> tuple[list[PodView], list[PodView]]:
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    violating, others = [], []
    for view in pods:
        is_over = False
        for i, budget in enumerate(budgets):
            if not view.labels or budget.metadata.namespace != view.namespace:
                continue
            try:
                selector = matching.compile_selector(budget.spec.selector)
            except matching.SelectorError:
                continue
            if selector.is_everything or not selector.matches(view.labels) or view.name in budget.status.disrupted_pods:
                continue
            allowed[i] -= 1
            is_over = is_over or allowed[i] < 0
        (violating if is_over else others).append(view)
    return violating, others


def fits(world: World, wanted: PodView, imagined: WhatIf, row: int, state: CycleState) -> Status:
    profile, nodes = world.profile, world.store.snapshot()
    ahead = [o for o in world.nominations.on_node(nodes.name(row)) if o.priority >= wanted.priority and o.uid != wanted.uid]
    if ahead:
        fuller, their_state = imagined.take([0]), state.clone()
        for other in ahead:
            fuller.move(other, 1)
            profile.adjust(wanted, other, row, 1, nodes, their_state)
        verdicts = profile.filter(wanted, fuller, their_state)
        if not verdicts.feasible[0]:
            return verdicts.status(0)
    return profile.filter(wanted, imagined, state).status(0)


def look_at(world: World, wanted: PodView, row: int, state: CycleState, found: Found) -> Candidate | None:
    nodes, profile = world.store.snapshot(), world.profile
    lower = [view for view in nodes.pods_on(row) if view.priority < wanted.priority]
    if not lower:
        count(found, ("No preemption victims found for incoming pod",))
        return None
    imagined, state = WhatIf.of(nodes, [row]), state.clone()
    for view in lower:
        imagined.move(view, -1)
        profile.adjust(wanted, view, row, -1, nodes, state)
    status = fits(world, wanted, imagined, row, state)
    if not status.is_success:
        count(found, status.reasons)
        return None
    lower.sort(key=lambda view: (-view.priority, started(view)))
    violating, others = split(lower, list(world.store.objects.all(PodDisruptionBudget)))
    victims = []
    for view in violating + others:
        imagined.move(view, 1)
        profile.adjust(wanted, view, row, 1, nodes, state)
        if not fits(world, wanted, imagined, row, state).is_success:
            imagined.move(view, -1)
            profile.adjust(wanted, view, row, -1, nodes, state)
            victims.append(view)
    if not victims:
        found.errors.append(f'expected at least one victim pod on node "{nodes.name(row)}"')
        return None
    n_violating = sum(view in violating for view in victims)
    return Candidate(nodes.name(row), sorted(victims, key=lambda v: (-v.priority, started(v))), n_violating)


def count(found: Found, reasons: tuple[str, ...]) -> None:
    for reason in reasons:
        found.reasons[reason] = found.reasons.get(reason, 0) + 1


def search(world: World, made: Attempt) -> Found:
    """Visit the nodes as the plugin must, and stop when there are enough candidates."""
    found, nodes = Found(), made.nodes
    assert made.diagnosis is not None
    potential = [row for row in range(nodes.n) if made.diagnosis.status(nodes.name(row)).code is Code.UNSCHEDULABLE]
    n, args = len(potential), world.plugin.args
    clean: list[Candidate] = []
    breaking: list[Candidate] = []
    explained = 0
    if n:
        limit = min(n, max(n * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute))
        offset = world.handle.random.randrange(n)
        for i in range(n):
            before = dict(found.reasons), len(found.errors)
            candidate = look_at(world, made.pod, potential[(offset + i) % n], made.state, found)
            if candidate is None:
                explained += (dict(found.reasons), len(found.errors)) != before
                continue
            chosen = breaking if candidate.violations else clean
            if len(chosen) < limit:
                chosen.append(candidate)
            if clean and len(clean) + len(breaking) >= limit:
                break
    found.candidates = clean + breaking
    if explained < nodes.n:
        found.reasons["Preemption is not helpful for scheduling"] = nodes.n - explained
    return found


def agree(made: Attempt, answer: PostFiltered, found: Found) -> None:
    if found.candidates:
        assert answer.preemption is not None, (answer.status, found)
        best = min(candidate.cost() for candidate in found.candidates)
        accepted = {c.name: ({v.key for v in c.victims}, c.violations) for c in found.candidates if c.cost() == best}
        name, victims = answer.preemption.node_name, answer.preemption.victims
        assert name in accepted
        assert ({v.key for v in victims}, answer.preemption.violations) == accepted[name]
        assert list(victims) == sorted(victims, key=lambda v: (-v.priority, started(v)))
        assert answer.nomination is not None and answer.nomination.node_name == name
        assert answer.status.is_success
    elif found.errors:
        assert answer.status.code is Code.ERROR
        assert all(error in answer.status.message for error in found.errors)
    else:
        lines = ", ".join(sorted(f"{count} {reason}" for reason, count in found.reasons.items()))
        assert answer.status.reasons == (f"preemption: 0/{made.nodes.n} nodes are available: {lines}.",)
        assert answer.nomination is not None and answer.nomination.node_name == ""


def check(world: World, wanted: Pod, few: int = 4) -> None:
    """Decide, and compare. `few` is the number of rows up to which nodes are looked at one by one."""
    _dry_run._FEW = with_nominated._FEW = few
    made = world.decide(wanted)
    if made.feasible is not None and made.feasible.any():
        return
    assert made.diagnosis is not None, made.decision
    answer = world.plugin.post_filter(made.pod, made.nodes, made.state, made.diagnosis, world.profile)
    agree(made, answer, search(world, made))


# Random clusters

priorities = st.sampled_from((-10, 0, 0, 10, 10, 100, None))
times = st.sampled_from((None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"))
cpus = st.sampled_from(("", "500m", "1", "1500m", "2"))
affinities = st.sampled_from(
    (None, None, None, near({"app": "a"}, HOST, away=True), near({"app": "b"}, away=True), near({"app": "a"}))
)
spreads = st.sampled_from(((), (), (even({"app": "a"}),), (even({"app": "a"}, HOST, skew=2),)))
names = st.sampled_from(NODES)
fews = st.sampled_from((0, 0, 4))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return node(
        name,
        cpu=draw(st.sampled_from(("2", "3", "4"))),
        pods=draw(st.sampled_from((2, 4, 110))),
        zone=draw(st.sampled_from(("", "z1", "z2"))),
        cordoned=draw(st.sampled_from((False,) * 7 + (True,))),
        taints=draw(st.sampled_from(((),) * 5 + ((taint("gpu"),),))),
    )


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "", plain: bool = False) -> Pod:
    cpu = draw(cpus)
    return pod(
        name,
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        labels=draw(st.sampled_from(LABELS)),
        requests={"cpu": cpu} if cpu else {},
        on=on,
        priority=draw(priorities),
        start_time=draw(times),
        affinity=None if plain else draw(affinities),
        host_ports=draw(st.sampled_from(((),) * 6 + ((80,), (81,), (80, 81)))),
        deleted_at=draw(st.sampled_from((None,) * 7 + ("2026-01-03T00:00:00Z",))),
    )


@st.composite
def preemptors(draw: st.DrawFn, plain: bool = False) -> Pod:
    return pod(
        "new",
        labels=draw(st.sampled_from(LABELS)),
        requests={"cpu": draw(st.sampled_from(("1", "2", "3")))},
        priority=draw(st.sampled_from((0, 10, 100, 1000))),
        affinity=None if plain else draw(affinities),
        spread=() if plain else draw(spreads),
        host_ports=draw(st.sampled_from(((),) * 4 + ((80,),))),
    )


@st.composite
def budgets(draw: st.DrawFn, name: str) -> PodDisruptionBudget:
    selector = draw(
        st.sampled_from(
            (
                None,
                LabelSelector(),
                LabelSelector(match_labels={"app": "a"}),
                LabelSelector(match_labels={"tier": "x"}),
                LabelSelector(match_labels={"app": "not a value!"}),
            )
        )
    )
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=draw(st.sampled_from(("default", "default", "other")))),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=draw(st.integers(0, 2)),
            disrupted_pods=draw(st.sampled_from(({}, {}, {}, {"p0": "2026-01-01T00:00:00Z"}))),
        ),
    )


@st.composite
def worlds(draw: st.DrawFn, plain: bool = False) -> World:
    present = NODES[: draw(st.integers(1, len(NODES)))]
    objects: list[object] = [namespace("default"), namespace("other")]
    objects += [draw(nodes(name)) for name in present]
    objects += [draw(pods(f"p{i}", draw(st.sampled_from(present)), plain)) for i in range(draw(st.integers(0, 14)))]
    objects += [draw(budgets(f"budget-{i}")) for i in range(draw(st.integers(0, 3)))]
    world = World(objects, draw(st.sampled_from((0, 10, 50))), draw(st.sampled_from((1, 2, 3, 100))), draw(st.integers(0, 20)))
    for i in range(draw(st.integers(0, 3))):
        view = world.store.view(draw(pods(f"nominated-{i}", plain=plain)))
        world.nominations.put(view, draw(st.sampled_from(present)))
    return world


def examples(n: int) -> settings:
    return settings(max_examples=n, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@examples(200)
@given(worlds(), preemptors(), st.booleans(), fews)
def test_columns_agree_with_the_slow_and_obvious_way(world: World, wanted: Pod, is_nominated: bool, few: int) -> None:
    if is_nominated:
        world.nominations.put(world.store.view(wanted), NODES[0])
    check(world, wanted, few)


@examples(60)
@given(st.data(), worlds(), st.lists(preemptors(), min_size=1, max_size=2))
def test_it_stays_so_while_the_cluster_changes(data: st.DataObject, world: World, wanted: list[Pod]) -> None:
    for step in range(data.draw(st.integers(2, 6))):
        check(world, data.draw(st.sampled_from(wanted)), data.draw(fews))
        change(data, world, step)
    check(world, wanted[0])


@examples(150)
@given(st.data(), worlds(plain=True), preemptors(plain=True), st.booleans())
def test_what_is_remembered_of_a_class_stays_true(data: st.DataObject, world: World, wanted: Pod, is_nominated: bool) -> None:
    """Pods without affinity are answered from memory: several of one class ask while the cluster changes."""
    if is_nominated:
        world.nominations.put(world.store.view(wanted), NODES[0])
    for step in range(data.draw(st.integers(2, 10))):
        twin = msgspec.structs.replace(wanted.metadata, name=f"twin-{step}", uid=f"uid-twin-{step}")
        asking = msgspec.structs.replace(wanted, metadata=twin) if data.draw(st.booleans()) else wanted
        check(world, asking, data.draw(fews))
        change(data, world, step, plain=True)
    check(world, wanted)


def change(data: st.DataObject, world: World, step: int, plain: bool = False) -> None:
    """Let something happen to the cluster."""
    placed = list(world.store.pods())
    what = data.draw(st.sampled_from(("come", "go", "start", "nominate", "denominate", "budget", "node", "leave")))
    if what == "come":
        on = data.draw(st.sampled_from(world.store.snapshot().names))
        world.put(data.draw(pods(f"late-{step}", on, plain)))
    elif what == "go" and placed:
        world.store.remove_pod(data.draw(st.sampled_from(placed)).uid)
    elif what == "start" and placed:
        old = data.draw(st.sampled_from(placed)).pod
        status = msgspec.structs.replace(old.status, start_time=data.draw(times))
        world.put(msgspec.structs.replace(old, status=status))
    elif what == "nominate":
        view = world.store.view(data.draw(pods(f"nominated-{data.draw(st.integers(0, 3))}", plain=plain)))
        world.nominations.put(view, data.draw(names))
    elif what == "denominate":
        world.nominations.drop(f"uid-default-nominated-{data.draw(st.integers(0, 3))}")
    elif what == "budget":
        name = f"budget-{data.draw(st.integers(0, 2))}"
        if data.draw(st.booleans()):
            world.put(data.draw(budgets(name)))
        else:
            world.store.objects.drop(PodDisruptionBudget, name, "default")
    elif what == "node":
        world.put(data.draw(nodes(data.draw(names))))
    elif what == "leave" and world.store.snapshot().n > 1:
        world.store.remove_node(data.draw(st.sampled_from(world.store.snapshot().names)))


@examples(100)
@given(worlds(), preemptors())
def test_the_victims_suffice_and_none_is_superfluous(world: World, wanted: Pod) -> None:
    """Checked against a cluster from which they are really gone, without any imagining."""
    for uid in [view.uid for pods in world.nominations.pods.values() for view in pods.values()]:
        world.nominations.drop(uid)
    if any(view.pod.metadata.deletion_timestamp for view in world.store.pods()) or has_twin_ports(world):
        return  # a what-if counts these otherwise than the real thing, as in the reference
    made = world.decide(wanted)
    result = made.post_filtered
    if result is None or result.preemption is None:
        return
    name, victims = result.preemption.node_name, result.preemption.victims
    for victim in victims:
        world.store.remove_pod(victim.uid)
    assert passes(world, wanted, name)
    for victim in reversed(victims):
        world.store.put_pod(victim.pod)
        assert not passes(world, wanted, name)
        world.store.remove_pod(victim.uid)


def has_twin_ports(world: World) -> bool:
    held = [(view.node_name, port) for view in world.store.pods() for port in view.template.ports]
    return len(held) != len(set(held))


def passes(world: World, wanted: Pod, name: str) -> bool:
    view, nodes, state = world.store.view(wanted), world.store.snapshot(), CycleState()
    profile: Profile = world.profile
    try:
        assert profile.pre_filter(view, nodes, state).status is None
        return bool(profile.filter(view, nodes, state).feasible[nodes.row(name)])
    except SchedulerError as error:
        raise AssertionError(str(error)) from error
