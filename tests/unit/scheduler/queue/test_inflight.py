"""What is kept for pods in flight, and when it is dropped."""

from kubesched.scheduler.framework.wakeups import ClusterEvent
from kubesched.scheduler.queue.inflight import InFlight

E1, E2 = ClusterEvent("Node", 1), ClusterEvent("Node", 2)


def events(flying, uid):
    return [happening.event for happening in flying.since_start(uid)]


def test_each_pod_is_judged_on_what_happened_since_it_was_popped():
    flying = InFlight()
    flying.record(E1, None, None)
    flying.start("p1")
    flying.record(E1, None, None)
    flying.start("p2")
    flying.record(E2, "old", "new")
    assert (events(flying, "p1"), events(flying, "p2")) == ([E1, E2], [E2])
    assert flying.since_start("p2")[0].new == "new"
    assert flying.since_start("p3") is None
    assert flying.counts() == {"NodeAdd": 1, "NodeDelete": 1, "PodPopped": 2}


def test_the_younger_pods_end_drops_nothing_the_older_ones_end_drops_what_only_it_needed():
    flying = InFlight()
    for uid in ("p1", "p2", "p3"):
        flying.start(uid)
        flying.record(E1, None, uid)
    flying.done("p2")
    assert len(flying.since_start("p1")) == 3
    flying.done("p1")
    assert flying.counts() == {"NodeAdd": 1, "PodPopped": 1}
    assert [happening.new for happening in flying.since_start("p3")] == ["p3"]
    flying.done("p3")
    assert flying.counts() == {} and len(flying) == 0


def test_positions_stay_right_after_everything_was_dropped():
    flying = InFlight()
    flying.start("p1")
    flying.record(E1, None, None)
    flying.done("p1")
    flying.start("p2")
    flying.record(E2, None, None)
    assert events(flying, "p2") == [E2]
    flying.clear()
    flying.start("p4")
    flying.record(E1, None, None)
    assert events(flying, "p4") == [E1]
    assert list(flying.uids()) == ["p4"]
