"""Load-aware scoring: what Prometheus and load-watcher say, and what the two plugins make of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubesched.contrib import node_load
from kubesched.contrib.load_variation_risk_balancing import LoadVariationRiskBalancing, LoadVariationRiskBalancingArgs
from kubesched.contrib.node_load import MetricProvider, NodeLoad, TrimaranArgs, Usage, from_prometheus, from_watcher
from kubesched.contrib.target_load_packing import TargetLoadPacking, TargetLoadPackingArgs
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.config import Gates, Path
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState
from kubesched.testing import FakeClock, check_plugin, node, pod
from kubesched.tools.simulation.clock import run_virtually

Load = dict[str, Usage]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return what Prometheus will say, to be filled in; measured at second 1000."""
    said: Load = {}

    async def answer(provider: MetricProvider) -> node_load.Answer:
        return 1000.0, dict(said)

    monkeypatch.setattr(node_load, "from_prometheus", answer)
    return said


@pytest.mark.parametrize("plugin", [TargetLoadPacking, LoadVariationRiskBalancing])
def test_they_keep_the_contract(plugin: Any, load: Load) -> None:
    load.update({f"node-{i}": Usage(i * 7 % 100, 3.0, i * 11 % 100, 2.0) for i in range(40)})
    check_plugin(plugin)


def scores(cls: Any, args: Any, store: Store, asking: Any, at: float = 1000.0) -> dict[str, int]:
    handle = EngineHandle(store.objects, clock=FakeClock(at))
    nodes = store.snapshot()
    column = cls(args, handle).score(store.view(asking), nodes, CycleState())
    return dict(zip(nodes.names, column.tolist(), strict=True))


def nodes_of(*names: str, cpu: str = "10", memory: str = "10Gi") -> Store:
    store = Store()
    for name in names:
        store.put(node(name, cpu=cpu, memory=memory))
    return store


def test_target_load_packing_fills_up_to_the_target_and_flees_beyond(load: Load) -> None:
    load.update(idle=Usage(0.0), below=Usage(30.0), at=Usage(40.0), above=Usage(60.0), full=Usage(100.0))
    args = TargetLoadPackingArgs(target_utilization=40, default_requests={"cpu": "0"})
    said = scores(TargetLoadPacking, args, nodes_of("idle", "below", "at", "above", "full", "unknown"), pod("p"))
    assert said == {"idle": 40, "below": 85, "at": 100, "above": 27, "full": 0, "unknown": 0}


@pytest.mark.parametrize(
    ("resources", "milli"),
    [
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, 2000),
        ({"requests": {"cpu": "1"}}, 1500),
        ({}, 1000),
    ],
    ids=["the limit", "the request times the factor", "the default"],
)
def test_what_a_pod_will_use_is_guessed_from_its_limit_its_request_or_the_default(
    load: Load, resources: Any, milli: int
) -> None:
    from kubesched.kube.api import codec

    load.update(a=Usage(0.0))
    made = codec.decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
        }
    )
    said = scores(TargetLoadPacking, TargetLoadPackingArgs(target_utilization=100), nodes_of("a"), made)
    assert said == {"a": 100}  # at a target of 100 every node below it is as good
    half = scores(TargetLoadPacking, TargetLoadPackingArgs(target_utilization=50), nodes_of("a"), made)
    assert half == {"a": round(50 * (milli / 100) / 50 + 50)}


def test_pods_that_came_too_late_to_be_measured_count_by_the_guess(load: Load) -> None:
    load.update(a=Usage(0.0), b=Usage(0.0))
    store, clock = nodes_of("a", "b"), FakeClock(990.0)
    plugin = TargetLoadPacking(TargetLoadPackingArgs(target_utilization=50), EngineHandle(store.objects, clock=clock))
    new = store.view(pod("new", requests={"cpu": "1"}))

    def said() -> list[int]:
        nodes = store.snapshot()
        column = plugin.score(new, nodes, CycleState()).tolist()
        assert [plugin.score(new, nodes.take([row]), CycleState()).item() for row in range(nodes.n)] == column
        return column

    assert said() == [65, 65]
    store.put(pod("there", requests={"cpu": "2"}, on="a"))
    assert said() == [95, 65], "3 of 10 cores more are expected on a"
    store.objects.put(NodeLoad(metadata=node_load.ObjectMeta(name=plugin._source._name), end=1100.0, usage=dict(load)))
    assert said() == [65, 65], "the new measures have it in them"
    store.put(pod("later", requests={"cpu": "2"}, on="b"))
    clock.time = 1101.0
    assert said()[1] == 95
    store.remove_pod("uid-default-later")
    assert said() == [65, 65]


def test_load_variation_risk_balancing_prefers_low_and_steady_load(load: Load) -> None:
    load.update(
        calm=Usage(20.0, 0.0, 20.0, 0.0), wild=Usage(20.0, 40.0, 20.0, 0.0), busy=Usage(80.0, 0.0, 20.0, 0.0),
        memory=Usage(math.nan, 0.0, 50.0, 0.0),
    )  # fmt: skip
    store = nodes_of("calm", "wild", "busy", "memory", "unknown")
    asking = pod("p", requests={"cpu": "2", "memory": "2Gi"})
    said = scores(LoadVariationRiskBalancing, LoadVariationRiskBalancingArgs(), store, asking)
    assert said == {"calm": 80, "wild": 60, "busy": 50, "memory": 65, "unknown": 0}
    wider = LoadVariationRiskBalancingArgs(safe_variance_margin=2.0, safe_variance_sensitivity=2.0)
    assert scores(LoadVariationRiskBalancing, wider, store, asking)["wild"] == 30  # sigma: 2 * sqrt(0.4), at most 1


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (TrimaranArgs(metric_provider=MetricProvider(type="SignalFx")), 'metricProvider.type: Unsupported value: "SignalFx"'),
        (TrimaranArgs(watcher_address="load-watcher:2020"), "watcherAddress: Invalid value"),
        (TargetLoadPackingArgs(default_requests_multiplier="much"), "defaultRequestsMultiplier: Invalid value"),
        (TargetLoadPackingArgs(target_utilization=140), "targetUtilization: Invalid value"),
        (TargetLoadPackingArgs(default_requests={"cpu": "x"}), "defaultRequests[cpu]: Invalid value"),
    ],
)
def test_arguments_are_checked(args: TrimaranArgs, complaint: str) -> None:
    (error,) = args.validate(Path("args"), Gates.defaults())
    assert str(error).startswith(f"args.{complaint}")


# The wire

ANSWERS: dict[str, Any] = {}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        key = parse_qs(asked.query)["query"][0] if asked.query else asked.path
        ANSWERS.setdefault("tokens", []).append(self.headers.get("Authorization"))
        self.send_response(200 if key in ANSWERS else 500)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS.get(key, {})).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    ANSWERS.clear()
    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def vector(**values: str) -> Any:
    return {"data": {"result": [{"metric": {"instance": f"{n}:9100"}, "value": [0, v]} for n, v in values.items()]}}


def test_prometheus_is_asked_four_questions(server: str) -> None:
    ANSWERS["avg_over_time(instance:node_cpu:ratio[15m])"] = vector(a="0.25", b="0.5")
    ANSWERS["stddev_over_time(instance:node_cpu:ratio[15m])"] = vector(a="0.125")
    ANSWERS["avg_over_time(instance:node_memory_utilisation:ratio[15m])"] = vector(a="0.75")
    ANSWERS["stddev_over_time(instance:node_memory_utilisation:ratio[15m])"] = vector(a="0")
    _, found = asyncio.run(from_prometheus(MetricProvider(address=server, token="secret")))
    assert found["a"] == Usage(25.0, 12.5, 75.0, 0.0)
    assert found["b"].cpu == 50.0 and math.isnan(found["b"].memory)
    assert set(ANSWERS["tokens"]) == {"Bearer secret"}


def test_load_watcher_is_asked_once(server: str) -> None:
    metrics = [
        {"type": "CPU", "operator": "AVG", "value": 30.0},
        {"type": "CPU", "operator": "STD", "value": 5.0},
        {"type": "Memory", "operator": "Latest", "value": 60.0},
    ]
    ANSWERS["/watcher"] = {"window": {"end": 1234}, "data": {"NodeMetricsMap": {"a": {"metrics": metrics}}}}
    assert asyncio.run(from_watcher(server)) == (1234.0, {"a": Usage(30.0, 5.0, 60.0, 0.0)})


def test_a_source_that_fails_is_told_once_and_its_last_word_is_forgotten_after_a_while(
    load: Load, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    load.update(a=Usage(10.0))
    store, now = Store(), [0.0]
    monkeypatch.setattr(node_load.time, "monotonic", lambda: now[0])

    async def story() -> None:
        async def sleep(seconds: float) -> None:
            now[0] += seconds
            if now[0] > 3600:
                raise asyncio.CancelledError
            await real_sleep(0)

        real_sleep = asyncio.sleep
        monkeypatch.setattr(node_load.asyncio, "sleep", sleep)
        follower = node_load.follow(TrimaranArgs(), store.objects)
        assert node_load.follow(TrimaranArgs(), store.objects) is follower
        assert follower.load() is None, "nobody waited for it"
        await real_sleep(0)
        found = follower.load()
        assert found is not None and found.usage == {"a": Usage(10.0)}

        async def refuse() -> Any:
            raise OSError("refused")

        monkeypatch.setattr(follower, "_fetch", refuse)
        await asyncio.wait([follower._task])
        assert follower.load() is None

    asyncio.run(story())
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [
        "load of nodes cannot be had from http://prometheus-k8s:9090: OSError: refused",
        "load of nodes is forgotten: nothing from http://prometheus-k8s:9090 for 300 s",
    ]


# Who answers slowly

DRIPS = {"headers": b"HTTP/1.1 200 OK\r\n", "a body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"}


@pytest.fixture(params=DRIPS)
def dripping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that sends a byte every few milliseconds, for ever: no single read takes long."""
    monkeypatch.setattr(node_load, "DEADLINE_SECONDS", 0.2)
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(DRIPS[request.param])
            while not ended.wait(0.01):
                connection.sendall(b"x")

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended.set()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(": ")[2] for record in caplog.records if record.levelname == "WARNING"]


def test_a_prometheus_that_drips_holds_nobody_up(dripping: str, caplog: pytest.LogCaptureFixture) -> None:
    store = nodes_of("a")
    args = TargetLoadPackingArgs(metric_provider=MetricProvider(address=dripping))
    asking = store.view(pod("p"))

    async def story() -> None:
        plugin = TargetLoadPacking(args, EngineHandle(store.objects, clock=FakeClock(1000.0)))
        assert plugin.score(asking, store.snapshot(), CycleState()).tolist() == [0]
        assert not complaints(caplog), "the decision waits for no answer, not even for the end of the time"
        for _ in range(2):  # the second begins after the follower's own question
            assert isinstance(await plugin._source._ask(), TimeoutError)

    asyncio.run(asyncio.wait_for(story(), 20))
    assert complaints(caplog) == ["TimeoutError: no whole answer within 0.2 s"]


@pytest.mark.parametrize("run", [lambda main: main(), lambda main: run_virtually(_in_a_loop(main))], ids=["no loop", "virtual"])
def test_who_looks_at_one_moment_or_simulates_waits_no_longer_than_the_deadline(
    run: Any, dripping: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = TrimaranArgs(metric_provider=MetricProvider(address=dripping))
    assert run(lambda: node_load.follow(source, Store().objects).load()) is None
    assert complaints(caplog) == ["TimeoutError: no whole answer within 0.2 s"]


async def _in_a_loop(main: Any) -> Any:
    return main()


def test_a_simulation_asks_once_and_has_the_answer_for_its_first_decision(load: Load) -> None:
    load.update(a=Usage(10.0))

    async def story() -> None:
        follower = node_load.follow(TrimaranArgs(), Store().objects)
        found = follower.load()
        assert found is not None and found.usage == {"a": Usage(10.0)}
        await asyncio.sleep(3600)
        assert follower.load() is found

    run_virtually(story())
