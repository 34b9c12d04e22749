"""Reads performance-config.yaml: test cases, and the workloads of each.

In: a folder: `test/integration/scheduler_perf` of a release, a part of it, or a copy. Out: workloads with their operations. A
workload that cannot run here has the reason instead: an unknown opcode, field, parameter, template function, gate or scheduler
configuration. A file that cannot be read is an error.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import check_yaml
from kubesched.scheduler import config
from kubesched.scheduler.engine import registry_with
from kubesched.scheduler.framework import catalogue
from kubesched.tools.bench.perf import operations
from kubesched.tools.bench.perf.operations import CreatePods, Operation
from kubesched.tools.bench.perf.templates import Template

FILE = "performance-config.yaml"
THROUGHPUT = "SchedulingThroughput"
BUCKETS = ("Average", "Perc50", "Perc90", "Perc95", "Perc99")
_WITHOUT_HINTS: config.Version = (1, 33)
"""The last release in which queueing hints can be off. scheduler_perf emulates it for workloads that switch them off."""
_NEW_FIELDS = ("templateParams", "signatureBatchSize", "signatureBatchSizeParam", "countMultiplierParam")
"""Fields that are new in 1.37: a file with one of them is of that release."""
_DEEPEST = 3
"""How many levels below the folder of a release a folder of workloads may be."""


class _Selector(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Which figure a threshold is for."""

    name: str
    data_bucket: str = "Average"
    labels: dict[str, str] = {}
    expect_lower: bool = False


class _Workload(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    params: dict[str, Any] = {}
    labels: list[str] = []
    threshold: float | dict[str, float] = 0.0
    threshold_metric_selector: _Selector | None = None
    feature_gates: dict[str, bool] = {}


class _Case(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    workload_template: list[dict[str, Any]]
    workloads: list[_Workload]
    feature_gates: dict[str, bool] = {}
    labels: list[str] = []
    scheduler_config_path: str = ""
    default_pod_template_path: str | None = None
    default_threshold_metric_selector: _Selector | None = None
    metrics_collector_config: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, ready to run unless `problem` says why not."""

    case: str
    name: str
    folder: Path
    topic: str = ""
    """The folder's path below the root, joined by `_`; it selects one of several thresholds."""
    labels: tuple[str, ...] = ()
    gates: Mapping[str, bool] = field(default_factory=dict)
    operations: tuple[Operation, ...] = ()
    default_pod_template: str | None = None
    scheduler_config: Path | None = None
    threshold: float | None = None
    bucket: str = "Average"
    release: config.Version = config.OLDEST_RECORDED
    """The release whose files these are."""
    emulated: config.Version = config.OLDEST_RECORDED
    """The release that the scheduler emulates: an older one if a gate is set that is locked in newer ones."""
    problem: str = ""

    @property
    def full_name(self) -> str:
        """Return `Case/workload`."""
        return f"{self.case}/{self.name}"

    @property
    def set_gates(self) -> config.Gates:
        """Return the state of every gate; raise ConfigError for one that cannot be set so."""
        return config.Gates.of(self.gates, emulated=self.emulated)

    def file(self, path: str) -> Path:
        """Return where a path of the configuration leads."""
        return self.folder / path


def read(root: Path, gates: Mapping[str, bool] | None = None) -> list[Workload]:
    """Return all workloads below a folder. `gates` are set for all of them, and win over those of a workload."""
    files = sorted(root.rglob(FILE)) if root.is_dir() else []
    if not files:
        raise ConfigError(str(root), f"there is no {FILE} in this folder or below")
    trees = {file: _read_file(file) for file in files}
    release = release_of([*trees.values(), *map(_read_file, _files_around(root))])
    found = []
    seen: dict[str, Path] = {}
    for file, cases in trees.items():
        topic = "_".join(file.parent.relative_to(root).parts) or file.parent.name
        for case in cases:
            if (other := seen.setdefault(case.name, file)) != file:
                here, there = (each.parent.relative_to(root) for each in (file, other))
                raise ConfigError(str(root), f"case {case.name} is in {there} and in {here}: give the folder of one release")
            base = Workload(case.name, "", file.parent, topic, release=release, emulated=release)
            found += [_workload(base, case, one, gates or {}) for one in case.workloads]
    return found


def _files_around(root: Path) -> list[Path]:
    """Return all performance-config.yaml files of the release that contains a folder.

    The folder of a release has `templates`. One file alone may not show its release, but all files of it together do.
    """
    above = [each for each in root.resolve().parents[:_DEEPEST] if (each / "templates").is_dir()]
    return [file for depth in range(_DEEPEST + 1) for file in sorted(above[-1].glob("*/" * depth + FILE))] if above else []


def release_of(trees: Iterable[Sequence[_Case]]) -> config.Version:
    """Return the release whose rules apply: since 1.37 pods have a signature label, and a steady state replaces single pods."""
    for cases in trees:
        for written in (operation for case in cases for operation in case.workload_template):
            inner = written.get("createPodsOp")
            if any(name in written or (isinstance(inner, dict) and name in inner) for name in _NEW_FIELDS):
                return config.NEWEST
    return config.OLDEST_RECORDED


def _read_file(file: Path) -> list[_Case]:
    try:
        text = file.read_bytes()
        check_yaml(text)
        found = msgspec.yaml.decode(text, type=list[_Case])
    except OSError as error:
        raise ConfigError(str(file), f"cannot be read: {error.strerror}") from error
    except (ConfigError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), str(error)) from error
    names = [case.name for case in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(str(file), f"there are two cases of the name {twice}")
    return found


def _workload(base: Workload, case: _Case, written: _Workload, overrides: Mapping[str, bool]) -> Workload:
    gates_set = {**case.feature_gates, **written.feature_gates, **overrides}
    threshold = written.threshold  # several topics may share a file; zero means none
    selector = written.threshold_metric_selector or case.default_threshold_metric_selector or _Selector(THROUGHPUT)
    made = replace(
        base,
        name=written.name,
        labels=(*case.labels, *written.labels),
        gates=gates_set,
        emulated=base.emulated if gates_set.get("SchedulerQueueingHints", True) else _WITHOUT_HINTS,
        default_pod_template=case.default_pod_template_path,
        scheduler_config=base.folder / case.scheduler_config_path if case.scheduler_config_path else None,
        threshold=(threshold.get(base.topic, 0.0) if isinstance(threshold, dict) else threshold) or None,
        bucket=selector.data_bucket,
    )
    try:
        if selector.name != THROUGHPUT or selector.data_bucket not in BUCKETS or selector.labels or selector.expect_lower:
            raise ConfigError("", f"a threshold for {selector.name} {selector.data_bucket} is not known")
        made = replace(made, operations=_operations(made, case, written.params))
        gates = made.set_gates  # with gates or a configuration that it refuses no scheduler would start
        if made.scheduler_config is not None:
            config.load(made.scheduler_config, gates=gates, registry=catalogue(registry_with(())))
    except ConfigError as error:
        return replace(made, problem=str(error))
    return made


def _operations(workload: Workload, case: _Case, params: Mapping[str, Any]) -> tuple[Operation, ...]:
    made: list[Operation] = []
    given = operations.Params(params)
    for i, written in enumerate(case.workload_template):
        try:
            made += operations.read(written, given)
        except ConfigError as error:
            raise ConfigError(f"operation {i}", str(error)) from error
    if not any(operation.collects for operation in made):
        raise ConfigError("", "no operation collects metrics")
    if unused := sorted(set(params) - given.used):
        raise ConfigError("", f"the parameters {', '.join(unused)} are used by no operation")
    for operation in made:
        files = operation.templates
        if isinstance(operation, CreatePods) and not files and workload.default_pod_template:
            files = [workload.default_pod_template]
        for path in files:
            template(workload.file(path))
        for path in operation.plain_files:
            plain(workload.file(path))
    return tuple(made)


@functools.lru_cache(maxsize=512)
def template(file: Path) -> Template:
    """Return a template file, parsed."""
    return Template(_text(file), file.name)


@functools.lru_cache(maxsize=512)
def plain(file: Path) -> dict[str, Any]:
    """Return the object in a file that is not a template."""
    return parsed(_text(file), file.name)


def parsed(text: str, name: str) -> dict[str, Any]:
    """Return the object that a text describes."""
    try:
        tree = msgspec.yaml.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(name, str(error)) from error
    if not isinstance(tree, dict):
        raise ConfigError(name, "is not an object")
    return tree


def _text(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
        check_yaml(text)
        return text
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(file.name, f"cannot be read: {reason}") from error


def chosen(workloads: Iterable[Workload], labels: str, cases: Sequence[str], names: Sequence[str]) -> list[Workload]:
    """Return the workloads that have the labels `a,+b,-c` and match the patterns of cases and names, if there are any."""
    wanted = [label for label in labels.split(",") if label]
    return [
        one
        for one in workloads
        if all((label.lstrip("+-") in one.labels) != label.startswith("-") for label in wanted)
        and (not cases or any(fnmatch.fnmatchcase(one.case, pattern) for pattern in cases))
        and (not names or any(fnmatch.fnmatchcase(one.name, pattern) for pattern in names))
    ]
