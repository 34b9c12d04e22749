"""Demos in processes of their own, for tests that look at what they print and serve."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

DEMO = [sys.executable, "-c", "from kubesched.cli import main; main()", "demo"]
ENOUGH_SECONDS = 120.0  # for machines that do many other things


class Running:
    """A demo in a process of its own, with what it has printed so far."""

    def __init__(self, *words: str) -> None:
        self.output = ""
        self.process = subprocess.Popen(
            [*DEMO, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "TERM": "dumb"},
        )

    def until(self, text: str) -> str:
        """Read until a line holds the text, and return that line."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + ENOUGH_SECONDS
        for line in self.process.stdout:
            self.output += line
            if text in line:
                return line
            assert time.monotonic() < deadline, self.output
        pytest.fail(f"the demo ended without {text!r}: {self.output}")

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=ENOUGH_SECONDS)
        self.output += rest
        return self.process.returncode

    @property
    def page(self) -> str:
        return re.findall(r"http://127\.0\.0\.1:\d+/ui/", self.output)[0]

    @property
    def kubeconfig(self) -> str:
        return re.findall(r"\(kubeconfig: (.+)\)", self.output)[0]


@contextlib.contextmanager
def running(*words: str) -> Iterator[Running]:
    demo = Running(*words)
    try:
        yield demo
    finally:
        demo.process.kill()
        demo.process.communicate()


def run_once(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, "--once", *words], capture_output=True, text=True, timeout=ENOUGH_SECONDS, env={**os.environ, "TERM": "dumb"}
    )
