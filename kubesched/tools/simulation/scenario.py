"""The scenario file: a cluster, what comes to it, and what happens to it.

In: YAML or JSON. Out: frozen values, checked. A field that nobody knows, a value of the wrong type and a time that is none
are refused in one line that names the file and the field. docs/reference/scenario.md is the reference for the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar, dataclass_transform

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.api import Quantity
from kubesched.kube.values import quantity, yaml_document
from kubesched.scheduler.config import Duration
from kubesched.solver.node_groups import NodeGroup, Seconds, Spot

T = TypeVar("T")

_REASON = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
FOREVER = "forever"
_TIMES = frozenset((
    "at", "binding_latency", "decision_time", "duration", "end", "every", "exponential", "lost_after", "mean_life",
    "new_pod_scale_up_delay", "notice", "patience", "ready_after", "runs", "sample_every", "scale_down_delay_after_add",
    "scale_down_unneeded_time", "scan_interval", "start", "startup", "uniform", "within",
))  # fmt: skip
_LONGER_THAN_0 = frozenset(("sample_every", "every", "scan_interval", "mean_life"))
_COUNTS = frozenset(("count", "min", "max", "price", "max_scale_down_parallelism", "max_drain_parallelism"))
"""The fields that are times, those of them that may not be 0, and numbers that may not be negative."""
DECISION_SECONDS = 0.001
"""How long an attempt takes if nothing else is said. Were it nothing, all of a long queue would be tried again whenever one pod
ends, thousands of times a virtual second; no scheduler does that."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of all parts of a scenario or experiment file."""


class NodeList(Strict, kw_only=True):
    """The nodes of a trace: a file and its format."""

    file: str
    format: Literal["openb"]


class Cluster(Strict, kw_only=True):
    """What is there at the beginning."""

    nodes: tuple[NodeGroup, ...] = ()
    node_lists: tuple[NodeList, ...] = ()
    snapshot: str = ""
    manifests: tuple[str, ...] = ()


class Arrivals(Strict, kw_only=True):
    """When pods come: one of `at`, `every`, `rate` and `trace`.

    Of a trace, `order` shuffles the pods, which then come `every` so long (1 s), `load` takes so many that they ask for that
    share of what the nodes offer, and `durations: forever` lets none of them end."""

    at: Seconds | tuple[Seconds, ...] | None = None
    every: Seconds | None = None
    rate: float | None = None
    trace: str = ""
    format: Literal["", "csv", "jsonl", "openb", "dlrm"] = ""
    order: Literal["time", "shuffled"] = "time"
    load: dict[str, float] = {}
    durations: Literal["trace", "forever"] = "trace"
    start: Seconds = 0
    end: Seconds | None = None
    count: int | None = None
    size: int = 1
    within: Seconds = 0


class Law(Strict, kw_only=True):
    """How long pods run, by chance: one of the two."""

    exponential: Seconds | None = None
    uniform: tuple[Seconds, Seconds] | None = None


class Workload(Strict, kw_only=True):
    """Pods of one kind, and when they come."""

    name: str
    namespace: str = "default"
    arrivals: Arrivals = Arrivals(at=0)
    replicas: int | None = None
    runs: Seconds | Law = FOREVER
    requests: dict[str, Quantity] = {}
    priority: int | None = None
    pod: dict[str, Any] | None = None
    manifest: str = ""
    restarts: bool | None = None
    patience: Seconds | None = None
    """A pod that has no node so long after it came is taken away."""


class Choice(Strict, kw_only=True):
    """Nodes by name or pattern (`web-*`); of those, `count` by chance."""

    nodes: str = "*"
    count: int | None = None


class Fail(Choice, kw_only=True):
    """Nodes that stop to answer; their pods are lost some time later."""

    lost_after: Seconds = 300


class Resize(Choice, kw_only=True):
    """What nodes offer from now on."""

    capacity: dict[str, Quantity]


class Scale(Strict, kw_only=True):
    """How many pods a workload has from now on."""

    workload: str
    replicas: int


class Rollout(Strict, kw_only=True):
    """A new template for a workload, rolled out as a Deployment does it: the same pod, or one that asks for something else."""

    workload: str
    requests: dict[str, Quantity] = {}
    pod: dict[str, Any] | None = None
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    """Numbers or percentages of the replicas; what the manifest says, or 25% of both."""
    ready_after: Seconds = 0
    """How long after its start a pod is ready."""


class Event(Strict, kw_only=True):
    """Something that happens to the cluster: one of these, at a time."""

    at: Seconds
    fail: Fail | None = None
    recover: Choice | None = None
    remove: Choice | None = None
    drain: Choice | None = None
    cordon: Choice | None = None
    uncordon: Choice | None = None
    resize: Resize | None = None
    add: NodeGroup | None = None
    scale: Scale | None = None
    rollout: Rollout | None = None

    @property
    def what(self) -> str:
        """Return which of them it is."""
        return next((name for name in self.__struct_fields__[1:] if getattr(self, name) is not None), "")


class Autoscaler(Strict, kw_only=True):
    """A cluster autoscaler for the node groups that have a `max`; settings and defaults are cluster-autoscaler's flags."""

    scan_interval: Seconds = 10
    new_pod_scale_up_delay: Seconds = 0
    scale_down: bool = True
    scale_down_unneeded_time: Seconds = 600
    scale_down_delay_after_add: Seconds = 600
    scale_down_utilization_threshold: float = 0.5
    max_scale_down_parallelism: int = 10
    max_drain_parallelism: int = 1


class Quota(Strict, kw_only=True):
    """What the pods of a namespace may use together, as `hard` of a ResourceQuota says it."""

    namespace: str = "default"
    hard: dict[str, Quantity]


class Scenario(Strict, kw_only=True):
    """All of it."""

    seed: int = 0
    duration: Seconds | None = None
    decision_time: Seconds = DECISION_SECONDS
    binding_latency: Seconds = 0
    sample_every: Seconds | None = None
    ties: Literal["chance", "uniform", "shuffled", "name"] = "chance"
    """Which of equally good nodes is taken: one by (seeded) chance, as our scheduler does; each with the same chance, as
    kube-scheduler does; the first in an order that the seed shuffled once; or the first by name."""
    cluster: Cluster = Cluster()
    workloads: tuple[Workload, ...] = ()
    events: tuple[Event, ...] = ()
    autoscaler: Autoscaler | None = None
    quotas: tuple[Quota, ...] = ()
    folder: str = ""
    """Where the files that it names are looked for; the folder of the scenario's own file if nothing else is said."""


def read_scenario(file: Path, data: bytes | bytearray | None = None) -> Scenario:
    """Read a scenario, whose text may have been read already; raise ConfigError if it cannot be used."""
    found = read_document(file, Scenario, data)
    try:
        check(found)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.path}", error.detail) from error
    return msgspec.structs.replace(found, folder=str(file.parent / found.folder))


def read_document(file: Path, kind: type[T], data: bytes | bytearray | None = None) -> T:
    """Read a file of a kind, YAML or JSON; raise ConfigError, in one line that names file and field, if it is none."""
    with naming(file):
        return msgspec.convert(yaml_document(file.read_bytes() if data is None else bytes(data)), kind)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name a file, in one line, in what keeps it from being read."""
    try:
        yield
    except OSError as error:
        raise ConfigError(str(file), error.strerror or str(error)) from error
    except msgspec.ValidationError as error:
        raise refused(str(file), str(error)) from error
    except ConfigError as error:
        raise ConfigError(str(file), error.detail) from error


def scenario_from(document: Mapping[str, Any], where: str) -> Scenario:
    """Return a scenario from plain values; raise ConfigError, with the field below `where`, if it cannot be used."""
    try:
        found = msgspec.convert(dict(document), Scenario)
    except msgspec.ValidationError as error:
        raise ConfigError(where, str(error)) from error
    check(found)
    return found


def check(scenario: Scenario) -> None:
    """Raise ConfigError, with the field, for what has the right type and makes no sense."""
    check_amounts(scenario)
    for i, group in enumerate(scenario.cluster.nodes):
        check_group(group, f"cluster.nodes[{i}]")
    names: list[str] = []
    for i, workload in enumerate(scenario.workloads):
        _check_workload(workload, f"workloads[{i}]")
        if workload.name in names:
            raise ConfigError(f"workloads[{i}].name", f"there is another workload named {workload.name}")
        names.append(workload.name)
    for i, event in enumerate(scenario.events):
        given = [name for name in event.__struct_fields__[1:] if getattr(event, name) is not None]
        if len(given) != 1:
            raise ConfigError(f"events[{i}]", f"expected one thing to happen, found {', '.join(given) or 'none'}")
        if event.add is not None:
            check_group(event.add, f"events[{i}].add")
        for what in (event.scale, event.rollout):
            if what is not None and what.workload not in names:
                raise ConfigError(f"events[{i}].{event.what}.workload", f"{what.workload!r} is none of the workloads")
        if event.rollout is not None:
            _check_rollout(event.rollout, f"events[{i}].rollout")
    if scenario.autoscaler is not None:
        share = scenario.autoscaler.scale_down_utilization_threshold
        if not 0 <= share <= 1:
            raise ConfigError("autoscaler.scaleDownUtilizationThreshold", f"must be between 0 and 1, found {share:g}")
        if not any(group.max is not None for group in scenario.cluster.nodes):
            raise ConfigError("autoscaler", "no group of cluster.nodes has a max: there is nothing to scale")
    for i, quota in enumerate(scenario.quotas):
        for name, amount in quota.hard.items():
            if name != "pods" and not name.startswith(
                ("count/pods", "requests.", "limits.", "cpu", "memory", "ephemeral-storage")
            ):
                raise ConfigError(f"quotas[{i}].hard.{name}", "only what pods use is simulated")
            try:
                quantity.parse(amount)
            except quantity.QuantityError as error:
                raise ConfigError(f"quotas[{i}].hard.{name}", str(error)) from error


def check_amounts(part: msgspec.Struct, where: str = "") -> None:
    """Raise ConfigError for a time in a part of a file that is none, and for a time or count below what it may be."""
    for field, name in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
        value, path = getattr(part, field), f"{where}.{name}" if where else name
        for i, each in enumerate(value) if isinstance(value, tuple) else ((None, value),):
            if isinstance(each, Strict | NodeGroup | Spot):
                check_amounts(each, path if i is None else f"{path}[{i}]")
            elif field in _TIMES and each is not None and each != FOREVER:
                if not seconds(each, path) and field in _LONGER_THAN_0:
                    raise ConfigError(path, "must be longer than 0")
            elif field in _COUNTS and each is not None and each < 0:
                raise ConfigError(path, f"must not be negative, found {each:g}")


def _check_rollout(rollout: Rollout, where: str) -> None:
    """Raise ConfigError, with the field, for a rollout that contradicts itself."""
    if rollout.pod is not None and rollout.requests:
        raise ConfigError(f"{where}.requests", "a rollout has either requests or a pod that makes its own")
    for name, value in (("maxSurge", rollout.max_surge), ("maxUnavailable", rollout.max_unavailable)):
        if value is not None and not re.fullmatch(r"[0-9]+%?" if isinstance(value, str) else r"[0-9]+", str(value)):
            raise ConfigError(f"{where}.{name}", f"expected a number or a percentage, found {value!r}")


def check_group(group: NodeGroup, where: str) -> None:
    """Raise ConfigError, with the field, for a group of nodes that makes no sense."""
    check_amounts(group, where)
    if group.max is not None and group.max < group.min:
        raise ConfigError(f"{where}.max", f"must not be less than min, which is {group.min}")
    if group.limits and not group.pool:
        raise ConfigError(f"{where}.limits", "are those of a pool, which is not named")


def _check_workload(workload: Workload, where: str) -> None:
    """Raise ConfigError, with the field, for a workload that contradicts itself."""
    arrivals = workload.arrivals
    given = [name for name in ("at", "every", "rate") if getattr(arrivals, name) is not None]
    if arrivals.trace:
        given = ["trace", *(name for name in given if name != "every" or arrivals.order == "time")]
    elif arrivals.format or arrivals.order != "time" or arrivals.load or arrivals.durations != "trace":
        raise ConfigError(f"{where}.arrivals", "format, order, load and durations are of a trace")
    for resource, share in arrivals.load.items():
        if not 0 < share <= 100:
            raise ConfigError(f"{where}.arrivals.load.{resource}", f"must be more than 0 and at most 100, found {share:g}")
    if len(given) != 1:
        raise ConfigError(f"{where}.arrivals", f"expected one of at, every, rate and trace, found {', '.join(given) or 'none'}")
    if workload.manifest and (workload.pod is not None or workload.requests):
        raise ConfigError(f"{where}.manifest", "a workload has either a manifest or a pod of its own")
    if workload.pod is not None and workload.requests:
        raise ConfigError(f"{where}.requests", "a workload has either requests or a pod that makes its own")
    if arrivals.every is not None and seconds(arrivals.within) > seconds(arrivals.every):
        raise ConfigError(f"{where}.arrivals.within", "must not be longer than `every`")
    if arrivals.rate is not None and seconds(arrivals.within):
        raise ConfigError(f"{where}.arrivals.within", "has no part in `rate`")
    if arrivals.rate is not None and arrivals.rate <= 0:
        raise ConfigError(f"{where}.arrivals.rate", f"must be more than 0, found {arrivals.rate:g}")
    if isinstance(workload.runs, Law) and (workload.runs.exponential is None) == (workload.runs.uniform is None):
        raise ConfigError(f"{where}.runs", "expected either exponential or uniform")


def seconds(value: Seconds | None, where: str = "") -> float:
    """Return a time in seconds, 0 for none; raise ConfigError with the field for what is no time."""
    try:
        found = Duration.parse(value) / 1e9 if isinstance(value, str) else float(value or 0)
    except ConfigError as error:
        raise ConfigError(where, f"{value!r} is no time: expected seconds, or text such as 90s, 5m or 1h30m") from error
    if found < 0:
        raise ConfigError(where, f"must not be negative, found {value}")
    return found


def refused(file: str, message: str) -> ConfigError:
    """Return what a decoder says of a file as an error that names file and field."""
    found = _REASON.fullmatch(message)
    detail, where = (found[1], found[2] or "") if found is not None else (message, "")
    detail = detail.replace("Object contains unknown field", "unknown field").replace("Object missing", "missing")
    return ConfigError(f"{file}: {where}" if where else file, detail[:1].lower() + detail[1:])
