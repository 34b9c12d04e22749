"""Replicas: as many pods of one template as anybody may want.

In: the manifest of a pod or of a workload. Out: pods NAME-more-1, NAME-more-2, ..., each with the claims that would be made
for it. A pod without claims of its own is admitted once and then renamed, which is what makes thousands of them cheap.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.embedded.controllers.shared.pods import template_hash
from kubesched.embedded.controllers.workloads.statefulsets import numbered_pod
from kubesched.errors import SchedulerError
from kubesched.kube.api import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaimTemplate, StorageClass, TopLevel
from kubesched.scheduler.cluster import class_of_claim
from kubesched.solver.objects import renamed
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.claims import settled_at_once, with_claims
from kubesched.tools.plan.existing import kept_by
from kubesched.tools.plan.manifests import Manifest, Raw
from kubesched.tools.snapshots.captured import Captured


class Replicas:
    """The pods of one workload, without end."""

    def __init__(self, manifest: Manifest, cluster: Captured, namespace: str) -> None:
        """Take a workload's template; raise SchedulerError if the workload would be refused."""
        self._admission = Admission(cluster.objects, namespace=namespace, at=cluster.at)
        self._templates = {template.key: template for template in cluster.of(ResourceClaimTemplate)}
        self._classes = {found.name: found for found in cluster.of(StorageClass)}
        self._volumes: dict[str, PersistentVolume] = {volume.name: volume for volume in cluster.of(PersistentVolume)}
        self._raw = self._admission.take(manifest)
        self.title = f"{manifest.kind}/{self._raw['metadata']['namespace']}/{self._raw['metadata']['name']}"
        try:
            self._first = self._pod()
            self.kept_by = kept_by(self._raw, self._admission)
        except SchedulerError as error:
            raise SchedulerError(f"{manifest.where}: {error}") from error

    def _pod(self) -> Pod:
        """Return a pod of the template, on no node."""
        raw, kind, spec = self._raw, self._raw["kind"], self._raw.get("spec") or {}
        if kind == "DaemonSet":
            return self._admission.daemon_pod_of(raw)
        if kind == "StatefulSet":
            return self._numbered(0)[0]
        if kind == "CronJob":
            raw = self._raw = self._admission.run_of(raw)
            kind, spec = "Job", raw["spec"]
        if kind == "Job":
            raw = {**raw, "spec": {**spec, "suspend": False, "parallelism": 1, "completions": 1}}
        elif kind == "Pod":
            raw = {**raw, "spec": {key: value for key, value in spec.items() if key != "nodeName"}}
        else:
            raw = {**raw, "spec": {**spec, "replicas": 1}}
        return self._admission.pods_of(raw)[0]

    def _numbered(self, number: int) -> tuple[Pod, list[Raw]]:
        name, revision = self._raw["metadata"]["name"], template_hash(self._raw["spec"]["template"])
        pod, claims = numbered_pod(self._raw, number, f"{name}-{revision}")
        return self._admission.admit_pod(pod), claims

    def endless(self) -> Iterator[tuple[Pod, list[TopLevel]]]:
        """Yield pods, each with the claims that are made for it."""
        has_templates = self._raw["kind"] == "StatefulSet" and bool(self._raw["spec"].get("volumeClaimTemplates"))
        spec, name, number = self._first.spec, self._raw["metadata"]["name"], 0
        has_own = any(volume.ephemeral is not None for volume in spec.volumes) or any(
            entry.resource_claim_template_name is not None for entry in spec.resource_claims
        )
        while True:
            number += 1
            pod, claims = self._first, list[TopLevel]()
            if has_templates:
                pod, raw = self._numbered(_FAR + number)
                claims = [self._admission.admit_claim(claim) for claim in raw]
            pod = renamed(pod, f"{name}-more-{number}")
            if has_own:
                pod, made, missing = with_claims(pod, self._templates, self._admission)
                if missing:
                    raise SchedulerError(missing)
                claims += made
            yield pod, [obj for claim in claims for obj in self._settled(claim)]

    def _settled(self, claim: TopLevel) -> list[TopLevel]:
        """Return a claim with its volume, if it is given one before its pod is scheduled."""
        if not isinstance(claim, PersistentVolumeClaim):
            return [claim]
        settled = settled_at_once(claim, self._volumes.values(), self._classes.get(class_of_claim(claim)))
        if settled is None:
            return [claim]
        claim, volume = settled
        self._volumes[volume.name] = volume
        return [volume, claim]


_FAR = 1_000_000
"""Ordinals of copies of a StatefulSet begin behind those that any set has, so that their claims are new."""
