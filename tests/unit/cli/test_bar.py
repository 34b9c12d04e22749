"""The bar: shown to people after a moment, gone at the end, and never in what a program reads."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

PROGRAM = """
import time
from kubesched.cli.printing import bar
with bar("counting", 10, patience_seconds={patience}) as done:
    time.sleep(0.2)
    done(4, note="quickly")
print("done")
"""


def on_a_terminal(patience: float) -> str:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", PROGRAM.format(patience=patience)]
    subprocess.run(words, stdin=theirs, stdout=theirs, stderr=theirs, timeout=60, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    return shown


def test_a_person_sees_how_much_is_done_and_the_line_is_gone_at_the_end() -> None:
    shown = on_a_terminal(patience=0)
    assert "\rcounting  [##########..............]  4/10  quickly  0 s\x1b[K" in shown
    assert shown.endswith("\r\x1b[Kdone\r\n")


def test_what_takes_a_moment_shows_no_bar() -> None:
    assert on_a_terminal(patience=60) == "done\r\n"


def test_a_program_that_reads_the_output_sees_no_bar() -> None:
    words = [sys.executable, "-c", PROGRAM.format(patience=0)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
