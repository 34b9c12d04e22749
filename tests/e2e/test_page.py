"""The page in a real browser, over the demo and over engines made for the test; and over the program's secure port.

What needs the browser is skipped where no chromium is on the path (Debian: package chromium).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from browser import Page, needs_browser
from control_planes import PROGRAM, ask_port, free_port, process
from demos import ENOUGH_SECONDS, Running, running
from shown import LABEL, READY, VIEWS, Shown

from kubesched.embedded import ApiServer
from kubesched.kube.api.pod import PodSchedulingGroup
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.records.decision_record import UNSCHEDULABLE, DecisionRecord
from kubesched.server.web import EnginePageData, Throughput, page_app, serve_insecurely
from kubesched.telemetry import Metrics
from kubesched.testing.builders import node, pod
from kubesched.tools.bench import workloads
from kubesched.tools.demo import sample

FOCUSED = "document.activeElement.innerText"


@needs_browser
async def test_the_page_shows_the_cluster_and_why_a_pod_waits(demo: Running, page: Page) -> None:
    await page.open(demo.page)
    await page.until(READY)
    assert await page.text("#node-count") == "20"
    assert await page.text("#who") == "default-scheduler · leading"
    assert "since the start" in await page.text("#pod-count-note")
    assert (await page.run(LABEL)).startswith("20 nodes, coloured by cpu requested: zone-a ")
    await page.until_text("0/20 nodes are available: 18 Insufficient cpu, 18 Insufficient memory, 2 node(s) had untolerated")
    assert await page.run("document.querySelectorAll('.recent tbody tr').length") > 20
    assert await page.run("document.getElementById('alarm').hidden")


@needs_browser
async def test_why_a_pod_waits_and_what_helps_in_two_clicks(demo: Running, page: Page) -> None:
    await page.open(demo.page)
    await page.click("nav a", "Pending")
    await page.click(".chip a", "demo/whale")
    await page.until_text("0 of 20 nodes would take it")
    shown = await page.text("main")
    assert "NodeResourcesFit · node-000, node-001, node-002" in shown
    assert "nodes short of resources could hold it even empty" in shown
    assert "kubectl get -n demo pod whale -o json | kubectl patch" in shown and "What wakes it" in shown
    assert "as of " in shown, "it says of when it is"


@needs_browser
async def test_why_not_this_node_by_keyboard(demo: Running, page: Page) -> None:
    await page.open(f"{demo.page}#pod/demo/whale")
    await page.until("Boolean(document.querySelector('.funnel'))")
    await page.run("document.getElementById('why-not').focus()")
    await page.write("node-009")
    await page.press("Enter")
    await page.until_text("node-009 is refused by 2 plugins: TaintToleration")


@needs_browser
async def test_the_map_is_coloured_by_who_refuses_a_pod(demo: Running, page: Page) -> None:
    await page.open(f"{demo.page}#pod/demo/whale")
    await page.click("a", "Colour the map by this pod")
    await page.until_text("NodeResourcesFit refuses 18")
    assert "coloured by what demo/whale meets" in await page.run(LABEL)


@needs_browser
async def test_pods_are_drawn_inside_their_nodes(demo: Running, page: Page) -> None:
    await page.open(demo.page)
    await page.until_text("demo/cache", ".legend")
    await page.click("label", "pods inside")
    await page.until_text("0 % 100 %", ".legend")
    assert "demo/cache" not in await page.text(".legend")


@needs_browser
async def test_devices_volumes_and_gangs_are_on_the_map(page: Page) -> None:
    shown = Shown(0)
    for kind in ("dra", "csi"):
        objects = workloads.cluster(kind, 3, 0, 3)
        shown.come_all(each for each in objects if kind == "dra" or each.kind != "Node")
    held = pod("train-0", on="node-00001")
    member = msgspec.structs.replace(held.spec, scheduling_group=PodSchedulingGroup(pod_group_name="train"))
    (stored,) = workloads.pods(1, "csi", 3)
    placed = msgspec.structs.replace(stored, spec=msgspec.structs.replace(stored.spec, node_name="node-00000"))
    shown.come("Pod", msgspec.structs.replace(held, spec=member), pod("web", on="node-00002"), placed)
    async with shown.serving() as url:
        await page.open(url)
        await page.click(".legend button", "gang default/train")
        await page.until(
            "document.querySelector('.legend button[aria-pressed=true]')?.innerText.includes('gang default/train')"
        )
        for resource, share in (("devices driver.example.com", "0 %"), ("volumes ebs.csi.aws.com", "3 %")):
            choose = f"(e) => {{ e.value = '{resource}'; e.dispatchEvent(new Event('change')); return e.value; }}"
            assert await page.run(f"({choose})(document.getElementById('map-resource'))") == resource
            await page.until(f"{LABEL}.includes('coloured by {resource} requested') && {LABEL}.includes(' {share}')")
        await page.open(f"{url}#node/node-00000")
        await page.until_text("devices driver.example.com 0 of 10", "node-view")
        await page.until_text("volumes ebs.csi.aws.com 1 of 39", "node-view")


@needs_browser
async def test_a_node_of_the_pods_own_map_is_asked_about_with_a_click(demo: Running, page: Page) -> None:
    await page.open(f"{demo.page}#pod/demo/whale")
    await page.until("Boolean(document.querySelector('pod-view canvas')?.clientHeight)")
    assert "coloured by what demo/whale meets" in await page.run(LABEL)
    await page.run("document.querySelector('canvas').focus()")
    await page.press("ArrowRight", "Enter")
    await page.until_text("node-000 is refused by")


@needs_browser
async def test_a_placed_pod_and_a_node_can_be_linked_to(demo: Running, page: Page) -> None:
    await page.open(f"{demo.page}#pod/demo/cache-0")
    await page.until_text("node-", ".sentence")
    await page.click(".choices button", "Now")
    await page.until_text("Best nodes for one more like it, now")
    await page.open(f"{demo.page}#node/node-009")
    await page.until_text("demo/trainer-")
    assert "example.com/gpu:NoSchedule" in await page.text("main")


@needs_browser
async def test_a_decision_is_told_as_it_was_made_also_of_a_pod_that_is_gone(page: Page) -> None:
    shown = Shown()
    shown.come("Node", node("best", zone="zone-0", cpu="64"))
    shown.come("Pod", pod("small", requests={"cpu": "1"}))
    async with shown.serving() as url:
        await page.open(f"{url}#pod/default/small")
        await page.until_text("best won by ", ".sentence")
        assert "Best nodes, as they scored" in await page.text("main")
        shown.engine.inbox.post(Changed("Pod", next(iter(shown.engine.store.pods())).pod, None))
        await page.until_text("The pod is gone; this is what is on record.")
        assert "best won by " in await page.text(".sentence")
    page.complaints = [each for each in page.complaints if "404" not in each]


@needs_browser
async def test_a_pod_that_is_not_there_is_said_to_be(demo: Running, page: Page) -> None:
    await page.open(f"{demo.page}#pod/demo/nobody")
    await page.until_text("pod demo/nobody is neither queued nor placed here")
    assert all("404" in each for each in page.complaints)
    page.complaints.clear()


@needs_browser
async def test_the_numbers_are_those_of_why(demo: Running, page: Page) -> None:
    words = [sys.executable, "-c", "from kubesched.cli import main; main()", "why", "demo/whale", "-o", "json"]
    done = await asyncio.to_thread(
        subprocess.run, [*words, "--kubeconfig", demo.kubeconfig], capture_output=True, text=True, timeout=ENOUGH_SECONDS
    )
    told = json.loads(done.stdout)
    await page.open(f"{demo.page}#pod/demo/whale")
    await page.until_text(f"{told['feasibleCount']} of {told['nodeCount']} nodes would take it")
    shown = await page.text("main")
    for each in told["refusals"]:
        assert f"{each['count']} {each['reason']} {each['plugin']}" in shown
    for advice in told["advice"]:
        assert advice["text"] in shown


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_all_views_are_readable_on_a_phone(demo: Running, page: Page, scheme: str) -> None:
    await page.look(360, 760, scheme)
    for view in VIEWS:
        await page.open(f"{demo.page}{view}")
        await page.until(READY)
        await page.until("document.querySelectorAll('main section').length > 0")
        wide = await page.run("document.documentElement.scrollWidth")
        assert wide <= 360, f"{view} is {wide} wide"
        leaves = "[...document.querySelectorAll('main *')].filter((e) => e.children.length === 0 && e.innerText)"
        assert await page.run(f"Math.min(99, ...{leaves}.map((e) => parseFloat(getComputedStyle(e).fontSize)))") >= 12, view


CONTRAST = """((a, b) => {
  const light = (colour) => colour.match(/\\w\\w/g).slice(0, 3).map((part) => parseInt(part, 16) / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [high, low] = [light(read(a)), light(read(b))].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
})"""


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_an_idle_node_is_seen_in_both_schemes(demo: Running, page: Page, scheme: str) -> None:
    await page.look(scheme=scheme)
    await page.open(demo.page)
    await page.until(READY)
    assert await page.run(f"{CONTRAST}('--edge', '--card')") > 2.7
    for text in ("--ink", "--faint", "--link", "--warn", "--good"):
        assert await page.run(f"{CONTRAST}('{text}', '--card')") >= 4.5, text
    ground = await page.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(17, 22, 28)") == (scheme == "dark")


@needs_browser
async def test_after_a_restart_nothing_of_the_old_cluster_is_shown(page: Page) -> None:
    first = Shown(6)
    async with first.serving() as url:
        await page.open(url)
        await page.until_text("6", "#node-count")
    await page.until("!document.getElementById('alarm').hidden")
    assert "what is shown is of" in await page.text("#alarm")
    second = Shown(0)  # the same number of changes would make the same version without a process id
    second.come("Node", *(node(f"other-{i}", zone="elsewhere") for i in range(6)))
    async with second.serving(int(url.split(":")[2].partition("/")[0])):
        await page.until_text("the scheduler was restarted at")
        await page.until(f"{LABEL}.includes('elsewhere')")
        assert "zone-0" not in await page.run(LABEL)
        assert await page.run("document.getElementById('alarm').hidden")


@needs_browser
async def test_the_focus_stays_when_the_table_moves(page: Page) -> None:
    shown = Shown()
    shown.record("first", "second")
    async with shown.serving() as url:
        await page.open(url)
        await page.until("document.querySelectorAll('.recent tbody tr').length === 2")
        await page.run("document.querySelector('.recent tbody tr:last-child a').focus()")
        assert await page.run(FOCUSED) == "default/first"
        shown.record(*(f"more-{i}" for i in range(100)))
        await page.until_text("default/more-99", ".recent")
        assert await page.run(FOCUSED) == "default/first", "although the table has no more room for it"


@needs_browser
async def test_arrow_keys_stay_in_their_zone(page: Page) -> None:
    shown = Shown(9)
    async with shown.serving() as url:
        await page.open(url)
        await page.until(READY)
        await page.run("document.querySelector('canvas').focus()")
        walk = []
        for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "PageDown", "ArrowUp", "ArrowRight"):
            await page.press(key)
            walk.append((await page.text(".tip")).split(" ")[0])
        assert walk == ["node-0", "node-3", "node-6", "node-6", "node-6", "node-1", "node-1", "node-4"]
        await page.press("Enter")
        await page.until_text("node-4", "#node-title")


@needs_browser
async def test_a_gate_is_named_and_active_pods_are_shown(page: Page) -> None:
    shown = Shown()
    shown.engine.is_leading = False  # nothing is tried, so that what is active stays
    shown.come("Pod", *(pod(f"held-{i}", gates=["team/not-yet"]) for i in range(500)), pod("next"))
    async with shown.serving() as url:
        await page.open(f"{url}#pending")
        await page.until_text("gated by SchedulingGates: team/not-yet")
        await page.until_text("active 1")
        await page.until_text("default/next active")
        assert "Waiting for a node: 501" in await page.text("cluster-figures")
        await page.run("document.getElementById('queue-search').focus()")
        await page.write("held-499")
        await page.until("document.querySelectorAll('pending-view tbody tr').length === 1")
        assert "default/held-499" in await page.text("pending-view tbody")


@needs_browser
async def test_a_view_follows_what_it_shows(page: Page) -> None:
    shown = Shown()
    shown.come("Pod", pod("whale", requests={"cpu": "99"}))
    async with shown.serving() as url:
        await page.open(f"{url}#pod/default/whale")
        await page.until_text("0 of 6 nodes would take it")
        shown.come("Node", node("large", cpu="128"))
        await page.until_text("large was the only one of 7 nodes that took it", ".sentence")


@needs_browser
async def test_five_thousand_nodes_are_drawn(page: Page) -> None:
    shown = Shown(5000)
    async with shown.serving() as url:
        await page.open(url)
        await page.until(READY)
        assert "5,000 nodes, coloured by cpu requested: zone-0 0 %" in await page.run(LABEL)
        redraw = "document.querySelector('map-view').redraw()"
        assert await page.run(f"((from) => {{ {redraw}; return performance.now() - from; }})(performance.now())") < 500


@needs_browser
async def test_plots_share_their_cursor(page: Page) -> None:
    shown = Shown()
    for _ in range(5):
        shown.record("one")
        shown.log.history.step(shown.engine)
    async with shown.serving() as url:
        await page.open(f"{url}#time")
        await page.until("document.querySelectorAll('.plot').length === 7")
        await page.run("document.querySelector('.plot svg').focus()")
        await page.press("ArrowLeft")
        lines = "[...document.querySelectorAll('.plot-cursor')].map((line) => line.getAttribute('x1'))"
        assert len(set(await page.run(lines))) == 1
        assert "now" not in await page.text(".plot-legend")


@needs_browser
async def test_decisions_are_found_by_outcome(demo: Running, page: Page) -> None:
    await page.open(demo.page)
    await page.click("nav a", "Decisions")
    await page.until_text("placed")
    await page.run("document.getElementById('decision-pod').focus()")
    await page.write("demo/whale")
    await page.press("Enter")
    shown = "[...document.querySelectorAll('decisions-view tbody tr')].map((line) => line.innerText)"
    await page.until(f"((lines) => lines.length && lines.every((line) => line.includes('whale')))({shown})")
    first = await page.text("decisions-view tbody tr")
    assert "demo/whale unschedulable" in first and "0/20 nodes are available" in first


@needs_browser
async def test_a_pod_that_is_told_the_same_again_and_again_is_one_line(page: Page) -> None:
    shown = Shown()
    for message in ("0/6 nodes are available", "0/6 nodes are available", "0/7 nodes are available"):
        told = DecisionRecord("default/big", "u", "default-scheduler", outcome=UNSCHEDULABLE, message=message)
        told.at = time.time()
        shown.recorder.ring.append(told)
    async with shown.serving() as url:
        await page.open(f"{url}#decisions")
        await page.until_text("unschedulable × 2")
        assert await page.run("document.querySelectorAll('decisions-view tbody tr').length") == 2


@needs_browser
async def test_dragging_over_a_plot_asks_for_the_decisions_of_that_time(page: Page) -> None:
    shown = Shown()
    shown.record("early")
    for _ in range(3):
        shown.log.history.step(shown.engine)
        await asyncio.sleep(0.01)
    async with shown.serving() as url:
        await page.open(f"{url}#time")
        await page.until("document.querySelectorAll('.plot').length === 7")
        corner = "((place) => [place.left, place.top])(document.querySelector('.plot svg').getBoundingClientRect())"
        left, top = await page.run(corner)
        for kind, x in (("mousePressed", 10), ("mouseMoved", 200), ("mouseReleased", 200)):
            await page.call("Input.dispatchMouseEvent", type=kind, x=left + x, y=top + 20, button="left", clickCount=1)
        await page.until("location.hash.startsWith('#decisions?since=')")
        await page.until_text("all times")


@needs_browser
async def test_the_configuration_is_shown(demo: Running, page: Page) -> None:
    await page.open(demo.page)
    await page.click("nav a", "Configuration")
    await page.until_text("prefer nodes whose resources would be used more evenly")
    assert "TaintToleration × 3" in await page.text("main")


@needs_browser
async def test_what_would_happen_if_this_was_applied_and_then_it_is(page: Page) -> None:
    with running("--nodes", "6", "--pods", "10") as demo:
        await asyncio.to_thread(demo.until, "Ctrl-C")
        await page.open(demo.page)
        await page.click("nav a", "Try")
        await page.click(".main", "Plan")
        await page.until_text("10 of 10 pods would be placed.")
        assert "6 nodes, " in await page.run(LABEL) and "get planned pods" in await page.run(LABEL)
        await page.click("button", "Apply")
        await page.until_text("Done: applied Deployment/shop.")
        await page.click("button", "cordon")
        await page.until_text("Done: node-000 is cordoned.")
        await page.until_text("1 cordoned", "#node-count-note")
        await page.click("button", "Compare")
        await page.until_text("Both use as many nodes; 0 of ")
        await page.run("document.getElementById('manifests').value = 'kind: Nonsense'")
        await page.click(".main", "Plan")
        await page.until_text("the text, document 1: apiVersion: invalid value None: a text is needed")
    page.complaints = [each for each in page.complaints if "422" not in each]


@needs_browser
async def test_who_is_not_let_in_can_give_a_token(page: Page) -> None:
    shown = Shown()

    @web.middleware
    async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "/api/" in request.path and request.headers.get("Authorization") != "Bearer sesame":
            return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
        return await handler(request)

    app = page_app(shown.page_data)
    app.middlewares.append(door)
    server, working = await serve_insecurely(app, "127.0.0.1", 0), asyncio.create_task(shown.engine.run())
    try:
        await page.open(f"http://127.0.0.1:{server.port}/ui/")
        await page.until("!document.getElementById('token-form').hidden")
        await page.run("document.getElementById('token').focus()")
        await page.write("sesame")
        await page.press("Enter")
        await page.until(READY)
        assert await page.run("document.getElementById('token-form').hidden")
    finally:
        await server.stop()
        shown.engine.stop()
        await working
    page.complaints = [each for each in page.complaints if "401" not in each]


@needs_browser
async def test_a_scheduler_with_nothing_to_show_is_said_to_have_nothing(page: Page) -> None:
    server = await serve_insecurely(page_app(EnginePageData(lambda: None, Throughput(Metrics()))), "127.0.0.1", 0)
    try:
        await page.open(f"http://127.0.0.1:{server.port}/ui/")
        await page.until_text("the scheduler is starting", "#alarm")
        assert not await page.run(READY)
    finally:
        await server.stop()
    page.complaints = [each for each in page.complaints if "503" not in each]


async def test_the_program_serves_it_behind_its_doors(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"

    async def ask(path: str, body: object = None) -> tuple[int, str]:
        return await asyncio.to_thread(ask_port, port, path, "", body)

    async with ApiServer() as server:
        server.store.create("nodes", sample.node(0))
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        paths = "--authorization-always-allow-paths=/readyz,/ui/api/state,/ui/api/plan"
        async with process(*PROGRAM, "run", *flags, paths, log=log) as scheduler:
            deadline = time.monotonic() + ENOUGH_SECONDS
            while (await ask("/readyz"))[0] != 200:
                assert time.monotonic() < deadline and scheduler.poll() is None, log.read_text()
                await asyncio.sleep(0.1)
            for path, expected in (("/ui/", 200), ("/ui/app.js", 200), ("/ui/api/configuration", 401)):
                assert (await ask(path))[0] == expected, path
            code, text = await ask("/ui/api/state")
            told = json.loads(text)
            assert (code, told["profiles"]) == (200, ["default-scheduler"])
            assert told["offers"] == ["plan", "compare", "snapshot"], "a scheduler's own page changes nothing"
            asked = {"manifests": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: i}]}"}
            code, text = await ask("/ui/api/plan", asked)
            assert (code, json.loads(text)["summary"]["placed"]) == (200, 1)
            for path, expected in (("/ui/api/compare", 401), ("/ui/api/apply", 401)):
                assert (await ask(path, {}))[0] == expected, path
