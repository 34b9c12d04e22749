"""Validation of containers: names, images, ports, amounts, probes, variables and mounts.

In: the defaulted spec of a pod. Out: a cause for every field of a container that is wrong. What containers ask for is
judged here for the pod as a whole too, because both speak of the same amounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubesched.embedded.admission.qos import amount
from kubesched.embedded.http.refusals import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    not_supported,
    required,
    unknown_name,
)
from kubesched.embedded.resources import Object
from kubesched.embedded.validation.naming import dns_label_faults, is_label_key, qualified_name_faults
from kubesched.kube.values import quantity

GROUPS = ("containers", "initContainers")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_QUOTA_ONLY = frozenset(
    (
        "pods",
        "services",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
        "storage",
    )
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_VARIABLE = re.compile(r"[ -<>-~]+\Z")  # printable, and no equals sign
_LONGEST_PORT_NAME = 15
_LEAST = "must be greater than or equal to 0"


def container_problems(spec: Object, path: str) -> list[Cause]:
    """Return what is wrong with the containers of a pod."""
    causes: list[Cause] = []
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    seen: set[str] = set()
    claims = [one.get("name") for one in spec.get("resourceClaims") or ()]
    for container, where in _containers(spec, path):
        causes += _identity_problems(container, where, seen)
        causes += resource_problems(container.get("resources") or {}, f"{where}.resources")
        for at, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
            if claim.get("name") not in claims:
                text = "must be one of the names in pod.spec.resourceClaims" + ("" if claims else " which is empty")
                causes.append(unknown_name(f"{where}.resources.claims[{at}]", claim.get("name", ""), text))
        causes += _port_problems(container, where, bool(spec.get("hostNetwork")))
        causes += _probe_problems(container, where)
        for at, variable in enumerate(container.get("env") or ()):
            causes += _variable_problems(variable, f"{where}.env[{at}].name")
    return causes + _host_port_problems(spec, path)


def _containers(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for group in GROUPS:
        for at, container in enumerate(spec.get(group) or ()):
            yield container, f"{path}.{group}[{at}]"


def _identity_problems(container: Object, path: str, seen: set[str]) -> list[Cause]:
    causes = []
    name, image = container.get("name", ""), container.get("image", "")
    if not name:
        causes.append(required(f"{path}.name"))
    elif name in seen:
        causes.append(duplicate(f"{path}.name", name))
    else:
        causes += invalid_values(f"{path}.name", name, dns_label_faults(name))
    seen.add(name)
    if not image:
        causes.append(required(f"{path}.image"))
    elif image != image.strip():
        causes.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))
    causes += one_of(container, "imagePullPolicy", path, ("Always", "IfNotPresent", "Never"))
    return causes + one_of(container, "terminationMessagePolicy", path, ("File", "FallbackToLogsOnError"))


def one_of(obj: Object, field: str, path: str, allowed: tuple[str, ...]) -> list[Cause]:
    """Return the cause for a field that has none of the allowed values; one that is not there is fine."""
    value = obj.get(field)
    return [] if value in (None, "", *allowed) else [not_supported(f"{path}.{field}", value, allowed)]


# --- amounts


def resource_problems(resources: Object, path: str, whole: bool = False) -> list[Cause]:
    """Return what is wrong with requests and limits, of a container or of a pod as a whole."""
    causes: list[Cause] = []
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, asked in amounts.items():
            causes += _amount_problems(name, asked, f"{path}.{side}[{name}]", whole)
    for name, asked in requests.items():
        if name not in limits:
            if not _may_be_overcommitted(name):
                causes.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        elif amount(asked) != amount(limits[name]) and not _may_be_overcommitted(name):
            causes.append(invalid_value(f"{path}.requests", asked, f"must be equal to {name} limit of {limits[name]}"))
        elif amount(asked) > amount(limits[name]):
            text = f"must be less than or equal to {name} limit of {limits[name]}"
            causes.append(invalid_value(f"{path}.requests", asked, text))
    named = requests.keys() | limits.keys()
    if any(name.startswith("hugepages-") for name in named) and not named & {"cpu", "memory"}:
        causes.append(forbidden_field(path, "HugePages require cpu or memory"))
    return causes


def _amount_problems(name: str, asked: str, path: str, whole: bool) -> list[Cause]:
    causes = []
    if whole and name not in ("cpu", "memory") and not name.startswith("hugepages-"):
        causes.append(not_supported(path, name, ("cpu", "hugepages-", "memory")))
    elif "/" not in name and name not in _COMPUTE and not name.startswith("hugepages-"):
        if not is_label_key(name):
            causes += invalid_values(path, name, qualified_name_faults(name))
        elif name not in _QUOTA_ONLY:
            causes.append(invalid_value(path, name, "must be a standard resource type or fully qualified"))
        causes.append(invalid_value(path, name, "must be a standard resource for containers"))
    elif "/" in name and not is_label_key(name):
        causes += invalid_values(path, name, qualified_name_faults(name))
    if amount(asked) < 0:
        causes.append(invalid_value(path, asked, _LEAST))
    elif not whole and not _is_native(name) and amount(asked) % quantity.NANO:
        causes.append(invalid_value(path, asked, "must be an integer"))
    return causes


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _may_be_overcommitted(name: str) -> bool:
    return _is_native(name) and not name.startswith("hugepages-")


def whole_pod_problems(spec: Object, path: str) -> list[Cause]:
    """Return what is wrong with the amounts of the pod as a whole."""
    whole = spec.get("resources")
    if not whole:
        return []
    causes = resource_problems(whole, f"{path}.resources", whole=True)
    requests = whole.get("requests") or {}
    for name in ("cpu", "memory"):
        if name in requests:
            asked = sum(
                amount(((one.get("resources") or {}).get("requests") or {}).get(name, "0")) for one in spec["containers"]
            )
            if amount(requests[name]) < asked:
                shown = quantity.format_quantity(asked, quantity.style_of(requests[name]))
                text = f"must be greater than or equal to aggregate container requests of {shown}"
                causes.append(invalid_value(f"{path}.resources.requests[{name}]", requests[name], text))
    return causes


# --- ports


def _port_problems(container: Object, path: str, host_network: bool) -> list[Cause]:
    causes = []
    for at, port in enumerate(container.get("ports") or ()):
        where = f"{path}.ports[{at}]"
        if port.get("name"):
            causes += invalid_values(f"{where}.name", port["name"], _port_name_faults(port["name"]))
        if not port.get("containerPort"):
            causes.append(required(f"{where}.containerPort"))
        for field in ("containerPort", "hostPort"):
            if port.get(field) and not 0 < port[field] < 65_536:
                causes.append(invalid_value(f"{where}.{field}", port[field], "must be between 1 and 65535, inclusive"))
        causes += one_of(port, "protocol", where, ("SCTP", "TCP", "UDP"))
        if host_network and port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
            text = "must match `containerPort` when `hostNetwork` is true"
            causes.append(invalid_value(f"{where}.hostPort", port["hostPort"], text))
    return causes


def _port_name_faults(name: str) -> list[str]:
    faults = []
    if len(name) > _LONGEST_PORT_NAME:
        faults.append(f"must be no more than {_LONGEST_PORT_NAME} characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def _host_port_problems(spec: Object, path: str) -> list[Cause]:
    """Return a cause for every port of the host that two containers want."""
    causes = []
    taken = set()
    for at, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                wanted = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if wanted in taken:
                    causes.append(duplicate(f"{path}.containers[{at}].ports[{index}].hostPort", wanted))
                taken.add(wanted)
    return causes


# --- probes and variables


def _probe_problems(container: Object, path: str) -> list[Cause]:
    causes = []
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            if not any(handler in probe for handler in _HANDLERS):
                causes.append(required(f"{path}.{name}", "must specify a handler type"))
            for field in _PROBE_NUMBERS:
                if probe.get(field, 0) < 0:
                    causes.append(invalid_value(f"{path}.{name}.{field}", probe[field], _LEAST))
    return causes


def _variable_problems(variable: Object, path: str) -> list[Cause]:
    name = variable.get("name", "")
    if not name:
        return [required(path)]
    if not _VARIABLE.match(name):
        text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        return [invalid_value(path, name, text)]
    return []
