"""The queue where no hints are asked (SchedulerQueueingHints=false), beside the queue where they are."""

import pytest
from msgspec.structs import replace
from queue_fakes import NODE_ADDED, NODE_DELETED, NODE_LABELS, POD_LABELS, POD_UPDATED, World, pod

from kubesched.scheduler.framework import Plugin, Profile
from kubesched.scheduler.framework.wakeups import ADD, ADMITTED_LATER, NODE, POD, Action, ClusterEvent, on
from kubesched.scheduler.queue import QueueError, QueueOptions
from kubesched.scheduler.queue.hints import ProfileHints

CLAIMS = ClusterEvent("UnschedulablePod", int(Action.POD_CLAIMS))


@pytest.fixture
def unhinted():
    return World(asks_hints=False)


@pytest.mark.parametrize(("asks_hints", "place"), [(True, "unschedulable"), (False, "active")])
def test_an_event_that_a_rejector_waits_for_wakes_whatever_its_hint_would_say(asks_hints, place):
    world = World(asks_hints=asks_hints)
    world.fussy.answer = False
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Fussy")
    world.clock.time += 20
    world.queue.wake(NODE_ADDED)
    assert world.queue.place_of("team-a/p") == place
    assert bool(world.fussy.asked) is asks_hints


# During an attempt


@pytest.mark.parametrize(
    ("event", "hinted", "without"),
    [
        (None, "unschedulable", "unschedulable"),
        (NODE_ADDED, "unschedulable", "backoff"),  # the hint says no
        (NODE_DELETED, "unschedulable", "unschedulable"),  # nobody waits for it
    ],
)
@pytest.mark.parametrize("asks_hints", [True, False])
def test_anything_that_somebody_waits_for_during_an_attempt_brings_the_pod_to_backoff(asks_hints, event, hinted, without):
    world = World(asks_hints=asks_hints)
    world.fussy.answer = False
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    if event is not None:
        world.queue.wake(event)
    world.queue.park(entry, ["Fussy"])
    assert world.queue.place_of("team-a/p") == (hinted if asks_hints else without)


def test_it_need_not_be_what_the_rejector_waits_for(unhinted):
    """Gate waits for the event, and Fussy refused the pod."""
    unhinted.queue.add(pod("p"))
    entry = unhinted.queue.pop()
    unhinted.queue.wake(ClusterEvent("AssignedPod", int(Action.POD_GATES_GONE)))
    unhinted.queue.park(entry, ["Fussy"])
    assert unhinted.queue.place_of("team-a/p") == "backoff"


def test_what_happened_before_the_last_pop_is_forgotten(unhinted):
    for name in ("p", "other"):
        unhinted.queue.add(pod(name))
    entry = unhinted.queue.pop()
    unhinted.queue.wake(NODE_ADDED)
    unhinted.queue.pop()
    unhinted.queue.park(entry, ["Fussy"])
    assert unhinted.queue.place_of("team-a/p") == "unschedulable"
    assert unhinted.queue.in_flight_events() == {"PodPopped": 1}


@pytest.mark.parametrize(("asks_hints", "place"), [(True, "active"), (False, "backoff")])
def test_a_pod_comes_back_through_backoff_even_if_there_is_no_pause(asks_hints, place):
    world = World(asks_hints=asks_hints, initial_backoff_seconds=0.0, max_backoff_seconds=0.0)
    world.queue.add(pod("p"))
    world.queue.park(world.queue.pop())
    assert world.queue.place_of("team-a/p") == place


@pytest.mark.parametrize(("asks_hints", "place"), [(True, "unschedulable"), (False, "backoff")])
def test_an_activation_of_any_pod_that_is_not_there_counts_as_an_event(asks_hints, place):
    world = World(asks_hints=asks_hints)
    for name in ("p", "waits"):
        world.queue.add(pod(name))
    world.refuse(pod("waits"), "Fussy")
    entry = world.queue.pop()
    world.queue.activate([pod("waits")])
    assert world.queue.place_of("team-a/waits") == "active"
    world.queue.activate([pod("unknown")])
    world.queue.park(entry, ["Fussy"])
    assert world.queue.place_of("team-a/p") == place


def test_leftovers_count_as_an_event(unhinted):
    for name in ("p", "waits"):
        unhinted.queue.add(pod(name))
    unhinted.refuse(pod("waits"), "Fussy")
    entry = unhinted.queue.pop()
    unhinted.clock.time += 400
    assert unhinted.queue.flush_leftovers(unhinted.clock.now()) == 1
    unhinted.queue.park(entry, ["Fussy"])
    assert unhinted.queue.place_of("team-a/p") == "backoff"


def test_an_update_during_an_attempt_makes_the_pod_new_and_the_attempt_does_not_come_back(unhinted):
    unhinted.queue.add(pod("p"))
    entry = unhinted.queue.pop()
    unhinted.queue.update(entry.view.pod, pod("p", labels={"a": "b"}), [POD_LABELS])
    assert unhinted.queue.place_of("team-a/p") == "active"
    with pytest.raises(QueueError, match="already present in the active queue"):
        unhinted.queue.park(entry, ["Fussy"])


# A waiting pod's own changes


def changed(**parts):
    """Return a pod's new version; parts of its metadata, or its status as a whole."""
    before = pod("p").pod
    status = parts.pop("status", before.status)
    return replace(before, metadata=replace(before.metadata, resource_version="2", **parts), status=status)


@pytest.mark.parametrize(
    ("what", "after", "event", "place"),
    [
        ("nothing but the version", changed(), POD_UPDATED, "unschedulable"),
        ("labels", changed(labels={"a": "b"}), POD_LABELS, "active"),
        ("annotations", changed(annotations={"a": "b"}), POD_UPDATED, "active"),
        ("finalizers", changed(finalizers=("f",)), POD_UPDATED, "unschedulable"),
        ("a part of the spec that we do not read", changed(generation=2), POD_UPDATED, "active"),
        ("status", changed(status=replace(pod("p").pod.status, phase="Pending")), POD_UPDATED, "unschedulable"),
        ("claims in the status", changed(), CLAIMS, "active"),
    ],
)
def test_a_change_of_its_own_wakes_a_pod_unless_it_is_of_the_status(unhinted, what, after, event, place):
    unhinted.fussy.answer = False
    unhinted.queue.add(pod("p"))
    unhinted.refuse(pod("p"), "Fussy")
    unhinted.clock.time += 20
    view = pod("p")
    view.pod = after
    unhinted.queue.update(pod("p").pod, view, [event])
    assert unhinted.queue.place_of("team-a/p") == place
    assert unhinted.counts.incoming["active", "UnschedulablePodUpdate"] == (place == "active")


def test_a_pod_that_still_pauses_goes_to_backoff_by_its_own_change(unhinted):
    unhinted.queue.add(pod("p"))
    unhinted.refuse(pod("p"), "Fussy")
    unhinted.queue.update(pod("p").pod, pod("p", labels={"a": "b"}), [POD_LABELS])
    assert unhinted.queue.place_of("team-a/p") == "backoff"


@pytest.mark.parametrize(("asks_hints", "times"), [(True, 1), (False, 2)])
def test_every_change_of_a_gated_pod_asks_its_gate(asks_hints, times):
    world = World(asks_hints=asks_hints)
    world.gate.closed_for.add("p")
    world.queue.add(pod("p"))
    world.queue.update(pod("p").pod, pod("p", labels={"a": "b"}), [POD_LABELS])
    assert (world.queue.place_of("team-a/p"), world.gate.asked) == ("gated", ["p"] * times)


# What plugins wait for


class Declaring(Plugin):
    wakes_on = (
        on(NODE, ADD, "look", without_hints=ADD | ADMITTED_LATER),
        on(POD, Action.POD_TOLERATIONS, "look", without_hints=0),
        on(POD, Action.DELETE, "look"),
    )

    def filter_node(self, pod, node, state):
        return None

    def look(self, pod, old, new):
        return True


@pytest.mark.parametrize(
    ("asks_hints", "actions"),
    [
        (True, [Action.ADD, Action.POD_TOLERATIONS, Action.DELETE]),
        (False, [Action.ADD | Action.NODE_LABELS | Action.NODE_TAINTS, Action.DELETE]),
    ],
)
def test_a_plugin_may_wait_for_other_events_where_its_hint_is_not_asked(asks_hints, actions):
    plugin = Declaring(None, World().handle)
    hints = ProfileHints(
        Profile("p", {"filter": [(plugin, 0)]}), QueueOptions(asks_hints=asks_hints, taints_announce_nodes=True)
    )
    found = [each for each in hints.registered if each.hint is None or asks_hints]
    assert [each.event.action for each in found][: len(actions)] == actions
    assert bool(hints.matching(NODE_LABELS)) is not asks_hints
    assert all((each.hint is None) is not asks_hints for each in hints.matching(NODE_ADDED))
