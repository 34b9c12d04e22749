"""A world leaves no trace: whatever is done in it, and in worlds inside it, the cluster is exactly as it was before.

Random clusters with pods of pod groups, claims of devices and nominated pods. In random worlds nodes come, go and are cordoned,
pods are placed, evicted and deleted, exceptions are thrown. Afterwards every column, every row and the order of pods on each
node are the same, and every answer is that of a cluster that was read anew.
"""

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod, PodSchedulingGroup, codec
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.workload import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from kubesched.scheduler.cluster import DeviceClaims
from kubesched.solver import Cluster, World
from kubesched.testing import clusters, pod
from kubesched.tools.simulation.simulation import Simulation

GATES = ("GenericWorkload=true", "GangScheduling=true")
GROUPS = ("red", "blue")


def group(name: str) -> PodGroup:
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=2))
    meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", creation_timestamp="2026-01-01T00:00:00Z")
    return PodGroup(metadata=meta, spec=PodGroupSpec(scheduling_policy=policy))


def devices(node_name: str) -> list[Any]:
    meta = {"name": f"slice-{node_name}", "uid": f"uid-slice-{node_name}"}
    pool = {"name": node_name, "resourceSliceCount": 1, "generation": 1}
    spec = {"driver": "gpu.test", "nodeName": node_name, "pool": pool, "devices": [{"name": "d0"}, {"name": "d1"}]}
    return [codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": spec})]


def claim(name: str) -> Any:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec})


def random_objects(random: Random) -> list[Any]:
    nodes = [clusters.random_node(random, f"n{i}") for i in range(random.randrange(1, 7))]
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    others = [*clusters.namespaces(), *map(group, GROUPS), codec.decode(device_class), *(claim(f"claim-{i}") for i in range(3))]
    for node in nodes[: random.randrange(3)]:
        others += devices(node.metadata.name)
    pods = [clusters.random_pod(random, f"p{i}", on=random.choice(nodes).metadata.name) for i in range(random.randrange(12))]
    pods += [pod("lost", on="no-such-node", requests={"cpu": "1"})]
    pods += [new_pod(random, f"q{i}") for i in range(random.randrange(4))]
    if random.random() < 0.5:
        pods.append(pod("nominee", priority=50, requests={"cpu": "1"}, nominated=nodes[0].metadata.name))
    return [*others, *nodes, *pods]


def new_pod(random: Random, name: str) -> Pod:
    made = clusters.random_pod(random, name)
    if random.random() < 0.3:
        chosen = PodSchedulingGroup(pod_group_name=random.choice(GROUPS))
        meta = msgspec.structs.replace(made.metadata, namespace="default", uid=f"uid-default-{name}")
        spec = msgspec.structs.replace(made.spec, scheduling_group=chosen, priority=None)
        return msgspec.structs.replace(made, metadata=meta, spec=spec)
    if random.random() < 0.3:
        raw = codec.to_dict(pod(name, requests={"cpu": "100m"}))
        raw["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": f"claim-{random.randrange(3)}"}]
        return codec.convert(raw, Pod)
    return made


def state(cluster: Cluster) -> dict[str, Any]:
    """Return everything that an answer could depend on."""
    store, nodes = cluster.engine.store, cluster.engine.store.nodes
    labels = {
        key: [column.values.values[code] if code >= 0 else None for code in column.codes.live.tolist()]
        for key, column in nodes.labels.items()
    }
    groups = {
        key: {book: list(getattr(found, book)) for book in ("unscheduled", "assumed", "assigned")}
        for key, found in store.groups._groups.items()
    }
    slots = store.slots
    kinds = store.objects._kinds
    nominations = cluster.engine.queue.nominations
    return {
        "names": list(nodes.names),
        "rows": dict(nodes.rows),
        "nodes": list(nodes.objects),
        "offered": [[resource.name for resource in row] for row in nodes.offered],
        "allocatable": [column.live.tolist() for column in nodes.allocatable if column.live.any()],
        "requested": [column.live.tolist() for column in nodes.requested if column.live.any()],
        "non zero": (nodes.non_zero_cpu.live.tolist(), nodes.non_zero_memory.live.tolist()),
        "counts": (nodes.pod_count.live.tolist(), nodes.allowed_pods.live.tolist()),
        "cordons": nodes.unschedulable.live.tolist(),
        "taints": [nodes.taint_sets.values[code] for code in nodes.taint_set.live.tolist()],
        "features": [nodes.feature_sets.values[code] for code in nodes.feature_set.live.tolist()],
        "labels": labels,
        "images": {name: (held.size, sorted(held.rows)) for name, held in nodes.images.items()},
        "visits": list(store.order.names),
        "pods on": {name: list(pods) for name, pods in store._on_node.items()},
        "pods": {view.uid: view.pod for view in store.pods()},
        "assumed": set(store._assumed),
        "slots": {view.uid: (slot, int(slots.row.data[slot])) for slot, view in enumerate(slots.views) if view is not None},
        "number of slots": (slots.table.n, len(slots.views), list(slots._free)),
        "classes": dict(slots.classes),
        "ports": {port: {ip: set(held) for ip, held in by_ip.items()} for port, by_ip in slots.ports.items()},
        "objects": {(kind, ns): dict(names) for kind, found in kinds.items() for ns, names in found.items() if names},
        "groups": groups,
        "nominated": {name: [view.uid for view in nominations.on_node(name)] for name in nominations.nodes()},
        "pending": [view.pod for view in cluster.engine.intake.pending()],
        "queued": [entry.key for entry in cluster.engine.queue],
        "promised": [
            [claim.metadata.name for claim in store.objects.shared(DeviceClaims).promised_to(f"uid-default-{letter}{i}")]
            for letter in "pqw"
            for i in range(9)
        ],
        "names of pods": dict(cluster._uids),
        "waiting": len(cluster.engine.waiting),
        "under way": (len(cluster.engine.bookings), len(cluster.engine.core.tasks), len(cluster.refusals.messages)),
    }


class Thrown(Exception):
    """What the program that uses a world throws inside it."""


def wander(random: Random, world: World, depth: int) -> None:
    """Do a few random things in a world."""
    store = world.cluster.engine.store
    for _ in range(random.randrange(1, 7)):
        names = list(store.nodes.names) or ["n0"]
        what = random.randrange(12)
        try:
            if what == 0:
                world.add_nodes(clusters.random_node(random, random.choice(("new", "other"))), random.randrange(1, 4))
            elif what == 1:
                world.remove_node(random.choice(names))
            elif what == 2:
                world.cordon(random.choice(names), on=random.random() < 0.7)
            elif what == 3:
                world.drain(random.choice(names))
            elif what == 4:
                placed = [view.key for view in store.pods()]
                world.delete(random.choice(placed or ["none"]))
            elif what == 5:
                changed = clusters.random_node(random, random.choice(names))
                world.add([changed, *devices(changed.metadata.name), clusters.namespaces()[0]])
            elif what == 6:
                world.add([clusters.random_pod(random, f"w{random.randrange(9)}", on=random.choice(names))])
            elif what == 7:
                world.place([view.metadata.namespace + "/" + view.metadata.name for view in world.cluster.pending()])
            elif what == 8 and depth < 3:
                with world.what_if() as inner:
                    wander(random, inner, depth + 1)
            elif what == 9 and random.random() < 0.2:
                raise Thrown
            else:
                pods = [new_pod(random, f"w{i}") for i in random.sample(range(9), random.randrange(1, 6))]
                world.place(pods, preempt=random.random() < 0.5)
            world.fits(clusters.random_pod(random, "asked"), nodes=random.random() < 0.5)
        except SchedulerError as error:
            assert "\n" not in str(error)


@settings(max_examples=100)
@given(seed=st.integers(0, 1 << 32))
def test_a_world_leaves_no_trace(seed: int) -> None:
    random = Random(seed)
    objects = random_objects(random)
    cluster = Cluster.from_objects(objects, feature_gates=GATES, at=1.0)
    asked = [clusters.random_pod(random, f"ask{i}") for i in range(3)]
    before = state(cluster)
    for _ in range(3):
        answers = [cluster.fits(each, nodes=i % 2 == 0).as_dict() for each in asked for i in range(2)]
        inner = before
        try:
            with cluster.what_if() as world:
                wander(random, world, 1)
                inner = state(cluster)
                with world.what_if() as nested:
                    wander(random, nested, 2)
                _compare(inner, state(cluster))
        except Thrown:
            pass
        _compare(before, state(cluster))
        fresh = Cluster.from_objects(objects, feature_gates=GATES, at=1.0)
        for made in (cluster, fresh):
            assert [made.fits(each, nodes=i % 2 == 0).as_dict() for each in asked for i in range(2)] == answers


def _compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    for name in before:
        assert after[name] == before[name], name


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 32), preempt=st.booleans())
def test_pods_go_where_a_simulation_of_the_cluster_puts_them(seed: int, preempt: bool) -> None:
    """With preemption one pod at a time: in a simulation victims take their time to go, and others are tried meanwhile."""
    random = Random(seed)

    def made(name: str, on: str = "") -> Pod:
        found = clusters.random_pod(random, name, on=on)
        meta = msgspec.structs.replace(found.metadata, deletion_timestamp=None)
        spec = found.spec if preempt else msgspec.structs.replace(found.spec, priority=0)
        return msgspec.structs.replace(found, metadata=meta, spec=spec)

    nodes = [clusters.random_node(random, f"n{i}") for i in range(random.randrange(1, 7))]
    placed = [made(f"p{i}", random.choice(nodes).metadata.name) for i in range(random.randrange(12))]
    objects, new = (
        [*clusters.namespaces(), *nodes, *placed],
        [made(f"w{i}") for i in range(1 if preempt else random.randrange(1, 12))],
    )
    with Simulation(seed=seed, epoch=5.0) as sim:
        sim.world.replaces = False
        for obj in (*objects, *new):
            sim.add(obj)
        sim.run()
        gone = {key for key, record in sim.pods.items() if record.preempted_by}
        simulated = {pod.key: sim.pods[pod.key].node for pod in new if pod.key not in gone}
    found = Cluster(objects, at=5.0, seed=seed).place(new, preempt=preempt)
    assert {pod.key: pod.node for pod in found.pods if pod.key not in gone} == simulated
    assert {victim.key for victim in found.victims} == gone
