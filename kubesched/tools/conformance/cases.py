"""Golden cases: a cluster, a pod, and what kube-scheduler decided for it.

In: cases as JSON, one on each line, plain or gzipped. Out: the differences between the recorded result and ours. The fields of
a case show its kind, so cases of users can be run too. A case is decided as in the release of its `version`, 1.36 by default.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import Node, Pod, codec, is_finished
from kubesched.kube.values import lines_of
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import (
    Attempt,
    FirstByName,
    Ports,
    Rules,
    StillClock,
    attempt,
    build_profiles,
    default_configuration,
    new_handle,
    queue_options,
    registry_with,
)
from kubesched.scheduler.framework import Failed, Placed, Profile, Registry, Status, Unschedulable, catalogue
from kubesched.scheduler.queue import Queue

Case = dict[str, Any]

_FIRST_RECORDED = "1.36"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a result that differs from the recorded one."""

    case: str
    what: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.case}: {self.what}: expected {_short(self.expected)}, found {_short(self.found)}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode() if not isinstance(value, str) else repr(value)
    return text if len(text) <= 400 else text[:397] + "..."


def read_cases(paths: Iterable[Path]) -> Iterator[tuple[str, Case]]:
    """Yield (family, case) from files and folders of `.jsonl` and `.jsonl.gz`.

    The family is the file's name, after the folders below the one that was named: `dra`, `v1.37/dra`.
    """
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.name.endswith((".jsonl", ".jsonl.gz"))) if path.is_dir() else [path]
        for file in files:
            folder = file.parent.relative_to(path) if path.is_dir() else Path()
            family = (folder / file.name.split(".")[0]).as_posix()
            for number, line in enumerate(lines_of(file), start=1):
                if line.strip():
                    try:
                        yield family, msgspec.json.decode(line)
                    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                        raise SchedulerError(f"{file}: line {number} is not JSON: {error}") from error


class MalformedCase(SchedulerError):
    """A golden case is not valid."""


def version_of(case: Case) -> config.Version:
    """Return the release that a case was recorded from."""
    text = case.get("version", _FIRST_RECORDED)
    try:
        major, minor = (int(part) for part in text.split("."))
    except (AttributeError, ValueError) as error:
        raise MalformedCase(f"golden case {case['name']}: field 'version': {text!r} is no release like 1.37") from error
    return major, minor


@cache
def _registry() -> Registry:
    """Return the in-tree plugins. They are registered once: reading their signatures takes longer than most cases."""
    return registry_with()


@cache
def _default_configuration(version: config.Version) -> config.Configuration:
    return default_configuration(config.Gates.defaults(version), _registry())


class Cluster:
    """The cluster of a case, its profiles, and a queue with its nominated pods."""

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any]],
        document: Mapping[str, Any] | None = None,
        version: config.Version = config.NEWEST,
    ) -> None:
        self.gates = config.Gates.defaults(version)
        self.store, self.handle = new_handle(self.gates, Ports())
        registry = _registry()
        if document is None:
            self.config = _default_configuration(version)
        else:
            text = msgspec.json.encode(document).decode()
            self.config = config.load(text, gates=self.gates, registry=catalogue(registry))
        self.profiles = build_profiles(self.config, registry, self.handle)
        self.queue = Queue(tuple(self.profiles.values()), StillClock(0.0), queue_options(self.config, self.gates))
        self.handle.nominations = self.queue.nominations
        read = [codec.decode(dict(raw)) for raw in objects]
        # Nodes and pods in the order of an API server's list. The first node with an image decides the image's size, and among
        # victims of equal importance the order of arrival decides.
        for obj in read:
            if not isinstance(obj, Node | Pod):
                self.put(obj)
        for node in sorted((obj for obj in read if isinstance(obj, Node)), key=lambda node: node.name):
            self.put(node)
        for pod in sorted((obj for obj in read if isinstance(obj, Pod)), key=lambda pod: (pod.namespace, pod.name)):
            self.put(pod)

    @classmethod
    def of(cls, case: Case) -> Cluster:
        """Return the cluster of a case."""
        return cls(case["objects"], case.get("config"), version_of(case))

    def put(self, obj: Any) -> None:
        """Add an object."""
        if isinstance(obj, Node):
            self.store.put_node(obj)
        elif isinstance(obj, Pod):
            if is_finished(obj):
                return
            if obj.spec.node_name:
                self.store.put_pod(obj)
            elif obj.status.nominated_node_name and obj.spec.scheduler_name in self.profiles:
                self.queue.add(self.store.view(obj))
        else:
            self.store.objects.put(obj)

    def profile(self, pod: PodView) -> Profile:
        """Return the profile of a pod's `schedulerName`, or the first profile."""
        found = self.profiles.get(pod.pod.spec.scheduler_name)
        return found or next(iter(self.profiles.values()))


def run_decision_case(case: Case) -> list[Difference]:
    """Decide the pods of a case one after another, and compare with the recorded results."""
    name, expected = case["name"], case["expected"]
    try:
        cluster = Cluster.of(case)
    except SchedulerError as error:
        if expected.get("error") == str(error):
            return []
        return [Difference(name, "error", expected.get("error"), str(error))]
    if "error" in expected:
        return [Difference(name, "error", expected["error"], None)]
    differences: list[Difference] = []
    for raw, wanted in zip(case["pods"], expected["results"], strict=True):
        pod = cluster.store.view(codec.convert(raw, Pod))
        profile = cluster.profile(pod)
        found, made = decide(cluster, profile, pod, preempts=bool(case.get("preempt")))
        differences += compare(f"{name} {pod.key}", wanted, found)
        if made is not None and isinstance(made.decision, Placed):
            booked = cluster.store.assume(pod, made.decision.node_name)
            profile.reserve(booked, made.decision.node_name, made.state)
    return differences


def decide(cluster: Cluster, profile: Profile, pod: PodView, *, preempts: bool) -> tuple[dict[str, Any], Attempt | None]:
    """Return the result of an attempt in the fields of a golden case."""
    found: dict[str, Any] = {"pod": pod.key}
    gate = profile.pre_enqueue(pod)
    if not gate.is_success:
        found["preEnqueue"] = _status(gate)
        return found, None
    rules = Rules(FirstByName(), cluster.queue.nominations, preempts=preempts, scores_single=True)
    made = attempt(pod, cluster.store.snapshot(), profile, rules)
    decision = made.decision
    if isinstance(decision, Failed):
        found["error"] = decision.message
        return found, made
    before = made.pre_filtered
    if before is not None and before.status is not None:
        found["preFilter"] = _status(before.status)
    names = made.nodes.names
    found["feasible"] = sorted(names[row] for row in made.feasible.nonzero()[0].tolist()) if made.feasible is not None else []
    if made.verdicts is not None and made.diagnosis is not None:
        rejected = {node: _status(status) for node, status in made.diagnosis.statuses().items()}
        if rejected:
            found["rejected"] = rejected
    if before is not None and before.status is None and before.considered is not None:
        found["otherNodes"] = _status(before.absent)
    if made.scores is not None:
        found["scores"] = {
            node: {plugin: int(column[made.nodes.row(node)]) for plugin, column in made.scores.by_plugin.items()}
            for node in found["feasible"]
        }
    if isinstance(decision, Placed):
        found["decision"] = decision.node_name
    elif isinstance(decision, Unschedulable):
        found["fitError"] = decision.message
        if made.post_filtered is not None:
            found["postFilter"] = _status(made.post_filtered.status)
            preemption, nomination = made.post_filtered.preemption, made.post_filtered.nomination
            found["preemption"] = {
                "node": nomination.node_name if nomination is not None else "",
                "victims": sorted(victim.key for victim in preemption.to_evict) if preemption is not None else [],
            }
    return found, made


def _status(status: Status) -> dict[str, Any]:
    shown: dict[str, Any] = {"code": status.code.text}
    if status.plugin:
        shown["plugin"] = status.plugin
    if status.reasons:
        shown["reasons"] = list(status.reasons)
    return shown


def compare(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[Difference]:
    """Compare the result for one pod with the recorded one."""
    if "error" in wanted or "error" in found:
        is_alike = ("error" in wanted) == ("error" in found)
        return [] if is_alike else [Difference(name, "error", wanted.get("error"), found.get("error"))]
    differences: list[Difference] = []
    # Of several accepted answers the recorded texts name one.
    is_tied = len(wanted.get("preemption", ())) > 1
    for what in ("preEnqueue", "preFilter", "feasible", "otherNodes", "scores", "decision", "fitError", "postFilter"):
        expected, got = _comparable(wanted.get(what)), _comparable(found.get(what))
        if is_tied:
            expected, got = _without_node(expected), _without_node(got)
        if what == "feasible":
            expected, got = expected or [], got or []
        if expected != got:
            differences.append(Difference(name, what, wanted.get(what), found.get(what)))
    expected, got = wanted.get("rejected") or {}, found.get("rejected") or {}
    for node in sorted(expected.keys() | got.keys()):
        if _comparable(expected.get(node)) != _comparable(got.get(node)):
            differences.append(Difference(name, f"rejected {node}", expected.get(node), got.get(node)))
    if "preemption" in wanted:
        accepted = [(answer["node"], sorted(answer.get("victims") or [])) for answer in wanted["preemption"]]
        answer = found.get("preemption") or {"node": "", "victims": []}
        if (answer["node"], answer["victims"]) not in accepted:
            differences.append(Difference(name, "preemption", wanted["preemption"], answer))
    return differences


_PLACEMENT = re.compile(r"on node \S+, preempting \d+ victims")


def _without_node(value: Any) -> Any:
    """Return a message, or a status as it is compared, without the node and the number of victims that preemption chose."""
    if isinstance(value, tuple):
        code, plugin, reasons = value
        return code, plugin, Counter(_PLACEMENT.sub("", reason) for reason in reasons.elements())
    return _PLACEMENT.sub("", value) if isinstance(value, str) else value


def _comparable(value: Any) -> Any:
    if isinstance(value, dict) and "code" in value:
        return value["code"], value.get("plugin", ""), Counter(value.get("reasons", ()))
    return value
