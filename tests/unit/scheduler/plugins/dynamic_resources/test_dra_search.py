"""Which devices a pod gets, as far as the golden families of DRA do not decide it: the order of pools, error texts, ..."""

import pytest
from dra_world import (
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
    request,
    resource_slice,
    sub,
)

from kubesched.errors import MalformedObject

CANNOT = "cannot allocate all claims"
INVALID = "invalid resource pools were encountered"
NUMA = f"{DRIVER}/numa"
TWO = resource_slice("s", ["d1", "d2"], "n1")
MEMORY = f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("1Gi"))'


def local(*devices, **more):
    return resource_slice("s", devices, "n1", **more)


def same(*requests):
    return [{"requests": list(requests), "matchAttribute": NUMA}]


def distinct(*requests):
    return [{"requests": list(requests), "distinctAttribute": NUMA}]


NUMAS = [device("s0", {"numa": 0}), device("s1", {"numa": 1}), device("s2", {"numa": 0})]
SHAREABLE = {"allowMultipleAllocations": True}
HALVES = [
    device("whole", consumes={"set": {"mem": "8"}}),
    device("half1", consumes={"set": {"mem": "4"}}),
    device("half2", consumes={"set": {"mem": "4"}}),
]
COUNTERS = resource_slice("counters", counters={"set": {"mem": "8"}}, node_name="n1", count=2)
TAINTED = device("bad", taints=[{"key": "k", "effect": "NoSchedule"}])

CASES = [
    ("a claim without requests gets nothing and fits", [], [claim("a")], [[]]),
    (
        "pools are tried by driver and name",
        [resource_slice(f"s{i}", ["d"], "n1", pool=f"pool-{i}") for i in (3, 2, 1)]
        + [resource_slice("first", ["e"], "n1", pool="z", driver="a.example.com")],
        [claim("a", request(count=2))],
        [["r:e", "r:d"]],
    ),
    (
        "pools with binding conditions come last",
        [
            resource_slice("s1", [device("c1", bindingConditions=["ready"])], "n1", pool="pool-1"),
            resource_slice("s2", ["c2"], "n1", pool="pool-2"),
            resource_slice("s3", ["c3"], "n1", pool="pool-3"),
        ],
        [claim("a", request(count=2))],
        [["r:c2", "r:c3"]],
    ),
    (
        "slices of a pool are tried by name",
        [resource_slice("s2", ["d2"], "n1", count=2), resource_slice("s1", ["d1"], "n1", count=2)],
        [claim("a", request(count=2))],
        [["r:d1", "r:d2"]],
    ),
    (
        "all devices with an incomplete pool",
        [resource_slice("s", ["d"], "n1", count=2)],
        [claim("a", request(mode="All"))],
        "claim default/a, request r: asks for all devices, but resource pool gpu.example.com/p is currently being updated",
    ),
    (
        "all devices with an invalid pool",
        [resource_slice("s1", ["d"], "n1", count=2), resource_slice("s2", ["d"], "n1", count=2)],
        [claim("a", request(mode="All"))],
        "claim default/a, request r: asks for all devices, but resource pool gpu.example.com/p is currently invalid",
    ),
    (
        "a duplicate device makes a pool invalid",
        [resource_slice("s1", ["d"], "n1", count=2), resource_slice("s2", ["d"], "n1", count=2)],
        [claim("a", request(count=2))],
        INVALID,
    ),
    (
        "too many devices are refused",
        [TWO],
        [claim("a", request(count=500))],
        "claim default/a: number of requested devices 500 exceeds the claim limit of 32",
    ),
    (
        "a way with fewer devices keeps within the limit",
        [local(*(f"d{i:02}" for i in range(64)))],
        [claim("a", *(first_available(f"q{i}", sub("many", count=32), sub("few", count=16)) for i in range(2)))],
        [[f"q{i // 16}/few:d{i:02}" for i in range(32)]],
    ),
    (
        "matchAttribute for a chosen subrequest",
        [local(*NUMAS)],
        [claim("a", first_available("q", sub("two", count=2)), constraints=same("q/two"))],
        [["q/two:s0", "q/two:s2"]],
    ),
    (
        "an empty constraint is an error",
        [TWO],
        [claim("a", request(), constraints=[{"requests": ["r"]}])],
        "claim default/a, constraint #0: empty constraint (unsupported constraint type?)",
    ),
    (
        "an unknown counter makes the pool invalid",
        [local(device("d", consumes={"nope": {"mem": "1"}}), count=2), COUNTERS],
        [claim("a", request())],
        INVALID,
    ),
    (
        "an unknown counter set makes the pool invalid, also if nothing is taken of it",
        [local(device("d", consumes={"nope": {}}), count=2), COUNTERS],
        [claim("a", request())],
        INVALID,
    ),
    (
        "matchAttribute together with counters",
        [
            local(
                *(
                    device(name, {"numa": numa}, consumes={"set": {"mem": "4"}})
                    for name, numa in (("red", 0), ("blue1", 1), ("blue2", 1))
                ),
                count=2,
            ),
            COUNTERS,
        ],
        [claim("a", request(count=2), constraints=same())],
        [["r:blue1", "r:blue2"]],
    ),
    (
        "an unknown count mode",
        [TWO],
        [claim("a", request(mode="Some"))],
        "claim default/a, request r: unsupported count mode Some",
    ),
    (
        "a selector without CEL",
        [TWO],
        [claim("a", request(selectors=[{}]))],
        "claim default/a, request r, selector #0: CEL expression empty (unsupported selector type?)",
    ),
]


@pytest.mark.parametrize(("objects", "claims", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_first_fit(objects, claims, expected):
    assert World(*objects).give(*claims) == expected


def test_before_1_37_distinct_attribute_remembers_the_last_value_of_a_request_only():
    devices = local(device("a", {"numa": 1}), device("b", {"numa": 2}), device("c", {"numa": 1}))
    world = World(devices, release=(1, 36))
    assert world.give(claim("a", request(count=3), constraints=distinct())) == [["r:a", "r:b", "r:c"]]


GENERATIONS = [
    (
        "an old generation on the same node is dropped",
        [
            resource_slice("old", ["d1"], "n1", generation=1, count=2),
            resource_slice("new", ["d2"], "n1", generation=2, count=2),
        ],
        CANNOT,
    ),
    (
        "a complete old generation stays in use while the new one is for other nodes",
        [resource_slice("old", ["d1"], "n1", generation=1), resource_slice("new", ["d2"], "n2", generation=2)],
        [["r:d1"]],
    ),
    (
        "an incomplete old generation is ignored once there is a newer one",
        [resource_slice("old", ["d1"], "n1", generation=1, count=2), resource_slice("new", ["d2"], "n2", generation=2)],
        CANNOT,
    ),
    (
        "a pool over two nodes is complete for both",
        [resource_slice("here", ["d1"], "n1", count=2), resource_slice("there", ["d2"], "n2", count=2)],
        [["r:d1"]],
    ),
]


@pytest.mark.parametrize(("slices", "expected"), [case[1:] for case in GENERATIONS], ids=[c[0] for c in GENERATIONS])
def test_generations(slices, expected):
    assert World(*slices, nodes=("n1", "n2")).give(claim("a", request())) == expected


def test_all_devices_of_a_pool_over_two_nodes_are_those_of_the_node():
    world = World(
        resource_slice("here", ["d1"], "n1", count=2), resource_slice("there", ["d2"], "n2", count=2), nodes=("n1", "n2")
    )
    assert world.give(claim("a", request(mode="All")), node_name="n2") == [["r:d2"]]


def test_counters_are_shared_with_devices_that_other_nodes_reach():
    world = World(
        resource_slice("one", [device("d1", consumes={"set": {"mem": "8"}})], "n1", count=3),
        resource_slice("two", [device("d2", consumes={"set": {"mem": "8"}})], "n2", count=3),
        resource_slice("counters", counters={"set": {"mem": "8"}}, count=3, allNodes=True),
        nodes=("n1", "n2"),
    )
    assert world.give(claim("a", request())) == [["r:d1"]]
    assert world.give(claim("b", request()), node_name="n2", name="other") == CANNOT


@pytest.mark.parametrize(("release", "expected"), [((1, 36), CANNOT), ((1, 37), [["r:d1"]])], ids=["1.36", "1.37"])
def test_newer_counters_that_are_for_another_node_replace_no_complete_pool_since_1_37(release, expected):
    world = World(
        resource_slice("devices", [device("d1", consumes={"set": {"mem": "8"}})], "n1", count=2),
        resource_slice("counters", counters={"set": {"mem": "8"}}, node_name="n1", count=2),
        resource_slice("elsewhere", counters={"set": {"mem": "8"}}, node_name="n2", count=2, generation=2),
        nodes=("n1", "n2"),
        release=release,
    )
    assert world.give(claim("a", request())) == expected


@pytest.mark.parametrize("release", [(1, 36), (1, 37)], ids=["1.36", "1.37"])
def test_counters_that_are_for_another_node_count(release):
    world = World(
        resource_slice("devices", [device(d, consumes={"set": {"mem": "8"}}) for d in ("d1", "d2")], "n1", count=2),
        resource_slice("counters", counters={"set": {"mem": "8"}}, node_name="n2", count=2),
        nodes=("n1", "n2"),
        release=release,
    )
    assert world.give(claim("a", request(count=2))) == CANNOT
    assert world.give(claim("b", request()), name="other") == [["r:d1"]]


CORES = {"cores": {"value": "4", "requestPolicy": {"default": "2", "validRange": {"min": "2", "step": "2"}}}}


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (None, "2"),
        ("1", "2"),
        ("3", "4"),
        ("4", "4"),
    ],
    ids=["the default", "rounded up to the least", "rounded up to a step", "as asked"],
)
def test_a_share_takes_what_the_policy_makes_of_the_request(requested, expected):
    world = World(local(device("d", capacity=CORES, **SHAREABLE)))
    capacity = {"capacity": {"requests": {"cores": requested}}} if requested else {}
    assert world.give(claim("a", request(**capacity))) == [["r:d"]]
    result = world.book.promised("uid-a").status.allocation.devices.results[0]
    assert result.consumed_capacity == {"cores": expected} and result.share_id


def test_shares_that_one_scheduler_after_the_other_hands_out_have_identities_of_their_own():
    shares = set()
    for name in ("a", "b"):  # chance begins anew with every engine
        world = World(local(device("d", capacity=CORES, **SHAREABLE)))
        assert world.give(claim(name, request()), name=f"pod-{name}") == [["r:d"]]
        shares.add(world.book.promised(f"uid-{name}").status.allocation.devices.results[0].share_id)
    assert len(shares) == 2


@pytest.mark.parametrize(
    ("gates", "expected"), [("", "1500m"), ("DRAFractionalCapacityRange=false", "2")], ids=["thousandths", "whole units"]
)
def test_steps_may_be_fractions(gates, expected):
    halves = {"cores": {"value": "4", "requestPolicy": {"default": "1", "validRange": {"min": "500m", "step": "500m"}}}}
    world = World(local(device("d", capacity=halves, **SHAREABLE)), gates=gates)
    assert world.give(claim("a", request(capacity={"requests": {"cores": "1300m"}}))) == [["r:d"]]
    result = world.book.promised("uid-a").status.allocation.devices.results[0]
    assert result.consumed_capacity == {"cores": expected}


def test_a_request_that_no_step_can_represent_is_an_error_since_1_37():
    wanted = claim("a", request(capacity={"requests": {"cores": "9300P"}}))
    said = World(local(device("d", capacity=CORES, **SHAREABLE))).give(wanted)
    assert said.startswith(f"claim default/a, request r: checking capacity for device {DRIVER}/p/d: ")
    assert said.endswith("cannot be represented in the device's range arithmetic: request 9300P exceeds MaxInt64")
    assert World(local(device("d", capacity=CORES, **SHAREABLE)), release=(1, 36)).give(wanted) == CANNOT


def policy(**more):
    return {"cores": {"value": "8", "requestPolicy": {"default": "1", **more}}}


SHARES = [
    ("two shares fit", CORES, [request("x"), request("y")], [["x:d", "y:d"]]),
    ("three shares do not", CORES, [request("x"), request("y"), request("z")], CANNOT),
    ("without a policy the first takes all", {"cores": "2"}, [request("x"), request("y")], CANNOT),
    ("a capacity that the device lacks", CORES, [request("x", capacity={"requests": {"other": "1"}})], CANNOT),
    (
        "beyond the range",
        policy(validRange={"min": "1", "max": "4"}),
        [request("x", capacity={"requests": {"cores": "5"}})],
        CANNOT,
    ),
    (
        "one of the valid values",
        policy(validValues=["1", "4", "8"]),
        [request("x", capacity={"requests": {"cores": "3"}}), request("y", capacity={"requests": {"cores": "4"}})],
        [["x:d", "y:d"]],
    ),
    ("none of the valid values", policy(validValues=["1", "4"]), [request("x", capacity={"requests": {"cores": "5"}})], CANNOT),
]


@pytest.mark.parametrize(("capacity", "requests", "expected"), [c[1:] for c in SHARES], ids=[c[0] for c in SHARES])
def test_consumable_capacity(capacity, requests, expected):
    assert World(local(device("d", capacity=capacity, **SHAREABLE))).give(claim("a", *requests)) == expected


def test_shares_of_earlier_pods_count():
    world = World(local(device("d", capacity=CORES, **SHAREABLE)))
    assert [world.give(claim(name, request()), name=name) for name in "abc"] == [[["r:d"]], [["r:d"]], CANNOT]


def test_a_device_that_became_exclusive_still_owes_what_was_shared():
    share = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d", "shareID": "1", "consumedCapacity": {"cores": "2"}}
    world = World(local(device("d", capacity={"cores": "4"})), claim("x", status=allocation(share)))
    assert world.give(claim("a", request())) == CANNOT


def test_a_device_that_became_shareable_stays_with_its_owner():
    world = World(local(device("d", capacity=CORES, **SHAREABLE)), claim("x", status=allocation("d")))
    assert world.give(claim("a", request())) == CANNOT


def test_further_shares_do_not_take_counters_again():
    shared = device("d", capacity=CORES, consumes={"set": {"mem": "8"}}, **SHAREABLE)
    world = World(local(shared, device("other", consumes={"set": {"mem": "1"}}), count=2), COUNTERS)
    assert world.give(claim("a", request(selector=MEMORY_FREE)), name="a") == [["r:d"]]
    assert world.give(claim("b", request(selector=MEMORY_FREE)), name="b") == [["r:d"]]
    assert world.give(claim("c", request()), name="c") == CANNOT


MEMORY_FREE = "device.allowMultipleAllocations"

REACH = [
    ("all nodes", {"allNodes": True}, {"n1", "n2"}),
    (
        "a selector",
        {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}},
        {"n1"},
    ),
    ("a name", {"node_name": "n2"}, {"n2"}),
    ("nothing that we know", {}, set()),
]


@pytest.mark.parametrize(("how", "expected"), [case[1:] for case in REACH], ids=[case[0] for case in REACH])
def test_reach(how, expected):
    world = World(
        resource_slice("s", ["d"], **how), claim("a", request()), nodes=(node("n1", {"zone": "a"}), node("n2", {"zone": "b"}))
    )
    found = world.filter(pod(claims=["a"]))
    assert {name for name, refused in found.items() if not refused} == expected


def test_devices_that_choose_their_own_nodes():
    zone = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}}
    world = World(
        resource_slice(
            "s", [device("d1", nodeName="n1"), device("d2", **zone), device("d3", allNodes=True)], perDeviceNodeSelection=True
        ),
        claim("a", request()),
        nodes=(node("n1", {"zone": "a"}), node("n2", {"zone": "b"}), node("n3")),
    )
    assert set(world.filter(pod(claims=["a"])).values()) == {""}
    groups = world.plugin._pools.rows(world.store.snapshot()).tolist()
    reached = [[c.device.id.device for c in world.plugin._pools.groups[g].candidates if c.is_reachable] for g in groups]
    assert reached == [["d1", "d3"], ["d2", "d3"], ["d3"]]


def test_nodes_without_devices_are_one_group():
    world = World(local("d"), nodes=("n1", *(f"empty-{i}" for i in range(50))))
    groups = world.plugin._pools.rows(world.store.snapshot())
    assert len(set(groups.tolist())) == 2


def test_a_class_narrows_what_a_request_may_get():
    world = World(
        local(device("a", {"model": "x"}), device("b", {"model": "y"})),
        device_class("only-y", f'device.attributes["{DRIVER}"].model == "y"'),
    )
    assert world.give(claim("a", request(class_name="only-y"))) == [["r:b"]]


BROKEN = [
    ("compile", "device.nope == 1", "", "CEL compile error: compilation failed: undefined field 'nope'", ""),
    (
        "runtime",
        f'device.attributes["{DRIVER}"].nope == 1',
        f" on device {DRIVER}/p/d1",
        "CEL runtime error: no such key: nope",
        ". consider using CEL optional chaining (.? followed by orValue()) "
        "or guarding the check with has() for optional fields",
    ),
]


@pytest.mark.parametrize(("expression", "where", "text", "hint"), [c[1:] for c in BROKEN], ids=[c[0] for c in BROKEN])
def test_a_broken_selector_names_the_claim_and_the_selector(expression, where, text, hint):
    wanted = claim("a", request(selector=expression))
    assert World(TWO).give(wanted) == f"claim default/a: selector #0{where}: {text}{hint}"
    assert World(TWO, release=(1, 36)).give(wanted) == f"claim default/a: selector #0: {text}"


def test_a_broken_selector_of_a_class_names_the_class():
    said = World(TWO, device_class("bad", "1 + 1")).give(claim("a", request(class_name="bad")))
    assert said.startswith("class bad: selector #0: CEL compile error: must evaluate to ")


GATES = [
    ("DRADeviceTaints", [local(TAINTED)], [claim("a", request())], [["r:bad"]]),
    ("DRAPartitionableDevices", [local(*HALVES, "plain", count=2), COUNTERS], [claim("a", request())], [["r:plain"]]),
    (
        "DRAConsumableCapacity",
        [local(device("d", capacity=CORES, **SHAREABLE))],
        [claim("a", request("x"), request("y"))],
        CANNOT,
    ),
    ("DRADeviceBindingConditions", [local(device("d", bindingConditions=["ready"]))], [claim("a", request())], CANNOT),
    (
        "DRAPrioritizedList",
        [TWO],
        [claim("a", first_available("q", sub("s")))],
        "resource claim default/a, request q: has subrequests, but the DRAPrioritizedList feature is disabled",
    ),
]


@pytest.mark.parametrize(("gate", "objects", "claims", "expected"), GATES, ids=[case[0] for case in GATES])
def test_a_gate_that_is_off(gate, objects, claims, expected):
    assert World(*objects, gates=f"{gate}=false").give(*claims) == expected
    assert World(*objects).give(*claims) != expected


def test_list_attributes_need_their_gate_before_1_37():
    tags = f'device.attributes["{DRIVER}"].tags.includes("b")'
    devices = local(device("d", {"tags": ("strings", ["a", "b"])}))
    wanted = claim("a", request(selector=tags))
    assert "attribute tags: unsupported attribute value" in World(devices, release=(1, 36)).give(wanted)
    assert World(devices, release=(1, 36), gates="DRAListTypeAttributes=true").give(wanted) == [["r:d"]]
    assert World(devices).give(wanted) == [["r:d"]]


def taint_rule(**selector):
    return make(
        {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "rule"},
            "spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoExecute"}},
        }
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"device": "d1"}, [["r:d2"]]),
        ({"driver": DRIVER, "pool": "p"}, CANNOT),
        ({"pool": "other"}, [["r:d1"]]),
    ],
    ids=["a device", "a pool", "another pool"],
)
def test_rules_taint_devices_from_outside(selector, expected):
    world = World(TWO, gates="DRADeviceTaintRules=true")
    assert world.filter(pod(claims=[])) == {"n1": ""}
    world.put(taint_rule(**selector))
    assert world.give(claim("a", request())) == expected
    assert World(TWO, taint_rule(**selector), gates="DRADeviceTaintRules=false").give(claim("a", request())) == [["r:d1"]]


def test_an_amount_that_is_no_quantity_is_named():
    world = World(local(device("d", capacity=CORES, **SHAREABLE)))
    said = world.give(claim("a", request(capacity={"requests": {"cores": "many"}})))
    assert said.startswith(f"claim default/a, request r: capacity on device {DRIVER}/p/d: invalid quantity 'many'")


def test_a_slice_with_an_amount_that_is_no_quantity_is_named():
    with pytest.raises(MalformedObject, match="ResourceSlice s: capacity memory: invalid value 'much'"):
        World(local(device("d", capacity={"memory": "much"}))).give(claim("a", request()))


def test_many_claims_in_one_pod():
    world = World(local(*(f"d{i:03}" for i in range(200))))
    given = world.give(*(claim(f"c{i:03}", request()) for i in range(200)))
    assert given == [[f"r:d{i:03}"] for i in range(200)]


def test_admin_access_is_refused_where_its_gate_is_off():
    """Only who emulates an older release can switch it off."""
    wanted = claim("a", request(adminAccess=True))
    assert "admin access is requested, but the feature is disabled" in World(TWO, gates="DRAAdminAccess=false").give(wanted)
    assert World(TWO).give(wanted) == [["r:d1"]]


@pytest.mark.parametrize(
    "where", [{"node_name": "n1"}, {"allNodes": True}], ids=["counters of the node", "counters of all nodes"]
)
def test_all_devices_are_not_given_while_only_the_counters_of_a_pool_are_there(where):
    there = resource_slice("s", ["a"], "n1", pool="q")
    counters = resource_slice("c", counters={"set": {"mem": "8"}}, count=2, **where)
    found = World(there, counters).give(claim("k", request(allocationMode="All")))
    text = "claim default/k, request r: asks for all devices, but resource pool gpu.example.com/p is currently being updated"
    assert found == text
    assert World(there, resource_slice("c", counters={"set": {"mem": "8"}}, node_name="n2", count=2)).give(
        claim("k", request(allocationMode="All"))
    ) == [["r:a"]], "what another node has is nothing to it"
