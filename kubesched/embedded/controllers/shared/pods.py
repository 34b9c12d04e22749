"""Pods for controllers: made from templates, ordered for deletion, and found by owner, node and namespace.

`PodIndex` follows the store, so that no controller walks through all pods to find its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from kubesched.embedded.clock import seconds_of
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.store import ObjectStore
from kubesched.embedded.verbs.conditions import condition, is_true
from kubesched.embedded.verbs.patching import copied

MANY = 200  # pods of one owner; looking at all of them whenever one changes would cost their square
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_encode = msgspec.json.Encoder(order="deterministic").encode


def key_of(obj: Object) -> str:
    """Return the key of an object: NAMESPACE/NAME."""
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def split(key: str) -> tuple[str, str]:
    """Return namespace and name of a key."""
    namespace, _, name = key.partition("/")
    return namespace, name


def controller_of(obj: Object) -> Object | None:
    """Return the reference to the controller of an object, or None."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Object = reference
            return found
    return None


def owned_by(owner: Object) -> Object:
    """Return the reference that makes `owner` the controller of an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def from_template(template: Object, owner: Object, name: str = "", labels: dict[str, str] | None = None) -> Object:
    """Return a pod to create from a template; without a name it gets one generated from its owner's."""
    given = template.get("metadata") or {}
    metadata: Object = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "ownerReferences": [owned_by(owner)],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    return {"metadata": metadata, "spec": copied(template["spec"])}


def template_hash(template: Any) -> str:
    """Return ten letters that identify a template, as in the names of ReplicaSets."""
    text = _encode(template)
    number = zlib.crc32(text) | zlib.crc32(text, 0x9E3779B9) << 32
    letters = ""
    for _ in range(10):
        number, at = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[at]
    return letters


def is_active(pod: Object) -> bool:
    """Return whether a pod counts as a replica: neither finished nor being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    return is_true(pod, "Ready")


def available_in(pod: Object, min_ready_seconds: int, now: float) -> float | None:
    """Return in how many seconds a pod is available: 0 for now, None for one that is not ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return max(0.0, seconds_of(ready["lastTransitionTime"]) + min_ready_seconds - now) if min_ready_seconds else 0.0


def deletion_order(pods: Iterable[Object]) -> list[Object]:
    """Return pods in the order in which a controller deletes them: unassigned, pending, not ready, cheap, then the newest."""
    phases = {"Pending": 0, "Unknown": 1}

    def rank(pod: Object) -> tuple[int, int, int]:
        cost = (pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0")
        is_number = cost.lstrip("+-").isdecimal()
        phase = (pod.get("status") or {}).get("phase", "Pending")
        return (
            1 if pod["spec"].get("nodeName") else 0,
            phases.get(phase, 2) * 2 + int(is_ready(pod)),
            int(cost) if is_number else 0,
        )

    newest_first = sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), reverse=True)
    return sorted(newest_first, key=rank)


class PodIndex:
    """All pods, by the uid of their controller, by node and by namespace."""

    def __init__(self, store: ObjectStore) -> None:
        self._pods: dict[str, Object] = {}
        self._by_owner: dict[str, dict[str, None]] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._by_namespace: dict[str, dict[str, None]] = {}
        self._orphans: dict[str, dict[str, None]] = {}
        for pod in store.list("pods").items:
            self._put(pod)
        store.listen("pods", self._follow)

    def get(self, key: str) -> Object | None:
        return self._pods.get(key)

    def of_owner(self, uid: str) -> list[Object]:
        """Return the pods of a controller's object."""
        return [self._pods[key] for key in self._by_owner.get(uid, ())]

    def pause_seconds(self, uid: str) -> float:
        """Return how long the owner of many pods waits before it is synced for a change of one of them.

        An owner of 5,000 pods that is synced for each change looks at 25 million pods while they start. Up to 200 pods it is
        synced at once, beyond that after up to a second, for all changes until then together.
        """
        n_pods = len(self._by_owner.get(uid, ()))
        return 0.0 if n_pods < MANY else min(1.0, n_pods / 5_000)

    def on_node(self, node: str) -> list[Object]:
        return [self._pods[key] for key in self._by_node.get(node, ())]

    def in_namespace(self, namespace: str) -> list[Object]:
        return [self._pods[key] for key in self._by_namespace.get(namespace, ())]

    def orphans_in(self, namespace: str) -> list[Object]:
        """Return the pods of a namespace that have no controller."""
        return [self._pods[key] for key in self._orphans.get(namespace, ())]

    def nodes(self) -> list[str]:
        return list(self._by_node)

    def _follow(self, change: Change) -> None:
        if change.old is not None:
            self._drop(change.old.obj)
        if change.new is not None:
            self._put(change.new.obj)

    def _places(self, pod: Object) -> list[tuple[dict[str, dict[str, None]], str]]:
        """Return the indexes that a pod is in, each with its key there; an empty key means not in this one."""
        reference = controller_of(pod)
        return [
            (self._by_owner, reference["uid"] if reference else ""),
            (self._orphans, "" if reference else pod["metadata"]["namespace"]),
            (self._by_node, pod["spec"].get("nodeName") or ""),
            (self._by_namespace, pod["metadata"]["namespace"]),
        ]

    def _put(self, pod: Object) -> None:
        key = key_of(pod)
        self._pods[key] = pod
        for index, name in self._places(pod):
            if name:
                index.setdefault(name, {})[key] = None

    def _drop(self, pod: Object) -> None:
        key = key_of(pod)
        self._pods.pop(key, None)
        for index, name in self._places(pod):
            held = index.get(name)
            if held is not None:
                held.pop(key, None)
                if not held:
                    del index[name]
