"""The same cluster on both sides, the same questions, and where the answers differ.

Every question is asked in two ways: each plugin on its own, about all nodes, so that no plugin hides behind an earlier
one; and all of them together, as an attempt that ends in a node or in a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import msgspec
import numpy as np

from kubesched.errors import PluginError
from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Gates as StoreGates
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import FirstByName
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.plugin import NodeNames, Plugin
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.runtime import lifting
from kubesched.scheduler.framework.runtime.building import build_profile, catalogue
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.scheduler.framework.verdicts import Failed, Placed, Status, Unschedulable
from kubesched.scheduler.plugins import IN_TREE
from kubesched.testing.nominations import Nominations
from oracles import deciding
from oracles.cluster import SKIP, Cluster, Oracle
from oracles.fuzzer import THEMES, Fuzzer, document
from oracles.interpod import GROUPS
from oracles.plain import host_ports
from oracles.selecting import is_everything

Raw = dict[str, Any]
COMPARES = "TaintTolerationComparisonOperators"


@cache
def registry() -> Registry:
    return Registry(*IN_TREE)


class Scene:
    """A random cluster, arguments, gates, incoming pods, and pods nominated to nodes: all plain data."""

    def __init__(self, seed: int, most_nodes: int = 7) -> None:
        random = Random(seed)
        wild = Fuzzer(random, random.choice(tuple(THEMES)))
        n = random.choice((0, 1, *range(2, most_nodes + 1)))
        self.seed = seed
        self.objects = wild.objects(n, random.randrange(0, 5 * n + 1))
        self.args = wild.args() if random.random() < 0.7 else {}
        self.gates = frozenset({COMPARES}) if random.random() < 0.15 else frozenset()
        self.pods = [wild.pod(f"new-{i}") for i in range(3)]
        self.others = [wild.pod(f"other-{i}") for i in range(4)]
        """Pods that come to nodes, or are nominated to them, in the course of a comparison."""

    def __repr__(self) -> str:
        return f"seed {self.seed}"


class Ours:
    """The package's side of a scene."""

    def __init__(self, scene: Scene) -> None:
        gates = config.Gates.of(dict.fromkeys(scene.gates, True), emulated=(1, 36))
        self.store = Store(StoreGates(toleration_comparison=bool(scene.gates), whole_pod_resize=False))
        for raw in scene.objects:
            self.put(raw)
        text = msgspec.json.encode(document(scene.args)).decode()
        loaded = config.load(text, gates=gates, registry=catalogue(registry()))
        self.nominations = Nominations()
        self.handle = EngineHandle(self.store.objects, gates, nominations=self.nominations)
        self.profile = build_profile(loaded.profiles[0], registry(), self.handle)
        self.plugins = {plugin.name: plugin for plugin in self.profile.plugins}
        self.rules = Rules(FirstByName(), self.nominations, preempts=False, scores_single=True)

    def put(self, raw: Raw) -> None:
        obj = codec.decode(raw)
        self.store.put(obj)

    def view(self, raw: Raw) -> PodView:
        return self.store.view(codec.convert(raw, Pod))

    def decide(self, raw: Raw) -> Attempt:
        return attempt(self.view(raw), self.store.snapshot(), self.profile, self.rules)


# Each plugin on its own


def compare_plugins(scene: Scene, pod: Raw, random: Random) -> Iterator[str]:
    """Yield where a plugin and its oracle differ about a pod."""
    ours, cluster = Ours(scene), Cluster(scene.objects)
    view, nodes = ours.view(pod), ours.store.snapshot()
    for cls in deciding.ORDER:
        if cls is deciding.DynamicResources:
            continue
        oracle, plugin, state = cls(cluster, scene.args.get(cls.name, {}), scene.gates), ours.plugins[cls.name], CycleState()
        if plugin in ours.profile.pre_filters:
            expected, found = oracle.pre_filter(pod), _answer(plugin.pre_filter(view, nodes, state))
            if not _same(expected, found):
                yield f"{cls.name} PreFilter: expected {expected}, found {found}"
            if expected is not None and not isinstance(expected, frozenset) and expected != SKIP:
                continue
            if expected == SKIP and cls.name != "InterPodAffinity":
                state = CycleState()
        if cls.filters and plugin.name not in _skipping(oracle, pod, cluster):
            yield from _compare_filter(ours, plugin, oracle, pod, view, state)
        if cls.scores and nodes.n:
            yield from _compare_score(ours, plugin, oracle, pod, view, state, random)


def _skipping(oracle: Oracle, pod: Raw, cluster: Cluster) -> set[str]:
    fresh = type(oracle)(cluster, oracle.args, oracle.gates)
    return {oracle.name} if fresh.pre_filter(pod) == SKIP else set()


def _compare_filter(ours: Ours, plugin: Plugin, oracle: Oracle, pod: Raw, view: PodView, state: CycleState) -> Iterator[str]:
    nodes = ours.store.snapshot()
    columns = ours.profile.filter_one(plugin, view, nodes, state)
    answers = {"filter": columns}
    if plugin.implements("filter_node") and plugin.implements("filter"):
        answers["filter_node"] = lifting.filter_rows(plugin, view, nodes, state)
    for name, node in oracle.cluster.nodes.items():
        expected = oracle.filter(pod, node)
        for how, rejections in answers.items():
            status = rejections.status(nodes.row(name))
            found = None if status.is_success else _answer(status)
            if not _same(expected, found):
                yield f"{plugin.name} {how} {name}: expected {expected}, found {found}"


def _compare_score(
    ours: Ours, plugin: Plugin, oracle: Oracle, pod: Raw, view: PodView, state: CycleState, random: Random
) -> Iterator[str]:
    nodes, profile = ours.store.snapshot(), ours.profile
    names = sorted(random.sample(sorted(oracle.cluster.nodes), random.randrange(1, nodes.n + 1)))
    feasible = np.zeros(nodes.n, dtype=np.bool_)
    feasible[nodes.rows_of(names)] = True
    expected = oracle.pre_score(pod, [oracle.cluster.nodes[name] for name in names])
    found = _answer(plugin.pre_score(view, nodes, feasible, state))
    if not _same(expected, found):
        yield f"{plugin.name} PreScore of {names}: expected {expected}, found {found}"
    if expected is not None or found is not None:
        return
    raw = {name: oracle.score(pod, oracle.cluster.nodes[name]) for name in names}
    normal = oracle.normalize(pod, raw)
    column = profile.raw_score(plugin, view, nodes, feasible, state)
    scaled = profile.normalized(plugin, column, view, nodes, feasible, state)
    answers = {
        "Score": (raw, column),
        "NormalizeScore": (normal, scaled),
        "rate": (normal, profile.rate(plugin, view, nodes, feasible, state)),
    }
    if plugin.implements("score_node"):
        answers["score_node"] = raw, lifting.score_rows(plugin, view, nodes, feasible, state)
    for how, (wanted, got) in answers.items():
        by_name = {name: int(got[nodes.row(name)]) for name in names}
        if by_name != wanted:
            yield f"{plugin.name} {how}: expected {wanted}, found {by_name}"


def _answer(answer: Any) -> Any:
    """Return a plugin's answer in the words of the oracles."""
    if answer is None or (isinstance(answer, Status) and answer.is_success):
        return None
    if isinstance(answer, NodeNames):
        return answer.names
    return answer.code.text, tuple(_told(reason) for reason in answer.reasons)


def _told(reason: str) -> str:
    """Return a reason as oracles tell it: they name what cannot be read, not what is wrong with it."""
    if not reason.startswith("parsing pod: "):
        return reason
    return "parsing pod: " + ",".join(group for group in GROUPS if f"{group}: " in reason)


def _same(expected: Any, found: Any) -> bool:
    if expected is None or found is None or isinstance(expected, frozenset) or isinstance(found, frozenset):
        return bool(expected == found)
    if expected[0] == "Error":  # what is said about it is not compared
        return bool(found[0] == "Error")
    return expected[0] == found[0] and sorted(expected[1]) == sorted(found[1])


# Pods that come and go


def compare_adjusting(scene: Scene, pod: Raw, random: Random) -> Iterator[str]:
    """Yield where counters that were told of pods coming and going differ from the oracle's, told the same.

    Two plugins count pods over the cluster. What they say after `add_pod` and `remove_pod` must be what they would say
    of a cluster to which the pods had really come, except where the reference itself counts an imagined pod otherwise.
    """
    ours, cluster = Ours(scene), Cluster(scene.objects)
    view, nodes, state = ours.view(pod), ours.store.snapshot(), CycleState()
    oracles = {cls.name: cls(cluster, scene.args.get(cls.name, {}), scene.gates) for cls in deciding.ORDER}
    if not nodes.n or not _gets_past_pre_filter(ours, view, state):
        return
    active = [plugin for plugin in ours.profile.adjusting if plugin.name in oracles and plugin.name not in state.skip_filter]
    for plugin in active:
        oracles[plugin.name].pre_filter(pod)
    before, imagined = state.clone(), state.clone()
    changes: list[tuple[Raw, str, int]] = [(other, random.choice(sorted(cluster.nodes)), 1) for other in scene.others]
    changes += [(other, node["metadata"]["name"], -1) for other, node in cluster.placed() if random.random() < 0.4]
    for other, name, sign in random.sample(changes, random.randrange(1, len(changes) + 1)):
        other = {**other, "spec": {**other["spec"], "nodeName": name}}
        ours.profile.adjust(view, ours.view(other), nodes.row(name), sign, nodes, imagined)
        for plugin in active:
            oracles[plugin.name].add_pod(pod, other, cluster.nodes[name], sign)
    for plugin in active:
        yield from _compare_filter(ours, plugin, oracles[plugin.name], pod, view, imagined)
        untouched = ours.profile.filter_one(plugin, view, nodes, before)
        again = ours.profile.filter_one(plugin, view, nodes, state)
        if any(untouched.status(row) != again.status(row) for row in range(nodes.n)):
            yield f"{plugin.name}: what was imagined changed the attempt it was imagined in"


def compare_arriving(scene: Scene, pod: Raw, random: Random) -> Iterator[str]:
    """Yield where one node with imagined pods differs from the same node in a cluster where they really are."""
    changed = Scene.__new__(Scene)
    changed.seed, changed.args, changed.gates = scene.seed, scene.args, scene.gates
    ours, cluster = Ours(scene), Cluster(scene.objects)
    view, nodes, state = ours.view(pod), ours.store.snapshot(), CycleState()
    if not nodes.n or not _gets_past_pre_filter(ours, view, state):
        return
    name = random.choice(sorted(cluster.nodes))
    coming = [{**other, "spec": {**other["spec"], "nodeName": name}} for other in scene.others[:2]]
    going = [other for other in cluster.pods_on(cluster.nodes[name]) if random.random() < 0.4]
    if _is_imagined_otherwise(pod, [*coming, *going], cluster.pods_on(cluster.nodes[name])):
        return
    imagined, their_state = WhatIf.of(nodes, [nodes.row(name)]), state.clone()
    for other in coming:
        imagined.move(ours.view(other), 1)
        ours.profile.adjust(view, ours.view(other), nodes.row(name), 1, nodes, their_state)
    for other in going:
        placed = ours.store.pod(other["metadata"]["uid"])
        assert placed is not None
        imagined.move(placed, -1)
        ours.profile.adjust(view, placed, nodes.row(name), -1, nodes, their_state)
    gone = {other["metadata"]["uid"] for other in going}
    changed.objects = [obj for obj in scene.objects if obj["metadata"]["uid"] not in gone] + coming
    real = Ours(changed)
    real_state = CycleState()
    real.profile.pre_filter(real.view(pod), real.store.snapshot(), real_state)
    real_state.skip_filter |= state.skip_filter  # who has nothing to say about a pod is not asked again
    one = real.store.snapshot().take([real.store.snapshot().row(name)])
    expected = real.profile.filter(real.view(pod), one, real_state).status(0)
    found = ours.profile.filter(view, imagined, their_state).status(0)
    if (expected.plugin, expected.code, sorted(expected.reasons)) != (found.plugin, found.code, sorted(found.reasons)):
        yield f"{name} with pods: expected {expected}, found {found}"


def _gets_past_pre_filter(ours: Ours, view: PodView, state: CycleState) -> bool:
    try:
        return ours.profile.pre_filter(view, ours.store.snapshot(), state).status is None
    except PluginError:
        return False


def _is_imagined_otherwise(pod: Raw, moved: list[Raw], others: list[Raw]) -> bool:
    """Return whether the reference itself sees an imagined pod otherwise than a real one: a spread constraint for all
    pods counts it, one on its way out is counted, and of two holders of a host port either frees it."""
    own = pod["spec"].get("topologySpreadConstraints") or []
    ports = [port for other in [*moved, *others] for port in host_ports(other)]
    return (
        any(is_everything(c.get("labelSelector")) for c in own)
        or len(ports) != len(set(ports))
        or any(other["metadata"].get("deletionTimestamp") for other in moved)
    )


def nominate(scene: Scene, pod: Raw, random: Random) -> tuple[Raw, dict[str, list[Raw]]]:
    """Return the pod, perhaps nominated itself, and others nominated to nodes."""
    names = [obj["metadata"]["name"] for obj in scene.objects if obj["kind"] == "Node"]
    nominated: dict[str, list[Raw]] = {}
    for other in scene.others:
        nominated.setdefault(random.choice([*names, "gone"]), []).append(other)
    if names and random.random() < 0.4:
        name = random.choice(names)
        nominated.setdefault(name, []).append(pod)
        if random.random() < 0.7:
            pod = {**pod, "status": {"nominatedNodeName": name}}
    return pod, nominated


# All of them together


def compare_attempt(
    scene: Scene, pod: Raw, nominated: dict[str, list[Raw]] | None = None, ours: Ours | None = None
) -> Iterator[str]:
    """Yield where an attempt and its oracle differ; with pods nominated to nodes if there are any."""
    ours = ours or Ours(scene)
    for name, others in (nominated or {}).items():
        for other in others:
            ours.nominations.put(ours.view(other), name)
    cluster = Cluster(scene.objects)
    if not cluster.nodes:
        return
    expected = deciding.Attempt(cluster, scene.args, pod, scene.gates, nominated).decide()
    made = ours.decide(pod)
    found = _told_attempt(made, pod)
    for what in expected.keys() | found.keys():
        wanted, got = expected.get(what), found.get(what)
        if what == "error":
            wanted, got = wanted is not None, got is not None
        if what == "rejected":
            wanted, got = _sorted_reasons(wanted), _sorted_reasons(got)
        if wanted != got:
            yield f"{what}: expected {wanted}, found {got}"
    yield from _compare_memory(ours, pod, expected)


def _told_attempt(made: Attempt, pod: Raw) -> Raw:
    told: Raw = {"pod": f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"}
    decision, before = made.decision, made.pre_filtered
    if isinstance(decision, Failed):
        return {**told, "error": decision.message}
    assert before is not None
    if before.status is not None:
        told["preFilter"] = {
            "code": before.status.code.text,
            "plugin": before.status.plugin,
            "reasons": [_told(reason) for reason in before.status.reasons],
        }
    rows = np.flatnonzero(made.feasible).tolist() if made.feasible is not None else []
    told["feasible"] = sorted(made.nodes.name(row) for row in rows)
    if made.verdicts is not None and made.diagnosis is not None:
        told["rejected"] = {
            name: {"code": status.code.text, "plugin": status.plugin, "reasons": list(status.reasons)}
            for name, status in made.diagnosis.statuses().items()
        }
    if before.status is None and before.considered is not None:
        told["otherNodes"] = {"code": before.absent.code.text, "reasons": list(before.absent.reasons)}
    if made.scores is not None:
        told["scores"] = {
            name: {plugin: int(column[made.nodes.row(name)]) for plugin, column in made.scores.by_plugin.items()}
            for name in told["feasible"]
        }
    if isinstance(decision, Placed):
        told["decision"] = decision.node_name
    elif isinstance(decision, Unschedulable):
        head, _, tail = decision.message.partition("available: ")
        is_parsing = tail.startswith("parsing pod: ")
        told["fitError"] = f"{head}available: {_told(tail[:-1])}." if is_parsing else decision.message
    return told


def _sorted_reasons(rejected: Raw | None) -> Raw:
    return {name: {**status, "reasons": sorted(status["reasons"])} for name, status in (rejected or {}).items()}


def _compare_memory(ours: Ours, pod: Raw, expected: Raw) -> Iterator[str]:
    """Decide twice from memory: when the answer is built, and when it is recalled."""
    memo = EquivalenceCache(ours.profile)
    rules = Rules(FirstByName(), ours.nominations, preempts=False)
    for turn in ("built", "recalled"):
        made = attempt(ours.view(pod), ours.store.snapshot(), ours.profile, rules, memo)
        if isinstance(made.decision, Placed):
            totals = {name: sum(scores.values()) for name, scores in expected.get("scores", {}).items()}
            best = {name for name, total in totals.items() if total == max(totals.values())}
            if "error" in expected and made.decision.feasible == 1:
                continue  # a single node is taken without asking scorers, who would have failed
            if made.decision.node_name not in best:
                yield f"from memory, {turn}: expected one of {sorted(best)}, found {made.decision.node_name}"
        elif isinstance(made.decision, Unschedulable):
            message = _told_attempt(made, pod)["fitError"]
            if message != expected.get("fitError"):
                yield f"from memory, {turn}: expected {expected.get('fitError')}, found {message}"
        elif "error" not in expected:
            yield f"from memory, {turn}: {made.decision}"
