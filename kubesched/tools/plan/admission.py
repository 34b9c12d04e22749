"""Admission: takes objects in as an API server would, and makes of workloads the pods that their controllers would make.

In: manifests, or objects as plain dicts. Out: the same as they would be stored, made by the embedded API server: settled,
defaulted, admitted (priority, tolerations, the default storage class), or refused in its words; and from a workload its
pods, made by the functions that the embedded controllers use, but under names that can be foretold. Nothing is kept but
what admission asks for, and nothing goes anywhere.

    admission = Admission(cluster.objects)
    for manifest in read_manifests(["deploy/"]):
        workload = admission.take(manifest)          # plain dicts, as they stand in JSON
        pods = admission.pods_of(workload, nodes)    # structs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.clock import timestamp
from kubesched.embedded.controllers.shared.pods import from_template, template_hash
from kubesched.embedded.controllers.workloads.daemonsets import daemon_pod, runs_on
from kubesched.embedded.controllers.workloads.deployments import replica_set_of
from kubesched.embedded.controllers.workloads.jobs import job_pod
from kubesched.embedded.controllers.workloads.statefulsets import numbered_pod
from kubesched.embedded.verbs.context import WriteOptions, key_of
from kubesched.embedded.verbs.patching import copied
from kubesched.embedded.verbs.writing import settled
from kubesched.embedded.verbs.writing import store as put
from kubesched.errors import ApiError, SchedulerError
from kubesched.kube.api import INFO, KINDS, Node, PersistentVolumeClaim, Pod, TopLevel, codec, compile_required_node_affinity
from kubesched.solver.objects import uid_of
from kubesched.tools.plan.manifests import Manifest, Raw
from kubesched.tools.simulation.clock import EPOCH

_ADMISSION_READS = ("Namespace", "PriorityClass", "StorageClass", "LimitRange", "RuntimeClass")
_NOT_TO_CREATE = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields")
MOST_PODS = 150_000
"""Of one workload: what Kubernetes supports in a whole cluster."""


class Admission:
    """Takes objects in as the API server of a cluster would."""

    def __init__(self, known: Iterable[TopLevel] = (), *, namespace: str = "default", at: float = EPOCH) -> None:
        """Open for a cluster in which these objects are; what names no namespace is taken to be for `namespace`."""
        self.namespace = namespace
        self._store = ObjectStore(ManualClock(at), seed=0)
        context = self._store.context
        for obj in known:
            if obj.kind in _ADMISSION_READS:
                kind, raw = context.resource(INFO[type(obj)].plural), codec.to_dict(obj)
                raw["metadata"].setdefault("creationTimestamp", timestamp(context.clock.now()))
                put(context, kind, key_of(kind, obj.metadata.namespace, obj.metadata.name), raw)

    def take(self, manifest: Manifest) -> Raw:
        """Return an object as it would be stored; raise SchedulerError, with where it stands, if it would be refused.

        Fields that the kind does not have are refused, as kubectl has them refused.
        """
        try:
            if manifest.type is not None:
                codec.convert(manifest.content, manifest.type)  # says better than a server which field has the wrong type
            return self.admit(manifest.content, strict=True)
        except SchedulerError as error:
            raise SchedulerError(f"{manifest.where}: {error}") from error

    def check_fields(self, manifest: Manifest) -> None:
        """Raise SchedulerError if an object of a kind that no placement depends on has a field that its kind does not have."""
        kind = self._store.context.catalogue.of_kind(str(manifest.content["apiVersion"]), manifest.kind)
        if kind is not None:
            try:
                settled(self._store.context, kind, copied(manifest.content), WriteOptions(field_validation="Strict"))
            except SchedulerError as error:
                raise SchedulerError(f"{manifest.where}: {error}") from error

    def admit(self, content: Mapping[str, Any], *, strict: bool = False) -> Raw:
        """Return an object settled, defaulted and admitted; raise ApiError if it would be refused."""
        type_ = KINDS.get((str(content.get("apiVersion")), str(content.get("kind"))))
        metadata = {key: value for key, value in content["metadata"].items() if key not in _NOT_TO_CREATE}
        metadata["name"] = metadata.get("name") or f"{metadata.get('generateName', '')}1"
        raw = {**content, "metadata": metadata}
        if type_ is None:
            return raw
        info = INFO[type_]
        if info.namespaced:
            # A plan may be made before its namespace is there.
            metadata["namespace"] = namespace = metadata.get("namespace") or self.namespace
            if self._store.context.find(self._store.context.resource("namespaces"), "", namespace) is None:
                self._store.create("namespaces", {"metadata": {"name": namespace}})
        if info.kind == "Pod":
            self._open_runtime_class(raw.get("spec") or {})
        try:
            kind = self._store.context.resource(f"{info.plural}.{info.group}" if info.group else info.plural)
        except ApiError:
            return raw  # a kind that the embedded server does not have: it is taken as it is
        if kind.api_version != raw["apiVersion"]:
            return raw
        stays = info.kind in _ADMISSION_READS
        try:
            made = self._store.create(kind, raw, metadata.get("namespace", ""), dry_run=not stays, strict=strict)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            namespace = metadata.get("namespace", "")
            made = self._store.patch(kind, metadata["name"], raw, namespace, patch_type="application/merge-patch+json")
        return {**raw, **made, "apiVersion": raw["apiVersion"], "kind": raw["kind"]}

    def _open_runtime_class(self, spec: Mapping[str, Any]) -> None:
        """Let a runtime class be there that only the pod tells of: it may come later, or may not have been read."""
        name, kind = spec.get("runtimeClassName"), self._store.context.resource("runtimeclasses.node.k8s.io")
        if name and self._store.context.find(kind, "", name) is None:
            overhead = {"overhead": {"podFixed": spec["overhead"]}} if spec.get("overhead") else {}
            self._store.create(kind, {"metadata": {"name": name}, "handler": "unknown", **overhead})

    def admit_pod(self, content: Mapping[str, Any], name: str = "") -> Pod:
        """Return a pod admitted, under a name; its uid follows from namespace and name."""
        metadata = {**content["metadata"], **({"name": name} if name else {})}
        raw = self.admit({"apiVersion": "v1", "kind": "Pod", **content, "metadata": metadata})
        raw["metadata"]["uid"] = uid_of("Pod", raw["metadata"]["namespace"], raw["metadata"]["name"])
        return codec.convert(raw, Pod)

    # Workloads to pods

    def pods_of(self, workload: Raw, nodes: Sequence[Node] = ()) -> list[Pod]:
        """Return the pods that a workload, as `take` returned it, would have: NAME-1, NAME-2, ... or its ordinals.

        A CronJob has those of one run, a Job those that run at the same time, a DaemonSet one for each of the nodes that
        it matches, something suspended none.
        """
        kind, name, spec = workload["kind"], workload["metadata"]["name"], workload.get("spec") or {}
        if kind == "Pod":
            return [self.admit_pod(workload)]
        if kind == "CronJob":
            return [] if spec.get("suspend") else self.pods_of(self.run_of(workload))
        if kind == "Job":
            if spec.get("suspend"):
                return []
            size, completions = int(spec.get("parallelism", 1)), spec.get("completions")
            size = _count(workload, "parallelism", size if completions is None else min(size, int(completions)))
            if spec.get("completionMode") == "Indexed":
                return [self.admit_pod(job_pod(workload, index), f"{name}-{index}") for index in range(size)]
            return [self.admit_pod(job_pod(workload, None), f"{name}-{number}") for number in range(1, size + 1)]
        if kind == "DaemonSet":
            revision = template_hash(spec["template"])
            return [
                self.admit_pod(daemon_pod(workload, node.name, revision), f"{name}-{number}")
                for number, node in enumerate(self.nodes_of(workload, nodes), 1)
            ]
        if kind == "StatefulSet":
            return [self.admit_pod(pod) for pod, _ in self._numbered(workload)]
        owner = self.replica_set_of(workload) if kind == "Deployment" else workload
        template = owner["spec"].get("template") or {"spec": {}}
        return [
            self.admit_pod(from_template(template, owner), f"{name}-{number}")
            for number in range(1, _count(workload, "replicas") + 1)
        ]

    def replica_set_of(self, deployment: Raw) -> Raw:
        """Return the replica set through which a deployment would have its pods."""
        spec = deployment["spec"]
        made = replica_set_of(deployment, template_hash(spec["template"]), int(spec.get("replicas", 1)), 1)
        raw = self.admit({"apiVersion": "apps/v1", "kind": "ReplicaSet", **made})
        raw["metadata"]["uid"] = uid_of("ReplicaSet", raw["metadata"]["namespace"], raw["metadata"]["name"])
        return raw

    def run_of(self, cron_job: Raw) -> Raw:
        """Return the job that a CronJob would start, under its own name."""
        template, given = (cron_job.get("spec") or {}).get("jobTemplate") or {}, cron_job["metadata"]
        metadata = {**(template.get("metadata") or {}), "name": given["name"], "namespace": given["namespace"]}
        return self.admit({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec") or {}})

    def claims_of(self, workload: Raw) -> list[PersistentVolumeClaim]:
        """Return the volume claims that the pods of a workload would mount, if it is a StatefulSet."""
        numbered = self._numbered(workload) if workload["kind"] == "StatefulSet" else ()
        return [self.admit_claim(claim) for _, claims in numbered for claim in claims]

    def admit_claim(self, content: Mapping[str, Any]) -> PersistentVolumeClaim:
        """Return a volume claim admitted."""
        raw = self.admit({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **content})
        return codec.convert(raw, PersistentVolumeClaim)

    def daemon_pod_of(self, daemon_set: Raw) -> Pod:
        """Return a pod of a DaemonSet, on no node."""
        return self.admit_pod(daemon_pod(daemon_set, "", ""), daemon_set["metadata"]["name"])

    def nodes_of(self, daemon_set: Raw, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes on which a DaemonSet would have a pod."""
        asked = codec.convert(daemon_pod(daemon_set, "", ""), Pod)
        affinity = compile_required_node_affinity(asked)
        return [node for node in nodes if runs_on(asked, affinity, node)]

    def _numbered(self, owner: Raw) -> Iterator[tuple[Raw, list[Raw]]]:
        spec = owner["spec"]
        first = int((spec.get("ordinals") or {}).get("start", 0))
        revision = f"{owner['metadata']['name']}-{template_hash(spec['template'])}"
        for ordinal in range(first, first + _count(owner, "replicas")):
            yield numbered_pod(owner, ordinal, revision)


def _count(workload: Raw, field: str, given: int | None = None) -> int:
    """Return how many pods a workload asks for; raise SchedulerError if nobody could have so many."""
    count = int(workload["spec"].get(field, 1)) if given is None else given
    if count > MOST_PODS:
        name = workload["metadata"]["name"]
        raise SchedulerError(
            f"{workload['kind']} {name}: spec.{field}: {count} pods are more than a cluster can have ({MOST_PODS})"
        )
    return count
