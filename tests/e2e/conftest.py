"""What the end-to-end tests share: a control plane to run against, embedded always and real where there is one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from control_planes import Api, ControlPlane, EmbeddedPlane, RealPlane, real_assets
from replicas import Replicas, replicas_of


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def control_plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """A running API server with the scheduler's own role granted."""
    plane: ControlPlane
    if request.param == "embedded":
        plane = EmbeddedPlane(tmp_path / "plane")
    else:
        assets, why_not = real_assets()
        if assets is None:
            pytest.skip(why_not)
        plane = RealPlane(tmp_path / "plane", assets)
    try:
        await plane.start()
        await plane.grant()
        yield plane
    finally:
        plane.stop()


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """An administrator's view of the cluster."""
    async with control_plane.api() as found:
        yield found


@pytest.fixture
async def replicas(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Replicas]:
    """Starts schedulers, and ends them."""
    async with replicas_of(control_plane, tmp_path) as found:
        yield found
