"""The release to emulate, where only the API server can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import Unreachable
from kubesched.kube.client.informers.discovery import Served
from kubesched.scheduler.config.releases.versions import Version
from kubesched.server.options import server_release
from kubesched.server.options.server_release import release_of, server_of, what_differs
from kubesched.tools.run.program import _say_release


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A server of a release, and which kubeconfig leads to it."""
    answer: dict[str, object] = {"minor": 36}

    async def served(source: object) -> Served:
        if answer["minor"] is None:
            raise Unreachable("nobody there")
        return Served(f"v1.{answer['minor']}.4", answer["minor"])  # type: ignore[arg-type]

    def find(kubeconfig: str, *, master: str) -> object:
        answer["asked"] = kubeconfig or master
        return object()

    monkeypatch.setattr(server_release, "_served", served)
    monkeypatch.setattr(server_release, "find_credentials", find)
    return answer


@pytest.mark.parametrize(
    ("minor", "release"),
    [(31, (1, 36)), (36, (1, 36)), (37, (1, 37)), (38, (1, 37)), (0, None), (None, None)],
    ids=["older", "1.36", "1.37", "newer", "says nothing", "away"],
)
def test_the_nearest_release_is_emulated(server: dict[str, object], minor: int | None, release: object) -> None:
    server["minor"] = minor
    assert release_of(object()) == release  # type: ignore[arg-type]
    assert server_of(["--kubeconfig=k"]) == (None if release is None else Served(f"v1.{minor}.4", minor or 0))


DECIDED = "decisions are those of 1.36; other than in"


@pytest.mark.parametrize(
    ("minor", "emulated", "starts", "ends"),
    [
        (38, (1, 37), "what 1.38 changed is not known here", ""),
        (35, (1, 36), f"{DECIDED} 1.35 by default are ComponentFlagz, ComponentStatusz, DRAConsumable", "NodeDeclaredFeatures"),
        (33, (1, 36), f"{DECIDED} 1.33 by default are ", "VolumeAttributesClass, WatchListClient"),
        (31, (1, 36), f"{DECIDED} 1.33 by default are ", "; gates of releases before 1.33 are not known here"),
    ],
    ids=["1.38", "1.35", "1.33", "1.31"],
)
def test_what_differs_from_the_servers_release_is_told(minor: int, emulated: Version, starts: str, ends: str) -> None:
    assert what_differs(minor, emulated).startswith(starts)
    assert what_differs(minor, emulated).endswith(ends)


@pytest.mark.parametrize(
    ("served", "level", "said"),
    [
        (Served("v1.36.4", 36), "INFO", 'server="v1.36.4" emulated="1.36"'),
        (Served("v1.31.14", 31), "WARNING", 'server="v1.31.14" emulated="1.36" differs="decisions are those of 1.36;'),
    ],
)
def test_the_log_says_what_the_server_is_and_what_is_emulated(
    caplog: pytest.LogCaptureFixture, served: Served, level: str, said: str
) -> None:
    caplog.set_level("INFO")
    _say_release(served, (1, 36))
    [record] = caplog.records
    assert record.levelname == level
    assert said in " ".join(f'{key}="{value}"' for key, value in record.event.values.items())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "word", ["--emulated-version=1.37", "--version", "--help", "--write-config-to=x", "--legacy-version=1.17", "--no-such-flag"]
)
def test_who_says_it_or_wants_no_server_is_not_asked_for(server: dict[str, object], word: str) -> None:
    assert server_of(["--kubeconfig=k", word]) is None
    assert "asked" not in server


@pytest.mark.parametrize(
    ("text", "asked"),
    [("clientConnection: {kubeconfig: mine}", "mine"), ("kind: X", ""), ("- 1", ""), ("clientConnection: 5", "")],
)
def test_a_file_names_its_own_kubeconfig(server: dict[str, object], tmp_path: Path, text: str, asked: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert server_of([f"--config={file}", "--kubeconfig=other"]) == Served("v1.36.4", 36)
    assert server["asked"] == asked


def test_a_file_that_is_not_there_is_for_others_to_complain_about(server: dict[str, object]) -> None:
    assert server_of(["--config=/nowhere"]) is None
