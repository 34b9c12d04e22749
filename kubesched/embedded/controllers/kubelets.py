"""Fake kubelets: pods on nodes start, become ready and end; nodes report that they are alive.

In: pods bound to nodes, deletions, annotations. Out: statuses, leases, Events. Every node has a kubelet unless it is stopped.
Annotations on a pod control it:

    kubesched.io/pull-seconds, start-seconds, ready-seconds    delays, in place of those of the pace
    kubesched.io/run-seconds                                   how long the pod runs (pods of jobs always end)
    kubesched.io/exit-code                                     how it ends; not 0 is a failure
    kubesched.io/pull-error: "true"                            its image cannot be pulled

The annotation `kubesched.io/kubelet: stopped` on a node stops its kubelet.

A pod's life: bound -pull, start-> Running -ready-> Ready -run-> Succeeded, Failed or restarted; deleted -stop-> gone. Each
sync takes one step, or returns how long the next one still has to wait.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kubesched.embedded.clock import timestamp
from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Workers
from kubesched.embedded.controllers.shared.pods import controller_of, is_finished, key_of, split
from kubesched.embedded.schema.resources import RELEASES, Object
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.verbs.conditions import condition, is_true, with_condition
from kubesched.errors import NotFound
from kubesched.kube.api import format_micro_time
from kubesched.kube.values import HOSTNAME

PREFIX = "kubesched.io/"
LEASE_NAMESPACE = "kube-node-lease"
KUBELET_PORT = 10250  # nothing listens there
_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "KubeletReady", "kubelet is posting ready status"),
)
MOST_IMAGES = 50  # that a kubelet reports of its node
IMAGE_BYTES = 50 * 1024 * 1024  # all images are taken to be this large
_FIRST_POD_NET, _FIRST_NODE_NET = 244, 100  # the first pods get 10.244.0.1 and so on, the first nodes 10.100.0.1
_LONGEST_BACKOFF_SECONDS = 300.0  # of CrashLoopBackOff


class Kubelets(Workers):
    """The kubelets of all nodes."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._stopped: set[str] = set()
        self._known_images: dict[str, dict[str, None]] = {}
        self._due: dict[str, dict[str, float]] = {}  # pod uid to when each step is allowed
        self._numbers = itertools.count(1)  # of addresses
        self._pod_work = self.worker("kubelet", self._sync_pod)
        self._node_work = self.worker("node heartbeat", self._sync_node)

    def start(self) -> None:
        """Queue all nodes and their pods. Addresses go on after the highest one that is in use."""
        self._store.listen("pods", self._pod_changed)
        self._store.listen("nodes", self._node_changed)
        self._numbers = itertools.count(1 + max(self._numbers_in_use(), default=0))
        for node in self._store.list("nodes").items:
            self._node_work.add(node["metadata"]["name"])
            for pod in self._pods.on_node(node["metadata"]["name"]):
                self._pod_work.add(key_of(pod))

    def _numbers_in_use(self) -> Iterator[int]:
        """Yield the numbers behind the addresses that pods and nodes have, as after a restart with objects kept on disk."""
        for pod in self._store.list("pods").items:
            yield _number_of((pod.get("status") or {}).get("podIP", ""))
        for node in self._store.list("nodes").items:
            for one in (node.get("status") or {}).get("addresses") or ():
                yield _number_of(one.get("address", ""), _FIRST_NODE_NET)

    def fail(self, node: str) -> None:
        """Stop the kubelet of a node: no more heartbeats, no more changes to its pods."""
        self._stopped.add(node)

    def recover(self, node: str) -> None:
        """Start the kubelet of a node again."""
        self._stopped.discard(node)
        self._node_work.add(node)
        for pod in self._pods.on_node(node):
            self._pod_work.add(key_of(pod))

    def is_stopped(self, node: Object) -> bool:
        """Return whether a node's kubelet is stopped, by a test or by an annotation."""
        annotations = node["metadata"].get("annotations") or {}
        return node["metadata"]["name"] in self._stopped or annotations.get(f"{PREFIX}kubelet") == "stopped"

    def _pod_changed(self, change: Change) -> None:
        """Queue a pod on a node; forget one that is gone."""
        if change.new is None:
            self._pod_work.forget(change.key)
            if change.old is not None:
                self._due.pop(change.old.obj["metadata"]["uid"], None)
            return
        pod = change.new.obj
        if pod["spec"].get("nodeName"):
            self._pod_work.add(change.key)

    def _node_changed(self, change: Change) -> None:
        """Queue a node that is new, or whose kubelet was stopped or started, with its pods; forget one that is gone."""
        if change.new is None:
            self._known_images.pop(change.key, None)
            self._stopped.discard(change.key)
            self._node_work.forget(change.key)
            return
        before = change.old.obj if change.old is not None else None
        if before is None or self.is_stopped(before) != self.is_stopped(change.new.obj):
            self._node_work.add(change.key)
            for pod in self._pods.on_node(change.key):
                self._pod_work.add(key_of(pod))

    # --- nodes

    def _sync_node(self, name: str) -> float | None:
        """Report a node, and renew its lease at each interval."""
        node = self._store.get("nodes", name)
        if self.is_stopped(node):
            return None
        held = node["metadata"].get("labels") or {}
        missing = {key: value for key, value in kubelet_labels(name).items() if key not in held}
        if missing:
            self._store.patch("nodes", name, {"metadata": {"labels": missing}})
        if not is_true(node, "Ready"):
            self._report_ready(node)
        if not self._pace.lease_seconds:
            return None
        self._renew_lease(node)
        return self._pace.lease_seconds

    def _report_ready(self, node: Object) -> None:
        """Write the status of a node that is new or came back: conditions, versions, and addresses if it has none."""
        status, name = node.get("status") or {}, node["metadata"]["name"]
        conditions = status.get("conditions") or []
        now, release = timestamp(self._clock.now()), self._store.context.catalogue.release
        for kind, reason, text in _HEALTHY:
            value = "True" if kind == "Ready" else "False"
            conditions = with_condition(conditions, kind, value, now, reason=reason, message=text, lastHeartbeatTime=now)
        info = {
            **dict.fromkeys(("bootID", "machineID", "systemUUID"), node["metadata"]["uid"]),
            "kubeProxyVersion": "",
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kernelVersion": "simulated",
            "osImage": "kubesched",
            "containerRuntimeVersion": f"kubesched://1.{release}",
            "kubeletVersion": RELEASES[release],
        }
        update: Object = {
            "conditions": conditions,
            "nodeInfo": {**info, **(status.get("nodeInfo") or {})},
            "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        }
        if not status.get("addresses"):
            number = next(self._numbers)
            address = f"10.{_FIRST_NODE_NET + (number >> 16 & 127)}.{number >> 8 & 255}.{number & 255}"
            update["addresses"] = [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ]
        self._store.patch("nodes", name, {"status": update}, subresource="status")

    def _renew_lease(self, node: Object) -> None:
        """Renew the lease by which the node lifecycle controller sees that the kubelet is alive."""
        name = node["metadata"]["name"]
        now = format_micro_time(self._clock.now())
        spec = {"holderIdentity": name, "leaseDurationSeconds": self._pace.lease_duration_seconds, "renewTime": now}
        try:
            self._store.patch("leases", name, {"spec": spec}, LEASE_NAMESPACE)
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            metadata = {"name": name, "ownerReferences": [owner]}
            self._store.create("leases", {"metadata": metadata, "spec": spec}, LEASE_NAMESPACE)

    # --- pods

    def _sync_pod(self, key: str) -> float | None:
        """Take the next step of a pod, if its kubelet runs."""
        pod = self._pods.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        node = self._store.find("nodes", pod["spec"]["nodeName"])
        if node is None or self.is_stopped(node):
            return None
        if "deletionTimestamp" in pod["metadata"]:
            return self._end(pod)
        if is_finished(pod):
            return None
        return self._advance(pod, node)

    def _end(self, pod: Object) -> float | None:
        """Remove a deleted pod once its containers have had time to stop."""
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        wait = self._wait(pod, "stop", min(self._pace.stop_seconds, float(grace)))
        if wait > 0:
            return wait
        namespace, name = split(key_of(pod))
        self._record(pod, "Killing", f"Stopping container {pod['spec']['containers'][0]['name']}")
        self._store.delete("pods", name, namespace, grace_seconds=0, uid=pod["metadata"]["uid"])
        return None

    def _advance(self, pod: Object, node: Object) -> float | None:
        """Take the next step of a pod, or return when it is due."""
        status = pod.get("status") or {}
        phase = status.get("phase", "Pending")
        scheduled = condition(pod, "PodScheduled")
        # A scheduler wrote it too late: the kubelet knows better.
        if scheduled is not None and scheduled["status"] == "False":
            self._store.report("pods", pod, _with_conditions(status, timestamp(self._clock.now()), {"PodScheduled": "True"}))
            return None
        if phase == "Pending":
            return self._start(pod, node)
        run_seconds = self._run_seconds(pod)
        if not is_true(pod, "Ready"):
            wait = self._wait(pod, "ready", self._seconds(pod, "ready", self._pace.ready_seconds))
            if wait > 0:
                return wait
            self._store.report("pods", pod, _ready_status(pod, timestamp(self._clock.now())))
            return run_seconds
        self._start_ephemeral(pod, status)
        return None if run_seconds is None else self._finish(pod, run_seconds)

    def _start_ephemeral(self, pod: Object, status: Object) -> None:
        """Start the ephemeral containers that `kubectl debug` added to a running pod."""
        held = status.get("ephemeralContainerStatuses") or []
        known = {one["name"] for one in held}
        added = [one for one in pod["spec"].get("ephemeralContainers") or () if one["name"] not in known]
        if added:
            state = {"running": {"startedAt": timestamp(self._clock.now())}}
            fresh = [_container_status(one, {}, state, False, 0) for one in added]
            self._store.report("pods", pod, {**status, "ephemeralContainerStatuses": [*held, *fresh]})
            for one in added:
                self._record(pod, "Started", f"Started container {one['name']}")

    def _start(self, pod: Object, node: Object) -> float | None:
        """Pull the images that the node does not have, then start the containers."""
        metadata, name = pod["metadata"], node["metadata"]["name"]
        if (metadata.get("annotations") or {}).get(f"{PREFIX}pull-error") == "true":
            self._report_pull_error(pod)
            return None
        images = {container["image"] for container in pod["spec"]["containers"]}
        known = self._known_images.setdefault(name, {})
        fresh = images - known.keys()
        pull = self._seconds(pod, "pull", self._pace.pull_seconds) if fresh else 0.0
        wait = self._wait(pod, "start", pull + self._seconds(pod, "start", self._pace.start_seconds))
        if wait > 0:
            return wait
        if fresh:
            known |= dict.fromkeys(sorted(fresh))
            for image in list(known)[:-MOST_IMAGES]:
                del known[image]
            self._report_images(node, images)
            self._record(pod, "Pulled", f'Successfully pulled image "{sorted(images)[0]}"')
        number = next(self._numbers)
        address = f"10.{number >> 16 & 255 or _FIRST_POD_NET}.{number >> 8 & 255}.{number & 255}"
        self._store.report("pods", pod, _running_status(pod, node, address, timestamp(self._clock.now())))
        self._record(pod, "Started", f"Started container {pod['spec']['containers'][0]['name']}")
        return max(self._seconds(pod, "ready", self._pace.ready_seconds), 0.001)

    def _report_pull_error(self, pod: Object) -> None:
        """Report an image that cannot be pulled, once."""
        image = pod["spec"]["containers"][0]["image"]
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}}
        same = {"imageID": "", "ready": False, "restartCount": 0, "state": waiting}
        statuses = [{"name": one["name"], "image": one["image"], **same} for one in pod["spec"]["containers"]]
        if (pod.get("status") or {}).get("containerStatuses") != statuses:
            self._record(pod, "Failed", f'Failed to pull image "{image}"', "Warning")
            self._store.report("pods", pod, {**(pod.get("status") or {}), "containerStatuses": statuses})

    def _report_images(self, node: Object, images: set[str]) -> None:
        """Add images to the status of a node; the scheduler's ImageLocality reads them."""
        listed = list((node.get("status") or {}).get("images") or ())
        present = {name for one in listed for name in one.get("names") or ()}
        listed += [{"names": [name], "sizeBytes": IMAGE_BYTES} for name in sorted(images - present)]
        if images - present:
            self._store.patch(
                "nodes", node["metadata"]["name"], {"status": {"images": listed[-MOST_IMAGES:]}}, subresource="status"
            )

    def _finish(self, pod: Object, seconds: float) -> float | None:
        """End the containers of a pod once it has run long enough."""
        wait = self._wait(pod, "run", seconds)
        if wait > 0:
            return wait
        code = (pod["metadata"].get("annotations") or {}).get(f"{PREFIX}exit-code", "0")
        self.end_pod(pod, int(code) if code.isdecimal() else 1)
        return None

    def _run_seconds(self, pod: Object) -> float | None:
        """Return how long a pod runs: as its annotation says, the pods of jobs for the pace's time, others without end."""
        if f"{PREFIX}run-seconds" in (pod["metadata"].get("annotations") or {}):
            return self._seconds(pod, "run", self._pace.run_seconds)
        owner = controller_of(pod)
        return self._pace.run_seconds if owner is not None and owner["kind"] == "Job" else None

    def end_pod(self, pod: Object, exit_code: int, reason: str = "") -> None:
        """End the containers of a pod; its restart policy decides what follows."""
        policy = pod["spec"].get("restartPolicy", "Always")
        restarts = policy == "Always" or (policy == "OnFailure" and exit_code != 0)
        self._store.report("pods", pod, _ended_status(pod, exit_code, reason, restarts, timestamp(self._clock.now())))
        if restarts:
            n_restarts = (pod.get("status") or {}).get("containerStatuses", [{}])[0].get("restartCount", 0)
            delay = min(10.0 * 2**n_restarts, _LONGEST_BACKOFF_SECONDS) if exit_code else 0.0
            self._due.setdefault(pod["metadata"]["uid"], {})["restart"] = self._clock.monotonic() + delay
            self._pod_work.add(key_of(pod), delay or 0.001)

    def _wait(self, pod: Object, step: str, seconds: float) -> float:
        """Return how long a step still has to wait. The wait begins when it is first asked about."""
        due, now = self._due.setdefault(pod["metadata"]["uid"], {}), self._clock.monotonic()
        left = due.setdefault(step, max(now, due.pop("restart", 0.0)) + seconds) - now
        if left <= 0:
            del due[step]
        return left

    def _seconds(self, pod: Object, step: str, default: float) -> float:
        """Return the delay of a step: the pod's annotation, if it is a number, or the default."""
        text = (pod["metadata"].get("annotations") or {}).get(f"{PREFIX}{step}-seconds", "")
        try:
            return float(text) if text else default
        except ValueError:
            return default

    def _record(self, pod: Object, reason: str, message: str, kind: str = "Normal") -> None:
        self._recorder.record(pod, "kubelet", reason, message, kind, pod["spec"].get("nodeName", ""))


def kubelet_labels(name: str) -> dict[str, str]:
    """Return the labels that a kubelet puts on its node."""
    found = {HOSTNAME: name}
    for prefix in ("", "beta."):
        found |= {f"{prefix}kubernetes.io/os": "linux", f"{prefix}kubernetes.io/arch": "amd64"}
    return found


def _number_of(address: str, first_net: int = 0) -> int:
    """Return the number that an address was made from; 0 for an address that is none of ours."""
    parts = address.split(".")
    if len(parts) != 4 or parts[0] != "10" or not all(part.isdecimal() for part in parts):
        return 0
    net, high, low = (int(part) for part in parts[1:])
    net = 0 if net == (first_net or _FIRST_POD_NET) else net - first_net
    return max(0, net << 16 | high << 8 | low)


def _with_conditions(status: Object, now: str, values: dict[str, str]) -> Object:
    """Return a status with some of its conditions set."""
    conditions = status.get("conditions")
    for kind, value in values.items():
        more = {"reason": "PodCompleted"} if status.get("phase") == "Succeeded" and value == "False" else {}
        conditions = with_condition(conditions, kind, value, now, lastProbeTime=None, **more)
    return {**status, "conditions": conditions}


def _container_status(container: Object, old: Object, state: Object, ready: bool, restarts: int) -> Object:
    """Return the status of a container; what it ended with before stays."""
    found: Object = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "containerID": f"kubesched://{container['name']}",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
    }
    if old.get("lastState"):
        found["lastState"] = old["lastState"]
    return found


def _statuses(pod: Object, state: Object, ready: bool) -> list[Object]:
    """Return the statuses of all containers of a pod, in one state."""
    held = {one.get("name"): one for one in (pod.get("status") or {}).get("containerStatuses") or ()}
    return [
        _container_status(one, held.get(one["name"], {}), state, ready, held.get(one["name"], {}).get("restartCount", 0))
        for one in pod["spec"]["containers"]
    ]


def _running_status(pod: Object, node: Object, address: str, now: str) -> Object:
    addresses = (node.get("status") or {}).get("addresses") or [{}]
    status = {
        **(pod.get("status") or {}),
        "phase": "Running",
        "hostIP": addresses[0].get("address", ""),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": _statuses(pod, {"running": {"startedAt": now}}, False),
    }
    values = {"PodReadyToStartContainers": "True", "Initialized": "True", "Ready": "False", "ContainersReady": "False"}
    return _with_conditions(status, now, values)


def _ready_status(pod: Object, now: str) -> Object:
    status = {**pod["status"], "containerStatuses": _statuses(pod, {"running": {"startedAt": now}}, True)}
    return _with_conditions(status, now, {"Ready": "True", "ContainersReady": "True"})


def _ended_status(pod: Object, exit_code: int, reason: str, restarts: bool, now: str) -> Object:
    """Return the status of a pod whose containers have ended: for good, or to be started again."""
    word = reason or ("Error" if exit_code else "Completed")
    ended: Object = {"terminated": {"exitCode": exit_code, "reason": word, "finishedAt": now}}
    status: Object = dict(pod.get("status") or {})
    if restarts:
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if exit_code else {"running": {"startedAt": now}}
        statuses = _statuses(pod, state, False)
        for one in statuses:
            one |= {"restartCount": one["restartCount"] + 1, "lastState": ended}
    else:
        statuses = _statuses(pod, ended, False)
        status["phase"] = "Failed" if exit_code else "Succeeded"
    return _with_conditions({**status, "containerStatuses": statuses}, now, {"Ready": "False", "ContainersReady": "False"})
