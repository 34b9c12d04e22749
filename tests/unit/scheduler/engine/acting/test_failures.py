"""A failed attempt: what is parked, what people read, what programs read."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kubesched.errors import Forbidden, NotFound, PluginRaised, SchedulerError
from kubesched.kube.api.pod import Pod, PodCondition
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.acting.failures import Failures, truncated
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, default_configuration
from kubesched.scheduler.engine.deciding.failure import Failure, explain, refused_on_node
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.engine.observer import NoObserver
from kubesched.scheduler.framework.verdicts import CLEAR, Diagnosis, Nomination, failed, unschedulable
from kubesched.telemetry import Metrics
from kubesched.telemetry.reporting import Reporter
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import VirtualClock, run_virtually
from kubesched.tools.snapshots.captured import Captured

GATES = Gates.defaults()
NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""


class World(NoObserver):
    """Everything that failures touch, written down."""

    def __init__(self, newest: Pod | None) -> None:
        self.store = Store()
        self.newest = self.store.view(newest) if newest is not None else None
        self.parked: list[tuple[set[str], set[str]]] = []
        self.let_go: list[str] = []
        self.events: list[tuple[str, ...]] = []
        self.patches: list[Any] = []
        self.nominated: list[Any] = []
        self.unwritten: list[str] = []
        self.gone: list[str] = []
        self.failed: list[str] = []
        self.is_placed = False
        self.refuses: SchedulerError | None = None
        self.nominations = self
        handle = SimpleNamespace(writer=self, recorder=self, clock=self)
        core = SimpleNamespace(queue=self, handle=handle, observer=self, decisions=None, spawn=self.spawn, store=self)
        self.failures = Failures(core, lambda key: self.newest)  # type: ignore[arg-type]

    def park(self, queued: Any, refused: Any, pending: Any, newest: PodView) -> None:
        self.parked.append((set(refused), set(pending)))

    def done(self, uid: str) -> None:
        self.let_go.append(uid)

    def add(self, view: PodView, nomination: Nomination | None) -> None:
        self.nominated.append(nomination)

    def event(self, regarding: PodView, *words: str) -> None:
        self.events.append(words)

    async def patch_pod_status(self, view: PodView, patch: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.patches.append(patch)

    def write_failed(self, view: PodView, what: str, error: Exception) -> None:
        self.unwritten.append(f"{what}: {error}")

    def pod(self, uid: str) -> bool | None:
        return self.is_placed or None

    def pod_gone(self, view: PodView, message: str) -> None:
        self.gone.append(message)

    def pod_failed(self, view: PodView, reason: str, message: str) -> None:
        self.failed.append(message)

    def now(self) -> float:
        return NOW

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run(work)

    def fail(self, tried: Pod, failure: Failure) -> None:
        queued = type("Queued", (), {"view": self.store.view(tried), "has_unseen_nomination": False})
        self.failures.handle(queued, failure)  # type: ignore[arg-type]


def refusal(message: str = "0/1 nodes are available:", nomination: Nomination | None = None) -> Failure:
    return Failure(message, True, Diagnosis(1, unschedulable_plugins={"Fit"}, pending_plugins={"Devices"}), nomination)


def condition(**changes: Any) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available:",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        **changes,
    }


def test_a_refused_pod_is_parked_under_its_plugins_and_told_twice() -> None:
    world = World(pod())
    world.fail(pod(), refusal())
    assert world.parked == [({"Fit"}, {"Devices"})]
    assert world.events == [("Warning", "FailedScheduling", "Scheduling", "0/1 nodes are available:")]
    assert world.patches == [{"conditions": [condition()]}]
    assert world.let_go == []


def test_an_error_is_told_as_such_and_names_no_plugin() -> None:
    world = World(pod())
    world.fail(pod(), Failure("broken", False, None, CLEAR))
    assert world.parked == [(set(), set())]
    assert world.patches == [{"conditions": [condition(reason="SchedulerError", message="broken")]}]


SAID = PodCondition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message="0/1 nodes are available:",
    last_transition_time="2025-05-05T00:00:00Z",
)
PATCHES = [
    ("nothing changed", pod(conditions=[SAID]), None, []),
    (
        "another message keeps the time of the transition",
        pod(conditions=[msgspec.structs.replace(SAID, message="old")]),
        None,
        [{"conditions": [condition(lastTransitionTime="2025-05-05T00:00:00Z")]}],
    ),
    (
        "another status is a transition",
        pod(conditions=[msgspec.structs.replace(SAID, status="True")]),
        None,
        [{"conditions": [condition()]}],
    ),
    ("a nomination alone", pod(conditions=[SAID]), Nomination("a"), [{"nominatedNodeName": "a"}]),
    ("a nomination that stands already", pod(conditions=[SAID], nominated="a"), Nomination("a"), []),
    ("a nomination taken back", pod(conditions=[SAID], nominated="a"), CLEAR, [{"nominatedNodeName": None}]),
    ("a nomination taken back that never was", pod(conditions=[SAID]), CLEAR, []),
    ("a nomination left alone", pod(conditions=[SAID], nominated="a"), None, []),
]


@pytest.mark.parametrize(("newest", "nomination", "patches"), [p[1:] for p in PATCHES], ids=[p[0] for p in PATCHES])
def test_only_what_changes_is_written(newest: Pod, nomination: Nomination | None, patches: list[Any]) -> None:
    world = World(newest)
    world.fail(pod(), refusal(nomination=nomination))
    assert world.patches == patches
    assert world.nominated == [nomination]


def test_the_generation_that_was_looked_at_is_written_with_the_condition() -> None:
    newest = pod()
    newest = msgspec.structs.replace(newest, metadata=msgspec.structs.replace(newest.metadata, generation=4))
    world = World(newest)
    world.fail(pod(), refusal())
    assert world.patches == [{"conditions": [condition(observedGeneration=4)]}]


def test_a_pod_that_is_gone_is_let_go_but_told() -> None:
    world = World(None)
    world.fail(pod(), refusal())
    assert (world.parked, world.let_go, world.nominated) == ([], [pod().metadata.uid], [])
    assert len(world.events) == 1
    assert (world.patches, world.failed, world.gone) == ([], [], [refusal().message]), "it has no status, and is no error"


def test_a_pod_that_somebody_else_bound_is_let_go_but_told() -> None:
    world = World(None)
    world.is_placed = True
    world.fail(pod(), refusal())
    assert (world.parked, world.let_go, world.nominated) == ([], [pod().metadata.uid], [])
    assert len(world.events) == len(world.patches) == len(world.failed) == 1


def test_a_pod_that_the_api_server_has_no_more_waits_for_the_watch_to_tell() -> None:
    world = World(pod())
    world.fail(pod(), Failure('pods "pod-1" not found', False, None, CLEAR, is_gone=True))
    assert (len(world.parked), world.patches, world.failed, world.gone) == (1, [], [], ['pods "pod-1" not found'])


def test_another_pod_of_that_name_is_left_alone() -> None:
    world = World(pod(uid="another"))
    world.fail(pod(), refusal())
    assert world.let_go == [pod().metadata.uid]
    assert (world.parked, world.events, world.patches) == ([], [], [])


def test_a_silent_failure_is_parked_and_not_told() -> None:
    world = World(pod())
    world.fail(pod(), Failure("", False, None, CLEAR, is_silent=True))
    assert len(world.parked) == 1
    assert (world.events, world.patches) == ([], [])


def test_a_status_that_cannot_be_written_is_noted_and_changes_nothing() -> None:
    world = World(pod())
    world.refuses = Forbidden(403, "Forbidden", "no right to patch pods")
    world.fail(pod(), refusal())
    assert len(world.parked) == 1
    assert world.unwritten == ["status: no right to patch pods"]


def test_a_status_that_nobody_has_any_more_is_not_an_error() -> None:
    world = World(pod())
    world.refuses = NotFound(404, "NotFound", 'pods "pod-1" not found')
    world.fail(pod(), refusal())
    assert (len(world.parked), world.unwritten) == (1, [])


class Deleted(NoWriter):
    """An API server whose pods are deleted before they are bound; its watch tells of it late."""

    async def bind(self, pod: Any, node_name: str) -> None:
        raise NotFound(404, "NotFound", f'pods "{pod.name}" not found')

    async def patch_pod_status(self, pod: Any, status: Any) -> None:
        raise NotFound(404, "NotFound", f'pods "{pod.name}" not found')


@pytest.mark.parametrize("is_told", [True, False])
def test_a_pod_that_was_deleted_before_its_turn_leaves_no_error_in_the_log(
    is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> int:
        reporter = Reporter(Metrics())
        ports = Ports(clock=VirtualClock(asyncio.get_running_loop()), writer=Deleted(), observer=reporter)
        engine = Captured(NOW, [node("a")]).engine(default_configuration(GATES), GATES, ports=ports)
        running = asyncio.create_task(engine.run())
        wanted = pod()
        engine.inbox.post(Changed("Pod", None, wanted))
        await asyncio.sleep(0)
        if is_told:
            engine.inbox.post(Changed("Pod", wanted, None))
        await asyncio.sleep(0.5)
        if not is_told:
            engine.inbox.post(Changed("Pod", wanted, None))
        await asyncio.sleep(30)
        engine.stop()
        await running
        assert not len(engine.queue) and engine.store.pod(wanted.uid) is None
        return reporter.metrics.counters["scheduler_schedule_attempts_total"]["error", "default-scheduler"]

    assert run_virtually(story()) == 1
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_refusal_on_the_chosen_node_counts_one_node() -> None:
    found = refused_on_node("a", unschedulable("no device left").by("Devices"))
    assert found.message == "0/1 nodes are available: 1 no device left."
    assert found.diagnosis is not None and found.diagnosis.unschedulable_plugins == {"Devices"}
    assert (found.reason, found.nomination) == ("Unschedulable", CLEAR)
    broken = refused_on_node("a", failed('running Reserve plugin "X": broken'))
    assert (broken.message, broken.reason, broken.diagnosis) == ('running Reserve plugin "X": broken', "SchedulerError", None)


@pytest.mark.parametrize(
    ("message", "cut"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("é" * 600, "é" * 510 + " ..."),
        ("x" + "é" * 600, "x" + "é" * 509 + " ..."),
    ],
)
def test_an_events_note_is_cut_to_its_bytes_and_a_condition_is_not(message: str, cut: str) -> None:
    assert truncated(message) == cut
    assert len(truncated(message).encode()) <= 1024
    world = World(pod())
    world.fail(pod(), refusal(message))
    assert world.events[0][-1] == cut
    assert world.patches[0]["conditions"][0]["message"] == message


def test_a_broken_plugin_shows_its_traceback_once_a_minute_and_is_counted_every_time(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[str] = []

    class Counting(NoObserver):
        def plugin_broke(self, plugin: str, point: str, pod: Any, error: BaseException) -> None:
            counted.append(plugin)

    for number in range(50):
        error = PluginRaised("Clumsy", "Permit", "KeyError: 1", f"default/p{number}")
        error.__cause__ = KeyError(1)
        assert explain(error, Store().view(pod(f"p{number}")), Counting()) == "KeyError: 1"
    assert len(counted) == 50
    assert [record.exc_info is not None for record in caplog.records] == [True]
