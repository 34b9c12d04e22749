"""Pods that never fit beside pods that do: how much do they slow them down?

The same pods that fit three times: alone; while as many that ask for more than any node has wait, tried in vain before
(`waiting`); and with as many of those tried in between, one after the other (`between`). Every pod that is placed is
confirmed, as an API server would: the bound pod arrives through the intake, where it may wake whoever waits. What is timed
is the decision and the confirmation of the pods that fit; the runs take turns, and the best of several counts, because
the machine's other work only ever adds.

    python bench/unschedulable.py --nodes 5000 --pods 10000
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from typing import Any

import msgspec

from kubesched.kube.api.pod import Pod, ResourceRequirements
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding
from kubesched.scheduler.engine.gc_tuning import spare_the_collector
from kubesched.tools.bench import workloads
from kubesched.tools.bench.engine import Bench, build_engine

_HUGE = ResourceRequirements(requests={"cpu": "100", "memory": "500Mi"})


def hopeless(i: int) -> Pod:
    """Return a pod that asks for more cpu than any node has."""
    pod = workloads.pod(i, "basic")
    containers = (msgspec.structs.replace(pod.spec.containers[0], resources=_HUGE),)
    meta = msgspec.structs.replace(pod.metadata, name=f"huge-{i}", uid=f"huge-uid-{i}")
    return msgspec.structs.replace(pod, metadata=meta, spec=msgspec.structs.replace(pod.spec, containers=containers))


def measure(n_nodes: int, n_pods: int, how: str) -> tuple[float, float]:
    """Return the seconds that the pods that fit took, and those that the others took."""
    engine = build_engine(Bench())
    for obj in workloads.cluster("basic", n_nodes, 1000, n_pods):
        engine.intake.apply(obj.kind, None, obj)
    placed: list[AssumedBinding] = []
    engine.bookings.hand_over = placed.append
    engine.failures.writes = False
    fits = [workloads.pod(i, "basic") for i in range(n_pods)]
    never = [hopeless(i) for i in range(n_pods)] if how != "alone" else []
    in_turns = [pod for pair in zip(fits, never, strict=True) for pod in pair] if how == "between" else [*never, *fits]
    for pod in in_turns:
        engine.intake.apply("Pod", None, pod)
    gc.collect()
    spare_the_collector()
    fitting = others = 0.0
    clock = time.process_time
    for _ in in_turns:
        before, count = clock(), len(placed)
        engine.step()
        if len(placed) == count:
            others += clock() - before
            continue
        binding = placed[-1]
        engine.queue.done(binding.booked.uid)
        engine.intake.apply("Pod", binding.queued.view.pod, binding.booked.pod)
        fitting += clock() - before
    assert len(placed) == n_pods, f"{len(placed)} of {n_pods} pods were placed"
    gc.unfreeze()
    return fitting, others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    best: dict[str, tuple[float, float]] = {}
    for _ in range(given.repeat):
        for how in ("alone", "waiting", "between"):
            best[how] = min(best.get(how, (float("inf"), 0.0)), measure(given.nodes, given.pods, how))
    figures: dict[str, Any] = {"nodes": given.nodes, "pods": given.pods}
    for how, (fitting, _) in best.items():
        figures[f"{how}_us"] = round(fitting / given.pods * 1e6, 1)
        figures[f"{how}_slower_percent"] = round((fitting / best["alone"][0] - 1) * 100, 1)
    figures["never_fitting_us"] = round(best["between"][1] / given.pods * 1e6, 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
