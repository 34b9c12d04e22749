"""DynamicResources as a plugin: who waits for what, what is scored, booked and given back, what wakes a pod."""

import numpy as np
import pytest
from dra_world import (
    AWAY,
    DRIVER,
    World,
    allocation,
    claim,
    device,
    device_class,
    first_available,
    make,
    node,
    pod,
    post_filter,
    request,
    resource_slice,
    sub,
)

from kubesched.kube.api.resource import ResourceClaim
from kubesched.scheduler.cluster.device_claims import DeviceId
from kubesched.scheduler.framework import Code, CycleState, Diagnosis

TWO = resource_slice("s", ["d1", "d2"], "n1")
NOT_HERE = "resourceclaim not available on the node"


def from_template(**status):
    """A pod whose claim is made from a template."""
    return make(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "namespace": "default", "uid": "uid-pod"},
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
            "status": {"resourceClaimStatuses": [status] if status else []},
        }
    )


GATED = [
    ("a claim that is not there", pod(claims=["nope"]), [], 'could not find ResourceClaim "default/nope"'),
    (
        "a claim that is going away",
        pod(claims=["a"]),
        [claim("a", deletionTimestamp="2026-01-01T00:00:00Z")],
        'resourceclaim "a" is being deleted',
    ),
    ("a claim not made from its template yet", from_template(), [], 'pod "default/pod": ResourceClaim not created yet'),
    (
        "a claim made for somebody else",
        from_template(name="gpu", resourceClaimName="a"),
        [claim("a", owner="other")],
        "ResourceClaim default/a was not created for Pod default/pod (Pod is not owner)",
    ),
    ("a claim made for the pod", from_template(name="gpu", resourceClaimName="a"), [claim("a", owner="pod")], ""),
    ("a claim that is not needed", from_template(name="gpu"), [], ""),
    (
        "a claim of no known kind",
        pod(resourceClaims=[{"name": "gpu"}]),
        [],
        'pod "default/pod", spec.resourceClaim "gpu": none of the supported fields are set',
    ),
    ("no claims", pod(), [], ""),
]


@pytest.mark.parametrize(("raw", "objects", "text"), [case[1:] for case in GATED], ids=[case[0] for case in GATED])
def test_a_pod_waits_for_its_claims(raw, objects, text):
    world = World(*objects)
    status = world.profile.pre_enqueue(world.view(raw))
    assert (status.message, status.code) == (text, Code.UNRESOLVABLE if text else Code.SUCCESS)
    if text:
        assert world.filter(raw) == text


REFUSED = [
    ("a missing class", claim("a", request(class_name="nope")), "request r: device class nope does not exist"),
    (
        "a missing class of a subrequest",
        claim("a", first_available("q", sub("s", class_name="nope"))),
        "request q/s: device class nope does not exist",
    ),
    ("a request of no known kind", claim("a", {"name": "r"}), "resource claim default/a, request r: unknown request type"),
]


@pytest.mark.parametrize(("wanted", "text"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_pod_is_refused_before_any_node_is_looked_at(wanted, text):
    assert World(TWO, wanted).filter(pod(claims=["a"])) == text


def test_a_claim_that_somebody_else_is_getting_devices_for():
    world = World(TWO)
    shared = claim("a", request())
    assert world.give(shared) == [["r:d1"]]
    assert world.filter(pod("second", ["a"])) == "resource claim default/a is in the process of being allocated"


def test_devices_in_flight_are_taken():
    world = World(TWO)
    for name, expected in (("a", [["r:d1"]]), ("b", [["r:d2"]]), ("c", "cannot allocate all claims")):
        assert world.give(claim(name, request()), name=name) == expected


def test_an_allocated_claim_ties_the_pod_to_its_nodes():
    world = World(TWO, claim("a", request(), status=allocation("d1", node_name="n2")), nodes=("n1", "n2"))
    assert world.filter(pod(claims=["a"])) == {"n1": NOT_HERE, "n2": ""}


def test_an_allocated_claim_without_selector_goes_anywhere():
    world = World(TWO, claim("a", request(), status=allocation("d1")), nodes=("n1", "n2"))
    assert set(world.filter(pod(claims=["a"])).values()) == {""}


def test_a_selector_that_cannot_be_read_ends_the_attempt():
    broken = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Gt", "values": ["1"]}]}]}
    world = World(TWO, claim("a", request(), status=allocation("d1", nodeSelector=broken)))
    status = world.plugin.pre_filter(world.view(pod(claims=["a"])), world.store.snapshot(), CycleState())
    assert status.code is Code.ERROR


def test_the_search_speaks_before_availability():
    world = World(claim("a", request(), status=allocation("d1", node_name="n2")), claim("b", request()), nodes=("n1", "n2"))
    assert world.filter(pod(claims=["a", "b"])) == dict.fromkeys(("n1", "n2"), "cannot allocate all claims")


# Scores

BIG = f'device.attributes["{DRIVER}"].big'


def test_earlier_ways_score_higher():
    world = World(
        resource_slice("s1", [device("big", {"big": True})], "n1", pool="n1"),
        resource_slice("s2", [device("small", {"big": False})], "n2", pool="n2"),
        claim("a", first_available("q", sub("big", selector=BIG), sub("any"))),
        nodes=("n1", "n2", "n3"),
    )
    raw = pod(claims=["a"])
    assert world.scores(raw) == {"n1": 8, "n2": 7, "n3": 0}
    feasible = np.array([True, True, False])
    normal = world.plugin.normalize(np.array([8, 7, 0]), feasible, world.view(raw), world.store.snapshot(), world.state)
    assert normal.tolist() == [100, 87, 0]


def test_scores_add_up_over_claims_and_allocated_ones_count_too():
    result = {"request": "q/two", "driver": DRIVER, "pool": "p", "device": "x"}
    ways = first_available("q", sub("one"), sub("two"))
    world = World(TWO, claim("a", ways, status=allocation(result)), claim("b", ways, ways | {"name": "z"}))
    assert world.scores(pod(claims=["a", "b"])) == {"n1": 7 + 8 + 8}


def test_a_pod_whose_claims_are_all_allocated_is_not_scored():
    result = {"request": "q/one", "driver": DRIVER, "pool": "p", "device": "x"}
    world = World(TWO, claim("a", first_available("q", sub("one")), status=allocation(result)))
    assert world.scores(pod(claims=["a"])) == {"n1": 0}


def test_no_claims_no_filter_and_no_score():
    world = World(TWO)
    assert world.filter(pod()) == {"n1": ""}
    assert world.scores(pod()) == {"n1": 0}


# PostFilter


POST = [
    ("no claims", pod(), [], "no new claims to deallocate"),
    ("claims refused before any node", pod(claims=["nope"]), [], "no new claims to deallocate"),
    ("devices that nobody can give back", pod(claims=["a"]), [claim("a", request(count=9))], "still not schedulable"),
    (
        "an allocation elsewhere that nobody uses",
        pod(claims=["a"]),
        [claim("a", request(), status=AWAY)],
        "deallocation of ResourceClaim completed",
    ),
    (
        "an allocation elsewhere that only the pod uses",
        pod(claims=["a"]),
        [claim("a", request(), status=allocation("d1", node_name="elsewhere", reserved_for=["pod"]))],
        "deallocation of ResourceClaim completed",
    ),
    (
        "an allocation elsewhere that others use",
        pod(claims=["a"]),
        [claim("a", request(), status=allocation("d1", node_name="elsewhere", reserved_for=["pod", "other"]))],
        "still not schedulable",
    ),
]


@pytest.mark.parametrize(("raw", "objects", "text"), [case[1:] for case in POST], ids=[case[0] for case in POST])
def test_post_filter(raw, objects, text):
    answer = post_filter(World(TWO, *objects, release=(1, 36)), raw)
    assert (answer.status.code, answer.status.message) == (Code.UNSCHEDULABLE, text)
    assert (answer.follow_up is not None) == text.startswith("deallocation")
    since_1_37 = post_filter(World(TWO, *objects), raw).status
    assert (since_1_37.code, since_1_37.message) == (Code.UNSCHEDULABLE, text if text.startswith("dealloc") else "")


def test_post_filter_without_pre_filter_fails():
    world = World()
    answer = world.plugin.post_filter(world.view(pod()), world.store.snapshot(), CycleState(), Diagnosis(1), world.profile)
    assert (answer.status.code, answer.status.message) == (Code.ERROR, "not found")


def test_only_claims_that_this_plugin_refused_a_node_for_are_given_back():
    world = World(TWO, claim("a", request(), status=AWAY), release=(1, 36))
    answer = post_filter(world, pod(claims=["a"]), refused_by=np.array([False]))
    assert answer.status.message == "still not schedulable"


# Booked


def test_reserve_promises_the_allocation_of_the_node():
    configured = {"opaque": {"driver": DRIVER, "parameters": {"x": 1}}}
    small = f'device.attributes["{DRIVER}"].size == "small"'
    world = World(
        resource_slice(
            "s",
            [device(name, {"size": "small", "numa": numa}) for name, numa in (("s0", 0), ("s1", 1), ("s2", 0))],
            "n1",
            pool="n1",
        ),
        device_class("big", "false"),
        device_class("small", small, config=[configured]),
    )
    wanted = claim(
        "c",
        first_available("gpu", sub("big", class_name="big"), sub("small", 2, class_name="small")),
        constraints=[{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}],
        config=[{"requests": ["gpu/big"], **configured}],
    )
    assert world.give(wanted) == [["gpu/small:s0", "gpu/small:s2"]]
    promised = world.book.promised("uid-c")
    given = promised.status.allocation
    assert "resource.kubernetes.io/delete-protection" in promised.metadata.finalizers
    assert [(config.source, config.requests) for config in given.devices.config] == [("FromClass", ("gpu/small",))]
    (term,) = given.node_selector.node_selector_terms
    assert [(field.key, field.values) for field in term.match_fields] == [("metadata.name", ("n1",))]


def test_configuration_of_classes_and_claims():
    one, two = ({"opaque": {"driver": DRIVER, "parameters": {"n": n}}} for n in (1, 2))
    world = World(TWO, device_class("any", config=[one]))
    wanted = claim("c", request("x"), request("y"), config=[two, {"requests": ["x", "y"], **two}])
    world.give(wanted)
    found = [(config.source, config.requests) for config in world.book.promised("uid-c").status.allocation.devices.config]
    assert found == [("FromClass", ("x", "y")), ("FromClaim", ()), ("FromClaim", ("x", "y")), ("FromClaim", ("x", "y"))]


def selector(*requirements, **terms):
    wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in requirements]
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": wanted}, *terms.get("more", ())]}}


WHERE = [
    ("all nodes: anywhere", [resource_slice("s", ["d1", "d2"], allNodes=True)], None),
    (
        "selectors: their union",
        [
            resource_slice("s1", ["d1"], pool="p1", **selector(("a", "1"), ("b", "1"))),
            resource_slice("s2", ["d2"], pool="p2", **selector(("a", "1"), ("c", "1"))),
        ],
        ["a", "b", "c"],
    ),
    (
        "one local device: its node",
        [resource_slice("s1", ["d1"], pool="p1", **selector(("a", "1"))), resource_slice("s2", ["d2"], "n1", pool="p2")],
        ["metadata.name"],
    ),
    (
        "a device that binds to the node: its node",
        [resource_slice("s1", [device("d1", bindsToNode=True), "d2"], allNodes=True)],
        ["metadata.name"],
    ),
]


@pytest.mark.parametrize(("slices", "keys"), [case[1:] for case in WHERE], ids=[case[0] for case in WHERE])
def test_where_an_allocation_can_be_used(slices, keys):
    world = World(*slices, nodes=(node("n1", {"a": "1", "b": "1", "c": "1"}),))
    assert len(world.give(claim("x", request(count=2)))) == 1
    found = world.book.promised("uid-x").status.allocation.node_selector
    if keys is None:
        assert found is None
    else:
        (term,) = found.node_selector_terms
        assert [wanted.key for wanted in (*term.match_expressions, *term.match_fields)] == keys


def test_a_slice_with_two_terms_cannot_be_written_down():
    two = selector(("a", "1"), more=[{"matchExpressions": [{"key": "b", "operator": "Exists"}]}])
    world = World(resource_slice("s", ["d"], **two), nodes=(node("n1", {"a": "1"}),))
    assert world.give(claim("x", request())) == (
        "create NodeSelector for claim x: unsupported ResourceSlice.NodeSelector with 2 terms"
    )


def test_unreserve_gives_everything_back():
    world = World(TWO)
    wanted = claim("a", request(count=2))
    world.give(wanted)
    assert set(world.book.exclusive) == {DeviceId(DRIVER, "p", "d1"), DeviceId(DRIVER, "p", "d2")}
    world.profile.unreserve(world.view(pod(claims=["a"])), "n1", world.state)
    assert not world.book.exclusive and not list(world.book.in_flight())
    assert world.give(claim("b", request(count=2)), name="b") == [["r:d1", "r:d2"]]


def test_reserve_without_a_search_fails():
    world = World(TWO, claim("a", request()))
    world.plugin.pre_filter(world.view(pod(claims=["a"])), world.store.snapshot(), world.state)
    status = world.plugin.reserve(world.view(pod(claims=["a"])), "n1", world.state)
    assert status.message == "claim allocation not found for node"


# What is remembered


def test_a_change_of_slices_classes_or_labels_is_noticed():
    world = World(TWO, claim("a", request()), nodes=("n1", "n2"))
    raw = pod(claims=["a"])
    assert world.filter(raw)["n1"] == ""
    world.put(resource_slice("s", [], "n1"))
    assert world.filter(raw)["n1"] == "cannot allocate all claims"
    zoned = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
    world.put(resource_slice("wide", ["w"], pool="wide", nodeSelector=zoned))
    assert world.filter(raw)["n2"] == "cannot allocate all claims"
    world.store.put_node(node("n2", {"zone": "z"}))
    assert world.filter(raw)["n2"] == ""
    world.put(device_class("any", "false"))
    assert world.filter(raw)["n2"] == "cannot allocate all claims"
    world.store.put_node(node("n3", {"zone": "z"}))
    world.put(device_class("any"))
    assert world.filter(raw) == {"n1": "cannot allocate all claims", "n2": "", "n3": ""}


def test_a_device_that_comes_back_is_noticed():
    world = World(TWO, claim("x", status=allocation("d1", "d2")), claim("a", request()))
    raw = pod(claims=["a"])
    assert world.filter(raw)["n1"] == "cannot allocate all claims"
    world.put(claim("x", resourceVersion="2"))
    assert world.filter(raw)["n1"] == ""
    world.put(claim("x", status=allocation("d1", "d2"), resourceVersion="3"))
    assert world.filter(raw)["n1"] == "cannot allocate all claims"
    world.store.objects.drop(ResourceClaim, "x", "default")
    assert world.filter(raw)["n1"] == ""


def test_an_error_on_one_node_names_the_row():
    world = World(TWO, resource_slice("bad", [device("d", {"x": 1})], "n2", pool="n2"), nodes=("n1", "n2"))
    world.put(claim("a", request(selector=f'device.attributes["{DRIVER}"].x == 1 || device.driver == "zz"')))
    view, nodes, state = world.view(pod(claims=["a"])), world.store.snapshot(), CycleState()
    world.plugin.pre_filter(view, nodes, state)
    found = world.plugin.filter(view, nodes, state)
    assert list(found.errors) == [0] and found.status(1).is_success


def test_a_search_that_takes_too_long_ends_the_attempt():
    class Racing:
        time = 0.0

        def now(self):
            return self.time

        def monotonic(self):
            self.time += 6.0
            return self.time

    many = [device(f"d{i:02}", {"i": i}) for i in range(28)]
    world = World(resource_slice("s", many, "n1"), clock=Racing())
    impossible = claim("a", request(count=14), request("q", count=15))
    assert world.give(impossible) == "node n1: timed out trying to allocate devices"


def test_expensive_selectors_are_spread_over_attempts():
    unlike = [device(f"d{i}", {"i": i}) for i in range(4)]
    world = World(resource_slice("s", unlike, "n1"))
    picky = f"lists.range(9999).all(x, x >= 0) && device.attributes['{DRIVER}'].i == 3"
    wanted = claim("a", request(selector=picky))
    said = [world.give(wanted) for _ in range(2)]
    assert said[0] == "node n1: timed out trying to allocate devices" and said[-1] == [["r:d3"]]


# Wake-ups


HINTS = [
    ("devices were given back by anybody", claim("x", status=allocation("d1")), claim("x"), True),
    ("another claim changed", claim("x"), claim("x", status=allocation("d1")), False),
    ("the pod's claim came", None, claim("a", request()), True),
    ("the pod's claim got its devices", claim("a", request()), claim("a", request(), status=allocation("d1")), True),
    ("the pod's claim got a finalizer", claim("a", request()), claim("a", request(), finalizers=["f"]), False),
]


@pytest.mark.parametrize(("old", "new", "helps"), [case[1:] for case in HINTS], ids=[case[0] for case in HINTS])
def test_claim_changes(old, new, helps):
    world = World(claim("a", request()), new)
    assert world.plugin.claim_may_help(world.view(pod(claims=["a"])), old, new) is helps


def test_claim_changes_do_not_help_while_a_claim_is_missing():
    world, held = World(), claim("x", status=allocation("d"))
    assert not world.plugin.claim_may_help(world.view(pod(claims=["a"])), held, claim("x"))


def test_a_pod_is_woken_by_its_own_claims():
    world = World(claim("a", owner="pod"))
    ready, waiting = from_template(name="gpu", resourceClaimName="a"), from_template()
    assert world.plugin.pod_got_claims(world.view(waiting), waiting, ready)
    assert not world.plugin.pod_got_claims(world.view(waiting), waiting, waiting)
    assert not world.plugin.pod_got_claims(world.view(pod("other")), waiting, ready)
