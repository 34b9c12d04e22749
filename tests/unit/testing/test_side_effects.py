"""`check_plugin` calls PostFilter, PreBind, Bind and PostBind, lets nobody write to scores, and names what is done wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import (
    SKIP,
    CycleState,
    Diagnosis,
    Plugin,
    PostFiltered,
    Preemption,
    Profile,
    Reason,
    Rejections,
    Status,
)
from kubesched.scheduler.framework.verdicts import SUCCESS, Nomination, unschedulable
from kubesched.testing import check_plugin


def checked(cls: type[Plugin]) -> str:
    """Return what is said of a plugin; empty if it keeps the contract."""
    try:
        check_plugin(cls, rounds=3)
    except (AssertionError, PluginError) as error:
        return str(error)
    return ""


class Finder(Plugin):
    answer: Any = PostFiltered(unschedulable("nothing helps"))

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        assert diagnosis.status(nodes.names[0]).is_rejected
        found: PostFiltered = self.answer(nodes) if callable(self.answer) else self.answer
        return found


def evicting_a_stranger(nodes: Snapshot) -> PostFiltered:
    row = next((row for row in range(nodes.n) if nodes.pods_on(row)), None)
    if row is None:
        return PostFiltered(unschedulable("nobody is there"))
    others = [name for name in nodes.names if name != nodes.name(row)]
    return PostFiltered(SUCCESS, None, Preemption((others or ["gone"])[0], tuple(nodes.pods_on(row))))


async def breaking() -> None:
    raise KeyError("lost")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "PostFiltered"),
        (PostFiltered(SUCCESS, Nomination("nowhere")), "PostFilter nominates node 'nowhere', which is not there"),
        (evicting_a_stranger, "PostFilter evicts"),
        (PostFiltered(unschedulable(), follow_up=breaking), "KeyError"),
        (lambda nodes: nodes.missing, "AttributeError"),
    ],
    ids=["no answer", "a node that is not there", "victims elsewhere", "a follow-up that breaks", "raising"],
)
def test_what_post_filter_does_wrong_is_named(answer: Any, complaint: str) -> None:
    assert complaint in checked(type("Broken", (Finder,), {"answer": staticmethod(answer) if callable(answer) else answer}))


def test_a_post_filter_that_finds_nothing_or_a_node_keeps_the_contract() -> None:
    assert checked(Finder) == ""
    assert (
        checked(type("Nominating", (Finder,), {"answer": lambda self, nodes: PostFiltered(SUCCESS, Nomination(nodes.name(0)))}))
        == ""
    )


class Binder(Plugin):
    """Prepares for a minute, and binds."""

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        await asyncio.sleep(30)
        await self.handle.clock.sleep(30)
        return None

    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        await self.handle.writer.bind(pod, node_name)
        return None

    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        self.handle.recorder.event(pod, "Normal", "Bound", "Binding", f"on {node_name}")


def test_a_binder_that_waits_writes_and_tells_keeps_the_contract() -> None:
    assert checked(Binder) == ""


async def elsewhere(self: Any, pod: PodView, node_name: str, state: CycleState) -> Status | None:
    await self.handle.writer.bind(pod, "elsewhere")
    return None


async def twice(self: Any, pod: PodView, node_name: str, state: CycleState) -> Status | None:
    await self.handle.writer.bind(pod, node_name)
    await self.handle.writer.bind(pod, node_name)
    return None


async def and_skipping(self: Any, pod: PodView, node_name: str, state: CycleState) -> Status | None:
    await self.handle.writer.bind(pod, node_name)
    return SKIP


async def saying_yes(self: Any, pod: PodView, node_name: str, state: CycleState) -> Any:
    return True


async def raising(self: Any, pod: PodView, node_name: str, state: CycleState) -> Status | None:
    raise ZeroDivisionError(node_name)


async def waiting(self: Any, pod: PodView, node_name: str, state: CycleState) -> Status | None:
    await asyncio.get_running_loop().create_future()
    return None


def refusing(self: Any, pod: PodView, node_name: str, state: CycleState) -> Status | None:
    return unschedulable("not today")


def breaking_after(self: Any, pod: PodView, node_name: str, state: CycleState) -> None:
    raise KeyError(pod.name)


@pytest.mark.parametrize(
    ("method", "function", "complaint"),
    [
        ("bind", elsewhere, "it binds the pod to 'elsewhere' instead of"),
        ("bind", twice, "it binds the pod 2 times"),
        ("bind", and_skipping, "it binds the pod, and leaves that to the next plugin"),
        ("bind", saying_yes, "Bind"),
        ("pre_bind", saying_yes, "PreBind"),
        ("pre_bind", raising, "ZeroDivisionError"),
        ("pre_bind", waiting, "it waits for something that neither the API nor the clock brings"),
        ("pre_bind_pre_flight", refusing, 'returned "Unschedulable", which is unsupported'),
        ("post_bind", breaking_after, "KeyError"),
    ],
)
def test_what_a_binder_does_wrong_is_named(method: str, function: Any, complaint: str) -> None:
    assert complaint in checked(type("Broken", (Binder,), {method: function}))


class Promising(Binder):
    """Keeps its promise to a pod whose binding failed."""

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.taken: set[str] = set()
        self.bound: set[str] = set()

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        return Rejections.where(np.array([name in self.taken for name in nodes.names]), Reason("node(s) were taken"))

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        self.taken.add(node_name)
        return None

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        if pod.uid not in self.bound:
            self.taken.discard(node_name)

    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        self.bound.add(pod.uid)  # too early
        return await super().bind(pod, node_name, state)


def test_a_promise_that_is_kept_although_the_api_refused_is_named() -> None:
    assert "after writes that failed, and Unreserve, it says" in checked(Promising)


def test_normalising_in_place_is_named() -> None:
    """A score that is the same everywhere is one number shown as a column, which nobody can write to."""

    class Halving(Plugin):
        def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
            return np.arange(nodes.n, dtype=np.int64)

        def normalize(self, scores: Any, feasible: Any, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
            scores //= 2
            return scores

    said = checked(Halving)
    assert "Halving" in said and "read-only" in said
