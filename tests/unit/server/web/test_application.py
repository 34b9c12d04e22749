"""The application: the doors in front of every page, and the pages themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from web_fakes import FakeReviewer, authentication_flags, authorization_flags, client_for, new_parts

from kubesched.errors import Forbidden
from kubesched.server.web import PING, Authenticator, Authorizer, build_app, build_insecure_app
from kubesched.server.web.application import is_protobuf_wanted
from kubesched.telemetry import logs, protobuf
from kubesched.telemetry.exposing import CONTENT_TYPE, register
from kubesched.telemetry.metrics import Metrics

REVIEWER = FakeReviewer(
    tokens={
        "prometheus": {"username": "prometheus"},
        "guest": {"username": "guest"},
        "viewer": {"username": "viewer"},
        "root": {"username": "root", "groups": ["system:masters"]},
    },
    rights=frozenset(
        {("prometheus", "get", "/metrics"), ("viewer", "get", "/ui/api/decisions/a/b"), ("guest", "get", "/api/decisions/a/b")}
    ),
)


def guarded(reviewer: FakeReviewer = REVIEWER, **changes: Any) -> web.Application:
    return build_app(
        new_parts(
            authenticator=Authenticator(authentication_flags(), reviewer),
            authorizer=Authorizer(authorization_flags(), reviewer),
            readyz=(PING,),
            **changes,
        )
    )


DOORS = [
    ("health is open to everybody", "GET", "/healthz", "", 200),
    ("readiness too", "GET", "/readyz?verbose", "", 200),
    ("but not a single check", "GET", "/readyz/ping", "", 401),
    ("no token", "GET", "/metrics", "", 401),
    ("a wrong token", "GET", "/metrics", "stolen", 401),
    ("a wrong token even where none is needed", "GET", "/healthz", "stolen", 401),
    ("a token that may", "GET", "/metrics", "prometheus", 200),
    ("that may read, not reset", "DELETE", "/metrics", "prometheus", 403),
    ("a token that may not", "GET", "/metrics", "guest", 403),
    ("not below what it may", "GET", "/metrics/slis", "prometheus", 403),
    ("decisions are data of the page", "GET", "/api/decisions/a/b", "viewer", 404),
    ("that everybody may discover APIs opens none", "GET", "/api/decisions/a/b", "guest", 403),
    ("masters may everything", "DELETE", "/metrics", "root", 200),
    ("what does not exist is not told to strangers", "GET", "/nothing", "", 401),
    ("but to those who may", "GET", "/nothing", "root", 404),
]


@pytest.mark.parametrize(("case", "method", "path", "token", "status"), DOORS, ids=[case[0] for case in DOORS])
async def test_doors(case: str, method: str, path: str, token: str, status: int) -> None:
    async with client_for(guarded()) as client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = await client.request(method, path, headers=headers)
        assert answer.status == status
        assert answer.headers["Cache-Control"] == "no-cache, private"
        assert "Server" not in answer.headers


@pytest.mark.parametrize("accept", ["*/*", protobuf.CONTENT_TYPE])
async def test_metrics_come_in_the_form_that_is_preferred(accept: str) -> None:
    async with client_for(guarded()) as client:
        for path in ("/metrics", "/metrics/slis"):
            answer = await client.get(path, headers={"Authorization": "Bearer root", "Accept": accept})
            is_text = accept == "*/*"
            assert answer.headers["Content-Type"] == (CONTENT_TYPE if is_text else protobuf.CONTENT_TYPE)
            assert ((await answer.read()).startswith(b"#") or not is_text) and answer.status == 200


async def test_refusals_are_status_objects() -> None:
    async with client_for(guarded()) as client:
        answer = await client.get("/metrics", headers={"Authorization": "Bearer guest"})
        assert answer.content_type == "application/json"
        assert json.loads(await answer.text()) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'forbidden: User "guest" cannot get path "/metrics"',
            "reason": "Forbidden",
            "details": {},
            "code": 403,
        }
        answer = await client.get("/metrics", headers={"User-Agent": "curl/8"})
        text = await answer.text()
        assert json.loads(text)["message"] == json.loads(text)["reason"] == "Unauthorized"
        assert text.startswith('{\n  "kind": "Status",\n')


async def test_a_question_that_cannot_be_decided_is_an_error() -> None:
    reviewer = FakeReviewer(tokens={"t": {"username": "u"}})
    async with client_for(guarded(reviewer)) as client:
        headers = {"Authorization": "Bearer t"}
        assert (await client.get("/configz", headers=headers)).status == 403
        reviewer.errors.append(Forbidden(403, "Forbidden", "subjectaccessreviews is forbidden"))
        answer = await client.get("/metrics", headers=headers)
        assert answer.status == 500
        assert await answer.text() == 'Internal Server Error: "/metrics": subjectaccessreviews is forbidden\n'


async def test_nobody_gets_in_without_an_authorizer() -> None:
    async with client_for(build_app(new_parts(authorizer=None))) as client:
        assert (await client.get("/healthz")).status == 403


async def test_metrics_are_shown_compressed_and_reset() -> None:
    metrics = Metrics()
    metrics.schedule_attempts("scheduled", "default-scheduler", 0.1)
    parts = new_parts(registry=register(metrics, CollectorRegistry()), reset_metrics=metrics.reset)
    async with client_for(build_app(parts)) as client:
        line = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1\n'
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert answer.headers["Content-Encoding"] in ("gzip", "deflate")
        assert line in await answer.text()
        answer = await client.delete("/metrics")
        assert await answer.text() == "metrics reset\n"
        assert line not in await (await client.get("/metrics")).text()


async def test_the_configuration_is_shown_as_it_is_now() -> None:
    current = {"kind": "KubeSchedulerConfiguration", "parallelism": 16}
    async with client_for(build_app(new_parts(configz=lambda: current))) as client:
        answer = await client.get("/configz")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert json.loads(await answer.text()) == {"componentconfig": current}
        current["parallelism"] = 8
        assert json.loads(await (await client.get("/configz")).text())["componentconfig"]["parallelism"] == 8


VERBOSITIES = [
    ("PUT", "4", 200, "successfully set klog.logging.verbosity to 4", 4),
    ("PUT", " 7\n", 200, "successfully set klog.logging.verbosity to 7", 7),
    ("PUT", "x", 400, 'failed set klog.logging.verbosity x: strconv.ParseInt: parsing "x": invalid syntax\n', 1),
    ("PUT", "", 400, 'failed set klog.logging.verbosity : strconv.ParseInt: parsing "": invalid syntax\n', 1),
    ("GET", "", 406, "unsupported http method\n", 1),
]


@pytest.mark.parametrize(("method", "body", "status", "text", "level"), VERBOSITIES)
async def test_the_verbosity_changes_while_we_run(method: str, body: str, status: int, text: str, level: int) -> None:
    before = logs.verbosity()
    logs.set_verbosity(1)
    try:
        async with client_for(build_app(new_parts())) as client:
            answer = await client.request(method, "/debug/flags/v", data=body.encode())
            assert (answer.status, await answer.text()) == (status, text)
            assert logs.verbosity() == level
            assert "/debug/flags/v" in await (await client.get("/debug/flags")).text()
    finally:
        logs.set_verbosity(before)


async def test_a_page_that_breaks_is_a_500_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(request: web.Request) -> web.StreamResponse:
        raise ValueError("secret detail")

    async with client_for(build_app(new_parts(extra_routes=[web.get("/ui", breaks)]))) as client:
        answer = await client.get("/ui")
        assert (answer.status, await answer.text()) == (500, "Internal Server Error\n")
    assert "A page broke" in caplog.text
    assert "secret detail" in caplog.text


async def test_more_pages_stand_behind_the_same_doors() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="hello", headers={"Cache-Control": "max-age=60"})

    app = guarded(extra_routes=[web.get("/ui", page)])
    async with client_for(app) as client:
        assert (await client.get("/ui")).status == 401
        answer = await client.get("/ui", headers={"Authorization": "Bearer root"})
        assert (await answer.text(), answer.headers["Cache-Control"]) == ("hello", "max-age=60")


async def test_requests_are_logged_from_verbosity_three_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kubesched.server.web")
    try:
        async with client_for(build_app(new_parts())) as client:
            logs.set_verbosity(2)
            await client.get("/healthz")
            assert not caplog.records
            logs.set_verbosity(3)
            await client.get("/healthz?verbose", headers={"User-Agent": "kube-probe/1.36"})
        events = [record.event.values for record in caplog.records if record.getMessage() == "HTTP"]  # type: ignore[attr-defined]
        assert [(e["verb"], e["URI"], e["userAgent"], e["resp"]) for e in events] == [
            ("GET", "/healthz?verbose", "kube-probe/1.36", 200)
        ]
    finally:
        logs.set_verbosity(0)


async def test_the_old_port_is_open_and_small() -> None:
    async with client_for(build_insecure_app(new_parts(authorizer=None))) as client:
        for path in ("/healthz", "/metrics", "/configz", "/debug/pprof/"):
            assert (await client.get(path)).status == 200, path
        assert await (await client.delete("/metrics")).text() == "metrics reset\n"
        for path in ("/readyz", "/flagz", "/metrics/resources", "/debug/flags/v"):
            assert (await client.get(path)).status == 404, path
    async with client_for(build_insecure_app(new_parts(has_profiling=False))) as client:
        assert (await client.get("/debug/pprof/")).status == 404


PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        (PROTOBUF, True),
        (f"{PROTOBUF};q=0.7,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        (f"{PROTOBUF};q=0.3,text/plain;version=0.0.4;q=0.5", False),
        (PROTOBUF.replace("delimited", "text"), False),
    ],
)
def test_who_prefers_protobuf_gets_it(accept: str, wanted: bool) -> None:
    assert is_protobuf_wanted(accept) is wanted
