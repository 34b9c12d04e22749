"""What if: where manifests would go, what other weights would move, and the cluster as a file; for the page.

In: how to read the cluster, and how its scheduler decides. Out: routes under /ui/api/. The cluster is read anew for every
question and nothing is ever written to it. One question is answered at a time, in a thread of its own, so that the scheduler
goes on; what takes too long is given up. Questions come as JSON and say so: what a form of another site can send is refused.

What answers a question is imported at the first question: `run` serves these routes, and its start must not wait for the
simulator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.errors import SchedulerError
from kubesched.kube.client import Connection
from kubesched.scheduler import config
from kubesched.scheduler.engine import Engine, Ports
from kubesched.scheduler.framework import Registry, catalogue
from kubesched.server.app import Scheduler
from kubesched.server.web.page.data import Document
from kubesched.server.web.page.page import answer

if TYPE_CHECKING:
    from kubesched.tools.snapshots.captured import Captured

API = "/ui/api"
MOST_SECONDS = 60.0
MOST_BYTES = 1 << 20
MOST_WEIGHT = 1_000_000
MOST_MOVED = 1000
"""Pods that moved that are named in an answer."""

Question = TypeVar("Question")
Read = Callable[[], Awaitable["Captured"]]


class Deciding(NamedTuple):
    """How pods are decided; without extenders: asking them is not for who only looks."""

    configuration: config.Configuration
    gates: config.Gates
    registry: Registry

    def engine(self, cluster: Captured, ports: Ports | None = None) -> Engine:
        """Return an engine that decides so and believes in a cluster."""
        return cluster.engine(replace(self.configuration, extenders=()), self.gates, registry=self.registry, ports=ports)


class PlanQuestion(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Where would these go?"""

    manifests: str
    namespace: str = "default"


class CompareQuestion(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What would other weights, or another configuration, move? With `reschedule`, all pods are placed again."""

    weights: dict[str, int] = {}
    configuration: str = ""
    reschedule: bool = True


def what_ifs_of_scheduler(scheduler: Scheduler, connection: Connection) -> Sequence[web.RouteDef]:
    """Return the routes about a running scheduler: its cluster is read anew each time, and decided as it decides."""
    gates = scheduler.wiring.gates

    async def read() -> Captured:
        from kubesched.tools.snapshots.captured import capture

        return await capture(connection, gates, time.time())

    return what_if_routes(read, lambda: Deciding(scheduler.configuration, gates, scheduler.registry))


def what_if_routes(read: Read, deciding: Callable[[], Deciding]) -> list[web.RouteDef]:
    """Return the routes. The configuration is asked for each time: it may be another one by then."""
    one_at_a_time = asyncio.Lock()

    async def work(ask: Callable[[Captured], Document]) -> Document:
        async with asyncio.timeout(MOST_SECONDS):
            await one_at_a_time.acquire()
            try:
                cluster = await read()
            except BaseException:  # whatever it is, also who gives up: the next question may be asked
                one_at_a_time.release()
                raise
            # A thread cannot be stopped: the next question waits until it is through, also when nobody waits for its answer.
            found = asyncio.ensure_future(asyncio.to_thread(ask, cluster))
            found.add_done_callback(lambda _: one_at_a_time.release())
            return await asyncio.shield(found)

    def asking(kind: type[Question], ask: Callable[[Captured, Question, Deciding], Document]) -> Handler:
        async def answering(request: web.Request) -> web.Response:
            async def found() -> Document:
                asked = await question(request, kind)
                return await work(lambda cluster: ask(cluster, asked, deciding()))

            return await answered(found)

        return answering

    async def snapshot(_: web.Request) -> web.Response:
        try:
            async with one_at_a_time:
                cluster = await read()
        except SchedulerError as error:
            return answer({"error": str(error)}, 422)
        lines = b"".join(cluster.without_applied_manifests().lines())
        name = 'attachment; filename="snapshot.jsonl"'
        told = web.Response(body=lines, content_type="application/x-ndjson", headers={"Content-Disposition": name})
        told.enable_compression()
        return told

    return [
        web.post(f"{API}/plan", asking(PlanQuestion, planned)),
        web.post(f"{API}/compare", asking(CompareQuestion, compared)),
        web.get(f"{API}/snapshot", snapshot),
    ]


def planned(cluster: Captured, asked: PlanQuestion, deciding: Deciding) -> dict[str, Any]:
    """Return the plan as `kubesched plan -o json` prints it, with its warnings; raise SchedulerError."""
    from kubesched.tools.plan.manifests import manifests_in
    from kubesched.tools.plan.planning import make_plan

    manifests = manifests_in("the text", asked.manifests)
    if not manifests:
        raise SchedulerError("there is no object in the text")
    plan = make_plan(cluster, manifests, deciding.engine, namespace=asked.namespace)
    return {**plan.as_dict(), "warnings": plan.warnings}


def compared(cluster: Captured, asked: CompareQuestion, deciding: Deciding) -> dict[str, Any]:
    """Return what `kubesched compare -o json` prints, of the configuration in use against the one asked for."""
    from kubesched.tools.simulation.compare import compare, decide_both

    other = with_weights(deciding.configuration, asked.weights)
    if asked.configuration.strip():
        other = config.load(asked.configuration, gates=deciding.gates, registry=catalogue(deciding.registry))
    both = [replace(each, extenders=()) for each in (deciding.configuration, other)]
    ways = [(each, deciding.gates, deciding.registry) for each in both]
    sims = decide_both(cluster, ways, reschedule=asked.reschedule)
    with sims[0], sims[1]:
        for sim in sims:
            sim.run()
        if not sims[0].measures.n_pods:
            raise SchedulerError("there is no pod to decide")
        told = compare(*sims)
    told["moves"]["pods"] = told["moves"]["pods"][:MOST_MOVED]
    return told


def with_weights(configuration: config.Configuration, weights: dict[str, int]) -> config.Configuration:
    """Return a configuration whose profiles score with other weights; 0 takes a plugin's score out."""
    scored = {plugin.name for profile in configuration.profiles for plugin in profile.at("score")}
    unknown = sorted(weights.keys() - scored)
    if unknown:
        raise SchedulerError(f"{unknown[0]} does not score in any profile; those that do: {', '.join(sorted(scored))}")
    for name, weight in weights.items():
        if not 0 <= weight <= MOST_WEIGHT:
            raise SchedulerError(f"the weight of {name} is {weight}, and may be 0 to {MOST_WEIGHT}")
    profiles = []
    for profile in configuration.profiles:
        scores = [config.Configured(each.name, weights.get(each.name, each.weight)) for each in profile.at("score")]
        points = {**profile.points, "score": tuple(each for each in scores if each.weight)}
        profiles.append(replace(profile, points=points))
    return replace(configuration, profiles=tuple(profiles))


async def question(request: web.Request, type_: type[Question], most: int = MOST_BYTES) -> Question:
    """Return what is asked; raise SchedulerError for what is no such question."""
    if request.content_type != "application/json":
        raise SchedulerError("the question is not JSON: its content type says so")
    body = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > most:
            raise SchedulerError(f"the question is too long: {most >> 20} MiB are taken")
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.DecodeError as error:
        raise SchedulerError(f"the question is not understood: {error}") from error


async def answered(find: Callable[[], Awaitable[Document]]) -> web.Response:
    """Answer with what is found, or with the sentence that says why not."""
    try:
        return answer(await find())
    except TimeoutError:
        return answer({"error": f"not decided within {MOST_SECONDS:g} s"}, 422)
    except SchedulerError as error:
        return answer({"error": str(error)}, 422)
