"""Validation of CronJobs, limits, quotas, autoscalers, ingresses and runtime classes.

In: a defaulted object. Out: a cause for every field that is wrong, worded as kube-apiserver words it.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.embedded.admission.qos import amount
from kubesched.embedded.http.refusals import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    not_supported,
    required,
)
from kubesched.embedded.resources import Object
from kubesched.embedded.validation.cron import ScheduleError, read_schedule, zone_named
from kubesched.embedded.validation.naming import dns_label_faults, qualified_name_faults
from kubesched.embedded.validation.pods import template_problems

_CRON_NAME_LENGTH = 52  # a job's name ends with eleven characters more, and must stay a label
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_SCOPES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_QUOTA_NAMES = frozenset(
    (
        *("cpu", "memory", "ephemeral-storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets"),
        *("configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage"),
        *(f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")),
    )
)


def cron_job_problems(obj: Object) -> list[Cause]:
    """Return what is wrong with a CronJob."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    causes = []
    if len(name) > _CRON_NAME_LENGTH:
        causes.append(invalid_value("metadata.name", name, f"must be no more than {_CRON_NAME_LENGTH} characters"))
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if not schedule:
        causes.append(required("spec.schedule"))
    else:
        causes += _readable("spec.schedule", schedule, lambda: read_schedule(schedule))
        if "TZ" in schedule:
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            causes.append(invalid_value("spec.schedule", schedule, text))
    if zone is not None:
        causes += _readable("spec.timeZone", zone, lambda: zone_named(zone or " "))
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec.get(field, 0) < 0:
            causes.append(invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0"))
    if spec.get("concurrencyPolicy") not in _CONCURRENCY:
        causes.append(not_supported("spec.concurrencyPolicy", spec.get("concurrencyPolicy", ""), _CONCURRENCY))
    path, job = "spec.jobTemplate.spec", spec["jobTemplate"]["spec"]
    causes += template_problems(job["template"], f"{path}.template")
    if job["template"]["spec"].get("restartPolicy") not in ("OnFailure", "Never"):
        causes.append(required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return causes


def _readable(path: str, text: str, read: Callable[[], object]) -> list[Cause]:
    try:
        read()
    except ScheduleError as error:
        return [invalid_value(path, text, str(error))]
    return []


def _limit_range(obj: Object) -> list[Cause]:
    causes = []
    seen = set()
    for at, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{at}]", item.get("type", "")
        if kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            causes += invalid_values(f"{path}.type", kind, qualified_name_faults(kind))
        if kind in seen:
            causes.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind == "Pod":
            for field in ("default", "defaultRequest"):
                if item.get(field):
                    causes.append(forbidden_field(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
        if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(one) or {}) for one in ("min", "max")):
            text = "either minimum or maximum storage value is required, but neither was provided"
            causes.append(required(f"{path}.limits", text))
        causes += _limit_orders(item, path)
    return causes


# What may not be more than what; where it is, which field is blamed and how the two are called.
_ORDERS = (
    ("min", "max", "min", "min value {0} is greater than max value {1}"),
    ("min", "defaultRequest", "defaultRequest", "min value {0} is greater than default request value {1}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {0} is greater than max value {1}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {0} is greater than default limit value {1}"),
    ("min", "default", "min", "min value {0} is greater than default value {1}"),
    ("default", "max", "max", "default value {0} is greater than max value {1}"),
)


def _limit_orders(item: Object, path: str) -> list[Cause]:
    causes = []
    for lower, upper, blamed, text in _ORDERS:
        below, above = item.get(lower) or {}, item.get(upper) or {}
        for name in sorted(below.keys() & above.keys()):
            if amount(below[name]) > amount(above[name]):
                field = "default" if blamed in ("min", "max") and "default" in (lower, upper) else blamed
                value = below[name] if blamed == lower else above[name]
                causes.append(invalid_value(f"{path}.{field}[{name}]", value, text.format(below[name], above[name])))
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        if amount(ratio) < amount("1"):
            causes.append(invalid_value(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1"))
    return causes


def _resource_quota(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = []
    for name, hard in (spec.get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        causes += invalid_values(path, name, qualified_name_faults(name))
        if "/" not in name and name not in _QUOTA_NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
            causes.append(invalid_value(path, name, "must be a standard resource for quota"))
        if amount(hard) < 0:
            causes.append(invalid_value(path, hard, "must be greater than or equal to 0"))
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            causes.append(invalid_value("spec.scopes", scopes, "unsupported scope"))
    if any(pair <= set(scopes) for pair in _OPPOSITES):
        causes.append(invalid_value("spec.scopes", scopes, "conflicting scopes"))
    return causes


def _autoscaler(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    causes = []
    if least < 1:
        causes.append(invalid_value("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 1:
        causes.append(invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1"))
    elif most < least:
        causes.append(invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    for field in ("kind", "name"):
        if not (spec.get("scaleTargetRef") or {}).get(field):
            causes.append(required(f"spec.scaleTargetRef.{field}"))
    return causes


def _ingress(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = []
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        causes.append(invalid_value("spec", spec, "either `defaultBackend` or `rules` must be specified"))
    for at, rule in enumerate(spec.get("rules") or ()):
        for number, one in enumerate((rule.get("http") or {}).get("paths") or ()):
            path = f"spec.rules[{at}].http.paths[{number}]"
            kind = one.get("pathType")
            if not kind:
                causes.append(required(f"{path}.pathType", "pathType must be specified"))
            elif kind not in _PATH_TYPES:
                causes.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
            elif kind != "ImplementationSpecific" and not str(one.get("path", "")).startswith("/"):
                causes.append(invalid_value(f"{path}.path", one.get("path", ""), "must be an absolute path"))
            backend = one.get("backend") or {}
            if backend.get("service") is not None and backend.get("resource") is not None:
                causes.append(invalid_value(f"{path}.backend", "", "cannot set both resource and service backends"))
    return causes


def _runtime_class(obj: Object) -> list[Cause]:
    handler = obj.get("handler", "")
    return invalid_values("handler", handler, dns_label_faults(handler))


CHECKS: dict[str, Callable[[Object], list[Cause]]] = {
    "cronjobs.batch": cron_job_problems,
    "limitranges": _limit_range,
    "resourcequotas": _resource_quota,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "ingresses.networking.k8s.io": _ingress,
    "runtimeclasses.node.k8s.io": _runtime_class,
}
