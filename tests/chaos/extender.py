"""An extender: somebody else's program that schedulers ask about nodes, and that binds pods in some scenes.

In: what a scheduler would post. Out: an honest answer, and while a fault lasts no answer, one that comes too late, rubbish,
names of nodes that nobody asked about, a refusal of everything, or an error after all was done as asked. A call waits in
virtual time: the loop lets the thread's caller know that much later.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from chaos.disk import PowerLost
from chaos.processes import Process
from kubesched.errors import ApiError, SchedulerError
from kubesched.server.app.extender_client import HttpPoster

if TYPE_CHECKING:
    from chaos.world import World

_HARMS = ("refused", "late", "rubbish", "unknown", "nothing", "error", "odd")


class SimulatedExtender(HttpPoster):
    """The way from one scheduler to its extender, and the extender."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__()
        self._world, self._process = world, process

    def post(self, url: str, body: bytes, extender: Any) -> bytes:
        """Answer, after a while."""
        process, verb = self._process, url.rpartition("/")[2]
        process.waited_seconds += process.chance.uniform(0.001, 0.02)
        asked, harm = json.loads(body), ""
        if process.sabotage("extender"):
            harm = process.chance.choice(_HARMS)
            self._world.history.note(f"extender {process.name} {verb} {harm}")
        if harm == "refused":
            raise SchedulerError(f"extender at {url}: connection refused")
        answer = getattr(self, f"_{verb}")(asked, harm)
        if harm == "late":
            process.waited_seconds += extender.http_timeout.seconds
            raise SchedulerError(f"extender at {url}: no answer within {extender.http_timeout.seconds:g} s")
        return {"rubbish": b"<html>", "odd": b'[{"Host": 3}, null]'}.get(harm) or json.dumps(answer).encode()

    def _filter(self, asked: dict[str, Any], harm: str) -> dict[str, Any]:
        names = asked["NodeNames"]
        if harm == "nothing":
            return {"NodeNames": [], "FailedNodes": dict.fromkeys(names, "not today")}
        error = "sabotaged" if harm == "error" else ""
        return {"NodeNames": [*names, "nobody"] if harm == "unknown" else names, "FailedNodes": {}, "Error": error}

    def _prioritize(self, asked: dict[str, Any], harm: str) -> list[dict[str, Any]]:
        score = {"error": 1 << 60, "nothing": -5}.get(harm, 5)
        names = [*asked["NodeNames"], "nobody"] if harm == "unknown" else asked["NodeNames"]
        return [{"Host": name, "Score": score} for name in names]

    def _preempt(self, asked: dict[str, Any], harm: str) -> dict[str, Any]:
        victims = {} if harm == "nothing" else asked["NodeNameToMetaVictims"]
        return {"NodeNameToMetaVictims": {"nobody": {"Pods": []}} if harm == "unknown" else victims}

    def _bind(self, asked: dict[str, Any], harm: str) -> dict[str, Any]:
        namespace, name = asked["PodNamespace"], asked["PodName"]
        self._world.network.on_request(self._process, "POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", b"")
        if harm in ("nothing", "unknown"):
            return {"Error": "sabotaged"}
        if not self._world.server.is_up:
            return {"Error": "the API server is away"}
        try:
            self._world.server.do("bind", namespace, name, asked["Node"], asked["PodUID"])
        except (ApiError, OSError, PowerLost) as error:
            return {"Error": str(error) or "the API server is away"}
        return {"Error": "sabotaged, after it was done" if harm == "error" else ""}
