"""Runs the tests as `make test` does: all but the nightly ones, and no failure is retried away.

In: arguments for pytest. Out: pytest's exit code, every skip with its reason, the slowest tests, and a last line about flaky
ones. Only tests of tests/e2e may be tried again: they start processes and share the cores with the rest, so what failed among
them runs once more, alone. What passes then is flaky: it is named and counted. A failure anywhere else ends it, whatever else
would have passed.

Tests start the program some hundred times. Where Python is told to write no bytecode (PYTHONDONTWRITEBYTECODE, as in many
containers) each start compiles the whole package, which doubles what tests/e2e costs; so bytecode is kept, beside the
environment that runs the tests and not in the source tree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FAILED = 1  # pytest's exit code for "some tests failed"; the others mean that it could not run them
RETRIED = "tests/e2e/"
_LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def may_be_retried(failed: Sequence[str]) -> bool:
    """Return whether there are failures, and all of them are of tests that share the machine with others."""
    return bool(failed) and all(name.startswith(RETRIED) for name in failed)


def with_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python keeps what it compiles."""
    kept = dict(environment)
    if kept.pop("PYTHONDONTWRITEBYTECODE", ""):
        kept.setdefault("PYTHONPYCACHEPREFIX", str(Path(sys.prefix) / "pycache"))
    return kept


def _run(*arguments: str) -> int:
    slowest = ("--durations=15", "--durations-min=5")
    command = [sys.executable, "-m", "pytest", "-rs", "-m", "not nightly", *slowest, *arguments]
    return subprocess.run(command, env=with_bytecode(os.environ)).returncode


def _failed() -> list[str]:
    return sorted(json.loads(_LAST_FAILED.read_text(encoding="utf-8"))) if _LAST_FAILED.exists() else []


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and again those that may be; return the exit code."""
    code = _run("--cache-clear", *arguments)
    first = _failed()
    if code != FAILED or not may_be_retried(first):
        return code
    print(f"\n{len(first)} failed beside others; trying them once more, alone:\n  " + "\n  ".join(first), flush=True)
    code = _run("--last-failed")
    still = set(_failed())
    flaky = [name for name in first if name not in still]
    print(f"\nflaky: {len(flaky)}" + "".join(f"\n  {name}" for name in flaky), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
