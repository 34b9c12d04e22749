"""/flagz and /statusz: text for people, versions for programs."""

from __future__ import annotations

import json

import pytest
import yaml
from web_fakes import client_for, new_parts

from kubesched.scheduler.config.releases.gates import Gates
from kubesched.server.web import About, build_app
from kubesched.server.web.zpages import WARNING, encode_cbor, statusz

FLAGS = {"v": "2", "secure-port": "10259", "config": ""}
STRUCTURED = "application/json;as={kind};g=config.k8s.io;v={version}"


@pytest.fixture
def app():  # type: ignore[no-untyped-def]
    return build_app(new_parts(flags=FLAGS))


async def test_flags_are_listed_for_people(app) -> None:  # type: ignore[no-untyped-def]
    async with client_for(app) as client:
        answer = await client.get("/flagz", headers={"Accept": ""})
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        lines = (await answer.text()).split("\n")
        assert lines[:4] == ["", "kube-scheduler flagz", WARNING, ""]
        found = [next(line.partition(s) for s in (": ", ":", "=", " ") if s in line) for line in lines[4:-1]]
        assert [(key, value) for key, _, value in found] == [("config", ""), ("secure-port", "10259"), ("v", "2")]


async def test_flags_are_an_object_for_programs(app) -> None:  # type: ignore[no-untyped-def]
    async with client_for(app) as client:
        answer = await client.get("/flagz", headers={"Accept": STRUCTURED.format(kind="Flagz", version="v1beta1")})
        assert answer.headers["Content-Type"].startswith("application/json")
        assert "Warning" not in answer.headers
        assert json.loads(await answer.text()) == {
            "kind": "Flagz",
            "apiVersion": "config.k8s.io/v1beta1",
            "metadata": {"name": "kube-scheduler"},
            "flags": FLAGS,
        }


async def test_the_older_version_warns(app) -> None:  # type: ignore[no-untyped-def]
    async with client_for(app) as client:
        for path, kind in (("/flagz", "Flagz"), ("/statusz", "Statusz")):
            answer = await client.get(path, headers={"Accept": STRUCTURED.format(kind=kind, version="v1alpha1")})
            name = kind.lower()
            text = f"This version of the {name} endpoint is deprecated. Please use a newer version."
            assert answer.headers["Warning"] == f'299 - "{text}"'
            assert json.loads(await answer.text())["apiVersion"] == "config.k8s.io/v1alpha1"


async def test_other_encodings(app) -> None:  # type: ignore[no-untyped-def]
    async with client_for(app) as client:
        asked = STRUCTURED.format(kind="Flagz", version="v1beta1")
        text = await (await client.get("/flagz", headers={"Accept": asked.replace("json", "yaml")})).text()
        assert yaml.safe_load(text)["flags"] == FLAGS
        body = await (await client.get("/flagz", headers={"Accept": asked.replace("json", "cbor")})).read()
        assert body.startswith(b"\xd9\xd9\xf7\xa4")
        assert b"\x4bsecure-port\x4510259" in body


ACCEPTS = [
    ("application/json", 406),
    ("application/json;as=Statusz;g=config.k8s.io;v=v1beta1", 406),
    ("application/json;as=Flagz;g=other;v=v1beta1", 406),
    ("application/json;as=Flagz;g=config.k8s.io;v=v1", 406),
    ("image/png", 406),
    ("image/png, */*;q=0.1", 200),
    ("text/plain;q=0", 406),
    ("*/*", 200),
    ("text/*", 200),
]


@pytest.mark.parametrize(("accept", "status"), ACCEPTS, ids=[case[0] for case in ACCEPTS])
async def test_what_is_acceptable(accept: str, status: int, app) -> None:  # type: ignore[no-untyped-def]
    async with client_for(app) as client:
        answer = await client.get("/flagz", headers={"Accept": accept})
        assert answer.status == status
        if status == 406:
            refused = json.loads(await answer.text())
            assert refused["reason"] == "NotAcceptable"
            assert refused["message"].startswith("only the following media types are accepted: application/")


async def test_the_most_wanted_form_wins(app) -> None:  # type: ignore[no-untyped-def]
    async with client_for(app) as client:
        asked = STRUCTURED.format(kind="Statusz", version="v1beta1")
        answer = await client.get("/statusz", headers={"Accept": f"text/plain;q=0.5, {asked};q=0.9"})
        document = json.loads(await answer.text())
        assert document["paths"] == ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"]
        assert (document["binaryVersion"], document["emulationVersion"]) == ("1.36.4", "1.36")
        assert document["startTime"] == "2023-11-14T22:13:20Z"
        assert document["goVersion"].startswith("CPython 3.")


def test_the_status_in_words() -> None:
    page = statusz(About(1_700_000_000.0, "1.36.4", "1.35"), ["/healthz"], now=lambda: 1_700_000_000.0 + 3 * 3600 + 65)
    page._separator = ": "
    assert page._text().split("\n")[4:] == [
        "Started: Tue Nov 14 22:13:20 UTC 2023",
        "Up: 3 hr 01 min 05 sec",
        page._text().split("\n")[6],
        "Binary version: 1.36.4",
        "Emulation version: 1.35",
        "Paths: /healthz",
        "",
    ]


@pytest.mark.parametrize(("gate", "path"), [("ComponentFlagz", "/flagz"), ("ComponentStatusz", "/statusz")])
async def test_a_gate_that_is_off_takes_its_page_away(gate: str, path: str) -> None:
    app = build_app(new_parts(gates=Gates.parse(f"{gate}=false")))
    async with client_for(app) as client:
        assert (await client.get(path)).status == 404
        other = "/statusz" if path == "/flagz" else "/flagz"
        answer = await client.get(other)
        assert answer.status == 200
        assert path not in await answer.text()


CBOR = [
    ({"a": [1, -1, True, None]}, b"\xd9\xd9\xf7\xa1\x41a\x84\x01\x20\xf5\xf6"),
    (23, b"\xd9\xd9\xf7\x17"),
    (24, b"\xd9\xd9\xf7\x18\x18"),
    (500, b"\xd9\xd9\xf7\x19\x01\xf4"),
    (1_000_000, b"\xd9\xd9\xf7\x1a\x00\x0f\x42\x40"),
    (1 << 40, b"\xd9\xd9\xf7\x1b\x00\x00\x01\x00\x00\x00\x00\x00"),
    (False, b"\xd9\xd9\xf7\xf4"),
]


@pytest.mark.parametrize(("value", "encoded"), CBOR)
def test_cbor(value: object, encoded: bytes) -> None:
    assert encode_cbor(value) == encoded
