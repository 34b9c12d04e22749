"""What a bench reads of a process that it started, what it leaves of a namespace, and work at a rate."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, cast

import pytest

from kubesched.errors import NotFound, SchedulerError
from kubesched.kube.client.connection import Connection
from kubesched.tools.bench.processes import at_a_rate, last_line, remove_namespace


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "it said nothing"),
        ("one\ntwo\n\n", "two"),
        (
            'E1117 17:08:20.049190   27450 run.py:153] "Leaderelection lost" err="leader election lost"\n',
            '"Leaderelection lost"',
        ),
        ("error: no such file: E1117.yaml] \n", "error: no such file: E1117.yaml]"),
    ],
)
def test_the_last_line_of_a_log_comes_without_klogs_header(log: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert last_line(tmp_path / "log").startswith(said)


class Server:
    """An API server with a namespace that ends when its finalizers are gone; `conditions` are a controller's words."""

    def __init__(self, conditions: list[Any]) -> None:
        self.namespace: dict[str, Any] | None = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        self.conditions = conditions

    async def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        if self.namespace is None:
            raise NotFound(404, "NotFound", "gone")
        if method == "DELETE":
            self.namespace["status"] = {"phase": "Terminating", "conditions": self.conditions}
        elif method == "PUT":
            assert path == "/api/v1/namespaces/a/finalize" and json.loads(body)["spec"] == {"finalizers": []}
            self.namespace = None
        return json.dumps(self.namespace).encode()


@pytest.mark.parametrize(("conditions", "is_gone"), [([], True), ([{"type": "NamespaceContentRemaining"}], False)])
async def test_a_namespace_is_ended_where_no_controller_does(conditions: list[Any], is_gone: bool) -> None:
    server = Server(conditions)
    await remove_namespace(cast(Connection, server), "a", patience_seconds=0.0)
    assert (server.namespace is None) is is_gone


async def test_a_namespace_that_is_not_there_is_removed_already() -> None:
    server = Server([])
    server.namespace = None
    await remove_namespace(cast(Connection, server), "a")


async def test_work_at_a_rate_does_not_wait_for_what_was_begun_before() -> None:
    begun: list[int] = []
    released = asyncio.Event()

    async def work(item: int) -> None:
        begun.append(item)
        if item == 2:
            released.set()
        await released.wait()

    start = time.monotonic()
    await at_a_rate(range(3), work, 100.0)
    assert begun == [0, 1, 2]
    assert time.monotonic() - start >= 0.03


async def test_a_failure_at_a_rate_is_raised_as_it_was() -> None:
    async def work(item: int) -> None:
        raise SchedulerError(f"item {item}")

    with pytest.raises(SchedulerError, match="item 0"):
        await at_a_rate(range(100), work, 100.0)
