"""Policy files: the types of the document, and `load_policy`, which reads it as strictly as its release.

    {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}], "priorities": [{"name": "EqualPriority",
    "weight": 2}]}

Up to 1.14 the text is JSON, later YAML too. Before 1.17 unknown fields are ignored, also those of later releases (`_SINCE`);
1.17 refuses them. An absent list means the defaults, an empty one means none, so absent is None here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from kubesched.errors import ConfigError
from kubesched.scheduler.config import (
    API_GROUP,
    Duration,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    Go,
    Int32,
    Int64,
    Object,
    Value,
    Wire,
    decode,
    is_json,
    read_json,
    read_yaml,
)
from kubesched.scheduler.legacy.releases import LATEST, Release, release_of

KIND = "Policy"
CONFIG_MAP_KEY = "policy.cfg"
"""The key under which a ConfigMap holds a policy."""

_Int = Annotated[int, Go("int")]


class ServiceAffinity(Wire, frozen=True, rename="camel"):
    """Pods of a service go to nodes that agree in these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(Wire, frozen=True, rename="camel"):
    """Nodes must (or must not) have these labels."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Wire, frozen=True, rename="camel"):
    """What a custom predicate is; exactly one of these."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Wire, frozen=True, rename="camel"):
    """One predicate of a policy."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Wire, frozen=True, rename="camel"):
    """Pods of a service are spread over the values of this label."""

    label: str = ""


class LabelPreference(Wire, frozen=True, rename="camel"):
    """Nodes that have (or lack) this label are preferred."""

    label: str = ""
    presence: bool = False


class UtilizationShapePoint(Wire, frozen=True, rename="camel"):
    """One corner of a line from utilization (percent) to score (0 to 10)."""

    utilization: _Int = 0
    score: _Int = 0


class ResourceSpec(Wire, frozen=True, rename="camel"):
    """A resource and its weight; 0 means 1."""

    name: str = ""
    weight: _Int = 0


class RequestedToCapacityRatioArguments(Wire, frozen=True, rename="camel"):
    """A score by utilization."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(Wire, frozen=True, rename="camel"):
    """What a custom priority is; exactly one of these."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Wire, frozen=True, rename="camel"):
    """One priority of a policy."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class PolicyExtender(Wire, frozen=True, rename="camel"):
    """An extender as policies spell it: the timeout is a number of nanoseconds, and HTTPS is `enableHttps`."""

    go_type: ClassVar[str] = "v1.ExtenderConfig"

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Annotated[int, Go("time.Duration")] = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False

    def modern(self) -> Extender:
        """Return the same extender as today's configuration has it."""
        values = {field: getattr(self, field) for field in self.__struct_fields__}
        return Extender(**{**values, "http_timeout": Duration(self.http_timeout)})


class Policy(Wire, frozen=True, rename="camel"):
    """Which predicates and priorities a scheduler runs, and which extenders it asks."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[PolicyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


_SINCE = {
    "hardPodAffinitySymmetricWeight": 7,
    "alwaysCheckAllPredicates": 10,
    "extenders.bindVerb": 7,
    "extenders.nodeCacheCapable": 6,
    "extenders.managedResources": 10,
    "extenders.ignorable": 11,
    "extenders.preemptVerb": 11,
    "priorities.argument.requestedToCapacityRatioArguments": 11,
    "priorities.argument.requestedToCapacityRatioArguments.resources": 16,
}
"""Fields by the minor release that brought them, where that is later than 1.3."""

# The TLS settings had no names of their own on the wire: their keys are those of Go, `CAFile` and so on.
_FOLDED: dict[str, type[msgspec.Struct]] = {
    "extenders.tlsConfig": ExtenderTLSConfig,
    "extenders.managedResources": ExtenderManagedResource,
}
"""Objects whose keys are read in any case, by every release."""


def load_policy(text: str, version: str | Release = LATEST) -> Policy:
    """Return the policy in a text; raise ConfigError if the release refuses it."""
    release = release_of(version)
    wrapper = "invalid policy" if release.minor >= 17 else "invalid configuration"
    try:
        return _read(text, release)
    except ConfigError as error:
        raise ConfigError("", f"{wrapper}: {error}") from error


def _read(text: str, release: Release) -> Policy:
    tree, complaints = _parse(text, release)
    if release.defaults_kind and isinstance(tree, Object):
        tree = _with_kind(tree, complaints)
    _check_kind(tree, text, release)
    assert isinstance(tree, Object)
    policy, strict = decode(Policy, _at_release(tree, release), with_type=True)
    complaints += strict
    if complaints and release.is_strict:
        raise ConfigError("", f"strict decoding error: {', '.join(complaints)}")
    return policy


def _parse(text: str, release: Release) -> tuple[Value, list[str]]:
    if is_json(text) or not release.reads_yaml:
        try:
            return read_json(text), []
        except ConfigError as error:
            raise ConfigError("", f"couldn't get version/kind; json parse error: {error}") from error
    return read_yaml(text)


def _with_kind(tree: Object, complaints: list[str]) -> Object:
    """Return a document with default kind and version (1.17). Kept quirk: without a version, fields have Go's names:
    `Predicates` is read, and `predicates` is unknown."""
    given: list[tuple[str, Value]] = [("kind", KIND)] if not tree.get_folded("kind") else []
    if not tree.get_folded("apiVersion"):
        tree = _from_go(tree, complaints)
        given.append(("apiVersion", "v1"))
    return Object((*given, *tree.pairs))


def _from_go(value: Any, complaints: list[str]) -> Any:
    """Return a value with wire names instead of Go's; add an error for each field that is not written as in Go."""
    if isinstance(value, list):
        return [_from_go(item, complaints) for item in value]
    if not isinstance(value, Object):
        return value
    pairs = []
    for key, item in value.pairs:
        if key in ("kind", "apiVersion"):
            pairs.append((key, item))
        elif key[:1].isupper():
            pairs.append((_GO_NAMES.get(key, key[:1].lower() + key[1:]), _from_go(item, complaints)))
        else:
            complaints.append(f'unknown field "{key}"')
    return Object(tuple(pairs))


_GO_NAMES = {
    "URLPrefix": "urlPrefix",
    "EnableHTTPS": "enableHttps",
    "HTTPTimeout": "httpTimeout",
    "TLSConfig": "tlsConfig",
    "CAFile": "caFile",
    "CAData": "caData",
}


def _check_kind(tree: Value, text: str, release: Release) -> None:
    """Raise ConfigError for a document without kind or version, or with other ones than the release reads."""
    if not isinstance(tree, Object):
        raise ConfigError("", f"Object 'Kind' is missing in '{text}'")
    kind, api_version = tree.get_folded("kind"), tree.get_folded("apiVersion")
    if not kind:
        raise ConfigError("", f"Object 'Kind' is missing in '{text}'")
    if not api_version:
        raise ConfigError("", f"Object 'apiVersion' is missing in '{text}'")
    accepted = ("v1", f"{API_GROUP}/v1") if release.minor >= 17 else ("v1",)
    if kind != KIND or api_version not in accepted:
        raise ConfigError(
            "",
            f'no kind "{kind}" is registered for version "{api_version}", expected "{KIND}" of '
            + " or ".join(f'"{version}"' for version in accepted),
        )


# Fields by release


def _at_release(value: Value, release: Release, path: str = "") -> Any:
    """Return the document without fields of later releases, and with the keys of extenders in their usual case."""
    if isinstance(value, list):
        return [_at_release(item, release, path) for item in value]
    if not isinstance(value, Object):
        return value
    cls: type[msgspec.Struct] | None = (
        PolicyExtender if path == "extenders" and release.folds_extender_keys else _FOLDED.get(path)
    )
    pairs = []
    for key, item in (_folded(value, cls) if cls is not None else value).pairs:
        inside = f"{path}.{key}" if path else key
        if _SINCE.get(inside, 0) <= release.minor:
            pairs.append((key, _at_release(item, release, inside)))
    return Object(tuple(pairs))


def _folded(value: Object, cls: type[msgspec.Struct]) -> Object:
    """Return the object with the field names instead of keys in another case. Other keys are dropped, because extenders were
    never read strictly, also not in 1.17."""
    names = {field.encode_name.casefold(): field.encode_name for field in msgspec.structs.fields(cls)}
    return Object(tuple((names[key.casefold()], item) for key, item in value.pairs if key.casefold() in names))
