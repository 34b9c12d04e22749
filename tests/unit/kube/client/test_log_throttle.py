"""A failure that lasts is told at once and then ever more rarely; another one, or one that comes back, at once."""

from kubesched.kube.client.timing import LogThrottle
from kubesched.testing.fakes import FakeClock


def test_what_lasts_is_told_ever_more_rarely() -> None:
    clock = FakeClock()
    complaints = LogThrottle(clock)
    told = []
    for second in range(0, 3000, 2):
        clock.time = second
        if complaints.is_worth_saying("connection refused"):
            told.append(second)
    assert told == [0, 30, 90, 210, 450, 930, 1530, 2130, 2730]


def test_what_is_new_or_comes_back_is_told_at_once() -> None:
    complaints = LogThrottle(FakeClock())
    assert not complaints.settle()
    assert complaints.is_worth_saying("connection refused")
    assert not complaints.is_worth_saying("connection refused")
    assert complaints.is_worth_saying("forbidden")
    assert complaints.current == "forbidden"
    assert complaints.settle() and not complaints.current
    assert complaints.is_worth_saying("forbidden")
