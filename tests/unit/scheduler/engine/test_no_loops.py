"""No decision loops over nodes or pods in Python: ten times the cluster, and not one instruction more is executed.

What is counted are the byte code instructions of one step of the engine: take, decide, book. Loops inside NumPy are
none of these, and loops over requests, constraints or plugins do not grow with the cluster.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from kubesched.kube.api.meta import TopLevel
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing import even, near, node, pod, taint
from kubesched.tools.bench import workloads
from kubesched.tools.bench.engine import Bench, build_engine

SMALL, LARGE = 200, 2000
SLACK = 200
"""Instructions that may differ: a dictionary or an array of NumPy's that grows, a string that is longer, a domain or a row
whose score is worked out once more or less because the pods went elsewhere. A loop over nodes or pods would take thousands."""


def executed(work: Callable[[], object]) -> Counter[str]:
    """Return how many instructions each function executes in some work."""
    found: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode":
            found[frame.f_code.co_qualname] += 1
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return found


def engine_with(objects: Iterator[TopLevel], *, remembers: bool) -> Engine:
    engine = build_engine(Bench(remembers=remembers))
    for obj in objects:
        engine.intake.apply(obj.kind, None, obj)
    engine.bookings.hand_over = lambda placement: engine.queue.done(placement.booked.uid)
    engine.failures.writes = False
    return engine


def steps(engine: Engine, pods: list[Pod], unmeasured: int) -> list[Counter[str]]:
    """Return what each of the last pods' steps executes."""
    for one in pods:
        engine.intake.apply("Pod", None, one)
    for _ in range(unmeasured):
        assert engine.step()
    return [executed(engine.step) for _ in pods[unmeasured:]]


def assert_alike(small: list[Counter[str]], large: list[Counter[str]]) -> None:
    for one, other in zip(small, large, strict=True):
        assert sum(one.values()) > 1000, "something was decided"
        more = {name: (one[name], n) for name, n in other.items() if n - one[name] > SLACK}
        assert not more, f"these grow with the cluster: {more}"
        assert abs(sum(other.values()) - sum(one.values())) < 4 * SLACK, "a row more or less that others' pods changed"


@pytest.mark.parametrize("remembers", [True, False], ids=["from memory", "computed anew"])
@pytest.mark.parametrize("kind", [kind for kind in workloads.KINDS if kind != "gang"])  # which is decided in one step
def test_the_kinds_of_the_benchmark(kind: str, remembers: bool) -> None:
    measured = []
    for n in (SMALL, LARGE):
        engine = engine_with(workloads.cluster(kind, n, n, 12), remembers=remembers)
        measured.append(steps(engine, list(workloads.pods(12, kind)), unmeasured=8))
    assert_alike(*measured)


def cluster(n: int) -> Iterator[TopLevel]:
    """Yield nodes with labels, taints and images, each with a pod that has a host port."""
    for i in range(n):
        yield node(
            f"n{i:05d}",
            zone=f"z{i % 5}",
            labels={"rank": str(i), "disk": "ssd"},
            images={"app:1": 500 << 20},
            taints=[taint("gpu")] if i % 3 == 0 else [],
        )
    for i in range(n):
        yield pod(f"old-{i}", on=f"n{i:05d}", labels={"app": "web"}, requests={"cpu": "10m"}, host_ports=(81,))


def on_nodes(key: str, operator: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


HOST, WEB = "kubernetes.io/hostname", {"app": "web"}
WANTED: dict[str, dict[str, Any]] = {
    "a host's name": {"affinity": on_nodes(HOST, "In", "n00001")},
    "any host's name": {"affinity": on_nodes(HOST, "Exists")},
    "a label above a number": {"affinity": on_nodes("rank", "Gt", "3")},
    "a selector": {"node_selector": {"disk": "ssd"}},
    "a toleration": {"tolerates": [taint("gpu")]},
    "a host port": {"host_ports": (80,)},
    "an image": {"image": "app:1"},
    "evenly over hosts": {"spread": [even(WEB, HOST)], "labels": WEB},
    "rather evenly over hosts and zones": {"spread": [even(WEB, HOST, hard=False), even(WEB, hard=False)], "labels": WEB},
    "near some and away from others": {
        "affinity": {**near(WEB, HOST, weight=3), **near({"app": "db"}, away=True)},
        "labels": WEB,
    },
    "more than there is": {"requests": {"cpu": "100"}},
    "more than there is, and no eviction": {"requests": {"cpu": "100"}, "preemption_policy": "Never"},
}


@pytest.mark.parametrize("remembers", [True, False], ids=["from memory", "computed anew"])
@pytest.mark.parametrize("wanted", WANTED)
def test_pods_that_want(wanted: str, remembers: bool) -> None:
    """The first of a class may read each distinct label value once; those after it, and after a node changed, may not."""
    measured = []
    for n in (SMALL, LARGE):
        engine = engine_with(cluster(n), remembers=remembers)
        pods = [pod(f"new-{i}", **WANTED[wanted]) for i in range(4)]
        found = steps(engine, pods[:3], unmeasured=1)
        changed = node("n00007", zone="z2", labels={"rank": "7", "disk": "hdd"})
        engine.intake.apply("Node", engine.store.node("n00007"), changed)
        measured.append(found + steps(engine, pods[3:], unmeasured=0))
    assert_alike(*measured)


@pytest.mark.parametrize("wanted", ["evenly over hosts", "near some and away from others"])
def test_pods_that_are_gone_cost_nothing(wanted: str) -> None:
    """Every job's pods have labels of their own; a scheduler that runs for a year has seen very many of them."""
    measured = []
    for n_gone in (SMALL, LARGE):
        engine = engine_with(cluster(20), remembers=False)
        for i in range(n_gone):
            gone = pod(f"job-{i}", on="n00000", labels={"app": "web", "job-name": str(i)})
            engine.intake.apply("Pod", None, gone)
            engine.intake.apply("Pod", gone, None)
        measured.append(steps(engine, [pod(f"new-{i}", **WANTED[wanted]) for i in range(3)], unmeasured=1))
    assert_alike(*measured)
