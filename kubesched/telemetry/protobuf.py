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


def is_wanted(accept: str) -> bool:
    """Return whether an Accept header prefers this form to text."""
    for media, parameters in _by_preference(accept):
        if media == "application/vnd.google.protobuf" and parameters.get("proto") == "io.prometheus.client.MetricFamily":
            if parameters.get("encoding") == "delimited":
                return True
        elif media == "text/plain" and parameters.get("version", "0.0.4") == "0.0.4":
            return False
    return False


def _by_preference(accept: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for part in accept.split(","):
        media, *rest = (word.strip() for word in part.split(";"))
        pairs = (word.partition("=") for word in rest)
        found.append((media.lower(), {name.strip(): value.strip().strip('"') for name, _, value in pairs}))
    return sorted(found, key=lambda each: -_quality(each[1]))


def _quality(parameters: Mapping[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0


def family(name: str, text: str, kind: str, metrics: Iterable[bytes]) -> bytes:
    """Return a family behind its length."""
    body = b"".join(
        (
            _bytes(1, name.encode()),
            _bytes(2, text.encode()),
            _key(3, 0) + varint(_KINDS[kind]),
            *(_bytes(4, metric) for metric in metrics),
        )
    )
    return varint(len(body)) + body


def number(kind: str, labels: Mapping[str, str], value: float) -> bytes:
    """Return one series of a counter or gauge."""
    return _labels(labels) + _bytes(_VALUES[kind], _double(1, value))


def histogram(
    labels: Mapping[str, str],
    bounds: Sequence[float],
    counts: Sequence[int],
    total: float,
    native: NativeBuckets | None,
) -> bytes:
    """Return one series of a histogram: its classic buckets, counted up, and its native ones where they are kept."""
    parts = [_uint(1, counts[-1]), _double(2, total)]
    parts += [_bytes(3, _uint(1, count) + _double(2, bound)) for bound, count in zip(bounds, counts, strict=False)]
    if native is not None:
        spans, differences = native.spans()
        parts += [_sint(5, native.schema), _double(6, ZERO_THRESHOLD), _uint(7, native.zeros)]
        parts += [_bytes(12, _sint(1, distance) + _uint(2, length)) for distance, length in spans]
        parts += [_sint(13, difference) for difference in differences]
    return _labels(labels) + _bytes(_HISTOGRAM, b"".join(parts))


def _labels(labels: Mapping[str, str]) -> bytes:
    return b"".join(_bytes(1, _bytes(1, name.encode()) + _bytes(2, value.encode())) for name, value in sorted(labels.items()))


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


def _uint(field: int, value: int) -> bytes:
    return _key(field, 0) + varint(value)


def _sint(field: int, value: int) -> bytes:
    return _key(field, 0) + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + varint(len(value)) + value
