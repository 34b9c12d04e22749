"""Parts of device allocation that are alpha in 1.37: what each gate changes, on both sides."""

import pytest
from dra_world import DRIVER, World, allocation, claim, device, make, node, pod, request, resource_slice

CANNOT = "cannot allocate all claims"
COUNTERS = resource_slice("counters", counters={"set": {"mem": "8"}}, node_name="n1", count=2)


def part(name, *groups):
    uses = [{"counterSet": "set", "counters": {"mem": {"value": "2"}}, "compatibilityGroups": list(groups)}]
    return {**device(name), "consumesCounters": uses}


PARTS = resource_slice("s", [part("a", "x"), part("b", "y"), part("c", "x", "y"), part("none")], "n1", count=2)
COMPATIBLE = "DRADeviceCompatibilityGroups=true"


def test_devices_of_one_counter_set_share_a_compatibility_group():
    assert World(COUNTERS, PARTS, gates=COMPATIBLE).give(claim("k", request(count=2))) == [["r:a", "r:c"]]
    assert World(COUNTERS, PARTS, gates=COMPATIBLE).give(claim("k", request(count=3))) == CANNOT
    world = World(COUNTERS, PARTS, gates=COMPATIBLE)
    assert world.give(claim("k", request(selector='device.driver != ""')), name="one") == [["r:a"]]
    assert world.give(claim("l", request()), name="two") == [["r:c"]], "devices that others hold count"


def test_without_the_gate_a_pool_with_compatibility_groups_is_incomplete():
    assert World(COUNTERS, PARTS).give(claim("k", request())) == CANNOT


def test_devices_of_no_group_go_with_their_like():
    plain = resource_slice("s", [part("a"), part("b", "x"), part("c")], "n1", count=2)
    assert World(COUNTERS, plain, gates=COMPATIBLE).give(claim("k", request(count=2))) == [["r:a", "r:c"]]


SKIPPING = resource_slice("s", ["d"], allNodes=True, skipNodeOperations=["NodePrepareResources"])


def able(name):
    declared = node(name)
    return make(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": dict(declared.status.allocatable), "declaredFeatures": ["DRAOptionalNodeOperations"]},
        }
    )


@pytest.mark.parametrize(("gates", "expected"), [("DRAOptionalNodeOperations=true", [["r:d"]]), ("", CANNOT)])
def test_devices_that_need_no_operations_of_the_node_go_to_nodes_that_can_do_without(gates, expected):
    nodes = ("n1", able("n2"))
    assert World(SKIPPING, nodes=nodes, gates=gates).give(claim("k", request())) == CANNOT
    world = World(SKIPPING, nodes=nodes, gates=gates)
    assert world.give(claim("k", request()), node_name="n2") == expected
    if gates:
        (result,) = world.plugin._book.promised("uid-k").status.allocation.devices.results
        assert result.skip_node_operations == ("NodePrepareResources",)


def test_a_claim_that_holds_such_a_device_is_served_where_it_is_and_nowhere_else():
    world = World(SKIPPING, nodes=("n1", able("n2")), gates="DRAOptionalNodeOperations=true")
    held = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d", "skipNodeOperations": ["NodePrepareResources"]}
    world.put(claim("k", request(), status=allocation(held)))
    assert world.filter(pod("two", ["k"])) == {"n1": "resourceclaim not available on the node", "n2": ""}


def test_a_node_that_begins_to_do_without_is_noticed():
    world = World(SKIPPING, nodes=("n2",), gates="DRAOptionalNodeOperations=true")
    assert world.give(claim("k", request()), node_name="n2", name="one") == CANNOT
    world.store.put_node(able("n2"))
    assert world.give(claim("k", request()), node_name="n2", name="one") == [["r:d"]]


SIDES = resource_slice("s", [device("d0", {"slot": 0}), device("d1", {"slot": 2}), device("d2", {"slot": 1})], "n1")
SIDE = [{"name": "derived/side", "expression": f'device.attributes["{DRIVER}"].slot / 2'}]
ALIKE = [{"requests": ["r"], "matchAttribute": "derived/side"}]
BROKEN = [{"name": "derived/side", "expression": f'device.attributes["{DRIVER}"].nothing'}]


def test_a_claim_makes_attributes_of_its_own():
    derived = claim("k", request(count=2, derivedAttributes=SIDE), constraints=ALIKE)
    assert World(SIDES, gates="DRADerivedAttributes=true").give(derived) == [["r:d0", "r:d2"]]
    disabled = "claim default/k, request r: cannot handle request with derived attributes, the feature is disabled"
    assert World(SIDES).give(derived) == disabled


def test_an_expression_that_fails_ends_the_search():
    said = World(SIDES, gates="DRADerivedAttributes=true").give(
        claim("k", request(count=2, derivedAttributes=BROKEN), constraints=ALIKE)
    )
    where = f"claim default/k, request r: evaluate derived attribute derived/side on device {DRIVER}/p/d0 failed"
    assert said.startswith(f"{where}: no such key")
