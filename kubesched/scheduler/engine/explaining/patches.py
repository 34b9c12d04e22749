"""Advice as patches: what `kubectl patch` would have to be given.

In: a piece of advice, and the pod. Out: a patch of the pod's workload, of the pod if it has none, or of a node; None for advice
that is no change of one object. A pod's workload is read off its owner: of a ReplicaSet that a Deployment made, the Deployment.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from kubesched.kube.api import Pod, codec
from kubesched.kube.values import POD_TEMPLATE_HASH
from kubesched.scheduler.framework import Advice

_ADMITTED = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_TEMPLATES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), ("spec", "template")),
    "ReplicationController": ("spec", "template"),
    "Pod": (),
}
"""Where the pod stands in what makes it."""
_FIXED = {
    "Pod": "a Pod cannot be changed so in place: this deletes it and makes it again",
    # Its selector and labels are generated, so that not even kubectl could make the same one again.
    "Job": "a Job cannot be changed so in place: make it again with this change",
}
"""What cannot be changed in place: it has to be made again with the change in it."""


def patches_of(advice: Advice, pod: Pod) -> list[dict[str, Any]]:
    """Return the patches that follow an advice, each with its target and the command that applies it."""
    if advice.kind == "uncordon":
        return [_patch("Node", "", name, {"spec": {"unschedulable": False}}, "merge") for name in advice.examples]
    if advice.changed is None:
        return []
    kind, name = workload_of(pod)
    if kind not in _TEMPLATES:
        return []
    before, after = _spec(pod), _spec(advice.changed)
    if advice.kind == "lower":  # containers are merged by name, so that the rest of them need not be said again
        kind_of_patch, spec = "strategic", {"containers": list(_lower(before, after))}
    else:
        kind_of_patch, spec = "merge", _difference(before, after)
    patch: dict[str, Any] = {"spec": spec}
    for field in reversed(_TEMPLATES[kind]):
        patch = {field: patch}
    return [_patch(kind, pod.metadata.namespace, name, patch, kind_of_patch)]


def workload_of(pod: Pod) -> tuple[str, str]:
    """Return kind and name of what a pod comes from."""
    owner = pod.metadata.controller()
    if owner is None:
        return "Pod", pod.metadata.name
    made_for = owner.name.removesuffix(f"-{pod.metadata.labels.get(POD_TEMPLATE_HASH, '')}")
    return ("Deployment", made_for) if owner.kind == "ReplicaSet" and made_for != owner.name else (owner.kind, owner.name)


def _patch(kind: str, namespace: str, name: str, patch: dict[str, Any], type_: str) -> dict[str, Any]:
    where = f"-n {shlex.quote(namespace)} " if namespace else ""
    text = shlex.quote(json.dumps(patch, separators=(",", ":")))
    target, how = f"{where}{kind.lower()} {shlex.quote(name)}", f"--type={type_} -p {text}"
    found = {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "type": type_,
        "patch": patch,
        "command": f"kubectl patch {target} {how}",
    }
    may_grow = kind == "Pod" and patch["spec"].keys() == {"tolerations"}  # the one thing that a pod takes afterwards
    if kind in _FIXED and not may_grow:
        found["note"] = _FIXED[kind]
        if kind == "Pod":
            changed = f"kubectl get {target} -o json | kubectl patch --local -f - {how} -o json"
            found["command"] = f"{changed} | kubectl replace --force -f -"
    return found


def _spec(pod: Pod) -> dict[str, Any]:
    """Return a pod's spec without what admission has put there."""
    spec = codec.to_dict(pod.spec)
    if "tolerations" in spec:
        spec["tolerations"] = [each for each in spec["tolerations"] if each.get("key") not in _ADMITTED]
    return spec


def _lower(before: dict[str, Any], after: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for old, new in zip(before["containers"], after["containers"], strict=True):
        if old != new:
            yield {"name": new["name"], "resources": _difference(old["resources"], new["resources"])}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that makes one object of another: null removes, lists are replaced."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        patch[key] = _difference(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch
