"""The release to emulate, where only the API server can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.cli import server_release
from kubesched.cli.server_release import release_of_server
from kubesched.errors import Unreachable


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A server of a release, and which kubeconfig leads to it."""
    answer: dict[str, object] = {"minor": 36}

    async def minor(source: object) -> int:
        if answer["minor"] is None:
            raise Unreachable("nobody there")
        return answer["minor"]  # type: ignore[return-value]

    def find(kubeconfig: str, *, master: str) -> object:
        answer["asked"] = kubeconfig or master
        return object()

    monkeypatch.setattr(server_release, "_minor", minor)
    monkeypatch.setattr(server_release, "find_credentials", find)
    return answer


@pytest.mark.parametrize(
    ("minor", "release"),
    [(35, (1, 36)), (36, (1, 36)), (37, (1, 37)), (38, (1, 37)), (0, None), (None, None)],
    ids=["older", "1.36", "1.37", "newer", "says nothing", "away"],
)
def test_the_nearest_release_is_emulated(server: dict[str, object], minor: int | None, release: object) -> None:
    server["minor"] = minor
    assert release_of_server(["--kubeconfig=k"]) == release


@pytest.mark.parametrize(
    "word", ["--emulated-version=1.37", "--version", "--help", "--write-config-to=x", "--legacy-version=1.17", "--no-such-flag"]
)
def test_who_says_it_or_wants_no_server_is_not_asked_for(server: dict[str, object], word: str) -> None:
    assert release_of_server(["--kubeconfig=k", word]) is None
    assert "asked" not in server


@pytest.mark.parametrize(
    ("text", "asked"),
    [("clientConnection: {kubeconfig: mine}", "mine"), ("kind: X", ""), ("- 1", ""), ("clientConnection: 5", "")],
)
def test_a_file_names_its_own_kubeconfig(server: dict[str, object], tmp_path: Path, text: str, asked: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert release_of_server([f"--config={file}", "--kubeconfig=other"]) == (1, 36)
    assert server["asked"] == asked


def test_a_file_that_is_not_there_is_for_others_to_complain_about(server: dict[str, object]) -> None:
    assert release_of_server(["--config=/nowhere"]) is None
