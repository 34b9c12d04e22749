"""The condition in a pod group's status."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from group_scene import GATES, gang

from kubesched.kube.api.meta import TopLevel
from kubesched.kube.api.workload import PodGroup
from kubesched.scheduler import config
from kubesched.scheduler.cluster import GroupKey
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration, registry_with
from kubesched.scheduler.engine.groups import group_conditions
from kubesched.scheduler.engine.groups.group import Rehearsal
from kubesched.scheduler.engine.groups.group_conditions import GroupConditions
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.framework import WORKLOAD


class SlowWriter(NoWriter):
    """Holds every write back until `gate` is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.written: list[str] = []

    async def patch_status(self, obj: TopLevel, status: Mapping[str, Any]) -> None:
        await self.gate.wait()
        self.written.append(obj.metadata.name)


async def test_a_burst_of_groups_loses_no_condition_that_is_still_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_conditions, "MOST_REMEMBERED", 4)
    writer, gates, registry = SlowWriter(), config.Gates.parse(GATES, emulated=(1, 36)), registry_with()
    core = assemble(default_configuration(gates, registry), gates, Ports(writer=writer), registry=registry).core
    conditions = GroupConditions(core)
    names = [f"g{number}" for number in range(10)]

    def tell(name: str) -> None:
        core.store.objects.put(gang(name), PodGroup)
        conditions.tell(GroupKey(WORKLOAD, "default", name), Rehearsal())

    for name in names:
        tell(name)
    writer.gate.set()
    await asyncio.gather(*core.tasks)
    assert sorted(writer.written) == names
    tell("later")
    assert len(conditions.latest) == 4, "those that are written make way"
