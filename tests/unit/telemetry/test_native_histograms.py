"""Native histograms: buckets by arithmetic, their form on the wire, and who gets it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kubesched.telemetry.exposing import encoded, register
from kubesched.telemetry.metrics import Metrics, MetricsSettings
from kubesched.telemetry.native_buckets import MOST_BUCKETS, NativeBuckets, bucket_of, upper_bound

# Values and the buckets that client_golang puts them into with a factor of 1.1, which is schema 3.
BUCKETS = [(1.0, 0), (1.05, 1), (2.0, 8), (1.0000001, 1), (0.5, -8), (0.001, -79), (0.1, -26), (100.0, 54), (4.0, 16)]


@pytest.mark.parametrize(("value", "bucket"), BUCKETS)
def test_a_value_has_its_bucket(value: float, bucket: int) -> None:
    assert bucket_of(value) == bucket
    assert upper_bound(bucket - 1) < value <= upper_bound(bucket)
    assert bucket == math.ceil(math.log2(value) * 8 - 1e-9)


@given(st.lists(st.floats(0, 1e12), max_size=60))
def test_taking_in_many_counts_each(samples: list[float]) -> None:
    together, alone = NativeBuckets(), NativeBuckets()
    together.take_in(sorted(samples))
    for sample in samples:
        alone.take_in([sample])
    assert (together.counts, together.zeros) == (alone.counts, alone.zeros)
    assert sum(together.counts.values()) + together.zeros == len(samples)


def test_too_many_buckets_are_halved_and_series_of_different_width_add_up() -> None:
    wide, narrow = NativeBuckets(), NativeBuckets()
    wide.take_in([2.0 ** (step / 8) for step in range(-100, 300)])
    assert len(wide.counts) <= MOST_BUCKETS and wide.schema == 1 and sum(wide.counts.values()) == 400
    narrow.take_in([1.0, 1.0, 3.0])
    narrow.merge(wide)
    assert narrow.schema == 1 and sum(narrow.counts.values()) == 403
    assert narrow.counts[0] == wide.counts[0] + 2


@pytest.mark.parametrize(
    ("counts", "spans", "differences"),
    [
        ({}, [], []),
        ({5: 2}, [(5, 1)], [2]),
        ({-3: 1, -2: 4, -1: 4}, [(-3, 3)], [1, 3, 0]),
        ({0: 3, 3: 1}, [(0, 4)], [3, -3, 0, 1]),
        ({0: 3, 4: 1}, [(0, 1), (3, 1)], [3, -2]),
    ],
    ids=["none", "one", "a run", "a small gap is filled", "a large gap begins a new run"],
)
def test_runs_of_buckets(counts: dict[int, int], spans: list[Any], differences: list[int]) -> None:
    native = NativeBuckets()
    native.counts.update(counts)
    assert native.spans() == (spans, differences)


# Reading the wire, in the test's own words


def fields(body: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(body):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            yield key >> 3, struct.unpack("<d", body[at : at + 8])[0]
            at += 8
        else:
            length = varint()
            yield key >> 3, body[at : at + length]
            at += length


def messages(body: bytes) -> dict[str, tuple[int, list[bytes]]]:
    """Return the families of a delimited stream by name: their type, and their metrics."""
    found, at = {}, 0
    while at < len(body):
        length = shift = 0
        while True:
            byte = body[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        parts = list(fields(body[at : at + length]))
        at += length
        kind = next(value for number, value in parts if number == 3)
        name = next(value for number, value in parts if number == 1).decode()
        found[name] = kind, [value for number, value in parts if number == 4]
    return found


def scraped(has_native: bool) -> dict[str, tuple[int, list[bytes]]]:
    metrics = Metrics(MetricsSettings(has_native_histograms=has_native))
    for seconds in (0.003, 0.003, 0.5):
        metrics.schedule_attempts("scheduled", "default-scheduler", seconds)
    return messages(encoded(register(metrics, CollectorRegistry())))


@pytest.mark.parametrize("has_native", [False, True])
def test_a_histogram_has_classic_buckets_and_with_the_gate_native_ones(has_native: bool) -> None:
    kind, (metric,) = scraped(has_native)["scheduler_scheduling_attempt_duration_seconds"]
    parts = list(fields(metric))
    labels = [dict(fields(value)) for number, value in parts if number == 1]
    assert kind == 4 and [(pair[1], pair[2]) for pair in labels] == [
        (b"profile", b"default-scheduler"),
        (b"result", b"scheduled"),
    ]
    histogram = list(fields(next(value for number, value in parts if number == 7)))
    assert dict(histogram)[1] == 3 and dict(histogram)[2] == pytest.approx(0.506)
    classic = [tuple(dict(fields(value)).values()) for number, value in histogram if number == 3]
    assert len(classic) == 15 and classic[2] == (2, 0.004) and classic[-1][0] == 3
    spans = [dict(fields(value)) for number, value in histogram if number == 12]
    differences = [value for number, value in histogram if number == 13]
    if has_native:
        assert dict(histogram)[5] == 6 and dict(histogram)[6] == 2.0**-128 and dict(histogram)[7] == 0  # sint32 3 is 6
        assert spans == [{1: 2 * 67 - 1, 2: 1}, {1: 2 * 58, 2: 1}]  # buckets -67 and -8, zigzag
        assert differences == [4, 1]  # two, then one fewer
    else:
        assert not spans and not differences and 5 not in dict(histogram)


def test_counters_and_gauges_and_the_librarys_own_are_there_too() -> None:
    found = scraped(False)
    kind, (metric,) = found["scheduler_schedule_attempts_total"]
    assert kind == 0 and dict(fields(dict(fields(metric))[3])) == {1: 3.0}
    assert found["python_info"][0] == 1 and found["python_gc_collections_total"][0] == 0
