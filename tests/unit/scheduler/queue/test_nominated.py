"""Nominations: made by hand or found in the status, kept over updates, looked up in the queue."""

import pytest
from queue_fakes import NODE_ADDED, World, pod

from kubesched.scheduler.framework.ports import Nominations
from kubesched.scheduler.framework.verdicts import CLEAR, Nomination


def names(world, node):
    return [view.name for view in world.queue.nominations.on_node(node)]


def test_a_pod_that_comes_with_a_nominated_node_counts_there(world):
    world.queue.add(pod("p", nominated="n1"))
    assert names(world, "n1") == ["p"]
    assert list(world.queue.nominations.nodes()) == ["n1"]


@pytest.mark.parametrize(("nominates_gated", "there"), [(True, ["p"]), (False, [])], ids=["since 1.37", "before"])
def test_a_gated_pod_holds_its_place(nominates_gated, there):
    world = World(nominates_gated=nominates_gated)
    world.gate.closed_for.add("p")
    world.queue.add(pod("p", nominated="n1"))
    assert names(world, "n1") == there


def test_a_nomination_beats_the_status_and_an_empty_one_clears(world):
    view = pod("p", nominated="n1")
    world.queue.add(view)
    world.queue.nominations.add(view, Nomination("n2"))
    assert (names(world, "n1"), names(world, "n2")) == ([], ["p"])
    world.queue.nominations.add(view, CLEAR)
    assert list(world.queue.nominations.nodes()) == []


def test_nominations_of_a_node_keep_their_order(world):
    for name in "cab":
        world.queue.add(pod(name, nominated="n1"))
    assert names(world, "n1") == ["c", "a", "b"]
    world.queue.delete(pod("a"))
    assert names(world, "n1") == ["c", "b"]


def test_a_nomination_that_is_not_written_yet_survives_an_update(world):
    view = pod("p")
    world.queue.add(view)
    world.queue.nominations.add(view, Nomination("n1"))
    world.queue.update(view.pod, pod("p", labels={"a": "b"}), [])
    assert names(world, "n1") == ["p"]
    assert world.queue.nominations.node_of("uid-p") == "n1"


def test_an_update_follows_the_status(world):
    first, second, third = pod("p", nominated="n1"), pod("p", nominated="n2"), pod("p")
    world.queue.add(first)
    world.queue.update(first.pod, second, [])
    assert (names(world, "n1"), names(world, "n2")) == ([], ["p"])
    world.queue.update(second.pod, third, [])
    assert list(world.queue.nominations.nodes()) == []


def test_the_queues_newest_version_is_returned(world):
    first = pod("p", nominated="n1", priority=1)
    world.queue.add(first)
    world.queue.update(first.pod, pod("p", nominated="n1", priority=7), [])
    assert [view.priority for view in world.queue.nominations.on_node("n1")] == [7]


def test_a_pod_that_is_being_tried_counts_as_a_bare_pod(world):
    world.queue.add(pod("p", nominated="n1", priority=7, labels={"a": "b"}))
    before = world.queue.nominations.changes.end
    world.queue.pop()
    assert world.queue.nominations.changes.since(before) == ["n1"]
    (bare,) = world.queue.nominations.on_node("n1")
    assert (bare.key, bare.uid, bare.priority, bare.labels) == ("team-a/p", "uid-p", 0, {})
    assert not any(amount for _, amount in bare.requests)


def test_only_pods_that_are_known_without_a_node_are_nominated(world):
    known = {"team-a/p": pod("p")}
    world.queue.nominations.verify_with(known.get)
    world.queue.nominations.add(pod("p"), Nomination("n1"))
    world.queue.nominations.add(pod("gone"), Nomination("n1"))
    assert names(world, "n1") == ["p"]


def test_waking_keeps_a_nomination(world):
    view = pod("p")
    world.queue.add(view)
    world.refuse(view, "Fussy")
    world.queue.nominations.add(view, Nomination("n1"))
    world.queue.wake(NODE_ADDED)
    assert names(world, "n1") == ["p"]


def test_the_queue_keeps_the_port(world):
    port: Nominations = world.queue.nominations
    assert port.on_node("n1") == []
