"""Prometheus' protobuf exposition: the messages of io.prometheus.client, written by hand.

In: families with their series. Out: bytes, each MetricFamily behind its length, which is what a scraper asks for that
wants native histograms. Only what is served is here: gauges, counters and histograms, never summaries or exemplars.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from kubesched.telemetry.native_buckets import ZERO_THRESHOLD, NativeBuckets

CONTENT_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_KINDS = {"counter": 0, "gauge": 1, "untyped": 3, "histogram": 4}
_VALUES = {"gauge": 2, "counter": 3, "untyped": 5}
"""The field of a Metric that holds its value."""
_HISTOGRAM = 7


def family(name: str, text: str, kind: str, metrics: Iterable[bytes]) -> bytes:
    """Return a family behind its length."""
    body = b"".join(
        (
            bytes_field(1, name.encode()),
            bytes_field(2, text.encode()),
            _key(3, 0) + varint(_KINDS[kind]),
            *(bytes_field(4, metric) for metric in metrics),
        )
    )
    return varint(len(body)) + body


def number(kind: str, labels: Mapping[str, str], value: float) -> bytes:
    """Return one series of a counter or gauge."""
    return _labels(labels) + bytes_field(_VALUES[kind], _double(1, value))


def histogram(
    labels: Mapping[str, str],
    bounds: Sequence[float],
    counts: Sequence[int],
    total: float,
    native: NativeBuckets | None,
) -> bytes:
    """Return one series of a histogram: its classic buckets, counted up, and its native ones where they are kept."""
    # The numbers are the fields of io.prometheus.client.Histogram: 1 count, 2 sum, 3 buckets, 5 schema, 6 zero threshold, 7
    # zero count, 12 spans, 13 differences.
    parts = [uint_field(1, counts[-1]), _double(2, total)]
    parts += [bytes_field(3, uint_field(1, count) + _double(2, bound)) for bound, count in zip(bounds, counts, strict=False)]
    if native is not None:
        spans, differences = native.spans()
        parts += [_sint(5, native.schema), _double(6, ZERO_THRESHOLD), uint_field(7, native.zeros)]
        parts += [bytes_field(12, _sint(1, distance) + uint_field(2, length)) for distance, length in spans]
        parts += [_sint(13, difference) for difference in differences]
    return _labels(labels) + bytes_field(_HISTOGRAM, b"".join(parts))


def _labels(labels: Mapping[str, str]) -> bytes:
    pairs = (bytes_field(1, name.encode()) + bytes_field(2, value.encode()) for name, value in sorted(labels.items()))
    return b"".join(bytes_field(1, pair) for pair in pairs)


def _key(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def varint(value: int) -> bytes:
    """Return a whole number as it stands on the wire: seven bits a byte, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def uint_field(field: int, value: int) -> bytes:
    """Return a field that is a whole number."""
    return _key(field, 0) + varint(value)


def _sint(field: int, value: int) -> bytes:
    # Zigzag: 0, -1, 1, -2 become 0, 1, 2, 3, so that small negative numbers stay short.
    return _key(field, 0) + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a field that is a text, or a message."""
    return _key(field, 2) + varint(len(value)) + value
