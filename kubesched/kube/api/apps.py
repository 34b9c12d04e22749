"""Workload controllers, as far as their pods are read from them: selector, template and number.

The scheduler reads ReplicaSets and StatefulSets, to spread their pods by default. The other kinds are for `plan`, which makes
the pods that a manifest would lead to.
"""

from __future__ import annotations

from kubesched.kube.api.meta import LabelSelector, ObjectMeta, TopLevel, Wire, always
from kubesched.kube.api.pod import PodSpec
from kubesched.kube.api.volumes import PersistentVolumeClaimTemplate


class PodTemplateSpec(Wire, kw_only=True):
    """The pods that a controller makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicaSetSpec(Wire, kw_only=True):
    """The pods of a ReplicaSet."""

    replicas: int | None = None  # absent means 1
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSet(TopLevel, kw_only=True):
    """A number of equal pods."""

    api_version: str = always("apps/v1")
    kind: str = always("ReplicaSet")
    spec: ReplicaSetSpec = ReplicaSetSpec()


class DeploymentSpec(ReplicaSetSpec, kw_only=True):
    """The pods of a Deployment, which makes a ReplicaSet for each template."""

    paused: bool = False  # no rollout for now


class Deployment(TopLevel, kw_only=True):
    """ReplicaSets, one for each version of a template."""

    api_version: str = always("apps/v1")
    kind: str = always("Deployment")
    spec: DeploymentSpec = DeploymentSpec()


class StatefulSetSpec(ReplicaSetSpec, kw_only=True):
    """The pods of a StatefulSet, each with claims of its own."""

    service_name: str = ""  # the headless service of its pods
    pod_management_policy: str = ""  # OrderedReady or Parallel
    volume_claim_templates: tuple[PersistentVolumeClaimTemplate, ...] = ()


class StatefulSet(TopLevel, kw_only=True):
    """A number of numbered pods."""

    api_version: str = always("apps/v1")
    kind: str = always("StatefulSet")
    spec: StatefulSetSpec = StatefulSetSpec()


class DaemonSetSpec(Wire, kw_only=True):
    """The pods of a DaemonSet."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSet(TopLevel, kw_only=True):
    """A pod on each node that its rules allow."""

    api_version: str = always("apps/v1")
    kind: str = always("DaemonSet")
    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Wire, kw_only=True):
    """The pods of a Job."""

    parallelism: int | None = None  # how many at a time; absent means 1
    completions: int | None = None  # how many in all; absent means that one success is enough
    completion_mode: str | None = None  # Indexed: each pod has an index and a name that follows from it
    suspend: bool | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class Job(TopLevel, kw_only=True):
    """Pods that run to completion."""

    api_version: str = always("batch/v1")
    kind: str = always("Job")
    spec: JobSpec = JobSpec()


class JobTemplateSpec(Wire, kw_only=True):
    """The Jobs that a CronJob makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Wire, kw_only=True):
    """The schedule and the Jobs of a CronJob."""

    schedule: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJob(TopLevel, kw_only=True):
    """Jobs at scheduled times."""

    api_version: str = always("batch/v1")
    kind: str = always("CronJob")
    spec: CronJobSpec = CronJobSpec()
