"""What happens a thousand times a second is said once a minute, with how often."""

from __future__ import annotations

import logging

import pytest

from kubesched.telemetry.logs import logger
from kubesched.telemetry.throttle import Throttle


def test_a_line_a_minute_counts_what_was_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    throttle = Throttle(lambda: now)
    with caplog.at_level(logging.INFO):
        for step in range(1000):
            now = step * 0.1
            throttle.warning(logger("kubesched.test_throttle"), "No room", n=1)
    told = [record.event.values.get("times") for record in caplog.records]  # type: ignore[attr-defined]
    assert told == [None, 600]
