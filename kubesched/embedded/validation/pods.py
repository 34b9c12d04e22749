"""Validation of pods and of everything in them, in templates too; and what may still change in a pod.

In: an object of one of the types that make up a pod, and its path; on update the pod it replaces. Out: a cause for every wrong
field. Rules of single fields stand in schema/tables/pod.txt; here is what depends on more than one field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubesched.embedded.admission.amounts import CONTAINER_GROUPS, amount, containers_of
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.validation.naming import dns_label_faults, dns_subdomain_faults
from kubesched.embedded.validation.rules import NOT_NEGATIVE, Check
from kubesched.kube.values import label_value_complaints, qualified_name_complaints, quantity

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_QUOTA_ONLY = frozenset(
    (
        *("pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "replicationcontrollers"),
        *("resourcequotas", "storage"),
    )
)
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_WITHOUT_SELECTOR = "must not be specified when labelSelector is not set"
# In the order in which the API looks for them: the first that a volume has is its kind, any other is one too many.
_VOLUME_KINDS = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flocker", "downwardAPI", "fc", "azureFile"),
    *("configMap", "flexVolume", "quobyte", "vsphereVolume", "azureDisk", "storageos", "photonPersistentDisk"),
    *("portworxVolume", "scaleIO", "projected", "csi", "ephemeral", "image"),
)


def label_problems(labels: dict[str, str] | None, path: str) -> Iterator[Cause]:
    """Yield what is wrong with labels, of an object or in a selector."""
    for key, value in (labels or {}).items():
        complaints = qualified_name_complaints(key), label_value_complaints(value)
        if any(complaints):
            yield from field.invalid_each(path, key, complaints[0])
            yield from field.invalid_each(path, value, complaints[1])


def _template(template: Object, path: str) -> Iterator[Cause]:
    """Yield what a pod template may not have."""
    for key in (template.get("metadata") or {}).get("labels") or ():
        yield from field.invalid_each(f"{path}.labels", key, qualified_name_complaints(key))
    if (template.get("spec") or {}).get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        yield field.forbidden(f"{path}.spec.ephemeralContainers", text)


def _spec(spec: Object, path: str) -> Iterator[Cause]:
    """Yield names that are there twice, references to nothing, and host ports that two containers want."""
    volumes: set[str] = set()
    for at, volume in enumerate(spec.get("volumes") or ()):
        yield from _name(volume, f"{path}.volumes[{at}].name", volumes)
    claims: set[str] = set()
    for at, claim in enumerate(spec.get("resourceClaims") or ()):
        yield from _name(claim, f"{path}.resourceClaims[{at}].name", claims)
    names: set[str] = set()
    host_ports: set[str] = set()
    for container, group, at in containers_of(spec):
        where = f"{path}.{group}[{at}]"
        if container.get("name") in names:
            yield field.duplicate(f"{where}.name", container["name"])
        names.add(container.get("name", ""))
        for number, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
            if claim.get("name") not in claims:
                text = "must be one of the names in pod.spec.resourceClaims" + ("" if claims else " which is empty")
                yield field.not_found(f"{where}.resources.claims[{number}]", claim.get("name", ""), text)
        places = set()
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            name, place = mount.get("name", ""), mount.get("mountPath", "")
            if not name:
                yield field.required(f"{where}.volumeMounts[{number}].name")
            elif name not in volumes:
                yield field.not_found(f"{where}.volumeMounts[{number}].name", name)
            if place and place in places:
                yield field.invalid(f"{where}.volumeMounts[{number}].mountPath", place, "must be unique")
            places.add(place)
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            port_path = f"{where}.ports[{number}].hostPort"
            if spec.get("hostNetwork") and port["hostPort"] != port.get("containerPort"):
                yield field.invalid(port_path, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")
            if group == "containers":
                wanted = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if wanted in host_ports:
                    yield field.duplicate(port_path, wanted)
                host_ports.add(wanted)
    system = spec.get("os")
    if system is not None and system.get("name") not in ("linux", "windows"):
        yield field.not_supported(f"{path}.os", system.get("name", ""), ("linux", "windows"))
    if spec.get("nodeSelector"):
        yield from label_problems(spec["nodeSelector"], f"{path}.nodeSelector")
    gates = set()
    for at, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        yield from field.invalid_each(f"{path}.schedulingGates[{at}]", name, qualified_name_complaints(name))
        if name in gates:
            yield field.duplicate(f"{path}.schedulingGates[{at}]", name)
        gates.add(name)
    if gates and spec.get("nodeName"):
        yield field.forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
    if spec.get("topologySpreadConstraints"):
        yield from _spread_pairs(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    if spec.get("overhead"):
        yield from _amounts({"limits": spec["overhead"]}, f"{path}.overhead")
    if spec.get("resources"):
        yield from _whole_pod(spec, path)


def _name(named: Object, path: str, names: set[str]) -> Iterator[Cause]:
    """Yield what is wrong with a name that must be unique in its list; note it in `names`."""
    name = named.get("name", "")
    if not name:
        yield field.required(path)
    elif name in names:
        yield field.duplicate(path, name)
    else:
        names.add(name)
        yield from field.invalid_each(path, name, dns_label_faults(name))


# --- containers


def _container(container: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with image, amounts and probes."""
    image = container.get("image", "")
    if image != image.strip():
        yield field.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    if container.get("resources"):
        yield from _amounts(container["resources"], f"{path}.resources")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None and not probe.keys() & {"exec", "httpGet", "tcpSocket", "grpc"}:
            yield field.required(f"{path}.{name}", "must specify a handler type")


def _container_port(port: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the name of a port: an IANA service name."""
    name = port.get("name")
    if not name:
        return
    if len(name) > 15:
        yield field.invalid(f"{path}.name", name, "must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        text = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
        yield field.invalid(f"{path}.name", name, text)
    if not re.search(r"[a-z]", name):
        yield field.invalid(f"{path}.name", name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield field.invalid(f"{path}.name", name, "must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        yield field.invalid(f"{path}.name", name, "must not begin or end with a hyphen")


def _amounts(resources: Object, path: str, whole: bool = False) -> Iterator[Cause]:
    """Yield what is wrong with requests and limits, of a container or of a pod as a whole.

    Native resources may be overcommitted: request below limit, or no limit. Others (devices, huge pages) need request equal to
    limit.
    """
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, wanted in amounts.items():
            yield from _amount(name, wanted, f"{path}.{side}[{name}]", whole)
    for name, wanted in requests.items():
        if name not in limits:
            if not _may_be_overcommitted(name):
                yield field.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif amount(wanted) != amount(limits[name]) and not _may_be_overcommitted(name):
            yield field.invalid(f"{path}.requests", wanted, f"must be equal to {name} limit of {limits[name]}")
        elif amount(wanted) > amount(limits[name]):
            yield field.invalid(f"{path}.requests", wanted, f"must be less than or equal to {name} limit of {limits[name]}")
    named = requests.keys() | limits.keys()
    if any(name.startswith("hugepages-") for name in named) and not named & {"cpu", "memory"}:
        yield field.forbidden(path, "HugePages require cpu or memory")


def _amount(name: str, wanted: str, path: str, whole: bool) -> Iterator[Cause]:
    """Yield what is wrong with one amount: its name, its sign, and for devices a fraction."""
    if whole and name not in ("cpu", "memory") and not name.startswith("hugepages-"):
        yield field.not_supported(path, name, ("cpu", "hugepages-", "memory"))
    elif "/" in name:
        yield from field.invalid_each(path, name, qualified_name_complaints(name))
    elif name not in _COMPUTE and not name.startswith("hugepages-"):
        complaints = qualified_name_complaints(name)
        yield from field.invalid_each(path, name, complaints)
        if not complaints and name not in _QUOTA_ONLY:
            yield field.invalid(path, name, "must be a standard resource type or fully qualified")
        yield field.invalid(path, name, "must be a standard resource for containers")
    if amount(wanted) < 0:
        yield field.invalid(path, wanted, NOT_NEGATIVE)
    elif not whole and not _is_native(name) and amount(wanted) % quantity.NANO:
        yield field.invalid(path, wanted, "must be an integer")


def _is_native(name: str) -> bool:
    """Return whether a resource is Kubernetes' own. Names without a domain are."""
    return "/" not in name or "kubernetes.io/" in name


def _may_be_overcommitted(name: str) -> bool:
    return _is_native(name) and not name.startswith("hugepages-")


def _whole_pod(spec: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the amounts of the pod as a whole: no less than its containers together."""
    whole = spec["resources"]
    yield from _amounts(whole, f"{path}.resources", whole=True)
    for name in ("cpu", "memory"):
        given = (whole.get("requests") or {}).get(name)
        if given is not None:
            parts = [(one.get("resources") or {}).get("requests") or {} for one in spec.get("containers") or ()]
            wanted = sum(amount(part.get(name, "0")) for part in parts)
            if amount(given) < wanted:
                shown = quantity.format_quantity(wanted, quantity.style_of(given))
                text = f"must be greater than or equal to aggregate container requests of {shown}"
                yield field.invalid(f"{path}.resources.requests[{name}]", given, text)


# --- volumes and claims


def _volume(volume: Object, path: str) -> Iterator[Cause]:
    """Yield the sources of a volume beyond the first."""
    for kind in [kind for kind in _VOLUME_KINDS if kind in volume][1:]:
        yield field.forbidden(f"{path}.{kind}", "may not specify more than 1 volume type")


def _resource_claim(claim: Object, path: str) -> Iterator[Cause]:
    """Yield the sources of a claim, unless it has exactly one."""
    sources = [one for one in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(one)]
    if len(sources) > 1:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield field.invalid(path, claim, text)
    elif not sources:
        yield field.invalid(path, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")


# --- where a pod may go


def _toleration(toleration: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a toleration. Lt and Gt are allowed: a scheduler can be configured to understand them."""
    given, value = toleration.get("operator", ""), toleration.get("value", "")
    operator = given or "Equal"
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        yield field.not_supported(f"{path}.operator", given, ("Equal", "Exists"))
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield field.invalid(f"{path}.operator", given, text)
    if operator == "Exists" and value:
        yield field.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator == "Equal":
        yield from field.invalid_each(f"{path}.operator", value, label_value_complaints(value))
    elif operator in ("Lt", "Gt") and not re.fullmatch(r"-?[1-9]\d*|0", value):
        yield field.invalid(f"{path}.value", value, "must be a decimal integer")
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield field.invalid(f"{path}.effect", toleration.get("effect", ""), text)


def _node_selector(selector: Object, path: str) -> Iterator[Cause]:
    if not selector.get("nodeSelectorTerms"):
        yield field.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")


def _node_selector_term(term: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a term. The only field is metadata.name, with one value."""
    for at, one in enumerate(term.get("matchExpressions") or ()):
        yield from _expression(one, f"{path}.matchExpressions[{at}]", _NODE_OPERATORS)
    for at, one in enumerate(term.get("matchFields") or ()):
        where, values = f"{path}.matchFields[{at}]", one.get("values") or []
        if one.get("key") != "metadata.name":
            yield field.invalid(f"{where}.key", one.get("key", ""), "not a valid field selector key")
        if one.get("operator") not in ("In", "NotIn"):
            yield field.invalid(f"{where}.operator", one.get("operator", ""), "not a valid selector operator")
        elif len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield field.required(f"{where}.values", text)
        else:
            yield from field.invalid_each(f"{where}.values[0]", values[0], dns_subdomain_faults(values[0]))


def _label_selector(selector: Object, path: str) -> Iterator[Cause]:
    yield from label_problems(selector.get("matchLabels"), f"{path}.matchLabels")
    for at, one in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression(one, f"{path}.matchExpressions[{at}]", _LABEL_OPERATORS)


def _expression(one: Object, path: str, operators: tuple[str, ...]) -> Iterator[Cause]:
    """Yield what is wrong with one expression of a label or node selector."""
    key, operator, values = one.get("key", ""), one.get("operator", ""), one.get("values") or []
    yield from field.invalid_each(f"{path}.key", key, qualified_name_complaints(key))
    if operator not in operators:
        yield field.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        yield field.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield field.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield field.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    for at, value in enumerate(values):
        yield from field.invalid_each(f"{path}.values[{at}]", value, label_value_complaints(value))


def _affinity_term(term: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a pod affinity term."""
    key, matching, mismatching = term.get("topologyKey", ""), term.get("matchLabelKeys"), term.get("mismatchLabelKeys")
    if not key:
        yield field.required(f"{path}.topologyKey", "can not be empty")
    yield from field.invalid_each(f"{path}.topologyKey", key, qualified_name_complaints(key))
    for name in term.get("namespaces") or ():
        yield from field.invalid_each(f"{path}.namespace", name, dns_label_faults(name))
    for list_name, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        for at, key in enumerate(keys or ()):
            yield from field.invalid_each(f"{path}.{list_name}[{at}]", key, qualified_name_complaints(key))
    for at, key in enumerate(matching or ()):
        if key in (mismatching or ()):
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield field.invalid(f"{path}.matchLabelKeys[{at}]", key, text)
    if (matching or mismatching) and term.get("labelSelector") is None:
        yield field.forbidden(f"{path}.matchLabelKeys", _WITHOUT_SELECTOR)


def _spread_constraint(one: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a topology spread constraint."""
    action = one.get("whenUnsatisfiable", "")
    if not one.get("topologyKey"):
        yield field.required(f"{path}.topologyKey", "can not be empty")
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        yield field.not_supported(f"{path}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
    if one.get("minDomains") is not None and action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield field.invalid(f"{path}.minDomains", one["minDomains"], text)
    if one.get("matchLabelKeys") and one.get("labelSelector") is None:
        yield field.forbidden(f"{path}.matchLabelKeys", _WITHOUT_SELECTOR)


def _spread_pairs(constraints: list[Object], path: str) -> Iterator[Cause]:
    """Yield the constraints that have topology key and action in common with another one."""
    pairs = [(one.get("topologyKey"), one.get("whenUnsatisfiable", "")) for one in constraints]
    for at, pair in enumerate(pairs):
        if pair in pairs[at + 1 :]:
            text = "{" + ", ".join(map(str, pair)) + "}"
            yield field.duplicate(f"{path}[{at}].{{topologyKey, whenUnsatisfiable}}", text)


CHECKS: dict[str, Check] = {
    "PodTemplateSpec": _template,
    "PodSpec": _spec,
    "Container": _container,
    "ContainerPort": _container_port,
    "Volume": _volume,
    "PodResourceClaim": _resource_claim,
    "Toleration": _toleration,
    "NodeSelector": _node_selector,
    "NodeSelectorTerm": _node_selector_term,
    "LabelSelector": _label_selector,
    "PodAffinityTerm": _affinity_term,
    "TopologySpreadConstraint": _spread_constraint,
}


# --- changes


def changed_pod_problems(new: Object, old: Object, subresource: str) -> list[Cause]:
    """Return what a change to an existing pod may not do.

    Images, tolerations (more of them) and the deadline (sooner) may change. While a pod has scheduling gates they may be
    removed, and where it may go can be narrowed. Everything else is compared as a whole.
    """
    after, before = new["spec"], old["spec"]
    if subresource == "ephemeralcontainers":
        return list(_ephemeral_changes(after, before))
    causes = []
    held = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for at, gate in enumerate(after.get("schedulingGates") or ()):
        if gate.get("name") not in held:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            causes.append(field.forbidden(f"spec.schedulingGates[{at}].name", text))
    path, deadline, wanted = (
        "spec.activeDeadlineSeconds",
        before.get("activeDeadlineSeconds"),
        after.get("activeDeadlineSeconds"),
    )
    if deadline is not None and wanted is None:
        causes.append(field.invalid(path, None, "must not update from a positive integer to nil value"))
    elif deadline is not None and wanted > deadline:
        causes.append(field.invalid(path, wanted, "must be less than or equal to previous value"))
    tolerations = [_without(one, "tolerationSeconds") for one in after.get("tolerations") or ()]
    if any(_without(one, "tolerationSeconds") not in tolerations for one in before.get("tolerations") or ()):
        text = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(field.forbidden("spec.tolerations", text))
    fixed = [_fixed_part(spec, subresource) for spec in (after, before)]
    if held:  # while a pod is gated, where it may go can still be narrowed
        for part in fixed:
            part.pop("nodeSelector", None)
            part["affinity"] = _without(part.get("affinity") or {}, "nodeAffinity")
        selector = after.get("nodeSelector") or {}
        if any(selector.get(key) != value for key, value in (before.get("nodeSelector") or {}).items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            causes.append(field.invalid("spec.nodeSelector", selector, text))
    if fixed[0] != fixed[1]:
        fields = sorted(key for key in fixed[0].keys() | fixed[1].keys() if fixed[0].get(key) != fixed[1].get(key))
        text = (
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
            f"\nchanged: {', '.join(fields)}"
        )
        causes.append(field.forbidden("spec", text))
    return causes


def _ephemeral_changes(new: Object, old: Object) -> Iterator[Cause]:
    """Yield what is wrong with ephemeral containers: they can only be added."""
    path = "spec.ephemeralContainers"
    running = {one["name"] for one, _, _ in containers_of(new)}
    seen = set(running)
    for at, one in enumerate(new.get("ephemeralContainers") or ()):
        yield from _name(one, f"{path}[{at}].name", seen)
        if not one.get("image"):
            yield field.required(f"{path}[{at}].image")
        target = one.get("targetContainerName")
        if target and target not in running:
            yield field.not_found(f"{path}[{at}].targetContainerName", target)
    there = {one.get("name"): one for one in new.get("ephemeralContainers") or ()}
    for one in old.get("ephemeralContainers") or ():
        if one["name"] not in there:
            yield field.forbidden(path, f'existing ephemeral containers "{one["name"]}" may not be removed\n')
        elif there[one["name"]] != one:
            yield field.forbidden(path, f'existing ephemeral containers "{one["name"]}" may not be changed')


def _without(obj: Object, *names: str) -> Any:
    """Return an object without some fields."""
    return {key: value for key, value in obj.items() if key not in names}


def _fixed_part(spec: Object, subresource: str) -> Object:
    """Return the part of a spec that this way of writing may not change."""
    fixed: Object = _without(spec, "activeDeadlineSeconds", "tolerations", "schedulingGates")
    loose = ("resources", "resizePolicy") if subresource == "resize" else ("image",)
    for group in CONTAINER_GROUPS:
        if group in fixed:
            fixed[group] = [_without(one, *loose) for one in fixed[group]]
    if subresource == "resize":
        fixed.pop("resources", None)
    return fixed
