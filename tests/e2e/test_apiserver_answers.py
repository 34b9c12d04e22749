"""The embedded API server answers as kube-apiserver of its release does: hundreds of requests, compared answer by answer.

What kube-apiserver 1.36 answered is kept in apiserver_answers.jsonl.gz, and what later releases answer otherwise in
apiserver_answers_1.N.json, so that this is known where there is none. Where there is one (KUBEBUILDER_ASSETS), it is asked too,
and must still answer as its release did. To record anew, after a change of stories, first with 1.36 and then with the others:

    KUBEBUILDER_ASSETS=... KUBESCHED_RECORD=1 pytest tests/e2e/test_apiserver_answers.py -m real
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from apiserver_book import BOOK
from apiserver_stories import Story, tell
from control_planes import RealPlane, real_assets

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.http.access import User

RECORD = Path(__file__).parent / "apiserver_answers.jsonl.gz"
WITHOUT = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection")  # plugins that need controllers
TOKENS = {"admin": User("admin", ("system:masters", "system:authenticated")), "guest": User("guest", ("system:authenticated",))}

_INTERNAL = "kube-apiserver calls this mistake of the client an error of its own, 500"
_NO_WARNING = "we do not warn: "
_INTEGERS = "whole numbers are read with 64 bits everywhere, so a too large one is refused later and for another reason"
_GATED = "the operators Lt and Gt are allowed, because a scheduler can be told to understand them"
# Story and step, and why ours answers otherwise.
DIFFERENT: dict[tuple[str, int], str] = {
    ("small things", 4): _NO_WARNING + "Endpoints are deprecated",
    ("tables", 12): _NO_WARNING + "Endpoints are deprecated",
    ("tables", 24): _NO_WARNING + "Endpoints are deprecated",
    ("a body: twice the same", 0): _NO_WARNING + "a field that comes twice",
    ("a pod: memory in milli", 0): _NO_WARNING + "a part of a byte",
    ("as tables and metadata", 3): "every event carries the columns, so that all watches can share it",
    ("questions that are wrong", 0): _INTERNAL,
    ("metadata: a version", 0): _INTERNAL,
    ("updates", 9): _INTERNAL,
    ("strategic patches", 7): _INTERNAL,
    ("strategic patches", 12): _INTERNAL,
    ("applies that are wrong", 3): _INTERNAL,
    ("bindings", 8): _INTERNAL,
    ("bindings", 9): _INTERNAL,
    ("a budget forbids", 13): "an error of ours has a reason",
    ("a body: not utf-8", 0): "JSON is UTF-8; what is not is not read",
    ("classes that are wrong", 4): _INTEGERS,
    ("a pod: a large number", 0): _INTEGERS,
    ("an apply after a create", 1): "who owns which field is recorded from the first apply on",
    ("a resize", 1): "whether a pod may be resized is not asked of its node",
    ("a resize", 2): "whether a pod may be resized is not asked of its node",
    ("a pod: toleration less than", 0): _GATED,
    ("a pod: toleration greater", 0): _GATED,
    ("a pod: toleration greater", 1): _GATED,
}


_AS_36 = "defaults and texts are those of 1.36"
DIFFERENT_IN_37 = DIFFERENT | {
    ("a stateful set", 0): _AS_36,
    ("tables", 2): _AS_36,
    ("a set's fixed fields", 0): _AS_36,
    ("a set's fixed fields", 1): _AS_36,
    ("a set's fixed fields", 2): _AS_36,
    ("a driver and its nodes", 0): _AS_36,
    ("a driver and its nodes", 2): _AS_36,
    ("tables of the cluster", 4): _AS_36,
    ("tables of the cluster", 16): _AS_36,
    ("metadata: an owner", 0): _AS_36,
    ("who asks", 7): _AS_36,
}


def changes(release: int) -> Path:
    """Return the file of what a release answers otherwise than 1.36: step and answer, by story."""
    return RECORD.with_name(f"apiserver_answers_1.{release}.json")


def recorded(release: int) -> dict[str, list[Any]]:
    lines = gzip.decompress(RECORD.read_bytes()).decode().splitlines()
    answers = {one["story"]: one["answers"] for one in map(json.loads, lines)}
    if release != 36:
        for story, changed in json.loads(changes(release).read_text(encoding="utf-8")).items():
            for step, answer in changed.items():
                answers[story][int(step)] = answer
    return answers


def session_to(url: str) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=False)
    headers = {"Authorization": "Bearer admin"}
    return aiohttp.ClientSession(url, headers=headers, connector=connector, skip_auto_headers=("Content-Type",))


async def told(story: Story, session: aiohttp.ClientSession, namespace: str) -> list[Any]:
    async with session.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}) as answer:
        assert answer.status == 201, await answer.text()
    return await tell(story, session, namespace)


@pytest.fixture(scope="module", params=[36, 37])
def release(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def answers(release: int) -> dict[str, list[Any]]:
    return recorded(release)


@pytest.fixture
async def embedded(release: int) -> AsyncIterator[aiohttp.ClientSession]:
    async with ApiServer(ObjectStore(release=release), tokens=TOKENS) as server, session_to(server.url) as session:
        yield session


@pytest.mark.parametrize("story", BOOK, ids=[story.name for story in BOOK])
async def test_ours_answers_as_recorded(
    story: Story, release: int, answers: dict[str, list[Any]], embedded: aiohttp.ClientSession
) -> None:
    different = DIFFERENT if release == 36 else DIFFERENT_IN_37
    found = await told(story, embedded, "told-here")
    for at, (step, ours, real) in enumerate(zip(story.steps, found, answers[story.name], strict=True)):
        if (story.name, at) in different:
            assert ours != real, f"step {at} of {story.name!r} is no longer different: take it off the list"
        else:
            assert ours == real, f"step {at}: {step.method} {step.path}"


@pytest.mark.real
async def test_the_real_one_still_answers_as_recorded(tmp_path: Path) -> None:
    assets, why_not = real_assets()
    if assets is None:
        pytest.skip(why_not)
    plane = RealPlane(tmp_path, assets, without=WITHOUT)
    try:
        await plane.start()
        async with session_to(plane.url) as session:
            async with session.get("/version") as answer:
                release = int((await answer.json())["minor"].rstrip("+"))
            found = {story.name: await told(story, session, f"told-{at}") for at, story in enumerate(BOOK)}
    finally:
        plane.stop()
    if os.environ.get("KUBESCHED_RECORD"):
        _record(release, found)
        return
    if release != 36 and not changes(release).exists():
        pytest.skip(f"nothing is recorded of kube-apiserver 1.{release}")
    expected = recorded(release)
    for name, answers in found.items():
        assert answers == expected[name], name


def _record(release: int, found: dict[str, list[Any]]) -> None:
    if release == 36:
        lines = [json.dumps({"story": name, "answers": answers}, sort_keys=True) for name, answers in found.items()]
        RECORD.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
        return
    before, changed = recorded(36), {}
    for name, answers in found.items():
        steps = {at: now for at, (now, then) in enumerate(zip(answers, before[name], strict=True)) if now != then}
        if steps:
            changed[name] = steps
    changes(release).write_text(json.dumps(changed, indent=1, sort_keys=True) + "\n")
