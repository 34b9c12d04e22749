"""Discovery: the documents under /api, /apis and /version, in the old form and in the aggregated one.

In: the catalogue. Out: documents that list groups, versions, resources, their verbs and subresources. kubectl asks for the
aggregated form (one request for everything), older clients for the other.
"""

from __future__ import annotations

from typing import Any

from kubesched.embedded.schema.resources import RELEASES, SUBRESOURCE_VERBS, Catalogue, Object, Resource

_SUBRESOURCE_KINDS = {  # of another kind than the resource itself
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}


def version(release: int) -> Object:
    """Return the document at /version of a server that stands for a release."""
    return {
        "major": "1",
        "minor": str(release),
        "gitVersion": f"{RELEASES[release]}+kubesched",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def api_versions(address: str) -> Object:
    """Return the document at /api."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def group_list(catalogue: Catalogue) -> Object:
    """Return the document at /apis."""
    groups = [_group(name, versions) for name, versions in catalogue.groups().items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalogue: Catalogue, name: str) -> Object | None:
    """Return the document at /apis/GROUP."""
    versions = catalogue.groups().get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def resource_list(catalogue: Catalogue, group_name: str, version: str) -> Object | None:
    """Return the document at /api/v1 or /apis/GROUP/VERSION."""
    found = _of_version(catalogue, group_name, version)
    if not found:
        return None
    listed: list[Object] = []
    for resource in found:
        listed.append(_listed(resource))
        for sub in sorted(resource.subresources):
            sub_group, sub_version, kind = _SUBRESOURCE_KINDS.get(sub, ("", "", ""))
            one: Object = {
                "name": f"{resource.plural}/{sub}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind or resource.kind,
                "verbs": list(SUBRESOURCE_VERBS[sub]),
            }
            if sub_group:
                one |= {"group": sub_group, "version": sub_version}
            listed.append(one)
    api_version = f"{group_name}/{version}" if group_name else version
    document: Object = {"kind": "APIResourceList", "groupVersion": api_version, "resources": listed}
    return {**document, "apiVersion": "v1"} if group_name else document  # the oldest of them has none


def aggregated(catalogue: Catalogue, core: bool) -> Object:
    """Return the aggregated (v2) document at /api or /apis."""
    groups = {"": ["v1"]} if core else catalogue.groups()
    items = []
    for name, versions in groups.items():
        metadata: Object = {"creationTimestamp": None} | ({"name": name} if name else {})
        items.append(
            {
                "metadata": metadata,
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_resource(one) for one in _of_version(catalogue, name, version)],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
        )
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _group(name: str, versions: list[str]) -> Object:
    """Return the entry of a group; the first version is the preferred one."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _of_version(catalogue: Catalogue, group_name: str, version: str) -> list[Resource]:
    """Return the resources of a group and version, by name."""
    found = [one for one in catalogue if one.group == group_name and one.version == version]
    return sorted(found, key=lambda one: one.plural)


def _listed(resource: Resource) -> Object:
    """Return the entry of a resource in the old form."""
    one: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    return one | _nicknames(resource)


def _nicknames(resource: Resource) -> Object:
    """Return short names and categories, such as `po` and `all`."""
    listed = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {field: names for field, names in listed.items() if names}


def _aggregated_resource(resource: Resource) -> Object:
    """Return the entry of a resource in the aggregated form, with its subresources inside."""
    one: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    one |= _nicknames(resource)
    subs: list[Any] = []
    for sub in sorted(resource.subresources):
        answered = _SUBRESOURCE_KINDS.get(sub, (resource.group, resource.version, resource.kind))
        subs.append({"subresource": sub, "responseKind": _kind(*answered), "verbs": list(SUBRESOURCE_VERBS[sub])})
    if subs:
        one["subresources"] = subs
    return one


def _kind(group_name: str, version: str, kind: str) -> Object:
    return {"group": group_name, "version": version, "kind": kind}
