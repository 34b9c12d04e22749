"""`kubesched observe` as it is deployed: beside a live scheduler, with the rights of its manifest; and its page."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from browser import Page, needs_browser
from control_planes import PROGRAM, ask_port, free_port, process, write_kubeconfig
from demos import Running
from faulty_proxy import Recorder
from shown import READY

from kubesched.embedded import ApiServer
from kubesched.embedded.http.access import User

MANIFEST = Path(__file__).parents[2] / "deploy" / "observe.yaml"
AUTHENTICATED = "system:authenticated"
TOKENS = {
    "root": User("root", ("system:masters", AUTHENTICATED)),
    "observe": User("system:serviceaccount:kube-system:kubesched-observe", ("system:serviceaccounts", AUTHENTICATED)),
    "viewer": User("viewer", (AUTHENTICATED,)),
    "guest": User("guest", (AUTHENTICATED,)),
}
VIEWERS = {
    "metadata": {"name": "viewers"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubesched-observe-viewer"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}],
}
PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings"}
REVIEWS = ("/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews")
ENOUGH_SECONDS = 60.0

Object = dict[str, Any]


def a_node(i: int) -> Object:
    offer = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"n{i}", "topology.kubernetes.io/zone": f"zone-{i % 2}"}
    return {"metadata": {"name": f"n{i}", "labels": labels}, "status": {"capacity": offer, "allocatable": offer}}


def a_pod(name: str, cpu: str) -> Object:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


async def until(condition: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + ENOUGH_SECONDS
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"see {log}"
        await asyncio.sleep(0.05)


async def test_placements_and_pods_that_wait_are_shown_with_rights_that_only_read(tmp_path: Path) -> None:
    async with ApiServer(tokens=TOKENS) as api:
        for rule in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")):
            if rule["kind"] in PLURALS:
                api.store.create(PLURALS[rule["kind"]], rule, rule["metadata"].get("namespace", ""))
        api.store.create("clusterrolebindings", VIEWERS)
        for i in range(4):
            api.store.create("nodes", a_node(i))
        async with Recorder(api.url) as recorder:
            kubeconfig = write_kubeconfig(tmp_path / "observe.kubeconfig", recorder.url, {"token": "observe"})
            root = api.write_kubeconfig(tmp_path / "root.kubeconfig", "root")
            log, port = tmp_path / "observe.log", free_port()
            words = [
                f"--{name}={kubeconfig}" for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
            ]
            words += ["--bind-address=127.0.0.1", f"--secure-port={port}"]
            live = ("run", f"--kubeconfig={root}", "--leader-elect=false", "--secure-port=0")

            def ask(path: str, token: str = "viewer", body: Object | None = None) -> tuple[int, str]:
                return ask_port(port, path, token, body)

            def told(path: str, body: Object | None = None) -> Any:
                return json.loads(ask(path, body=body)[1] or "{}")

            async with process(*PROGRAM, "observe", *words, log=log), process(*PROGRAM, *live, log=tmp_path / "live.log"):
                await until(lambda: "Following 4 nodes" in log.read_text(), log)
                for i in range(12):
                    api.store.create("pods", a_pod(f"web-{i}", "500m"), "default")
                api.store.create("pods", a_pod("whale", "40"), "default")
                await until(lambda: told("/shadow.json").get("judged") == 12, log)
                assert (await asyncio.to_thread(told, "/shadow.json"))["explainedPercent"] == 100.0
                decisions = {each["pod"]: each for each in (await asyncio.to_thread(told, "/api/decisions"))["decisions"]}
                for i in range(12):
                    pod = api.store.get("pods", f"web-{i}", "default")
                    record = decisions[f"default/web-{i}"]
                    assert (record["outcome"], record["node"]) == ("placed", pod["spec"]["nodeName"])
                    assert re.search("won by|were level|the only one", record["sentence"]), record["sentence"]
                await until(lambda: bool(told("/ui/api/pending").get("groups")), log)
                (group,) = (await asyncio.to_thread(told, "/ui/api/pending"))["groups"]
                assert group["pods"][0]["pod"] == "default/whale" and "4 Insufficient cpu" in group["why"]
                assert api.store.get("pods", "whale", "default")["status"]["conditions"][0]["message"].startswith("0/4 nodes")
                more = {"manifests": json.dumps({"apiVersion": "v1", "kind": "Pod", **a_pod("more", "1")})}
                plan = await asyncio.to_thread(told, "/ui/api/plan", more)
                assert "workloads" in plan, plan
                assert plan["summary"]["placed"] == 1 and "more" not in str(api.store.list("pods").items)
                for token, status in (("", 401), ("guest", 403)):
                    for path in ("/ui/api/state", "/api/decisions", "/shadow.json"):
                        assert (await asyncio.to_thread(ask, path, token))[0] == status, path
                assert (await asyncio.to_thread(ask, "/ui/", ""))[0] == 200
                assert (await asyncio.to_thread(ask, "/readyz", ""))[0] == 200
                metrics = (await asyncio.to_thread(ask, "/metrics", "root"))[1]
                assert 'kubesched_observe_pending_pods{queue="unschedulable"} 1.0' in metrics
                assert 'kubesched_shadow_placements_total{agreement="same"' in metrics
                assert re.search(r"kubesched_observe_fragmentation_ratio 0\.\d+", metrics)
            assert {path for verb, path in recorder.asked if verb != "GET"} <= set(REVIEWS)


@needs_browser
async def test_the_page_works_as_in_the_demo(demo: Running, page: Page, tmp_path: Path) -> None:
    log = tmp_path / "observe.log"
    words = ("observe", "--insecure", "--secure-port=0", f"--kubeconfig={demo.kubeconfig}")
    async with process(*PROGRAM, *words, log=log):
        await until(lambda: "Following 20 nodes" in log.read_text(), log)
        url = re.findall(r"http://127\.0\.0\.1:\d+/ui/", log.read_text())[0]
        await page.open(url)
        await page.until(READY)
        assert await page.text("#who") == "default-scheduler · observing"
        assert await page.text("#node-count") == "20"
        await page.until_text(
            "0/20 nodes are available: 18 Insufficient cpu, 18 Insufficient memory, 2 node(s) had untolerated"
        )
        await page.open(f"{url}#pod/demo/whale")
        await page.until_text("0 of 20 nodes would take it")
        await page.open(f"{url}#time")
        await page.until_text("Free cpu in pieces too small")
        scale = ["kubectl", "--kubeconfig", demo.kubeconfig, "scale", "deployment", "web", "-n", "demo", "--replicas", "70"]
        await asyncio.to_thread(subprocess.run, scale, check=True, capture_output=True)
        await page.open(f"{url}#decisions")
        await page.until_text("demo/web-")
        assert re.search("won by|were level", await page.text("main"))
        done = await asyncio.to_thread(
            subprocess.run,
            [*PROGRAM, "why", "demo/whale", "--server", url.removesuffix("/ui/")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "demo/whale is pending: none of 20 nodes takes it" in done.stdout
