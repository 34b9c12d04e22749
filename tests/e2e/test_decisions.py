"""The record of a running scheduler: over HTTPS, in its decision log, and made again from its inbox log; always the same."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from aiohttp import test_utils, web
from control_planes import PROGRAM, a_node, a_pod, free_port, process, serving
from in_process import until
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from kubesched.embedded import ApiServer
from kubesched.embedded.http.access import User

TOKENS = {"root": User("root", ("system:masters", "system:authenticated"))}
N_PODS = 24
OWN = ("at", "sequence", "latencySeconds", "boundSeconds", "ranking", "refusals", "sentence", "levelCount")
"""What depends on the moment, or on what the budget allowed."""


async def run(*words: str) -> str:
    done = await asyncio.to_thread(subprocess.run, [*PROGRAM, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def decisions(*words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(await run("decisions", "-o", "json", "--limit", "1000", *words))["decisions"]
    return found


def facts(told: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what a pod's placement was decided by."""
    return {
        each["pod"]: {name: value for name, value in each.items() if name not in OWN}
        for each in told
        if each["outcome"] == "placed"
    }


class SpanReceiver:
    """An OTLP receiver over HTTP, as a collector is."""

    def __init__(self) -> None:
        self.attempts: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        self._server = test_utils.TestServer(web.Application())

    async def __aenter__(self) -> SpanReceiver:
        self._server.app.router.add_post("/v1/traces", self._take)
        await self._server.start_server()
        self.url = str(self._server.make_url("/v1/traces"))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    async def _take(self, request: web.Request) -> web.Response:
        for each in ExportTraceServiceRequest.FromString(await request.read()).resource_spans:
            for span in (span for scope in each.scope_spans for span in scope.spans):
                told = {attribute.key: attribute.value.string_value for attribute in span.attributes}
                self.names.add(span.name)
                if span.name == "schedule":
                    self.attempts.add((told["k8s.pod.name"], told["kubesched.outcome"]))
        return web.Response(body=b"", content_type="application/x-protobuf")


async def test_a_decision_is_told_alike_by_the_scheduler_its_log_and_a_replay(tmp_path: Path) -> None:
    port, log, inbox = free_port(), tmp_path / "decisions.jsonl", tmp_path / "inbox.jsonl"
    async with ApiServer(tokens=TOKENS) as api, SpanReceiver() as receiver:
        kubeconfig = api.write_kubeconfig(tmp_path / "kubeconfig", "root")
        for i in range(5):
            api.store.create("nodes", a_node(f"n{i}", str(4 + i), "8Gi"))
        logs = (f"--decision-log={log}", f"--inbox-log={inbox}", f"--otlp-endpoint={receiver.url}")
        server = [f"--server=https://127.0.0.1:{port}", "--insecure-skip-tls-verify", "--token=root"]
        async with process(*PROGRAM, "run", *serving(kubeconfig, port), *logs, log=tmp_path / "log") as scheduler:
            for i in range(N_PODS):
                api.store.create("pods", a_pod(f"p{i}", "500m"), "default")
            api.store.create("pods", a_pod("whale", "99"), "default")
            names = [f"p{i}" for i in range(N_PODS)]
            await until(lambda: all(api.store.get("pods", n, "default")["spec"].get("nodeName") for n in names), "bindings")
            api.store.delete("pods", "p3", "default", grace_seconds=0)
            kept = await decisions(*server)
            (gone,) = await decisions(*server, "default/p3")
            refused = await decisions(*server, "--outcome", "unschedulable", "--refused-by", "NodeResourcesFit")
            story = json.loads(await run("why", "default/p3", *server, "-o", "json"))
            text = await run("why", "default/p4", *server)
            scheduler.terminate()
            await asyncio.to_thread(scheduler.wait)
    assert {name for name, outcome in receiver.attempts if outcome == "placed"} == set(names)
    assert ("whale", "unschedulable") in receiver.attempts and "Filter NodeResourcesFit" in receiver.names
    assert {each["pod"] for each in refused} == {"default/whale"} and refused[0]["refusals"][0]["count"] == 5
    assert (story["state"], story["decided"]["sentence"], story["node"]) == ("gone", gone["sentence"], gone["node"])
    assert "As decided, at" in text and text.index("As decided") < text.index("As it would be now")
    over_http, in_log, again = (
        facts(kept),
        facts(await decisions(f"--log={log}")),
        facts(await decisions(f"--inbox-log={inbox}")),
    )
    assert set(over_http) == {f"default/{name}" for name in names}
    assert in_log == over_http
    assert again == over_http
    assert all("ranking" in each for each in await decisions(f"--inbox-log={inbox}", "default/p7"))
