"""Extended resources served by devices: on which nodes, by which requests, and what is left behind."""

import pytest
from dra_world import World, claim, device_class, make, node, pod, post_filter, request, resource_slice

GPU = "example.com/gpu"
NIC = "example.com/nic"
CLASSES = [device_class("gpu", extendedResourceName=GPU), device_class("nic", extendedResourceName=NIC)]
DEVICES = resource_slice("s", ["d1", "d2", "d3"], "n1")


def containers(*regular, init=()):
    """A pod of containers given by name and requests; an init container with True behind is a sidecar."""

    def made(name, requests, sidecar=False):
        return {"name": name, "resources": {"requests": requests}, **({"restartPolicy": "Always"} if sidecar else {})}

    return make(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "namespace": "default", "uid": "uid-pod"},
            "spec": {"containers": [made(*each) for each in regular], "initContainers": [made(*each) for each in init]},
        }
    )


SHAPES = [
    (
        "one container",
        containers(("c", {GPU: "2"})),
        {"container-0-request-0": ("gpu", 2)},
        [("c", GPU, "container-0-request-0")],
    ),
    (
        "the number of the request counts all resources",
        containers(("c", {"cpu": "1", GPU: "1", "memory": "1Gi"})),
        {"container-0-request-1": ("gpu", 1)},
        [("c", GPU, "container-0-request-1")],
    ),
    (
        "two containers and two resources",
        containers(("a", {GPU: "1", NIC: "1"}), ("b", {GPU: "3"})),
        {"container-0-request-0": ("gpu", 1), "container-0-request-1": ("nic", 1), "container-1-request-0": ("gpu", 3)},
        [("a", GPU, "container-0-request-0"), ("b", GPU, "container-1-request-0"), ("a", NIC, "container-0-request-1")],
    ),
    (
        "of what init containers need alone only the most is asked for",
        containers(("c", {NIC: "1"}), init=[("a", {GPU: "1"}), ("b", {GPU: "2"})]),
        {"container-1-request-0": ("gpu", 2), "container-2-request-0": ("nic", 1)},
        [("a", GPU, "container-1-request-0"), ("b", GPU, "container-1-request-0"), ("c", NIC, "container-2-request-0")],
    ),
    (
        "an init container uses what later containers have",
        containers(("c", {GPU: "2"}), init=[("i", {GPU: "1"})]),
        {"container-1-request-0": ("gpu", 2)},
        [("c", GPU, "container-1-request-0"), ("i", GPU, "container-1-request-0")],
    ),
    (
        "an init container that needs more than later ones",
        containers(("c", {GPU: "1"}), init=[("i", {GPU: "3"})]),
        {"container-0-request-0": ("gpu", 2), "container-1-request-0": ("gpu", 1)},
        [("c", GPU, "container-1-request-0"), ("i", GPU, "container-1-request-0"), ("i", GPU, "container-0-request-0")],
    ),
    (
        "a sidecar that started before cannot lend",
        containers(("c", {}), init=[("s", {GPU: "1"}, True), ("i", {GPU: "1"})]),
        {"container-0-request-0": ("gpu", 1), "container-1-request-0": ("gpu", 1)},
        [("s", GPU, "container-0-request-0"), ("i", GPU, "container-1-request-0")],
    ),
]


@pytest.mark.parametrize(("raw", "requests", "mappings"), [case[1:] for case in SHAPES], ids=[c[0] for c in SHAPES])
def test_requests_and_mappings(raw, requests, mappings):
    world = World(*CLASSES, resource_slice("s", [f"d{i}" for i in range(9)], "n1"))
    assert world.filter(raw) == {"n1": ""}
    (variant,) = world.state.read("DynamicResources").variants.values()
    found = {each.name: (each.exactly.device_class_name, each.exactly.count) for each in variant.claim.spec.devices.requests}
    assert found == requests and list(found) == sorted(found)
    assert [(m.container_name, m.resource_name, m.request_name) for m in variant.mappings] == mappings


def test_devices_serve_where_the_node_does_not():
    world = World(*CLASSES, DEVICES, nodes=("n1", "n2", node("plugin", **{GPU: "4"}), node("gone", **{GPU: "0"})))
    found = world.filter(pod(requests={GPU: "2"}))
    assert found == {"n1": "", "n2": "cannot allocate all claims", "plugin": "", "gone": "cannot allocate all claims"}


def test_booked_on_the_node_that_was_chosen():
    world = World(*CLASSES, DEVICES, nodes=("n1", node("plugin", **{GPU: "4"})))
    raw = pod(requests={GPU: "2"})
    world.filter(raw)
    assert world.profile.reserve(world.view(raw), "plugin", world.state).is_success
    assert not list(world.book.in_flight())
    assert world.profile.reserve(world.view(raw), "n1", world.state).is_success
    (booked,) = world.book.in_flight()
    assert booked.metadata.name == "<extended-resources>" and booked.metadata.uid
    assert [result.device for result in booked.status.allocation.devices.results] == ["d1", "d2"]
    world.profile.unreserve(world.view(raw), "n1", world.state)
    assert not world.book.exclusive


def test_nothing_is_booked_where_every_node_serves_the_resource_itself():
    world = World(*CLASSES, nodes=(node("plugin", **{GPU: "4"}),))
    raw = pod(requests={GPU: "2"})
    assert world.filter(raw) == {"plugin": ""}
    assert world.profile.reserve(world.view(raw), "plugin", world.state).is_success
    assert not list(world.book.in_flight())


def test_partly_by_the_node_and_partly_by_devices():
    world = World(*CLASSES, DEVICES, nodes=(node("n1", **{NIC: "1"}),))
    assert world.filter(pod(requests={GPU: "1", NIC: "1"})) == {"n1": ""}
    (variant,) = world.state.read("DynamicResources").variants.values()
    assert [mapping.resource_name for mapping in variant.mappings] == [GPU]


def test_a_resource_that_nobody_serves():
    world = World(*CLASSES, DEVICES, nodes=("n1", node("n2", **{"other.com/x": "1"})))
    assert world.filter(pod(requests={GPU: "1", "other.com/x": "1"})) == {
        "n1": "cannot fit resource",
        "n2": "cannot allocate all claims",
    }


def test_the_implicit_name_of_a_class():
    world = World(DEVICES)
    assert world.filter(pod(requests={"deviceclass.resource.kubernetes.io/any": "3"})) == {"n1": ""}
    assert world.filter(pod(requests={"deviceclass.resource.kubernetes.io/any": "4"})) == {"n1": "cannot allocate all claims"}


def test_a_resource_without_a_class_is_none_of_our_business():
    world = World(DEVICES)
    assert world.filter(pod(requests={GPU: "1"})) == {"n1": ""}
    assert world.state.read("DynamicResources").is_empty


def test_together_with_claims_the_special_one_comes_last():
    world = World(*CLASSES, DEVICES, claim("a", request()))
    raw = pod(claims=["a"], requests={GPU: "2"})
    assert world.filter(raw) == {"n1": ""}
    assert world.profile.reserve(world.view(raw), "n1", world.state).is_success
    assert [[result.device for result in booked.status.allocation.devices.results] for booked in world.book.in_flight()] == [
        ["d1"],
        ["d2", "d3"],
    ]


def left_behind(*requests):
    return claim(
        "pod-extended-resources-x",
        *requests,
        owner="pod",
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
    )


def test_a_claim_left_behind_keeps_the_pod_off_every_node_until_it_is_deleted():
    world = World(*CLASSES, DEVICES, left_behind(request()))
    raw = pod(requests={GPU: "1"})
    assert world.filter(raw) == {"n1": "cannot schedule extended resource claim"}
    answer = post_filter(world, raw)
    assert answer.status.message == "deletion of ResourceClaim completed" and answer.follow_up is not None


def test_the_gate():
    world = World(*CLASSES, DEVICES, gates="DRAExtendedResource=false")
    assert world.filter(pod(requests={GPU: "9"})) == {"n1": ""}
