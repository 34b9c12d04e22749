"""Advice as patches, with the `kubectl` command that applies each.

The patch is of the pod's workload, of the pod itself if it has none, or of a node. Advice that is no change of one object has
no patch. The workload is found from the pod's owner; if that is a ReplicaSet of a Deployment, it is the Deployment.
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
"""Where the pod template is in a workload."""
_FIXED = {
    "Pod": "a Pod cannot be changed so in place: this deletes it and makes it again",
    # A Job's selector and labels are generated, so kubectl cannot recreate it from its own output.
    "Job": "a Job cannot be changed so in place: make it again with this change",
}
"""Kinds that cannot be changed in place, with the note for the reader."""


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
    if advice.kind == "lower":  # containers are merged by name, so the patch has only the changed ones
        kind_of_patch, spec = "strategic", {"containers": list(_lower(before, after))}
    else:
        kind_of_patch, spec = "merge", _difference(before, after)
    patch: dict[str, Any] = {"spec": spec}
    for field in reversed(_TEMPLATES[kind]):
        patch = {field: patch}
    return [_patch(kind, pod.metadata.namespace, name, patch, kind_of_patch)]


def workload_of(pod: Pod) -> tuple[str, str]:
    """Return kind and name of the workload that a pod belongs to."""
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
    may_grow = kind == "Pod" and patch["spec"].keys() == {"tolerations"}  # a running pod takes new tolerations
    if kind in _FIXED and not may_grow:
        found["note"] = _FIXED[kind]
        if kind == "Pod":
            changed = f"kubectl get {target} -o json | kubectl patch --local -f - {how} -o json"
            found["command"] = f"{changed} | kubectl replace --force -f -"
    return found


def _spec(pod: Pod) -> dict[str, Any]:
    """Return a pod's spec without the tolerations that admission added."""
    spec = codec.to_dict(pod.spec)
    if "tolerations" in spec:
        spec["tolerations"] = [each for each in spec["tolerations"] if each.get("key") not in _ADMITTED]
    return spec


def _lower(before: dict[str, Any], after: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for old, new in zip(before["containers"], after["containers"], strict=True):
        if old != new:
            yield {"name": new["name"], "resources": _difference(old["resources"], new["resources"])}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch from one object to another: null removes a key, lists are replaced."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        patch[key] = _difference(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch
