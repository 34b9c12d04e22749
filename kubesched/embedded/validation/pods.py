"""Validation of pods: the fields that scheduling reads, and what a running pod may still change.

In: a defaulted pod, and on update the one it replaces. Out: a cause for every field that is wrong.
"""

from __future__ import annotations

import re
from typing import Any

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
from kubesched.embedded.validation.containers import GROUPS, container_problems, one_of, resource_problems, whole_pod_problems
from kubesched.embedded.validation.naming import (
    dns_label_faults,
    dns_subdomain_faults,
    is_label_key,
    is_label_value,
    label_value_faults,
    qualified_name_faults,
)
from kubesched.embedded.validation.volumes import claim_problems, volume_problems

_CHOICES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_NAMES = {
    "nodeName": dns_subdomain_faults,
    "hostname": dns_label_faults,
    "subdomain": dns_label_faults,
    "serviceAccountName": dns_subdomain_faults,
}
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_TOLERATION_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_problems(pod: Object) -> list[Cause]:
    """Return what is wrong with a pod as a whole."""
    return _spec_problems(pod["spec"], "spec")


def template_problems(template: Object, path: str) -> list[Cause]:
    """Return what is wrong with a pod template."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    causes = []
    for key in labels:
        if not is_label_key(key):
            causes += invalid_values(f"{path}.labels", key, qualified_name_faults(key))
    if template["spec"].get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        causes.append(forbidden_field(f"{path}.spec.ephemeralContainers", text))
    return causes + _spec_problems(template["spec"], f"{path}.spec")


def _spec_problems(spec: Object, path: str) -> list[Cause]:
    causes = container_problems(spec, path) + whole_pod_problems(spec, path)
    for field, allowed in _CHOICES.items():
        causes += one_of(spec, field, path, allowed)
    for field, faults_of in _NAMES.items():
        if spec.get(field):
            causes += invalid_values(f"{path}.{field}", spec[field], faults_of(spec[field]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 0 < deadline < 2**31:
        text = "must be between 1 and 2147483647, inclusive"
        causes.append(invalid_value(f"{path}.activeDeadlineSeconds", deadline, text))
    system = spec.get("os")
    if system is not None and system.get("name") not in ("linux", "windows"):
        causes.append(not_supported(f"{path}.os", system.get("name", ""), ("linux", "windows")))
    for key, value in (spec.get("nodeSelector") or {}).items():
        if not is_label_key(key):
            causes += invalid_values(f"{path}.nodeSelector", key, qualified_name_faults(key))
        if not is_label_value(value):
            causes += invalid_values(f"{path}.nodeSelector", value, label_value_faults(value))
    for at, toleration in enumerate(spec.get("tolerations") or ()):
        causes += _toleration_problems(toleration, f"{path}.tolerations[{at}]")
    causes += _affinity_problems(spec.get("affinity") or {}, f"{path}.affinity")
    causes += _spread_problems(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    causes += _gate_problems(spec, path)
    causes += volume_problems(spec, path) + claim_problems(spec, path)
    if spec.get("overhead"):
        causes += resource_problems({"limits": spec["overhead"]}, f"{path}.overhead")
    return causes


def _toleration_problems(toleration: Object, path: str) -> list[Cause]:
    causes = []
    if toleration.get("operator") not in (None, "", *_TOLERATION_OPERATORS):
        causes.append(not_supported(f"{path}.operator", toleration["operator"], _TOLERATION_OPERATORS[:2]))
    causes += one_of(toleration, "effect", path, _EFFECTS)
    key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
    if key and not is_label_key(key):
        causes += invalid_values(f"{path}.key", key, qualified_name_faults(key))
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append(invalid_value(f"{path}.operator", toleration.get("operator", ""), text))
    if operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        causes.append(invalid_value(f"{path}.operator", toleration["value"], text))
    elif operator == "Equal" and not is_label_value(toleration.get("value", "")):
        causes += invalid_values(f"{path}.operator", toleration["value"], label_value_faults(toleration["value"]))
    elif operator in ("Lt", "Gt") and not re.fullmatch(r"-?[1-9]\d*|0", toleration.get("value", "")):
        causes.append(invalid_value(f"{path}.value", toleration.get("value", ""), "must be a decimal integer"))
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        causes.append(invalid_value(f"{path}.effect", toleration.get("effect", ""), text))
    return causes


def _affinity_problems(affinity: Object, path: str) -> list[Cause]:
    causes = _node_affinity_problems(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for at, term in enumerate(rules.get(_REQUIRED) or ()):
            causes += _pod_term_problems(term, f"{path}.{kind}.{_REQUIRED}[{at}]")
        for at, weighted in enumerate(rules.get(_PREFERRED) or ()):
            where = f"{path}.{kind}.{_PREFERRED}[{at}]"
            causes += _weight_problems(weighted, where)
            causes += _pod_term_problems(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    return causes


def _node_affinity_problems(affinity: Object, path: str) -> list[Cause]:
    causes = []
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        where = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not needed.get("nodeSelectorTerms"):
            causes.append(required(where, "must have at least one node selector term"))
        for at, term in enumerate(needed.get("nodeSelectorTerms") or ()):
            causes += _node_term_problems(term, f"{where}[{at}]")
    for at, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{at}]"
        causes += _weight_problems(weighted, where)
        causes += _node_term_problems(weighted.get("preference") or {}, f"{where}.preference")
    return causes


def _node_term_problems(term: Object, path: str) -> list[Cause]:
    causes = []
    for at, one in enumerate(term.get("matchExpressions") or ()):
        causes += _expression_problems(one, f"{path}.matchExpressions[{at}]", _NODE_OPERATORS)
    for at, one in enumerate(term.get("matchFields") or ()):
        where = f"{path}.matchFields[{at}]"
        if one.get("key") != "metadata.name":
            causes.append(invalid_value(f"{where}.key", one.get("key", ""), "not a valid field selector key"))
        values = one.get("values") or []
        if one.get("operator") not in ("In", "NotIn"):
            causes.append(invalid_value(f"{where}.operator", one.get("operator", ""), "not a valid selector operator"))
        elif len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            causes.append(required(f"{where}.values", text))
        else:
            causes += invalid_values(f"{where}.values[0]", values[0], dns_subdomain_faults(values[0]))
    return causes


def _expression_problems(one: Object, path: str, operators: tuple[str, ...]) -> list[Cause]:
    causes = []
    operator, values = one.get("operator", ""), one.get("values") or []
    if not is_label_key(one.get("key", "")):
        causes += invalid_values(f"{path}.key", one.get("key", ""), qualified_name_faults(one.get("key", "")))
    if operator not in operators:
        causes.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        causes.append(forbidden_field(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt") and len(values) != 1:
        causes.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    for at, value in enumerate(values):
        if not is_label_value(value):
            causes += invalid_values(f"{path}.values[{at}]", value, label_value_faults(value))
    return causes


def selector_problems(selector: Any, path: str) -> list[Cause]:
    """Return what is wrong with a LabelSelector; none at all is fine."""
    causes = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        if not is_label_key(key):
            causes += invalid_values(f"{path}.matchLabels", key, qualified_name_faults(key))
        if not is_label_value(value):
            causes += invalid_values(f"{path}.matchLabels", value, label_value_faults(value))
    for at, one in enumerate((selector or {}).get("matchExpressions") or ()):
        causes += _expression_problems(one, f"{path}.matchExpressions[{at}]", _LABEL_OPERATORS)
    return causes


def _pod_term_problems(term: Object, path: str) -> list[Cause]:
    causes = selector_problems(term.get("labelSelector"), f"{path}.labelSelector")
    causes += selector_problems(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    key = term.get("topologyKey", "")
    if not key:
        causes.append(required(f"{path}.topologyKey", "can not be empty"))
    if not is_label_key(key):
        causes += invalid_values(f"{path}.topologyKey", key, qualified_name_faults(key))
    for name in term.get("namespaces") or ():
        causes += invalid_values(f"{path}.namespace", name, dns_label_faults(name))
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        for at, key in enumerate(term.get(field) or ()):
            causes += invalid_values(f"{path}.{field}[{at}]", key, qualified_name_faults(key))
    for at, key in enumerate(term.get("matchLabelKeys") or ()):
        if key in (term.get("mismatchLabelKeys") or ()):
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            causes.append(invalid_value(f"{path}.matchLabelKeys[{at}]", key, text))
    if (term.get("matchLabelKeys") or term.get("mismatchLabelKeys")) and term.get("labelSelector") is None:
        causes.append(forbidden_field(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set"))
    return causes


def _weight_problems(weighted: Object, path: str) -> list[Cause]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _spread_problems(constraints: list[Object], path: str) -> list[Cause]:
    causes = []
    pairs = [(one.get("topologyKey"), one.get("whenUnsatisfiable", "")) for one in constraints]
    for at, one in enumerate(constraints):
        where = f"{path}[{at}]"
        if one.get("maxSkew", 0) <= 0:
            causes.append(invalid_value(f"{where}.maxSkew", one.get("maxSkew", 0), "must be greater than zero"))
        if not one.get("topologyKey"):
            causes.append(required(f"{where}.topologyKey", "can not be empty"))
        action = one.get("whenUnsatisfiable", "")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            causes.append(not_supported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        least = one.get("minDomains")
        if least is not None and least <= 0:
            causes.append(invalid_value(f"{where}.minDomains", least, "must be greater than zero"))
        if least is not None and action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            causes.append(invalid_value(f"{where}.minDomains", least, text))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            causes += one_of(one, field, where, ("Honor", "Ignore"))
        if pairs[at] in pairs[at + 1 :]:
            pair = "{" + ", ".join(map(str, pairs[at])) + "}"
            causes.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", pair))
        causes += selector_problems(one.get("labelSelector"), f"{where}.labelSelector")
        if one.get("matchLabelKeys") and one.get("labelSelector") is None:
            text = "must not be specified when labelSelector is not set"
            causes.append(forbidden_field(f"{where}.matchLabelKeys", text))
    return causes


def _gate_problems(spec: Object, path: str) -> list[Cause]:
    causes = []
    seen = set()
    for at, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        if not is_label_key(name):
            causes += invalid_values(f"{path}.schedulingGates[{at}]", name, qualified_name_faults(name))
        if name in seen:
            causes.append(duplicate(f"{path}.schedulingGates[{at}]", name))
        seen.add(name)
    if seen and spec.get("nodeName"):
        causes.append(forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return causes


def changed_pod_problems(new: Object, old: Object, subresource: str) -> list[Cause]:
    """Return what a change to an existing pod may not do."""
    if subresource == "ephemeralcontainers":
        return _ephemeral_changes(new["spec"], old["spec"])
    after, before = _fixed_part(new["spec"], subresource), _fixed_part(old["spec"], subresource)
    causes = _gate_changes(new["spec"], old["spec"]) + _deadline_changes(new["spec"], old["spec"])
    tolerations = [_without_seconds(one) for one in new["spec"].get("tolerations") or ()]
    if any(_without_seconds(one) not in tolerations for one in old["spec"].get("tolerations") or ()):
        text = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(forbidden_field("spec.tolerations", text))
    if old["spec"].get("schedulingGates"):  # while a pod is gated, where it may go can still be narrowed
        for part in (after, before):
            part.pop("nodeSelector", None)
            _drop_node_affinity(part)
        selector = new["spec"].get("nodeSelector") or {}
        if any(selector.get(key) != value for key, value in (old["spec"].get("nodeSelector") or {}).items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            causes.append(invalid_value("spec.nodeSelector", selector, text))
    if after != before:
        fields = sorted(key for key in after.keys() | before.keys() if after.get(key) != before.get(key))
        text = (
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
            f"\nchanged: {', '.join(fields)}"
        )
        causes.append(forbidden_field("spec", text))
    return causes


def _ephemeral_changes(new: Object, old: Object) -> list[Cause]:
    """Ephemeral containers can be added, under names and for targets that make sense, and nothing else."""
    path, causes = "spec.ephemeralContainers", []
    running = {one["name"] for group in GROUPS for one in new.get(group) or ()}
    seen = set(running)
    for at, one in enumerate(new.get("ephemeralContainers") or ()):
        name, target = one.get("name", ""), one.get("targetContainerName")
        if not name:
            causes.append(required(f"{path}[{at}].name"))
        elif name in seen:
            causes.append(duplicate(f"{path}[{at}].name", name))
        else:
            causes += invalid_values(f"{path}[{at}].name", name, dns_label_faults(name))
        seen.add(name)
        if not one.get("image"):
            causes.append(required(f"{path}[{at}].image"))
        if target and target not in running:
            causes.append(unknown_name(f"{path}[{at}].targetContainerName", target))
    there = {one.get("name"): one for one in new.get("ephemeralContainers") or ()}
    for one in old.get("ephemeralContainers") or ():
        if one["name"] not in there:
            causes.append(forbidden_field(path, f'existing ephemeral containers "{one["name"]}" may not be removed\n'))
        elif there[one["name"]] != one:
            causes.append(forbidden_field(path, f'existing ephemeral containers "{one["name"]}" may not be changed'))
    return causes


def _gate_changes(new: Object, old: Object) -> list[Cause]:
    held = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    causes = []
    for at, gate in enumerate(new.get("schedulingGates") or ()):
        if gate.get("name") not in held:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            causes.append(forbidden_field(f"spec.schedulingGates[{at}].name", text))
    return causes


def _deadline_changes(new: Object, old: Object) -> list[Cause]:
    path, before, after = (
        "spec.activeDeadlineSeconds",
        old.get("activeDeadlineSeconds"),
        new.get("activeDeadlineSeconds"),
    )
    if before is None:
        return []
    if after is None:
        return [invalid_value(path, None, "must not update from a positive integer to nil value")]
    return [] if after <= before else [invalid_value(path, after, "must be less than or equal to previous value")]


def _without_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _drop_node_affinity(spec: Object) -> None:
    kept = {key: value for key, value in (spec.pop("affinity", None) or {}).items() if key != "nodeAffinity"}
    if kept:
        spec["affinity"] = kept


def _fixed_part(spec: Object, subresource: str) -> Object:
    free = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    fixed = {key: value for key, value in spec.items() if key not in free}
    loose = {"image"} if subresource != "resize" else {"resources", "resizePolicy"}
    for group in GROUPS:
        if group in fixed:
            fixed[group] = [{k: v for k, v in one.items() if k not in loose} for one in fixed[group]]
    if subresource == "resize":
        fixed.pop("resources", None)
    return fixed
