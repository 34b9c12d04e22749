"""Kill -9 at any moment: everything the server acknowledged is there when it comes back."""

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


def start(directory: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-c", PROGRAM, "apiserver", "--no-world", "--port", "0", "--data-dir", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    return process, url


async def write_until_killed(url: str, process: subprocess.Popen[str], delay: float, first: int) -> list[str]:
    """Create nodes as fast as possible from four clients; return the names that were acknowledged."""
    acknowledged: list[str] = []
    numbers = iter(range(first, first + 1_000_000))

    async def one_client(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            name = f"n{number}"
            async with session.post(f"{url}/api/v1/nodes", json={"metadata": {"name": name}}) as answer:
                await answer.read()
                if answer.status == 201:
                    acknowledged.append(name)

    async with aiohttp.ClientSession() as session:
        clients = [asyncio.create_task(one_client(session)) for _ in range(4)]
        await asyncio.sleep(delay)
        process.kill()
        for client in clients:
            with contextlib.suppress(aiohttp.ClientError):
                await client
    process.wait()
    return acknowledged


@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    expected: set[str] = set()
    for _ in range(2):
        process, url = start(tmp_path)
        expected |= set(asyncio.run(write_until_killed(url, process, chance.uniform(0.1, 0.5), len(expected) * 10 + 1)))
    process, url = start(tmp_path)

    async def read() -> set[str]:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/nodes") as answer:
            return {one["metadata"]["name"] for one in json.loads(await answer.read())["items"]}

    found = asyncio.run(read())
    process.terminate()
    process.wait()
    assert expected, "the test wrote something"
    assert expected <= found
