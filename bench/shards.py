"""What would several schedulers at once buy, and what would they cost? A simulation with real engines on one cluster.

usage: bench/shards.py [--nodes 1000] [--fill 0.95] [--late 50] [-o table|json] [SCHEDULERS ...]

Pods of 0.25 to 2 cores come until they would fill the nodes to `--fill`. They are dealt out to the schedulers in turn.
`shared`: every scheduler sees all nodes, and learns of the others' bindings only after each has decided `--late` pods; a
binding that no longer fits is refused, and its pod tried again. `shards`: each has nodes of its own and sees no others; what
does not fit there goes to the next one. Besides: the CPU of a decision, with its confirmation, and that of taking in a binding
that another one made; from both follows how many decisions a second so many processes could make, if nothing else held them up.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from dataclasses import dataclass, field
from random import Random

import msgspec
from run import machine

from kubesched.cli.bench import print_figures
from kubesched.kube.api.pod import Pod, ResourceRequirements
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding
from kubesched.tools.bench import workloads
from kubesched.tools.bench.engine import Bench, build_engine

CORES = 4000
SIZES = (250, 500, 1000, 2000)


def asking(number: int, millicores: int) -> Pod:
    """Return a pod of some size."""
    pod = workloads.pod(number, "basic")
    asked = ResourceRequirements(requests={"cpu": f"{millicores}m", "memory": "100Mi"})
    containers = (msgspec.structs.replace(pod.spec.containers[0], resources=asked),)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))


@dataclass
class Scheduler:
    """An engine with some of the nodes, and what it decided since the others last heard of it."""

    seed: int
    nodes: range
    decided: list[AssumedBinding] = field(default_factory=list)
    deciding_seconds: float = 0.0
    learning_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.engine = build_engine(Bench(seed=self.seed))
        for number in self.nodes:
            self.engine.intake.apply("Node", None, workloads.node(number))
        self.engine.bookings.hand_over = self.decided.append
        self.engine.failures.writes = False

    def decide(self, pod: Pod) -> bool:
        """Decide a pod; return whether a node took it. One that none took is not kept waiting."""
        began, before = time.process_time(), len(self.decided)
        self.engine.intake.apply("Pod", None, pod)
        self.engine.step()
        is_placed = len(self.decided) > before
        if not is_placed:
            self.engine.intake.apply("Pod", pod, None)
        self.deciding_seconds += time.process_time() - began
        return is_placed

    def confirm(self, binding: AssumedBinding, bound: Pod) -> None:
        """Learn that a binding of its own stands."""
        began = time.process_time()
        self.engine.queue.done(binding.booked.uid)
        self.engine.intake.apply("Pod", binding.queued.view.pod, bound)
        self.deciding_seconds += time.process_time() - began

    def refuse(self, binding: AssumedBinding) -> None:
        """Learn that a binding of its own was refused."""
        self.engine.queue.done(binding.booked.uid)
        self.engine.store.forget(binding.booked.uid)
        self.engine.intake.apply("Pod", binding.queued.view.pod, None)

    def learn(self, bound: Pod) -> None:
        """Learn of a binding of another one."""
        began = time.process_time()
        self.engine.intake.apply("Pod", None, bound)
        self.learning_seconds += time.process_time() - began


def play(n_schedulers: int, n_nodes: int, fill: float, late: int, is_sharded: bool) -> dict[str, object]:
    """Place the pods, and return the figures."""
    share = n_nodes // n_schedulers
    ranges = [range(i * share, (i + 1) * share) if is_sharded else range(n_nodes) for i in range(n_schedulers)]
    schedulers = [Scheduler(i, each) for i, each in enumerate(ranges)]
    chance, sizes, waiting = Random(1), [], deque()
    while sum(sizes) < fill * CORES * share * n_schedulers:
        sizes.append(chance.choice(SIZES))
        waiting.append((asking(len(sizes) - 1, sizes[-1]), 0))  # and how many schedulers had it in vain
    free = dict.fromkeys((f"node-{number:05d}" for number in range(n_nodes)), CORES)
    n_bound = n_refused = n_moved = n_left = 0
    while waiting:
        for scheduler in schedulers:
            for _ in range(min(late, len(waiting))):
                pod, tries = waiting.popleft()
                if scheduler.decide(pod):
                    continue
                if is_sharded and tries + 1 < n_schedulers:
                    n_moved += 1
                    waiting.append((pod, tries + 1))
                else:
                    n_left += 1
        decided = [(scheduler, binding) for scheduler in schedulers for binding in scheduler.decided]
        chance.shuffle(decided)  # who comes first to the API server
        for scheduler, binding in decided:
            pod = binding.queued.view.pod
            asked = sizes[int(pod.name.rpartition("-")[2])]
            if free[binding.node_name] < asked:
                n_refused += 1
                scheduler.refuse(binding)
                waiting.append((pod, 0))
                continue
            free[binding.node_name] -= asked
            n_bound += 1
            bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=binding.node_name))
            scheduler.confirm(binding, bound)
            if not is_sharded:
                for other in schedulers:
                    if other is not scheduler:
                        other.learn(bound)
        for scheduler in schedulers:
            scheduler.decided.clear()
        schedulers = schedulers[1:] + schedulers[:1]
    deciding = sum(each.deciding_seconds for each in schedulers) / n_bound
    learned = n_bound * (n_schedulers - 1) if not is_sharded else 0
    learning = sum(each.learning_seconds for each in schedulers) / learned if learned else 0.0
    per_pod = deciding + (n_schedulers - 1) * learning
    return {
        "kind": "shards" if is_sharded else "shared",
        "schedulers": n_schedulers,
        "pods": len(sizes),
        "refused_percent": round(100 * n_refused / len(sizes), 2),
        "moved_percent": round(100 * n_moved / len(sizes), 2),
        "left_over": n_left,
        "decision_us": round(deciding * 1e6, 1),
        "learning_us": round(learning * 1e6, 1),
        "pods_per_s": round(n_schedulers / per_pod),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("schedulers", nargs="*", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--fill", type=float, default=0.95)
    parser.add_argument("--late", type=int, default=50)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    given = parser.parse_args()
    rows = [
        play(n, given.nodes, given.fill, given.late, is_sharded)
        for is_sharded in (False, True)
        for n in given.schedulers
        if n > 1 or not is_sharded
    ]
    print_figures(rows, given.output)
    if given.output == "table":
        print(machine())


if __name__ == "__main__":
    main()
