"""The golden family `wakeups` turned round: a wrong answer is noticed, and equals are woken alike."""

from __future__ import annotations

from pathlib import Path

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.engine.arrivals.intake import Intake
from kubesched.tools.conformance.cases import Case, Cluster, read_cases
from kubesched.tools.conformance.wakeups import LEFT, deliver, run_wakeup_case

CASES = [case for _, case in read_cases([Path(__file__).with_name("wakeups.jsonl.gz")])]


def test_an_event_that_is_left_out_is_noticed() -> None:
    """A runner that says yes to everything would pass; this one must not."""
    case = next(case for case in CASES if case["expected"]["requeued"])
    told = {**case, "expected": {**case["expected"], "requeued": False}}
    assert [difference.what for difference in run_wakeup_case(told)] == ["requeued"]


def left_waiting(case: Case, names: list[str]) -> list[bool]:
    """Park copies of a case's pod under these names, let the event happen, and say which of them were woken."""
    cluster = Cluster.of(case)
    queue = cluster.queue
    intake = Intake(cluster.store, queue, cluster.profiles.keys(), gates=cluster.gates)
    raw = case["pods"][0]
    copies = [
        codec.convert({**raw, "metadata": {**raw["metadata"], "name": name, "uid": f"uid-{name}"}}, Pod) for name in names
    ]
    for copy in copies:
        intake.apply("Pod", None, copy)
        entry = queue.pop()
        if entry is not None:
            queue.park(entry, case["expected"]["unschedulablePlugins"])
    deliver(cluster, intake, codec.convert(raw, Pod), case["event"])
    return [queue.place_of(copy.key) in LEFT for copy in copies]


def test_a_pod_is_woken_alike_whether_it_waits_alone_or_among_its_equals() -> None:
    """Hints declared by_template are asked about one pod for all: that must not change any answer."""
    asked = 0
    for case in CASES:
        pod, changed = case["pods"][0]["metadata"], case["event"]["object"]
        if changed["kind"] not in ("Pod", "Node") or changed["metadata"]["name"] == pod["name"]:
            continue
        asked += 1
        alone = left_waiting(case, ["twin-1"])
        assert left_waiting(case, ["twin-0", "twin-1", "twin-2"]) == alone * 3, case["name"]
    assert asked > 200
