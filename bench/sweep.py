"""How many trials a second a sweep makes, and how that grows with the cores it has.

usage: bench/sweep.py [--seeds 4]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import msgspec

from kubesched.cli.layout import print_table
from kubesched.tools.experiments.executors import run_in_processes
from kubesched.tools.experiments.experiment import Seeds, read_experiment

EXPERIMENT = Path(__file__).parent.parent / "docs" / "examples" / "packing-sweep.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    experiment = read_experiment(EXPERIMENT)
    seeds = Seeds(start=0, count=given.seeds)
    experiment = msgspec.structs.replace(experiment, file=msgspec.structs.replace(experiment.file, seeds=seeds))
    trials, cores = list(experiment.trials()), os.cpu_count() or 1
    rows: list[list[str]] = []
    alone = 0.0
    for workers in sorted({1, *(2**i for i in range(cores.bit_length()) if 2**i <= cores), cores}):
        started = time.perf_counter()
        done = list(run_in_processes(experiment, trials, workers))
        assert not any(outcome.error for _, outcome in done)
        rate = len(trials) / (time.perf_counter() - started)
        alone = alone or rate
        rows.append([str(workers), f"{len(trials)}", f"{rate:.2f}", f"{rate / alone:.2f}"])
    print_table(["processes", "trials", "trials a second", "of one"], rows, right=range(4))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {cores} cores; beginning the processes is counted")


if __name__ == "__main__":
    main()
