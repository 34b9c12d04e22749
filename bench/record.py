"""What the record of decisions costs: two engines in one process, one with it and one without, pod by pod in random turns.

Both decide the same pods, so the machine's other work meets them alike. `difference_percent` is the median of what a decision
takes longer with the record, beside the median decision; `throughput_percent` is how many fewer are made a second, the pairs
left out in which either took longer than 99 of 100.

    python bench/record.py basic spread --pods 5000 --repeat 5
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
from random import Random
from statistics import median

import numpy as np

from kubesched.tools.bench.engine import Bench, EngineRun
from kubesched.tools.bench.workloads import KINDS

_KINDS = tuple(kind for kind in KINDS if kind != "gang")  # a step decides a whole gang
_WARM = 200
"""Pods that are not counted: memory is built for them."""


async def measure(kind: str, nodes: int, pods: int, records: int, seed: int) -> dict[str, float]:
    """Let two engines decide the same pods; return what the record costs."""
    random = Random(seed)
    without, recorded = (EngineRun(Bench(kind, nodes, pods=pods, decision_records=kept)) for kept in (0, records))
    taken: list[tuple[float, float]] = []
    for _ in range(pods):
        if random.random() < 0.5:
            bare, full = without.step(), recorded.step()
        else:
            full, bare = recorded.step(), without.step()
        if bare is None or full is None:
            break
        taken.append((bare, full))
    gc.unfreeze()
    micros = np.array(taken[_WARM:]) * 1e6
    usual = micros[(micros <= np.percentile(micros, 99, axis=0)).all(axis=1)]
    medians, sums = np.median(micros, axis=0), usual.sum(axis=0)
    return {
        "without_us": float(medians[0]),
        "difference_percent": float(np.median(micros[:, 1] - micros[:, 0]) / medians[0] * 100),
        "throughput_percent": float((1 - sums[0] / sums[1]) * 100),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", default=_KINDS)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--records", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    if given.pods <= _WARM:
        parser.error(f"--pods: the first {_WARM} are not counted, so it takes more than that")
    for kind in given.kinds:
        runs = [asyncio.run(measure(kind, given.nodes, given.pods, given.records, seed)) for seed in range(given.repeat)]
        figures = {name: round(median(run[name] for run in runs), 1) for name in runs[0]}
        spread = [round(run["throughput_percent"], 1) for run in runs]
        print(json.dumps({"kind": kind, **figures, "throughput_percents": sorted(spread)}), flush=True)


if __name__ == "__main__":
    main()
