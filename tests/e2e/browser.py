"""A real browser for the page: Debian's Chromium without a head, driven over its own debugging protocol.

In: addresses, expressions, keys, clicks. Out: what the page answers, pictures of it, and all it said on the console. A page
is told which scheme and width to be; nothing waits longer than it must. Needs no driver besides aiohttp.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import aiohttp
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path (Debian: chromium)")
ENOUGH_SECONDS = 60.0
MOST_TABS = 150
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
    "--ignore-certificate-errors",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # the page must do without any other host
    "about:blank",
]
_AXE = (resources.files("axe_core_python") / "axe.min.js").read_text("utf-8")
KEYS = {"Enter": 13, "Tab": 9, "PageDown": 34, "PageUp": 33, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []
        """What went wrong: errors on the console, exceptions, blocked content."""
        self._reading = asyncio.ensure_future(self._read())

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        return await asyncio.wait_for(answer, ENOUGH_SECONDS)

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                answer = self._waiting.pop(told["id"])
                if "error" in told:
                    answer.set_exception(AssertionError(told["error"]["message"]))
                else:
                    answer.set_result(told["result"])
            elif told["method"] == "Runtime.exceptionThrown":
                details = told["params"]["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] in ("error", "warning"):
                self.complaints.append(told["params"]["entry"]["text"])
            elif told["method"] == "Runtime.consoleAPICalled" and told["params"]["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(told["params"]["args"]))

    async def look(self, width: int = 1400, height: int = 1000, scheme: str = "light") -> None:
        """Be so wide and high, in this colour scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def open(self, url: str) -> None:
        """Go there, as if it was typed; another address of the same page is a new page too."""
        await self.call("Page.navigate", url="about:blank")
        await self.call("Page.navigate", url=url)
        await self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    async def run(self, expression: str) -> Any:
        """Return what an expression comes to in the page."""
        told = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true of the page, and return what it came to."""
        deadline = asyncio.get_running_loop().time() + ENOUGH_SECONDS
        while not (found := await self.run(expression)):
            if asyncio.get_running_loop().time() > deadline:
                pytest.fail(f"never came true: {expression}\n{await self.text()}\n{self.complaints}")
            await asyncio.sleep(0.05)
        return found

    async def text(self, selector: str = "body") -> str:
        """Return what is to be read there, in one line."""
        found = await self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return re.sub(r"\s+", " ", found)

    async def until_text(self, text: str, selector: str = "body") -> None:
        """Wait until a text is to be read."""
        shown = f"(document.querySelector({json.dumps(selector)})?.innerText ?? '').replace(/\\s+/g, ' ')"
        await self.until(f"{shown}.includes({json.dumps(text)})")

    async def click(self, selector: str, text: str = "") -> None:
        """Click on the first thing of that kind that holds a text, where it is on the screen."""
        finding = _finding(selector, text)
        await self.until(f"Boolean({finding})")
        where = (
            f"(() => {{ const e = {finding}; e.scrollIntoView({{ block: 'center' }}); const r = e.getClientRects()[0];"
            " return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        x, y = await self.run(where)
        while [x, y] != (again := await self.run(f"new Promise(requestAnimationFrame).then(() => {where})")):
            x, y = again  # something that came meanwhile has moved it
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, *keys: str) -> None:
        """Press keys of the keyboard."""
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                code = KEYS[key]
                more = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
                await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    async def tab_to(self, selector: str, text: str = "") -> None:
        """Press Tab until something of that kind that holds a text has the focus, as who has no mouse does."""
        wanted = f"e.matches({json.dumps(selector)}) && (e.innerText ?? '').includes({json.dumps(text)})"
        there = f"((e) => {wanted})(document.activeElement)"
        await self.until(f"Boolean({_finding(selector, text)})")
        for _ in range(MOST_TABS):
            if await self.run(there):
                return
            await self.press("Tab")
        pytest.fail(f"{selector} {text!r} cannot be reached with the keyboard")

    async def faults(self, *rules: str) -> list[str]:
        """Return what axe-core, by all or some of its rules, finds wrong for people who see, hear or move little."""
        if not await self.run("Boolean(window.axe)"):
            await self.run(f"{_AXE};0")
        options = json.dumps({"runOnly": rules} if rules else {})
        told = "violations.map((each) => [each.impact, each.id, each.nodes[0].html].join(' '))"
        return list(await self.run(f"axe.run({options}).then(({{ violations }}) => {told})"))

    async def write(self, text: str) -> None:
        """Write into what has the focus."""
        await self.call("Input.insertText", text=text)

    async def type(self, text: str) -> None:
        """Press the keys of letters, one after the other."""
        for letter in text:
            for kind in ("keyDown", "keyUp"):
                await self.call(
                    "Input.dispatchKeyEvent", type=kind, key=letter, **({"text": letter} if kind == "keyDown" else {})
                )

    async def picture(self) -> bytes:
        """Return a PNG of what is seen."""
        told = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(told["data"])

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()


@contextlib.asynccontextmanager
async def browsing() -> AsyncIterator[Page]:
    """Run a browser with one tab."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = await asyncio.create_subprocess_exec(
            CHROMIUM, f"--user-data-dir={profile}", *QUIETLY, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(ENOUGH_SECONDS), aiohttp.ClientSession() as session:
                port = await _port(browser)
                async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                    tab = next(each for each in await answer.json() if each["type"] == "page")
            async with aiohttp.ClientSession() as session:
                page = Page(await session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0, heartbeat=None))
                for domain in ("Page", "Runtime", "Log"):
                    await page.call(f"{domain}.enable")
                await page.look()
                try:
                    yield page
                finally:
                    await page.close()
        finally:
            browser.terminate()
            await browser.communicate()


def _finding(selector: str, text: str) -> str:
    wanted = f"(e.innerText ?? '').includes({json.dumps(text)}) && e.getClientRects().length"
    return f"[...document.querySelectorAll({json.dumps(selector)})].find((e) => {wanted})"


async def _port(browser: asyncio.subprocess.Process) -> int:
    assert browser.stderr is not None
    said = ""
    while line := (await browser.stderr.readline()).decode(errors="replace"):
        said += line
        if found := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            return int(found.group(1))
    pytest.fail(f"chromium did not start: {said}")
