"""Who is next, and what a pod that was popped leaves behind."""

import pytest
from queue_fakes import Fussy, World, pod

from kubesched.scheduler.framework import Plugin, Profile
from kubesched.scheduler.queue import Queue, QueueError
from kubesched.testing import FakeClock


def test_higher_priority_goes_first_then_who_came_first(world):
    for name, priority in (("old-low", None), ("high", 10), ("negative", -1), ("young-low", 0)):
        world.queue.add(pod(name, priority=priority))
        world.clock.time += 1
    assert world.pop_names() == ["high", "old-low", "young-low", "negative"]


def test_pods_that_come_at_the_same_moment_go_in_the_order_in_which_they_came(world):
    for name in "cab":
        world.queue.add(pod(name))
    assert world.pop_names() == ["c", "a", "b"]


def test_without_a_sort_plugin_the_first_to_come_is_the_first_to_go():
    clock = FakeClock(1000.0)
    queue = Queue([Profile("default-scheduler", {})], clock)
    for name, priority in (("first", 0), ("second", 100)):
        queue.add(pod(name, priority=priority))
        clock.time += 1
    assert queue.pop().view.name == "first"


def test_an_update_that_changes_the_priority_changes_the_place_in_line(world):
    one, two = pod("one"), pod("two")
    world.queue.add(one)
    world.clock.time += 1
    world.queue.add(two)
    world.queue.update(two.pod, pod("two", priority=5), [])
    assert world.pop_names() == ["two", "one"]


def test_pop_counts_attempts_and_cycles_and_puts_the_pod_in_flight(world):
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    assert (entry.attempts, world.queue.scheduling_cycle, world.queue.n_in_flight) == (1, 1, 1)
    assert world.queue.is_in_flight("uid-p") and world.queue.find("team-a/p") is None
    world.queue.done("uid-p")
    world.queue.done("uid-p")
    assert world.queue.n_in_flight == 0


def test_an_empty_queue_gives_nothing(world):
    assert world.queue.pop() is None
    assert not world.queue.has_next


def test_a_closed_queue_gives_nothing_and_forgets_who_was_in_flight(world):
    world.queue.add(pod("a"))
    world.queue.add(pod("b"))
    world.queue.pop()
    world.queue.close()
    assert world.queue.pop() is None
    assert not world.queue.has_next and world.queue.is_closed
    assert world.queue.n_in_flight == 0


def test_a_pod_that_is_added_again_while_in_flight_is_dropped_when_popped(world):
    world.queue.add(pod("p"))
    world.queue.pop()
    world.queue.add(pod("p"))
    world.queue.add(pod("other"))
    assert world.pop_names() == ["other"]
    assert len(world.queue) == 0


def test_a_pod_of_the_same_name_makes_room(world):
    world.queue.add(pod("p"))
    world.queue.add(pod("p", uid="another"))
    assert len(world.queue) == 1
    assert world.queue.pop().view.uid == "another"
    assert world.queue.pop() is None


def test_a_pod_of_nobodys_profile_is_refused_by_name(world):
    with pytest.raises(QueueError, match=r"team-a/p.*schedulerName 'elsewhere'"):
        world.queue.add(pod("p", scheduler="elsewhere"))
    assert len(world.queue) == 0


def test_a_deleted_pod_is_gone_wherever_it_was(world):
    for name in ("active", "backoff", "waiting", "flying"):
        world.queue.add(pod(name))
    flying = world.queue.take(pod("flying"))
    world.refuse(pod("waiting"), "Fussy")
    world.refuse(pod("backoff"))
    assert world.queue.place_of("team-a/backoff") == "backoff"
    for name in ("active", "backoff", "waiting", "flying"):
        world.queue.delete(pod(name))
    assert len(world.queue) == 0 and world.queue.n_in_flight == 1
    assert not any(world.counts.unschedulable_pods.values())
    world.queue.park(flying, ["Fussy"])
    assert world.queue.place_of("team-a/flying") == "unschedulable"


def test_two_profiles_share_the_sort_of_the_first():
    class Backwards(Plugin):
        def sort_key(self, pod, queued_at):
            return -queued_at

    world = World()
    backwards = Backwards(None, world.handle)
    first = Profile("one", {"queue_sort": [(backwards, 0)]})
    second = Profile("two", {"queue_sort": [(world.profile("x").sorter, 0)], "filter": [(Fussy(), 0)]})
    queue = Queue([first, second], world.clock)
    queue.add(pod("old", scheduler="two"))
    world.clock.time += 1
    queue.add(pod("young", scheduler="one"))
    assert queue.pop().view.name == "young"


def test_a_sort_that_breaks_keeps_its_pod_waiting_and_names_the_plugin():
    class Broken(Plugin):
        broken = True

        def sort_key(self, pod, queued_at):
            if self.broken and pod.name == "bad":
                raise RuntimeError("no order")
            return queued_at

    world = World()
    sorter = Broken(None, world.handle)
    queue = Queue([Profile("default-scheduler", {"queue_sort": [(sorter, 0)]})], world.clock, observer=world.counts)
    queue.add(pod("bad"))
    queue.add(pod("good"))
    assert queue.place_of("team-a/bad") == "gated"
    assert world.counts.broken == [("Broken", "QueueSort", "team-a/bad")]
    assert queue.pop().view.name == "good"
    sorter.broken = False
    world.clock.time += 301
    assert queue.flush_leftovers(world.clock.time) == 1
    assert queue.pop().view.name == "bad"


def test_taking_one_pod_out_works_from_every_place(world):
    for name in ("active", "backoff", "waiting", "gated"):
        world.queue.add(pod(name))
    world.refuse(pod("waiting"), "Fussy")
    world.refuse(pod("backoff"))
    world.gate.closed_for.add("gated")
    world.refuse(pod("gated"), "Fussy")
    world.queue.activate([pod("gated")])
    assert world.queue.place_of("team-a/gated") == "gated"
    taken = [world.queue.take(pod(name)) for name in ("active", "backoff", "waiting", "gated", "unknown")]
    assert [entry.view.name for entry in taken if entry is not None] == ["active", "backoff", "waiting"]
    assert world.queue.n_in_flight == 3 and world.queue.n_gated == 1
    assert taken[1].attempts == 2


def test_many_removals_do_not_disturb_the_order(world):
    views = [pod(f"p{i:04d}", priority=i % 7) for i in range(500)]
    for view in views:
        world.queue.add(view)
    for view in views[::2]:
        world.queue.delete(view)
    expected = sorted((view for view in views[1::2]), key=lambda view: -view.priority)
    assert world.pop_names() == [view.name for view in expected]
