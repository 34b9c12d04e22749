"""`python -m kubesched` is the program."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "kubesched", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("Usage: kubesched "), done.stderr + done.stdout
