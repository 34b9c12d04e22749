"""Names to predicates and priorities: registering one's own, changing providers, looking up."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from legacy_clusters import World, node, pod, service

from kubesched.errors import ConfigError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import NodeView
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable
from kubesched.scheduler.legacy import (
    Algorithm,
    Custom,
    Options,
    PluginFactoryArgs,
    Registry,
    load_policy,
    profile_from_policy,
    profile_from_provider,
    register_fit_predicate,
    register_priority,
)
from kubesched.scheduler.legacy.registry import CUSTOM
from kubesched.scheduler.legacy.releases import V1_13, V1_17, LegacyContext

WORLD = [node("a", {"disk": "ssd"}), node("b", {"disk": "hdd"}), node("c")]


def has_disk(pod: PodView, view: NodeView) -> bool | str:
    """Only nodes with a disk."""
    return "disk" in view.labels or "node(s) had no disk"


def prefers_hdd(pod: PodView, view: NodeView) -> int:
    return 7 if view.labels.get("disk") == "hdd" else 2


def policy(world: World, custom: Custom, version: str = "1.17", **fields: Any) -> Algorithm:
    text = json.dumps({"kind": "Policy", "apiVersion": "v1", **fields})
    return profile_from_policy(load_policy(text, version), world.handle, version, Options(custom=custom))


@pytest.mark.parametrize("version", ["1.4", "1.6", "1.13", "1.17"])
def test_functions_become_predicates_and_priorities(version: str) -> None:
    custom = Custom()
    assert custom.register_fit_predicate("HasDisk", has_disk) == "HasDisk"
    assert custom.register_priority("PrefersHdd", prefers_hdd, 3) == "PrefersHdd"
    world = World(list(WORLD))
    algorithm = policy(
        world, custom, version, predicates=[{"name": "HasDisk"}], priorities=[{"name": "PrefersHdd", "weight": 5}]
    )
    made = world.attempt(algorithm.profile)
    assert isinstance(made.decision, Placed) and made.decision.node_name == "b"
    assert made.verdicts is not None and made.verdicts.statuses()["c"].reasons == ("node(s) had no disk",)
    assert made.scores is not None and made.scores.total.tolist() == [10, 35, -1]


def test_a_priority_keeps_its_own_weight_in_a_provider() -> None:
    custom = Custom()
    custom.register_fit_predicate("HasDisk", has_disk, mandatory=True)
    custom.register_priority(
        "PrefersHdd", prefers_hdd, 3, reduce=lambda pod, scores: {name: score * 10 for name, score in scores.items()}
    )
    custom.register_algorithm_provider("Mine", ["HostName"], ["PrefersHdd"])
    world = World(list(WORLD))
    algorithm = profile_from_provider("Mine", world.handle, options=Options(custom=custom))
    assert algorithm.predicates == ("CheckNodeUnschedulable", "HostName", "PodToleratesNodeTaints", "HasDisk")
    made = world.attempt(algorithm.profile)
    assert made.scores is not None and made.scores.total.tolist() == [60, 210, -1]


def test_all_custom_reasons_are_told_if_asked_for() -> None:
    custom = Custom()
    custom.register_fit_predicate("One", lambda pod, view: False)
    custom.register_fit_predicate("Two", lambda pod, view: ["second", "third"])
    for asks, reasons in ((False, ("One",)), (True, ("One", "second", "third"))):
        world = World([node("a")])
        algorithm = policy(
            world, custom, alwaysCheckAllPredicates=asks, priorities=[], predicates=[{"name": "One"}, {"name": "Two"}]
        )
        made = world.attempt(algorithm.profile)
        assert isinstance(made.decision, Unschedulable) and made.verdicts is not None
        assert made.verdicts.statuses()["a"].reasons == reasons


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda pod, view: None, "expected True, False or reasons for node a, got None"),
        (lambda pod, view: [1], "expected True, False or reasons for node a, got [1]"),
    ],
)
def test_a_predicate_that_answers_nonsense_ends_the_attempt(function: Any, text: str) -> None:
    custom = Custom()
    custom.register_fit_predicate("Odd", function)
    world = World([node("a")])
    made = world.attempt(policy(world, custom, predicates=[{"name": "Odd"}]).profile)
    assert isinstance(made.decision, Failed) and text in made.decision.message


@pytest.mark.parametrize(
    ("function", "reduce", "text"),
    [
        (lambda pod, view: 1.5, None, "expected a whole number for node a, got 1.5"),
        (lambda pod, view: 101, None, "returns an invalid score 101"),
        (lambda pod, view: 1, lambda pod, scores: {}, "expected a score for each of 1 nodes, got {}"),
    ],
)
def test_a_priority_that_answers_nonsense_ends_the_attempt(function: Any, reduce: Any, text: str) -> None:
    custom = Custom()
    custom.register_priority("Odd", function, 1, reduce)
    world = World([node("a")])
    made = world.attempt(policy(world, custom, predicates=[], priorities=[{"name": "Odd", "weight": 1}]).profile)
    assert isinstance(made.decision, Failed) and text in made.decision.message


@pytest.mark.parametrize("name", ["x", "a_b", "-ab", "ab-", ""])
def test_names_that_are_refused(name: str) -> None:
    text = f'Algorithm name {name} does not match the name validation regexp "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".'
    for register in (
        lambda: Custom().register_fit_predicate(name, has_disk),
        lambda: Custom().register_priority(name, prefers_hdd),
        lambda: Custom().register_algorithm_provider(name, [], []),
    ):
        with pytest.raises(ConfigError) as error:
            register()
        assert str(error.value) == text


def test_registering_again_replaces() -> None:
    custom = Custom()
    custom.register_fit_predicate("HostName", lambda pod, view: "never")
    world = World([node("a")], pod("new"))
    made = world.attempt(policy(world, custom, predicates=[{"name": "HostName"}]).profile)
    assert made.verdicts is not None and made.verdicts.statuses()["a"].reasons == ("never",)


def test_the_functions_of_the_room_register_for_everybody() -> None:
    try:
        register_fit_predicate("HasDiskForAll", has_disk)
        register_priority("PrefersHddForAll", prefers_hdd)
        registry = Registry(V1_17)
        assert "HasDiskForAll" in registry.predicates and "PrefersHddForAll" in registry.priorities
    finally:
        del CUSTOM.predicates["HasDiskForAll"], CUSTOM.priorities["PrefersHddForAll"]


def test_lookups_in_the_words_of_the_release() -> None:
    handle = World([]).handle
    for release, word in ((V1_13, "Invalid"), (V1_17, "invalid")):
        registry = Registry(release)
        with pytest.raises(ConfigError) as error:
            registry.build_predicate("Nonsense", LegacyContext(release), handle)
        assert str(error.value) == f'{word} predicate name "Nonsense" specified - no corresponding function found'
        with pytest.raises(ConfigError) as error:
            registry.priority("Nonsense")
        assert str(error.value) == f"{word} priority name Nonsense specified - no corresponding function found"


def test_to_the_letter_unlisted_predicates_never_run() -> None:
    custom = Custom()
    custom.register_fit_predicate("Never", lambda pod, view: False)
    world = World([node("a")])
    unlisted = [{"name": "Never"}, {"name": "PodFitsPorts"}]
    text = json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": unlisted})
    for letter, names in ((True, ()), (False, ("PodFitsPorts", "Never"))):
        options = Options(custom=custom, to_the_letter=letter)
        algorithm = profile_from_policy(load_policy(text), world.handle, options=options)
        mandatory = {"CheckNodeUnschedulable", "PodToleratesNodeTaints"}
        assert tuple(name for name in algorithm.predicates if name not in mandatory) == names


def test_factories_are_given_listers() -> None:
    """RegisterFitPredicateFactory and PriorityFunctionFactory2: functions that look at more than the pod and the node."""
    custom = Custom()

    def near_a_service(args: PluginFactoryArgs) -> Any:
        return lambda pod, node: (
            any(service.metadata.name == node.name for service in args.services()) or "node(s) without service"
        )

    def fewest_pods(args: PluginFactoryArgs) -> Any:
        def score(pod: PodView, node: NodeView) -> int:
            info = args.node_info(node.name)
            assert info is not None and len(args.nodes()) == 3
            return 10 - sum(1 for other in args.pods() if other.node_name == node.name)

        return score, None

    custom.register_fit_predicate_factory("NearAService", near_a_service)
    custom.register_priority_factory("FewestPods", fewest_pods, 2)
    world = World([*WORLD, service("a", {"x": "y"}), service("b", {"x": "y"}), pod("busy", "a")])
    algorithm = policy(
        world, custom, "1.6", predicates=[{"name": "NearAService"}], priorities=[{"name": "FewestPods", "weight": 2}]
    )
    made = world.attempt(algorithm.profile)
    assert isinstance(made.decision, Placed) and made.decision.node_name == "b"
    assert made.verdicts is not None and made.verdicts.statuses()["c"].reasons == ("node(s) without service",)
    assert made.scores is not None and made.scores.total.tolist() == [18, 20, -1]


def test_a_factory_reaches_every_lister_of_then() -> None:
    """All fields of PluginFactoryArgs in 1.4, 1.6 and 1.13 that a function can use."""
    objects: list[dict[str, Any]] = [
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": kind.lower(), **namespaced}, **rest}
        for api_version, kind, namespaced, rest in (
            ("v1", "Service", {"namespace": "default"}, {}),
            ("v1", "ReplicationController", {"namespace": "default"}, {}),
            ("apps/v1", "ReplicaSet", {"namespace": "default"}, {}),
            ("apps/v1", "StatefulSet", {"namespace": "default"}, {}),
            ("policy/v1", "PodDisruptionBudget", {"namespace": "default"}, {}),
            ("v1", "PersistentVolume", {}, {}),
            ("v1", "PersistentVolumeClaim", {"namespace": "default"}, {}),
            ("storage.k8s.io/v1", "StorageClass", {}, {"provisioner": "x"}),
        )
    ]
    world = World([*objects, node("a"), node("off", unschedulable=True), pod("busy", "off")])
    seen: dict[str, dict[str, Any]] = {}

    def factory(args: PluginFactoryArgs) -> Any:
        def fits(pod: PodView, view: NodeView) -> bool:
            claim = args.persistent_volume_claim("default", "persistentvolumeclaim")
            volume, storage_class = args.persistent_volume("persistentvolume"), args.storage_class("storageclass")
            found = [
                *(args.services() + args.controllers() + args.replica_sets() + args.stateful_sets()),
                *(*args.pod_disruption_budgets(), volume, claim, storage_class),
            ]
            off = args.node_info("off")
            seen[version] = {
                "objects": [each and each.metadata.name for each in found],
                "pods": [other.name for other in args.pods()],
                "nodes": [node.name for node in args.nodes()],
                "node info": off and off.name,
                "weight": args.hard_pod_affinity_symmetric_weight,
            }
            return True

        return fits

    custom = Custom()
    custom.register_fit_predicate_factory("Curious", factory)
    for version in ("1.4", "1.6", "1.13", "1.17"):
        given = load_policy('{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "Curious"}]}', version)
        options = Options(custom=custom, hard_pod_affinity_symmetric_weight=7)
        world.attempt(profile_from_policy(given, world.handle, version, options).profile)
        assert seen[version] == {
            "objects": [raw["metadata"]["name"] for raw in objects],
            "pods": ["busy"],
            "nodes": ["a"] if version in ("1.4", "1.6") else ["a", "off"],  # up to 1.6 those that are listed
            "node info": "off",
            "weight": 7,
        }


def test_a_priority_of_the_oldest_form_sees_all_nodes_that_fit() -> None:
    custom = Custom()
    custom.register_fit_predicate("HasDisk", has_disk)
    custom.register_list_priority("ByPlace", lambda args: lambda pod, nodes: {node.name: i for i, node in enumerate(nodes)})
    world = World(list(WORLD))
    algorithm = policy(world, custom, "1.4", predicates=[{"name": "HasDisk"}], priorities=[{"name": "ByPlace", "weight": 1}])
    made = world.attempt(algorithm.profile)
    assert made.scores is not None and made.scores.total.tolist() == [0, 1, -1]


def test_a_reduce_may_change_the_scores_in_place() -> None:
    custom = Custom()

    def double(pod: PodView, scores: dict[str, int]) -> None:
        for name in scores:
            scores[name] *= 2

    custom.register_priority("PrefersHdd", prefers_hdd, 1, reduce=double)
    world = World(list(WORLD))
    made = world.attempt(policy(world, custom, "1.6", priorities=[{"name": "PrefersHdd", "weight": 1}]).profile)
    assert made.scores is not None and made.scores.total.tolist() == [4, 14, 4]


def test_predicates_are_given_metadata_with_what_was_precomputed() -> None:
    custom = Custom()
    seen: list[Any] = []

    def count_letters(metadata: Any) -> None:
        metadata.letters = len(metadata.pod.name)
        seen.append(metadata)

    custom.register_predicate_precomputation("Letters", count_letters)
    custom.register_fit_predicate("Short", lambda pod, metadata, node: metadata.letters < 9 and metadata.pod_best_effort)
    world = World(list(WORLD))
    made = world.attempt(policy(world, custom, "1.6", predicates=[{"name": "Short"}]).profile)
    assert isinstance(made.decision, Placed) and len(seen) == 1

    custom.register_predicate_metadata_producer(lambda args: lambda pod, nodes: SimpleNamespace(pod=pod, pod_best_effort=False))
    refused = world.attempt(policy(world, custom, "1.6", predicates=[{"name": "Short"}]).profile)
    assert isinstance(refused.decision, Unschedulable)
