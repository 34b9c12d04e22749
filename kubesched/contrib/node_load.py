"""The measured load of nodes, from Prometheus or load-watcher, for TargetLoadPacking and LoadVariationRiskBalancing.

The load is a `NodeLoad` among the cluster's objects. Plugins depend on it (`depends_on`), so cached answers hold until the next
measurement.

* `run` queries every 30 seconds, from the first decision on, and never waits. Until the first answer the load is unknown.
* Commands that decide once, or in virtual time, query once and wait.
* All queries of one measurement have ten seconds together. A load that could not be renewed for five minutes is dropped.

Prometheus is queried for the recording rules of its node mixin, as load-watcher does: `instance:node_cpu:ratio` and
`instance:node_memory_utilisation:ratio`, mean and standard deviation over 15 minutes. The label `instance` is the node's name,
with or without a port.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from kubesched.kube.api import ObjectMeta, TopLevel, always
from kubesched.scheduler.cluster import Objects
from kubesched.scheduler.config import Args, FieldError, Gates, Path, Wire, invalid, not_supported

log = logging.getLogger(__name__)

PERIOD_SECONDS, FORGET_SECONDS, DEADLINE_SECONDS = 30.0, 300.0, 10.0
MOST_BYTES, WINDOW = 64 << 20, "15m"
METRICS = {"CPU": "instance:node_cpu:ratio", "Memory": "instance:node_memory_utilisation:ratio"}
OPERATORS = {"AVG": "avg_over_time", "STD": "stddev_over_time"}


class MetricProvider(Wire, frozen=True, rename="camel"):
    type: str = "Prometheus"
    address: str = "http://prometheus-k8s:9090"
    token: str = ""
    insecure_skip_verify: bool = True


class TrimaranArgs(Args, frozen=True, rename="camel"):
    """The source of the load: `watcherAddress` (a load-watcher), else `metricProvider`."""

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str = ""

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        if not self.watcher_address and self.metric_provider.type != "Prometheus":
            # KubernetesMetricsServer and SignalFx are available through load-watcher.
            errors.append(not_supported(path.child("metricProvider", "type"), self.metric_provider.type, ["Prometheus"]))
        watcher, provider = path.child("watcherAddress"), path.child("metricProvider", "address")
        for where, text in ((watcher, self.watcher_address), (provider, self.metric_provider.address)):
            if text and urlsplit(text).scheme not in ("http", "https"):
                errors.append(invalid(where, text, "must be a URL that begins with http:// or https://"))
        return errors


class Usage(NamedTuple):
    """Mean and deviation of a node's CPU and memory use, in percent; NaN if it was not measured."""

    cpu: float = math.nan
    cpu_deviation: float = 0.0
    memory: float = math.nan
    memory_deviation: float = 0.0


class NodeLoad(TopLevel, kw_only=True):
    """The load of all nodes at `end`, in seconds since the epoch."""

    api_version: str = always("kubesched.contrib/v1")
    kind: str = always("NodeLoad")
    end: float = 0.0
    usage: Mapping[str, Usage] = {}


Answer = tuple[float, dict[str, Usage]]


class LoadFollower:
    """Keeps the `NodeLoad` of one source up to date, in the event loop."""

    def __init__(self, fetch: Callable[[], Awaitable[Answer]], name: str, objects: Objects) -> None:
        self._fetch, self._name, self._objects = fetch, name, objects
        self._failing_since: float | None = None
        # In `run` a task follows the source. In a command that decides once there is no loop, and in a simulation the
        # loop's time is virtual: a query must not wait in that time, so it runs in a thread with a loop of its own,
        # once.
        if (loop := _loop_in_real_time()) is not None:
            self._task = loop.create_task(self._follow(), name=f"load from {name}")
        else:
            with ThreadPoolExecutor(1) as beside_virtual_time:
                self._take(beside_virtual_time.submit(lambda: asyncio.run(self._ask())).result())

    def load(self) -> NodeLoad | None:
        """Return the newest load, None if there is none."""
        return self._objects.get(NodeLoad, self._name)

    async def _follow(self) -> None:
        while True:
            self._take(await self._ask())
            await asyncio.sleep(PERIOD_SECONDS)

    async def _ask(self) -> Answer | Exception:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await self._fetch()
        except TimeoutError:
            return TimeoutError(f"no whole answer within {DEADLINE_SECONDS:g} s")
        except Exception as error:  # the network, and whatever somebody else's server answers
            return error

    def _take(self, answer: Answer | Exception) -> None:
        """Store a new load. After an error warn once, and drop a load that could not be renewed for five minutes."""
        if not isinstance(answer, Exception):
            self._failing_since = None
            self._objects.put(NodeLoad(metadata=ObjectMeta(name=self._name), end=answer[0], usage=answer[1]))
            return
        # The first failure is logged at once, then nothing until the load is dropped: a source that is down for an hour
        # is two lines.
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            log.warning("load of nodes cannot be had from %s: %s: %s", self._name, type(answer).__name__, answer)
        elif now - self._failing_since > FORGET_SECONDS and self._objects.drop(NodeLoad, self._name) is not None:
            log.warning("load of nodes is forgotten: nothing from %s for %d s", self._name, FORGET_SECONDS)


def _loop_in_real_time() -> asyncio.AbstractEventLoop | None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return loop if abs(loop.time() - time.monotonic()) < 1 else None  # nothing comes in from outside where time is virtual


def follow(args: TrimaranArgs, objects: Objects) -> LoadFollower:
    """Return the follower of a source; one for each cluster."""
    return objects.shared(_Source(args.metric_provider, args.watcher_address))


@dataclass(frozen=True, slots=True)
class _Source:
    provider: MetricProvider
    watcher_address: str

    def __call__(self, objects: Objects) -> LoadFollower:
        address = self.watcher_address or self.provider.address
        fetch = partial(from_watcher, address) if self.watcher_address else partial(from_prometheus, self.provider)
        return LoadFollower(fetch, address, objects)


async def from_watcher(address: str) -> Answer:
    """Query a load-watcher: for each node a list of metrics with type, operator and percent."""
    document = await _get(f"{address.rstrip('/')}/watcher")
    found = {}
    for name, node in document["data"]["NodeMetricsMap"].items():
        values = {}
        # A metric with the operator `Latest`, or without one, counts as the mean; of several the last one wins.
        for metric in node.get("metrics") or ():
            operator = metric.get("operator") or "Latest"
            values[metric["type"], "AVG" if operator == "Latest" else operator] = float(metric["value"])
        found[name] = _usage(values)
    return float(document["window"]["end"]), found


async def from_prometheus(provider: MetricProvider) -> Answer:
    """Query Prometheus: CPU and memory, mean and deviation."""
    by_node: dict[str, dict[tuple[str, str], float]] = {}
    for (kind, metric), (operator, function) in product(METRICS.items(), OPERATORS.items()):
        query = urlencode({"query": f"{function}({metric}[{WINDOW}])"})
        document = await _get(f"{provider.address.rstrip('/')}/api/v1/query?{query}", provider)
        for sample in document["data"]["result"]:
            # `10.0.0.7:9100` and `node-a:9100` lose their port. The name must be the node's name; a node without a
            # sample has no load.
            instance = sample["metric"].get("instance", "").partition(":")[0]
            by_node.setdefault(instance, {})[kind, operator] = 100 * float(sample["value"][1])
    return time.time(), {name: _usage(values) for name, values in by_node.items()}


def _usage(values: Mapping[tuple[str, str], float]) -> Usage:
    cpu, memory = (values.get((kind, "AVG"), math.nan) for kind in METRICS)
    return Usage(cpu, values.get(("CPU", "STD"), 0.0), memory, values.get(("Memory", "STD"), 0.0))


async def _get(url: str, provider: MetricProvider | None = None) -> Any:
    headers = {"Authorization": f"Bearer {provider.token}"} if provider is not None and provider.token else {}
    checks, text = provider is None or not provider.insecure_skip_verify, bytearray()
    client = aiohttp.ClientSession(headers=headers, trust_env=True, raise_for_status=True)
    async with client, client.get(URL(url, encoded=True), ssl=checks) as answer:
        async for chunk in answer.content.iter_chunked(1 << 16):
            text += chunk
            if len(text) > MOST_BYTES:
                raise ValueError(f"an answer of more than {MOST_BYTES} bytes")
    return await asyncio.to_thread(json.loads, text)
