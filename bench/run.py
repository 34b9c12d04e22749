"""`make bench`: every kind of `kubesched bench engine` in a process of its own, one table, one JSON file.

usage: bench/run.py [--nodes 5000] [--init 1000] [--pods 10000] [--out bench/out/NAME.json] [KIND ...]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from kubesched.cli.bench import print_figures
from kubesched.tools.bench import workloads

HERE = Path(__file__).parent


def measure(kind: str, nodes: int, init: int, pods: int, seed: int) -> dict[str, object]:
    """Run one kind in a fresh process, so that memory is its own."""
    command = [
        sys.executable,
        "-c",
        "from kubesched.cli import main; main()",
        "bench",
        "engine",
        "--kind",
        kind,
        "--nodes",
        str(nodes),
        "--init",
        str(init),
        "--pods",
        str(pods),
        "--seed",
        str(seed),
        "-o",
        "json",
    ]
    figures: dict[str, object] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return figures


def machine() -> dict[str, object]:
    """Say where the figures were made."""
    model = (
        next(
            (
                line.split(":", 1)[1].strip()
                for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                if line.startswith("model name")
            ),
            platform.processor(),
        )
        if Path("/proc/cpuinfo").exists()
        else ""
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(workloads.KINDS))
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--init", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "out" / f"{time.strftime('%Y%m%d-%H%M%S')}.json")
    given = parser.parse_args()
    rows = []
    for kind in given.kinds:
        print(f"{kind} ...", file=sys.stderr, flush=True)
        rows.append(measure(kind, given.nodes, given.init, given.pods, given.seed))
    print_figures(rows, "table")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
