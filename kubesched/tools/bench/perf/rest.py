"""Create, update and delete objects of any kind, and delete at the end what was created.

In: objects as dicts. Out: requests. Paths come from the API server's discovery. The paths of created objects are kept, so that
a cluster that was given can be cleaned up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from kubesched.errors import AlreadyExists, ConfigError, NotFound
from kubesched.kube.client import MERGE_PATCH, Connection, collection_path
from kubesched.tools.bench.processes import in_parallel, remove, remove_namespace

Object = dict[str, Any]
_GONE_WITHIN_SECONDS = 3.0
_NAMESPACES = collection_path("v1", "namespaces")
_NAMESAKES = {
    "resource.k8s.io/v1beta2": "resource.k8s.io/v1",
    "resource.k8s.io/v1alpha3": "resource.k8s.io/v1beta2",
    "scheduling.k8s.io/v1beta1": "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1alpha3": "scheduling.k8s.io/v1alpha2",
}
"""For an API version that a server may lack, one with the same form of the objects. A field that only one of them has is
refused by the server, as requests use strict field validation."""


class _Resource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool
    api_version: str = ""


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


class Rest:
    """Writes through one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._known: dict[str, dict[str, _Resource]] = {}
        self._made: dict[str, None] = {}
        """Paths of all but the pods, which go with their namespace."""

    async def collection(self, obj: Mapping[str, Any], namespace: str = "") -> str:
        """Return the path of the objects of this kind; raise ConfigError if the namespace does not fit the kind's scope."""
        found = await self._served(obj)
        if found.namespaced != bool(namespace):
            where = "no namespace is given" if found.namespaced else f"namespace {namespace} is given, but there is none"
            raise ConfigError(f"{found.api_version} {found.kind}", f"{where} for this kind")
        return collection_path(found.api_version, found.name, namespace)

    async def is_namespaced(self, obj: Mapping[str, Any]) -> bool:
        """Return whether objects of this kind are namespaced."""
        return (await self._served(obj)).namespaced

    async def _served(self, obj: Mapping[str, Any]) -> _Resource:
        """Return how the server serves an object: in the version that it names, or in an equal one."""
        version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        for one in (version, _NAMESAKES.get(version, "")):
            if one and (found := (await self._resources(one)).get(kind)):
                return found
        raise ConfigError(f"{version} {kind}", "the API server does not serve this kind")

    async def _resources(self, version: str) -> dict[str, _Resource]:
        if version not in self._known:
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                rows = msgspec.json.decode(await self.connection.request("GET", root), type=_ResourceList).resources
            except NotFound:
                rows = []
            self._known[version] = {row.kind: row for row in rows if "/" not in row.name}
            for row in rows:
                row.api_version = version
        return self._known[version]

    async def _body(self, obj: Mapping[str, Any]) -> bytes:
        """Return the JSON of an object in the version that the server serves."""
        version = (await self._served(obj)).api_version
        return msgspec.json.encode(obj if obj.get("apiVersion") == version else {**obj, "apiVersion": version})

    async def create(self, obj: Mapping[str, Any], namespace: str = "", *, strict: bool = False) -> str:
        """Create an object and return its name."""
        path = await self.collection(obj, namespace)
        query = "?fieldValidation=Strict" if strict else ""
        body = await self.connection.request("POST", path + query, await self._body(obj))
        name = str(msgspec.json.decode(body)["metadata"]["name"])
        if path != collection_path("v1", "pods", namespace):
            self._made[f"{path}/{quote(name, safe='')}"] = None
        return name

    async def update(self, obj: Mapping[str, Any], namespace: str, subresources: Iterable[str] = ()) -> None:
        """Replace an object or one of its subresources, then its status."""
        path = f"{await self.collection(obj, namespace)}/{quote(obj['metadata']['name'], safe='')}"
        body = await self._body(obj)
        await self.connection.request("PUT", "/".join([path, *subresources]) + "?fieldValidation=Strict", body)
        await self.connection.request("PUT", f"{path}/status?fieldValidation=Strict", body)

    async def set_status(self, obj: Mapping[str, Any], namespace: str, status: Object) -> None:
        """Merge fields into the status of an object."""
        path = f"{await self.collection(obj, namespace)}/{quote(obj['metadata']['name'], safe='')}/status"
        await self.connection.request("PATCH", path, msgspec.json.encode({"status": status}), MERGE_PATCH)

    async def delete(self, obj: Mapping[str, Any], namespace: str, name: str) -> None:
        """Delete an object of this kind, if it exists."""
        path = f"{await self.collection(obj, namespace)}/{quote(name, safe='')}"
        self._made.pop(path, None)
        await remove(self.connection, path)

    async def delete_pod(self, namespace: str, name: str, *, at_once: bool = False) -> None:
        """Delete a pod if it exists; `at_once` without a grace period."""
        query = "?gracePeriodSeconds=0" if at_once else ""
        await remove(self.connection, f"{collection_path('v1', 'pods', namespace)}/{name}{query}")

    async def delete_pods(self, namespace: str, selector: Mapping[str, str], *, at_once: bool = False) -> None:
        """Delete all pods of a namespace that have these labels."""
        query: dict[str, str] = {"gracePeriodSeconds": "0"} if at_once else {}
        if selector:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in selector.items())
        path = collection_path("v1", "pods", namespace)
        await self.connection.request("DELETE", f"{path}?{urlencode(query)}" if query else path)

    async def ensure_namespace(self, name: str) -> None:
        """Create a namespace unless it is there."""
        with contextlib.suppress(AlreadyExists):
            await self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def remove_all(self) -> None:
        """Delete the created objects: pods first, namespaces last."""
        spaces = [path for path in self._made if path.startswith(f"{_NAMESPACES}/") and path.count("/") == 4]
        for path in spaces:
            await self.delete_pods(path.rpartition("/")[2], {}, at_once=True)

        async def end(path: str) -> None:
            await remove_namespace(self.connection, path.rpartition("/")[2], _GONE_WITHIN_SECONDS)

        await in_parallel([path for path in self._made if path not in spaces], partial(remove, self.connection))
        await in_parallel(spaces, end)
        self._made.clear()
