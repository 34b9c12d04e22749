"""Health endpoints: who is asked, what is said, what is counted."""

from __future__ import annotations

import pytest
from web_fakes import client_for, new_parts

from kubesched.server.web import PING, Check, build_app, handlers_check, leader_election_check, shutdown_check

SICK = Check("sched-handler-sync", lambda: "handlers are not fully synchronized")
FINE = Check("shutdown", lambda: "")

CASES = [
    ("all is well", "/readyz", (FINE,), 200, "ok"),
    ("no checks at all", "/readyz", (), 200, "ok"),
    ("a list of all", "/readyz?verbose", (FINE, PING), 200, "[+]shutdown ok\n[+]ping ok\nreadyz check passed\n"),
    (
        "somebody complains, and the reason is withheld",
        "/readyz",
        (FINE, SICK),
        500,
        "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
    ),
    ("the one who complains is excluded", "/readyz?exclude=sched-handler-sync", (FINE, SICK), 200, "ok"),
    (
        "an excluded one is shown as such",
        "/readyz?verbose&exclude=sched-handler-sync",
        (FINE, SICK),
        200,
        "[+]shutdown ok\n[+]sched-handler-sync excluded: ok\nreadyz check passed\n",
    ),
    (
        "several are excluded",
        "/readyz?verbose&exclude=shutdown&exclude=ping",
        (FINE, PING),
        200,
        "[+]shutdown excluded: ok\n[+]ping excluded: ok\nreadyz check passed\n",
    ),
    (
        "an unknown one cannot be excluded",
        "/readyz?verbose&exclude=x",
        (FINE,),
        200,
        '[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for "x"\nreadyz check passed\n',
    ),
    ("one check is well", "/readyz/shutdown", (FINE, SICK), 200, "ok"),
    (
        "one check says its reason",
        "/readyz/sched-handler-sync",
        (FINE, SICK),
        500,
        "internal server error: handlers are not fully synchronized\n",
    ),
    ("no such check", "/readyz/x", (FINE,), 404, "404 page not found\n"),
]


@pytest.mark.parametrize(("case", "path", "checks", "status", "text"), CASES, ids=[case[0] for case in CASES])
async def test_answers(case: str, path: str, checks: tuple[Check, ...], status: int, text: str) -> None:
    async with client_for(build_app(new_parts(readyz=checks))) as client:
        answer = await client.get(path)
        assert (answer.status, await answer.text()) == (status, text)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_every_endpoint_has_its_own_checks() -> None:
    parts = new_parts(healthz=(Check("leaderElection", lambda: ""),), livez=(PING,), readyz=(SICK,))
    async with client_for(build_app(parts)) as client:
        assert await (await client.get("/healthz?verbose")).text() == "[+]leaderElection ok\nhealthz check passed\n"
        assert await (await client.get("/livez?verbose")).text() == "[+]ping ok\nlivez check passed\n"
        assert (await client.get("/readyz")).status == 500
        assert (await client.head("/livez")).status == 200


async def test_results_are_counted_for_service_levels() -> None:
    async with client_for(build_app(new_parts(livez=(PING,), readyz=(SICK,)))) as client:
        for path in ("/livez", "/livez/ping", "/readyz"):
            await client.get(path)
        text = await (await client.get("/metrics/slis")).text()
        assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in text
        assert 'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 0.0' in text
        assert 'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 2.0' in text
        assert 'kubernetes_healthchecks_total{name="sched-handler-sync",status="error",type="readyz"} 1.0' in text
        assert await (await client.delete("/metrics/slis")).text() == "metrics reset\n"
        assert "ping" not in await (await client.get("/metrics/slis")).text()


def test_the_usual_checks_say_what_the_reference_says() -> None:
    state = {"stopping": False, "synced": True, "late": False}
    checks = [
        shutdown_check(lambda: state["stopping"]),
        handlers_check(lambda: state["synced"]),
        leader_election_check(lambda: state["late"]),
    ]
    assert [(check.name, check.complaint()) for check in checks] == [
        ("shutdown", ""),
        ("sched-handler-sync", ""),
        ("leaderElection", ""),
    ]
    state.update(stopping=True, synced=False, late=True)
    assert [check.complaint() for check in checks] == [
        "process is shutting down",
        "handlers are not fully synchronized",
        "failed election to renew leadership on lease kube-scheduler",
    ]
