"""Releases: what each does, and that nothing in the table is there for nobody."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import pytest

import kubesched
from kubesched.scheduler.config import Gates
from kubesched.scheduler.config.releases.versions import NEWEST, OLDEST_EMULATED, OLDEST_RECORDED, RELEASES, Behaviour, text_of


def test_the_newest_release_does_everything_and_the_oldest_nothing() -> None:
    assert all(asdict(Behaviour.of(NEWEST)).values())
    assert not any(asdict(Behaviour.of(OLDEST_EMULATED)).values())
    assert Gates.defaults((1, 36)).behaviour == Behaviour.of((1, 36)) != Gates.defaults().behaviour


@pytest.mark.parametrize("known", fields(Behaviour), ids=lambda known: known.name)
def test_each_behaviour_began_with_a_release_and_is_asked_for(known) -> None:
    assert OLDEST_RECORDED < known.metadata["since"] <= NEWEST
    package = Path(kubesched.__file__).parent
    asking = [file for file in package.rglob("*.py") if f".{known.name}" in file.read_text(encoding="utf-8")]
    assert asking, f"nobody asks for {known.name}"


def test_every_recorded_release_has_its_program() -> None:
    assert list(RELEASES) == [(1, minor) for minor in range(OLDEST_RECORDED[1], NEWEST[1] + 1)]
    assert all(program.startswith(f"v{text_of(version)}.") for version, program in RELEASES.items())
