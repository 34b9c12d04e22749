"""The reports of `simulate` and `compare` in a real browser, from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Page, browsing, needs_browser
from click.testing import CliRunner

from kubesched.cli.compare import command as compare_command
from kubesched.cli.simulate import command as simulate_command

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SCENARIO = """
seed: 3
duration: 10m
sampleEvery: 10s
cluster: {nodes: [{name: n, count: 6, capacity: {cpu: 4, memory: 16Gi}, labels: {topology.kubernetes.io/zone: "z{i%3}"}}]}
workloads:
- {name: web, replicas: 8, requests: {cpu: 500m}}
- {name: job, arrivals: {rate: 0.05}, runs: {exponential: 2m}, requests: {cpu: "1"}}
- {name: huge, requests: {cpu: "9"}}
- {name: urgent, priority: 10, arrivals: {at: 5m}, replicas: 6, requests: {cpu: "3"}}
"""


async def opened(page: Page, report: Path, scheme: str = "light", width: int = 1280) -> str:
    await page.look(width, 900, scheme)
    await page.open(report.as_uri())
    await page.until("document.body.dataset.ready === 'yes'")
    assert page.complaints == []
    return await page.text("main")


@needs_browser
async def test_a_simulation_is_drawn_over_time(tmp_path: Path) -> None:
    scenario, report = tmp_path / "s.yaml", tmp_path / "r.html"
    scenario.write_text(SCENARIO)
    CliRunner().invoke(simulate_command, [str(scenario), "--html", str(report)], catch_exceptions=False)
    async with browsing() as page:
        shown = await opened(page, report)
        for title in (
            "Requested of allocatable",
            "Pods that wait",
            "Time to placement",
            "Fragmentation",
            "Preempted in each 10 s",
        ):
            assert title in shown
        assert "pods were placed, half of them within" in shown and "6 Insufficient cpu" in shown
        await page.run("document.querySelector('.plot svg[tabindex]').focus()")
        await page.press("ArrowLeft", "ArrowLeft")
        assert (await page.text(".plot-legend")).endswith("0:09:30")
        assert await page.run("document.querySelector('canvas').getAttribute('aria-label')") == (
            "6 nodes of default, coloured by cpu requested"
        )


@needs_browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
async def test_two_configurations_are_drawn_against_each_other(tmp_path: Path, scheme: str, width: int) -> None:
    scenario, report = tmp_path / "s.yaml", tmp_path / "r.html"
    scenario.write_text(SCENARIO.replace("count: 6", "count: 12"))  # room to pack
    words = ["default", str(EXAMPLES / "packing.yaml"), "--scenario", str(scenario), "--html", str(report)]
    CliRunner().invoke(compare_command, words, catch_exceptions=False)
    async with browsing() as page:
        shown = await opened(page, report, scheme, width)
        assert "packing.yaml against default: " in shown and "nodes fewer on average" in shown
        assert "A default" in shown and "B packing.yaml" in shown and "Pods that moved" in shown
        assert await page.run("document.querySelectorAll('node-map').length") == 2
        assert await page.run("document.documentElement.scrollWidth") <= width
        await page.run("document.getElementById('find-pod').focus()")
        await page.write("web-1")
        await page.until("[...document.querySelectorAll('.scroll tbody tr')].every((line) => line.innerText.includes('web-1'))")
