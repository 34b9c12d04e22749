"""Which event moves which waiting pod, and where to."""

import pytest
from queue_fakes import (
    GATES_GONE,
    NODE_ADDED,
    NODE_DELETED,
    NODE_LABELS,
    NODE_TAINTS,
    POD_DELETED,
    POD_LABELS,
    POD_UPDATED,
    Fussy,
    World,
    pod,
)

from kubesched.scheduler.framework import Plugin, Profile
from kubesched.scheduler.framework.wakeups import ADD, ALL, FORCE_ACTIVATE, NODE, UNSCHEDULABLE_TIMEOUT, ClusterEvent, on
from kubesched.scheduler.queue import Queue, QueueError


@pytest.fixture
def refused(world):
    """A pod that Fussy refused, its pause long over."""
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Fussy")
    world.clock.time += 60
    return pod("p")


@pytest.mark.parametrize(
    ("event", "says", "place"),
    [
        (NODE_ADDED, True, "active"),
        (NODE_ADDED, False, "unschedulable"),
        (NODE_LABELS, True, "active"),
        (POD_DELETED, True, "active"),
        (NODE_DELETED, True, "unschedulable"),
        (NODE_TAINTS, True, "unschedulable"),
        (UNSCHEDULABLE_TIMEOUT, False, "active"),
        (FORCE_ACTIVATE, False, "active"),
    ],
)
def test_an_event_moves_a_pod_if_its_rejector_waits_for_it_and_the_hint_agrees(world, refused, event, says, place):
    world.fussy.answer = says
    assert world.queue.wake(event) == (1 if place == "active" else 0)
    assert world.queue.place_of(refused.key) == place
    if place == "active":
        assert world.counts.incoming["active", event.label] == 1


def test_a_pod_that_still_pauses_goes_to_backoff(world):
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Fussy")
    world.queue.wake(NODE_ADDED)
    assert world.queue.place_of("team-a/p") == "backoff"
    assert world.counts.incoming["backoff", "NodeAdd"] == 1


def test_a_plugin_that_said_pending_skips_the_pause(world):
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Picky", pending=("Fussy",))
    world.picky.answer = False
    world.queue.wake(NODE_ADDED)
    assert world.queue.place_of("team-a/p") == "active"


def test_among_pending_and_plain_rejectors_the_sooner_one_wins(world):
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Fussy", pending=("Picky",))
    world.queue.wake(NODE_ADDED)
    assert world.queue.place_of("team-a/p") == "active"


def test_a_plain_rejector_alone_leaves_the_pause_in_place(world):
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Fussy", pending=("Picky",))
    world.picky.answer = False
    world.queue.wake(NODE_ADDED)
    assert world.queue.place_of("team-a/p") == "backoff"


def test_a_hint_that_breaks_wakes_the_pod_and_is_named(world, refused):
    world.fussy.answer = lambda pod, old, new: 1 // 0
    assert world.queue.wake(NODE_ADDED) == 1
    assert world.counts.broken == [("Fussy", "QueueingHint", "team-a/p")]
    assert world.counts.hints["Fussy", "NodeAdd", "Error"] == 1


def test_hints_are_counted_with_their_answer(world, refused):
    world.fussy.answer = False
    world.queue.wake(NODE_ADDED)
    world.fussy.answer = True
    world.queue.wake(NODE_ADDED)
    assert world.counts.hints == {("Fussy", "NodeAdd", "QueueSkip"): 1, ("Fussy", "NodeAdd", "Queue"): 1}


def test_only_pods_of_a_rejector_that_waits_for_the_event_are_asked_about(world):
    for name in ("a", "b"):
        world.queue.add(pod(name))
    world.refuse(pod("a"), "Fussy")
    world.refuse(pod("b"), "Picky")
    world.fussy.answer = world.picky.answer = False
    world.queue.wake(NODE_ADDED)
    assert (world.fussy.asked, world.picky.asked) == (["a"], ["b"])


def test_a_move_can_be_narrowed_down(world):
    for name, priority in (("low", 1), ("high", 2)):
        world.queue.add(pod(name, priority=priority))
    for name in ("low", "high"):
        world.refuse(pod(name), "Fussy")
    world.clock.time += 60
    world.queue.wake(POD_DELETED, concerns=lambda waiting: waiting.priority <= 1)
    assert (world.names("active"), world.names("unschedulable")) == (["low"], ["high"])


class PerTemplate(Fussy):
    wakes_on = (on(NODE, ADD, "may_help", by_template=True), on("Pod", 2, "may_help", by_template=True))


def template_world():
    world = World()
    plugin = PerTemplate()
    world.queue = Queue([Profile("default-scheduler", {"filter": [(plugin, 0)]})], world.clock)
    for name, labels in (("a1", {"app": "a"}), ("a2", {"app": "a"}), ("b1", {"app": "b"}), ("b2", {"app": "b"})):
        view = pod(name, labels=labels)
        world.queue.add(view)
        world.refuse(view, "PerTemplate")
    world.clock.time += 60
    return world, plugin


def test_a_hint_that_reads_the_template_is_asked_once_for_it():
    world, plugin = template_world()
    plugin.answer = lambda pod, old, new: pod.labels["app"] == "b"
    assert world.queue.wake(NODE_ADDED) == 2
    assert plugin.asked == ["a1", "b1"]
    assert (world.names("active"), world.names("unschedulable")) == (["b1", "b2"], ["a1", "a2"])


def test_the_pod_that_an_event_is_about_is_asked_for_itself():
    world, plugin = template_world()
    plugin.answer = lambda waiting, old, new: waiting.uid == old.metadata.uid
    assert world.queue.wake(POD_DELETED, pod("a1", labels={"app": "a"}).pod, None) == 1
    assert (world.names("active"), world.names("unschedulable")) == (["a1"], ["a2", "b1", "b2"])
    plugin.answer = lambda waiting, old, new: waiting.uid != old.metadata.uid
    assert world.queue.wake(POD_DELETED, pod("b2", labels={"app": "b"}).pod, None) == 2
    assert world.names("unschedulable") == ["b2"]


def test_a_plugin_that_declares_nothing_is_woken_by_everything_it_could_mean(world):
    class Silent(Plugin):
        def filter_node(self, pod, node, state):
            return "no"

    class Scorer(Plugin):
        def score_node(self, pod, node, state):
            return 1

    silent, scorer = Silent(None, world.handle), Scorer(None, world.handle)
    queue = Queue([Profile("default-scheduler", {"filter": [(silent, 0)], "score": [(scorer, 1)]})], world.clock)
    known = (
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "storage.k8s.io/CSINode",
        "storage.k8s.io/CSIDriver",
        "storage.k8s.io/CSIStorageCapacity",
        "storage.k8s.io/StorageClass",
        "resource.k8s.io/ResourceClaim",
        "resource.k8s.io/DeviceClass",
    )
    assert queue.watched_resources() == dict.fromkeys(known, int(ALL))
    queue.add(pod("p"))
    queue.park(queue.pop(), ["Silent"])
    assert queue.wake(NODE_DELETED) == 1
    assert not queue.is_of_interest(ClusterEvent("resource.k8s.io/ResourceSlice", 1))


def test_pods_refused_by_extenders_are_woken_by_everything():
    world = World(has_extenders=True)
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Extender")
    world.clock.time += 60
    assert world.queue.wake(NODE_DELETED) == 1


def test_pod_groups_are_waited_for_where_they_are_switched_on():
    world = World(has_extenders=True, has_pod_groups=True)
    assert world.queue.is_of_interest(ClusterEvent("scheduling.k8s.io/PodGroup", 1))


def test_hints_are_those_of_the_pods_own_profile(world):
    other = Fussy()
    other.answer = False
    profiles = [Profile("one", {"filter": [(world.fussy, 0)]}), Profile("two", {"filter": [(other, 0)]})]
    queue = Queue(profiles, world.clock)
    for name in ("one", "two"):
        queue.add(pod(name, scheduler=name))
        queue.park(queue.pop(), ["Fussy"])
    assert queue.wake(NODE_ADDED) == 1
    assert (queue.place_of("team-a/one"), queue.place_of("team-a/two")) == ("backoff", "unschedulable")


# Gates


def test_a_gated_pod_waits_without_having_been_tried(world):
    world.gate.closed_for.add("p")
    world.queue.add(pod("p"))
    assert (world.queue.n_gated, world.queue.n_unschedulable, world.queue.n_active) == (1, 0, 0)
    assert world.counts.incoming == {("unschedulable", "UnschedulablePodAdd"): 1}
    assert world.counts.unschedulable_pods["Gate", "default-scheduler"] == 1
    entry = world.queue.find("team-a/p")
    assert (entry.initial_attempt, entry.gating_plugin, entry.attempts) == (None, "Gate", 0)


def test_only_events_of_the_gate_ask_it_again(world):
    world.gate.closed_for.add("p")
    world.queue.add(pod("p"))
    world.gate.asked.clear()
    world.queue.wake(POD_DELETED)
    assert world.gate.asked == []
    world.queue.wake(NODE_ADDED)
    assert world.gate.asked == ["p"]
    assert world.queue.n_gated == 1
    assert world.counts.unschedulable_pods["Gate", "default-scheduler"] == 1
    world.gate.closed_for.clear()
    assert world.queue.wake(NODE_ADDED) == 1
    assert world.pop_names() == ["p"]
    assert world.counts.unschedulable_pods["Gate", "default-scheduler"] == 0


def test_an_update_that_opens_the_gate_makes_the_pod_active_at_once(world):
    world.gate.closed_for.add("p")
    world.queue.add(pod("p"))
    world.queue.update(pod("p").pod, pod("p", labels={"a": "b"}), [POD_LABELS])
    assert world.queue.place_of("team-a/p") == "gated"
    world.gate.closed_for.clear()
    world.queue.update(pod("p").pod, pod("p"), [GATES_GONE])
    assert world.queue.place_of("team-a/p") == "active"
    assert world.queue.find("team-a/p").initial_attempt == world.clock.time


def test_a_gate_that_closes_after_an_attempt_keeps_the_pod_and_other_rejectors_can_lift_it(world):
    world.queue.add(pod("p"))
    world.gate.closed_for.add("p")
    world.refuse(pod("p"), "Fussy")
    assert world.queue.place_of("team-a/p") == "unschedulable"
    world.queue.wake(NODE_LABELS)
    entry = world.queue.find("team-a/p")
    assert (world.queue.place_of("team-a/p"), entry.rejectors) == ("gated", {"Fussy", "Gate"})
    world.queue.wake(NODE_LABELS)
    assert world.queue.place_of("team-a/p") == "gated"
    world.gate.closed_for.clear()
    world.queue.wake(NODE_ADDED)
    assert world.queue.place_of("team-a/p") == "backoff"


def test_a_gate_that_breaks_keeps_its_pod_waiting_and_is_named(world):
    def broken(pod):
        raise RuntimeError("no answer")

    world.gate.pre_enqueue = broken
    world.queue.add(pod("p"))
    assert world.queue.place_of("team-a/p") == "gated"
    assert world.counts.broken == [("Gate", "PreEnqueue", "team-a/p")]
    del world.gate.pre_enqueue
    assert world.queue.wake(NODE_ADDED) == 1


# In flight


def test_what_happens_during_an_attempt_counts_when_the_pod_comes_back(world):
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    world.queue.wake(NODE_ADDED)
    world.queue.park(entry, ["Fussy"])
    assert world.queue.place_of("team-a/p") == "backoff"
    assert world.queue.in_flight_events() == {}


def test_what_happened_before_the_attempt_does_not_count(world):
    world.queue.add(pod("other"))
    world.queue.add(pod("p"))
    other = world.queue.pop()
    world.queue.wake(NODE_ADDED)
    entry = world.queue.pop()
    world.queue.park(entry, ["Fussy"])
    assert world.queue.place_of("team-a/p") == "unschedulable"
    world.queue.park(other, ["Fussy"])
    assert world.queue.place_of("team-a/other") == "backoff"


def test_events_that_nobody_waits_for_are_not_kept(world):
    world.queue.add(pod("p"))
    world.queue.pop()
    world.queue.wake(NODE_DELETED)
    assert world.queue.in_flight_events() == {"PodPopped": 1}
    world.queue.wake(NODE_ADDED)
    assert world.queue.in_flight_events() == {"PodPopped": 1, "NodeAdd": 1}
    world.queue.done("uid-p")
    assert world.queue.in_flight_events() == {}


def test_an_update_during_an_attempt_is_kept_and_the_newest_version_comes_back(world):
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    newer = pod("p", labels={"a": "b"})
    world.queue.update(entry.view.pod, newer, [POD_LABELS])
    assert len(world.queue) == 0
    world.queue.park(entry, ["Fussy"], pod=newer)
    assert (world.queue.place_of("team-a/p"), entry.view.labels) == ("backoff", {"a": "b"})


def test_a_pod_activated_during_its_attempt_comes_back_through_backoff(world):
    for name in ("p", "other"):
        world.queue.add(pod(name))
    entries = [world.queue.pop(), world.queue.pop()]
    world.queue.activate([pod("p"), pod("unknown")])
    for entry in entries:
        world.queue.park(entry, ["Fussy"])
    assert world.queue.place_of("team-a/p") == "backoff"
    assert world.queue.place_of("team-a/other") == "unschedulable"


def test_members_of_pod_groups_always_come_back_through_backoff():
    world = World(has_pod_groups=True)
    member = pod("p", group="gang")
    world.queue.add(member)
    world.queue.park(world.queue.pop(), ["Fussy"])
    assert world.queue.place_of("team-a/p") == "backoff"


def test_a_pod_that_was_never_popped_comes_back_through_backoff(world):
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    world.queue.done("uid-p")
    world.queue.park(entry, ["Fussy"])
    assert world.queue.place_of("team-a/p") == "backoff"


@pytest.mark.parametrize(
    ("where", "text"),
    [("active", "in the active queue"), ("waiting", "in unschedulable queue"), ("backoff", "in the backoff queue")],
)
def test_a_pod_cannot_come_back_twice(world, where, text):
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    world.queue.add(pod("p", uid="second"))
    if where != "active":
        world.refuse(pod("p"), *(("Fussy",) if where == "waiting" else ()))
    with pytest.raises(QueueError, match=f"Pod team-a/p is already present {text}"):
        world.queue.park(entry, ["Fussy"])
    assert len(world.queue) == 1 and not world.queue.is_in_flight("uid-p")


# Updates of waiting pods


def test_an_update_moves_a_waiting_pod_only_if_a_hint_says_so(world, refused):
    world.fussy.answer = False
    world.queue.update(refused.pod, pod("p", labels={"a": "b"}), [POD_LABELS])
    assert world.queue.place_of("team-a/p") == "unschedulable"
    world.fussy.answer = lambda waiting, old, new: old.metadata.labels != new.metadata.labels
    world.queue.update(refused.pod, pod("p", labels={"a": "c"}), [POD_UPDATED, POD_LABELS])
    assert world.queue.place_of("team-a/p") == "active"
    assert world.counts.incoming["active", "UnschedulablePodUpdatePodLabel"] == 1


def test_an_update_of_a_pod_nobody_has_makes_it_new(world):
    world.queue.update(pod("p").pod, pod("p"), [POD_UPDATED])
    assert world.queue.place_of("team-a/p") == "active"
    assert world.counts.incoming["active", "UnschedulablePodUpdate"] == 1


def test_metrics_call_pods_that_come_as_the_release_does():
    world = World(pending_pod="UnscheduledPod")
    world.queue.add(pod("a"))
    world.queue.update(pod("p").pod, pod("p"), [POD_UPDATED])
    assert world.counts.incoming == {("active", "UnscheduledPodAdd"): 2}


def test_a_waiting_pod_is_found_by_its_new_template_after_an_update():
    world, plugin = template_world()
    plugin.answer = False
    world.queue.update(pod("a1", labels={"app": "a"}).pod, pod("a1", labels={"app": "b"}), [POD_UPDATED])
    plugin.answer = lambda waiting, old, new: waiting.labels["app"] == "b"
    assert world.queue.wake(NODE_ADDED) == 3


# Leftovers


def test_who_waits_too_long_is_tried_again(world):
    world.queue.add(pod("old"))
    world.refuse(pod("old"), "Nobody")
    world.clock.time += 100
    world.queue.add(pod("young"))
    world.refuse(pod("young"), "Nobody")
    assert world.queue.next_deadline() == 1000 + 330
    assert world.queue.flush_leftovers(1300.0) == 0
    assert world.queue.flush_leftovers(1300.1) == 1
    entry = world.queue.find("team-a/old")
    assert (world.queue.place_of("team-a/old"), entry.was_flushed) == ("active", True)
    assert world.counts.incoming["active", "UnschedulableTimeout"] == 1
    world.queue.park(world.queue.pop(), ["Nobody"])
    assert not entry.was_flushed


def test_a_gated_pod_is_asked_again_at_most_once_in_five_minutes(world):
    world.gate.closed_for.add("p")
    world.queue.add(pod("p"))
    world.gate.asked.clear()
    for seconds in range(0, 901, 30):
        world.clock.time = 1000.0 + seconds
        world.queue.flush_leftovers(world.clock.time)
    assert world.gate.asked == ["p", "p"]
    assert not world.queue.find("team-a/p").was_flushed


def test_the_deadline_of_leftovers_is_never_in_vain(world):
    world.clock.time = 1007.3
    world.queue.add(pod("p"))
    world.refuse(pod("p"), "Nobody")
    deadline = world.queue.next_deadline()
    assert deadline == 1330
    world.clock.time = deadline
    assert world.queue.flush_leftovers(deadline) == 1
    assert world.queue.next_deadline() is None
