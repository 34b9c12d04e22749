"""What five write-ups about kube-scheduler show, done with `kubesched run`: a plugin of one's own with a ConfigMap (1.31), a
policy with extenders and a choice of providers (1.4), the Endpoints lock and the plain port (1.6), `scheduler.New` without
leader election (1.13), and a policy in a ConfigMap (1.17)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from control_planes import PROGRAM, a_node, a_pod, free_port
from in_process import until
from test_run import node_of

from kubesched.embedded import ApiServer

LEADER = "control-plane.alpha.kubernetes.io/leader"
PLUGIN = '''
"""The write-up's plugin: look at what a node offers, write it to the log, let every node pass."""

import logging

from kubesched import Plugin

log = logging.getLogger(__name__)


class ExamplePlugin(Plugin):
    name = "example.com/example"

    def filter_node(self, pod, node, state):
        log.info("Filter pod=%s node=%s cpu=%s memory=%s", pod.name, node.name, node.allocatable("cpu"),
                 node.allocatable("memory"))
        return None
'''
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "example-scheduler-config", "namespace": "kube-system"},
    "data": {
        "scheduler-config.yaml": """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  acceptContentTypes: ""
  burst: 100
  contentType: application/vnd.kubernetes.protobuf
  qps: 100
profiles:
- schedulerName: example-scheduler
  plugins:
    filter:
      enabled:
      - name: "example"
"""
    },
}


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        for i in range(3):
            server.store.create("nodes", a_node(f"n{i}", memory="8Gi"))
        yield server


RUN = (*PROGRAM, "run")


class Program:
    """`kubesched run` in a process of its own."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.kubeconfig = str(api.write_kubeconfig(folder / "kubeconfig"))
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *words: str, needs_kubeconfig: bool = True, program: Sequence[str] = RUN) -> subprocess.Popen[str]:
        given = ["--kubeconfig", self.kubeconfig] if needs_kubeconfig else []
        process = subprocess.Popen(
            [*program, *given, "--secure-port=0", *words],
            text=True,
            stderr=(self.folder / "log").open("a"),
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.processes.append(process)
        return process

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    async def refusal(self, *words: str, needs_kubeconfig: bool = True, program: Sequence[str] = RUN) -> str:
        """Return the last words of a program that does not start, out of the log line that says them."""
        process = self.start(*words, needs_kubeconfig=needs_kubeconfig, program=program)
        assert await asyncio.to_thread(process.wait, 60) == 1, self.log
        assert "Traceback" not in self.log
        last = self.log.strip().splitlines()[-1]
        _, failed, error = last.partition('"command failed" err=')
        said: str = json.loads(error) if failed else last
        return said


@pytest.fixture
def program(api: ApiServer, tmp_path: Path) -> Iterator[Program]:
    running = Program(api, tmp_path)
    yield running
    for process in running.processes:
        process.kill()
        process.wait()


async def fetch(url: str) -> str:
    return await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read().decode())


async def serves(url: str) -> None:
    async def answers() -> bool:
        try:
            return bool(await fetch(url))
        except (urllib.error.URLError, OSError):
            return False

    for _ in range(300):
        if await answers():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{url} is not served")


# 1.31: a plugin of one's own, registered and enabled through a ConfigMap that is mounted as the configuration


def mount(api: ApiServer, folder: Path, **changes: str) -> Path:
    """Write the ConfigMap's file as a kubelet would; `changes` are made to its text, kubeconfig added."""
    text = api.store.get("configmaps", "example-scheduler-config", "kube-system")["data"]["scheduler-config.yaml"]
    for old, new in changes.items():
        text = text.replace(old, new)
    text = text.replace("clientConnection:\n", f"clientConnection:\n  kubeconfig: {folder / 'kubeconfig'}\n")
    (folder / "plugin.py").write_text(PLUGIN)
    mounted = folder / "scheduler-config.yaml"
    mounted.write_text(text)
    return mounted


async def test_the_plugin_and_the_config_map_of_the_write_up(api: ApiServer, program: Program, tmp_path: Path) -> None:
    api.store.create("configmaps", CONFIG_MAP, "kube-system")
    plugin = f"--plugin={tmp_path / 'plugin.py'}:ExamplePlugin"
    # As written, the configuration calls the plugin by another name than it is registered under.
    mounted = mount(api, tmp_path)
    refused = await program.refusal(f"--config={mounted}", plugin, needs_kubeconfig=False)
    assert refused.endswith('FilterPlugin "example" does not exist')
    # Without the flag nobody has registered it at all.
    mount(api, tmp_path, **{'name: "example"': 'name: "example.com/example"'})
    refused = await program.refusal(f"--config={mounted}", needs_kubeconfig=False)
    assert refused.endswith('FilterPlugin "example.com/example" does not exist')

    process = program.start(f"--config={mounted}", plugin, needs_kubeconfig=False)
    api.store.create("pods", a_pod("ours", schedulerName="example-scheduler"), "default")
    api.store.create("pods", a_pod("theirs"), "default")
    await until(lambda: bool(node_of(api, "ours")), "the pod of example-scheduler")
    for name in ("n0", "n1", "n2"):
        assert f"Filter pod=ours node={name} cpu=4000 memory={8 << 30}" in program.log
    assert not node_of(api, "theirs")

    # The file changes: the plugin is still there, and a second profile takes the pod that waited.
    mounted.write_text(mounted.read_text(encoding="utf-8") + "- schedulerName: default-scheduler\n")
    await until(lambda: bool(node_of(api, "theirs")), "the pod of the new profile")
    api.store.create("pods", a_pod("more", schedulerName="example-scheduler"), "default")
    await until(lambda: bool(node_of(api, "more")), "a pod after the change")
    assert "Filter pod=more" in program.log and "Filter pod=theirs" not in program.log
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 20) == 1
    assert "finished without leader elect" in program.log


OWN_MAIN = """
from dataclasses import replace

from plugin import ExamplePlugin

from kubesched import main


def without_pauses(configuration):
    return replace(configuration, pod_initial_backoff_seconds=0, pod_max_backoff_seconds=0)


main(plugins=[ExamplePlugin], configure=without_pauses)
"""


async def test_a_main_of_ones_own_has_its_plugins_built_in(api: ApiServer, program: Program, tmp_path: Path) -> None:
    """NewSchedulerCommand(WithPlugin(...)) of the write-ups: another program, the same flags."""
    api.store.create("configmaps", CONFIG_MAP, "kube-system")
    mounted = mount(api, tmp_path, **{'name: "example"': 'name: "example.com/example"'})
    (tmp_path / "my_scheduler.py").write_text(OWN_MAIN)
    mine = [sys.executable, str(tmp_path / "my_scheduler.py")]
    program.start(f"--config={mounted}", needs_kubeconfig=False, program=mine)
    api.store.create("pods", a_pod("ours", schedulerName="example-scheduler"), "default")
    await until(lambda: bool(node_of(api, "ours")), "the pod of example-scheduler")
    assert "Filter pod=ours node=n0" in program.log

    helped = await asyncio.to_thread(subprocess.run, [*mine, "--help"], capture_output=True, text=True, timeout=60)
    assert helped.returncode == 0 and "my_scheduler.py [flags]" in helped.stdout
    written = [*mine, f"--config={mounted}", f"--write-config-to={tmp_path / 'written'}"]
    assert (await asyncio.to_thread(subprocess.run, written, capture_output=True, timeout=60)).returncode == 0
    assert "podInitialBackoffSeconds: 0\n" in (tmp_path / "written").read_text()
    wrong = await asyncio.to_thread(subprocess.run, [*mine, "--nonsense"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 1 and "unknown flag: --nonsense" in wrong.stderr and "Traceback" not in wrong.stderr


async def test_a_main_of_ones_own_and_a_file_of_1_17(api: ApiServer, program: Program, tmp_path: Path) -> None:
    """WithFrameworkOutOfTreeRegistry, WithFrameworkPlugins: the plugin runs beside the default provider's."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "my_scheduler.py").write_text(OWN_MAIN)
    mine = [sys.executable, str(tmp_path / "my_scheduler.py")]
    old = {
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "kind": "KubeSchedulerConfiguration",
        "healthzBindAddress": "127.0.0.1:0",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": program.kubeconfig},
        "plugins": {"filter": {"enabled": [{"name": "example.com/example"}]}},
    }
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old))
    program.start("--legacy-version=1.17", f"--config={file}", "--v=2", needs_kubeconfig=False, program=mine)
    api.store.create("pods", a_pod("ours"), "default")
    await until(lambda: bool(node_of(api, "ours")), "the pod")
    assert "Filter pod=ours node=n0" in program.log
    refused = await program.refusal("--legacy-version=1.13", program=mine)
    assert refused == "plugin example.com/example: 1.13 runs no plugins; register predicates, priorities and providers"


# 1.4: a policy file or a provider; extenders come with policies only


class Extender(ThreadingHTTPServer):
    """Passes n1 and n2, prefers n2, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ExtenderHandler)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _ExtenderHandler(BaseHTTPRequestHandler):
    server: Extender

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, given))
        items = (given.get("nodes") or given.get("Nodes"))["items"]
        answer: Any
        if self.path.endswith("/filter"):
            answer = {
                "nodes": {"items": [n for n in items if n["metadata"]["name"] != "n0"]},
                "failedNodes": {"n0": "not that one"},
            }
        else:
            answer = [{"host": n["metadata"]["name"], "score": 10 if n["metadata"]["name"] == "n2" else 0} for n in items]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def extender() -> Iterator[Extender]:
    server = Extender()
    yield server
    server.shutdown()
    server.server_close()


def policy_with(extender: Extender, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [
            {"name": "PodFitsPorts"},
            {"name": "PodFitsResources"},
            {"name": "NoDiskConflict"},
            {"name": "MatchNodeSelector"},
            {"name": "HostName"},
        ],
        "priorities": [{"name": "LeastRequestedPriority", "weight": 1}, {"name": "BalancedResourceAllocation", "weight": 1}],
        "extenders": [
            {
                "urlPrefix": f"http://127.0.0.1:{extender.server_port}/sched",
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": 5,
                "enableHttps": False,
            }
        ],
        **fields,
    }


@pytest.mark.parametrize(
    ("release", "path", "key"),
    [("1.4", "/sched/v1/filter", "nodes"), ("1.6", "/sched/filter", "Nodes"), ("1.17", "/sched/filter", "Nodes")],
)
async def test_a_policy_with_extenders(
    api: ApiServer, program: Program, tmp_path: Path, extender: Extender, release: str, path: str, key: str
) -> None:
    file = tmp_path / "policy.json"
    predicates = [{"name": "PodFitsResources"}, {"name": "MatchNodeSelector"}]
    policy = policy_with(extender, **({"predicates": predicates} if release == "1.17" else {}))
    file.write_text(json.dumps(policy))
    program.start(f"--legacy-version={release}", f"--policy-config-file={file}", "--leader-elect=false", "--port=0")
    api.store.create("pods", a_pod("p"), "default")
    await until(lambda: node_of(api, "p") == "n2", "the node that the extender prefers")
    asked = dict(extender.asked)
    assert sorted(asked) == sorted([path, path.replace("filter", "prioritize")])
    assert [n["metadata"]["name"] for n in asked[path][key]["items"]] == ["n0", "n1", "n2"]
    assert [n["metadata"]["name"] for n in asked[path.replace("filter", "prioritize")][key]["items"]] == ["n1", "n2"]
    # The policy file changes while the program runs.
    file.write_text(json.dumps({**policy, "extenders": []}))
    await until(lambda: "the changed configuration is in use" in program.log, "the change")
    n_asked = len(extender.asked)
    api.store.create("pods", a_pod("q"), "default")
    await until(lambda: bool(node_of(api, "q")), "a pod without extenders")
    assert len(extender.asked) == n_asked


@pytest.mark.parametrize("release", ["1.4", "1.6", "1.13", "1.17"])
@pytest.mark.parametrize(("provider", "nodes"), [("", 2), ("DefaultProvider", 2), ("ClusterAutoscalerProvider", 1)])
async def test_the_choice_of_a_provider(api: ApiServer, program: Program, release: str, provider: str, nodes: int) -> None:
    """The default spreads pods over the nodes, the other one packs them."""
    api.store.delete("nodes", "n2", "")
    words = [f"--algorithm-provider={provider}"] if provider else []
    program.start(f"--legacy-version={release}", *words, "--leader-elect=false", "--port=0")
    for i in range(2):
        asked = a_pod(f"p{i}", "1")
        asked["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2Gi"  # as large a share as its cpu
        api.store.create("pods", asked, "default")
        await until(lambda i=i: bool(node_of(api, f"p{i}")), f"p{i}")  # type: ignore[misc]
    assert len({node_of(api, "p0"), node_of(api, "p1")}) == nodes


@pytest.mark.parametrize(
    ("release", "text"),
    [
        ("1.4", 'plugin "TalkintDataProvider" has not been registered'),
        (
            "1.17",
            'couldn\'t create scheduler using provider "TalkintDataProvider": provider "TalkintDataProvider" is not registered',
        ),
    ],
)
async def test_a_provider_that_nobody_registered(program: Program, release: str, text: str) -> None:
    refused = await program.refusal(
        f"--legacy-version={release}", "--algorithm-provider=TalkintDataProvider", "--leader-elect=false", "--port=0"
    )
    assert text in refused


async def test_a_predicate_and_a_provider_of_ones_own(api: ApiServer, program: Program, tmp_path: Path) -> None:
    """What the write-up does with RegisterFitPredicate and RegisterAlgorithmProvider in Go."""
    (tmp_path / "mine.py").write_text("""
from kubesched.scheduler.legacy import register_algorithm_provider, register_fit_predicate, register_priority

register_fit_predicate("NotTheFirst", lambda pod, node: node.name != "n0" or "the first is for others")
register_priority("TheLast", lambda pod, node: 10 if node.name == "n2" else 0)
register_algorithm_provider("TalkintDataProvider", {"GeneralPredicates", "NotTheFirst"}, {"TheLast"})
""")
    program.start(
        "--legacy-version=1.4",
        "--algorithm-provider=TalkintDataProvider",
        f"--plugin={tmp_path / 'mine.py'}",
        "--leader-elect=false",
        "--port=0",
    )
    api.store.create("pods", a_pod("p"), "default")
    api.store.create("pods", a_pod("picky", nodeSelector={"kubernetes.io/hostname": "n0"}), "default")
    await until(lambda: node_of(api, "p") == "n2", "the last node")
    await until(lambda: bool(api.store.get("pods", "picky", "default")["status"].get("conditions")), "a condition")
    (condition,) = api.store.get("pods", "picky", "default")["status"]["conditions"]
    assert "fit failure on node (n0): NotTheFirst" in condition["message"] or "the first is for others" in condition["message"]


# 1.6: the lock in an Endpoints object, one plain port, a FIFO


async def test_leader_election_by_endpoints_and_the_plain_port(api: ApiServer, program: Program) -> None:
    port = free_port()
    first = program.start(
        "--legacy-version=1.6",
        f"--port={port}",
        "--address=127.0.0.1",
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
    )
    api.store.create("pods", a_pod("p"), "default")
    await until(lambda: bool(node_of(api, "p")), "a pod")
    lock = api.store.get("endpoints", "kube-scheduler", "kube-system")
    record = json.loads(lock["metadata"]["annotations"][LEADER])
    assert (record["leaseDurationSeconds"], record["leaderTransitions"]) == (3, 0)
    assert not api.store.list("leases", "kube-system").items
    events = [e for e in api.store.list("events", "kube-system").items if e["reason"] == "LeaderElection"]
    await until(
        lambda: any(
            e["reason"] == "LeaderElection" and e["message"].endswith(" became leader")
            for e in api.store.list("events", "kube-system").items
        ),
        "an event about the leader",
    )
    assert all(e["involvedObject"]["kind"] == "Endpoints" for e in events)

    url = f"http://127.0.0.1:{port}"
    await serves(f"{url}/healthz")
    assert await fetch(f"{url}/healthz") == "ok"
    shown = json.loads(await fetch(f"{url}/configz"))["componentconfig"]
    assert (shown["algorithmProvider"], shown["port"]) == ("DefaultProvider", port)
    metrics = await fetch(f"{url}/metrics")
    for name in ("e2e_scheduling", "scheduling_algorithm", "binding"):
        assert f"scheduler_{name}_latency_microseconds_count 1\n" in metrics
    assert "flat" in await fetch(f"{url}/debug/pprof/") or "profile" in await fetch(f"{url}/debug/pprof/")

    second = program.start(
        "--legacy-version=1.6",
        "--port=0",
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
    )
    await until(lambda: program.log.count("attempting to acquire leader lease") == 2, "the second to wait")
    first.kill()
    api.store.create("pods", a_pod("q"), "default")
    await until(lambda: bool(node_of(api, "q")), "a pod of the second leader")
    taken = json.loads(api.store.get("endpoints", "kube-scheduler", "kube-system")["metadata"]["annotations"][LEADER])
    assert (taken["holderIdentity"] != record["holderIdentity"], taken["leaderTransitions"]) == (True, 1)
    second.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(second.wait, 20) == 0
    assert "Requested to terminate, exiting" in program.log


async def test_a_leader_that_is_none_any_more_says_so_in_the_words_of_then(api: ApiServer, program: Program) -> None:
    process = program.start(
        "--legacy-version=1.6",
        "--port=0",
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
    )
    await until(lambda: "successfully acquired lease" in program.log, "the lead")
    lock = api.store.get("endpoints", "kube-scheduler", "kube-system")
    record = json.loads(lock["metadata"]["annotations"][LEADER])
    record["holderIdentity"] = "somebody-else"
    meta = {key: value for key, value in lock["metadata"].items() if key != "resourceVersion"}
    api.store.update("endpoints", {**lock, "metadata": {**meta, "annotations": {LEADER: json.dumps(record)}}})
    assert await asyncio.to_thread(process.wait, 20) == 1
    assert "lost master" in program.log


# 1.13: feature gates change what runs; no leader election, which ends in an error


async def test_gates_of_then_make_predicates_mandatory(api: ApiServer, program: Program, tmp_path: Path) -> None:
    """ApplyFeatureGates: with TaintNodesByCondition a cordon counts even in a policy without predicates."""
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": []}))
    for name in ("n0", "n1"):
        api.store.update("nodes", a_node(name, memory="8Gi", unschedulable=True))
    process = program.start("--legacy-version=1.13", f"--policy-config-file={policy}", "--leader-elect=false", "--port=0")
    for i in range(3):
        api.store.create("pods", a_pod(f"p{i}", "1"), "default")
        await until(lambda i=i: bool(node_of(api, f"p{i}")), f"p{i}")  # type: ignore[misc]
        assert node_of(api, f"p{i}") == "n2"
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 20) == 1
    assert "finished without leader elect" in program.log


# 1.17: the policy is in a ConfigMap, the lock in two places


async def test_a_policy_in_a_config_map(api: ApiServer, program: Program) -> None:
    text = json.dumps(
        {
            "kind": "Policy",
            "apiVersion": "v1",
            "priorities": [{"name": "MostRequestedPriority", "weight": 1}],
            "predicates": [
                {"name": "PodFitsResources"},
                {"name": "Disk", "argument": {"labelsPresence": {"labels": ["disk"], "presence": True}}},
            ],
        }
    )
    words = ("--legacy-version=1.17", "--policy-configmap=scheduler-policy", "--port=0")
    refused = await program.refusal(*words, "--leader-elect=false")
    assert "couldn't get policy config map kube-system/scheduler-policy: configmaps" in refused
    assert "not found" in refused
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {},
        "metadata": {"name": "scheduler-policy", "namespace": "kube-system"},
    }
    api.store.create("configmaps", config_map)
    refused = await program.refusal(*words, "--leader-elect=false")
    assert 'missing policy config map value at key "policy.cfg"' in refused
    api.store.update("configmaps", {**config_map, "data": {"policy.cfg": text}})
    api.store.update("nodes", a_node("n1", memory="8Gi", labels={"disk": "ssd"}))
    program.start(*words)
    api.store.create("pods", a_pod("p"), "default")
    await until(lambda: node_of(api, "p") == "n1", "the node with a disk")
    holder = json.loads(api.store.get("endpoints", "kube-scheduler", "kube-system")["metadata"]["annotations"][LEADER])
    lease = api.store.get("leases", "kube-scheduler", "kube-system")
    assert holder["holderIdentity"] == lease["spec"]["holderIdentity"]
    api.store.create("pods", a_pod("whale", cpu="99"), "default")
    await until(lambda: bool(api.store.get("pods", "whale", "default")["status"].get("conditions")), "a condition")
    (condition,) = api.store.get("pods", "whale", "default")["status"]["conditions"]
    assert condition["message"] == "0/3 nodes are available: 3 Insufficient cpu."


# What every replay needs: the inbox on file


async def test_what_the_engine_heard_is_written_down_and_played_again(api: ApiServer, program: Program, tmp_path: Path) -> None:
    log = tmp_path / "inbox.jsonl.gz"
    process = program.start(f"--inbox-log={log}", "--leader-elect=false")
    for i in range(4):
        api.store.create("pods", a_pod(f"p{i}", "1"), "default")
    await until(lambda: all(node_of(api, f"p{i}") for i in range(4)), "four pods")
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.wait, 20)
    played = [
        await asyncio.to_thread(subprocess.run, [*PROGRAM, "replay", str(log)], capture_output=True, text=True)
        for _ in range(2)
    ]
    assert played[0].returncode == 0, played[0].stderr
    assert played[0].stdout == played[1].stdout
    decided = {
        line["pod"]: line["note"] for line in map(json.loads, played[0].stdout.splitlines()) if line["event"] == "Scheduled"
    }
    assert decided == {f"default/p{i}": f"Successfully assigned default/p{i} to {node_of(api, f'p{i}')}" for i in range(4)}


async def test_an_inbox_log_that_cannot_be_written(program: Program) -> None:
    refused = await program.refusal("--inbox-log=/no/such/folder/log", "--leader-elect=false")
    assert "open /no/such/folder/log: no such file or directory" in refused
