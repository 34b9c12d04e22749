"""Records docs/terminal.cast, the session that the front page of the site plays (asciinema's format, version 2).

In: the commands below, run on the examples in a terminal of 80 columns. Out: what they print, with times as if a person typed
and read. The same code makes the same file. `make reference` runs it; docs/player.js plays it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "docs" / "terminal.cast"
COLUMNS, ROWS = 80, 30
KEY_SECONDS, LINE_SECONDS, READ_SECONDS = 0.045, 0.05, 0.8
SHOP, DEMO = "docs/examples/shop-cluster.yaml", "docs/examples/demo.jsonl.gz"
SESSION = (
    ("A pod is pending. Why?", f"kubesched why shop/checkout-7 --snapshot {SHOP}"),
    ("Where would this Deployment go?", f"kubesched plan -f docs/examples/launch.yaml --snapshot {DEMO} --only"),
    ("How many more of it fit, and what stops the next one?",
     f"kubesched capacity -f docs/examples/launch.yaml --workload Deployment/shop --snapshot {DEMO}"),
    ("A batch workload, in virtual time.", "kubesched simulate docs/examples/batch.yaml"),
    ("A plugin is one Python file.", "cat kubesched/scheduler/plugins/node_unschedulable.py"),
)  # fmt: skip
"""What is to be seen, and the command that shows it."""


def printed(command: str) -> str:
    """Run a command whose output is a terminal; return what it writes there. What goes to stderr is left out: progress bars
    depend on the machine's speed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    program = f'kubesched() {{ "{sys.executable}" -c "from kubesched.cli import main; main()" "$@"; }}; {command}'
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as errors:
        words = ["bash", "-c", program]
        process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=errors, env=environment, cwd=ROOT)
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        if process.wait():
            errors.seek(0)
            sys.exit(f"{command}: exit code {process.returncode}: {(b''.join(parts) + errors.read()).decode()}")
    return b"".join(parts).decode()


def recording() -> str:
    """Return the recording."""
    now = 0.5
    events: list[tuple[float, str]] = []

    def show(text: str, seconds: float) -> None:
        nonlocal now
        events.append((round(now, 3), text))
        now += seconds

    for comment, command in SESSION:
        show(f"\x1b[2m# {comment}\x1b[0m\r\n$ ", 0.6)
        for key in command:
            show(key, KEY_SECONDS)
        show("\r\n", 0.3)
        lines = printed(command).splitlines(keepends=True)
        for line in lines:
            show(line, LINE_SECONDS)
        now += 3.0 + READ_SECONDS * min(len(lines), 20)
        show("\r\n", 0.3)
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "kubesched"}
    return "\n".join([json.dumps(head), *(json.dumps([at, "o", text]) for at, text in events), ""])


if __name__ == "__main__":
    RECORDING.write_text(recording(), encoding="utf-8")
    print(f"{RECORDING.relative_to(ROOT)}: {json.loads(RECORDING.read_text().splitlines()[-1])[0]:.0f} s")
