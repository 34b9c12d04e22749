"""Corners that a comparison with kube-scheduler 1.17.4 itself has shown: each a case that was decided otherwise before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from legacy_clusters import Raw, World, node, pod

from kubesched.errors import ConfigError
from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable
from kubesched.scheduler.legacy import Algorithm, Options, load_policy, profile_from_policy
from kubesched.scheduler.legacy.shared.pod_requests import as_placed

LETTER = Options(to_the_letter=True)
GATED = Options(to_the_letter=True, feature_gates={"EvenPodsSpread": True, "PodOverhead": True})
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
OWNED = [{"apiVersion": "v1", "kind": "ReplicationController", "name": "web", "uid": "u-7", "controller": True}]


def build(world: World, options: Options = LETTER, **fields: Any) -> Algorithm:
    fields = {"predicates": [], "priorities": [], **fields}
    return profile_from_policy(
        load_policy(json.dumps({"kind": "Policy", "apiVersion": "v1", **fields})), world.handle, options=options
    )


def totals(world: World, priorities: list[Raw], options: Options = LETTER) -> dict[str, int]:
    made = world.attempt(build(world, options, priorities=priorities).profile)
    assert made.scores is not None
    return {name: int(made.scores.total[row]) for row, name in enumerate(made.nodes.names)}


def ratio(shape: list[tuple[int, int]], resources: dict[str, int], weight: int = 1) -> Raw:
    return {
        "name": "Ratio",
        "weight": weight,
        "argument": {
            "requestedToCapacityRatioArguments": {
                "shape": [{"utilization": at, "score": score} for at, score in shape],
                "resources": [{"name": name, "weight": share} for name, share in resources.items()],
            }
        },
    }


@pytest.mark.parametrize(
    ("weight", "counted"), [(3, 3), ((1 << 31) - 1, (1 << 31) - 1), (1 << 31, -(1 << 31)), (1 << 32, 1), ((1 << 32) + 6, 6)]
)
def test_weights_of_plugins_had_32_bits(weight: int, counted: int) -> None:
    world = World([node("a")])
    taints = [{"name": "TaintTolerationPriority", "weight": weight}]
    assert totals(world, taints) == {"a": 100 * counted}
    assert totals(world, taints, Options()) == {"a": 100 * weight}


@pytest.mark.parametrize("name", ["ServiceSpreadingPriority", "RequestedToCapacityRatioPriority"])
def test_weights_of_functions_had_more(name: str) -> None:
    world = World([node("a", allocatable={"cpu": "100", "memory": "200Gi"})], pod("new", requests={"cpu": "1"}))
    weight = (1 << 32) + 6
    assert totals(world, [{"name": name, "weight": weight}])["a"] % weight == 0


def test_the_weight_of_equal_priority_counts_for_nothing() -> None:
    half = ((1 << 63) - 1) // 100 // 2 + 1
    world = World([node("a")])
    priorities = [{"name": name, "weight": half} for name in ("EqualPriority", "NodeAffinityPriority")]
    assert build(world, priorities=priorities).priorities == {"NodeAffinityPriority": half}
    priorities.append({"name": "TaintTolerationPriority", "weight": half})
    with pytest.raises(ConfigError, match="total priority of priority functions has overflown"):
        build(world, priorities=priorities)


RATIOS = [
    ("both resources pull the same way", {"cpu": 3, "memory": 1}, 58),  # (50*3 + 80*1) / 4 = 57.5
    ("a negative weight is taken as it stands", {"cpu": 3, "memory": -1}, 35),  # (50*3 - 80) / 2
    ("weights that cancel out leave nothing", {"cpu": 1, "memory": -1}, 0),
    ("only negative weights are an average, too", {"cpu": -1, "memory": -1}, 65),
]


@pytest.mark.parametrize(("sentence", "weights", "score"), RATIOS, ids=[case[0] for case in RATIOS])
def test_weights_of_resources_were_never_checked(sentence: str, weights: dict[str, int], score: int) -> None:
    world = World([node("a", allocatable={"cpu": "4", "memory": "1000"})], pod("new", requests={"cpu": "2", "memory": "800"}))
    assert totals(world, [ratio([(0, 0), (100, 10)], weights)]) == {"a": score}


def test_what_is_wrong_with_the_weight_is_said_before_what_is_wrong_with_labels() -> None:
    predicates = [
        {"name": name, "argument": {"labelsPresence": {"labels": ["disk"], "presence": name == "Has"}}}
        for name in ("Has", "Lacks")
    ]
    world = World([])
    with pytest.raises(ConfigError, match="must be in the range 1-100"):
        build(world, predicates=predicates, hardPodAffinitySymmetricWeight=101)
    repeated = [{"name": "GeneralPredicates"}, {"name": "HostName"}]
    with pytest.raises(ConfigError, match='error initializing plugin "NodeLabel": detecting at least one label'):
        build(world, predicates=[*predicates, *repeated])
    with pytest.raises(ConfigError, match='plugin "NodeName" already registered as "FilterPlugin"'):
        build(world, predicates=repeated)


def entry(**more: Any) -> str:
    controller = {"kind": "ReplicationController", "uid": more.pop("uid", "u-7")}
    return json.dumps({"preferAvoidPods": [{**more, "podSignature": {"podController": controller}}]})


ANNOTATIONS = [
    ("the plain entry", entry(), 0),
    ("keys in another case", entry().replace("podSignature", "PODSignature").replace("uid", "UID"), 0),
    ("null stands for nothing", entry(reason=None, evictionTime=None), 0),
    ("with the time of the wish", entry(evictionTime="2016-05-01T10:00:00Z"), 0),
    ("a time that is none spoils the annotation", entry(evictionTime="at noon"), 100),
    ("a reason that is no text spoils it", entry(reason=3), 100),
    ("another controller", entry(uid="u-8"), 100),
    ("no list at all", '{"preferAvoidPods": null}', 100),
    ("no object", "[]", 100),
]


@pytest.mark.parametrize(("sentence", "text", "score"), ANNOTATIONS, ids=[case[0] for case in ANNOTATIONS])
def test_pods_to_avoid_are_read_as_go_reads_them(sentence: str, text: str, score: int) -> None:
    world = World([node("a", annotations={AVOID: text})], pod("new", ownerReferences=OWNED))
    assert totals(world, [{"name": "NodePreferAvoidPodsPriority", "weight": 1}]) == {"a": score}


def test_an_init_container_that_asks_for_nothing_names_nothing() -> None:
    incoming = pod("new", requests={"cpu": "1"})
    incoming["spec"]["initContainers"] = [{"name": "i", "resources": {"requests": {"example.com/gpu": "0"}}}]
    over = World([node("a"), pod("old", "a", requests={"example.com/gpu": "1"})], incoming)
    profile = build(over, predicates=[{"name": "PodFitsResources"}]).profile
    assert isinstance(over.attempt(profile).decision, Placed)
    incoming["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "0"
    assert isinstance(over.attempt(profile).decision, Unschedulable)


def test_a_placed_pod_used_what_its_containers_ask_for() -> None:
    old = pod(
        "old", "a", requests={"cpu": "1500u", "memory": "100m"}, overhead={"cpu": "1"}, resources={"requests": {"cpu": "3"}}
    )
    old["spec"]["containers"].append({"name": "d", "resources": {"requests": {"cpu": "1500u", "memory": "1.5"}}})
    old["spec"]["initContainers"] = [
        {"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}, "ports": [{"hostPort": 80}]}
    ]
    placed = as_placed(codec.convert(old, Pod), overhead=False)
    world = World([node("a")])
    world.store.put_pod(placed)
    snapshot = world.store.snapshot()
    assert [int(snapshot.requested(snapshot.resource(name))[0]) for name in ("cpu", "memory")] == [4, 3]
    assert not world.view(old).template.ports == world.store.view(placed).template.ports == ()
    with_overhead = as_placed(codec.convert(old, Pod), overhead=True)
    assert world.store.view(with_overhead).template.usage[0][1] == 1004


def spreading(when: str, key: str, selector: Raw | None = None) -> Raw:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector or {}}


def test_where_no_node_has_the_label_nothing_is_uneven() -> None:
    incoming = pod("new", topologySpreadConstraints=[spreading("DoNotSchedule", "rack")])
    predicates = [{"name": "EvenPodsSpread"}]
    for nodes, fits in (([node("a"), node("b")], {"a", "b"}), ([node("a"), node("b", {"rack": "1"})], {"b"})):
        world = World(nodes, incoming)
        made = world.attempt(build(world, GATED, predicates=predicates).profile)
        assert made.feasible is not None
        assert {made.nodes.name(row) for row in made.feasible.nonzero()[0].tolist()} == fits


def test_the_first_spreading_counted_leaving_pods_and_other_namespaces() -> None:
    objects = [
        node("a"),
        node("b"),
        pod("one", "a", {"app": "x"}, deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("two", "b", {"app": "x"}, namespace="other"),
        pod("three", "b", {"app": "x"}, namespace="other"),
    ]
    soft = [spreading("ScheduleAnyway", "kubernetes.io/hostname", {"matchLabels": {"app": "x"}})]
    world = World(objects, pod("new", topologySpreadConstraints=soft))
    priorities = [{"name": "EvenPodsSpreadPriority", "weight": 1}]
    assert totals(world, priorities, GATED) == {"a": 100, "b": 50}  # one of three, two of three
    put_right = Options(feature_gates={"EvenPodsSpread": True})
    assert totals(world, priorities, put_right) == {"a": 0, "b": 100}


def test_overhead_of_cpu_was_scored_in_whole_cpus_taken_for_thousandths() -> None:
    offered = {"cpu": "1", "memory": "1000"}
    world = World(
        [node("a", allocatable=offered)],
        pod("new", requests={"cpu": "100m", "memory": "100"}, overhead={"cpu": "300m", "memory": "200"}),
    )
    most = [{"name": "MostRequestedPriority", "weight": 1}]
    assert totals(world, most, GATED) == {"a": (10 + 30) // 2}
    assert totals(world, most, Options(feature_gates={"PodOverhead": True})) == {"a": (40 + 30) // 2}


def claim(name: str, storage_class: str, volume: str = "") -> Raw:
    bound = {"volumeName": volume} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if volume else {},
        },
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **bound,
        },
    }


def volume(name: str, claimed_by: str, disk: str) -> Raw:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": [disk]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d", "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": claimed_by, "uid": f"uid-{claimed_by}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Bound"},
    }


def storage_class(name: str, mode: str) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }


def with_claims(*names: str, **more: Any) -> Raw:
    return pod("new", volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names], **more)


BINDING = [{"name": "CheckVolumeBinding"}, {"name": "PodFitsResources"}]


def test_a_claim_that_should_be_bound_is_an_error_where_a_node_comes_this_far() -> None:
    objects = [node("a"), claim("now", "fast"), storage_class("fast", "Immediate")]
    reached = World(objects, with_claims("now"))
    decision = reached.attempt(build(reached, predicates=BINDING).profile).decision
    assert isinstance(decision, Failed) and "pod has unbound immediate PersistentVolumeClaims" in decision.message
    refused = World(objects, with_claims("now", requests={"cpu": "99"}))
    decision = refused.attempt(build(refused, predicates=BINDING).profile).decision
    assert isinstance(decision, Unschedulable)
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_volumes_give_one_reason_a_node() -> None:
    world = World(
        [
            node("a", {"disk": "hdd"}),
            claim("here", "later", "v"),
            volume("v", "here", "ssd"),
            claim("open", "later"),
            storage_class("later", "WaitForFirstConsumer"),
        ],
        with_claims("here", "open"),
    )
    decision = world.attempt(build(world, predicates=BINDING).profile).decision
    assert isinstance(decision, Unschedulable)
    assert decision.message == "0/1 nodes are available: 1 node(s) had volume node affinity conflict."
