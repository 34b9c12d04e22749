"""What the end-to-end tests share: a control plane to run against, embedded always and real where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from browser import Page, browsing
from control_planes import Api, ControlPlane, EmbeddedPlane, RealPlane, real_assets
from demos import Running, running
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


@pytest.fixture(scope="module")
def demo() -> Iterator[Running]:
    """A demo with its page."""
    with running() as found:
        found.until("Ctrl-C")
        yield found


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a browser, about which nobody complains in the end."""
    async with browsing() as page:
        yield page
        # A page that is still open asks on when the test has stopped its server; that no answer comes is no fault of the page.
        assert not [each for each in page.complaints if "net::ERR_" not in each]
