"""A recorded inbox, played again: the same decisions, byte for byte."""

import asyncio
import io
from typing import Any

import msgspec
import pytest

from kubesched.errors import SchedulerError, ServerFault
from kubesched.scheduler import config
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.arrivals.inbox_log import InboxLog
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.records.decision_record import document
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.testing import FakeWriter, node, pod
from kubesched.tools.simulation.clock import VirtualClock, run_virtually
from kubesched.tools.simulation.replay import Decisions, decide_again, replay


class Moody(FakeWriter):
    """Binds, after a while; every third time it fails first."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def bind(self, pod: Any, node_name: str) -> None:
        self.count += 1
        await asyncio.sleep(0.05 * self.count)
        if self.count % 3 == 0:
            raise ServerFault(500, "InternalError", "not now")


def record() -> tuple[bytes, list[dict[str, Any]]]:
    file = io.BytesIO()

    async def live() -> list[dict[str, Any]]:
        clock = VirtualClock(asyncio.get_running_loop())
        decisions = Decisions(clock)
        gates = config.Gates.defaults()
        engine = assemble(default_configuration(gates), gates, Ports(clock=clock, writer=Moody(), recorder=decisions, seed=5))
        InboxLog(engine.inbox, clock, file, seed=5)
        running = asyncio.create_task(engine.run())
        for i in range(4):
            engine.inbox.post(Changed("Node", None, node(f"n{i}", cpu="2")))
        pods = [pod(f"p{i}", requests={"cpu": "700m"}) for i in range(12)]
        for one in pods:
            engine.inbox.post(Changed("Pod", None, one))
            await clock.sleep(0.03)
        await clock.sleep(20)
        engine.inbox.post(Changed("Node", None, node("late", cpu="8")))
        await clock.sleep(60)
        engine.stop()
        await running
        return decisions.lines

    lines = run_virtually(live())
    return file.getvalue(), lines


def test_a_replay_makes_the_same_decisions() -> None:
    log, lived = record()
    first = replay(log.splitlines())
    assert [(d["pod"], d["event"], d["note"]) for d in first] == [(d["pod"], d["event"], d["note"]) for d in lived]
    assert any(d["event"] == "FailedScheduling" for d in lived) and sum(d["event"] == "Scheduled" for d in lived) == 12


def test_two_replays_are_equal_byte_for_byte() -> None:
    log, _ = record()
    assert msgspec.json.encode(replay(log.splitlines())) == msgspec.json.encode(replay(log.splitlines()))


def test_another_seed_may_choose_other_nodes_but_places_as_many() -> None:
    log, lived = record()
    other = replay(log.splitlines(), seed=77)
    assert sum(d["event"] == "Scheduled" for d in other) == sum(d["event"] == "Scheduled" for d in lived)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the first line has no seed"),
        (b"{}", "the first line has no seed"),
        (b'{"seed": 1, "at": 0}\n{"at": 1, "kind": "Pod", "object": {"kind": "Nonsense", "metadata": {}}}', "Nonsense"),
        (b'{"seed": 1, "at": 0}\nnonsense', "line 2"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(data: bytes, complaint: str) -> None:
    with pytest.raises(SchedulerError, match=complaint):
        replay(data.splitlines())


def test_nothing_is_tried_before_the_program_led() -> None:
    file = io.BytesIO()

    async def live() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        gates = config.Gates.defaults()
        engine = assemble(default_configuration(gates), gates, Ports(clock=clock, writer=Moody(), seed=5))
        InboxLog(engine.inbox, clock, file, seed=5)
        engine.is_leading = False
        running = asyncio.create_task(engine.run())
        engine.inbox.post(Changed("Pod", None, pod("early", requests={"cpu": "700m"})))
        await clock.sleep(1)
        engine.inbox.post(Changed("Node", None, node("n0", cpu="2")))
        await clock.sleep(1)
        engine.lead()
        await clock.sleep(5)
        engine.stop()
        await running

    run_virtually(live())
    assert [(d["event"], d["note"]) for d in replay(file.getvalue().splitlines())] == [
        ("Scheduled", "Successfully assigned default/early to n0")
    ]


def test_what_was_taken_out_together_has_one_time() -> None:
    log, _ = record()
    times = [msgspec.json.decode(line)["at"] for line in log.splitlines() if b'"kind":"Node"' in line]
    assert len(set(times[:4])) == 1


def test_decisions_made_again_are_those_on_record() -> None:
    file, recorder = io.BytesIO(), DecisionRecorder(1000, share=1.0)

    async def live() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        gates = config.Gates.defaults()
        ports = Ports(clock=clock, writer=Moody(), decisions=recorder, seed=5)
        engine = assemble(default_configuration(gates), gates, ports)
        InboxLog(engine.inbox, clock, file, seed=5)
        running = asyncio.create_task(engine.run())
        for i in range(6):
            engine.inbox.post(Changed("Node", None, node(f"n{i}", cpu=str(1 + i % 3), zone=f"z{i % 2}")))
        for i in range(30):
            engine.inbox.post(Changed("Pod", None, pod(f"p{i}", requests={"cpu": "500m"}, labels={"app": "web"})))
            await clock.sleep(0.03)
        await clock.sleep(60)
        engine.stop()
        await running

    run_virtually(live())
    lived = [document(record) for record in recorder.ring.newest_first()][::-1]
    again = [document(record) for record in decide_again(file.getvalue().splitlines())]
    facts = [[{**each, "at": 0, "boundSeconds": 0} for each in told] for told in (lived, again)]
    assert {each["outcome"] for each in lived} >= {"placed", "unschedulable", "error"}
    assert any(len(each.get("ranking", ())) > 2 for each in lived)
    assert facts[0] == facts[1][: len(facts[0])] and len(facts[1]) >= len(facts[0])


START = b'{"at": 1.0, "seed": 0}'
WRONG = [
    (b'{"at": {}, "kind": "Pod", "gone": {}}', "Expected `float`, got `object`"),
    (b'{"kind": "Pod", "gone": {}}', "it does not say when"),
    (b'{"at": 2.0, "kind": "Pod"}', "there is no Pod in it"),
    (
        b'{"at": 2.0, "kind": "Pod", "object": {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}}',
        "there is no Pod in it, but Node",
    ),
    (
        b'{"at": 2.0, "kind": "Node", "object": {"metadata": {"name": "n"}}}',
        "there is no Node in it, but something without a kind",
    ),
    (b'{"at": 2.0, "kind": "Pod", "object": {"kind": "Pod", "apiVersion": "v1"}}', "Object missing required field `metadata`"),
    (b'{"at": 2.0, "kind": "Pod", "gone": {"name": 5}}', "Expected `str`, got `int`"),
    (b'{"at": 2.0, "bound": []}', "Expected `str`, got `array`"),
]


@pytest.mark.parametrize(("line", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_line_that_nobody_wrote_is_named(line: bytes, why: str) -> None:
    with pytest.raises(SchedulerError, match=f"inbox log, line 2: .*{why}"):
        replay([START, line])
