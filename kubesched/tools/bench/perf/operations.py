"""What a workload does: one struct for each opcode, with the fields of scheduler_perf's files.

In: an operation as it is written, and a workload's parameters. Out: the same operation with every `...Param` replaced by the
value it names. An unknown opcode or field, a parameter that is missing or of the wrong type, and a contradiction between fields
raise ConfigError. Nothing here does anything to a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Duration

Params = Mapping[str, Any]
S = TypeVar("S", bound=msgspec.Struct)


class Operation(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What all operations have in common."""

    opcode: str

    @property
    def templates(self) -> tuple[str, ...]:
        """Return the files that the operation renders."""
        return ()

    @property
    def plain_files(self) -> tuple[str, ...]:
        """Return the files that it reads as they are."""
        return ()

    @property
    def collects(self) -> bool:
        """Return whether figures come out of it."""
        return False

    def check(self) -> str:
        """Return what is wrong once the parameters are there, or nothing."""
        return ""


class Counted(Operation):
    """An operation on so many objects."""

    count: int = 0
    count_param: str = ""

    def check(self) -> str:
        return "" if self.count >= 0 else f"count is {self.count}, and cannot be negative"


class VolumeNodeResources(msgspec.Struct, forbid_unknown_fields=True):
    count: int | None = None


class NodeAllocatableStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What nodes offer beside their template, and how many volumes of each driver they take."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, VolumeNodeResources] = {}
    migrated_plugins: list[str] = []


class LabelNodePrepareStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A label whose values the nodes have in turn."""

    label_key: str
    label_values: list[str]


class UniqueNodeLabelStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A label that has another value on every node."""

    label_key: str


class CreateNodes(Counted):
    node_template_path: str | None = None
    template_params: dict[str, Any] = {}
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None

    @property
    def templates(self) -> tuple[str, ...]:
        return _given(self.node_template_path)

    def check(self) -> str:
        labels = self.label_node_prepare_strategy
        if labels is not None and not labels.label_values:
            return "labelNodePrepareStrategy has no labelValues"
        return Counted.check(self)


class CreateNamespaces(Counted):
    prefix: str = ""
    namespace_template_path: str | None = None

    @property
    def plain_files(self) -> tuple[str, ...]:
        return _given(self.namespace_template_path)


class CreatePods(Counted):
    count_multiplier_param: str = ""
    namespace: str | None = None
    pod_template_path: str | None = None
    template_params: dict[str, Any] = {}
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""
    signature_batch_size: int = 0
    signature_batch_size_param: str = ""

    @property
    def templates(self) -> tuple[str, ...]:
        return _given(self.pod_template_path)

    @property
    def plain_files(self) -> tuple[str, ...]:
        return _given(self.persistent_volume_template_path, self.persistent_volume_claim_template_path)

    @property
    def collects(self) -> bool:
        return self.collect_metrics

    @property
    def seconds(self) -> float:
        """Return how long a steady state is kept."""
        return Duration.parse(self.duration).seconds if self.duration else 0.0

    def check(self) -> str:
        if self.skip_wait_to_completion and (self.collect_metrics or self.steady_state):
            other = "collectMetrics" if self.collect_metrics else "steadyState"
            return f"skipWaitToCompletion and {other} cannot both be true"
        if self.steady_state and self.seconds <= 0:
            return "a steady state needs a duration"
        if bool(self.persistent_volume_template_path) != bool(self.persistent_volume_claim_template_path):
            return "persistentVolumeTemplatePath and persistentVolumeClaimTemplatePath belong together"
        return Counted.check(self)


class CreatePodSets(Counted):
    """Becomes one CreatePods for each of its namespaces before anything runs."""

    namespace_prefix: str = ""
    create_pods_op: dict[str, Any] = {}

    @property
    def collects(self) -> bool:
        return bool(self.create_pods_op.get("collectMetrics"))


class DeletePods(Operation):
    namespace: str = ""
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0

    def check(self) -> str:
        return "" if self.delete_pods_per_second >= 0 else "deletePodsPerSecond cannot be negative"


class Churn(Operation):
    mode: str = ""
    number: int = 0
    interval_milliseconds: int = 0
    namespace: str | None = None
    template_paths: list[str] = []

    @property
    def plain_files(self) -> tuple[str, ...]:
        return tuple(self.template_paths)

    def check(self) -> str:
        if self.mode not in ("create", "recreate"):
            return f"mode {self.mode!r} is neither create nor recreate"
        if self.number < 0 or (self.mode == "recreate" and self.number == 0):
            return f"number is {self.number}, which mode {self.mode} cannot work with"
        return "" if self.template_paths else "templatePaths is empty"


class Barrier(Operation):
    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: str = ""

    def check(self) -> str:
        known = self.stage_requirement in ("", "Scheduled", "Attempted")
        return "" if known else f"stageRequirement {self.stage_requirement!r} is neither Scheduled nor Attempted"


class Sleep(Operation):
    duration: str = ""
    duration_param: str = ""

    @property
    def seconds(self) -> float:
        """Return how long to sleep."""
        return Duration.parse(self.duration).seconds if self.duration else 0.0

    def check(self) -> str:
        Duration.parse(self.duration or "0s")
        return ""


class CreateAny(Operation):
    count: int = 1
    count_param: str = ""
    namespace: str = ""
    template_path: str = ""
    template_params: dict[str, Any] = {}

    @property
    def templates(self) -> tuple[str, ...]:
        return (self.template_path,)

    def check(self) -> str:
        return "" if self.template_path else "templatePath is not given"


class UpdateAny(CreateAny):
    update_per_second: int = 0
    subresources: list[str] = []

    def check(self) -> str:
        return CreateAny.check(self) if self.update_per_second >= 0 else "updatePerSecond cannot be negative"


class CreatePodGroups(CreateAny):
    count: int = 0

    def check(self) -> str:
        if not self.namespace:
            return "namespace is not given"
        return CreateAny.check(self) if self.count > 0 else f"count is {self.count}, and must be above 0"


class CreateResourceClaims(Counted):
    namespace: str = ""
    template_path: str = ""

    @property
    def plain_files(self) -> tuple[str, ...]:
        return (self.template_path,)

    def check(self) -> str:
        if not self.namespace or not self.template_path:
            return "namespace and templatePath must be given"
        return Counted.check(self)


class CreateResourceDriver(Operation):
    driver_name: str = ""
    nodes: str = ""
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""

    def check(self) -> str:
        return "" if self.driver_name and self.nodes else "driverName and nodes must be given"


class AllocResourceClaims(Operation):
    namespace: str = ""


class StartCollectingMetrics(Operation):
    name: str = ""
    namespaces: list[str] = []
    label_selector: dict[str, str] = {}

    def check(self) -> str:
        return "" if self.namespaces else "namespaces is empty"


class StopCollectingMetrics(Operation):
    @property
    def collects(self) -> bool:
        return True


OPERATIONS: Mapping[str, type[Operation]] = {
    "allocResourceClaims": AllocResourceClaims,
    "barrier": Barrier,
    "churn": Churn,
    "createAny": CreateAny,
    "createNamespaces": CreateNamespaces,
    "createNodes": CreateNodes,
    "createPodGroups": CreatePodGroups,
    "createPodSets": CreatePodSets,
    "createPods": CreatePods,
    "createResourceClaims": CreateResourceClaims,
    "createResourceDriver": CreateResourceDriver,
    "deletePods": DeletePods,
    "sleep": Sleep,
    "startCollectingMetrics": StartCollectingMetrics,
    "stopCollectingMetrics": StopCollectingMetrics,
    "updateAny": UpdateAny,
}


def read(written: Mapping[str, Any]) -> Operation:
    """Return an operation as it is written; raise ConfigError with what is not known about it."""
    opcode = written.get("opcode")
    kind = OPERATIONS.get(opcode) if isinstance(opcode, str) else None
    if kind is None:
        raise ConfigError("", f"the opcode {opcode!r} is not known")
    return _converted(written, kind)


def _converted(written: Mapping[str, Any], kind: type[S]) -> S:
    try:
        return msgspec.convert(written, type=kind)
    except msgspec.ValidationError as error:
        raise ConfigError("", f"{written.get('opcode', 'operation')}: {error}") from error


def resolved(operations: Sequence[Operation], params: Params) -> tuple[list[Operation], frozenset[str]]:
    """Return what runs: with parameters in place and sets of pods unrolled; and the names of the parameters used."""
    made: list[Operation] = []
    used: set[str] = set()
    for operation in operations:
        operation = _resolved(operation, params, used)
        if not isinstance(operation, CreatePodSets):
            made.append(operation)
            continue
        for i in range(operation.count):
            inner = {"opcode": "createPods", **operation.create_pods_op, "namespace": f"{operation.namespace_prefix}-{i}"}
            made.append(_resolved(_converted(inner, CreatePods), params, used))
        if not operation.count:
            _resolved(_converted({"opcode": "createPods", **operation.create_pods_op}, CreatePods), params, used)
    return made, frozenset(used)


def _resolved(operation: Operation, params: Params, used: set[str]) -> Operation:
    changes: dict[str, Any] = {}
    for name in operation.__struct_fields__:
        value = getattr(operation, name)
        if name == "template_params":
            changes[name] = {key: _template_param(one, params, used) for key, one in value.items()}
        elif name.endswith("_param") and value and name != "count_multiplier_param":
            field = name.removesuffix("_param")
            changes[field] = _param(value, params, used, type(getattr(operation, field)))
    if isinstance(operation, CreatePods) and operation.count_multiplier_param:
        times = _param(operation.count_multiplier_param, params, used, int)
        changes["count"] = changes.get("count", operation.count) * times
    made = msgspec.structs.replace(operation, **changes)
    if problem := made.check():
        raise ConfigError("", f"{operation.opcode}: {problem}")
    return made


def _param(reference: str, params: Params, used: set[str], kind: type) -> Any:
    if not reference.startswith("$"):
        raise ConfigError("", f"the parameter {reference!r} does not begin with $")
    name = reference[1:]
    if name not in params:
        raise ConfigError("", f"the parameter {name} is not defined")
    used.add(name)
    value = params[name]
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not kind:
        raise ConfigError("", f"the parameter {name} is {value!r}, where {kind.__name__} is wanted")
    return value


def _template_param(value: Any, params: Params, used: set[str]) -> Any:
    """Return a value for templates: `$name`, or `$name|default` with the default as YAML."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    name, bar, default = value[1:].partition("|")
    if name in params:
        used.add(name)
        return params[name]
    if not bar:
        raise ConfigError("", f"the parameter {name} is not defined")
    try:
        return msgspec.yaml.decode(default) if default else None
    except msgspec.DecodeError as error:
        raise ConfigError("", f"the default of the parameter {name} is not YAML: {error}") from error


def _given(*paths: str | None) -> tuple[str, ...]:
    return tuple(path for path in paths if path)
