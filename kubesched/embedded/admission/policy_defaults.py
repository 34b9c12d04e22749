"""Defaults of CronJobs, limits, autoscalers, network policies and admission: what a manifest leaves out.

In: a settled object. Out: the same object, in place. Filling twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.embedded.resources import Object

_DEFAULT_UTILIZATION = 80
_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def missing(obj: Object, **values: Any) -> None:
    """Fill in the fields that are not there."""
    for name, value in values.items():
        if name not in obj:
            obj[name] = value


def _limit_range(obj: Object) -> None:
    for item in obj.setdefault("spec", {}).setdefault("limits", []):
        if item.get("type") != "Container":
            continue
        for target, source in (("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")):
            for name, amount in (item.get(source) or {}).items():
                item.setdefault(target, {}).setdefault(name, amount)


def _autoscaler(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        for side, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            held = behavior.setdefault(side, {})
            for name, value in rules.items():
                held.setdefault(name, [dict(one) for one in value] if isinstance(value, list) else value)


def _network_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _ingress_class(obj: Object) -> None:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _webhooks(obj: Object) -> None:
    for hook in obj.get("webhooks") or ():
        missing(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        missing(hook, namespaceSelector={}, objectSelector={})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _admission_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _match_resources(spec.get("matchConstraints"))


def _admission_policy_binding(obj: Object) -> None:
    _match_resources(obj.setdefault("spec", {}).get("matchResources"))


def _match_resources(constraints: Object | None) -> None:
    if constraints is None:
        return
    missing(constraints, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in [*(constraints.get("resourceRules") or ()), *(constraints.get("excludeResourceRules") or ())]:
        rule.setdefault("scope", "*")


def _api_service(obj: Object) -> None:
    service = obj.setdefault("spec", {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


_ADMISSION = "admissionregistration.k8s.io"
DEFAULTS: dict[str, Callable[[Object], None]] = {
    "limitranges": _limit_range,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "networkpolicies.networking.k8s.io": _network_policy,
    "ingressclasses.networking.k8s.io": _ingress_class,
    f"validatingwebhookconfigurations.{_ADMISSION}": _webhooks,
    f"mutatingwebhookconfigurations.{_ADMISSION}": _webhooks,
    f"validatingadmissionpolicies.{_ADMISSION}": _admission_policy,
    f"mutatingadmissionpolicies.{_ADMISSION}": _admission_policy,
    f"validatingadmissionpolicybindings.{_ADMISSION}": _admission_policy_binding,
    f"mutatingadmissionpolicybindings.{_ADMISSION}": _admission_policy_binding,
    "apiservices.apiregistration.k8s.io": _api_service,
}
