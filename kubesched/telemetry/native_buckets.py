"""Native buckets: a histogram whose bounds follow from the data, as Prometheus keeps them beside the classic ones.

In: sorted samples. Out: counts by bucket number, and their form on the wire. Bounds are powers of two and `2 ** schema`
steps between them; with schema 3 each is 9 % above the one before (the reference asks for at most 10 %). Where more than
160 buckets are in use, pairs of neighbours become one and the schema goes down. Samples are times, sizes and counts: one
that is not above zero goes to the zero bucket.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

SCHEMA = 3
MOST_BUCKETS = 160
ZERO_THRESHOLD = 2.0**-128
_GAP = 2
"""Empty buckets that are written out rather than begin a new span."""

_STEPS = tuple(0.5 * 2 ** (step / 2**SCHEMA) for step in range(2**SCHEMA))


class NativeBuckets:
    """The buckets of one series."""

    __slots__ = ("counts", "schema", "zeros")

    def __init__(self) -> None:
        self.schema = SCHEMA
        self.zeros = 0
        self.counts: defaultdict[int, int] = defaultdict(int)

    def take_in(self, samples: Sequence[float]) -> None:
        """Count sorted samples. Alike ones are counted together: a thousand durations lie in some dozen buckets."""
        # The samples are sorted, so all samples of a bucket lie together: one search for its upper bound counts them, instead
        # of a logarithm for each.
        at = bisect_right(samples, ZERO_THRESHOLD)
        self.zeros += at
        while at < len(samples):
            bucket = bucket_of(samples[at])
            upto = bisect_right(samples, upper_bound(bucket), at) if samples[at] < math.inf else len(samples)
            self.counts[self._coarse(bucket, SCHEMA)] += upto - at
            at = upto
        self._limit()

    def merge(self, other: NativeBuckets) -> None:
        """Add another series' counts."""
        self.zeros += other.zeros
        # Only the finer one can be made coarser, so both come to the coarser schema.
        while self.schema > other.schema:
            self._halve()
        for bucket, count in other.counts.items():
            self.counts[self._coarse(bucket, other.schema)] += count
        self._limit()

    def spans(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Return runs of buckets, each with its distance from the end of the run before and its length, and for every
        bucket in them how its count differs from the one before."""
        spans: list[tuple[int, int]] = []
        differences: list[int] = []
        # Example: buckets 3, 4 and 9 with counts 5, 7 and 1.
        #   spans         (3, 2): skip 3, then 2 buckets      (4, 1): skip 4, then 1 bucket
        #   differences   5, 2, -6
        # A gap of one or two buckets is written as zeros, because a new span is longer.
        before, following = 0, 0
        for bucket in sorted(self.counts):
            distance = bucket - following
            if not spans or distance > _GAP:
                spans.append((distance, 0))
                empty = 0
            else:
                empty = distance
            for count in (*[0] * empty, self.counts[bucket]):
                differences.append(count - before)
                before = count
            start, length = spans[-1]
            spans[-1] = start, length + empty + 1
            following = bucket + 1
        return spans, differences

    def _coarse(self, bucket: int, schema: int) -> int:
        # Each step to a coarser schema makes one bucket of two neighbours.
        for _ in range(schema - self.schema):
            bucket = _half(bucket)
        return bucket

    def _limit(self) -> None:
        while len(self.counts) > MOST_BUCKETS:
            self._halve()

    def _halve(self) -> None:
        # Half as many buckets, each twice as wide. What was counted before cannot be told apart any more; Prometheus allows
        # that.
        finer, self.counts = self.counts, defaultdict(int)
        self.schema -= 1
        for bucket, count in finer.items():
            self.counts[_half(bucket)] += count


def bucket_of(value: float) -> int:
    """Return the number of the bucket, in the finest schema, that a value above zero belongs to; bounds belong to the
    bucket below them."""
    if value == math.inf:
        return (1024 << SCHEMA) + 1
    # `frexp` gives the power of two exactly, and `_STEPS` the place between two powers. A logarithm would be rounded, and a
    # value on a bound could fall on the wrong side.
    fraction, exponent = math.frexp(value)
    return bisect_left(_STEPS, fraction) + ((exponent - 1) << SCHEMA)


def upper_bound(bucket: int) -> float:
    """Return the largest value of a bucket of the finest schema."""
    fraction, exponent = _STEPS[bucket & (2**SCHEMA - 1)], (bucket >> SCHEMA) + 1
    return math.ldexp(fraction, exponent) if exponent <= 1024 else math.nextafter(math.inf, 0)


def _half(bucket: int) -> int:
    """Return the number of a bucket once it and its neighbour are one."""
    # Rounded up: bucket 3 and 4 become 2. Bounds belong to the bucket below them, so the upper bound of the pair is that of the
    # even one.
    return -(-bucket // 2)
