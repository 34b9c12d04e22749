"""What must never happen with volumes: one promised to two, a promise that outlives its pod, an index that drifts.

Histories are random: pods are placed and given up, volumes and claims change in the API, nodes come, go and are
relabelled. After every step the long-lived plugin must say the same as one built from nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubesched.kube.api import codec
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.verdicts import Status
from kubesched.scheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
N_NODES, N_VOLUMES, N_CLAIMS = 5, 8, 6
Raw = dict[str, Any]


def node(i: int, zone: int) -> Node:
    return codec.convert({"metadata": {"name": f"n{i}", "labels": {HOSTNAME: f"n{i}", ZONE: f"z{zone}"}}}, Node)


def volume(
    i: int,
    size: int,
    place: Raw | None,
    claim: str = "",
    version: int = 1,
    phase: str = "Available",
    labels: Raw | None = None,
) -> PersistentVolume:
    affinity = (
        {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in place.items()]}
                ]
            }
        }
        if place
        else None
    )
    ref = {"namespace": "default", "name": claim, "uid": claim} if claim else None
    return codec.convert(
        {
            "metadata": {"name": f"v{i}", "resourceVersion": str(version), "labels": labels or {}},
            "spec": {
                "capacity": {"storage": f"{size}Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "claimRef": ref,
                "nodeAffinity": affinity,
                "csi": {"driver": "d", "volumeHandle": f"h{i % 5}"},
            },
            "status": {"phase": phase},
        },
        PersistentVolume,
    )


def claim(
    i: int,
    size: int,
    bound_to: str = "",
    version: int = 1,
    selected: str = "",
    selector: Raw | None = None,
    cls: str = "local",
) -> PersistentVolumeClaim:
    annotations = {
        **({"pv.kubernetes.io/bind-completed": "yes"} if bound_to else {}),
        **({"volume.kubernetes.io/selected-node": selected} if selected else {}),
    }
    return codec.convert(
        {
            "metadata": {
                "name": f"c{i}",
                "namespace": "default",
                "uid": f"c{i}",
                "resourceVersion": str(version),
                "annotations": annotations,
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": cls,
                "volumeName": bound_to,
                "selector": selector,
                "resources": {"requests": {"storage": f"{size}Gi"}},
            },
        },
        PersistentVolumeClaim,
    )


def pod(name: str, claims: list[int], on: str = "", disk: str = "") -> Pod:
    volumes: list[Raw] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in claims]
    if disk:
        volumes.append({"name": "disk", "awsElasticBlockStore": {"volumeID": disk}})
    return codec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"nodeName": on, "volumes": volumes}},
        Pod,
    )


def local_class(provisioner: str = "kubernetes.io/no-provisioner") -> StorageClass:
    return StorageClass(metadata=ObjectMeta(name="local"), provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer")


def ask(plugin: Plugin, store: Store, wanted: Pod) -> tuple[Any, CycleState]:
    """Return what a plugin says of every node."""
    state, nodes, seen = CycleState(), store.snapshot(), store.view(wanted)
    answer = plugin.pre_filter(seen, nodes, state)
    if isinstance(answer, Status):
        return answer, state
    verdict = plugin.filter(seen, nodes, state)
    errors = {nodes.name(row) for row in verdict.errors or ()}
    return {nodes.name(row): (verdict.status(row), nodes.name(row) in errors) for row in range(nodes.n)}, state


places = st.one_of(
    st.none(),
    st.builds(lambda i: {HOSTNAME: [f"n{i}"]}, st.integers(0, N_NODES - 1)),
    st.builds(lambda i: {ZONE: [f"z{i}"]}, st.integers(0, 2)),
    st.builds(
        lambda i, j: {ZONE: [f"z{i}", "zx"], HOSTNAME: [f"n{i}", f"n{j}"]},
        st.integers(0, 2),
        st.integers(0, N_NODES - 1),
    ),
)
sizes = st.integers(1, 4)
labels = st.sampled_from([{}, {"k": "a"}, {"k": "b"}])
selectors = st.sampled_from([None, None, {}, {"matchLabels": {"k": "a"}}])


# Choosing


def smallest_fitting(
    wanted: PersistentVolumeClaim, volumes: list[PersistentVolume], where: Node, taken: set[str]
) -> int | None:
    """Return the size of the volume that a claim must be given on a node, volume by volume: the oracle."""

    def size(v: PersistentVolume) -> int:
        return int(str(v.spec.capacity["storage"]).removesuffix("Gi"))

    def reached(v: PersistentVolume) -> bool:
        required = v.spec.node_affinity.required if v.spec.node_affinity is not None else None
        return required is None or all(
            where.metadata.labels.get(e.key) in e.values for e in required.node_selector_terms[0].match_expressions
        )

    asked = int(str(wanted.spec.resources.requests["storage"]).removesuffix("Gi"))
    named = [
        v
        for v in volumes
        if v.spec.claim_ref is not None and v.spec.claim_ref.name == wanted.name and v.name not in taken and size(v) >= asked
    ]
    if named:
        return size(named[0]) if reached(named[0]) else None
    selector = wanted.spec.selector
    fitting = [
        size(v)
        for v in volumes
        if v.name not in taken
        and v.spec.claim_ref is None
        and v.status.phase == "Available"
        and size(v) >= asked
        and reached(v)
        and (selector is None or all(v.metadata.labels.get(key) == value for key, value in selector.match_labels.items()))
    ]
    return min(fitting, default=None)


@settings(max_examples=150, deadline=None)
@given(
    zones=st.lists(st.integers(0, 2), min_size=1, max_size=N_NODES),
    offers=st.lists(st.tuples(sizes, places, st.sampled_from(["", "", "", "c0", "x"]), labels), max_size=N_VOLUMES),
    wishes=st.lists(st.tuples(sizes, selectors), min_size=1, max_size=3),
)
def test_every_claim_is_given_the_smallest_volume_that_suits(zones: list[int], offers: list[Any], wishes: list[Any]) -> None:
    store = Store()
    for i, zone in enumerate(zones):
        store.put_node(node(i, zone))
    named: set[str] = set()
    for i, (size, place, owner, found) in enumerate(offers):
        owner = "" if owner in named else owner  # two volumes for one claim leave the choice open
        named |= {owner} if owner == "c0" else set()
        store.objects.put(volume(i, size, place, owner, labels=found))
    claims = [claim(i, size, selector=selector) for i, (size, selector) in enumerate(wishes)]
    for obj in (local_class(), *claims):
        store.objects.put(obj)
    plugin = VolumeBinding(None, EngineHandle(store.objects))
    answer, state = ask(plugin, store, pod("p", list(range(len(claims)))))
    plan = state.read("VolumeBinding").plan
    volumes = list(store.objects.all(PersistentVolume))
    for row in range(store.snapshot().n):
        given_ = {c.name: v for c, v in plan.bindings_on(row)}
        taken: set[str] = set()
        for wanted in sorted(claims, key=lambda c: str(c.spec.resources.requests["storage"])):
            expected = smallest_fitting(wanted, volumes, store.snapshot().node(row), taken)
            got = given_.get(wanted.name)
            assert (None if got is None else f"{expected}Gi") == (None if got is None else got.spec.capacity["storage"])
            assert (expected is None) == (got is None)
            if got is not None:
                assert got.name not in taken
                taken.add(got.name)
        assert answer[f"n{row}"][0].is_success == (len(given_) == len(claims))


# Promises

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("place"),
            st.lists(st.integers(0, N_CLAIMS - 1), min_size=1, max_size=3, unique=True),
            st.integers(0, N_NODES - 1),
        ),
        st.tuples(st.just("give up"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("volume news"), st.integers(0, N_VOLUMES - 1), sizes),
        st.tuples(st.just("volume gone"), st.integers(0, N_VOLUMES - 1), st.just(0)),
        st.tuples(st.just("relabel"), st.integers(0, N_NODES - 1), st.integers(0, 2)),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(
    offers=st.lists(st.tuples(sizes, places), min_size=N_VOLUMES, max_size=N_VOLUMES),
    wishes=st.lists(sizes, min_size=N_CLAIMS, max_size=N_CLAIMS),
    history=steps,
    provisions=st.booleans(),
)
@example(  # the second pod is promised a volume anew, of which there was news since the first was
    offers=[(1, None), (1, {HOSTNAME: ["n1"]}), *[(1, None)] * (N_VOLUMES - 2)],
    wishes=[1] * N_CLAIMS,
    history=[("volume gone", 0, 0), ("place", [0], 0), ("volume news", 2, 1), ("place", [0], 0), ("give up", 0, 0)],
    provisions=False,
)
def test_no_volume_is_promised_to_two_claims_and_all_are_given_back(
    offers: list[Any], wishes: list[int], history: list[Any], provisions: bool
) -> None:
    store = Store()
    for i in range(N_NODES):
        store.put_node(node(i, i % 3))
    for i, (size, place) in enumerate(offers):
        store.objects.put(volume(i, size, place))
    for i, size in enumerate(wishes):
        store.objects.put(claim(i, size))
    store.objects.put(local_class("csi.example.com" if provisions else "kubernetes.io/no-provisioner"))
    plugin = VolumeBinding(None, EngineHandle(store.objects))
    placed: list[tuple[Any, str, CycleState]] = []
    owners: dict[str, str] = {}  # what is promised now, by our own books
    version = 1
    for step, (what, which, how) in enumerate(history):
        if what == "place":
            wanted = store.view(pod(f"p{step}", which))
            answer, state = ask(plugin, store, wanted.pod)
            name = f"n{how}"
            if isinstance(answer, Status) or not answer[name][0].is_success:
                continue
            assert plugin.reserve(wanted, name, state) is None
            promises = state.read("VolumeBinding").promises.get(name)
            for binding in promises.bindings if promises is not None else ():
                owner = owners.setdefault(binding.volume.name, binding.claim.name)
                assert owner == binding.claim.name, f"{binding.volume.name} was {owner}'s"
            placed.append((wanted, name, state))
        elif what == "give up" and placed:
            wanted, name, state = placed.pop(which % len(placed))
            promises = state.read("VolumeBinding").promises.get(name)
            # What was promised of a volume before there was news of it is nobody's to give back: others may have it by now.
            standing = {v.name: v.metadata.resource_version for v in plugin.volumes.promised()}
            mine = {
                b.volume.name
                for b in (promises.bindings if promises is not None else ())
                if b.was_promised and standing.get(b.volume.name) == b.volume.metadata.resource_version
            }
            plugin.unreserve(wanted, name, state)
            owners = {v: c for v, c in owners.items() if v not in mine}
        elif what == "volume news":
            version += 1
            store.objects.put(volume(which, how, offers[which][1], version=version))
            owners.pop(f"v{which}", None)
        elif what == "volume gone":
            store.objects.drop(PersistentVolume, f"v{which}")
            owners.pop(f"v{which}", None)
        elif what == "relabel":
            store.put_node(node(which, how))
        promised = {v.name: v.spec.claim_ref.name for v in plugin.volumes.promised() if v.spec.claim_ref is not None}
        assert promised.items() <= owners.items()
    for wanted, name, state in placed:
        plugin.unreserve(wanted, name, state)
        plugin.unreserve(wanted, name, state)
    assert not list(plugin.volumes.promised()) and not list(plugin.claims.promised())
    fresh = VolumeBinding(None, EngineHandle(store.objects))
    for i in range(N_CLAIMS):
        assert ask(plugin, store, pod("q", [i]))[0] == ask(fresh, store, pod("q", [i]))[0]


# Indexes that follow along

news = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.integers(0, 5),
            st.lists(st.integers(0, N_CLAIMS - 1), max_size=3),
            st.integers(0, N_NODES - 1),
        ),
        st.tuples(
            st.just("disk"),
            st.integers(0, 5),
            st.sampled_from(["vol-1", "vol-2", "aws://x/disk"]),
            st.integers(0, N_NODES - 1),
        ),
        st.tuples(st.just("pod gone"), st.integers(0, 5), st.just(0), st.just(0)),
        st.tuples(st.just("bind"), st.integers(0, N_CLAIMS - 1), st.integers(0, N_VOLUMES - 1), st.just(0)),
        st.tuples(st.just("unbind"), st.integers(0, N_CLAIMS - 1), st.integers(0, N_NODES), st.just(0)),
        st.tuples(st.just("claim gone"), st.integers(0, N_CLAIMS - 1), st.just(0), st.just(0)),
        st.tuples(st.just("volume"), st.integers(0, N_VOLUMES - 1), places, sizes),
        st.tuples(st.just("volume gone"), st.integers(0, N_VOLUMES - 1), st.just(0), st.just(0)),
        st.tuples(st.just("attach"), st.integers(0, N_VOLUMES - 1), st.integers(0, N_NODES - 1), st.just(0)),
        st.tuples(st.just("detach"), st.integers(0, N_VOLUMES - 1), st.just(0), st.just(0)),
        st.tuples(st.just("limit"), st.integers(0, N_NODES - 1), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("capacity"), st.integers(0, 2), st.integers(4, 8), st.just(0)),
        st.tuples(st.just("class"), st.just(0), st.sampled_from(["d", "kubernetes.io/aws-ebs", "x", ""]), st.just(0)),
        st.tuples(st.just("node"), st.integers(0, N_NODES - 1), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("node gone"), st.integers(0, N_NODES - 1), st.just(0), st.just(0)),
    ),
    max_size=30,
)


def happen(store: Store, what: str, a: int, b: Any, c: Any, version: int) -> None:
    objects = store.objects
    if what in ("pod", "disk"):
        store.put_pod(pod(f"old{a}", b, f"n{c}") if what == "pod" else pod(f"old{a}", [], f"n{c}", disk=b))
    elif what == "pod gone" and store.pod(f"old{a}") is not None:
        store.remove_pod(f"old{a}")
    elif what == "bind":
        objects.put(claim(a, 1, f"v{b}", version))
    elif what == "unbind":
        objects.put(claim(a, 1, version=version, selected=f"n{b}" if b < N_NODES else ""))
    elif what == "claim gone":
        objects.drop(PersistentVolumeClaim, f"c{a}", "default")
    elif what == "volume":
        objects.put(volume(a, c, b, version=version))
    elif what == "volume gone":
        objects.drop(PersistentVolume, f"v{a}")
    elif what == "attach":
        objects.put(
            codec.convert(
                {
                    "metadata": {"name": f"at{a}"},
                    "spec": {"attacher": "d", "nodeName": f"n{b}", "source": {"persistentVolumeName": f"v{a}"}},
                },
                VolumeAttachment,
            )
        )
    elif what == "detach":
        objects.drop(VolumeAttachment, f"at{a}")
    elif what == "limit":
        objects.put(
            codec.convert(
                {
                    "metadata": {"name": f"n{a}"},
                    "spec": {
                        "drivers": [
                            {"name": "d", "allocatable": {"count": b}},
                            *([{"name": "ebs.csi.aws.com", "allocatable": {"count": 1}}] * c),
                        ]
                    },
                },
                CSINode,
            )
        )
    elif what == "capacity":
        objects.put(
            codec.convert(
                {
                    "metadata": {"name": f"z{a}", "namespace": "k"},
                    "storageClassName": "local",
                    "capacity": f"{b}Gi",
                    "nodeTopology": {"matchLabels": {ZONE: f"z{a}"}},
                },
                CSIStorageCapacity,
            )
        )
    elif what == "class":
        objects.put(local_class(b))
    elif what == "node":
        store.put_node(node(a, b))
    elif what == "node gone" and store.node(f"n{a}") is not None:
        store.remove_node(f"n{a}")


@settings(max_examples=120, deadline=None)
@given(history=news)
def test_a_plugin_that_followed_along_says_what_a_new_one_says(history: list[Any]) -> None:
    store = Store()
    for i in range(3):
        store.put_node(node(i, i % 3))
    for i in range(N_CLAIMS):
        store.objects.put(claim(i, 6 if i == 4 else 1 + i % 3))  # no volume is as big as 6, it must be made
    for i in range(N_VOLUMES):
        store.objects.put(volume(i, 1 + i % 4, {ZONE: [f"z{i % 3}"]} if i % 2 else None))
    for obj in (local_class("d"), CSIDriver(metadata=ObjectMeta(name="d"), spec=CSIDriverSpec(storage_capacity=True))):
        store.objects.put(obj)
    for i in range(3):
        happen(store, "limit", i, 1 + i, True, 1)
        happen(store, "capacity", i, 6, 0, 1)
        happen(store, "bind", i, i, 0, 1)
        happen(store, "pod", i, [i], i, 1)
        happen(store, "attach", i, (i + 1) % 3, 0, 1)
    build: list[Callable[[], Plugin]] = [
        lambda: NodeVolumeLimits(None, EngineHandle(store.objects)),
        lambda: VolumeRestrictions(None, EngineHandle(store.objects)),
        lambda: VolumeBinding(None, EngineHandle(store.objects)),
    ]
    old = [make() for make in build]
    wanted = [pod("new", [0, 1]), pod("new", [2], disk="vol-1"), pod("new", [3, 4, 5]), pod("new", [4])]
    assert all(ask(plugin, store, each) for plugin in old for each in wanted)
    for version, (what, a, b, c) in enumerate(history, 2):
        happen(store, what, a, b, c, version)
        for plugin, make in zip(old, build, strict=True):
            for each in wanted:
                assert ask(plugin, store, each)[0] == ask(make(), store, each)[0], (plugin.name, what)
