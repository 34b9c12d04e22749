"""Loopback: what the engine writes comes back by its inbox, as if an API server and the controllers around it had answered.

In: the engine's writes, events and notes. Out: the same as changes in its inbox, and a record: which pod was placed where,
whose victim went, why a pod is not placed. A bound pod is on its node, a deleted one is gone at once, a claim for which a
node was chosen gets its volume. Nothing leaves the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.api.kinds import INFO
from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.apiserver.fake_cluster.volumes import SELECTED_NODE
from kubesched.cluster import PodView
from kubesched.cluster.claims import class_of_claim
from kubesched.engine.inbox import Changed
from kubesched.engine.loop import Engine
from kubesched.engine.observer import NoObserver
from kubesched.errors import NotFound
from kubesched.simulator.dryrun.claims import bound, is_bound, provisioned

_PREEMPTED_BY = "Preempted by pod "
_LONGEST_SECONDS = 900.0
_PATIENCE_SECONDS = 60.0
"""Pods whose attempts break are tried again and again; if nothing has come of it for so long, nothing will."""
_FIRST_VERSION = 1 << 52
"""Versions of what is written here; larger than what any API server has come to."""

_replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that had to go for another one."""

    pod: Pod
    by: str
    """The uid of the pod that took its place."""


class Loopback(NoObserver):
    """The Writer, the Recorder and the Observer of an engine that only pretends."""

    def __init__(self, progress: Callable[[], None] | None = None) -> None:
        self.victims: list[Victim] = []
        self.messages: dict[str, str] = {}
        """uid -> why its last attempt failed"""
        self._progress = progress
        self._engine: Engine | None = None
        self._pods: dict[str, Pod] = {}
        self._gone: dict[str, Pod] = {}
        self._version = _FIRST_VERSION

    def follow(self, engine: Engine, pods: Iterable[Pod]) -> None:
        """Answer an engine that believes in these pods."""
        self._engine = engine
        self._pods = {pod.uid: pod for pod in pods}

    def node_of(self, uid: str) -> str:
        """Return where a pod is; empty if nowhere."""
        pod = self._pods.get(uid)
        return pod.spec.node_name if pod is not None else ""

    def is_gone(self, uid: str) -> bool:
        """Return whether a pod was deleted."""
        return uid in self._gone

    # The Writer port

    async def bind(self, pod: PodView, node_name: str) -> None:
        """Let a pod be on its node."""
        old = self._known(pod)
        self._put(
            old,
            _replace(
                old,
                spec=_replace(old.spec, node_name=node_name),
                status=_replace(old.status, phase="Running", nominated_node_name=""),
            ),
        )
        self.messages.pop(pod.uid, None)

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Take in for which node a pod is nominated; its conditions are of no consequence here."""
        if "nominatedNodeName" in status:
            old, nominated = self._known(pod), status["nominatedNodeName"] or ""
            if old.status.nominated_node_name != nominated:
                self._put(old, _replace(old, status=_replace(old.status, nominated_node_name=nominated)))

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        """Do nothing: conditions of pod groups are of no consequence here."""

    async def delete_pod(self, pod: PodView) -> None:
        """Let a pod be gone."""
        old = self._known(pod)
        self._gone[pod.uid] = self._pods.pop(pod.uid)
        self._post("Pod", old, None)

    async def update(self, changed: Any, subresource: str = "") -> Any:
        """Take in an object, and do what a controller would do about it."""
        written = self._store(changed)
        if isinstance(written, PersistentVolume) and written.spec.claim_ref is not None:
            reference = written.spec.claim_ref
            claim = self._objects.get(PersistentVolumeClaim, reference.name, reference.namespace)
            if claim is not None and not is_bound(claim):
                self._store(bound(claim, written)[0])
        elif isinstance(written, PersistentVolumeClaim) and not is_bound(written):
            self._provision(written)
        return written

    async def create(self, obj: Any) -> Any:
        """Take in a new object."""
        return self._store(obj)

    async def delete(self, obj: Any) -> None:
        """Let an object be gone."""
        self._post(INFO[type(obj)].kind, obj, None)

    def _provision(self, claim: PersistentVolumeClaim) -> None:
        storage_class = self._objects.get(StorageClass, class_of_claim(claim))
        if storage_class is not None:
            assert self._engine is not None
            node = self._engine.store.node(claim.metadata.annotations.get(SELECTED_NODE, ""))
            for obj in bound(claim, provisioned(claim, storage_class, node)):
                self._store(obj)

    def _known(self, pod: PodView) -> Pod:
        found = self._pods.get(pod.uid)
        if found is None:
            raise NotFound(404, "NotFound", f'pods "{pod.name}" not found')
        return found

    def _put(self, old: Pod, new: Pod) -> None:
        new = self._pods[new.uid] = self._versioned(new)
        self._post("Pod", old, new)

    def _store(self, obj: Any) -> Any:
        meta = obj.metadata
        new = self._versioned(obj)
        self._post(INFO[type(obj)].kind, self._objects.get(type(obj), meta.name, meta.namespace), new)
        return new

    def _versioned(self, obj: Any) -> Any:
        self._version += 1
        return _replace(obj, metadata=_replace(obj.metadata, resource_version=str(self._version)))

    @property
    def _objects(self) -> Any:
        assert self._engine is not None
        return self._engine.store.objects

    def _post(self, kind: str, old: Any, new: Any) -> None:
        assert self._engine is not None
        self._version += 1
        self._engine.inbox.post(Changed(kind, old, new))

    # The Recorder port, and the Observer

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Keep who went for whom; one that had no node yet is tried again and is no victim."""
        if reason == "Preempted" and regarding.uid in self._gone:
            by = note.removeprefix(_PREEMPTED_BY).partition(" ")[0]
            self.victims.append(Victim(self._gone[regarding.uid], by))

    def pod_failed(self, pod: PodView, reason: str, message: str) -> None:
        """Keep why a pod was not placed."""
        self.messages[pod.uid] = message

    def decided(self, seconds: float) -> None:
        """Tell whoever shows progress."""
        if self._progress is not None:
            self._progress()

    # Running

    async def play(self, engine: Engine) -> None:
        """Let the engine work until nothing more will happen, on a loop in virtual time."""
        running, clock = asyncio.ensure_future(engine.run()), engine.handle.clock
        end, written, since = clock.monotonic() + _LONGEST_SECONDS, self._version, clock.monotonic()
        while not running.done():
            await clock.sleep(1.0)
            now = clock.monotonic()
            if written != self._version or engine.store.n_assumed:
                written, since = self._version, now
            if _is_quiet(engine) or now - since > _PATIENCE_SECONDS or now >= end:
                engine.stop()
                break
        await running


def _is_quiet(engine: Engine) -> bool:
    """Return whether no pod is being tried, bound or waited for; those that nothing can help any more stay where they are."""
    queue = engine.queue
    return not (len(engine.inbox) or queue.n_active or queue.n_backoff or queue.n_in_flight or engine.store.n_assumed)
