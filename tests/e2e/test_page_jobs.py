"""What people come to the page for, each in at most three steps, with the mouse and with the keyboard; and the page's promises:
5,000 nodes within two seconds, news within one, nothing that axe-core finds wrong."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import pytest
from browser import Page, needs_browser
from demos import Running
from shown import LABEL, READY, VIEWS, Shown

from kubesched.testing.builders import node, pod

FILE = "apiVersion: v1\nkind: Pod\nmetadata: {name: mine}\nspec: {containers: [{name: c, image: i}]}"


class Step(NamedTuple):
    """Go to something by its selector and text; then click on it or press Enter, or write into it."""

    selector: str
    text: str = ""
    writes: str = ""


class Job(NamedTuple):
    question: str
    steps: list[Step]
    answers: list[str]


NAV = "nav a"
JOBS = [
    Job(
        "why is X pending",
        [Step(".brief .card")],
        ["demo/whale", "0 of 20 nodes would take it", "Insufficient cpu NodeResourcesFit"],
    ),
    Job(
        "what smallest change helps",
        [Step(NAV, "Pending")],
        ["it would fit with", "kubectl get -n demo pod whale -o json | kubectl patch"],
    ),
    Job(
        "why Y went to Z and by how much",
        [Step(".recent td a", "demo/trainer")],
        ["won", "level", "Best nodes, as they scored"],
    ),
    Job("which nodes are full of what", [Step("#map-resource", writes="example.com/gpu")], []),
    Job("what is in the queue", [Step(NAV, "Pending"), Step(".choices button", "unschedulable")], ["demo/whale unschedulable"]),
    Job(
        "what would happen if I applied this file",
        [Step(NAV, "Try"), Step("#manifests", writes=FILE), Step(".main", "Plan")],
        ["1 of 1 pod would be placed.", "Pod/mine"],
    ),
    Job(
        "which configuration packs better",
        [Step(NAV, "Try"), Step("#weight-ImageLocality", writes="5"), Step(".main", "Compare")],
        ["Both use as many nodes"],
    ),
]


async def take(page: Page, step: Step, by_mouse: bool) -> None:
    if by_mouse:
        await page.click(step.selector, step.text)
    else:
        await page.tab_to(step.selector, step.text)
        if not step.writes:
            await page.press("Enter")
    if step.writes and step.selector == "#map-resource":  # a list opens outside of the page: its first letters choose
        await page.type(step.writes[:3])
        await page.press("Enter")
    elif step.writes:
        await page.run(f"document.querySelector({step.selector!r}).select()")
        await page.write(step.writes)


@needs_browser
@pytest.mark.parametrize("way", ["mouse", "keyboard"])
async def test_every_job_takes_at_most_three_steps(demo: Running, page: Page, way: str) -> None:
    for job in JOBS:
        await page.open(demo.page)
        await page.until(READY)
        assert len(job.steps) <= 3
        for step in job.steps:
            await take(page, step, way == "mouse")
        for text in job.answers:
            await page.until_text(text)
        if job.question == "which nodes are full of what":
            await page.until(f"{LABEL}.includes('coloured by example.com/gpu requested')")


@needs_browser
@pytest.mark.parametrize("way", ["mouse", "keyboard"])
async def test_who_was_evicted_for_whom_until_when_and_what_changed_then(page: Page, way: str) -> None:
    shown, by_mouse = Shown(1), way == "mouse"
    shown.come("Pod", pod("small", requests={"cpu": "3"}, on="node-0"))
    shown.come("Pod", pod("urgent", requests={"cpu": "3"}, priority=10))
    async with shown.serving() as url:
        await page.open(url)
        await take(page, Step(NAV, "Decisions"), by_mouse)
        await page.until_text("default/urgent preempted")
        await page.until_text("evicts default/small from node-0")
        await take(page, Step(NAV, "Pending"), by_mouse)
        await page.until_text("default/urgent")
        for taken in (False, True, True):
            shown.log.history.step(shown.engine)
            shown.come("Node", node("node-0", zone="zone-0", cordoned=taken))
            await asyncio.sleep(0.01)
        await take(page, Step(NAV, "Time"), by_mouse)
        await page.until("document.querySelectorAll('.plot').length === 7")
        if by_mouse:
            left, top = await page.run(
                "((place) => [place.left, place.top])(document.querySelector('.plot svg').getBoundingClientRect())"
            )
            for kind, x in (("mousePressed", 10), ("mouseMoved", 200), ("mouseReleased", 200)):
                await page.call("Input.dispatchMouseEvent", type=kind, x=left + x, y=top + 20, button="left", clickCount=1)
        else:
            await page.tab_to(".plot svg")
            await page.press("ArrowLeft", "Enter")
        await page.until("location.hash.startsWith('#decisions?since=')")
        await page.until_text("all times")
        await page.until_text("node-0: cordoned", ".changes")


@needs_browser
async def test_five_thousand_nodes_are_there_within_two_seconds(page: Page) -> None:
    shown = Shown(5000)
    async with shown.serving() as url:
        took = []
        while not took or (min(took) > 2000 and len(took) < 5):  # the best of some: this machine may do other things
            await page.open(url)
            took.append(await page.until("performance.getEntriesByName('drawn')[0]?.startTime"))
            assert "5,000 nodes" in await page.run(LABEL)
        assert min(took) < 2000, took


@needs_browser
async def test_news_are_shown_within_a_second(page: Page) -> None:
    shown = Shown()
    async with shown.serving() as url:
        await page.open(url)
        await page.until_text("0", "#pod-count")
        took = []
        for i in range(3):  # the best of some: this machine may be busy with other things
            began = time.monotonic()
            shown.come("Pod", pod(f"new-{i}"))
            await page.until_text(f"default/new-{i}", ".recent")
            took.append(time.monotonic() - began)
        assert min(took) < 1.0, took


@needs_browser
async def test_axe_core_finds_nothing_wrong_in_both_schemes(demo: Running, page: Page) -> None:
    for view in VIEWS:
        await page.look(scheme="light")
        await page.open(f"{demo.page}{view}")
        await page.until(READY)
        await page.until("document.querySelectorAll('main section').length > 0")
        assert await page.faults() == [], view
        await page.look(scheme="dark")  # the same elements in other colours
        assert await page.faults("color-contrast") == [], f"{view} in the dark"
