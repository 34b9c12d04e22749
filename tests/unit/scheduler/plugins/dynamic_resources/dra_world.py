"""A small cluster with devices for tests: builders, and one call that says what a pod's claims get on a node."""

from kubesched.kube.api import codec
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.cluster.device_claims import DeviceClaims
from kubesched.scheduler.config import NEWEST, Gates
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, Diagnosis, Profile
from kubesched.scheduler.framework.runtime.registry import points_of
from kubesched.scheduler.framework.verdicts import Verdicts
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources

DRIVER = "gpu.example.com"


def make(raw):
    return codec.decode(codec.encode(raw))


def node(name, labels=None, **allocatable):
    return make(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels or {}},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110", **allocatable}},
        }
    )


def device_class(name="any", selector=None, **spec):
    selectors = [{"cel": {"expression": selector}}] if selector else []
    return make(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": selectors, **spec},
        }
    )


def device(name, attributes=None, capacity=None, consumes=None, **more):
    """Attributes are plain values; a version is written as ("version", text). Capacities may be whole dicts."""
    kinds = {bool: "bool", int: "int", str: "string"}
    typed = {
        key: {value[0]: value[1]} if isinstance(value, tuple) else {kinds[type(value)]: value}
        for key, value in (attributes or {}).items()
    }
    amounts = {key: value if isinstance(value, dict) else {"value": value} for key, value in (capacity or {}).items()}
    uses = [
        {"counterSet": name_, "counters": {c: {"value": v} for c, v in counters.items()}}
        for name_, counters in (consumes or {}).items()
    ]
    return {"name": name, "attributes": typed, "capacity": amounts, "consumesCounters": uses, **more}


def resource_slice(name, devices=(), node_name=None, pool="p", driver=DRIVER, count=1, generation=1, counters=None, **spec):
    shared = [
        {"name": key, "counters": {c: {"value": v} for c, v in values.items()}} for key, values in (counters or {}).items()
    ]
    if node_name is not None:
        spec["nodeName"] = node_name
    devices = [device(d) if isinstance(d, str) else d for d in devices]
    return make(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                "devices": devices,
                "sharedCounters": shared,
                **spec,
            },
        }
    )


def request(name="r", count=1, selector=None, class_name="any", mode="ExactCount", **more):
    return {"name": name, "exactly": _wanted(count, selector, class_name, mode, more)}


def sub(name, count=1, selector=None, class_name="any", mode="ExactCount", **more):
    return {"name": name, **_wanted(count, selector, class_name, mode, more)}


def first_available(name, *ways):
    return {"name": name, "firstAvailable": list(ways)}


def _wanted(count, selector, class_name, mode, more):
    selectors = [{"cel": {"expression": selector}}] if selector else []
    return {
        "deviceClassName": class_name,
        "allocationMode": mode,
        "count": count if mode == "ExactCount" else 0,
        "selectors": selectors,
        **more,
    }


def claim(name, *requests, constraints=(), config=(), status=None, owner=None, **metadata):
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    return make(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "ownerReferences": owners if owner else [],
                **metadata,
            },
            "spec": {"devices": {"requests": list(requests), "constraints": list(constraints), "config": list(config)}},
            "status": status or {},
        }
    )


def allocation(*devices, node_name=None, pool="p", driver=DRIVER, reserved_for=(), **more):
    """A status in which a claim holds devices."""
    results = [{"request": "r", "driver": driver, "pool": pool, "device": d} if isinstance(d, str) else d for d in devices]
    found = {"devices": {"results": results}, **more}
    if node_name:
        found["nodeSelector"] = {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}]
        }
    return {
        "allocation": found,
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in reserved_for],
    }


def pod(name="pod", claims=(), requests=None, **spec):
    return make(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": requests or {}}}],
                "resourceClaims": [{"name": f"c{i}", "resourceClaimName": found} for i, found in enumerate(claims)],
                **spec,
            },
        }
    )


class World:
    """A store, the plugin, and what came of the last attempt."""

    def __init__(self, *objects, nodes=("n1",), gates="", release=NEWEST, **outside):
        self.store = Store()
        for each in nodes:
            self.store.put_node(node(each) if isinstance(each, str) else each)
        for each in (device_class(), *objects):
            self.store.objects.put(each)
        settings = dict(part.split("=") for part in gates.split(",") if part)
        self.handle = EngineHandle(self.store.objects, gates=_Gates(settings, release), **outside)
        self.plugin = DynamicResources(None, self.handle)
        self.profile = Profile("test", {point: [(self.plugin, 2)] for point in points_of(DynamicResources)})
        self.book = self.store.objects.shared(DeviceClaims)
        self.state = CycleState()

    def put(self, *objects):
        for each in objects:
            self.store.objects.put(each)

    def view(self, raw):
        return self.store.view(raw)

    def filter(self, raw):
        """Return each node's refusal, "" where it passes; or the refusal of all; or the error."""
        nodes, self.state = self.store.snapshot(), CycleState()
        view = self.view(raw)
        before = self.profile.pre_filter(view, nodes, self.state)
        if before.status is not None:
            return before.status.message
        if self.plugin.name in self.state.skip_filter:
            return dict.fromkeys(nodes.names, "")
        refused = self.plugin.filter(view, nodes, self.state)
        if refused.errors:
            return next(iter(refused.errors.values()))
        return {name: refused.status(row).message for row, name in enumerate(nodes.names)}

    def give(self, *claims, node_name="n1", name="pod"):
        """Put claims, place a pod with them; return for each its devices as "request:device", or what is said."""
        self.put(*claims)
        raw = pod(name, [each.metadata.name for each in claims])
        found = self.filter(raw)
        if isinstance(found, str) or found[node_name]:
            return found if isinstance(found, str) else found[node_name]
        status = self.profile.reserve(self.view(raw), node_name, self.state)
        if not status.is_success:
            return status.message
        return [self.devices(each.metadata.uid) for each in claims]

    def devices(self, uid):
        booked = self.book.promised(uid)
        return [f"{result.request}:{result.device}" for result in booked.status.allocation.devices.results]

    def scores(self, raw):
        nodes = self.store.snapshot()
        assert not isinstance(self.filter(raw), str)
        return dict(zip(nodes.names, self.plugin.score(self.view(raw), nodes, self.state).tolist(), strict=True))


def post_filter(world, raw, refused_by=None):
    """Return what PostFilter says after this plugin refused every node in question."""
    found = world.filter(raw)
    nodes = world.store.snapshot()
    diagnosis = Diagnosis(nodes.n)
    if not isinstance(found, str):
        diagnosis.verdicts = Verdicts(nodes, refused_by)
        diagnosis.verdicts.add(world.plugin.name, world.plugin.filter(world.view(raw), nodes, world.state))
    return world.plugin.post_filter(world.view(raw), nodes, world.state, diagnosis, world.profile)


AWAY = allocation("d1", node_name="elsewhere")


class _Gates:
    def __init__(self, settings, release):
        self._settings = settings
        self._defaults = Gates.defaults(release)

    def is_enabled(self, gate):
        if gate in self._settings:
            return self._settings[gate] == "true"
        return self._defaults.is_enabled(gate)

    @property
    def behaviour(self):
        return self._defaults.behaviour


__all__ = [name for name in dir() if not name.startswith("_")]
