"""Validation of pods: the fields that scheduling reads, and what a running pod may still change.

In: a defaulted pod, and on update the one it replaces. Out: a cause for every field that is wrong.
"""

from __future__ import annotations

import re
from typing import Any

from kubesched.apiserver.quality import amount
from kubesched.apiserver.refusals import Cause, duplicate, forbidden_field, invalid_value, not_supported, required
from kubesched.apiserver.resources import Object
from kubesched.apiserver.selectors import is_label_key, is_label_value
from kubesched.apiserver.wording import DNS_LABEL_TEXT, LABEL_KEY_TEXT, LABEL_VALUE_TEXT

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
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
    causes = [invalid_value(f"{path}.labels", key, LABEL_KEY_TEXT) for key in labels if not is_label_key(key)]
    return causes + _spec_problems(template["spec"], f"{path}.spec")


def _spec_problems(spec: Object, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for group in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(group) or ()):
            causes += _container_problems(container, f"{path}.{group}[{at}]", seen)
    causes += _one_of(spec, "restartPolicy", path, ("Always", "OnFailure", "Never"))
    causes += _one_of(spec, "preemptionPolicy", path, ("PreemptLowerPriority", "Never"))
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        causes.append(
            invalid_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
        )
    for key, value in (spec.get("nodeSelector") or {}).items():
        if not is_label_key(key):
            causes.append(invalid_value(f"{path}.nodeSelector", key, LABEL_KEY_TEXT))
        if not is_label_value(value):
            causes.append(invalid_value(f"{path}.nodeSelector", value, LABEL_VALUE_TEXT))
    for at, toleration in enumerate(spec.get("tolerations") or ()):
        causes += _toleration_problems(toleration, f"{path}.tolerations[{at}]")
    causes += _affinity_problems(spec.get("affinity") or {}, f"{path}.affinity")
    causes += _spread_problems(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    causes += _gate_problems(spec, path)
    causes += _volume_problems(spec, path)
    for name, extra in (spec.get("overhead") or {}).items():
        causes += _amount_problems(extra, f"{path}.overhead.{name}")
    return causes


def _container_problems(container: Object, path: str, seen: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    name = container.get("name", "")
    if not name:
        causes.append(required(f"{path}.name"))
    elif not _LABEL.match(name):
        causes.append(invalid_value(f"{path}.name", name, DNS_LABEL_TEXT))
    elif name in seen:
        causes.append(duplicate(f"{path}.name", name))
    seen.add(name)
    if not container.get("image"):
        causes.append(required(f"{path}.image"))
    causes += _one_of(container, "imagePullPolicy", path, ("Always", "IfNotPresent", "Never"))
    for at, port in enumerate(container.get("ports") or ()):
        where = f"{path}.ports[{at}]"
        if "containerPort" not in port:
            causes.append(required(f"{where}.containerPort"))
        for field in ("containerPort", "hostPort"):
            number = port.get(field)
            if number is not None and not (0 < number < 65_536 or (field == "hostPort" and number == 0)):
                causes.append(invalid_value(f"{where}.{field}", number, "must be between 1 and 65535, inclusive"))
        causes += _one_of(port, "protocol", where, ("TCP", "UDP", "SCTP"))
    return causes + _resource_problems(container.get("resources") or {}, f"{path}.resources")


def _resource_problems(resources: Object, path: str) -> list[Cause]:
    causes = []
    for side in ("limits", "requests"):
        for name, asked in (resources.get(side) or {}).items():
            where = f"{path}.{side}[{name}]"
            causes += _amount_problems(asked, where)
            if not is_label_key(name):
                causes.append(invalid_value(where, name, LABEL_KEY_TEXT))
    requests = resources.get("requests") or {}
    for name, limit in (resources.get("limits") or {}).items():
        if name in requests and amount(requests[name]) > amount(limit):
            text = f"must be less than or equal to {name} limit of {limit}"
            causes.append(invalid_value(f"{path}.requests", requests[name], text))
    return causes


def _amount_problems(text: str, path: str) -> list[Cause]:
    if text.startswith("-") and amount(text) < 0:
        return [invalid_value(path, text, "must be greater than or equal to 0")]
    return []


def _toleration_problems(toleration: Object, path: str) -> list[Cause]:
    causes = _one_of(toleration, "operator", path, _TOLERATION_OPERATORS)
    causes += _one_of(toleration, "effect", path, _EFFECTS)
    key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
    if key and not is_label_key(key):
        causes.append(invalid_value(f"{path}.key", key, LABEL_KEY_TEXT))
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append(invalid_value(f"{path}.operator", operator, text))
    if operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        causes.append(invalid_value(f"{path}.operator", toleration["value"], text))
    elif operator == "Equal" and not is_label_value(toleration.get("value", "")):
        causes.append(invalid_value(f"{path}.operator", toleration["value"], LABEL_VALUE_TEXT))
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
        if one.get("operator") not in ("In", "NotIn"):
            causes.append(invalid_value(f"{where}.operator", one.get("operator", ""), "not a valid selector operator"))
        if len(one.get("values") or ()) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            causes.append(required(f"{where}.values", text))
    return causes


def _expression_problems(one: Object, path: str, operators: tuple[str, ...]) -> list[Cause]:
    causes = []
    operator, values = one.get("operator", ""), one.get("values") or []
    if not is_label_key(one.get("key", "")):
        causes.append(invalid_value(f"{path}.key", one.get("key", ""), LABEL_KEY_TEXT))
    if operator not in operators:
        causes.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        causes.append(
            forbidden_field(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        )
    elif operator in ("Gt", "Lt") and len(values) != 1:
        causes.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    for at, value in enumerate(values):
        if not is_label_value(value):
            causes.append(invalid_value(f"{path}.values[{at}]", value, LABEL_VALUE_TEXT))
    return causes


def selector_problems(selector: Any, path: str) -> list[Cause]:
    """Return what is wrong with a LabelSelector; none at all is fine."""
    causes = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        if not is_label_key(key):
            causes.append(invalid_value(f"{path}.matchLabels", key, LABEL_KEY_TEXT))
        if not is_label_value(value):
            causes.append(invalid_value(f"{path}.matchLabels", value, LABEL_VALUE_TEXT))
    for at, one in enumerate((selector or {}).get("matchExpressions") or ()):
        causes += _expression_problems(one, f"{path}.matchExpressions[{at}]", _LABEL_OPERATORS)
    return causes


def _pod_term_problems(term: Object, path: str) -> list[Cause]:
    causes = selector_problems(term.get("labelSelector"), f"{path}.labelSelector")
    causes += selector_problems(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    causes += _topology_key_problems(term, path)
    both = set(term.get("matchLabelKeys") or ()) & set(term.get("mismatchLabelKeys") or ())
    for key in sorted(both):
        causes.append(
            invalid_value(f"{path}.matchLabelKeys", key, "exists in both matchLabelKeys and mismatchLabelKeys")
        )
    if (term.get("matchLabelKeys") or term.get("mismatchLabelKeys")) and term.get("labelSelector") is None:
        causes.append(forbidden_field(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set"))
    return causes


def _topology_key_problems(term: Object, path: str) -> list[Cause]:
    key = term.get("topologyKey", "")
    if not key:
        return [required(f"{path}.topologyKey", "can not be empty")]
    return [] if is_label_key(key) else [invalid_value(f"{path}.topologyKey", key, LABEL_KEY_TEXT)]


def _weight_problems(weighted: Object, path: str) -> list[Cause]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _spread_problems(constraints: list[Object], path: str) -> list[Cause]:
    causes = []
    seen = set()
    for at, one in enumerate(constraints):
        where = f"{path}[{at}]"
        if one.get("maxSkew", 0) <= 0:
            causes.append(invalid_value(f"{where}.maxSkew", one.get("maxSkew", 0), "must be greater than zero"))
        causes += _topology_key_problems(one, where)
        action = one.get("whenUnsatisfiable", "")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            causes.append(not_supported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        least = one.get("minDomains")
        if least is not None and least <= 0:
            causes.append(invalid_value(f"{where}.minDomains", least, "must be greater than 0"))
        if least is not None and action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            causes.append(invalid_value(f"{where}.minDomains", least, text))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            causes += _one_of(one, field, where, ("Honor", "Ignore"))
        pair = (one.get("topologyKey"), action)
        if pair in seen:
            causes.append(
                duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", "{" + ", ".join(map(str, pair)) + "}")
            )
        seen.add(pair)
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
            causes.append(invalid_value(f"{path}.schedulingGates[{at}]", name, LABEL_KEY_TEXT))
        if name in seen:
            causes.append(duplicate(f"{path}.schedulingGates[{at}]", name))
        seen.add(name)
    if seen and spec.get("nodeName"):
        causes.append(forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return causes


def _volume_problems(spec: Object, path: str) -> list[Cause]:
    causes = []
    names = set()
    for at, volume in enumerate(spec.get("volumes") or ()):
        name = volume.get("name", "")
        where = f"{path}.volumes[{at}]"
        if not name:
            causes.append(required(f"{where}.name"))
        elif not _LABEL.match(name):
            causes.append(invalid_value(f"{where}.name", name, DNS_LABEL_TEXT))
        elif name in names:
            causes.append(duplicate(f"{where}.name", name))
        names.add(name)
        if len(volume) > 2:
            causes.append(forbidden_field(where, "may not specify more than 1 volume type"))
    for group in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(group) or ()):
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in names:
                    where = f"{path}.{group}[{at}].volumeMounts[{index}].name"
                    causes.append(Cause("FieldValueNotFound", where, f'Not found: "{mount.get("name", "")}"'))
    return causes


def _one_of(obj: Object, field: str, path: str, allowed: tuple[str, ...]) -> list[Cause]:
    value = obj.get(field)
    return [] if value in (None, "", *allowed) else [not_supported(f"{path}.{field}", value, allowed)]


def changed_pod_problems(new: Object, old: Object, subresource: str) -> list[Cause]:
    """Return what a change to an existing pod may not do."""
    after, before = _fixed_part(new["spec"], subresource), _fixed_part(old["spec"], subresource)
    causes = []
    gates = [[gate.get("name") for gate in pod["spec"].get("schedulingGates") or ()] for pod in (new, old)]
    if set(gates[0]) - set(gates[1]):
        text = "only deletion is allowed, but found new scheduling gate"
        causes.append(forbidden_field("spec.schedulingGates", text))
    tolerations = new["spec"].get("tolerations") or []
    if any(one not in tolerations for one in old["spec"].get("tolerations") or () if "tolerationSeconds" not in one):
        text = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(forbidden_field("spec.tolerations", text))
    if gates[1]:  # while a pod is gated, where it may go can still be narrowed
        for field in ("nodeSelector", "affinity"):
            after.pop(field, None)
            before.pop(field, None)
        selector = new["spec"].get("nodeSelector") or {}
        if any(selector.get(key) != value for key, value in (old["spec"].get("nodeSelector") or {}).items()):
            text = "only additions are allowed while scheduling gates are present"
            causes.append(invalid_value("spec.nodeSelector", selector, text))
    if after != before:
        fields = sorted(key for key in after.keys() | before.keys() if after.get(key) != before.get(key))
        text = (
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
            f"; changed: {', '.join(fields)}"
        )
        causes.append(forbidden_field("spec", text))
    return causes


def _fixed_part(spec: Object, subresource: str) -> Object:
    free = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
    fixed = {key: value for key, value in spec.items() if key not in free}
    loose = {"image"} if subresource != "resize" else {"resources", "resizePolicy"}
    for group in ("containers", "initContainers"):
        if group in fixed:
            fixed[group] = [{k: v for k, v in one.items() if k not in loose} for one in fixed[group]]
    if subresource == "resize":
        fixed.pop("resources", None)
    return fixed
