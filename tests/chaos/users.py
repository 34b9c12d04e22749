"""Users: people who create, scale, evict and delete all day long, by the seed.

In: a world. Out: nodes (some with devices), pods of two priorities with and without volumes and devices, apps with disruption
budgets; nodes that are cordoned, drained and dropped. Their network is good, and what fails they try no second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

from chaos.disk import PowerLost
from chaos.world import World
from kubesched.errors import ApiError

REST_SECONDS = 7.0
"""How long before the end of the faults they stop."""
ACTS_PER_SECOND = 0.45
DRIVER, DEVICE_CLASS, DEVICES = "devices.example.com", "device", 2
HIGH, HIGH_PRIORITY = "high", 1000


class Users:
    """People of one world."""

    def __init__(self, world: World) -> None:
        self._world, self._chance = world, random.Random(f"{world.scene.seed}/users")
        self._n = 0

    async def work(self) -> None:
        """Work until their time is over."""
        await self._do(self._prepare)
        for _ in range(self._chance.randint(2, 4)):
            await self._do(self._add_node)
        acts: dict[Callable[[], None], int] = {
            self._add_pod: 6,
            self._add_pods: 4,
            self._add_pod_with_volume: 2,
            self._add_pod_with_device: 2,
            self._delete_pod: 4,
            self._evict: 1,
            self._scale: 2,
            self._cordon: 2,
            self._drain: 1,
            self._add_node: 1,
            self._drop_node: 1,
        }
        if self._world.scene.has_gangs:
            acts[self._add_gang] = 5
        while self._world.loop.time() < self._world.scene.seconds - REST_SECONDS:
            await self._do(self._chance.choices(list(acts), list(acts.values()))[0])
            await asyncio.sleep(self._chance.expovariate(ACTS_PER_SECOND))

    async def make_amends(self) -> None:
        """Let something happen that wakes the pods which were refused for no reason: nothing else would, for minutes."""
        if self._world.scene.has_liar or self._world.scene.extender:
            await self._do(self._add_node)

    async def _do(self, act: Callable[[], None]) -> None:
        await self._world.until(lambda: self._world.server.is_up, 60.0)
        if self._world.server.is_up:
            with contextlib.suppress(ApiError, OSError, PowerLost):
                act()

    def _prepare(self) -> None:
        self._create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": HIGH}, "value": HIGH_PRIORITY})
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        self._create("deviceclasses.resource.k8s.io", {"metadata": {"name": DEVICE_CLASS}, "spec": {"selectors": [selector]}})

    def _name(self, kind: str) -> str:
        self._n += 1
        return f"{kind}-{self._n}"

    def _add_node(self) -> None:
        name = self._name("node")
        room = {"cpu": self._chance.choice(("2", "4", "8")), "memory": "32Gi", "pods": self._chance.choice(("8", "110"))}
        self._create("nodes", {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}})
        if self._chance.random() < 0.5:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": f"device-{i}"} for i in range(DEVICES)]
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
            self._create("resourceslices.resource.k8s.io", {"metadata": {"name": f"slice-{name}"}, "spec": spec})

    def _spec(self) -> dict[str, Any]:
        cpu = self._chance.choice(("100m", "500m", "1", "1500m"))
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}]}
        if self._chance.random() < 0.2:
            spec["priorityClassName"] = HIGH
        return {**spec, "terminationGracePeriodSeconds": self._chance.choice((0, 1, 5))}

    def _add_pod(self, **more: Any) -> None:
        meta = {"name": self._name("pod"), "namespace": "default"}
        self._create("pods", {"metadata": meta, "spec": {**self._spec(), **more}})

    def _add_pods(self) -> None:
        name = self._name("app")
        template = {"metadata": {"labels": {"app": name}}, "spec": self._spec()}
        spec = {"replicas": self._chance.randint(1, 3), "selector": {"matchLabels": {"app": name}}, "template": template}
        self._create("replicasets.apps", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        if self._chance.random() < 0.4:
            budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
            self._create("poddisruptionbudgets.policy", {"metadata": {"name": name, "namespace": "default"}, "spec": budget})

    def _add_gang(self) -> None:
        """Create pods that want to run together; one may be missing."""
        name, spec = self._name("gang"), self._spec()
        n_members = self._chance.randint(2, 3)
        group: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": n_members}}}
        if "priorityClassName" in spec:
            group["priorityClassName"] = spec["priorityClassName"]
        meta = {"name": name, "namespace": "default"}
        self._create("podgroups.scheduling.k8s.io", {"metadata": meta, "spec": group})
        for number in range(n_members - (self._chance.random() < 0.2)):
            member = {"name": f"{name}-{number}", "namespace": "default"}
            self._create("pods", {"metadata": member, "spec": {**spec, "schedulingGroup": {"podGroupName": name}}})

    def _add_pod_with_volume(self) -> None:
        name = self._name("volume")
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        self._create("persistentvolumeclaims", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        self._add_pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])

    def _add_pod_with_device(self) -> None:
        name = self._name("claim")
        request = {"name": "one", "exactly": {"deviceClassName": DEVICE_CLASS}}
        spec = {"devices": {"requests": [request]}}
        self._create("resourceclaims.resource.k8s.io", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        self._add_pod(resourceClaims=[{"name": "device", "resourceClaimName": name}])

    def _delete_pod(self) -> None:
        if name := self._any("pods"):
            self._world.server.do("delete", "pods", name, "default")

    def _evict(self) -> None:
        if name := self._any("pods"):
            self._world.server.do("evict", "default", name)

    def _scale(self) -> None:
        if name := self._any("replicasets.apps"):
            self._world.server.do("scale", "replicasets.apps", name, self._chance.randint(0, 5), "default")

    def _cordon(self) -> None:
        if name := self._any("nodes"):
            self._world.server.do("patch", "nodes", name, {"spec": {"unschedulable": self._chance.random() < 0.4}})

    def _drain(self) -> None:
        if node := self._any("nodes"):
            self._world.server.do("patch", "nodes", node, {"spec": {"unschedulable": True}})
            there = [
                pod["metadata"]["name"] for pod in self._world.server.entries("pods") if pod["spec"].get("nodeName") == node
            ]
            for name in there:
                with contextlib.suppress(ApiError):  # a budget forbids it
                    self._world.server.do("evict", "default", name)

    def _drop_node(self) -> None:
        if name := self._any("nodes"):
            self._world.server.do("delete", "nodes", name)

    def _create(self, resource: str, obj: dict[str, Any]) -> None:
        self._world.server.do("create", resource, obj)

    def _any(self, resource: str) -> str:
        names = [obj["metadata"]["name"] for obj in self._world.server.entries(resource)]
        return self._chance.choice(names) if names else ""
