"""A cluster in which everything that schedulers decide about happens at once, by seeded chance.

In: an administrator's connection to an API server without nodes. Out: nodes with zones, images, devices and volume limits;
pods of every kind that come in bursts, end, are deleted and are preempted; nodes that are cordoned, tainted, relabelled, lost
and brought back. What controllers and kubelets would do is done here: volumes are made and bound, claims and volumes of pods
that are gone are removed, pods start, end and go. Who places the pods is somebody else's business; placements are counted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from control_planes import Api, ControlPlane, Object, Refused

from kubesched.kube.api.pod import Pod
from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.kube.client.connection import connect
from kubesched.kube.client.credentials import find_credentials
from kubesched.kube.client.informers.reflectors import Reflectors
from kubesched.kube.client.informers.resources import watch_set

DRIVER, GPU_DRIVER = "disks.example.com", "gpu.example.com"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_FOLLOWED = ("Pod", "PersistentVolume", "PersistentVolumeClaim")
_MOST_WAITING = 80
_PATIENCE_SECONDS = 8.0
_OVER = ("Succeeded", "Failed")
_CORE = "/api/v1/namespaces/default"
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def a_node(number: int) -> Object:
    """Return a node; they differ in size, zone, images, disks and taints."""
    name = f"node-{number}"
    offer = {"cpu": str(4 + 2 * (number % 3)), "memory": f"{16 + 8 * (number % 2)}Gi", "pods": "60"}
    labels = {HOST: name, ZONE: f"zone-{number % 3}", "disk": "ssd" if number % 4 == 0 else "hdd"}
    images = [{"names": [f"registry.example.com/app:{number % 5}"], "sizeBytes": 300_000_000}]
    taints = [{"key": "old", "effect": "PreferNoSchedule"}] if number % 10 == 9 else []
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "capacity": offer,
            "allocatable": offer,
            "images": images,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _of_node(number: int) -> list[Object]:
    """Return what belongs to a node and outlives it: the limit of its disks, and for some a local disk and devices."""
    name = f"node-{number}"
    limit = {"name": DRIVER, "nodeID": name, "topologyKeys": [HOST], "allocatable": {"count": 6}}
    found: list[Object] = [{"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [limit]}}]
    if number % 2 == 0:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        kinds = [{"model": {"string": "large" if device == 0 else "small"}} for device in range(4)]
        devices = [{"name": f"gpu-{device}", "attributes": kind} for device, kind in enumerate(kinds)]
        spec = {"driver": GPU_DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        found.append({"kind": "ResourceSlice", "metadata": {"name": f"gpus-{number}"}, "spec": spec})
    return found


def _a_local_volume(number: int, node_name: str) -> Object:
    at = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node_name]}]}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": f"local-{number}"},
        "spec": {
            "capacity": {"storage": f"{1 + number % 3}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [at]}},
        },
    }


GROUND: list[Object] = [
    {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    {"kind": "PriorityClass", "metadata": {"name": "low"}, "value": -10},
    *(
        {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": maker, "volumeBindingMode": "WaitForFirstConsumer"}
        for name, maker in (("made", DRIVER), ("local", "kubernetes.io/no-provisioner"))
    ),
    {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU_DRIVER}"'}}]},
    },
]

Spec = dict[str, Any]


def _near(app: str, key: str) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _spread(app: str, skew: int, key: str, otherwise: str) -> Spec:
    constraint = {**_near(app, key), "maxSkew": skew, "whenUnsatisfiable": otherwise}
    return {"topologySpreadConstraints": [constraint]}


def _on_disk(kind: str, name: str, operator: str = "In") -> Spec:
    terms = [{"key": "disk", "operator": operator, "values": [name]}]
    if kind == "required":
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 30, "preference": {"matchExpressions": terms}}]}


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
KINDS: dict[str, tuple[int, Callable[[str], Spec]]] = {  # how many of a hundred or so, and what such a pod has in its spec
    "plain": (30, lambda app: {}),
    "evenly": (8, lambda app: _spread(app, 1, ZONE, "DoNotSchedule")),
    "hosts": (6, lambda app: _spread(app, 2, HOST, "ScheduleAnyway")),
    "zones": (6, lambda app: _spread(app, 1, ZONE, "ScheduleAnyway")),
    "apart": (6, lambda app: {"affinity": {"podAntiAffinity": {_REQUIRED: [_near(app, HOST)]}}}),
    "together": (
        6,
        lambda app: {"affinity": {"podAffinity": {_PREFERRED: [{"weight": 50, "podAffinityTerm": _near(app, ZONE)}]}}},
    ),
    "shy": (
        4,
        lambda app: {"affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 80, "podAffinityTerm": _near(app, HOST)}]}}},
    ),
    "ssd": (4, lambda app: {"affinity": {"nodeAffinity": _on_disk("required", "ssd")}}),
    "prefers": (4, lambda app: {"affinity": {"nodeAffinity": _on_disk("preferred", "ssd")}}),
    "port": (3, lambda app: {}),
    "image": (4, lambda app: {}),
    "tolerant": (3, lambda app: {"tolerations": [{"operator": "Exists"}]}),
    "made": (6, lambda app: {}),
    "local": (2, lambda app: {}),
    "device": (6, lambda app: {}),
    "filler": (12, lambda app: {"priorityClassName": "low"}),
    "vip": (4, lambda app: {"priorityClassName": "high"}),
}


class BusyCluster:
    """The cluster; a sink of reflectors. `n_placed` counts the placements that were seen, `kinds` what came to pass."""

    def __init__(self, api: Api, n_nodes: int, seed: int) -> None:
        self.n_placed = 0
        self.kinds: dict[str, int] = {}
        self._api, self._n_nodes = api, n_nodes
        self._chance = random.Random(seed)
        self._made = 0
        self._has_begun = asyncio.Event()
        self._pods: dict[str, Pod] = {}
        self._since: dict[str, float] = {}
        """Since when a pod waits, by name."""
        self._lost: set[int] = set()
        self._served: set[str] = set()
        """What a controller has begun to act upon."""
        self._tasks: set[asyncio.Task[None]] = set()

    # What the reflectors tell

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take notice, and do what a controller or a kubelet would."""
        if kind == "Pod":
            self._deliver_pod(old, new)
        elif isinstance(new, PersistentVolumeClaim):
            node_name = new.metadata.annotations.get(SELECTED_NODE, "")
            if node_name and not new.spec.volume_name and new.spec.storage_class_name == "made":
                self._once(f"make {new.metadata.uid}", self._make_volume(new, node_name))
        elif isinstance(new, PersistentVolume):
            claim = new.spec.claim_ref
            if claim is not None and new.status.phase != "Bound" and new.spec.storage_class_name == "local":
                self._once(f"bind {new.metadata.name} {claim.uid}", self._bind_volume(new.metadata.name, claim.name))
            elif claim is None and new.status.phase != "Available":
                self._once(f"offer {new.metadata.uid}", self._offer_volume(new.metadata.name))

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list has been delivered."""

    def _deliver_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            assert old is not None
            self._pods.pop(old.metadata.name, None)
            self._since.pop(old.metadata.name, None)
            self._once(f"clean {old.metadata.name}", self._clean(old))
            return
        name = new.metadata.name
        self._pods[name] = new
        if new.spec.node_name and (old is None or not old.spec.node_name):
            self.n_placed += 1
            self._has_begun.set()
            self._since.pop(name, None)
            self._count(name.partition("-")[0])
            self._once(f"start {new.metadata.uid}", self._start(name))
        elif not new.spec.node_name and old is None:
            self._since[name] = asyncio.get_running_loop().time()
        if new.status.nominated_node_name and (old is None or not old.status.nominated_node_name):
            self._count("nominated")
        if new.metadata.deletion_timestamp is not None:
            self._once(f"end {new.metadata.uid}", self._end(name))

    # Making things happen

    async def prepare(self) -> None:
        """Create all that there is before the first pod."""
        objects = [*GROUND]
        for number in range(self._n_nodes):
            objects += [a_node(number), *_of_node(number)]
        objects += [_a_local_volume(number, f"node-{number % self._n_nodes}") for number in range(self._n_nodes)]
        for first in range(0, len(objects), 32):
            await asyncio.gather(*(self._api.create(obj) for obj in objects[first : first + 32]))

    async def run(self, n_placed: int, rate: float) -> None:
        """Let things happen until so many placements were seen, and what is under way has ended; `rate` pods come a second,
        in bursts, unless too many wait already."""
        chance = self._chance
        n_wanted = 12 * self._n_nodes  # about as many as fit, so that some have to make room
        await self._create_pod("plain")
        await self._has_begun.wait()  # a scheduler that starts later finds pods in the order of their names
        while self.n_placed < n_placed:
            for task in [task for task in self._tasks if task.done()]:
                self._tasks.discard(task)
                task.result()
            if chance.random() < 0.15:
                await self._change_a_node()
            now = asyncio.get_running_loop().time()
            tired = [name for name, since in self._since.items() if now - since > _PATIENCE_SECONDS]
            placed = sorted(self._pods.keys() - self._since.keys())  # others may be on their way to a node, which nobody sees
            leaving = chance.sample(placed, min(len(placed), max(0, len(self._pods) - n_wanted)))
            await asyncio.gather(*(self._delete(name) for name in {*tired, *leaving}))
            count = chance.randint(1, 40)
            if len(self._since) < _MOST_WAITING:
                await self._create_pods(count)
            await asyncio.sleep(max(0.0, now + count / rate - asyncio.get_running_loop().time()))
        for task in list(self._tasks):
            await task

    async def _create_pods(self, count: int) -> None:
        names = self._chance.choices(list(KINDS), [share for share, _ in KINDS.values()], k=count)
        await asyncio.gather(*(self._create_pod(kind) for kind in names))

    async def _create_pod(self, kind: str) -> None:
        chance, number = self._chance, self._made
        self._made += 1
        name, app = f"{kind}-{number}", f"{kind}-{number % 7}"
        cpu = {"vip": 2000, "filler": 700}.get(kind, 100 * chance.randint(1, 6))
        asks = {"cpu": f"{cpu}m", "memory": f"{128 * chance.randint(1, 8)}Mi"} if chance.random() > 0.1 else {}
        image = f"registry.example.com/app:{number % 5}" if kind == "image" else "app"
        container: Object = {"name": "main", "image": image, "resources": {"requests": asks}}
        if kind == "port":
            container["ports"] = [{"containerPort": 80, "hostPort": 8000 + number % 4}]
        spec = {"containers": [container], "terminationGracePeriodSeconds": number % 2, **KINDS[kind][1](app)}
        if kind in ("made", "local"):
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
            await self._api.create(_volume_claim(name, kind))
        if kind == "device":
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
            await self._api.create(_device_claim(name, number))
        await self._api.create({"kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": spec})

    async def _change_a_node(self) -> None:
        chance = self._chance
        number = chance.randrange(self._n_nodes)
        path, what = f"/api/v1/nodes/node-{number}", chance.choice(("cordon", "taint", "label", "size", "lose", "free"))
        if number in self._lost:
            self._lost.discard(number)
            await self._api.create(a_node(number))
            return
        self._count(what)
        if what == "lose":
            if len(self._lost) < self._n_nodes // 10:
                self._lost.add(number)
                await self._api.delete(path)
                lost = [name for name, pod in self._pods.items() if pod.spec.node_name == f"node-{number}"]
                await asyncio.gather(*(self._delete(name, at_once=True) for name in lost))
            return
        as_made = a_node(number)
        if what == "cordon":
            await self._api.patch(path, {"spec": {"unschedulable": True}})
        elif what == "taint":
            taint = {"key": "busy", "effect": chance.choice(("NoSchedule", "PreferNoSchedule"))}
            await self._api.patch(path, {"spec": {"taints": [taint]}})
        elif what == "label":
            await self._api.patch(path, {"metadata": {"labels": {"disk": chance.choice(("ssd", "hdd"))}}})
        elif what == "size":
            cpu = {"cpu": str(3 + chance.randrange(6))}
            await self._api.patch(f"{path}/status", {"status": {"capacity": cpu, "allocatable": cpu}})
        else:
            await self._api.patch(path, {"spec": {**as_made["spec"], "unschedulable": None}})

    async def _delete(self, name: str, *, at_once: bool = False) -> None:
        with suppress(Refused):  # it may be gone
            await (self._api.delete if at_once else self._api.delete_gracefully)(f"{_CORE}/pods/{name}")

    # What kubelets and controllers do

    async def _start(self, name: str) -> None:
        await asyncio.sleep(0.3 * self._chance.random())
        with suppress(Refused):
            await self._api.patch(f"{_CORE}/pods/{name}/status", {"status": {"phase": "Running"}})
            if self._chance.random() < 0.2:
                await asyncio.sleep(5 * self._chance.random())
                await self._api.patch(f"{_CORE}/pods/{name}/status", {"status": {"phase": self._chance.choice(_OVER)}})
                self._count("ended")

    async def _end(self, name: str) -> None:
        await asyncio.sleep(self._chance.random())
        await self._delete(name, at_once=True)

    async def _clean(self, pod: Pod) -> None:
        """Remove the claims of a pod that is gone, with the volume that was made for it; a local volume is for the next one."""
        name = pod.metadata.name
        kind, _, number = name.partition("-")
        if kind == "device":
            await self._remove(f"{_CLAIMS}/{name}")
        elif kind in ("made", "local"):
            claim = f"{_CORE}/persistentvolumeclaims/{name}"
            volume = ""
            with suppress(Refused):
                volume = (await self._api.get(claim))["spec"].get("volumeName", "")
            await self._remove(claim)
            if volume:
                path = f"/api/v1/persistentvolumes/{volume}"
                await self._remove(path)
                if kind == "local":
                    number = volume.rpartition("-")[2]
                    await self._api.create(_a_local_volume(int(number), f"node-{int(number) % self._n_nodes}"))

    async def _remove(self, path: str) -> None:
        with suppress(Refused):
            await self._api.delete(path)
            await self._api.patch(path, {"metadata": {"finalizers": None}})

    async def _make_volume(self, claim: PersistentVolumeClaim, node_name: str) -> None:
        """Do as an external provisioner: it takes a while, and the volume can be used in the node's zone only."""
        await asyncio.sleep(0.05 + self._chance.random())
        name, zone = f"made-{claim.metadata.uid}", f"zone-{int(node_name.rpartition('-')[2]) % 3}"
        at = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": "default",
            "name": claim.metadata.name,
            "uid": claim.metadata.uid,
        }
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "made",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [at]}},
            "claimRef": reference,
        }
        with suppress(Refused):
            await self._api.create({"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
            await self._bind_volume(name, claim.metadata.name)
            self._count("provisioned")

    async def _offer_volume(self, name: str) -> None:
        with suppress(Refused):
            await self._api.patch(f"/api/v1/persistentvolumes/{name}/status", {"status": {"phase": "Available"}})

    async def _bind_volume(self, volume: str, claim: str) -> None:
        """Do as the volume controller once both know of each other."""
        path = f"{_CORE}/persistentvolumeclaims/{claim}"
        notes = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        with suppress(Refused):
            await self._api.patch(path, {"metadata": {"annotations": notes}, "spec": {"volumeName": volume}})
            await self._api.patch(f"/api/v1/persistentvolumes/{volume}/status", {"status": {"phase": "Bound"}})
            await self._api.patch(f"{path}/status", {"status": {"phase": "Bound"}})

    def _once(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        if what in self._served:
            work.close()
            return
        self._served.add(what)
        self._tasks.add(asyncio.create_task(work, name=what))

    def _count(self, what: str) -> None:
        self.kinds[what] = self.kinds.get(what, 0) + 1


def _volume_claim(name: str, storage: str) -> Object:
    asks = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage, "resources": {"requests": {"storage": "1Gi"}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": asks}


def _device_claim(name: str, number: int) -> Object:
    exactly: Object = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1 + number % 2}
    if number % 5 == 0:
        large = f'device.attributes["{GPU_DRIVER}"].model == "large"'
        exactly |= {"count": 1, "selectors": [{"cel": {"expression": large}}]}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


@asynccontextmanager
async def busy_cluster(plane: ControlPlane, n_nodes: int, seed: int = 0) -> AsyncIterator[BusyCluster]:
    """Make the cluster on an API server, and follow it."""
    async with plane.api() as api:
        cluster = BusyCluster(api, n_nodes, seed)
        await cluster.prepare()
        connection = await connect(find_credentials(str(plane.kubeconfig("admin"))), qps=1000.0, burst=1000)
        rows = [row for row in watch_set((), ()) if row.kind in _FOLLOWED]
        reflectors = await Reflectors.prepare(connection, rows, cluster)
        following = asyncio.create_task(reflectors.run())
        try:
            await reflectors.wait_synced()
            yield cluster
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await connection.close()
