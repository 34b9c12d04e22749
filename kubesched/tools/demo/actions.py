"""The actions of the demo's page: apply manifests, scale, change nodes, load a snapshot.

In: requests from the page as JSON, the demo's object store, and its fake kubelets. Out: changes in the store, as kubectl would
make them, and a sentence about what was done. Only the demo has these routes, never a real scheduler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
from aiohttp import web

from kubesched.embedded import ObjectStore
from kubesched.embedded.controllers import FakeCluster
from kubesched.embedded.verbs.patching import APPLY_PATCH, MERGE_PATCH
from kubesched.errors import AlreadyExists, ApiError, SchedulerError
from kubesched.kube.api import INFO, Node, Pod, codec, is_finished
from kubesched.kube.values import HOSTNAME, Content
from kubesched.server.web.page.data import Document
from kubesched.server.web.page.page import answer
from kubesched.tools.plan.cluster_files import cluster_in
from kubesched.tools.plan.manifests import Manifest, manifests_in
from kubesched.tools.plan.what_if import API, MOST_BYTES, answered, question

OFFERS = ("apply", "nodes", "scale", "load")
MOST_NODES = 1000
MOST_REPLICAS = 100_000
MOST_SNAPSHOT_BYTES = 64 << 20
_MANAGER = "kubesched-page"
_SCALED = ("deployments", "statefulsets")
_MAKERS = ("cronjobs", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs")
_OUTLIVED = ("uid", "resourceVersion", "ownerReferences", "managedFields", "creationTimestamp", "generation", "finalizers")


class ApplyQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """Apply these manifests."""

    manifests: str
    namespace: str = "default"


class NodeQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """Run an action on a node; `add` creates `count` nodes like it."""

    action: str
    node: str
    count: int = 1


class ScaleQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """Scale a workload such as deployments/web."""

    workload: str
    namespace: str
    replicas: int


class LoadQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """Replace the cluster by that of a snapshot."""

    snapshot: str


class DemoActions:
    """Changes the cluster of a demo."""

    def __init__(self, store: ObjectStore, cluster: FakeCluster) -> None:
        self._store = store
        self._cluster = cluster
        self._on_nodes: dict[str, Callable[[str, int], str]] = {
            "cordon": lambda name, _: self._cordon(name, True),
            "uncordon": lambda name, _: self._cordon(name, False),
            "drain": lambda name, _: self._drain(name),
            "fail": lambda name, _: self._fall_silent(name),
            "recover": lambda name, _: self._recover(name),
            "remove": lambda name, _: self._remove(name),
            "add": self._add,
        }

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get(f"{API}/workloads", self._workloads),
            web.post(f"{API}/apply", _does(ApplyQuestion, lambda request: self.apply(request.manifests, request.namespace))),
            web.post(f"{API}/node-action", _does(NodeQuestion, lambda request: self.on_node(request))),
            web.post(f"{API}/scale", _does(ScaleQuestion, lambda request: self.scale(request))),
            web.post(f"{API}/load", _does(LoadQuestion, lambda request: self.load(request.snapshot), MOST_SNAPSHOT_BYTES)),
        ]

    async def _workloads(self, _: web.Request) -> web.Response:
        """Return the workloads that can be scaled."""
        found = [
            {
                "workload": f"{plural}/{each['metadata']['name']}",
                "namespace": each["metadata"]["namespace"],
                "replicas": each["spec"].get("replicas", 1),
            }
            for plural in _SCALED
            for each in self._store.list(plural).items
        ]
        return answer({"workloads": found})

    def apply(self, text: str, namespace: str) -> str:
        """Apply manifests, as `kubectl apply --server-side` does."""
        manifests = manifests_in("the text", text)
        if not manifests:
            raise SchedulerError("there is no object in the text")
        names = [self._applied(manifest, namespace) for manifest in manifests]
        return f"applied {', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"

    def _applied(self, manifest: Manifest, namespace: str) -> str:
        """Apply one manifest; an object with generateName is created instead."""
        content, name = manifest.content, manifest.content["metadata"].get("name", "")
        resource = self._store.context.catalogue.of_kind(content["apiVersion"], manifest.kind)
        if resource is None:
            raise SchedulerError(f"{manifest.where}: this cluster knows no {content['apiVersion']} {manifest.kind}")
        where = (content["metadata"].get("namespace") or namespace) if resource.namespaced else ""
        try:
            if name:
                self._store.patch(resource, name, content, where, patch_type=APPLY_PATCH, field_manager=_MANAGER, force=True)
            else:
                self._store.create(resource, content, where)
        except ApiError as error:
            raise SchedulerError(f"{manifest.where}: {error}") from error
        return f"{manifest.kind}/{name or content['metadata']['generateName']}"

    def on_node(self, request: NodeQuestion) -> str:
        """Run an action on a node; return what was done."""
        act = self._on_nodes.get(request.action)
        if act is None:
            raise SchedulerError(f"{request.action!r} is nothing that is done to nodes: {', '.join(self._on_nodes)}")
        self._store.get("nodes", request.node)  # raises NotFound
        return act(request.node, request.count)

    def _cordon(self, name: str, on: bool) -> str:
        """Cordon or uncordon a node."""
        self._store.patch("nodes", name, {"spec": {"unschedulable": on or None}}, patch_type=MERGE_PATCH)
        return f"{name} is {'cordoned' if on else 'open again'}"

    def _drain(self, name: str) -> str:
        """Cordon a node and evict its pods, except those of DaemonSets."""
        self._cordon(name, True)
        evicted, kept = 0, 0
        for pod in self._store.list("pods", field_selector=f"spec.nodeName={name}").items:
            if any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ())):
                continue
            try:
                self._store.evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
                evicted += 1
            except ApiError:  # forbidden by a disruption budget
                kept += 1
        return f"{name} is drained: {evicted} pods evicted" + (f", {kept} kept by their disruption budgets" if kept else "")

    def _fall_silent(self, name: str) -> str:
        """Stop the heartbeats of a node."""
        self._cluster.fail_node(name)
        return f"{name} falls silent; it is tainted when its lease runs out, and its pods are evicted after their tolerations"

    def _recover(self, name: str) -> str:
        self._cluster.recover_node(name)
        return f"{name} reports again"

    def _remove(self, name: str) -> str:
        self._store.delete("nodes", name)
        return f"{name} is gone"

    def _add(self, name: str, count: int) -> str:
        """Create nodes with the capacity, labels and taints of a node."""
        if not 1 <= count <= MOST_NODES:
            raise SchedulerError(f"{count} nodes cannot be added: 1 to {MOST_NODES} can")
        like, taken = self._store.get("nodes", name), {each["metadata"]["name"] for each in self._store.list("nodes").items}
        offers = {field: like["status"][field] for field in ("capacity", "allocatable")}
        taints = [each for each in like["spec"].get("taints", ()) if not each["key"].startswith("node.kubernetes.io/")]
        names = list(_new_names(taken, count))
        for each in names:
            labels = {**like["metadata"].get("labels", {}), HOSTNAME: each}
            self._store.create(
                "nodes", {"metadata": {"name": each, "labels": labels}, "spec": {"taints": taints}, "status": offers}
            )
        return f"{names[0]} is there" if count == 1 else f"{names[0]} to {names[-1]} are there"

    def scale(self, request: ScaleQuestion) -> str:
        """Change the replicas of a workload."""
        plural, _, name = request.workload.partition("/")
        if plural not in _SCALED or not 0 <= request.replicas <= MOST_REPLICAS:
            raise SchedulerError(
                f"{request.workload} cannot be scaled to {request.replicas}: 0 to {MOST_REPLICAS} can be asked for"
            )
        self._store.scale(plural, name, request.replicas, request.namespace)
        return f"{request.workload} has {request.replicas} replicas"

    def load(self, text: str) -> str:
        """Replace nodes, pods and workloads by those of a snapshot; its pods have no controllers here."""
        cluster = cluster_in("the text", Content(text.encode(), True))
        if not cluster.of(Node):
            raise SchedulerError("there is no node in the snapshot")
        for plural in (*_MAKERS, "pods", "nodes"):
            for obj in self._store.list(plural).items:
                meta = obj["metadata"]
                self._store.delete(plural, meta["name"], meta.get("namespace", ""), grace_seconds=0, propagation="Background")
        n_pods = 0
        for obj in sorted(cluster.objects, key=lambda each: isinstance(each, Pod)):
            if isinstance(obj, Pod) and is_finished(obj):
                continue
            raw = codec.to_dict(obj)
            raw["metadata"] = {name: value for name, value in raw["metadata"].items() if name not in _OUTLIVED}
            if isinstance(obj, Pod):
                raw.pop("status", None)
                raw["spec"].pop("priority", None)  # admission sets it from the priority class
                n_pods += 1
            namespace = raw["metadata"].get("namespace", "")
            for kind, made in (("namespaces", {"metadata": {"name": namespace}}), (INFO[type(obj)].plural, raw)):
                if kind != "namespaces" or namespace:
                    self._created(kind, made, namespace if made is raw else "")
        return f"the cluster of the snapshot is there: {len(cluster.of(Node))} nodes, {n_pods} pods, without their controllers"

    def _created(self, plural: str, raw: dict[str, Any], namespace: str) -> None:
        try:
            self._store.create(plural, raw, namespace)
        except AlreadyExists:
            return
        except ApiError as error:
            raise SchedulerError(f"{plural}/{raw['metadata']['name']} of the snapshot is refused: {error}") from error


def _new_names(taken: set[str], count: int) -> Iterator[str]:
    """Yield unused names of nodes."""
    number = len(taken)
    while count:
        name = f"node-{number:03d}"
        number += 1
        if name not in taken:
            count -= 1
            yield name


def _does(
    type_: type[Any], act: Callable[[Any], str], most: int = MOST_BYTES
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a handler that decodes a request, calls `act`, and answers with its sentence."""

    async def handle(request: web.Request) -> web.Response:
        async def found() -> Document:
            return {"done": act(await question(request, type_, most))}

        return await answered(found)

    return handle
