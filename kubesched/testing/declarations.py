"""Check that `depends_on` is complete: inputs that it leaves out are changed, and the answers must not change.

A missing input would make the cache return outdated answers. The AssertionError names it. The cluster is restored after each
change.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from kubesched.kube.api import (
    DeviceClass,
    DeviceClassSpec,
    LabelSelector,
    Node,
    ObjectMeta,
    PersistentVolumeClaimSource,
    Pod,
    PodResourceClaim,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
    TopLevel,
    Volume,
)
from kubesched.scheduler.framework import Input, is_counting, is_kept
from kubesched.testing import clusters

if TYPE_CHECKING:
    from kubesched.testing.contract import Bench

Answers = dict[str, Any]

_INCLUDED = {
    Input.POD_REQUIREMENTS: {Input.POD_NODE_CONSTRAINTS},
    Input.POD_TEMPLATE: {Input.POD_REQUIREMENTS, Input.POD_NODE_CONSTRAINTS},
}
"""The inputs that an input includes."""


def check_declaration(bench: Bench, pod: Pod, nodes: list[Node], random: Random, said: Answers, where: str) -> None:
    """Raise AssertionError if the answers depend on an input that the plugin does not declare."""
    plugin = bench.plugin
    if plugin.depends_on is None:
        return
    declared = {each for each in plugin.depends_on if isinstance(each, Input)}
    for whole, parts in _INCLUDED.items():
        if whole in declared:
            declared |= parts
    for missing, asking in _other_pods(pod, random):
        if missing not in declared:
            _compare(said, bench.answers(asking), missing.name, where)
    if is_counting(plugin):
        return  # its counters follow pods and nodes
    assert is_kept(plugin), f"{where}: depends_on has PODS_ON_NODE beside COUNTED_PODS, which nothing can be kept for"
    objects = bench.store.objects
    for other, old in _other_objects():
        if type(other) in plugin.depends_on or (isinstance(other, DeviceClass) and Input.POD_DEVICES in plugin.depends_on):
            continue
        objects.put(other)
        _compare(said, bench.answers(pod), type(other).__name__, where)
        if old is not None:
            objects.put(old)
        else:
            objects.drop(type(other), other.metadata.name, other.metadata.namespace)
    if len(nodes) > 1:
        _check_nodes(bench, pod, random.sample(nodes, 2), random, said, where)
        _check_some_rows(bench, pod, random, said, where)


def _check_nodes(bench: Bench, pod: Pod, nodes: list[Node], random: Random, said: Answers, where: str) -> None:
    """Add a pod to one node, and change another node's object."""
    store, declared = bench.store, bench.plugin.depends_on or ()
    host, changed = (node.metadata.name for node in nodes)
    come = store.put_pod(clusters.random_pod(random, "coming", on=host))
    _compare(said, bench.answers(pod), "PODS_ON_NODE", where, host if Input.PODS_ON_NODE in declared else "")
    store.remove_pod(come.uid)
    if Input.ALL_NODES not in declared:
        store.put_node(clusters.random_node(random, changed))
        missing, but = ("ALL_NODES", changed) if Input.NODE in declared else ("NODE", "")
        _compare(said, bench.answers(pod), missing, where, but)
        store.put_node(nodes[1])


def _check_some_rows(bench: Bench, pod: Pod, random: Random, said: Answers, where: str) -> None:
    """Ask for some rows only: their answers must be the same as among all rows."""
    nodes = bench.store.snapshot()
    some = nodes.take(sorted(random.sample(range(nodes.n), random.randrange(1, nodes.n))))
    found, asked = bench.answers(pod, some), set(some.names)
    for what in ("filter", "raw"):
        if what in said and what in found:
            expected = {name: answer for name, answer in said[what].items() if name in asked}
            assert found[what] == expected, f"{where}: {what} of some rows differs from the same rows among all"


def _compare(said: Answers, found: Answers, missing: str, where: str, but: str = "") -> None:
    """Compare answers. With `but`, without those of that node and without normalised scores, which depend on all nodes."""
    for what in ("pre_filter", "filter", "pre_score", "raw", *(() if but else ("score",))):
        ours, theirs = said.get(what), found.get(what)
        if but and isinstance(ours, dict) and isinstance(theirs, dict):
            ours, theirs = ({name: answer for name, answer in column.items() if name != but} for column in (ours, theirs))
        assert ours == theirs, f"{where}: depends_on lacks {missing}, but with another {what} is {theirs} instead of {ours}"


def _other_pods(pod: Pod, random: Random) -> Iterator[tuple[Input, Pod]]:
    """Yield pods that differ in one input."""
    replace = msgspec.structs.replace

    def with_spec(**fields: Any) -> Pod:
        return replace(pod, spec=replace(pod.spec, **fields))

    yield Input.POD_TEMPLATE, clusters.disguised(random, pod)
    yield Input.POD_REQUIREMENTS, clusters.resized(random, pod)
    yield Input.POD_NODE_CONSTRAINTS, with_spec(tolerations=(), node_selector={"disk": "ssd"})
    claim = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data"))
    yield Input.POD_VOLUMES, with_spec(volumes=(claim,))
    yield Input.POD_RESOURCE_CLAIMS, with_spec(resource_claims=(PodResourceClaim(name="a", resource_claim_name="a"),))
    yield Input.POD_NODE_NAME, with_spec(node_name="n0")


def _other_objects() -> Iterator[tuple[TopLevel, TopLevel | None]]:
    """Yield objects to add, each with the object that it replaces."""
    namespace = clusters.namespaces()[0]
    yield msgspec.structs.replace(namespace, metadata=ObjectMeta(name=namespace.metadata.name, labels={"team": "a"})), namespace
    mine, all_of = ObjectMeta(name="new", namespace="default"), LabelSelector()
    yield Service(metadata=mine, spec=ServiceSpec(selector={})), None
    yield ReplicationController(metadata=mine, spec=ReplicationControllerSpec(selector={})), None
    yield ReplicaSet(metadata=mine, spec=ReplicaSetSpec(selector=all_of)), None
    yield StatefulSet(metadata=mine, spec=StatefulSetSpec(selector=all_of)), None
    yield DeviceClass(metadata=ObjectMeta(name="new"), spec=DeviceClassSpec(extended_resource_name="example.com/gpu")), None
