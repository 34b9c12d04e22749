"""The processes of a soak: the embedded API server, if none is given, and schedulers with leader election.

In: a kubeconfig, a folder. Out: processes that can be stopped, killed, frozen and started again. Each has its memory, files and
CPU from /proc, and a scheduler its metrics and the decisions of its decision log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from kubesched.errors import SchedulerError
from kubesched.tools.bench.processes import PROGRAM, cpu_seconds, free_port, last_line, start, start_scheduler

LEASE = "kubesched-soak"
_PATIENCE_SECONDS = 120.0
_START_SECONDS = 3600.0
"""How long the API server may take to read its data directory: minutes for a large cluster on busy cores. That time is
measured, so this limit only ends a run whose server hangs."""
_SCRAPE_SECONDS = 5.0
_PAUSE = re.compile(r'kubesched_gc_pause_seconds_(bucket|sum)\{generation="\d"(?:,le="([^"]+)")?\} (\S+)')
_LEADS = re.compile(r"leader_election_master_status\{[^}]*\} 1")
_SAME_HOST = ssl._create_unverified_context()
"""Accepts the self-signed certificates of the schedulers on this machine."""


class Decided(msgspec.Struct, rename="camel"):
    """The fields that are read from a line of a decision log."""

    uid: str
    outcome: str
    latency_seconds: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process uses now."""

    rss_mib: float
    n_files: int
    cpu_seconds: float


@dataclass(slots=True)
class Replica:
    """One process: a scheduler if it has a port for /metrics, else the API server."""

    name: str
    process: subprocess.Popen[bytes]
    started: float
    log: Path
    port: int = 0
    ended: float | None = None
    has_to_end: bool = False
    """Whether its end is expected."""
    is_leading: bool = False
    usages: list[tuple[float, Usage]] = field(default_factory=list)
    pauses: dict[str, float] = field(default_factory=dict)
    """The histogram of the pauses of Python's collector: counts by upper bound as text, and `sum` in seconds."""
    decisions: Path | None = None
    _reading: IO[bytes] | None = None
    _rest: bytes = b""

    @property
    def is_running(self) -> bool:
        """Return whether the process is there."""
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end; kill the process if it does not end in time."""
        self.has_to_end = True
        self.send(number)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.is_running:
            await asyncio.sleep(0.05)
            if time.monotonic() > deadline:
                self.process.kill()
        self.ended, self.is_leading = time.monotonic(), False

    def look(self, now: float) -> None:
        """Record what the process uses now."""
        usage = usage_of(self.process.pid)
        if usage is not None and self.is_running:
            self.usages.append((now, usage))

    async def scrape(self) -> None:
        """Read /metrics: whether it leads, and its pauses. A scheduler that does not answer keeps its last values."""
        if not self.port or not self.is_running:
            return
        try:
            text = await asyncio.to_thread(_read, f"https://127.0.0.1:{self.port}/metrics")
        except OSError:
            return
        self.is_leading = _LEADS.search(text) is not None
        pauses: dict[str, float] = {}
        for kind, bound, value in _PAUSE.findall(text):
            pauses[bound or kind] = pauses.get(bound or kind, 0.0) + float(value)
        self.pauses = pauses or self.pauses

    def new_decisions(self) -> Iterator[Decided]:
        """Yield the decisions logged since the last call; follow the log when it is rotated."""
        if self.decisions is None:
            return
        while True:
            if self._reading is None:
                try:
                    self._reading = self.decisions.open("rb")
                except FileNotFoundError:
                    return
            for line in self._reading:
                line = self._rest + line
                if not line.endswith(b"\n"):
                    self._rest = line
                    break
                self._rest = b""
                yield msgspec.json.decode(line, type=Decided)
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(self._reading.fileno()).st_ino == self.decisions.stat().st_ino:
                    return
            self._reading.close()
            self._reading = None


class Replicas:
    """All processes of a soak."""

    def __init__(self, folder: Path, n_schedulers: int, kubeconfig: str = "") -> None:
        self.all: list[Replica] = []
        self.n_schedulers = n_schedulers
        self.kubeconfig = kubeconfig or str(folder / "kubeconfig")
        self._is_embedded = not kubeconfig
        self._folder = folder
        self._server_port = 0

    @property
    def server(self) -> Replica | None:
        """Return the embedded API server."""
        return next((each for each in reversed(self.all) if not each.port), None)

    @property
    def schedulers(self) -> list[Replica]:
        """Return the schedulers that have not ended."""
        return [each for each in self.all if each.port and each.ended is None]

    @property
    def leader(self) -> Replica | None:
        """Return the scheduler that led when it was last asked; None if there is none."""
        return next((each for each in self.schedulers if each.is_leading and each.is_running), None)

    async def start_server(self) -> None:
        """Start the embedded API server, with the port and the data of the previous one."""
        if not self._is_embedded:
            return
        self._server_port = self._server_port or free_port()
        log = self._folder / f"apiserver-{len(self.all)}.log"
        words = ("apiserver", "--no-world", f"--port={self._server_port}", f"--data-dir={self._folder / 'objects'}")
        process = start((*PROGRAM, *words, f"--kubeconfig-out={self.kubeconfig}"), log)
        self.all.append(Replica("API server", process, time.monotonic(), log))
        deadline = time.monotonic() + _START_SECONDS
        while "Kubeconfig:" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise SchedulerError(f"the embedded API server did not start: {last_line(log)}")
            await asyncio.sleep(0.05)

    def start_scheduler(self) -> None:
        """Start one more scheduler."""
        number = sum(each.port > 0 for each in self.all) + 1
        folder, port = self._folder / f"scheduler-{number}", free_port()
        folder.mkdir()
        decisions = folder / "decisions.jsonl"
        flags = (f"--secure-port={port}", "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/metrics")
        election = {"leaderElection": {"leaderElect": True, "resourceName": LEASE}}
        process = start_scheduler(self.kubeconfig, folder, election, (*flags, f"--decision-log={decisions}"))
        log = folder / "scheduler.log"
        self.all.append(Replica(f"scheduler {number}", process, time.monotonic(), log, port, decisions=decisions))

    async def look(self) -> None:
        """Record usage and metrics of all processes, and replace the schedulers that have ended."""
        now = time.monotonic()
        for each in self.all:
            if each.ended is None:
                each.look(now)
                if not each.is_running:
                    each.ended, each.is_leading = now, False
        while len(self.schedulers) < self.n_schedulers:
            self.start_scheduler()
        await asyncio.gather(*(each.scrape() for each in self.schedulers))

    async def stop(self, *, server: bool = True) -> None:
        """Stop all processes, or with `server=False` only the schedulers."""
        for each in reversed(self.all if server else self.schedulers):
            if each.ended is None:
                each.send(signal.SIGCONT)
                await each.end(signal.SIGTERM)


def usage_of(pid: int) -> Usage | None:
    """Return what a process uses; None if it has ended, or without /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
        n_files = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, IndexError):
        return None
    return Usage(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), n_files, cpu_seconds(pid) or 0.0)


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_SCRAPE_SECONDS, context=_SAME_HOST) as answer:
        return str(answer.read().decode())
