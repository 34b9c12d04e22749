"""The check of PostFilter, PreBind, Bind and PostBind, called as the scheduler calls them.

API, clock and events are fakes, in virtual time. A plugin that waits for anything else fails with its name.

  * PostFilter returns a PostFiltered with existing nodes, and with victims that are on the node
  * PreBind, Bind and PostBind bind the pod once, to its node; or not at all, if Bind leaves it to the next plugin
  * if the API refuses every write, Unreserve undoes what Reserve promised
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kubesched.errors import Conflict, PluginError
from kubesched.kube.api import Pod, TopLevel
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import (
    SKIP,
    Code,
    CycleState,
    Diagnosis,
    Plugin,
    Profile,
    Reason,
    Rejections,
    Status,
    Verdicts,
)
from kubesched.testing.fakes import FakeWriter
from kubesched.tools.simulation.clock import run_virtually

if TYPE_CHECKING:
    from kubesched.testing.contract import Bench

SIDE_EFFECT_POINTS = ("post_filter", "pre_bind", "bind", "post_bind")
_REFUSED = Reason("node(s) were refused by the check of the contract")
_NO = Conflict(409, "Conflict", "the check of the contract refuses every write")


class RefusingWriter(FakeWriter):
    """A writer whose every call fails."""

    async def _call(self, verb: str, name: str, body: Any) -> None:
        raise _NO


def check_side_effects(make: Callable[..., Bench], cls: type[Plugin], args: Any, objects: Sequence[TopLevel], pod: Pod) -> None:
    """Raise AssertionError or PluginError if a plugin breaks these rules. `make` makes a `Bench`."""
    bench = make(cls, args, objects)
    if not bench.store.snapshot().n or not any(cls.implements(point) for point in SIDE_EFFECT_POINTS):
        return
    where = f"plugin {cls.name}, pod {pod.key}"
    if cls.implements("post_filter"):
        _check_post_filter(bench, pod, where)
    _run(_check_binding(bench, pod, where), where)
    _run(_check_refused_writes(make(cls, args, objects, RefusingWriter()), pod, where), where)


def _run(work: Coroutine[Any, Any, None], where: str) -> None:
    try:
        run_virtually(work)
    except RuntimeError as error:
        if "in virtual time" not in str(error):
            raise
        raise AssertionError(f"{where}: it waits for something that neither the API nor the clock brings") from error


def _check_post_filter(bench: Bench, pod: Pod, where: str) -> None:
    """Refuse a pod on all nodes, and call PostFilter."""
    profile, view, nodes, state = bench.profile, bench.store.view(pod), bench.store.snapshot(), CycleState()
    if profile.pre_filter(view, nodes, state).status is not None:
        return
    verdicts = Verdicts(nodes)
    verdicts.add(bench.plugin.name, Rejections.where(np.ones(nodes.n, dtype=np.bool_), _REFUSED))
    found = profile.post_filter(view, nodes, state, Diagnosis(nodes.n, verdicts))
    if found.nomination is not None:
        name = found.nomination.node_name
        assert not name or nodes.row(name) >= 0, f"{where}: PostFilter nominates node {name!r}, which is not there"
    if found.preemption is not None:
        row = nodes.row(found.preemption.node_name)
        assert row >= 0, f"{where}: PostFilter evicts from node {found.preemption.node_name!r}, which is not there"
        there = {other.uid for other in nodes.pods_on(row)}
        strangers = [victim.key for victim in found.preemption.victims if victim.uid not in there]
        assert not strangers, f"{where}: PostFilter evicts {strangers[0]}, which is not on {found.preemption.node_name}"
    if found.follow_up is not None:
        _run(_awaited(found.follow_up()), where)


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _check_binding(bench: Bench, pod: Pod, where: str) -> None:
    """Bind a pod to the first node, with a working API."""
    profile, view, name, state = bench.profile, bench.store.view(pod), bench.store.snapshot().names[0], CycleState()
    writer = bench.writer
    if not _reserved(bench, view, name, state):
        return
    status = await _bound(profile, view, name, state, where)
    bindings = [call.body for call in writer.calls if call.verb == "bind" and call.name == view.name]
    if status is not SKIP:
        assert len(bindings) <= 1, f"{where}: it binds the pod {len(bindings)} times"
        assert not bindings or bindings[0] == name, f"{where}: it binds the pod to {bindings[0]!r} instead of {name!r}"
    else:
        assert not bindings, f"{where}: it binds the pod, and leaves that to the next plugin"
    if status.is_success or status is SKIP:
        profile.post_bind(view, name, state)
    else:
        profile.unreserve(view, name, state)


async def _check_refused_writes(bench: Bench, pod: Pod, where: str) -> None:
    """Bind a pod to the first node, with an API that refuses every write, then unreserve it."""
    profile, view, name, state = bench.profile, bench.store.view(pod), bench.store.snapshot().names[0], CycleState()
    first = bench.answers(pod)
    if not _reserved(bench, view, name, state):
        return
    try:
        await _bound(profile, view, name, state, where)
    except PluginError as error:
        if not _follows_from(error, _NO):
            raise
    profile.unreserve(view, name, state)
    anew = bench.answers(pod)
    assert first == anew, f"{where}: after writes that failed, and Unreserve, it says {anew} instead of {first}"


def _follows_from(error: BaseException | None, first: Exception) -> bool:
    while error is not None and error is not first:
        error = error.__cause__ or error.__context__
    return error is first


def _reserved(bench: Bench, pod: PodView, name: str, state: CycleState) -> bool:
    """Return whether the pod passes PreFilter, Reserve and Permit; if not, unreserve it."""
    if bench.profile.pre_filter(pod, bench.store.snapshot(), state).status is not None:
        return False
    if bench.profile.reserve(pod, name, state).is_success and not bench.profile.permit(pod, name, state)[0].is_rejected:
        return True
    bench.profile.unreserve(pod, name, state)
    return False


async def _bound(profile: Profile, pod: PodView, name: str, state: CycleState, where: str) -> Status:
    """Return the result of PreBind and Bind; SKIP if the plugin leaves the binding to another one."""
    acting, status = profile.pre_bind_pre_flight(pod, name, state)
    assert not status.message.startswith("PreBindPreFlight "), f"{where}: {status.message}"
    if status.code is Code.ERROR:
        return status
    for plugin in acting:
        status = await profile.pre_bind(plugin, pod, name, state)
        if not status.is_success:
            return status
    status = await profile.bind(pod, name, state)
    return SKIP if status.code is Code.SKIP else status
