"""The catalogue: which groups, versions and resources are served, with their kinds, names, scopes and subresources.

In: tables/resources.txt, and CustomResourceDefinitions as they come and go. Out: a `Resource` for a path or a name. Several
versions of a resource share one table of objects; they are stored in exactly one of these versions. A server stands for one
release of Kubernetes and serves the versions that this release has (`since`, `until`); callers of the store may use all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesched.embedded.schema.tables import lines

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
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_FLAGS = {  # word of the table: field of a Resource, and its value
    "cluster": ("namespaced", False),
    "generation": ("has_generation", True),
    "keeps-status": ("keeps_status_on_create", True),
    "needs-version": ("needs_version_on_update", True),
    "put-creates": ("creates_on_update", True),
    "label-names": ("names_are_labels", True),
    "returned": ("returned_when_deleted", True),
    "not-stored": ("is_storage", False),
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version, and how its objects behave."""

    group: str  # empty for the core group
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()  # status, scale, ...
    table: str = ""  # where the objects are kept; shared by the versions of one resource
    is_storage: bool = True
    verbs: tuple[str, ...] = _VERBS
    has_generation: bool = False  # metadata.generation counts changes of the spec
    keeps_status_on_create: bool = False  # nodes register with their status
    needs_version_on_update: bool = False  # an update without a resourceVersion is refused
    creates_on_update: bool = False  # a PUT of an object that does not exist creates it
    names_are_labels: bool = False  # DNS label instead of DNS subdomain
    returned_when_deleted: bool = False  # a deletion is answered with the object that is gone, else with a Status
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
    """Yield the resources of the table."""
    group = version = ""
    for line in lines("resources"):
        if not line.startswith(" "):
            group, _, version = line.rpartition("/")
            continue
        plural, kind, *words = line.split()
        row: dict[str, Any] = {"table": f"{plural}.{group}" if group else plural, "namespaced": True}
        for word in words:
            name, _, value = word.partition(":")
            if word in _FLAGS:
                row[_FLAGS[word][0]] = _FLAGS[word][1]
            elif word.startswith("/"):
                row["subresources"] = (*row.get("subresources", ()), word[1:])
            elif name == "short":
                row["short_names"] = tuple(value.split(","))
            elif name == "in":
                row["categories"] = (value,)
            elif name in ("only", "without"):
                row["verbs"] = tuple(verb for verb in _VERBS if (verb in value.split(",")) == (name == "only"))
            else:  # since, until and table
                row[name] = int(value) if value.isdecimal() else value
        yield Resource(group, version, plural, kind, singular=kind.lower(), **row)


class Catalogue:
    """The resources that a release serves. Custom ones are added and removed while the server runs."""

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
        """Yield every resource once, in its storage version, served or not."""
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
        """Rebuild the lookup by name. Core names win over names of later groups."""
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
        """Return the resource with this kind, in any release, or None."""
        group, _, version = api_version.rpartition("/")
        for resource in self._by_path.values():
            if resource.kind == kind and resource.group == group and resource.version == version:
                return resource
        return None

    def stored_in(self, table: str) -> Resource | None:
        """Return the resource in whose version the objects of a table are stored."""
        return next((resource for resource in self.stored() if resource.table == table), None)

    def groups(self) -> dict[str, list[str]]:
        """Return every named group with its versions, the preferred one first."""
        found: dict[str, list[str]] = {}
        for resource in self:
            if resource.group and resource.version not in found.setdefault(resource.group, []):
                found[resource.group].append(resource.version)
        return {group: sorted(versions, key=_version_rank) for group, versions in found.items()}


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version: v2, v1, v1beta2, v1beta1, v1alpha1, then other names."""
    body = version[1:] if version.startswith("v") else ""
    for rank, stage in ((1, "beta"), (2, "alpha")):
        major, found, minor = body.partition(stage)
        if found and major.isdigit() and minor.isdigit():
            return rank, -int(major), -int(minor), version
    return (0, -int(body), 0, version) if body.isdigit() else (3, 0, 0, version)
