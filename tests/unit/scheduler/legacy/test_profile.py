"""What becomes of a policy: names, weights, defaults, and how the ordinary cycle then decides."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from legacy_clusters import World, node, pod, service

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable
from kubesched.scheduler.legacy import Algorithm, Options, fit_error, load_policy, profile_from_policy, profile_from_provider
from kubesched.scheduler.legacy.priorities.preferences import NodeLabelPriority
from kubesched.scheduler.legacy.priorities.spreading import ServiceAntiAffinity

MANDATORY = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")


def build(world: World, version: str = "1.17", options: Options | None = None, **fields: Any) -> Algorithm:
    text = json.dumps({"kind": "Policy", "apiVersion": "v1", **fields})
    return profile_from_policy(load_policy(text, version), world.handle, version, options)


def said(world: World, algorithm: Algorithm) -> str:
    """Return the message of a pod that fits nowhere."""
    made = world.attempt(algorithm.profile)
    assert isinstance(made.decision, Unschedulable), made.decision
    assert fit_error(made.pod, made.decision.diagnosis, algorithm.release) == made.decision.message
    return made.decision.message


def test_what_a_policy_leaves_out() -> None:
    world = World([])
    default = profile_from_provider("DefaultProvider", world.handle)
    assert build(world).predicates == default.predicates
    assert build(world).priorities == default.priorities
    old = build(world, "1.6")
    assert (old.predicates, dict(old.priorities)) == ((), {})


def test_an_empty_policy_keeps_what_is_mandatory() -> None:
    for version in ("1.13", "1.17"):
        algorithm = build(World([]), version, predicates=[], priorities=[])
        assert algorithm.predicates == MANDATORY
    assert build(World([]), "1.6", predicates=[], priorities=[]).predicates == ()


@pytest.mark.parametrize("version", ["1.3", "1.6", "1.13", "1.17"])
def test_without_priorities_every_node_scores_one(version: str) -> None:
    world = World([node("a"), node("b")])
    made = world.attempt(build(world, version, predicates=[], priorities=[]).profile)
    assert made.scores is not None and made.scores.total.tolist() == [1, 1]


def test_equal_priority_is_left_out_in_1_17() -> None:
    world = World([node("a")])
    priorities = [{"name": "EqualPriority", "weight": 5}, {"name": "TaintTolerationPriority", "weight": 2}]
    totals = {}
    for version in ("1.13", "1.17"):
        made = world.attempt(build(world, version, predicates=[], priorities=priorities).profile)
        assert made.scores is not None
        totals[version] = made.scores.total.tolist()
    assert totals == {"1.13": [5 + 20], "1.17": [200]}


def custom_entries() -> dict[str, Any]:
    return {
        "predicates": [
            {"name": "LabelsA", "argument": {"labelsPresence": {"labels": ["a"], "presence": True}}},
            {"name": "LabelsB", "argument": {"labelsPresence": {"labels": ["b"], "presence": False}}},
            {"name": "Service", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
        ],
        "priorities": [
            {"name": "PrefA", "weight": 2, "argument": {"labelPreference": {"label": "a", "presence": True}}},
            {"name": "PrefB", "weight": 2, "argument": {"labelPreference": {"label": "b", "presence": False}}},
            {"name": "Anti", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
            {"name": "Anti2", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
        ],
    }


def test_custom_entries_keep_their_names_before_1_17() -> None:
    algorithm = build(World([]), "1.13", **custom_entries())
    assert algorithm.predicates == (*MANDATORY, "LabelsA", "LabelsB", "Service")
    assert algorithm.priorities == {"Anti": 3, "Anti2": 3, "PrefA": 2, "PrefB": 2}


def test_custom_entries_become_one_of_each_kind_in_1_17() -> None:
    algorithm = build(World([]), "1.17", **custom_entries())
    assert algorithm.predicates == (*MANDATORY, "CheckNodeLabelPresence", "CheckServiceAffinity")
    assert algorithm.priorities == {"NodeLabel": 4, "ServiceAffinity": 6}
    by_name = {plugin.name: plugin for plugin, _ in algorithm.profile.scorers}
    label, anti = by_name["NodeLabel"], by_name["ServiceAffinity"]
    assert isinstance(label, NodeLabelPriority) and (label.present, label.absent) == (("a",), ("b",))
    assert isinstance(anti, ServiceAntiAffinity) and anti.labels == ("zone", "rack")


def test_label_presence_decides_alike_in_both() -> None:
    world = World([node("good", {"a": "1"}), node("lacks"), node("has", {"a": "1", "b": "1"})])
    for version in ("1.6", "1.13", "1.17"):
        entries = custom_entries()
        entries["predicates"].pop()
        made = world.attempt(build(world, version, **entries).profile)
        assert isinstance(made.decision, Placed) and made.decision.node_name == "good"


def test_reasons_of_1_13_stop_at_the_first_predicate_unless_all_are_asked_for() -> None:
    world = World(
        [node("a", taints=[{"key": "k", "effect": "NoSchedule"}])],
        pod("new", requests={"cpu": "9"}, nodeSelector={"no": "where"}),
    )
    predicates = [{"name": "GeneralPredicates"}]
    first = build(world, "1.13", predicates=predicates)
    every = build(world, "1.13", predicates=predicates, alwaysCheckAllPredicates=True)
    general = "1 Insufficient cpu, 1 node(s) didn't match node selector"
    assert said(world, first) == f"0/1 nodes are available: {general}."
    assert said(world, every) == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match node selector, "
        "1 node(s) had taints that the pod didn't tolerate."
    )
    assert said(world, build(world, "1.17", predicates=predicates)) == "0/1 nodes are available: 1 Insufficient cpu."


def test_messages_of_every_release() -> None:
    tainted = node("b", taints=[{"key": "k", "effect": "NoSchedule"}])
    world = World([node("a", allocatable={"cpu": "0", "pods": "0"}), tainted], pod("new", requests={"cpu": "1"}))
    predicates = [{"name": "PodFitsResources"}, {"name": "PodToleratesNodeTaints"}]
    expected = {
        "1.3": "pod (new) failed to fit in any node\nfit failure on node (a): Insufficient PodCount\n"
        "fit failure on node (b): PodToleratesNodeTaints\n",
        "1.4": "pod (new) failed to fit in any node\nfit failure on node (a): Insufficient pods, Insufficient cpu\n"
        "fit failure on node (b): PodToleratesNodeTaints\n",
        "1.6": "No nodes are available that match all of the following predicates:: Insufficient cpu (1), "
        "Insufficient pods (1), PodToleratesNodeTaints (1).",
        "1.13": "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient pods, "
        "1 node(s) had taints that the pod didn't tolerate.",
        "1.17": "0/2 nodes are available: 1 Insufficient pods, 1 node(s) had taints that the pod didn't tolerate.",
    }
    assert {version: said(world, build(world, version, predicates=predicates)) for version in expected} == expected


def test_up_to_1_6_nodes_that_are_not_ready_are_not_listed() -> None:
    ready = [{"type": "Ready", "status": "True"}]
    broken = [
        node("unready", conditions=[{"type": "Ready", "status": "Unknown"}]),
        node("full", conditions=[*ready, {"type": "OutOfDisk", "status": "True"}]),
        node("offline", conditions=[*ready, {"type": "NetworkUnavailable", "status": "Unknown"}]),
        node("cordoned", unschedulable=True),
    ]
    world = World([*broken, node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}])])
    algorithm = profile_from_provider("DefaultProvider", world.handle, "1.6")
    assert said(world, algorithm) == (
        "No nodes are available that match all of the following predicates:: PodToleratesNodeTaints (1)."
    )
    assert said(World(broken), profile_from_provider("", World(broken).handle, "1.4")) == (
        "no nodes available to schedule pods"
    )
    world = World([*broken, node("good")])
    made = world.attempt(profile_from_provider("", world.handle, "1.6").profile)
    assert isinstance(made.decision, Placed) and made.decision.node_name == "good"


def test_a_condition_that_changes_is_noticed() -> None:
    world = World([node("a")])
    algorithm = profile_from_provider("", world.handle, "1.6")
    assert isinstance(world.attempt(algorithm.profile).decision, Placed)
    world.store.put_node(codec.convert(node("a", conditions=[{"type": "Ready", "status": "False"}]), Node))
    assert said(world, algorithm) == "no nodes available to schedule pods"


def test_ports_of_1_6_are_numbers_alone() -> None:
    taken = pod("old", "a", ports=[{"hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}])
    world = World([node("a")], pod("new", ports=[{"hostPort": 80, "protocol": "TCP"}]))
    world = World([node("a"), taken], world.incoming)
    predicates = [{"name": "PodFitsPorts"}]
    assert "PodFitsHostPorts (1)" in said(world, build(world, "1.6", predicates=predicates))
    assert isinstance(world.attempt(build(world, "1.17", predicates=predicates).profile).decision, Placed)


def test_resources_that_1_6_did_not_know() -> None:
    world = World([node("a")], pod("new", requests={"example.com/gpu": "1", "ephemeral-storage": "200Gi"}))
    predicates = [{"name": "PodFitsResources"}]
    assert isinstance(world.attempt(build(world, "1.6", predicates=predicates).profile).decision, Placed)
    assert "ephemeral-storage" in said(world, build(world, "1.17", predicates=predicates))
    opaque = "pod.alpha.kubernetes.io/opaque-int-resource-apple"
    world = World([node("a")], pod("new", requests={opaque: "1", "alpha.kubernetes.io/nvidia-gpu": "1"}))
    assert f"Insufficient {opaque} (1)" in said(world, build(world, "1.6", predicates=predicates))
    assert opaque not in said(world, build(world, "1.4", predicates=predicates))


def test_resources_that_an_extender_manages_are_not_counted() -> None:
    world = World([node("a")], pod("new", requests={"example.com/gpu": "1"}))
    extenders = [
        {
            "urlPrefix": "http://x",
            "filterVerb": "f",
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        }
    ]
    algorithm = build(world, extenders=extenders, predicates=[{"name": "PodFitsResources"}])
    assert isinstance(world.attempt(algorithm.profile).decision, Placed)
    assert [extender.url_prefix for extender in algorithm.extenders] == ["http://x"]
    assert algorithm.extenders[0].http_timeout.seconds == 5


def test_overhead_counts_behind_its_gate() -> None:
    world = World([node("a", allocatable={"cpu": "1"})], pod("new", requests={"cpu": "900m"}, overhead={"cpu": "200m"}))
    predicates = [{"name": "PodFitsResources"}]
    assert isinstance(world.attempt(build(world, predicates=predicates).profile).decision, Placed)
    with_overhead = Options(feature_gates={"PodOverhead": True})
    assert "Insufficient cpu" in said(world, build(world, "1.17", with_overhead, predicates=predicates))


def affine_world() -> World:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    wants = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    likes = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]}}
    return World(
        [node("a"), node("b"), pod("hard", "a", affinity=wants), pod("soft", "b", affinity=likes)],
        pod("new", labels={"app": "a"}),
    )


def test_the_weight_of_required_affinity_is_heeded_except_to_the_letter() -> None:
    world = affine_world()
    fields = {
        "predicates": [],
        "priorities": [{"name": "InterPodAffinityPriority", "weight": 1}],
        "hardPodAffinitySymmetricWeight": 20,
    }
    totals = []
    letter = Options(to_the_letter=True)
    for options in (Options(), letter, replace(letter, hard_pod_affinity_symmetric_weight=5)):
        made = world.attempt(build(world, "1.17", options, **fields).profile)
        assert made.scores is not None
        totals.append(made.scores.total.tolist())
    assert totals == [[100, 50], [10, 100], [50, 100]]


def test_service_affinity_keeps_a_service_in_one_zone() -> None:
    world = World(
        [
            node("a", {"zone": "1"}),
            node("b", {"zone": "2"}),
            node("c"),
            service("svc", {"app": "x"}),
            pod("first", "b", {"app": "x"}),
            pod("other", "a", {"app": "y"}),
        ],
        pod("new", labels={"app": "x"}),
    )
    predicates = [{"name": "Zones", "argument": {"serviceAffinity": {"labels": ["zone"]}}}]
    algorithm = build(world, predicates=predicates)
    made = world.attempt(algorithm.profile)
    assert isinstance(made.decision, Placed) and made.decision.node_name == "b"
    assert made.verdicts is not None
    assert {name: status.reasons for name, status in made.verdicts.statuses().items()} == dict.fromkeys(
        ("a", "c"), ("node(s) didn't match service affinity",)
    )
    chosen = pod("new", labels={"app": "x"}, nodeSelector={"zone": "1"})
    assert world.attempt(algorithm.profile, chosen).decision.node_name == "a"  # type: ignore[union-attr]


def test_1_17_asks_for_the_claims_first() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    world = World([node("a", taints=[{"key": "k", "effect": "NoSchedule"}])], pod("new", volumes=[claim]))
    made = world.attempt(profile_from_provider("", world.handle).profile)
    assert isinstance(made.decision, Failed)
    assert made.decision.message == 'persistentvolumeclaim "missing" not found'
    leaving = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "missing", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    world = World([node("a"), leaving], world.incoming)
    made = world.attempt(build(world, predicates=[]).profile)
    assert isinstance(made.decision, Failed)
    assert made.decision.message == 'persistentvolumeclaim "missing" is being deleted'


def disks(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "awsElasticBlockStore": {"volumeID": name}} for name in names]


def test_volume_predicates_in_the_words_of_each_release() -> None:
    world = World(
        [node("a", allocatable={"attachable-volumes-aws-ebs": "1"}), pod("old", "a", volumes=disks("v1"))],
        pod("new", volumes=disks("v1")),
    )
    conflict = [{"name": "NoDiskConflict"}]
    assert said(world, build(world, "1.6", predicates=conflict)).endswith(" NoDiskConflict (1).")
    assert said(world, build(world, "1.17", predicates=conflict)) == (
        "0/1 nodes are available: 1 node(s) had no available disk."
    )
    world = World(world.objects, pod("new", volumes=disks("v2", "v3")))
    count = [{"name": "MaxEBSVolumeCount"}]
    assert said(world, build(world, "1.17", predicates=count)).endswith("1 node(s) exceed max volume count.")
    assert said(world, build(world, "1.6", predicates=count)).endswith(" MaxVolumeCount (1).")


def test_attached_volumes_balance_behind_their_gate() -> None:
    nodes = [
        node(name, allocatable={"cpu": "1", "memory": "1Gi", "attachable-volumes-aws-ebs": limit})
        for name, limit in (("a", "2"), ("b", "8"))
    ]
    world = World(nodes, pod("new", requests={"cpu": "500m", "memory": "512Mi"}, volumes=disks("v1")))
    fields = {
        "predicates": [{"name": "MaxEBSVolumeCount"}],
        "priorities": [{"name": "BalancedResourceAllocation", "weight": 1}],
    }
    plain = world.attempt(build(world, **fields).profile)
    assert plain.scores is not None and plain.scores.total.tolist() == [100, 100]
    gate = Options(feature_gates={"BalanceAttachedNodeVolumes": True})
    balanced = world.attempt(build(world, "1.17", gate, **fields).profile)
    # Degrees of use: a 1/2, 1/2, 1/2; b 1/2, 1/2, 1/8, whose variance is 1/32.
    assert balanced.scores is not None and balanced.scores.total.tolist() == [100, 96]


def test_preemption_works_and_is_not_mentioned() -> None:
    world = World(
        [node("a", allocatable={"cpu": "1"}), pod("old", "a", requests={"cpu": "1"}, priority=1)],
        pod("new", requests={"cpu": "1"}, priority=5),
    )
    for version in ("1.13", "1.17"):
        algorithm = profile_from_provider("", world.handle, version)
        made = world.attempt(algorithm.profile, preempts=True)
        assert isinstance(made.decision, Unschedulable)
        assert made.post_filtered is not None and made.post_filtered.preemption is not None
        assert [victim.name for victim in made.post_filtered.preemption.victims] == ["old"]
        hopeless = pod("new", requests={"cpu": "1"}, priority=0)
        made = world.attempt(algorithm.profile, hopeless, preempts=True)
        assert isinstance(made.decision, Unschedulable)
        assert made.decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_images_of_1_17_to_the_letter_count_the_holders_of_the_moment() -> None:
    images = [{"names": ["app:latest"], "sizeBytes": 900 * 1024 * 1024}]
    world = World([node("a", images=images), node("b", images=images)], pod("new"))
    fields = {"predicates": [], "priorities": [{"name": "ImageLocalityPriority", "weight": 1}]}
    for letter, totals in ((False, [89, 89]), (True, [43, 89])):
        made = world.attempt(build(world, "1.17", Options(to_the_letter=letter), **fields).profile)
        assert made.scores is not None and made.scores.total.tolist() == totals
