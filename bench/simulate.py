"""How long simulations take on one core: a day of pods that find room, and a queue that is long for long.

usage: bench/simulate.py [--share 1.0]     of each one's virtual time
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from typing import Any

import msgspec

from kubesched.cli.layout import print_table
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.scenario import Scenario, check, seconds

NODES = [{"name": "n", "count": 1000, "capacity": {"cpu": "32", "memory": "128Gi"}}]
SMALL, LARGE = {"cpu": "2", "memory": "4Gi"}, {"cpu": "4", "memory": "4Gi"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "24 h, 50,000 pods, 1,000 nodes": {
        "seed": 1,
        "duration": "24h",
        "cluster": {"nodes": NODES},
        "workloads": [{"name": "w", "arrivals": {"rate": 0.5787}, "runs": {"exponential": 3600}, "requests": SMALL}],
    },
    "40 min, 40,000 pods, up to 5,000 wait": {
        "seed": 1,
        "duration": "40m",
        "cluster": {"nodes": NODES},
        "workloads": [{"name": "w", "arrivals": {"rate": 16.74}, "runs": {"exponential": 600}, "requests": LARGE}],
    },
}
BARS = {"24 h, 50,000 pods, 1,000 nodes": "30 s"}
"""Of the whole of a scenario. A long queue has none: it must cost its attempts, however long it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0)
    given = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)  # as `kubesched simulate` has it
    rows = []
    for title, document in SCENARIOS.items():
        scenario = msgspec.convert(document, Scenario)
        check(scenario)
        assert scenario.duration is not None
        wall, cpu = time.perf_counter(), time.process_time()
        with build_simulation(scenario) as sim:
            figures = sim.run(given.share * seconds(scenario.duration))
            n_attempts = sim.engine.queue.scheduling_cycle
        taken = time.process_time() - cpu
        rows.append(
            [
                title,
                f"{figures['pods']['arrived']:,}",
                f"{figures['pods']['pending']:,}",
                f"{n_attempts:,}",
                f"{taken:.1f} s",
                BARS.get(title, "-"),
                f"{time.perf_counter() - wall:.1f} s",
                f"{1e6 * taken / max(n_attempts, 1):.0f} us",
            ]
        )
    print_table(
        ["scenario", "pods", "waiting at the end", "attempts", "cpu", "bar", "wall", "cpu an attempt"], rows, right=range(1, 8)
    )
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
