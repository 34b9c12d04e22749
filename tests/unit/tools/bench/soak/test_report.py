"""The report of a soak: percentiles, trends, and complaints that are not left out."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from kubesched.tools.bench.soak.churn import Ledger, Users
from kubesched.tools.bench.soak.faults import Fault, Faults
from kubesched.tools.bench.soak.page import markdown
from kubesched.tools.bench.soak.replicas import Replica, Replicas, Usage
from kubesched.tools.bench.soak.report import Measured, document, pauses, quantiles
from kubesched.tools.bench.soak.run import Soak


class Nobody:
    """Stands for processes that are over."""

    leader = server = None

    def __init__(self, *replicas: Replica) -> None:
        self.all = list(replicas)


class Scribe:
    """Stands for users who are done."""

    n_asked, n_node_changes = 3, 1

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger


def replica(name: str = "scheduler 1") -> Replica:
    process = cast("subprocess.Popen[bytes]", type("Ended", (), {"poll": lambda self: 0})())
    return Replica(name, process, 0.0, Path("log"), port=1)


def measured(ledger: Ledger, *replicas: Replica, faults: tuple[Fault, ...] = ()) -> Measured:
    harm = cast("Faults", type("Harm", (), {"done": list(faults)})())
    found = Measured(Soak(), 0.0, cast(Users, Scribe(ledger)), cast(Replicas, Nobody(*replicas)), harm)
    found.sample(10.0, 1.5)
    return found


def bound(ledger: Ledger, asked: float, delay: float) -> None:
    ledger.n_bound += 1
    ledger.delays.append(delay)
    ledger.bound_at.append(asked + delay)


def test_percentiles_are_of_all_and_apart_of_those_between_faults() -> None:
    ledger = Ledger()
    for asked, delay in ((1.0, 0.01), (50.0, 9.0), (70.0, 0.03)):
        bound(ledger, asked, delay)
    found = document(measured(ledger, faults=(Fault("kill", 49.0, "scheduler 1", bound_after=10.0),)))
    assert found["podToBoundMilliseconds"]["max"] == 9000.0
    assert found["podToBoundBetweenFaultsMilliseconds"] == {"count": 2, "p50": 20.0, "p99": 29.8, "p99.9": 30.0, "max": 30.0}
    told = {"seconds": 49, "kind": "kill", "whom": "scheduler 1", "serverAwaySeconds": None, "boundAfterSeconds": 10.0}
    assert found["faults"] == [told]


def test_after_a_fault_that_never_ended_nothing_counts_as_calm() -> None:
    ledger = Ledger()
    bound(ledger, 100.0, 0.5)
    assert document(measured(ledger, faults=(Fault("kill", 49.0, "x"),)))["podToBoundBetweenFaultsMilliseconds"] == {"count": 0}


def test_nothing_measured_is_no_error() -> None:
    assert quantiles(np.zeros(0), 1.0) == {"count": 0}
    assert pauses([replica()]) == {"count": 0}
    assert "| decision, µs | 0 | - | - | - | - |" in markdown(document(measured(Ledger())))


def test_pauses_are_added_up_over_the_schedulers() -> None:
    one, other = replica(), replica()
    one.pauses = {"0.001": 98.0, "0.01": 99.0, "+Inf": 99.0, "sum": 0.1}
    other.pauses = {"0.001": 0.0, "0.01": 1.0, "+Inf": 1.0, "sum": 0.005}
    found = pauses([one, other])
    assert (found["count"], found["seconds"]) == (100, 0.105)
    assert (found["p50AtMostMilliseconds"], found["p99AtMostMilliseconds"], found["maxAtMostMilliseconds"]) == (1.0, 10.0, 10.0)


@pytest.mark.parametrize(
    ("rss_of", "growth"),
    [(lambda at: 100.0 + max(60.0 - at, 0.0), 0.0), (lambda at: 100.0 + at / 60.0, 60.0)],
    ids=["a first minute is no trend", "a MiB a minute is 60 an hour"],
)
def test_growth_is_the_trend_after_the_first_minute(rss_of: Any, growth: float) -> None:
    some = replica()
    some.usages = [(float(at), Usage(rss_of(at), 30, at / 10)) for at in range(0, 600, 10)]
    (found,) = document(measured(Ledger(), some))["processes"]
    assert found["growthMiBPerHour"] == pytest.approx(growth)
    some.usages = some.usages[:20]
    assert document(measured(Ledger(), some))["processes"][0]["growthMiBPerHour"] is None


def test_what_is_wrong_comes_first_and_waiting_pods_count_only_in_the_end() -> None:
    ledger = Ledger()
    ledger.created["pod-7"] = 1.0
    ledger.bound_twice.append("pod-3: node-1, then node-2")
    half_way = document(measured(ledger))
    assert half_way["complaints"] == ["bound twice: pod-3: node-1, then node-2"]
    final = document(measured(ledger), is_final=True)
    assert final["complaints"][1] == "1 pods were never bound, pod-7 among them"
    assert "**1 pods were never bound" in markdown(final) and "Nothing was missed" not in markdown(final)


def test_a_decision_log_is_followed_over_its_rotation_and_half_lines(tmp_path: Path) -> None:
    some, log = replica(), tmp_path / "decisions.jsonl"
    some.decisions = log
    assert list(some.new_decisions()) == []
    line = '{"uid":"u%d","outcome":"placed","latencySeconds":0.5,"more":1}\n'
    log.write_text(line % 1 + (line % 2)[:20])
    assert [each.uid for each in some.new_decisions()] == ["u1"]
    with log.open("a") as file:
        file.write((line % 2)[20:] + line % 3)
    log.rename(tmp_path / "decisions.jsonl.1")
    log.write_text(line % 4)
    assert [each.uid for each in some.new_decisions()] == ["u2", "u3", "u4"]


def test_one_that_ended_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    some = replica()
    some.log, some.ended = tmp_path / "log", 5.0
    some.log.write_text("starting\nleader election lost\n\n")
    found = document(measured(Ledger(), some))
    assert found["processes"][0]["lastWords"] == "leader election lost"
    assert "0:00:05, by itself: leader election lost |" in markdown(found)


async def test_a_process_that_ends_is_noticed_and_its_use_known(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])  # noqa: ASYNC220
    some = Replica("sleeper", process, 0.0, log)
    some.look(1.0)
    await some.end(signal.SIGTERM)
    some.look(2.0)
    assert [at for at, _ in some.usages] == [1.0] and some.usages[0][1].rss_mib > 0
    assert some.ended is not None and not some.is_running
