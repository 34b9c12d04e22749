"""The CronJob controller: creates a Job whenever the schedule says so.

In: CronJobs, their Jobs, the clock. Out: Jobs named after the minute they stand for, one for all missed moments together;
active Jobs awaited or replaced, as the concurrency policy says; finished Jobs kept up to the history limits; the status.
"""

from __future__ import annotations

from kubesched.embedded.clock import seconds_of, timestamp
from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.pods import controller_of, owned_by
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.validation.cron import read_schedule, zone_named
from kubesched.embedded.verbs.conditions import is_true
from kubesched.embedded.verbs.patching import copied

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"  # annotation: the moment a Job stands for


class CronJobs(Controller):
    """Starts Jobs on time."""

    resource_name = "cronjobs.batch"
    owned_resource = "jobs"

    def sync(self, obj: Object) -> float | None:
        jobs = self._jobs(obj)
        status: Object = dict(obj.get("status") or {})
        self._note_ended(obj, status, jobs)
        self._forget_history(obj, jobs)
        again = None if obj["spec"].get("suspend") else self._start_due(obj, status, jobs)
        active = [_reference(one) for one in self._jobs(obj) if _ending(one) is None]
        status.pop("active", None)
        self.report(obj, {**status, **({"active": active} if active else {})})
        return again

    def _jobs(self, owner: Object) -> list[Object]:
        """Return the Jobs of a CronJob that are not being deleted."""
        uid = owner["metadata"]["uid"]
        held = self._store.context.storage.table("jobs.batch").in_namespace(owner["metadata"]["namespace"])
        owned = [one.obj for one in held if (controller_of(one.obj) or {}).get("uid") == uid]
        return [one for one in owned if "deletionTimestamp" not in one["metadata"]]

    def _note_ended(self, owner: Object, status: Object, jobs: list[Object]) -> None:
        """Record an Event for Jobs that have ended since the last sync, and when one last succeeded."""
        known = {one["uid"] for one in status.get("active") or ()}
        for job in jobs:
            ending = _ending(job)
            if ending is None:
                continue
            if job["metadata"]["uid"] in known:
                text = f"Saw completed job: {job['metadata']['name']}, condition: {ending}"
                self.record(owner, "SawCompletedJob", text)
            done = (job.get("status") or {}).get("completionTime")
            if ending == "Complete" and done and done > status.get("lastSuccessfulTime", ""):
                status["lastSuccessfulTime"] = done

    def _forget_history(self, owner: Object, jobs: list[Object]) -> None:
        """Delete the oldest finished Jobs beyond the limits."""
        for ending, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            ended = [one for one in jobs if _ending(one) == ending]
            ended.sort(key=lambda one: (one.get("status") or {}).get("startTime", ""))
            for job in ended[: max(0, len(ended) - int(owner["spec"][field]))]:
                self._delete(owner, job)

    def _start_due(self, owner: Object, status: Object, jobs: list[Object]) -> float | None:
        """Start the Job of the latest moment that has come; return how long it is to the next one."""
        spec, now = owner["spec"], self._clock.now()
        schedule, zone = read_schedule(spec["schedule"]), zone_named(spec.get("timeZone"))
        since = seconds_of(status.get("lastScheduleTime") or owner["metadata"]["creationTimestamp"])
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, now - deadline)
        due = schedule.latest_between(since, now, zone)
        if due is not None:
            self._run(owner, status, jobs, due)
        moment = schedule.next_after(now if due is None or not schedule.every_seconds else due, zone)
        return None if moment is None else moment - now

    def _run(self, owner: Object, status: Object, jobs: list[Object], due: float) -> None:
        """Start a Job, unless an active one forbids it."""
        active = [one for one in jobs if _ending(one) is None]
        if active and owner["spec"]["concurrencyPolicy"] == "Forbid":
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.record(owner, "JobAlreadyActive", text)
            return
        if owner["spec"]["concurrencyPolicy"] == "Replace":
            for job in active:
                self._delete(owner, job)
        made = self._store.create_if_missing("jobs", job_of(owner, due))
        if made is not None:
            self.record(owner, "SuccessfulCreate", f"Created job {made['metadata']['name']}")
        status["lastScheduleTime"] = timestamp(due)

    def _delete(self, owner: Object, job: Object) -> None:
        if self._store.delete_if_there("jobs", job, propagation="Background"):
            self.record(owner, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def job_of(cron_job: Object, due: float) -> Object:
    """Return the Job for a moment. Its name follows from the minute, so that no moment has two."""
    template, metadata = copied(cron_job["spec"]["jobTemplate"]), cron_job["metadata"]
    given = template.get("metadata") or {}
    return {
        "metadata": {
            "name": f"{metadata['name']}-{int(due) // 60}",
            "namespace": metadata["namespace"],
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), SCHEDULED: timestamp(due)},
            "ownerReferences": [owned_by(cron_job)],
        },
        "spec": template["spec"],
    }


def _ending(job: Object) -> str | None:
    """Return the condition with which a Job has ended, or None."""
    return next((kind for kind in ("Complete", "Failed") if is_true(job, kind)), None)


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    found = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"]}
    return {**found, "namespace": metadata["namespace"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
