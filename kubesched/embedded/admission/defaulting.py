"""Defaults: what the API fills in where a manifest is silent.

In: a settled object in its storage version. Out: the same object, in place, with the defaults that schedulers, kubectl
and our controllers read. Filling twice changes nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from kubesched.embedded.admission.policy_defaults import DEFAULTS, missing
from kubesched.embedded.custom import fill_defaults, schema_of
from kubesched.embedded.resources import Object, Resource
from kubesched.kube.values import quantity

SCHEDULER_NAME = "default-scheduler"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FILE_MODE = 0o644


def fill(obj: Object, resource: Resource) -> None:
    """Fill in the defaults of the object's kind."""
    if resource.custom is not None:
        fill_defaults(obj, schema_of(resource))
        return
    default = _DEFAULTS.get(resource.table) or DEFAULTS.get(resource.table)
    if default is not None:
        default(obj)


def _pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    spec.setdefault("enableServiceLinks", True)
    _pod_spec(spec)


def _pod_template(obj: Object) -> None:
    _template(obj)


def _pod_spec(spec: Object) -> None:
    for name in ("restartPolicy", "dnsPolicy", "schedulerName"):
        if spec.get(name) == "":  # as good as not said
            del spec[name]
    missing(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName=SCHEDULER_NAME,
        terminationGracePeriodSeconds=30,
        securityContext={},
    )
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _container(container, bool(spec.get("hostNetwork")))
    resources = spec.get("resources")
    if resources is not None:
        _requests_from_limits(resources)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _container(container: Object, host_network: bool) -> None:
    missing(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", resources={})
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = "Always" if _is_moving(container.get("image", "")) else "IfNotPresent"
    _requests_from_limits(container["resources"])
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and "hostPort" not in port and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            missing(probe, **_PROBE_DEFAULTS)
            if "httpGet" in probe:
                missing(probe["httpGet"], path="/", scheme="HTTP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")


def _is_moving(image: str) -> bool:
    """Say whether an image reference means `latest`: no tag and no digest, or that tag."""
    if "@" in image:
        return False
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return not colon or tag == "latest"


def _requests_from_limits(resources: Object) -> None:
    for side in ("limits", "requests"):
        for name, amount in (resources.get(side) or {}).items():
            if amount.endswith(("n", "u")):  # nobody is given less than a thousandth
                milli = quantity.milli_value(quantity.parse(amount))
                resources[side][name] = quantity.canonical(f"{milli}m")
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _volume(volume: Object) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        if name in volume:
            volume[name].setdefault("defaultMode", _FILE_MODE)
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")


def _template(spec: Object) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    _pod_spec(template.setdefault("spec", {}))


def _deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    missing(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        missing(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec)


def _replication_controller(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template") is not None:
        _template(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not spec.get("selector"):
            spec["selector"] = dict(labels)
        if labels:
            obj["metadata"].setdefault("labels", dict(labels))


def _stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    missing(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    missing(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    _template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        missing(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _daemon_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        missing(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
    _template(spec)


def _job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    missing(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed",
        manualSelector=False,
    )
    _template(spec)
    labels = spec["template"]["metadata"].setdefault("labels", {})
    uid, name = obj["metadata"].get("uid", ""), obj["metadata"].get("name", "")
    if not spec["manualSelector"]:
        for prefix in ("", "batch.kubernetes.io/"):
            labels.setdefault(f"{prefix}controller-uid", uid)
            labels.setdefault(f"{prefix}job-name", name)
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    obj["metadata"].setdefault("labels", dict(labels))


def _namespace(obj: Object) -> None:
    metadata = obj["metadata"]
    metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


def _node(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("podCIDR"):
        spec.setdefault("podCIDRs", [spec["podCIDR"]])
    status = obj.get("status") or {}
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    missing(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec.get("clusterIP") == "None" and not spec.get("selector"):  # nobody to ask, so anything may be answered
            missing(spec, ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"])
        missing(spec, ipFamilyPolicy="SingleStack", ipFamilies=["IPv4"])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port", 0))


def _volume_claim(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _persistent_volume(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    missing(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")


def _endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _storage_class(obj: Object) -> None:
    missing(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _csi_driver(obj: Object) -> None:
    missing(
        obj.setdefault("spec", {}),
        attachRequired=True,
        podInfoOnMount=False,
        volumeLifecycleModes=["Persistent"],
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )


def _device_claim(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        asked = [request["exactly"]] if "exactly" in request else []
        for one in asked + list(request.get("firstAvailable") or ()):
            if one.setdefault("allocationMode", "ExactCount") == "ExactCount":
                one.setdefault("count", 1)
            for toleration in one.get("tolerations") or ():
                toleration.setdefault("operator", "Equal")


def _resource_claim(obj: Object) -> None:
    _device_claim(obj.setdefault("spec", {}))


def _resource_claim_template(obj: Object) -> None:
    _device_claim(obj.setdefault("spec", {}).setdefault("spec", {}))


def _priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    data = obj.pop("stringData", None)
    if data:
        obj.setdefault("data", {}).update({key: _base64(value) for key, value in data.items()})


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _definition(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("conversion", {}).setdefault("strategy", "None")
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    if kind:
        missing(names, singular=kind.lower(), listKind=f"{kind}List")


def _event(obj: Object) -> None:
    missing(obj, type="Normal")
    obj.setdefault("source", {})


def _role_binding(obj: Object) -> None:
    obj.setdefault("roleRef", {}).setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _cron_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    missing(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    _template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))


_DEFAULTS: dict[str, Callable[[Object], None]] = {
    "pods": _pod,
    "namespaces": _namespace,
    "nodes": _node,
    "services": _service,
    "persistentvolumes": _persistent_volume,
    "persistentvolumeclaims": _volume_claim,
    "replicationcontrollers": _replication_controller,
    "secrets": _secret,
    "podtemplates": _pod_template,
    "endpoints": _endpoints,
    "events": _event,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "storageclasses.storage.k8s.io": _storage_class,
    "csidrivers.storage.k8s.io": _csi_driver,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceclaimtemplates.resource.k8s.io": _resource_claim_template,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
    "rolebindings.rbac.authorization.k8s.io": _role_binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_binding,
}
