"""The end of a soak on a cluster that is not ours: the report counts, cleaning up comes after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kubesched.errors import SchedulerError
from kubesched.tools.bench.soak import run as soak_run
from kubesched.tools.bench.soak.run import Soak, run


class Nothing:
    """Stands for whatever is entered, waited for, or called and does nothing."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.ledger = None

    def __call__(self, *given: Any, **named: Any) -> Nothing:
        return self

    async def __aenter__(self) -> Nothing:
        return self

    async def __aexit__(self, *given: object) -> None:
        return None


class Processes(Nothing):
    kubeconfig = "given"

    async def start_server(self) -> None:
        return None

    async def stop(self) -> None:
        return None


class Leaving(Nothing):
    """Users whose cluster fails while it is emptied."""

    async def fill(self) -> None:
        return None

    async def empty(self) -> None:
        raise SchedulerError("etcd is gone")


class Running(Nothing):
    async def churn(self) -> None:
        return None

    async def settled(self) -> dict[str, Any]:
        return {"isFinal": True}


class Refused(Leaving):
    """Users whose pods are not taken."""

    async def fill(self) -> None:
        raise SchedulerError("pods are forbidden")


async def nothing(*given: object) -> None:
    return None


LEFT_OVER = ["Removing nodes and pods", "Nodes and pods are left over in namespace sched-0: etcd is gone"]


async def a_run(monkeypatch: pytest.MonkeyPatch, users: type[Leaving], told: list[Any]) -> dict[str, Any]:
    fakes = {"Replicas": Processes, "connected": Nothing(), "following_pods": Nothing(), "Users": users, "_Running": Running}
    for name, fake in {**fakes, "refuse_nodes_of_others": nothing, "_lead": nothing}.items():
        monkeypatch.setattr(soak_run, name, fake)
    return await run(Soak(kubeconfig="given"), SimpleNamespace(), told.append, told.append)  # type: ignore[arg-type]


async def test_the_report_is_handed_on_before_a_cluster_is_emptied_and_survives_that(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    report = await a_run(monkeypatch, Leaving, told)
    assert report == {"isFinal": True}
    at = told.index(report)
    assert told[at + 1 :] == LEFT_OVER


async def test_a_cluster_that_refuses_half_of_it_is_emptied_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    with pytest.raises(SchedulerError, match="pods are forbidden"):
        await a_run(monkeypatch, Refused, told)
    assert told == LEFT_OVER
