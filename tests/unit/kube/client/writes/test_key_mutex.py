"""What is done about one thing is done in order; who gives up waiting lets nobody pass too early."""

from __future__ import annotations

import asyncio

from kubesched.kube.client.writes.writer import KeyMutex


class Acts:
    """Acts that begin when they hold their key and end when they are told to."""

    def __init__(self) -> None:
        self.mutex, self.begun, self._ends = KeyMutex(), list[str](), dict[str, asyncio.Event]()

    def start(self, name: str, key: str = "pod") -> asyncio.Task[None]:
        self._ends[name] = asyncio.Event()
        return asyncio.ensure_future(self._act(name, key))

    async def _act(self, name: str, key: str) -> None:
        async with self.mutex.lock(key):
            self.begun.append(name)
            await self._ends[name].wait()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_one_after_the_other_and_others_do_not_wait() -> None:
    acts = Acts()
    for name, key in (("status", "pod"), ("bind", "pod"), ("other", "another pod"), ("again", "pod")):
        acts.start(name, key)
    await acts.settle()
    assert acts.begun == ["status", "other"]
    await acts.end("status")
    assert acts.begun == ["status", "other", "bind"]
    await acts.end("bind")
    assert acts.begun[-1] == "again"
    for name in ("again", "other"):
        await acts.end(name)
    assert not acts.mutex._last, "nothing is kept of a key that nobody holds"


async def test_who_gives_up_lets_nobody_pass_too_early() -> None:
    acts = Acts()
    acts.start("first")
    second = acts.start("second")
    acts.start("third")
    await acts.settle()
    second.cancel()
    await acts.settle()
    assert acts.begun == ["first"], "the third still waits for the first"
    await acts.end("first")
    assert acts.begun == ["first", "third"]


async def test_an_error_releases_the_key() -> None:
    mutex = KeyMutex()
    try:
        async with mutex.lock("pod"):
            raise ValueError
    except ValueError:
        pass
    async with asyncio.timeout(1), mutex.lock("pod"):
        pass
