"""The embedded API server over real HTTP: streams, bad input, slow readers, many watches."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.http import request_parsing
from kubesched.embedded.http.access import User
from kubesched.embedded.http.routes import MAX_BODY_BYTES

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
PODS = "/api/v1/namespaces/default/pods"
JSON_TYPE, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(ObjectStore(seed=1), bookmark_seconds=0.2, stall_seconds=0.5) as running:
        yield running


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


async def lines(answer: aiohttp.ClientResponse, count: int) -> list[dict]:
    async with asyncio.timeout(10):
        return [json.loads(await answer.content.readline()) for _ in range(count)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what we wait for has no event of its own
            await asyncio.sleep(0.01)


async def test_a_watch_list_ends_its_beginning_with_a_bookmark(server: ApiServer, http: aiohttp.ClientSession) -> None:
    server.store.create("pods", POD)
    asked = {
        "watch": "1",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "1",
    }
    async with http.get("/api/v1/pods", params=asked) as answer:
        added, mark = await lines(answer, 2)
        assert (added["type"], mark["type"]) == ("ADDED", "BOOKMARK")
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["metadata"]["resourceVersion"] == server.store.resource_version
        server.store.bind("default", "p", "n")
        modified, later = await lines(answer, 2)
        assert modified["object"]["spec"]["nodeName"] == "n"
        assert later["type"] == "BOOKMARK"
        assert later["object"]["metadata"]["resourceVersion"] == server.store.resource_version


async def test_an_old_version_is_an_error_event(server: ApiServer, http: aiohttp.ClientSession) -> None:
    server.store.create("pods", POD)
    server.store.compact()
    async with http.get("/api/v1/pods", params={"watch": "1", "resourceVersion": "2"}) as answer:
        assert answer.status == 200
        (event,) = await lines(answer, 1)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_watch_ends_at_its_timeout(http: aiohttp.ClientSession) -> None:
    started = time.monotonic()
    async with http.get("/api/v1/pods", params={"watch": "1", "timeoutSeconds": "1"}) as answer:
        assert await answer.read() == b""
    assert 0.8 < time.monotonic() - started < 5


async def test_stopping_the_server_ends_watches() -> None:
    server = ApiServer(ObjectStore())
    await server.start()
    async with aiohttp.ClientSession(server.url) as session:
        answer = await session.get("/api/v1/pods?watch=1")
        await server.stop()
        async with asyncio.timeout(5):
            assert await answer.read() == b""


async def test_a_reader_that_stops_reading_is_cut_off(server: ApiServer, http: aiohttp.ClientSession) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    slow = socket.create_connection((host, int(port)))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    feed = server.store.context.storage.table("configmaps").feed
    await until(lambda: feed.n_watches == 1)
    for number in range(60):
        big = {"metadata": {"name": f"c{number}"}, "data": {"x": "y" * 200_000}}
        async with http.post("/api/v1/namespaces/default/configmaps", json=big) as answer:
            assert answer.status == 201
    await until(lambda: feed.n_watches == 0)
    slow.close()


async def test_a_client_that_leaves_is_forgotten(server: ApiServer, http: aiohttp.ClientSession) -> None:
    answer = await http.get("/api/v1/nodes?watch=1")
    feed = server.store.context.storage.table("nodes").feed
    assert feed.n_watches == 1
    answer.close()
    await until(lambda: feed.n_watches == 0)


async def test_hundreds_of_idle_watches_do_not_disturb(server: ApiServer) -> None:
    count = 300
    async with aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(limit=0)) as session:
        answers = await asyncio.gather(*(session.get("/api/v1/nodes?watch=1") for _ in range(count)))
        server.store.create("nodes", {"metadata": {"name": "n"}})
        got = await asyncio.gather(*(lines(answer, 1) for answer in answers))
        assert {event["object"]["metadata"]["name"] for (event,) in got} == {"n"}


@pytest.mark.nightly
async def test_ten_thousand_idle_watches_do_not_disturb() -> None:
    """In a process of its own, because each side of a connection is an open file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 10_500:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    program = ("-c", "from kubesched.cli import main; main()", "apiserver", "--no-world", "--port", "0")
    process = await asyncio.create_subprocess_exec(sys.executable, *program, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().split()[-1]
        async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0)) as session:
            watches: list[aiohttp.ClientResponse] = []
            for _ in range(100):
                watches += await asyncio.gather(*(session.get(f"{PODS}?watch=1") for _ in range(100)))
            began = time.monotonic()
            async with session.post("/api/v1/nodes", json={"metadata": {"name": "n"}}) as answer:
                assert answer.status == 201
            assert time.monotonic() - began < 2, "nobody waits for those who wait"
            async with session.post(PODS, json=POD) as answer:
                assert answer.status == 201
            async with asyncio.timeout(60):
                got = [json.loads(await watch.content.readline()) for watch in watches]
            assert len(got) == 10_000
            assert {event["object"]["metadata"]["name"] for event in got} == {"p"}
    finally:
        process.terminate()
        await process.wait()


BAD = [  # what kube-apiserver is asked too stands in apiserver_book.py
    ("deep nesting", "POST", PODS, b"[" * 100_000, {}, 400, "BadRequest"),
    ("not UTF-8", "POST", PODS, b'{"metadata":{"name":"\xff"}}', {}, 400, "BadRequest"),
    ("a version of the future", "GET", "/api/v1/pods?resourceVersion=999999", b"", {}, 504, "Timeout"),
    ("only protobuf accepted", "GET", "/api/v1/pods", b"", {"Accept": PROTOBUF}, 406, "NotAcceptable"),
    ("a YAML body of aliases", "POST", PODS, b"a: &a [1]\nb: *a", {"Content-Type": "application/yaml"}, 400, "BadRequest"),
    ("a broken protobuf", "POST", PODS, b"k8s\0\x0a\xff", {"Content-Type": PROTOBUF}, 400, "BadRequest"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "reason"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
async def test_bad_input_is_answered_with_a_status(
    http: aiohttp.ClientSession, method: str, path: str, body: bytes, headers: dict, status: int, reason: str
) -> None:
    headers = {"Content-Type": "application/json", **headers}
    async with http.request(method, path, data=body, headers=headers) as answer:
        said = await answer.json()
    assert (answer.status, said["kind"], said["reason"], said["code"]) == (status, "Status", reason, status), said


@pytest.mark.parametrize("chunked", [False, True])
async def test_an_oversized_body_is_refused(http: aiohttp.ClientSession, chunked: bool) -> None:
    body = b" " * (MAX_BODY_BYTES + 1)

    async def in_pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 65_536):
            yield body[at : at + 65_536]

    headers = {"Content-Type": "application/json"}
    try:
        async with http.post(PODS, data=in_pieces() if chunked else body, headers=headers) as answer:
            assert answer.status == 413
            assert (await answer.json())["reason"] == "RequestEntityTooLarge"
    except aiohttp.ClientOSError:
        pass  # the server may close while we are still sending
    async with http.get("/healthz") as answer:
        assert await answer.text() == "ok"


async def test_yaml_is_read_and_nobody_else_is_found(http: aiohttp.ClientSession) -> None:
    body = "metadata: {name: c}\ndata:\n  since: 2026-01-01\n"
    path = "/api/v1/namespaces/default/configmaps"
    wrong = body.replace("2026-01-01", "'2026-01-01'")
    async with http.post(path, data=wrong, headers={"Content-Type": "application/yaml"}) as answer:
        assert answer.status == 201
        assert (await answer.json())["data"] == {"since": "2026-01-01"}
    async with http.get("/nowhere") as answer:
        assert (answer.status, await answer.text()) == (404, "404 page not found\n")


async def test_reviews_answer_for_known_tokens() -> None:
    tokens = {
        "a": User("root", ("system:masters", "system:authenticated")),
        "s": User("system:kube-scheduler", ("system:authenticated",)),
    }
    async with ApiServer(ObjectStore(), tokens=tokens) as server, aiohttp.ClientSession(server.url) as session:
        root, scheduler = {"Authorization": "Bearer a"}, {"Authorization": "Bearer s"}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        async with session.post(path, json={"spec": {"token": "s"}}, headers=root) as answer:
            said = (await answer.json())["status"]
        assert said == {
            "authenticated": True,
            "user": {"username": "system:kube-scheduler", "groups": ["system:authenticated"]},
        }
        async with session.post(path, json={"spec": {"token": "x"}}, headers=scheduler) as answer:
            assert (await answer.json())["status"]["authenticated"] is False
        review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        attributes = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
        for user, groups, allowed in (("root", ["system:masters"], True), ("bob", [], False)):
            body = {"spec": {"user": user, "groups": groups, **attributes}}
            async with session.post(review, json=body, headers=root) as answer:
                assert (await answer.json())["status"]["allowed"] is allowed
        async with session.get("/api/v1/pods", headers=scheduler) as answer:
            assert answer.status == 200
        async with session.post("/api/v1/nodes", json={"metadata": {"name": "n"}}, headers=scheduler) as answer:
            assert answer.status == 403
        async with session.get("/api/v1/pods") as answer:
            assert answer.status == 403
        async with session.get("/healthz") as answer:
            assert answer.status == 200
        async with session.get("/api/v1/pods", headers={"Authorization": "Bearer x"}) as answer:
            assert answer.status == 401


BODIES = [
    ("a body that does not come", b"Content-Length: 9", b"{", 504, b"did not arrive within"),
    ("chunks that are none", b"Transfer-Encoding: chunked", b"secret\r\n", 400, b"Bad Request"),
]


@pytest.mark.parametrize(("case", "header", "sent", "code", "text"), BODIES, ids=[case[0] for case in BODIES])
async def test_a_body_is_not_waited_for_without_end(
    case: str,
    header: bytes,
    sent: bytes,
    code: int,
    text: bytes,
    server: ApiServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(request_parsing, "BODY_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    kind = b"Content-Type: application/json"
    writer.write(b"POST %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n%b\r\n\r\n%b" % (PODS.encode(), kind, header, sent))
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
    assert f" {code} ".encode() in head
    answer = await reader.read(1 << 16)
    writer.close()
    assert text in answer
    assert b"secret" not in answer
    assert "secret" not in caplog.text


EVICTION = {"metadata": {"name": "p"}}
SITES = [
    ("a page of another site creates", "POST", PODS, {"Origin": "https://evil.example"}, JSON_TYPE, 403, 201),
    ("a form of another site creates", "POST", PODS, {"Origin": "null"}, "text/plain", 403, 415),
    ("a beacon without a type creates", "POST", PODS, {}, "", 415, 201),
    ("a beacon without a type evicts", "POST", f"{PODS}/p/eviction", {}, "", 415, 404),
    ("a rebound name reads", "GET", "/api/v1/secrets", {"Host": "evil.example"}, "", 403, 200),
    ("a rebound name asks for the version", "GET", "/version", {"Host": "evil.example:80"}, "", 403, 200),
    ("localhost reads", "GET", "/api/v1/pods", {"Host": "localhost:8001"}, "", 200, 200),
    ("a deletion needs no type", "DELETE", f"{PODS}/none", {}, "", 404, 404),
]


@pytest.mark.parametrize(
    ("case", "method", "path", "headers", "kind", "open_", "closed"), SITES, ids=[case[0] for case in SITES]
)
async def test_without_tokens_a_web_site_gets_nothing(
    case: str, method: str, path: str, headers: dict[str, str], kind: str, open_: int, closed: int
) -> None:
    body = json.dumps(EVICTION if "eviction" in path else POD).encode() if method == "POST" else None
    tokens = {"t": User("admin", ("system:masters",))}
    for known, expected in ((None, open_), (tokens, closed)):
        async with ApiServer(ObjectStore(seed=1), tokens=known) as server, aiohttp.ClientSession(server.url) as session:
            given = {**headers, "Authorization": "Bearer t"} | ({"Content-Type": kind} if kind else {})
            skipped = () if kind else ("Content-Type",)
            async with session.request(method, path, data=body, headers=given, skip_auto_headers=skipped) as answer:
                assert answer.status == expected, await answer.text()
                if expected in (403, 415):
                    assert (await answer.json())["kind"] == "Status"


async def test_a_kubeconfig_is_its_owners_whatever_was_there(server: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("x" * 100_000)
    path.chmod(0o644)
    server.write_kubeconfig(path, "token")
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text(encoding="utf-8"))["current-context"] == "kubesched"
