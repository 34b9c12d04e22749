"""Defaults: what the API fills in where a manifest is silent.

In: a settled object in its storage version. Out: the same object, in place, with the defaults that schedulers, kubectl and our
controllers read. Constant defaults stand with their fields (schema/tables), also those with a simple condition. The others
stand here, one function for each type. Filling in twice changes nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kubesched.embedded.schema.custom_resources import fill_defaults, schema_of
from kubesched.embedded.schema.language import Shape, root_shape
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.schema.walking import Visit, Walk
from kubesched.kube.values import quantity

_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def fill(obj: Object, resource: Resource) -> None:
    """Fill in the defaults of an object."""
    if resource.custom is not None:
        fill_defaults(obj, schema_of(resource))
        return
    shape = root_shape(obj["apiVersion"], obj["kind"])
    if shape is not None:
        _walk(obj, shape)


def _missing(obj: Object, **values: Any) -> None:
    """Set fields that are absent."""
    for name, value in values.items():
        obj.setdefault(name, value)


def _pod(pod: Object) -> None:
    pod["spec"].setdefault("enableServiceLinks", True)


def _pod_spec(spec: Object) -> None:
    """A negative grace period means one second. With hostNetwork a container port is a port of the node too."""
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for group in ("initContainers", "containers", "ephemeralContainers") if spec.get("hostNetwork") else ():
        for port in (port for container in spec.get(group) or () for port in container.get("ports") or ()):
            if "containerPort" in port:
                port.setdefault("hostPort", port["containerPort"])


def _container(container: Object) -> None:
    """An image without a tag, or with the tag latest, is always pulled; others only if the node lacks them."""
    image = container.get("image", "")
    _, colon, tag = image.rpartition("/")[2].partition(":")
    means_latest = "@" not in image and (not colon or tag == "latest")
    container.setdefault("imagePullPolicy", "Always" if means_latest else "IfNotPresent")


def _requests_from_limits(resources: Object) -> None:
    """A resource with a limit and no request requests its limit. Amounts below a thousandth are rounded up."""
    for side in ("limits", "requests"):
        for name, amount in (resources.get(side) or {}).items():
            if amount.endswith(("n", "u")):  # a container runtime cannot give less than a thousandth
                milli = quantity.milli_value(quantity.parse(amount))
                resources[side][name] = quantity.canonical(f"{milli}m")
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _volume(volume: Object) -> None:
    """A volume without a source is an emptyDir."""
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}


def _replication_controller(obj: Object) -> None:
    """Selector and labels are those of the template."""
    spec = obj["spec"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        obj["metadata"].setdefault("labels", dict(labels))


def _stateful_set_spec(spec: Object) -> None:
    """The claim templates are stored as whole claims."""
    for claim in spec.get("volumeClaimTemplates") or ():
        _missing(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _job(obj: Object) -> None:
    """A job runs one pod once, and its pods carry labels with its uid and name, by which it selects them."""
    spec = obj["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    _missing(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    _missing(spec, podReplacementPolicy="TerminatingOrFailed", manualSelector=False)
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    uid, name = obj["metadata"].get("uid", ""), obj["metadata"].get("name", "")
    if not spec["manualSelector"]:
        for prefix in ("", "batch.kubernetes.io/"):
            labels.setdefault(f"{prefix}controller-uid", uid)
            labels.setdefault(f"{prefix}job-name", name)
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    obj["metadata"].setdefault("labels", dict(labels))


def _namespace(obj: Object) -> None:
    """A namespace carries its name as a label, so that selectors can name it."""
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _node(obj: Object) -> None:
    """Pods may use all that a node has, unless its kubelet reserves something."""
    if obj["spec"].get("podCIDR"):
        obj["spec"].setdefault("podCIDRs", [obj["spec"]["podCIDR"]])
    status = obj.get("status") or {}
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _service_spec(spec: Object) -> None:
    """An IPv4 service; a headless one without a selector may be of both families, for nobody knows its endpoints."""
    if spec["type"] != "ExternalName":
        if spec.get("clusterIP") == "None" and not spec.get("selector"):  # its endpoints are written by hand, of either family
            _missing(spec, ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"])
        _missing(spec, ipFamilyPolicy="SingleStack", ipFamilies=["IPv4"])


def _service_port(port: Object) -> None:
    """The port of the pods is that of the service."""
    port.setdefault("targetPort", port.get("port", 0))


def _secret(obj: Object) -> None:
    """Texts of stringData are stored as base64 in data, and never shown as stringData again."""
    data = obj.pop("stringData", None)
    if data:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _definition_names(names: Object) -> None:
    """The singular is the kind in lower case, and the kind of lists ends in List."""
    if names.get("kind"):
        _missing(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")


def _limit_range_item(item: Object) -> None:
    """Default limits are the maximum, default requests the default limits, then the minimum."""
    if item.get("type") == "Container":
        for target, source in (("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")):
            if item.get(source):
                item[target] = {**item[source], **(item.get(target) or {})}


def _autoscaler_spec(spec: Object) -> None:
    """Without metrics a HorizontalPodAutoscaler looks at 80 % of the requested CPU."""
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _autoscaler_behavior(behavior: Object) -> None:
    """The rules for scaling up and down, where they are not given."""
    for side, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
        behavior[side] = msgspec.json.decode(msgspec.json.encode({**rules, **(behavior.get(side) or {})}))


def _network_policy_spec(spec: Object) -> None:
    """A policy is about ingress, and about egress if it has rules for it."""
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


_OF_TYPE: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "PodSpec": _pod_spec,
    "Container": _container,
    "EphemeralContainer": _container,
    "ResourceRequirements": _requests_from_limits,
    "Volume": _volume,
    "ReplicationController": _replication_controller,
    "StatefulSetSpec": _stateful_set_spec,
    "Job": _job,
    "Namespace": _namespace,
    "Node": _node,
    "ServiceSpec": _service_spec,
    "ServicePort": _service_port,
    "Secret": _secret,
    "CustomResourceDefinitionNames": _definition_names,
    "LimitRangeItem": _limit_range_item,
    "HorizontalPodAutoscalerSpec": _autoscaler_spec,
    "HorizontalPodAutoscalerBehavior": _autoscaler_behavior,
    "NetworkPolicySpec": _network_policy_spec,
}


def _visit_of(shape: Shape) -> Visit[None] | None:
    """Return the function that fills in what objects of a type lack, or None if nothing is known of the type."""
    defaults = [one for one in shape.fields.values() if one.default]
    # Those with a condition come last: it may be about a field that has a default itself.
    defaults.sort(key=lambda one: bool(one.default_if[0]))
    plain = [(one.name, msgspec.json.decode(one.default), *one.default_if) for one in defaults]
    special = _OF_TYPE.get(shape.name)
    if not plain and special is None:
        return None

    def visit(obj: Object, path: str) -> Iterable[None]:
        for name, value, other, wanted in plain:
            if obj.get(name, "") == "" and (not other or obj.get(other) in wanted):  # an empty text is as good as none
                obj[name] = type(value)(value) if isinstance(value, (dict, list)) else value
        if special is not None:
            special(obj)
        return ()

    return visit


_walk = Walk(_visit_of)
