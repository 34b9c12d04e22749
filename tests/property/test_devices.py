"""What must never happen to devices, whatever pods come and go.

A history of pods that are placed, undone, written, finished and deleted runs against the plugin; after every step the
books must agree with a plain count over all claims, no device may be in two hands, and no counter below zero. What is
remembered must answer as a plugin that has just been started.
"""

from itertools import combinations

import msgspec
from dra_world import DRIVER, World, claim, device, node, pod, request, resource_slice
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.kube.api.resource import ResourceClaim, ResourceClaimStatus
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster.device_claims import DeviceId
from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources

NODES = ("n1", "n2", "n3")
SHARED = {"allowMultipleAllocations": True}
CORES = {"cores": {"value": "4", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}}}}


def slices():
    """Devices of every kind: plain ones, halves of a whole, shareable ones, and a pool that two nodes reach."""
    reach = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}]}
        ]
    }
    for name in NODES:
        yield resource_slice(f"{name}-plain", [device(f"p{i}", {"kind": "plain"}) for i in range(2)], name, pool=name)
        parts = [device("whole", {"kind": "part"}, consumes={"set": {"mem": "8"}})]
        parts += [device(f"half{i}", {"kind": "part"}, consumes={"set": {"mem": "4"}}) for i in range(3)]
        yield resource_slice(f"{name}-parts", parts, name, pool=f"{name}-parts", count=2)
        yield resource_slice(f"{name}-counters", node_name=name, pool=f"{name}-parts", count=2, counters={"set": {"mem": "8"}})
        yield resource_slice(
            f"{name}-shared", [device("share", {"kind": "shared"}, CORES, **SHARED)], name, pool=f"{name}-shared"
        )
    yield resource_slice("wide", [device("w1", {"kind": "plain"})], pool="wide", nodeSelector=reach)


KINDS = st.sampled_from(["plain", "part", "shared"])
WANTED = st.tuples(KINDS, st.integers(1, 2), st.integers(1, 3))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.lists(WANTED, min_size=1, max_size=2), st.integers(0, 2)),
        st.tuples(st.sampled_from(["undo", "write", "deallocate", "delete"]), st.integers(0, 30), st.none()),
        st.tuples(st.just("publish"), st.integers(0, 2), st.integers(0, 3)),
        st.tuples(st.just("relabel"), st.integers(0, 2), st.booleans()),
    ),
    max_size=25,
)


def wants(number, wanted):
    kind, count, cores = wanted
    more = {"capacity": {"requests": {"cores": str(cores)}}} if kind == "shared" else {}
    selector = f'device.attributes["{DRIVER}"].kind == "{kind}"'
    return request(f"r{number}", 1 if kind == "shared" else count, selector, **more)


class History:
    """A world and the pods that have a place in it."""

    def __init__(self):
        self.world = World(*slices(), nodes=[_labelled(name) for name in NODES])
        self.placed = []
        self.made = 0

    def place(self, wanted, prefers):
        self.made += 1
        name = f"c{self.made}"
        self.world.put(claim(name, *(wants(i, each) for i, each in enumerate(wanted))))
        raw = pod(f"pod{self.made}", [name])
        found = self.world.filter(raw)
        assert found == fresh(self.world, raw)
        fitting = [name_ for name_, refused in found.items() if not refused]
        if fitting:
            chosen = fitting[prefers % len(fitting)]
            assert self.world.profile.reserve(self.world.view(raw), chosen, self.world.state).is_success
            self.placed.append((raw, chosen, self.world.state, name))

    def publish(self, which, n_devices):
        """A driver publishes other plain devices for a node; with none, the pool lacks a slice."""
        name = NODES[which]
        self.world.put(
            resource_slice(
                f"{name}-plain",
                [device(f"p{i}", {"kind": "plain"}) for i in range(n_devices)],
                name,
                pool=name,
                count=1 if n_devices else 2,
                generation=self.made + 1,
            )
        )

    def relabel(self, which, comes):
        """A node gains or loses the label by which it reaches the wide pool."""
        labels = {"kubernetes.io/hostname": NODES[which]} if comes else {}
        self.world.store.put_node(node(NODES[which], labels))

    def undo(self, which):
        raw, chosen, state, _ = self.placed.pop(which % len(self.placed))
        self.world.profile.unreserve(self.world.view(raw), chosen, state)

    def write(self, which):
        """The API accepts a booked allocation and tells about it."""
        name = self.placed[which % len(self.placed)][3]
        booked = self.world.book.promised(f"uid-{name}")
        if booked is not None:
            self.world.put(_next(booked))
            self.world.book.release(f"uid-{name}")

    def deallocate(self, which):
        stored = self._stored(which)
        if stored is not None and stored.status.allocation is not None:
            self.world.put(_next(msgspec.structs.replace(stored, status=ResourceClaimStatus())))

    def delete(self, which):
        stored = self._stored(which)
        if stored is not None and self.world.book.promised(stored.uid) is None:
            self.world.store.objects.drop(ResourceClaim, stored.name, stored.namespace)

    def _stored(self, which):
        return self.world.store.objects.get(ResourceClaim, self.placed[which % len(self.placed)][3], "default")

    def held(self):
        """Return what all claims hold together, written or booked, by a plain count."""
        book = self.world.book
        book.refresh()
        claims = {each.uid: each for each in self.world.store.objects.all(ResourceClaim)}
        claims.update((each.uid, each) for each in book.in_flight())
        return [
            result
            for each in claims.values()
            if each.status.allocation is not None
            for result in each.status.allocation.devices.results
        ]


def _labelled(name):
    return node(name, {"kubernetes.io/hostname": name})


def _next(each):
    version = str(int(each.metadata.resource_version) + 1)
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, resource_version=version))


def fresh(world, raw):
    """Return what a plugin says that remembers nothing."""
    plugin, state = DynamicResources(None, world.handle), CycleState()
    nodes, view = world.store.snapshot(), world.view(raw)
    answer = plugin.pre_filter(view, nodes, state)
    assert answer is None
    refused = plugin.filter(view, nodes, state)
    return {name: refused.status(row).message for row, name in enumerate(nodes.names)}


def check(history):
    results = history.held()
    exclusive = [DeviceId(r.driver, r.pool, r.device) for r in results if r.share_id is None]
    assert len(exclusive) == len(set(exclusive)), "a device in two hands"
    shared = [r for r in results if r.share_id is not None]
    used = {}
    for result in shared:
        device_id = DeviceId(result.driver, result.pool, result.device)
        used[device_id] = used.get(device_id, 0) + quantity.parse(result.consumed_capacity["cores"])
    assert all(amount <= 4 * quantity.NANO for amount in used.values()), "more shared than there is"
    for name in NODES:
        taken = sum(8 if d.device == "whole" else 4 for d in exclusive if d.pool == f"{name}-parts")
        assert taken <= 8, "a counter below zero"
    book = history.world.book
    assert book.exclusive == dict.fromkeys(exclusive, 1)
    assert {device_id: each["cores"] for device_id, each in book.consumed.items()} == used
    assert len({r.share_id for r in shared}) == len(shared)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_no_device_is_given_twice_and_the_books_are_right(steps):
    history = History()
    for what, first, second in steps:
        if what in ("place", "publish", "relabel"):
            getattr(history, what)(first, second)
        elif history.placed:
            getattr(history, what)(first)
        check(history)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(WANTED, min_size=1, max_size=2), min_size=1, max_size=12))
def test_everything_is_given_back_after_unreserve(pods):
    history = History()
    for wanted in pods:
        history.place(wanted, 0)
    while history.placed:
        history.undo(0)
    book = history.world.book
    assert not book.exclusive and not book.shares and not book.consumed and not list(book.in_flight())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(["a", "b", "any"]), st.integers(1, 2)), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_search_finds_a_solution_exactly_when_there_is_one(devices, wanted, same):
    """The search against trying every way to hand out the devices."""
    published = [device(f"d{i}", {"kind": kind, "numa": numa}) for i, (kind, numa) in enumerate(devices)]
    world = World(resource_slice("s", published, "n1"))
    selectors = {kind: f'device.attributes["{DRIVER}"].kind == "{kind}"' for kind in "ab"}
    constraints = [{"requests": [], "matchAttribute": f"{DRIVER}/numa"}] if same else []
    requests = [request(f"r{i}", count, selectors.get(kind)) for i, (kind, count) in enumerate(wanted)]
    found = world.give(claim("c", *requests, constraints=constraints))
    solvable = any(True for _ in solutions(devices, wanted, same))
    assert isinstance(found, list) == solvable
    if solvable:
        given = [int(name.split(":d")[1]) for name in found[0]]
        assert given == min(solutions(devices, wanted, same))


def solutions(devices, wanted, same, taken=()):
    """Yield the devices of every solution, request by request, each request's in rising order."""
    if not wanted:
        yield []
        return
    (kind, count), *rest = wanted
    free = [i for i, (have, _) in enumerate(devices) if i not in taken and kind in (have, "any")]
    for chosen in combinations(free, count):
        every = (*taken, *chosen)
        if same and len({devices[i][1] for i in every}) > 1:
            continue
        for others in solutions(devices, rest, same, every):
            yield [*chosen, *others]
