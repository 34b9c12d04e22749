"""Controllers that make pods: what they select, the template they stamp out, and how often."""

from __future__ import annotations

from kubesched.kube.api.meta import LabelSelector, ObjectMeta, TopLevel, Wire, always
from kubesched.kube.api.pod import PodSpec
from kubesched.kube.api.volumes import PersistentVolumeClaimTemplate


class PodTemplateSpec(Wire, kw_only=True):
    """The pod to make."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicaSetSpec(Wire, kw_only=True):
    """Which pods, how many; no number means 1."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSet(TopLevel, kw_only=True):
    """Keeps a number of equal pods running."""

    api_version: str = always("apps/v1")
    kind: str = always("ReplicaSet")
    spec: ReplicaSetSpec = ReplicaSetSpec()


class DeploymentSpec(ReplicaSetSpec, kw_only=True):
    """Which pods, how many, through replica sets."""

    paused: bool = False


class Deployment(TopLevel, kw_only=True):
    """Rolls out versions of a pod."""

    api_version: str = always("apps/v1")
    kind: str = always("Deployment")
    spec: DeploymentSpec = DeploymentSpec()


class StatefulSetSpec(ReplicaSetSpec, kw_only=True):
    """Which pods, how many, with claims of their own."""

    service_name: str = ""
    pod_management_policy: str = ""
    volume_claim_templates: tuple[PersistentVolumeClaimTemplate, ...] = ()


class StatefulSet(TopLevel, kw_only=True):
    """Keeps numbered pods running."""

    api_version: str = always("apps/v1")
    kind: str = always("StatefulSet")
    spec: StatefulSetSpec = StatefulSetSpec()


class DaemonSetSpec(Wire, kw_only=True):
    """Which pods; one a node."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSet(TopLevel, kw_only=True):
    """Keeps one pod on every fitting node."""

    api_version: str = always("apps/v1")
    kind: str = always("DaemonSet")
    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Wire, kw_only=True):
    """Which pods, how many at a time and in all."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class Job(TopLevel, kw_only=True):
    """Runs pods to completion."""

    api_version: str = always("batch/v1")
    kind: str = always("Job")
    spec: JobSpec = JobSpec()


class JobTemplateSpec(Wire, kw_only=True):
    """The job to make."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Wire, kw_only=True):
    """When to make which job."""

    schedule: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJob(TopLevel, kw_only=True):
    """Makes jobs by the clock."""

    api_version: str = always("batch/v1")
    kind: str = always("CronJob")
    spec: CronJobSpec = CronJobSpec()
