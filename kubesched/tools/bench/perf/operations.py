"""The operations of a workload: one struct for each opcode, with the fields of scheduler_perf's files.

In: an operation as the file has it, and the parameters of the workload. Out: the operation, with each `...Param` replaced by
its value. ConfigError is raised for an unknown opcode or field, a parameter that is missing or has the wrong type, and fields
that contradict each other. `executor` runs the operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Duration

_PARAMETERS = ("count", "duration", "maxClaimsPerNode", "signatureBatchSize", "steadyState")
"""The fields that can be given as `...Param`, the name of a parameter."""


class Operation(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What all operations have in common."""

    opcode: str
    template_fields: ClassVar[tuple[str, ...]] = ()
    plain_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that name files: templates, and files that are read as they are."""

    @property
    def templates(self) -> list[str]:
        """Return the files that the operation renders."""
        return [path for field in self.template_fields if (path := getattr(self, field))]

    @property
    def plain_files(self) -> list[str]:
        """Return the files that the operation reads as they are."""
        found = [getattr(self, field) for field in self.plain_fields]
        return [path for paths in found if paths for path in (paths if isinstance(paths, list) else [paths])]

    @property
    def collects(self) -> bool:
        """Return whether the operation produces figures."""
        return False

    def check(self) -> str:
        """Return what is wrong; empty if the operation is valid."""
        return ""


Made = TypeVar("Made", bound=Operation)


class Counted(Operation):
    """An operation on `count` objects."""

    count: int = 0

    def check(self) -> str:
        return "" if self.count >= 0 else f"count is {self.count}, and cannot be negative"


class VolumeNodeResources(msgspec.Struct, forbid_unknown_fields=True):
    count: int | None = None


class NodeAllocatableStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The allocatable resources of nodes, added to those of the template, and the volume limit of each driver."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, VolumeNodeResources] = {}
    migrated_plugins: list[str] = []


class LabelNodePrepareStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A label whose values are given to the nodes round robin."""

    label_key: str
    label_values: list[str]


class UniqueNodeLabelStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A label with a different value on each node."""

    label_key: str


class CreateNodes(Counted):
    template_fields: ClassVar = ("node_template_path",)
    node_template_path: str | None = None
    template_params: dict[str, Any] = {}
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None

    def check(self) -> str:
        labels = self.label_node_prepare_strategy
        if labels is not None and not labels.label_values:
            return "labelNodePrepareStrategy has no labelValues"
        return Counted.check(self)


class CreateNamespaces(Counted):
    plain_fields: ClassVar = ("namespace_template_path",)
    prefix: str = ""
    namespace_template_path: str | None = None


class CreatePods(Counted):
    template_fields: ClassVar = ("pod_template_path",)
    plain_fields: ClassVar = ("persistent_volume_template_path", "persistent_volume_claim_template_path")
    namespace: str | None = None
    pod_template_path: str | None = None
    template_params: dict[str, Any] = {}
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    duration: str = ""
    signature_batch_size: int = 0

    @property
    def collects(self) -> bool:
        return self.collect_metrics

    @property
    def seconds(self) -> float:
        """Return the length of the steady state."""
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
    """Stands for one CreatePods for each namespace; `read` unrolls it."""

    namespace_prefix: str = ""
    create_pods_op: dict[str, Any] = {}


class DeletePods(Operation):
    namespace: str = ""
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0

    def check(self) -> str:
        return "" if self.delete_pods_per_second >= 0 else "deletePodsPerSecond cannot be negative"


class Churn(Operation):
    plain_fields: ClassVar = ("template_paths",)
    mode: str = ""
    number: int = 0
    interval_milliseconds: int = 0
    namespace: str | None = None
    template_paths: list[str] = []

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

    @property
    def seconds(self) -> float:
        """Return how long to sleep."""
        return Duration.parse(self.duration).seconds if self.duration else 0.0

    def check(self) -> str:
        Duration.parse(self.duration or "0s")
        return ""


class CreateAny(Operation):
    template_fields: ClassVar = ("template_path",)
    count: int = 1
    namespace: str = ""
    template_path: str = ""
    template_params: dict[str, Any] = {}

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
    plain_fields: ClassVar = ("template_path",)
    namespace: str = ""
    template_path: str = ""

    def check(self) -> str:
        if not self.namespace or not self.template_path:
            return "namespace and templatePath must be given"
        return Counted.check(self)


class CreateResourceDriver(Operation):
    driver_name: str = ""
    nodes: str = ""
    max_claims_per_node: int = 0

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


class Params:
    """The parameters of a workload, and which of them were used."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.used: set[str] = set()

    def value(self, reference: Any) -> Any:
        """Return the value of `$name`; a float such as 5.0 becomes an integer."""
        name = str(reference)
        if not name.startswith("$"):
            raise ConfigError("", f"the parameter {name!r} does not begin with $")
        found = self._value(name[1:])
        return int(found) if isinstance(found, float) and found.is_integer() else found

    def in_template(self, value: Any) -> Any:
        """Return a value for templates: `$name`, or `$name|default` with the default as YAML."""
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name, bar, default = value[1:].partition("|")
        if name in self.values or not bar:
            return self._value(name)
        try:
            return msgspec.yaml.decode(default) if default else None
        except msgspec.DecodeError as error:
            raise ConfigError("", f"the default of the parameter {name} is not YAML: {error}") from error

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise ConfigError("", f"the parameter {name} is not defined")
        self.used.add(name)
        return self.values[name]


def read(written: Mapping[str, Any], params: Params) -> list[Operation]:
    """Return the operations that an entry of the file stands for: one, or several for createPodSets."""
    opcode = written.get("opcode")
    kind = OPERATIONS.get(opcode) if isinstance(opcode, str) else None
    if kind is None:
        raise ConfigError("", f"the opcode {opcode!r} is not known")
    made = _made(written, kind, params)
    if not isinstance(made, CreatePodSets):
        return [made]
    inner = {"opcode": "createPods", **made.create_pods_op}
    _made(inner, CreatePods, params)  # checks the fields and parameters, also when count is 0
    return [_made({**inner, "namespace": f"{made.namespace_prefix}-{i}"}, CreatePods, params) for i in range(made.count)]


def _made(written: Mapping[str, Any], kind: type[Made], params: Params) -> Made:
    """Return a checked operation with the values of its parameters."""
    fields = dict(written)
    for name in _PARAMETERS:
        if reference := fields.pop(f"{name}Param", ""):
            fields[name] = params.value(reference)
    if isinstance(given := fields.get("templateParams"), dict):
        fields["templateParams"] = {name: params.in_template(value) for name, value in given.items()}
    try:
        if kind is CreatePods and (reference := fields.pop("countMultiplierParam", "")):
            factors = (fields.get("count", 0), params.value(reference))
            fields["count"] = math.prod(msgspec.convert(each, int) for each in factors)
        made = msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise ConfigError("", f"{written['opcode']}: {error}") from error
    if problem := made.check():
        raise ConfigError("", f"{made.opcode}: {problem}")
    return made
