"""Runs the commands of pages: in a folder, with this checkout's `kubesched`, `kubectl-kubesched` and `python` on the path.

Our own program runs in this process if no shell is needed, as most of a short command's time is the start of Python.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from page_blocks import ROOT

ENOUGH_SECONDS = 120.0
_SHELL = re.compile(r"[|<>&;$`*]")


def run(command: str, folder: Path) -> str:
    """Return what a command prints, on both streams."""
    return run_to_the_end(command, folder)[1]


def run_to_the_end(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit code of a command, and what it prints on both streams."""
    plain = os.path.expandvars(command)
    words = [os.path.expanduser(word) for word in shlex.split(plain)]
    if words[0] == "kubesched" and not _SHELL.search(plain):
        return _in_process(words[1:], folder)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=ENOUGH_SECONDS,
    )
    return done.returncode, done.stdout


def run_until(command: str, folder: Path, sign: str) -> str:
    """Start a command that goes on for ever, end it when it says the sign and has written its files; return what it said."""
    files = [folder / word for word in shlex.split(command) if word.endswith(".jsonl")]
    ports = "--port=0 --secure-port=0" if "--legacy-version" in command else "--secure-port=0"
    elsewhere = command.replace("kubesched run ", f"kubesched run {ports} ")  # not where somebody's own scheduler may listen
    words = ["bash", "-c", f"exec {elsewhere}"]
    started = subprocess.Popen(
        words, cwd=folder, env=_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    late = threading.Timer(ENOUGH_SECONDS, started.kill)
    late.start()
    assert started.stdout is not None
    printed = ""
    for line in started.stdout:
        printed += line
        if sign in line:
            break
    while started.poll() is None and not all(file.exists() and file.stat().st_size for file in files):
        time.sleep(0.02)
    started.send_signal(signal.SIGTERM)
    rest, _ = started.communicate()
    late.cancel()
    return printed + rest


def _in_process(words: list[str], folder: Path) -> tuple[int, str]:
    from kubesched.cli import main

    printed, code = io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        mock.patch.object(sys, "argv", ["kubesched", *words]),
        _at_most(ENOUGH_SECONDS, " ".join(words)),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return code, printed.getvalue()


@contextlib.contextmanager
def _at_most(seconds: float, what: str) -> Iterator[None]:
    """Raise TimeoutError in what takes longer: a command in this process that never ends would stop all tests in silence."""

    def late(*_: object) -> None:
        raise TimeoutError(f"kubesched {what}: not done after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _environment(folder: Path) -> dict[str, str]:
    there = folder / ".bin"
    if not there.exists():
        there.mkdir()
        main = f"#!{sys.executable}\nfrom kubesched.cli{{}} import main\nmain()\n"
        scripts = {
            "kubesched": main.format(""),
            "kubectl-kubesched": main.format(".kubectl_plugin"),
            # Not a link: it would not find the virtual environment that it belongs to.
            "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        }
        for name, text in scripts.items():
            (there / name).write_text(text)
            (there / name).chmod(0o755)
    ours = {"PATH": f"{there}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {**os.environ, **ours}
