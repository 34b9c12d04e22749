"""What is written down while the scheduler runs: counts in dictionaries, durations in short lists.

Writing is the hot path, so it only appends; sorting into buckets is left to whoever reads, or to the writer once in
`FULL` samples. Nothing here knows Prometheus. One thread writes and reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate

from kubesched.telemetry.families import Bounds
from kubesched.telemetry.native_buckets import NativeBuckets

FULL = 1024
"""Samples that a series may hold unsorted: a bound on memory, large enough to make the sorting cheap for each."""

Labels = tuple[str, ...]
Counts = defaultdict[Labels, float]


class Samples(list[float]):
    """One series of a histogram: what was appended and not yet sorted, and the buckets of all the rest."""

    __slots__ = ("bounds", "native", "sorted_in", "total")

    def __init__(self, bounds: Bounds, has_native: bool = False) -> None:
        super().__init__()
        self.native = NativeBuckets() if has_native else None
        self.bounds = bounds
        self.sorted_in = [0] * (len(bounds) + 1)
        self.total = 0.0

    def fold(self) -> None:
        """Sort what was appended into the buckets."""
        # Sorting all and looking for each bound in them is half the cost of looking for each of them in the bounds.
        # Example: bounds 1, 2, 4 and samples 3, 1, 9. Sorted they are 1, 3, 9. One is at most 1, none more at most 2, one more
        # at most 4, and one is left for +Inf.
        self.total += sum(self)
        self.sort()
        before = 0
        for bucket, bound in enumerate(self.bounds):
            upto = bisect_right(self, bound, before)
            self.sorted_in[bucket] += upto - before
            before = upto
        self.sorted_in[-1] += len(self) - before
        if self.native is not None:
            self.native.take_in(self)
        self.clear()

    def read(self) -> tuple[list[int], float]:
        """Return how many samples are at most each bound, the last for all of them, and their sum."""
        self.fold()
        # Prometheus wants cumulative counts: each bucket has all samples up to its bound.
        return list(accumulate(self.sorted_in)), self.total

    def merge(self, other: Samples, scale: float = 1.0) -> None:
        """Add another series, whose bounds are ours divided by the scale; native buckets cannot be scaled."""
        other.fold()
        self.sorted_in = [mine + theirs for mine, theirs in zip(self.sorted_in, other.sorted_in, strict=True)]
        self.total += other.total * scale
        # Scaling multiplies every bound, and native bounds are fixed powers of two.
        if self.native is not None and other.native is not None and scale == 1.0:
            self.native.merge(other.native)
        else:
            self.native = None


class Histogram(dict[Labels, Samples]):
    """The series of one histogram, each made when it is first written to."""

    __slots__ = ("bounds", "has_native")

    def __init__(self, bounds: Bounds, has_native: bool = False) -> None:
        super().__init__()
        self.bounds = bounds
        self.has_native = has_native

    def __missing__(self, labels: Labels) -> Samples:
        series = self[labels] = Samples(self.bounds, self.has_native)
        return series

    def observe(self, labels: Labels, value: float) -> None:
        """Write one sample down."""
        series = self[labels]
        series.append(value)
        if len(series) >= FULL:
            series.fold()


def new_counts() -> Counts:
    """Return counts that start at zero."""
    return defaultdict(float)
