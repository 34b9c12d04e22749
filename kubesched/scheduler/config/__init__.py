"""KubeSchedulerConfiguration files, feature gates and plugin arguments, as frozen values that are complete and checked.

    load(text or path, gates=..., registry=...) -> Configuration      effective(configuration) -> document

This room knows plugins by name, extension points and type of arguments (`Catalogue`), never as classes. It opens no connection.

The names are imported when they are first used, so that `run --help`, which needs durations and gates, does not load YAML. Each
name stands twice: under TYPE_CHECKING for type checkers, and in `_NAMES` for the import.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.scheduler.config.args import (
        CPU_AND_MEMORY,
        MAX_SHAPE_SCORE,
        Args,
        ResourceSpec,
        UtilizationShapePoint,
        validate_label_key,
        validate_shape,
    )
    from kubesched.scheduler.config.building import build_extenders, read_file, unreadable
    from kubesched.scheduler.config.catalogue import POINTS, Catalogue, Known, at_release
    from kubesched.scheduler.config.configz import from_configz
    from kubesched.scheduler.config.documents.durations import Duration
    from kubesched.scheduler.config.documents.fielderrors import (
        FieldError,
        Path,
        TypedString,
        duplicate,
        forbidden,
        invalid,
        not_supported,
        required,
    )
    from kubesched.scheduler.config.documents.reading import Object, Value, compact, is_json, read_json
    from kubesched.scheduler.config.documents.wire import Go, Int32, Int64, Raw, Wire, decode, encode, plain
    from kubesched.scheduler.config.documents.yamltext import read_yaml
    from kubesched.scheduler.config.loading import defaults, load
    from kubesched.scheduler.config.printing import as_json, as_yaml, effective
    from kubesched.scheduler.config.releases.gates import (
        GATES,
        NO_EFFECT,
        NOT_OURS,
        OUR_GATES,
        Gates,
        Stage,
        known_gates,
        read_pairs,
        spec_of,
    )
    from kubesched.scheduler.config.releases.versions import (
        NEWEST,
        OLDEST_EMULATED,
        OLDEST_RECORDED,
        RELEASES,
        Behaviour,
        Version,
        nearest_recorded,
        text_of,
    )
    from kubesched.scheduler.config.selectors import NodeAffinity, TopologySpreadConstraint
    from kubesched.scheduler.config.types import (
        API_GROUP,
        API_VERSION,
        KIND,
        ClientConnection,
        Configuration,
        Configured,
        Extender,
        ExtenderManagedResource,
        ExtenderTLSConfig,
        LeaderElection,
        Plugin,
        PluginConfig,
        PluginSet,
        Profile,
    )

_NAMES = {
    "args": "Args CPU_AND_MEMORY MAX_SHAPE_SCORE ResourceSpec UtilizationShapePoint validate_label_key validate_shape",
    "building": "build_extenders read_file unreadable",
    "catalogue": "Catalogue Known POINTS at_release",
    "configz": "from_configz",
    "documents.durations": "Duration",
    "documents.fielderrors": "FieldError Path TypedString duplicate forbidden invalid not_supported required",
    "documents.reading": "Object Value compact is_json read_json",
    "documents.wire": "Go Int32 Int64 Raw Wire decode encode plain",
    "documents.yamltext": "read_yaml",
    "loading": "defaults load",
    "printing": "as_json as_yaml effective",
    "releases.gates": "GATES Gates NOT_OURS NO_EFFECT OUR_GATES Stage known_gates read_pairs spec_of",
    "releases.versions": "Behaviour NEWEST OLDEST_EMULATED OLDEST_RECORDED RELEASES Version nearest_recorded text_of",
    "selectors": "NodeAffinity TopologySpreadConstraint",
    "types": "API_GROUP API_VERSION ClientConnection Configuration Configured Extender ExtenderManagedResource "
    "ExtenderTLSConfig KIND LeaderElection Plugin PluginConfig PluginSet Profile",
}
_WHERE = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value
