"""How long a pod pauses, in which order pods come back, and who may be popped early."""

import pytest
from queue_fakes import World, pod

from kubesched.scheduler.queue.sub_queues import BackoffQueue


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)])
def test_the_pause_doubles_up_to_the_limit(failures, seconds):
    assert BackoffQueue(1, 10).seconds_after(failures) == seconds


@pytest.mark.parametrize(
    ("initial", "longest", "failures", "seconds"), [(3, 10, 2, 6), (3, 10, 3, 10), (5, 5, 1, 5), (1, 0, 3, 0), (0, 10, 5, 0)]
)
def test_other_limits(initial, longest, failures, seconds):
    assert BackoffQueue(initial, longest).seconds_after(failures) == seconds


def test_a_pause_ends_with_the_second_in_which_it_expires(world):
    world.clock.time = 43200.7
    world.queue.add(pod("p"))
    world.refuse(pod("p"))
    assert world.queue.next_deadline() == 43202
    assert world.queue.flush_backoff(43201.999) == 0
    assert world.queue.place_of("team-a/p") == "backoff"
    assert world.queue.flush_backoff(43202.0) == 1
    assert world.queue.place_of("team-a/p") == "active"
    assert world.queue.next_deadline() is None


def test_a_pod_that_broke_sits_its_pause_out_while_a_refused_one_may_be_popped(world):
    world.queue.add(pod("refused"))
    world.queue.add(pod("broken"))
    refused = world.queue.take(pod("refused"))
    broken = world.queue.take(pod("broken"))
    world.queue.activate([pod("refused")])
    world.queue.park(broken)
    world.queue.park(refused, ["Fussy"])
    assert (world.names("backoff"), world.queue.has_next) == (["broken", "refused"], True)
    assert world.pop_names() == ["refused"]
    assert world.counts.incoming["active", "PopFromBackoffQ"] == 1
    assert not world.queue.has_next
    world.clock.time += 2
    world.queue.flush_backoff(world.clock.time)
    assert world.pop_names() == ["broken"]


def test_pods_of_one_second_come_out_of_backoff_in_the_order_of_the_active_queue(world):
    for name, priority in (("low", 0), ("high", 9), ("later", 99)):
        world.queue.add(pod(name, priority=priority))
    flying = {name: world.queue.take(pod(name)) for name in ("low", "high", "later")}
    world.queue.activate([pod(name) for name in flying])
    world.clock.time = 1000.2
    world.queue.park(flying["low"], ["Fussy"])
    world.clock.time = 1000.4
    world.queue.park(flying["high"], ["Fussy"])
    world.clock.time = 1001.1
    world.queue.park(flying["later"], ["Fussy"])
    assert world.names("backoff") == ["high", "later", "low"]
    assert world.pop_names() == ["high", "low", "later"]


def test_errors_in_a_row_and_refusals_are_counted_apart(world):
    world.queue.add(pod("p"))
    entry = world.queue.pop()
    world.queue.park(entry)
    world.queue.park(world.queue.take(pod("p")))
    assert (entry.consecutive_errors, entry.unschedulable_count) == (2, 0)
    assert world.queue.next_deadline() == 1003
    world.queue.park(world.queue.take(pod("p")), ["Fussy"])
    assert (entry.consecutive_errors, entry.unschedulable_count) == (0, 1)
    world.queue.park(world.queue.take(pod("p")))
    assert (entry.consecutive_errors, entry.unschedulable_count, entry.attempts) == (1, 1, 4)
    assert world.queue.next_deadline() == 1002


def test_no_limit_means_no_pause():
    world = World(max_backoff_seconds=0)
    world.queue.add(pod("p"))
    world.refuse(pod("p"))
    assert world.queue.place_of("team-a/p") == "active"


def test_a_failure_refreshes_the_place_in_line_and_keeps_the_first_attempt(world):
    world.queue.add(pod("failing"))
    world.clock.time += 1
    world.queue.add(pod("patient"))
    entry = world.queue.pop()
    assert (entry.view.name, entry.initial_attempt) == ("failing", 1000.0)
    world.clock.time += 1
    world.queue.park(entry)
    world.clock.time += 5
    world.queue.flush_backoff(world.clock.time)
    assert (entry.timestamp, entry.initial_attempt) == (1002.0, 1000.0)
    assert world.pop_names() == ["patient", "failing"]


def test_without_popping_early_pauses_are_exact_and_gates_are_asked_on_the_way_out():
    world = World(pops_from_backoff=False)
    world.clock.time = 1000.7
    world.queue.add(pod("p"))
    flying = world.queue.pop()
    world.queue.activate([pod("p")])
    world.queue.park(flying, ["Fussy"])
    assert world.queue.place_of("team-a/p") == "backoff"
    assert not world.queue.has_next and world.queue.pop() is None
    assert world.queue.flush_backoff(1001.7) == 0
    world.gate.closed_for.add("p")
    assert world.queue.flush_backoff(1001.8) == 0
    assert world.queue.place_of("team-a/p") == "gated"


def test_an_update_in_backoff_keeps_the_pause_and_takes_the_new_version(world):
    world.queue.add(pod("p"))
    world.refuse(pod("p"))
    world.queue.update(pod("p").pod, pod("p", labels={"a": "b"}), [])
    entry = world.queue.find("team-a/p")
    assert (world.queue.place_of("team-a/p"), entry.view.labels) == ("backoff", {"a": "b"})
    assert world.queue.next_deadline() == 1002
