"""The columns of limits, quotas, autoscalers, networks, access and admission, as `kubectl get` shows them on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kubesched.embedded.admission.amounts import amount
from kubesched.embedded.admission.plugins import DEFAULT_INGRESS_CLASS_ANNOTATION
from kubesched.embedded.printing import cells as p
from kubesched.embedded.printing.columns import AGE, NAME, Column, at, of
from kubesched.embedded.resources import Object
from kubesched.kube.values import quantity

_SHOWN = 3
_CURRENT = "<unknown>"


def _spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def _status(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def _job_spec(obj: Object) -> Object:
    found: Object = (_spec(obj).get("jobTemplate") or {}).get("spec") or {}
    return found


def _job_containers(field: str) -> Any:
    def cell(obj: Object) -> str:
        spec = (_job_spec(obj).get("template") or {}).get("spec") or {}
        return ",".join(one.get(field, "") for one in spec.get("containers") or ())

    return of(cell)


def _last_schedule(obj: Object, now: float) -> str:
    last = _status(obj).get("lastScheduleTime")
    return p.since(last, now) if last else p.NONE


def _scaled(obj: Object) -> str:
    target = _spec(obj).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _metrics(obj: Object) -> str:
    wanted = _spec(obj).get("metrics") or []
    told = _status(obj).get("currentMetrics") or []
    texts = []
    for at_, one in enumerate(wanted):
        field = one.get("type", "")[:1].lower() + one.get("type", "")[1:]
        source = one.get(field) or {}
        held = ((told[at_].get(field) or {}).get("current") or {}) if at_ < len(told) else {}
        target = source.get("target") or {}
        name = f"{source['name']}: " if "name" in source else ""
        if "averageUtilization" in target:
            current = f"{held['averageUtilization']}%" if "averageUtilization" in held else _CURRENT
            texts.append(f"{name}{current}/{target['averageUtilization']}%")
        elif "averageValue" in target:
            mark = " (avg)" if field in ("external", "object") else ""
            texts.append(f"{name}{held.get('averageValue', _CURRENT)}/{target['averageValue']}{mark}")
        else:
            texts.append(f"{name}{held.get('value', _CURRENT)}/{target.get('value', '<auto>')}")
    if not texts:
        return p.NONE
    rest = len(texts) - 2
    return ", ".join(texts[:2]) + (f" + {rest} more..." if rest > 0 else "")


def _quota(obj: Object, limits: bool) -> str:
    hard, used = _status(obj).get("hard") or {}, _status(obj).get("used") or {}
    names = [name for name in sorted(hard) if name.startswith("limits.") == limits]
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


def _hosts(obj: Object) -> str:
    rules = _spec(obj).get("rules") or []
    hosts = [one["host"] for one in rules if one.get("host")]
    text = ",".join(hosts[:_SHOWN]) or "*"
    return f"{text} + {len(rules) - _SHOWN} more..." if len(hosts) > _SHOWN else text


def _parameters(obj: Object) -> str:
    held = _spec(obj).get("parameters")
    if not held:
        return p.NONE
    group = f".{held['apiGroup']}" if held.get("apiGroup") else ""
    return f"{held.get('kind', '')}{group}/{held.get('name', '')}"


def _class_name(obj: Object) -> str:
    is_default = (obj["metadata"].get("annotations") or {}).get(DEFAULT_INGRESS_CLASS_ANNOTATION) == "true"
    return str(obj["metadata"]["name"]) + (" (default)" if is_default else "")


def _limited(values: list[str]) -> str:
    if not values:
        return "<unset>"
    rest = len(values) - _SHOWN
    return ",".join(values[:_SHOWN]) + (f" + {rest} more..." if rest > 0 else "")


def _subjects(kind: str) -> Any:
    def cell(obj: Object) -> str:
        held = [one for one in obj.get("subjects") or () if one.get("kind") == kind]
        names = [f"{one.get('namespace', '')}/{one['name']}" if kind == "ServiceAccount" else one["name"] for one in held]
        return ", ".join(names)

    return of(cell)


def _role(obj: Object) -> str:
    held = obj.get("roleRef") or {}
    return f"{held.get('kind', '')}/{held.get('name', '')}"


def _param_kind(obj: Object) -> str:
    held = _spec(obj).get("paramKind")
    return f"{held.get('apiVersion', '')}/{held.get('kind', '')}" if held else "<unset>"


def _param_ref(obj: Object) -> str:
    held = _spec(obj).get("paramRef")
    return f"{held.get('namespace') or '*'}/{held.get('name') or '*'}" if held else "<unset>"


def _api_service(obj: Object) -> str:
    held = _spec(obj).get("service")
    return f"{held.get('namespace', '')}/{held.get('name', '')}" if held else "Local"


def _available(obj: Object) -> str:
    for one in _status(obj).get("conditions") or ():
        if one.get("type") == "Available":
            return "True" if one.get("status") == "True" else f"False ({one.get('reason', '')})"
    return "Unknown"


def _usage_columns(used: Callable[[Object], list[dict[str, str]]]) -> list[Column]:
    def total(name: str, obj: Object) -> str:
        texts = [one[name] for one in used(obj) if name in one]
        return quantity.format_quantity(sum(map(amount, texts)), quantity.style_of(texts[0] if texts else "0"))

    window = Column("Window", at("window"))
    return [Column(name, of(partial(total, name))) for name in ("cpu", "memory")] + [window]


_CREATED = Column("Created At", at("metadata", "creationTimestamp"))
_BINDING = [
    NAME,
    Column("Role", of(_role)),
    AGE,
    Column("Users", _subjects("User"), True),
    Column("Groups", _subjects("Group"), True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), True),
]
_WEBHOOKS = [NAME, Column("Webhooks", of(lambda obj: len(obj.get("webhooks") or ())), kind="integer"), AGE]
_POLICY_BINDING = [NAME, Column("PolicyName", at("spec", "policyName")), Column("ParamRef", of(_param_ref)), AGE]
COLUMNS: dict[str, list[Column]] = {
    "limitranges": [NAME, _CREATED],
    "resourcequotas": [
        NAME,
        Column("Request", of(lambda obj: _quota(obj, limits=False))),
        Column("Limit", of(lambda obj: _quota(obj, limits=True))),
        AGE,
    ],
    "cronjobs.batch": [
        NAME,
        Column("Schedule", at("spec", "schedule")),
        Column("Timezone", at("spec", "timeZone", default=p.NONE)),
        Column("Suspend", of(lambda obj: "True" if _spec(obj).get("suspend") else "False"), kind="boolean"),
        Column("Active", of(lambda obj: len(_status(obj).get("active") or ())), kind="integer"),
        Column("Last Schedule", _last_schedule),
        AGE,
        Column("Containers", _job_containers("name"), True),
        Column("Images", _job_containers("image"), True),
        Column("Selector", of(lambda obj: p.selector_text(_job_spec(obj).get("selector"))), True),
    ],
    "horizontalpodautoscalers.autoscaling": [
        NAME,
        Column("Reference", of(_scaled)),
        Column("Targets", of(_metrics)),
        Column("MinPods", of(lambda obj: str(_spec(obj).get("minReplicas", "<unset>")))),
        Column("MaxPods", at("spec", "maxReplicas", default=0)),
        Column("Replicas", at("status", "currentReplicas", default=0)),
        AGE,
    ],
    "ingresses.networking.k8s.io": [
        NAME,
        Column("Class", at("spec", "ingressClassName", default=p.NONE)),
        Column("Hosts", of(_hosts)),
        Column("Address", of(lambda obj: p.load_balancer_text(_status(obj).get("loadBalancer")))),
        Column("Ports", of(lambda obj: "80, 443" if _spec(obj).get("tls") else "80")),
        AGE,
    ],
    "ingressclasses.networking.k8s.io": [
        Column("Name", of(_class_name)),
        Column("Controller", at("spec", "controller")),
        Column("Parameters", of(_parameters)),
        AGE,
    ],
    "networkpolicies.networking.k8s.io": [
        NAME,
        Column("Pod-Selector", of(lambda obj: p.selector_text(_spec(obj).get("podSelector")))),
        AGE,
    ],
    "runtimeclasses.node.k8s.io": [NAME, Column("Handler", at("handler")), AGE],
    "endpointslices.discovery.k8s.io": [
        NAME,
        Column("AddressType", at("addressType")),
        Column("Ports", of(lambda obj: _limited([str(one.get("port", "*")) for one in obj.get("ports") or ()]))),
        Column(
            "Endpoints",
            of(lambda obj: _limited([ip for one in obj.get("endpoints") or () for ip in one.get("addresses") or ()])),
        ),
        AGE,
    ],
    "roles.rbac.authorization.k8s.io": [NAME, _CREATED],
    "clusterroles.rbac.authorization.k8s.io": [NAME, _CREATED],
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": [
        NAME,
        Column("Validations", of(lambda obj: len(_spec(obj).get("validations") or ())), kind="integer"),
        Column("ParamKind", of(_param_kind)),
        AGE,
    ],
    "mutatingadmissionpolicies.admissionregistration.k8s.io": [
        NAME,
        Column("Mutations", of(lambda obj: len(_spec(obj).get("mutations") or ())), kind="integer"),
        Column("ParamKind", of(_param_kind)),
        AGE,
    ],
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "nodes.metrics.k8s.io": [NAME, *_usage_columns(lambda obj: [obj.get("usage") or {}])],
    "pods.metrics.k8s.io": [NAME, *_usage_columns(lambda obj: [one.get("usage") or {} for one in obj.get("containers") or ()])],
    "apiservices.apiregistration.k8s.io": [
        NAME,
        Column("Service", of(_api_service)),
        Column("Available", of(_available)),
        AGE,
    ],
}
