"""The page in a real browser: Debian's Chromium without a head, over the demo and over the program's secure port.

Skipped where no chromium is on the path (Debian: package chromium).
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from demos import ENOUGH_SECONDS, Running, running

from kubesched.apiserver import ApiServer
from kubesched.config import Gates
from kubesched.engine.assembly import assemble, default_configuration
from kubesched.engine.inbox import Changed
from kubesched.telemetry import Metrics
from kubesched.testing.builders import node
from kubesched.web import EnginePageData, Throughput, page_app, serve_insecurely

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path (Debian: chromium)")

QUIETLY = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--lang=en",
    "--hide-scrollbars",
    "--window-size=1400,1000",
    "--virtual-time-budget=4000",
    "--enable-logging=stderr",
]
NOBODY_ELSE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # the page must do without any other host
DARK = "--blink-settings=preferredColorScheme=0"
SMALL = "--window-size=640,800"
TAINTED = ((0xE0, 0x8A, 0x2B), (0xF0, 0xA0, 0x4B))  # in light and in dark


@dataclass
class Browser:
    """Looks at pages."""

    folder: Path
    tolerates: str = ""
    """What the page may say on the console; otherwise it has to be silent."""

    def document(self, url: str, *flags: str) -> str:
        """Return the page as it stands after a while."""
        return self._run("--dump-dom", *flags, url)

    def picture(self, url: str, *flags: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """Return the page's pixels: rows, columns, red green blue."""
        file = self.folder / "page.png"
        self._run(f"--screenshot={file}", *flags, url)
        return pixels(file.read_bytes())

    def _run(self, *words: str) -> str:
        assert CHROMIUM is not None
        profile = f"--user-data-dir={self.folder / 'profile'}"
        done = subprocess.run(
            [CHROMIUM, *QUIETLY, NOBODY_ELSE, profile, *words], capture_output=True, text=True, timeout=ENOUGH_SECONDS
        )
        assert done.returncode == 0, done.stderr
        complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert all(self.tolerates and self.tolerates in line for line in complaints), complaints
        return done.stdout


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


@pytest.fixture(scope="module")
def demo() -> Iterator[Running]:
    with running() as found:
        found.until("Ctrl-C")
        yield found


def text_of(document: str, id_: str) -> str:
    """Return the text of an element that holds no other of its own kind."""
    found = re.search(rf'<(\w+)[^>]*\bid="{id_}"[^>]*>(.*?)</\1>', document, re.DOTALL)
    assert found is not None, document
    return unescape(re.sub(r"<[^>]+>", " ", found.group(2)))


def plain(document: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", document.replace("<wbr>", ""))))


def pixels(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Decode a PNG of eight bits a channel."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6)
    step, packed, at = (3 if kind == 2 else 4), b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        packed += png[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    data, size = zlib.decompress(packed), width * step
    above, lines = [0] * (step + size), []
    for start in range(0, len(data), size + 1):
        line = [0] * step + list(data[start + 1 : start + 1 + size])
        _unfilter(data[start], line, above, step)
        lines.append(line[step:])
        above = line
    return np.array(lines, dtype=np.uint8).reshape(height, width, step)[..., :3]


def _unfilter(how: int, line: list[int], above: list[int], step: int) -> None:
    """Undo what PNG does to a line before it is packed; both lines begin with a pixel of zeros."""
    for i in range(step, len(line)) if how else ():
        left, up, corner = line[i - step], above[i], above[i - step]
        if how == 1:
            guess = left
        elif how == 2:
            guess = up
        elif how == 3:
            guess = (left + up) // 2
        else:
            guess = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
        line[i] = (line[i] + guess) & 255


@needs_browser
def test_the_page_shows_the_cluster_and_why_a_pod_waits(demo: Running, browser: Browser) -> None:
    document = browser.document(demo.page)
    assert 'data-ready="yes"' in document
    assert text_of(document, "node-count") == "20"
    assert text_of(document, "who") == "default-scheduler · leading"
    assert "since the start" in text_of(document, "pod-note")
    label = re.search(r'<canvas[^>]*aria-label="([^"]*)"', document)
    assert label is not None
    assert re.fullmatch(r"20 nodes, coloured by cpu requested: zone-a \d+ %, zone-b \d+ %, zone-c \d+ %", label.group(1))
    seen = plain(document)
    assert "Pending: 1 pod, and why" in seen
    assert "0/20 nodes are available: 18 Insufficient cpu, 18 Insufficient memory, 2 node(s) had untolerated" in seen
    assert "0 of 20 nodes would take it" in seen
    assert "NodeResourcesFit · node-000, node-001, node-002" in seen
    assert "nodes short of resources could hold it even empty" in seen
    assert len(re.findall(r"<tr>", text_of_raw(document, "decisions"))) > 20
    assert 'id="alarm" role="alert" hidden' in document


def text_of_raw(document: str, id_: str) -> str:
    return document.partition(f'id="{id_}"')[2].partition("</tbody>")[0]


@needs_browser
def test_a_pod_and_a_node_can_be_linked_to(demo: Running, browser: Browser) -> None:
    waiting = plain(browser.document(f"{demo.page}#pod/demo/whale"))
    assert "unschedulable, tried" in waiting or "backoff, tried" in waiting
    cached = browser.document(f"{demo.page}#pod/demo/cache-0")
    assert "<dialog" in cached and " open" in cached.partition("<dialog")[2].partition(">")[0]
    placed = plain(cached.partition("<dialog")[2])
    assert "Best nodes for one more like it, now" in placed
    assert "NodeResourcesBalancedAllocation" in placed
    one = plain(browser.document(f"{demo.page}#node/node-009").partition("<dialog")[2])
    assert "example.com/gpu:NoSchedule" in one and "demo/trainer-" in one
    gone = plain(browser.document(f"{demo.page}#pod/demo/nobody").partition("<dialog")[2])
    assert "pod demo/nobody is neither queued nor placed here" in gone


@needs_browser
def test_the_map_is_drawn_in_both_schemes(demo: Running, browser: Browser) -> None:
    light, dark = browser.picture(demo.page, SMALL), browser.picture(demo.page, SMALL, DARK)
    assert light.shape == dark.shape == (800, 640, 3)
    assert light[2, 2].min() > 200 and dark[2, 2].max() < 60
    for picture in (light, dark):
        marked = np.all(np.abs(picture.astype(int) - TAINTED[picture is dark]) < 3, axis=2)
        assert marked.sum() > 20, "two nodes have a corner for their taint"
        blues = (picture[..., 2].astype(int) - picture[..., 0] > 20).sum()
        assert blues > 10_000, "twenty nodes in shades of blue"


@needs_browser
async def test_five_thousand_nodes_are_drawn(browser: Browser) -> None:
    gates = Gates.defaults()
    engine = assemble(default_configuration(gates), gates)
    for i in range(5000):
        engine.inbox.post(Changed("Node", None, node(f"node-{i}", zone=f"zone-{i % 10}")))
    engine.take_in()
    server = await serve_insecurely(page_app(EnginePageData(lambda: engine, Throughput(Metrics()))), "127.0.0.1", 0)
    try:
        document = await asyncio.to_thread(browser.document, f"http://127.0.0.1:{server.port}/ui/")
    finally:
        await server.stop()
    assert text_of(document, "node-count") == "5,000"
    assert text_of(document, "node-note") == "10 zones"
    assert "5,000 nodes, coloured by cpu requested: zone-0 0 %" in document


@needs_browser
async def test_a_scheduler_with_nothing_to_show_is_said_to_have_nothing(browser: Browser) -> None:
    server = await serve_insecurely(page_app(EnginePageData(lambda: None, Throughput(Metrics()))), "127.0.0.1", 0)
    browser.tolerates = "status of 503"
    try:
        document = await asyncio.to_thread(browser.document, f"http://127.0.0.1:{server.port}/ui/")
    finally:
        await server.stop()
    assert text_of(document, "alarm") == "the scheduler is starting"
    assert 'id="alarm" role="alert" hidden' not in document
    assert "data-ready" not in document


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stderr=log.open("w"))


async def test_the_program_serves_it_behind_its_doors(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    trusting = ssl._create_unverified_context()

    def status(path: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", timeout=30, context=trusting) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, b""

    async with ApiServer() as server:
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        flags = [
            "--kubeconfig",
            str(kubeconfig),
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--authorization-always-allow-paths=/readyz,/ui/page.css,/ui/api/*",
        ]
        words = [sys.executable, "-c", "from kubesched.cli import main; main()", "run", *flags]
        process = start(words, tmp_path / "log")
        try:
            deadline = time.monotonic() + ENOUGH_SECONDS
            while True:
                try:
                    if (await asyncio.to_thread(status, "/readyz"))[0] == 200:
                        break
                except OSError:
                    pass
                assert time.monotonic() < deadline and process.poll() is None, (tmp_path / "log").read_text()
                await asyncio.sleep(0.1)
            assert (await asyncio.to_thread(status, "/ui/"))[0] == 401
            assert (await asyncio.to_thread(status, "/ui/page.css"))[0] == 200
            code, body = await asyncio.to_thread(status, "/ui/api/state")
            assert (code, json.loads(body)["profiles"]) == (200, ["default-scheduler"])
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait)
