"""The Job controller: runs pods until enough have succeeded or too many have failed.

In: Jobs and their pods. Out: pods up to the parallelism, one for each index if the Job is Indexed; the counts; the conditions
Complete, Failed and Suspended. A finished Job is deleted after its time to live.
"""

from __future__ import annotations

from kubesched.embedded.clock import seconds_of, timestamp
from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import PodController
from kubesched.embedded.controllers.shared.pods import from_template, is_active, is_ready
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.verbs.conditions import condition, is_true, with_condition

INDEX = "batch.kubernetes.io/job-completion-index"  # label and annotation of a pod with an index
_FIRST_BACKOFF_SECONDS = 10.0
_LONGEST_BACKOFF_SECONDS = 360.0
_SHORTEST_LIFE_SECONDS = 3.0


class Jobs(PodController):
    """Runs Jobs until they are done."""

    resource_name = "jobs.batch"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._counted: dict[str, set[str]] = {}  # job uid to the uids of its pods that are in the counts

    def changed(self, change: Change) -> None:
        super().changed(change)
        if change.new is None and change.old is not None:
            self._counted.pop(change.old.obj["metadata"]["uid"], None)

    def sync(self, obj: Object) -> float | None:
        job, now = obj, self._clock.now()
        status = dict(job.get("status") or {})
        for kind in ("Complete", "Failed"):
            ended = condition(job, kind)
            if ended is not None and ended["status"] == "True":
                return self._delete_in_time(job, seconds_of(ended["lastTransitionTime"]), now)
        pods = self._pods.of_owner(job["metadata"]["uid"])
        active = [pod for pod in pods if is_active(pod)]
        suspended = bool(job["spec"].get("suspend"))
        if not suspended:
            status.setdefault("startTime", timestamp(now))
        self._count(job, status, pods)
        again: float | None = None
        verdict = self._verdict(job, status, pods, now)
        if verdict is not None:
            kind, reason, message = verdict
            self._end(job, status, active, kind, reason, message, now)
        elif suspended:
            status.pop("startTime", None)
            _set_condition(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
            self.delete_pods(job, *active)
        else:
            if is_true(job, "Suspended"):
                _set_condition(status, "Suspended", "False", "JobResumed", "Job resumed", now)
            again = self._fill(job, status, pods, active, now)
            active = [pod for pod in self._pods.of_owner(job["metadata"]["uid"]) if is_active(pod)]
        status["active"] = 0 if verdict is not None or suspended else len(active)
        status["ready"] = sum(is_ready(pod) for pod in active)
        self.report(job, {name: value for name, value in status.items() if value not in (0, [])})
        return again

    def _count(self, job: Object, status: Object, pods: list[Object]) -> None:
        """Count each finished pod once. The counts stay when the pods are deleted."""
        uid = job["metadata"]["uid"]
        is_first_sight = uid not in self._counted
        counted = self._counted.get(uid, set())
        self._counted[uid] = set()  # a pod that is gone does not come back
        for phase, field in (("Succeeded", "succeeded"), ("Failed", "failed")):
            ended = {pod["metadata"]["uid"] for pod in pods if (pod.get("status") or {}).get("phase") == phase}
            if is_first_sight:  # a server started again: what is written was counted from these
                status[field] = max(status.get(field, 0), len(ended))
            else:
                status[field] = status.get(field, 0) + len(ended - counted)
            self._counted[uid] |= ended
        if job["spec"].get("completionMode") == "Indexed":
            completed = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Succeeded"]
            done = sorted(_indexes(completed) | _read_indexes(status.get("completedIndexes", "")))
            status["completedIndexes"] = _write_indexes(done)
            status["succeeded"] = len(done)

    def _verdict(self, job: Object, status: Object, pods: list[Object], now: float) -> tuple[str, str, str] | None:
        """Return type, reason and message of the condition that ends a Job, or None."""
        spec = job["spec"]
        restarts = 0
        if spec["template"]["spec"].get("restartPolicy") == "OnFailure":
            restarts = sum(one.get("restartCount", 0) for pod in pods for one in _container_statuses(pod))
        wanted = spec.get("completions")
        succeeded = status.get("succeeded", 0)
        if wanted is not None and succeeded >= wanted:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        if wanted is None and succeeded and not status.get("active"):
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        if status.get("failed", 0) > spec.get("backoffLimit", 6) or restarts > spec.get("backoffLimit", 6):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and "startTime" in status and now - seconds_of(status["startTime"]) >= deadline:
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        return None

    def _fill(self, job: Object, status: Object, pods: list[Object], active: list[Object], now: float) -> float | None:
        """Create or delete pods until as many are active as there should be; return when to look again."""
        spec = job["spec"]
        wanted = spec.get("completions")
        size = int(spec.get("parallelism", 1))
        if wanted is not None:
            size = min(size, wanted - status.get("succeeded", 0))
        elif status.get("succeeded"):
            size = min(size, len(active))
        self.delete_pods(job, *sorted(active, key=is_ready)[: max(0, len(active) - size)])
        deadline = spec.get("activeDeadlineSeconds")
        left = None if deadline is None else seconds_of(status["startTime"]) + deadline - now
        if len(active) >= size:
            return left
        wait = self._backoff(status, pods, now)
        if wait > 0:
            return wait if left is None else min(wait, left)
        missing = size - len(active)
        if spec.get("completionMode") == "Indexed":
            taken = _indexes(active) | _read_indexes(status.get("completedIndexes", ""))
            for index in [one for one in range(int(wanted or 0)) if one not in taken][:missing]:
                self.create_pod(job, job_pod(job, index))
        else:
            for _ in range(missing):
                self.create_pod(job, job_pod(job, None))
        return left

    def _backoff(self, status: Object, pods: list[Object], now: float) -> float:
        """Return how long to wait after a failed pod: 10 s, 20 s, 40 s, up to six minutes."""
        failed = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Failed"]
        if not failed:
            return 0.0
        pause = min(_FIRST_BACKOFF_SECONDS * 2 ** (status.get("failed", 1) - 1), _LONGEST_BACKOFF_SECONDS)
        return float(max(_ended_at(pod) for pod in failed) + pause - now)

    def _end(self, job: Object, status: Object, active: list[Object], kind: str, reason: str, message: str, now: float) -> None:
        """Delete the active pods and set the conditions.

        SuccessCriteriaMet or FailureTarget comes first, as in kube-controller-manager.
        """
        self.delete_pods(job, *active)
        first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        _set_condition(status, first, "True", reason, message, now)
        _set_condition(status, kind, "True", reason, message, now)
        if kind == "Complete":
            status["completionTime"] = timestamp(now)
            self.record(job, "Completed", "Job completed")
        else:
            self.record(job, reason, message, "Warning")

    def _delete_in_time(self, job: Object, ended: float, now: float) -> float | None:
        """Delete a finished Job when its time to live is over."""
        life = job["spec"].get("ttlSecondsAfterFinished")
        if life is None:
            return None
        # Never at once: helm waits for its hooks, jobs that live for 0 seconds, and must see that they are done.
        left = ended + max(float(life), _SHORTEST_LIFE_SECONDS) - now
        if left > 0:
            return left
        metadata = job["metadata"]
        self._store.delete("jobs", metadata["name"], metadata["namespace"], propagation="Foreground")
        return None


def job_pod(job: Object, index: int | None) -> Object:
    """Return a pod of a Job, with its index if the Job is Indexed."""
    labels = {} if index is None else {INDEX: str(index)}
    pod = from_template(job["spec"]["template"], job, labels=labels)
    if index is not None:
        pod["metadata"].setdefault("annotations", {})[INDEX] = str(index)
        pod["metadata"]["generateName"] = f"{job['metadata']['name']}-{index}-"
        pod["spec"]["hostname"] = f"{job['metadata']['name']}-{index}"
        for container in pod["spec"]["containers"]:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return pod


def _set_condition(status: Object, kind: str, value: str, reason: str, message: str, now: float) -> None:
    more = {"lastProbeTime": timestamp(now), "reason": reason, "message": message}
    status["conditions"] = with_condition(status.get("conditions"), kind, value, timestamp(now), **more)


def _container_statuses(pod: Object) -> list[Object]:
    found: list[Object] = (pod.get("status") or {}).get("containerStatuses") or []
    return found


def _ended_at(pod: Object) -> float:
    ended = (((one.get("state") or {}).get("terminated") or {}).get("finishedAt") for one in _container_statuses(pod))
    return max((seconds_of(moment) for moment in ended if moment), default=0.0)


def _indexes(pods: list[Object]) -> set[int]:
    """Return the indexes of pods."""
    texts = ((pod["metadata"].get("annotations") or {}).get(INDEX, "") for pod in pods)
    return {int(text) for text in texts if text.isdecimal()}


def _read_indexes(text: str) -> set[int]:
    """Return the indexes of a text such as "0-3,5"."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def _write_indexes(indexes: list[int]) -> str:
    """Return indexes as a text such as "0-3,5"."""
    parts: list[list[int]] = []
    for index in indexes:
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in parts)
