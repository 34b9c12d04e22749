"""Carrying out a preemption: what is written, in which order, and what happens when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kubesched.errors import Conflict, NotFound, Unreachable
from kubesched.kube.api.pod import Pod, PodCondition
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Objects, PodView, Store
from kubesched.scheduler.engine import StillClock
from kubesched.scheduler.engine.acting.eviction import Evictions
from kubesched.scheduler.engine.arrivals.inbox import Changed, Inbox
from kubesched.scheduler.engine.assembly import EngineOptions, Ports, assemble, default_configuration
from kubesched.scheduler.engine.deciding.preemptor import Preemptor
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.testing import FakeRecorder, FakeWriter, node, pod

MINUTE = 1_800_000_000.0
SAID = "2027-01-15T08:00:00Z"
WHY = "default-scheduler: preempting to accommodate a higher priority pod"


@dataclass
class Observer:
    """Counts preemptions; everything else goes unnoticed."""

    victims: list[int] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def preempted(self, preemption: Preemption, preemptor: str) -> None:
        self.victims.append(len(preemption.victims))

    def evictions_ended(self, result: str, seconds: float, preemptor: str) -> None:
        self.ended.append(result)


class Nominated:
    def __init__(self) -> None:
        self.pods: dict[str, list[PodView]] = {}

    def on_node(self, node_name: str) -> Iterable[PodView]:
        return self.pods.get(node_name, [])


class Queue:
    def __init__(self) -> None:
        self.nominations = Nominated()
        self.activated: list[str] = []
        self.place = "unschedulable"

    def place_of(self, key: str) -> str:
        return self.place

    def find(self, key: str) -> None:
        return None

    def activate(self, pods: Iterable[PodView]) -> None:
        self.activated += [p.name for p in pods]

    def ask_gates(self, pods: Iterable[PodView]) -> None:
        assert not list(pods), "somebody who was refused here is woken by events"


@dataclass
class AtPermit:
    is_open: bool = True
    said: list[tuple[str, str]] = field(default_factory=list)

    def preempt(self, plugin: str, message: str) -> bool:
        self.said.append((plugin, message))
        return self.is_open


class Binding:
    """Pods whose PreBind is under way; the value says whether it can still be called off."""

    def __init__(self) -> None:
        self.pods: dict[str, bool] = {}
        self.said: list[tuple[str, str]] = []

    def is_pre_binding(self, uid: str) -> bool:
        return uid in self.pods

    def call_off(self, uid: str, reason: str) -> bool:
        self.said.append((uid, reason))
        return self.pods[uid]


class Scene:
    def __init__(self, *, in_background: bool = True) -> None:
        self.store = Store()
        self.api, self.recorder, self.observer = FakeWriter(), FakeRecorder(), Observer()
        self.handle = EngineHandle(Objects(), clock=StillClock(MINUTE), writer=self.api, recorder=self.recorder)
        self.inbox, self.queue, self.waiting, self.binding = Inbox(), Queue(), dict[str, AtPermit](), Binding()
        self.known: dict[str, PodView] = {}
        self.placed: dict[str, PodView] = {}
        self.tasks: list[asyncio.Task[None]] = []
        core = SimpleNamespace(
            store=SimpleNamespace(pod=self.placed.get),
            queue=self.queue,
            handle=self.handle,
            inbox=self.inbox,
            observer=self.observer,
            spawn=lambda coroutine: self.tasks.append(asyncio.ensure_future(coroutine)),
            successor=None,
        )
        core.latest = core
        self.evictions = Evictions(core, self.known.get, self.waiting, self.binding, in_background=in_background)  # type: ignore[arg-type]
        self.preemptor = self.view(pod("high", priority=1000, uid="uid-high"))

    def view(self, given: Pod) -> PodView:
        return self.store.view(given)

    def begin(self, *victims: Pod, then: Callable[[str], None] | None = None) -> None:
        views = tuple(self.view(victim) for victim in victims)
        self.placed |= {view.uid: view for view in views}
        self.evictions.carry_out(Preemptor.of(self.preemptor), Preemption("n1", views, 0, "DefaultPreemption"), then)

    async def finish(self) -> None:
        await asyncio.gather(*self.tasks)
        self.turn()

    def turn(self) -> None:
        """Let the loop look into the inbox."""
        for arrival in self.inbox.take():
            arrival.run()  # type: ignore[union-attr]

    @property
    def is_gated(self) -> bool:
        return self.handle.preempting.is_under_way(self.preemptor.uid)


def victim(name: str, **more: Any) -> Pod:
    return pod(name, on="n1", priority=0, **more)


async def test_a_victim_is_told_why_then_deleted_and_an_event_says_so():
    scene = Scene()
    scene.begin(victim("a"))
    await scene.finish()
    assert scene.api.calls == [
        (
            "patch",
            "a",
            {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                        "message": WHY,
                        "lastProbeTime": None,
                        "lastTransitionTime": SAID,
                    }
                ]
            },
        ),
        ("delete", "a", None),
    ]
    assert scene.recorder.events == [("a", "Normal", "Preempted", "Preempting", "Preempted by pod uid-high on node n1")]
    assert scene.observer.victims == [1] and scene.observer.ended == ["success"]
    assert scene.queue.activated == [], "that the victim went wakes the preemptor"


@pytest.mark.parametrize(
    ("said", "old", "expected"),
    [
        (
            "it is told already",
            PodCondition(
                type="DisruptionTarget",
                status="True",
                reason="PreemptionByScheduler",
                message=WHY,
                last_transition_time="2026-01-01T00:00:00Z",
            ),
            None,
        ),
        (
            "it was told something else",
            PodCondition(type="DisruptionTarget", status="True", reason="Other", last_transition_time="2026-01-01T00:00:00Z"),
            "2026-01-01T00:00:00Z",
        ),
        (
            "it was told the contrary",
            PodCondition(type="DisruptionTarget", status="False", reason="Other", last_transition_time="2026-01-01T00:00:00Z"),
            SAID,
        ),
    ],
)
async def test_the_condition_is_written_only_if_it_changes(said: str, old: PodCondition, expected: str | None):
    scene = Scene()
    scene.begin(victim("a", conditions=[old]))
    await scene.finish()
    patches = [body["conditions"][0]["lastTransitionTime"] for kind, _, body in scene.api.calls if kind == "patch"]
    assert patches == ([expected] if expected is not None else [])
    assert scene.api.said("delete") == ["a"]


async def test_the_last_victim_goes_last_and_the_preemptor_waits_until_it_does():
    scene = Scene()
    scene.api.hold = {name: asyncio.Event() for name in ("a", "b", "c")}
    scene.handle.preempting.stays_on = lambda pod: not scene.api.hold["c"].is_set()
    assert not scene.is_gated
    scene.begin(victim("a"), victim("b"), victim("c"))
    assert scene.is_gated, "at once, before anything is written"
    await _idle()
    assert scene.api.said("patch") == ["a", "b"], "side by side"
    scene.api.hold["a"].set()
    await _idle()
    assert "c" not in scene.api.said("patch")
    scene.api.hold["b"].set()
    await _idle()
    assert scene.api.said("patch") == ["a", "b", "c"]
    assert scene.is_gated
    scene.api.hold["c"].set()
    assert not scene.is_gated, "the last one is on its way"
    await scene.finish()
    assert len(scene.handle.preempting) == 0


async def test_victims_that_are_going_already_are_left_alone():
    scene = Scene()
    scene.begin(victim("a", deleted_at="2026-01-01T00:00:00Z"), victim("b"))
    await scene.finish()
    assert scene.api.said("delete") == ["b"]
    assert [event[0] for event in scene.recorder.events] == ["b"]
    assert scene.observer.victims == [2], "all of them count"


async def test_nothing_runs_if_all_victims_are_going_already():
    scene = Scene()
    scene.queue.nominations.pods["n1"] = [scene.view(pod("displaced", priority=1, nominated="n1"))]
    scene.begin(victim("a", deleted_at="2026-01-01T00:00:00Z"))
    assert scene.tasks == [] and not scene.is_gated
    assert scene.observer.victims == [] and scene.api.calls == []


@pytest.mark.parametrize("what", ["patch", "delete"])
async def test_a_victim_that_is_gone_is_no_problem(what: str):
    scene = Scene()
    scene.api.fails[what, "a"] = NotFound(404, "NotFound", "gone")
    scene.begin(victim("a"), victim("b"))
    await scene.finish()
    assert [event[0] for event in scene.recorder.events] == ["b"]
    assert scene.queue.activated == [] and scene.observer.ended == ["success"]


@pytest.mark.parametrize(("is_heard_of", "activated"), [(False, []), (True, ["high"])])
async def test_a_last_victim_that_is_gone_wakes_the_preemptor_when_we_hear_of_it(is_heard_of: bool, activated: list[str]):
    # To try at once, with a watch that lags, is to propose the same victim as fast as the API server says that it is gone.
    scene = Scene()
    scene.api.fails["delete", "a"] = NotFound(404, "NotFound", "gone")
    scene.begin(victim("a"))
    await asyncio.gather(*scene.tasks)
    if is_heard_of:
        scene.placed.clear()
    scene.turn()
    assert scene.queue.activated == activated and not scene.is_gated


async def test_a_failure_spares_the_last_victim_and_activates_the_preemptor():
    scene = Scene()
    scene.api.fails["delete", "a"] = Conflict(409, "Conflict", "no")
    scene.begin(victim("a"), victim("b"), victim("c"))
    await asyncio.gather(*scene.tasks)
    assert scene.queue.activated == [], "the queue is touched in the loop's turn only"
    scene.turn()
    assert scene.api.said("delete") == ["a", "b"]
    assert scene.queue.activated == ["high"] and not scene.is_gated
    assert scene.observer.ended == ["error"]


@pytest.mark.parametrize(
    ("place", "activated"), [("unschedulable", ["high"]), ("gated", ["high"]), ("active", []), ("backoff", [])]
)
async def test_a_last_victim_that_lost_its_node_meanwhile_wakes_nobody_by_going(place: str, activated: list[str]):
    scene = Scene()
    scene.queue.place = place
    scene.begin(victim("a"))
    await asyncio.gather(*scene.tasks)
    scene.placed.clear()  # its binding failed while the preemptor was kept back
    scene.turn()
    assert scene.queue.activated == activated, "unless it was woken by then"


async def test_a_bug_does_not_leave_the_preemptor_gated_for_ever():
    scene = Scene()

    def breaks(*args: Any) -> None:
        raise RuntimeError("a bug")

    scene.recorder.event = breaks  # type: ignore[method-assign]
    scene.begin(victim("a"))
    with pytest.raises(RuntimeError):
        await asyncio.gather(*scene.tasks)
    scene.turn()
    assert not scene.is_gated and scene.queue.activated == ["high"]


async def test_a_pod_at_permit_is_not_deleted():
    scene = Scene()
    waiting = scene.waiting["uid-default-a"] = AtPermit()
    scene.begin(victim("a"))
    await scene.finish()
    assert waiting.said == [("DefaultPreemption", "preempted")]
    assert scene.api.calls == []
    assert scene.recorder.events == [
        ("a", "Normal", "Preempted", "Preempting", "Preempted by pod uid-high on node n1 (in kube-scheduler memory).")
    ]


async def test_a_pod_in_pre_bind_is_not_deleted():
    scene = Scene()
    scene.binding.pods["uid-default-a"] = True
    scene.begin(victim("a"))
    await scene.finish()
    assert scene.binding.said == [("uid-default-a", "preempted by DefaultPreemption")]
    assert scene.api.calls == []
    assert scene.recorder.events[0][4].endswith(" (in kube-scheduler memory).")


async def test_a_pod_that_is_past_that_is_deleted():
    scene = Scene()
    scene.waiting["uid-default-a"] = AtPermit(is_open=False)
    scene.binding.pods["uid-default-b"] = False
    scene.begin(victim("a"), victim("b"))
    await scene.finish()
    assert scene.api.said("delete") == ["a", "b"]
    assert not any(event[4].endswith("memory).") for event in scene.recorder.events)


async def test_pods_of_lower_priority_lose_their_nomination_first():
    scene = Scene()
    scene.queue.nominations.pods["n1"] = [
        scene.view(pod("displaced", priority=1, nominated="n1")),
        scene.view(pod("equal", priority=1000, nominated="n1")),
        scene.view(pod("unwritten", priority=1)),
    ]
    scene.known["default/displaced"] = scene.view(pod("displaced", priority=1, nominated="n1", uid="newest"))
    scene.begin(victim("a"))
    await scene.finish()
    assert scene.api.calls[0] == ("patch", "displaced", {"nominatedNodeName": None})
    assert scene.api.said("patch") == ["displaced", "a"]


async def test_a_nomination_that_cannot_be_cleared_does_not_stop_the_eviction():
    scene = Scene()
    scene.queue.nominations.pods["n1"] = [scene.view(pod("displaced", priority=1, nominated="n1"))]
    scene.api.fails["patch", "displaced"] = Unreachable("no answer")
    scene.begin(victim("a"))
    await scene.finish()
    assert scene.api.said("delete") == ["a"]
    assert scene.observer.ended == ["error"] and scene.queue.activated == ["high"]


# In the foreground


async def test_in_the_foreground_all_go_side_by_side_and_then_nominations_are_cleared():
    scene, over = Scene(in_background=False), list[str]()
    scene.queue.nominations.pods["n1"] = [scene.view(pod("displaced", priority=1, nominated="n1"))]
    scene.begin(victim("a"), victim("b"), then=over.append)
    assert not scene.is_gated
    await asyncio.gather(*scene.tasks)
    assert over == [], "told in the loop's turn only"
    scene.turn()
    assert over == [""]
    assert scene.api.said("patch") == ["a", "b", "displaced"]
    assert scene.observer.victims == [2]


async def test_in_the_foreground_a_failure_is_reported():
    scene, over = Scene(in_background=False), list[str]()
    scene.queue.nominations.pods["n1"] = [scene.view(pod("displaced", priority=1, nominated="n1"))]
    scene.api.fails["delete", "a"] = Conflict(409, "Conflict", "no way")
    scene.begin(victim("a"), victim("b"), then=over.append)
    await scene.finish()
    assert over == ["no way"]
    assert "displaced" not in scene.api.said("patch")


# Through the engine


class Server(FakeWriter):
    """Deletes pods as the API server does, and says so through the inbox: at once, or marks those that take their time."""

    def __init__(self, *, is_graceful: bool = False) -> None:
        super().__init__()
        self.engine: Engine | None = None
        self.pods: dict[str, Pod] = {}
        self.is_graceful = is_graceful

    async def delete_pod(self, target: PodView) -> None:
        await super().delete_pod(target)
        assert self.engine is not None
        old = self.pods.pop(target.uid)
        metadata = msgspec.structs.replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        new = msgspec.structs.replace(old, metadata=metadata) if self.is_graceful else None
        self.engine.inbox.post(Changed("Pod", old, new))


def build(server: Server, *, in_background: bool, recorder: FakeRecorder) -> Engine:
    gates = config.Gates.defaults()
    engine = assemble(
        default_configuration(gates),
        gates,
        Ports(clock=StillClock(MINUTE), writer=server, recorder=recorder),
        options=EngineOptions(evicts_in_background=in_background),
    )
    server.engine = engine
    engine.intake.apply("Node", None, node("n1", cpu="2"))
    for given in (pod("low", on="n1", requests={"cpu": "2"}, priority=0), pod("high", requests={"cpu": "2"}, priority=9)):
        server.pods[given.metadata.uid] = given
        engine.intake.apply("Pod", None, given)
    return engine


@pytest.mark.parametrize("in_background", [True, False])
async def test_a_preemptor_takes_its_victims_place(in_background: bool):
    server, recorder = Server(), FakeRecorder()
    engine = build(server, in_background=in_background, recorder=recorder)
    await engine.settle()
    assert server.said("delete") == ["low"]
    assert ("bind", "high", "n1") in server.calls
    reasons = [(name, reason) for name, _, reason, _, _ in recorder.events]
    assert reasons.count(("low", "Preempted")) == 1 and ("high", "Scheduled") in reasons
    assert len(engine.handle.preempting) == 0


@pytest.mark.parametrize("n_reloads", [1, 2])
async def test_an_eviction_that_fails_after_a_reload_wakes_the_preemptor_in_the_new_engine(n_reloads: int):
    server = Server()
    server.fails["delete", "low"], server.hold["low"] = Unreachable("no answer"), asyncio.Event()
    new = build(server, in_background=True, recorder=FakeRecorder())
    assert new.step()
    await _idle()
    gates = config.Gates.defaults()
    ports, prepared = Ports(clock=StillClock(MINUTE), writer=server), (new.store, new.handle)
    for _ in range(n_reloads):
        old, new = new, assemble(default_configuration(gates), gates, ports, prepared=prepared, inbox=new.inbox)
        new.take_over(old)
    assert new.queue.place_of("default/high") == "gated", "its victim is just being evicted"
    server.hold["low"].set()
    await _idle()
    new.take_in()
    assert new.queue.place_of("default/high") == "active"


async def test_an_eviction_that_ends_after_a_reload_wakes_the_preemptor_in_the_new_engine():
    server = Server(is_graceful=True)
    server.hold["low"] = asyncio.Event()
    old = build(server, in_background=True, recorder=FakeRecorder())
    assert old.step()
    await _idle()
    gates, ports = config.Gates.defaults(), Ports(clock=StillClock(MINUTE), writer=server)
    new = assemble(default_configuration(gates), gates, ports, prepared=(old.store, old.handle), inbox=old.inbox)
    new.take_over(old)
    assert new.queue.place_of("default/high") == "gated", "its victim is just being evicted"
    server.hold["low"].set()
    await _idle()
    new.take_in()
    assert new.queue.place_of("default/high") == "active", "nobody but the gate has refused it here, so no event would wake it"
    assert new.step()
    assert server.said("delete") == ["low"], "it is tried in vain, and waits for its victim to go"
    assert new.queue.place_of("default/high") == "unschedulable"


async def test_an_eviction_that_fails_in_the_foreground_is_told_in_the_message():
    server, recorder = Server(), FakeRecorder()
    server.fails["delete", "low"] = Conflict(409, "Conflict", "not now")
    engine = build(server, in_background=False, recorder=recorder)
    engine.step()
    assert engine.queue.n_in_flight == 1, "the attempt is not over before the evictions are"
    await _idle()
    engine.take_in()
    assert engine.queue.n_in_flight == 0
    failed = [note for name, _, reason, _, note in recorder.events if reason == "FailedScheduling"]
    assert failed == ["0/1 nodes are available: 1 Insufficient cpu. preemption: not now"]
    assert engine.queue.nominations.node_of("uid-default-high") == ""


async def test_nobody_is_tried_while_evictions_in_the_foreground_make_a_place():
    server, recorder = Server(), FakeRecorder()
    engine = build(server, in_background=False, recorder=recorder)
    rival = pod("rival", requests={"cpu": "2"}, priority=5)
    server.pods[rival.metadata.uid] = rival
    engine.intake.apply("Pod", None, rival)
    assert engine.step(), "the preemptor"
    assert not engine.step(), "the rival has to wait"
    await _idle()
    await engine.settle()
    assert [call for call in server.calls if call[0] == "bind"] == [("bind", "high", "n1")]


async def _idle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
