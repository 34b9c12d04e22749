"""The start of `kubesched run`: what it imports before the first pod is bound, and what it says of the configuration."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubesched.scheduler.config import ClientConnection
from kubesched.tools.run.program import _say_unspoken

NOT_NEEDED = ("kubesched.embedded", "kubesched.tools.simulation", "kubesched.tools.node_groups", "kubesched.tools.snapshots")
NOT_NEEDED_OF_OTHERS = ("pyarrow", "cel_expr_python", "kubernetes_asyncio.client", "optuna", "opentelemetry")


def test_run_imports_nothing_of_other_commands() -> None:
    code = "import kubesched.tools.run.program, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    needless = [name for name in loaded if name.startswith(NOT_NEEDED) or name in NOT_NEEDED_OF_OTHERS]
    assert not needless


def test_a_format_that_is_not_spoken_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Protobuf is the default that nobody asked for, so it is passed over."""
    _say_unspoken(ClientConnection().defaulted())
    _say_unspoken(ClientConnection(accept_content_types="application/cbor,application/json").defaulted())
    assert caplog.messages == ["clientConnection asks for application/cbor: the API server is spoken to in application/json"]
