"""The recording on the front page: what it shows is what the commands print today."""

from __future__ import annotations

import json

import record_terminal


def test_the_recorded_session_is_what_the_commands_print() -> None:
    recorded = record_terminal.RECORDING.read_text(encoding="utf-8")
    assert recorded == record_terminal.recording(), "run `make reference`"


def test_it_is_two_minutes_of_a_terminal_that_people_have() -> None:
    head, *events = map(json.loads, record_terminal.RECORDING.read_text(encoding="utf-8").splitlines())
    assert (head["version"], head["width"]) == (2, 80) and 100 < events[-1][0] < 140
