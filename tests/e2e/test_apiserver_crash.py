"""Kill -9 of the real process on a real disk: everything the server acknowledged is there when it comes back.

At any step, with torn records and full disks: tests/chaos.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

PROGRAM = "from kubesched.cli import main; main()"
CONFIGS = "/api/v1/namespaces/default/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
GONE = ""


def start(directory: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-c", PROGRAM, "apiserver", "--no-world", "--port", "0", "--data-dir", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    return process, url


class Ledger:
    """What the server said it keeps, and what it was asked to do when it died."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.n_acknowledged = 0

    async def write(self, session: aiohttp.ClientSession, name: str, value: str) -> None:
        """Create, change or delete an object, and remember what was acknowledged."""
        self.asked[name] = value
        if value == GONE:
            request = session.delete(f"{CONFIGS}/{name}")
        elif self.kept.get(name, GONE) == GONE:
            request = session.post(CONFIGS, json={"metadata": {"name": name}, "data": {"value": value}})
        else:
            request = session.patch(f"{CONFIGS}/{name}", data=json.dumps({"data": {"value": value}}), headers=MERGE)
        async with request as answer:
            assert answer.status in (200, 201), await answer.text()
            await answer.read()
        self.kept[name] = value
        self.n_acknowledged += 1

    def compare(self, found: dict[str, str]) -> None:
        """Nothing acknowledged is lost; what was only asked for may have been done or not."""
        for name in self.asked:
            there = found.get(name, GONE)
            assert there in (self.kept.get(name, GONE), self.asked[name]), (
                f"{name}: {there!r}, acknowledged {self.kept.get(name)!r}"
            )
        self.kept = {name: found.get(name, GONE) for name in self.asked}


async def write_until_killed(url: str, process: subprocess.Popen[str], delay: float, ledger: Ledger, seed: int) -> None:
    """Write as fast as possible from four clients, each to names of its own, until the server is killed."""

    async def one_client(session: aiohttp.ClientSession, number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        for turn in range(1_000_000):
            name = f"c{number}-{chance.randrange(40)}"
            is_there = ledger.kept.get(name, GONE) != GONE
            await ledger.write(session, name, GONE if is_there and chance.random() < 0.3 else f"{seed} {turn}")

    async with aiohttp.ClientSession(url) as session:
        clients = [asyncio.create_task(one_client(session, number)) for number in range(4)]
        await asyncio.sleep(delay)
        process.kill()
        for client in clients:
            with contextlib.suppress(aiohttp.ClientError):
                await client
    process.wait()


async def read(url: str) -> dict[str, str]:
    async with aiohttp.ClientSession(url) as session, session.get(CONFIGS) as answer:
        items = json.loads(await answer.read())["items"]
    return {one["metadata"]["name"]: one["data"]["value"] for one in items}


def kill_again_and_again(directory: Path, seed: int, times: int) -> Ledger:
    chance, ledger = random.Random(seed), Ledger()
    for turn in range(times):
        process, url = start(directory)
        ledger.compare(asyncio.run(read(url)))
        asyncio.run(write_until_killed(url, process, chance.uniform(0.05, 0.5), ledger, seed * 1000 + turn))
    process, url = start(directory)
    ledger.compare(asyncio.run(read(url)))
    process.terminate()
    process.wait()
    return ledger


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, 1, times=2).n_acknowledged, "the test wrote something"


@pytest.mark.nightly
def test_nothing_acknowledged_is_lost_in_fifty_kills(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, 99, times=50).n_acknowledged > 1000
