"""The start of `kubesched run`: what it imports before the first pod is bound."""

from __future__ import annotations

import subprocess
import sys

NOT_NEEDED = ("kubesched.embedded", "kubesched.tools.simulation", "kubesched.tools.node_groups", "kubesched.tools.snapshots")
NOT_NEEDED_OF_OTHERS = ("pyarrow", "cel_expr_python", "kubernetes_asyncio.client", "optuna", "opentelemetry")


def test_run_imports_nothing_of_other_commands() -> None:
    code = "import kubesched.tools.run.program, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    needless = [name for name in loaded if name.startswith(NOT_NEEDED) or name in NOT_NEEDED_OF_OTHERS]
    assert not needless
