"""The table of what is served: groups, versions, resources, kinds, names, scopes and subresources.

In: the built-in table below, and CustomResourceDefinitions as they come and go. Out: a `Resource` for a path or a name.
Several versions of one resource share a table of objects (`table`); exactly one of them is how objects are stored. A server
stands for one release of Kubernetes, and serves the versions that this release has (`since`, `until`); the others are known
to whoever uses the store without HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
ADMISSION_GROUP = "admissionregistration.k8s.io"
AGGREGATION_GROUP = "apiregistration.k8s.io"
METRICS_GROUP = "metrics.k8s.io"
RELEASES = {36: "v1.36.4", 37: "v1.37.0-rc.1"}
"""The minor of each release that a server can stand for, and the version that it then says it has."""
NEWEST_RELEASE = max(RELEASES)
SUBRESOURCE_VERBS: dict[str, tuple[str, ...]] = {
    "binding": ("create",),
    "eviction": ("create",),
    "scale": ("get", "patch", "update"),
    "finalize": ("update",),
    "status": ("get", "patch", "update"),
    "resize": ("get", "patch", "update"),
    "ephemeralcontainers": ("get", "patch", "update"),
}
# A deletion is answered with the object that is gone for these, with a Status for the others.
RETURNED_WHEN_DELETED = frozenset(
    (
        *("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas"),
        *("serviceaccounts", "services"),
        *(f"{one}.storage.k8s.io" for one in ("csidrivers", "csinodes", "storageclasses", "volumeattachments")),
        *(f"{one}.resource.k8s.io" for one in ("deviceclasses", "devicetaintrules", "resourceclaims")),
        *(f"{one}.resource.k8s.io" for one in ("resourceclaimtemplates", "resourceslices")),
    )
)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version, and how its objects behave."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    table: str = ""  # where the objects are kept; shared by the versions of one resource
    is_storage: bool = True
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    has_generation: bool = False
    keeps_status_on_create: bool = False
    needs_version_on_update: bool = False
    creates_on_update: bool = False
    names_are_labels: bool = False  # DNS label instead of DNS subdomain
    custom: Mapping[str, Any] | None = field(default=None, compare=False)  # the CRD version this came from
    singular: str = ""
    since: int = 0  # the minors of the first and the last release that serve this version
    until: int = 1_000

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name used in messages: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


def _rows() -> Iterator[Resource]:
    status = ("status",)

    def core(plural: str, kind: str, short: str = "", namespaced: bool = True, **more: Any) -> Resource:
        return _row("", "v1", plural, kind, short, namespaced, **more)

    yield core(
        "namespaces",
        "Namespace",
        "ns",
        False,
        subresources=("status", "finalize"),
        names_are_labels=True,
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    )
    yield core("nodes", "Node", "no", False, subresources=status, keeps_status_on_create=True)
    yield core(
        "pods",
        "Pod",
        "po",
        categories=("all",),
        subresources=("status", "binding", "ephemeralcontainers", "eviction", "resize"),
        has_generation=True,
    )
    yield core("bindings", "Binding", verbs=("create",))
    yield core("services", "Service", "svc", categories=("all",), subresources=status, names_are_labels=True)
    yield core("endpoints", "Endpoints", "ep")
    yield core("persistentvolumes", "PersistentVolume", "pv", False, subresources=status)
    yield core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subresources=status)
    yield core(
        "replicationcontrollers",
        "ReplicationController",
        "rc",
        categories=("all",),
        subresources=("status", "scale"),
        has_generation=True,
    )
    yield core("configmaps", "ConfigMap", "cm")
    yield core("secrets", "Secret")
    yield core("serviceaccounts", "ServiceAccount", "sa")
    yield core("limitranges", "LimitRange", "limits", creates_on_update=True)
    yield core("resourcequotas", "ResourceQuota", "quota", subresources=status)
    yield core("podtemplates", "PodTemplate", has_generation=True)
    yield core("events", "Event", "ev", creates_on_update=True)
    yield _row("events.k8s.io", "v1", "events", "Event", "ev", table="events", is_storage=False, creates_on_update=True)

    for plural, kind, short in (
        ("deployments", "Deployment", "deploy"),
        ("replicasets", "ReplicaSet", "rs"),
        ("statefulsets", "StatefulSet", "sts"),
    ):
        yield _row(
            "apps",
            "v1",
            plural,
            kind,
            short,
            categories=("all",),
            subresources=("status", "scale"),
            has_generation=True,
        )
    yield _row("apps", "v1", "daemonsets", "DaemonSet", "ds", categories=("all",), subresources=status, has_generation=True)
    yield _row("apps", "v1", "controllerrevisions", "ControllerRevision")
    yield _row("batch", "v1", "jobs", "Job", categories=("all",), subresources=status, has_generation=True)
    yield _row("batch", "v1", "cronjobs", "CronJob", "cj", categories=("all",), subresources=status, has_generation=True)
    yield _row(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "hpa",
        categories=("all",),
        subresources=status,
    )
    yield _row(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "pdb",
        subresources=status,
        has_generation=True,
        needs_version_on_update=True,
    )
    yield _row(
        "coordination.k8s.io",
        "v1",
        "leases",
        "Lease",
        creates_on_update=True,
        needs_version_on_update=True,
    )
    yield _row("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc", False, has_generation=True)
    for plural, kind, sub in (("podgroups", "PodGroup", status), ("workloads", "Workload", ())):
        for version, first, last in (("v1beta1", 37, 1_000), ("v1alpha3", 37, 1_000), ("v1alpha2", 0, 36)):
            kept = {"is_storage": version == "v1beta1", "subresources": sub, "since": first, "until": last}
            yield _row("scheduling.k8s.io", version, plural, kind, "", True, has_generation=True, **kept)
    yield _row(
        "scheduling.k8s.io",
        "v1alpha3",
        "compositepodgroups",
        "CompositePodGroup",
        subresources=status,
        has_generation=True,
        since=37,
    )

    storage = "storage.k8s.io"
    yield _row(storage, "v1", "storageclasses", "StorageClass", "sc", False)
    yield _row(storage, "v1", "csinodes", "CSINode", "", False)
    yield _row(storage, "v1", "csidrivers", "CSIDriver", "", False)
    yield _row(storage, "v1", "csistoragecapacities", "CSIStorageCapacity")
    yield _row(storage, "v1", "volumeattachments", "VolumeAttachment", "", False, subresources=status)

    devices = "resource.k8s.io"
    yield _row(devices, "v1", "resourceclaims", "ResourceClaim", subresources=status)
    yield _row(devices, "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
    yield _row(devices, "v1", "resourceslices", "ResourceSlice", "", False, has_generation=True)
    yield _row(devices, "v1", "deviceclasses", "DeviceClass", "", False, has_generation=True)
    rule: dict[str, Any] = {"subresources": status, "has_generation": True}
    yield _row(devices, "v1beta2", "devicetaintrules", "DeviceTaintRule", "", False, **rule)
    yield _row(devices, "v1", "devicetaintrules", "DeviceTaintRule", "", False, is_storage=False, since=37, **rule)

    network = "networking.k8s.io"
    yield _row(network, "v1", "ingresses", "Ingress", "ing", subresources=status, has_generation=True)
    yield _row(network, "v1", "ingressclasses", "IngressClass", "", False, has_generation=True)
    yield _row(network, "v1", "networkpolicies", "NetworkPolicy", "netpol", has_generation=True)
    yield _row(
        "node.k8s.io",
        "v1",
        "runtimeclasses",
        "RuntimeClass",
        "",
        False,
        creates_on_update=True,
        needs_version_on_update=True,
    )
    yield from _admission_rows()
    for plural, kind in (("nodes", "NodeMetrics"), ("pods", "PodMetrics")):
        yield _row(METRICS_GROUP, "v1beta1", plural, kind, "", plural == "pods", verbs=("get", "list"))
    yield _row("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", has_generation=True)
    rbac = "rbac.authorization.k8s.io"
    yield _row(rbac, "v1", "roles", "Role")
    yield _row(rbac, "v1", "rolebindings", "RoleBinding")
    yield _row(rbac, "v1", "clusterroles", "ClusterRole", "", False)
    yield _row(rbac, "v1", "clusterrolebindings", "ClusterRoleBinding", "", False)
    yield _row(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "crd crds",
        False,
        categories=("api-extensions",),
        subresources=status,
        has_generation=True,
        needs_version_on_update=True,
    )

    asked = ("create",)
    yield _row("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "", False, verbs=asked)
    yield _row("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", "", False, verbs=asked)
    access = "authorization.k8s.io"
    yield _row(access, "v1", "subjectaccessreviews", "SubjectAccessReview", "", False, verbs=asked)
    yield _row(access, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", "", False, verbs=asked)
    yield _row(access, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=asked)
    yield _row(access, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", "", False, verbs=asked)


def _admission_rows() -> Iterator[Resource]:
    """What would change the server itself; kept and shown, and acted on by nobody."""
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        more: dict[str, Any] = {"categories": ("api-extensions",), "has_generation": True, "needs_version_on_update": True}
        yield _row(ADMISSION_GROUP, "v1", f"{kind.lower()}s", kind, "", False, **more)
    for way, subresources in (("Validating", ("status",)), ("Mutating", ())):
        more = {"categories": ("api-extensions",), "has_generation": True}
        policy, plural = f"{way}AdmissionPolicy", f"{way.lower()}admissionpolicies"
        yield _row(ADMISSION_GROUP, "v1", plural, policy, "", False, subresources=subresources, **more)
        binding = f"{policy}Binding"
        yield _row(ADMISSION_GROUP, "v1", f"{binding.lower()}s", binding, "", False, **more)
    yield _row(
        AGGREGATION_GROUP,
        "v1",
        "apiservices",
        "APIService",
        "",
        False,
        categories=("api-extensions",),
        subresources=("status",),
        needs_version_on_update=True,
    )


def _row(group: str, version: str, plural: str, kind: str, short: str = "", namespaced: bool = True, **more: Any) -> Resource:
    more.setdefault("table", f"{plural}.{group}" if group else plural)
    return Resource(group, version, plural, kind, namespaced, tuple(short.split()), singular=kind.lower(), **more)


class Catalogue:
    """Every resource that a release serves; custom ones are added and removed while the server runs."""

    def __init__(self, release: int = NEWEST_RELEASE) -> None:
        """Serve what the release of this minor serves."""
        self.release = release
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_name: dict[str, Resource] = {}
        self.revision = 0  # changes whenever the table does, so that documents made from it can be kept
        for resource in _rows():
            self._by_path[resource.group, resource.version, resource.plural] = resource
        self._index()

    def __iter__(self) -> Iterator[Resource]:
        return (resource for resource in self._by_path.values() if self._serves(resource))

    def stored(self) -> Iterator[Resource]:
        """Yield every resource once, in the version that it is stored in, served or not."""
        return (resource for resource in self._by_path.values() if resource.is_storage)

    def _serves(self, resource: Resource) -> bool:
        return resource.since <= self.release <= resource.until

    def add(self, resource: Resource) -> None:
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self._index()

    def remove(self, resource: Resource) -> None:
        self._by_path.pop((resource.group, resource.version, resource.plural), None)
        self._index()

    def _index(self) -> None:
        self.revision += 1
        self._by_name = {}
        for resource in self._by_path.values():  # in order of the table, so core names win over later groups
            for name in (resource.qualified, resource.plural, f"{resource.plural}.{resource.version}.{resource.group}"):
                kept = self._by_name.setdefault(name, resource)
                if kept.table == resource.table and resource.is_storage and name != resource.plural:
                    self._by_name[name] = resource

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource served at a path, or None."""
        found = self._by_path.get((group, version, plural))
        return found if found is not None and self._serves(found) else None

    def named(self, name: str) -> Resource:
        """Return the resource called `pods`, `deployments.apps` or `plural.version.group`; KeyError if none."""
        return self._by_name[name]

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource that has `kind` in `api_version` in any release, or None."""
        group, _, version = api_version.rpartition("/")
        for resource in self._by_path.values():
            if resource.kind == kind and resource.group == group and resource.version == version:
                return resource
        return None

    def stored_in(self, table: str) -> Resource | None:
        """Return the resource whose version the objects of `table` are stored in."""
        return next((resource for resource in self.stored() if resource.table == table), None)

    def groups(self) -> dict[str, list[str]]:
        """Return every named group with its versions, the preferred one first."""
        found: dict[str, list[str]] = {}
        for resource in self:
            if resource.group and resource.version not in found.setdefault(resource.group, []):
                found[resource.group].append(resource.version)
        return {group: sorted(versions, key=_version_rank) for group, versions in found.items()}


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """Order versions as discovery prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, then other names."""
    body = version[1:] if version.startswith("v") else ""
    for rank, stage in ((1, "beta"), (2, "alpha")):
        major, found, minor = body.partition(stage)
        if found and major.isdigit() and minor.isdigit():
            return rank, -int(major), -int(minor), version
    return (0, -int(body), 0, version) if body.isdigit() else (3, 0, 0, version)
