"""Run seeds: `python -m chaos --seeds 200`, `--seconds 3600`, or one again with its log: `--replay SEED`.

Out: a line of counts, and exit code 0 when nothing was found. A failure prints its seed, what was violated, and the
shortest script of faults that still violates anything; `--replay SEED --faults 0,3` plays exactly those, with what the
program logged in between, and lets `kubesched why` say of the pods that wait in the end what they wait for.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

from chaos.faults import Fault, draw
from chaos.known_bugs import BUGS
from chaos.run import Outcome, Result, outcome, run
from chaos.scene import scene_of
from chaos.shrinking import shrink
from chaos.world import GANGS

MOST_WHYS = 3
SEEDS_PER_WORKER = 50


def _seeds(first: int, count: int | None, seconds: float | None) -> Iterator[str]:
    end = time.monotonic() + seconds if seconds is not None else None
    for number in itertools.count(first) if count is None else range(first, first + count):
        if end is not None and time.monotonic() >= end:
            return
        yield str(number)


def _outcomes(seeds: Iterator[str], workers: int) -> Iterator[Outcome]:
    """Run seeds on several cores, a few ahead of what is looked at."""
    # Workers come from a process that has imported everything and run a seed, and has no thread that a fork would lose. They
    # leave their dead unburied, at 3 MB a seed.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chaos.warmed_up"])
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=SEEDS_PER_WORKER) as pool:
        under_way = {pool.submit(outcome, seed) for seed in itertools.islice(seeds, 2 * workers)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            under_way |= {pool.submit(outcome, seed) for seed in itertools.islice(seeds, len(done))}
            yield from (one.result() for one in done)


def _search(first: int, count: int | None, seconds: float | None, workers: int, page: Path | None) -> int:
    began, failed, n_runs, virtual = time.monotonic(), [], 0, 0.0
    for seed, violations, lasted in _outcomes(_seeds(first, count, seconds), workers):
        n_runs, virtual = n_runs + 1, virtual + lasted
        if violations:
            failed.append(seed)
            print(f"seed {seed}: {violations[0]}", flush=True)
        elif n_runs % 100 == 0:
            print(f"{n_runs} seeds, {len(failed)} failed, {time.monotonic() - began:.0f} s", flush=True)
    wall = time.monotonic() - began
    told = f"{n_runs} seeds from {first}: {len(failed)} failed; {virtual / 3600:.1f} hours of cluster life in {wall:.0f} s"
    print(told)
    if page is not None:
        write_between(page, "run", [f"{told}, on {workers} workers."])
    for seed in failed[:3]:
        _explain(run(seed))
    return 1 if failed else 0


def _explain(result: Result) -> None:
    print(f"\nseed {result.seed}:", *(f"  {text}" for text in result.violations[:5]), sep="\n")
    kept = shrink(result.seed, result.script)
    numbers = ",".join(str(result.script.index(fault)) for fault in kept)
    print(f"  fails with {len(kept)} of its {len(result.script)} faults:", *(f"    {fault}" for fault in kept), sep="\n")
    print(f"  replay with: make chaos REPLAY={result.seed} FAULTS={numbers or '-'}", flush=True)


def _replay(seed: str, faults: str | None) -> int:
    script: list[Fault] | None = None
    if faults is not None:
        whole = run(seed).script
        script = [whole[int(number)] for number in faults.split(",") if number not in ("", "-")]
    result = run(seed, script, is_loud=True)
    for fault in result.script:
        print(f"# {fault}")
    print("\n".join(result.history.lines))
    _ask_why(result)
    return 1 if result.violations else 0


def _ask_why(result: Result) -> None:
    """Keep the cluster as it was in the end, and let the program explain the pods that are on no node."""
    pending = [obj["metadata"] for obj in result.objects if obj["kind"] == "Pod" and not obj["spec"].get("nodeName")]
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=f"chaos-{result.seed}-", suffix=".yaml", delete=False
    ) as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": result.objects}, file)
    print(f"\n# the cluster in the end: {file.name}, for every command that takes --snapshot")
    for meta in pending[:MOST_WHYS]:
        command = ["why", f"{meta['namespace']}/{meta['name']}", "--snapshot", file.name]
        if scene_of(result.seed).has_gangs:
            command += ["--feature-gates", GANGS]
        print(f"\n$ kubesched {' '.join(command)}", flush=True)
        subprocess.run([sys.executable, "-m", "kubesched", *command], check=False)


def _hunt(name: str, first: int, count: int) -> int | None:
    """Put a bug back and return how many seeds it took until it was found; None if it was not."""
    began = time.monotonic()
    with BUGS[name].put_back():
        for number in range(first, first + count):
            scene = scene_of(str(number))
            if not BUGS[name].can_show(scene, {fault.kind for fault in draw(scene)}):
                continue
            if violations := run(str(number)).violations:
                print(f"{name}: found by seed {number} after {time.monotonic() - began:.0f} s: {violations[0]}", flush=True)
                return number - first + 1
    print(f"{name}: not found by {count} seeds from {first}", flush=True)
    return None


def _hunt_all(names: Sequence[str], first: int, count: int, page: Path | None) -> int:
    """Put bugs back one after the other; write the counts into a page where one is given, and leave those of others there."""
    found = {name: _hunt(name, first, count) for name in names}
    if page is not None:
        rows = {name: n or f"not by {count}" for name, n in found.items()}
        rows = {name: n for name, n in {**_counts(page), **rows}.items() if name in BUGS}
        in_order = sorted(rows.items(), key=lambda row: (not isinstance(row[1], int), row[1], row[0]))
        lines = [f"| `{name}` | {BUGS[name].what} | {n} |" for name, n in in_order]
        write_between(page, "bugs", ["| `BUG=` | what is wrong | seeds |", "|---|---|---|", *lines])
    return 1 if None in found.values() else 0


def _counts(page: Path) -> dict[str, int | str]:
    """Return the counts that a page has already."""
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| ([^|]+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(n) if n.isdigit() else n for name, n in rows}


def write_between(page: Path, marker: str, lines: Sequence[str]) -> None:
    """Replace what stands between two comments of a page."""
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for it: {begin} ... {end}")
    page.write_text("\n".join([before + begin, *lines, end]) + after, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(prog="chaos", description="Simulate the whole system, seed by seed.")
    parser.add_argument("--seeds", type=int, default=None, help="how many seeds (200 without --seconds)")
    parser.add_argument("--seconds", type=float, default=None, help="how long, in real time")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--replay", metavar="SEED", default=None, help="one seed again, with its log")
    parser.add_argument("--faults", default=None, help="of its faults only these, by their numbers")
    parser.add_argument("--bug", default=None, help="how many seeds it takes to find a bug that is put back; A,B or all")
    parser.add_argument("--page", type=Path, default=None, help="write the counts into this page, between its comments")
    given = parser.parse_args(arguments)
    if given.bug is not None:
        names = sorted(BUGS) if given.bug == "all" else given.bug.split(",")
        if unknown := [name for name in names if name not in BUGS]:
            parser.error(f"there is no bug {unknown[0]}: one of {', '.join(sorted(BUGS))}, several with commas, or all")
        return _hunt_all(names, given.first, given.seeds or 2000, given.page)
    if given.replay is not None:
        return _replay(given.replay, given.faults)
    count = given.seeds if given.seeds is not None or given.seconds is not None else 200
    return _search(given.first, count, given.seconds, given.workers, given.page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
