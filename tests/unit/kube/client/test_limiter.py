"""The rate limit lets bursts through, spaces the rest, and says when it is what holds throughput."""

from __future__ import annotations

import pytest
from client_fakes import FakeChance

from kubesched.kube.client.limiter import TokenBucket
from kubesched.kube.client.timing import Backoff
from kubesched.testing.fakes import FakeClock


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(10, 3, FakeClock())
    assert [round(bucket.take(), 3) for _ in range(6)] == [0, 0, 0, 0.1, 0.2, 0.3]


def test_tokens_come_back_up_to_the_burst() -> None:
    clock = FakeClock()
    bucket = TokenBucket(10, 3, clock)
    for _ in range(3):
        bucket.take()
    clock.time += 100
    assert [round(bucket.take(), 3) for _ in range(4)] == [0, 0, 0, 0.1]


@pytest.mark.parametrize(("qps", "burst", "free"), [(0, 0, 100), (-1, 5, 1000), (50, 7, 7)])
def test_zero_means_the_default_and_a_negative_rate_no_limit(qps: float, burst: int, free: int) -> None:
    bucket = TokenBucket(qps, burst, FakeClock())
    assert [bucket.take() for _ in range(free)] == [0.0] * free
    assert (bucket.take() == 0.0) is (qps < 0)


def test_holding_throughput_is_logged_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    bucket = TokenBucket(1, 1, clock, "scheduler")
    for _ in range(5):
        bucket.take()
    assert len(caplog.records) == 1
    clock.time += 10
    for _ in range(8):
        bucket.take()
    assert len(caplog.records) == 2
    text = caplog.records[1].getMessage()
    assert "requests of client scheduler had to wait" in text
    assert "a limit of 1 a second with bursts of 1; raise clientConnection.qps" in text


async def test_acquire_sleeps_as_long_as_it_must() -> None:
    clock = FakeClock()
    bucket = TokenBucket(2, 1, clock)
    await bucket.acquire()
    await clock.run(bucket.acquire())
    assert clock.slept == [0.5]


def test_backoff_doubles_to_its_cap_and_starts_over_after_quiet() -> None:
    clock = FakeClock()
    backoff = Backoff(clock, FakeChance(0.5))
    assert [round(backoff.next(), 2) for _ in range(8)] == [1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45.0, 45.0]
    clock.time += 121
    assert round(backoff.next(), 2) == 1.2
