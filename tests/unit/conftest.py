"""What all unit tests have in common."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def own_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Let a test read what the program says and nothing else: asyncio tells of a task that an earlier test dropped whenever the
    collector comes by."""
    caplog.handler.addFilter(logging.Filter("kubesched"))
