"""Traces of real clusters: files that say which pods came when, and which nodes there were.

In: a file and its format. Out: `TracedPod` values in the order of their times, or nodes. Formats:

  csv, jsonl   a column or field each for time, name, namespace, cpu, memory, duration, priority, and any extended resource
  openb        Alibaba's GPU cluster trace of 2023 (cluster-trace-gpu-v2023): a list of pods, and a list of nodes
  dlrm         Alibaba's trace of disaggregated recommendation models of 2025 (cluster-trace-gpu-v2025)

A row that cannot be read is refused with the file, the line and the column.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec

from kubesched.contrib.gpu_table import COUNT, MILLI, MODEL
from kubesched.errors import ConfigError
from kubesched.kube.api import Node, NodeCondition, NodeStatus, ObjectMeta, Quantity, is_scalar_name
from kubesched.kube.values import HOSTNAME, quantity
from kubesched.tools.simulation.scenario import Arrivals, seconds

_COLUMNS = ("time", "name", "namespace", "cpu", "memory", "duration", "priority")


@dataclass(frozen=True, slots=True)
class TracedPod:
    """One pod of a trace."""

    time: float
    name: str
    namespace: str = ""
    duration: float | None = None
    """None is forever."""
    priority: int | None = None
    requests: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def amount(self, resource: str) -> float:
        """Return how much the pod asks for: cpu in cores, `gpu` in GPUs, whatever else as it is."""
        if resource == "gpu":
            count, milli = self.annotations.get(COUNT, "0"), self.annotations.get(MILLI, "1000")
            return int(count) * int(milli) / 1000 or float(self.requests.get("nvidia.com/gpu", "0"))
        return quantity.parse(self.requests.get(resource, "0")) / quantity.NANO


def read_trace(file: Path, trace_format: str = "") -> list[TracedPod]:
    """Return the pods of a trace in the order of their times; without a format it is told by the file's name."""
    read = _PODS.get(trace_format or ("csv" if file.suffix == ".csv" else "jsonl"))
    if read is None:
        raise ConfigError(str(file), f"format {trace_format!r} is none of {', '.join(_PODS)}")
    return sorted(_read(file, read), key=lambda pod: pod.time)


def read_nodes(file: Path, trace_format: str) -> list[Node]:
    """Return the nodes of a trace, sorted by name."""
    if trace_format != "openb":
        raise ConfigError(str(file), f"format {trace_format!r} has no list of nodes: expected openb")
    return sorted(_read(file, _openb_node), key=lambda node: node.metadata.name)


def arranged(pods: list[TracedPod], arrivals: Arrivals, chance: Random, offered: Mapping[str, float]) -> list[TracedPod]:
    """Return the pods as a workload wants them: in another order, or so many that their requests reach a load.

    Shuffled pods come one after the other, a second apart or `every` so long. For a load, pods are left out from the end, or
    more are drawn from the trace by chance, until what all ask for of a resource is that share of what the nodes offer.
    """
    if not pods:
        return []
    chosen = list(pods)
    if arrivals.order == "shuffled":
        chosen.sort(key=lambda pod: pod.name)
        chance.shuffle(chosen)
    for resource, share in arrivals.load.items():
        chosen = _loaded(chosen, pods, resource, share * offered.get(resource, 0.0), chance)
    if arrivals.order == "shuffled":
        apart = seconds(arrivals.every) if arrivals.every is not None else 1.0
        chosen = [replace(pod, time=apart * i) for i, pod in enumerate(chosen)]
    return chosen


def offered_by(nodes: Iterable[Node]) -> dict[str, float]:
    """Return what nodes offer together, in the units of `TracedPod.amount`."""
    offered: dict[str, float] = {}
    for node in nodes:
        for name, amount in node.status.allocatable.items():
            name = "gpu" if name in (COUNT, "nvidia.com/gpu") else name
            offered[name] = offered.get(name, 0.0) + quantity.parse(amount) / quantity.NANO
    return offered


def _loaded(
    chosen: list[TracedPod], drawn_from: list[TracedPod], resource: str, wanted: float, chance: Random
) -> list[TracedPod]:
    """Return pods whose requests for a resource reach an amount: the first of `chosen`, then random copies from the trace."""
    asking = [pod for pod in drawn_from if pod.amount(resource) > 0]
    if not asking:
        raise ConfigError("arrivals.load", f"no pod of the trace asks for {resource}")
    kept: list[TracedPod] = []
    total, n_copies = 0.0, 0
    for pod in chosen:
        if total >= wanted:
            return kept
        kept.append(pod)
        total += pod.amount(resource)
    while total < wanted:
        pod, n_copies = chance.choice(drawn_from), n_copies + 1
        kept.append(replace(pod, name=f"{pod.name}-copy-{n_copies}"))
        total += pod.amount(resource)
    return kept


Row = Mapping[str, Any]
T = TypeVar("T")


def _read(file: Path, convert: Callable[[Row, int], T]) -> list[T]:
    """Return what the rows of a file are; an error names the file and the line."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), f"cannot be read: {error}") from error
    if file.suffix == ".csv":
        rows: Iterator[tuple[int, Any]] = enumerate(csv.DictReader(text.splitlines()), 2)
    else:
        rows = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    found: list[T] = []
    number = 0
    while True:
        try:
            number, row = next(rows)
        except StopIteration:
            return found
        except csv.Error as error:
            raise ConfigError(f"{file}, line {number + 1}", str(error)) from error
        try:
            given = row if isinstance(row, dict) else msgspec.json.decode(row, type=dict[str, Any])
            found.append(convert({name: value for name, value in given.items() if value not in (None, "")}, number))
        except ConfigError as error:
            raise ConfigError(f"{file}, line {number}: {error.path}", error.detail) from error
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise ConfigError(f"{file}, line {number}", str(error)) from error


def _plain_pod(row: Row, number: int) -> TracedPod:
    """Read a row of csv or jsonl."""
    amounts = {name: str(value) for name, value in row.items() if name in ("cpu", "memory") or is_scalar_name(name)}
    for name in row:
        if name not in _COLUMNS and name not in amounts:
            raise ConfigError(str(name), f"unknown column: expected one of {', '.join(_COLUMNS)}, or a resource's name")
    for name, amount in amounts.items():
        try:
            quantity.parse(amount)
        except quantity.QuantityError as error:
            raise ConfigError(name, f"{amount!r} is no quantity") from error
    if "time" not in row:
        raise ConfigError("time", "missing")
    return TracedPod(
        _time(row["time"], "time"),
        str(row.get("name", f"line-{number}")),
        str(row.get("namespace", "")),
        _time(row["duration"], "duration") if "duration" in row else None,
        _whole(row, "priority") if "priority" in row else None,
        amounts,
    )


def _openb_pod(row: Row, number: int) -> TracedPod:
    """Read a pod of the openb trace. A pod that was never deleted runs forever."""
    n_gpus, created = _whole(row, "num_gpu", 0), _whole(row, "creation_time", 0)
    scheduled, deleted = _whole(row, "scheduled_time", created), _whole(row, "deletion_time", -1)
    gpus = {COUNT: str(n_gpus), MILLI: str(_whole(row, "gpu_milli", 1000)), MODEL: str(row.get("gpu_spec", ""))}
    return TracedPod(
        float(created),
        _text(row, "name"),
        duration=float(deleted - scheduled) if deleted >= scheduled else None,
        requests={"cpu": f"{_whole(row, 'cpu_milli')}m", "memory": f"{_whole(row, 'memory_mib')}Mi"},
        annotations=gpus if n_gpus else {},
    )


def _openb_node(row: Row, number: int) -> Node:
    """Read a node of the openb trace."""
    name = _text(row, "sn")
    labels = {HOSTNAME: name, **({MODEL: str(row["model"])} if "model" in row else {})}
    offer: dict[str, Quantity] = {
        "cpu": f"{_whole(row, 'cpu_milli')}m",
        "memory": f"{_whole(row, 'memory_mib')}Mi",
        "pods": "1000",  # the trace has no limit
        COUNT: str(_whole(row, "gpu", 0)),
    }
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=labels),
        status=NodeStatus(capacity=offer, allocatable=offer, conditions=(NodeCondition(type="Ready", status="True"),)),
    )


def _dlrm_pod(row: Row, number: int) -> TracedPod:
    """An instance of a recommendation model: cores, GPUs, GiB; times in seconds, none or NaN if it was there, or stayed."""
    row = {name: value for name, value in row.items() if not (name.endswith("_time") and str(value).lower() == "nan")}
    scheduled = _number(row, "scheduled_time", _number(row, "creation_time", 0.0))
    deleted = _number(row, "deletion_time", -1.0)
    amounts = {
        "cpu": f"{_number(row, 'cpu_request', 0.0):g}",
        "memory": f"{_number(row, 'memory_request', 0.0):g}Gi",
        "ephemeral-storage": f"{_number(row, 'disk_request', 0.0):g}Gi",
        "nvidia.com/gpu": f"{_number(row, 'gpu_request', 0.0):g}",
    }
    return TracedPod(
        _number(row, "creation_time", 0.0),
        _text(row, "instance_sn").replace("_", "-"),
        duration=deleted - scheduled if deleted >= scheduled else None,
        requests={name: amount for name, amount in amounts.items() if not amount.startswith("0") or "." in amount},
        labels={name: str(row[column]) for name, column in (("app", "app_name"), ("role", "role")) if column in row},
    )


_PODS: dict[str, Callable[[Row, int], TracedPod]] = {
    "csv": _plain_pod,
    "jsonl": _plain_pod,
    "openb": _openb_pod,
    "dlrm": _dlrm_pod,
}


def _text(row: Row, column: str) -> str:
    if column not in row:
        raise ConfigError(column, "missing")
    return str(row[column])


def _number(row: Row, column: str, default: float) -> float:
    try:
        found = float(row.get(column, default))
    except (TypeError, ValueError) as error:
        raise ConfigError(column, f"{str(row[column])[:40]!r} is no number") from error
    if not abs(found) < 1e15:
        raise ConfigError(column, f"{str(row[column])[:40]!r} is out of range")
    return found


def _whole(row: Row, column: str, default: int | None = None) -> int:
    if column not in row and default is None:
        raise ConfigError(column, "missing")
    text = str(row.get(column, default)).removesuffix(".0")
    if not text.removeprefix("-").isdecimal() or len(text) > 18:
        raise ConfigError(column, f"{text[:40]!r} is no whole number")
    return int(text)


def _time(value: Any, column: str) -> float:
    """Return a time that may be written as a bare number, which a CSV file holds as text."""
    try:
        return seconds(float(value), column)
    except (TypeError, ValueError):
        return seconds(value, column)
