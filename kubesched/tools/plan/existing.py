"""What of a workload is in the cluster already, and so what applying its manifest would add.

In: a workload as admitted, the pods and replica sets of a cluster. Out: an `Addition`: the pods that would come,
those that would go before them, and a sentence about it. Pods of an old template stay beside the new ones where the
controller lets them: that is the most room that the update needs. A StatefulSet, a DaemonSet and a Deployment that recreates
do not: there the old pod goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kubesched.kube.api import (
    Container,
    Node,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    TopLevel,
    codec,
    is_finished,
)
from kubesched.kube.values import CONTROLLER_REVISION_HASH, POD_TEMPLATE_HASH, REGION, ZONE, quantity
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.manifests import Raw

_MADE_BY_CONTROLLERS = (
    POD_TEMPLATE_HASH,
    CONTROLLER_REVISION_HASH,
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/job-completion-index",
    ZONE,
    REGION,  # a pod has those of its node once it is bound
)
_OF_SERVICE_ACCOUNT = "kube-api-access-"
_SILENCE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

_replace = msgspec.structs.replace


@dataclass(slots=True)
class Addition:
    """What applying a manifest would add."""

    pods: list[Pod] = field(default_factory=list)
    gone: list[Pod] = field(default_factory=list)
    """Pods that would go before these come."""
    others: list[TopLevel] = field(default_factory=list)
    """The objects by which the pods are kept: the workload itself, or its replica set."""
    note: str = ""


class ExistingPods:
    """The pods of a cluster by who manages them."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._pods: dict[tuple[str, str, str], list[Pod]] = {}
        self._by_key: dict[str, Pod] = {}
        self._templates: dict[tuple[str, str, str], PodTemplateSpec] = {}
        for obj in objects:
            if isinstance(obj, ReplicaSet | ReplicationController | StatefulSet) and obj.spec.template is not None:
                self._templates[obj.kind, obj.namespace, obj.name] = obj.spec.template
            if isinstance(obj, Pod) and not is_finished(obj) and obj.metadata.deletion_timestamp is None:
                self._by_key[obj.key] = obj
                self._pods.setdefault(_managed_by(obj), []).append(obj)

    def addition(self, workload: Raw, admission: Admission, nodes: Sequence[Node]) -> Addition:
        """Return what a workload would add to the cluster."""
        kind, meta = workload["kind"], workload["metadata"]
        wanted = admission.pods_of(workload, nodes)
        if kind == "Pod":
            known = self._by_key.get(wanted[0].key)
            if known is None:
                return Addition(wanted)
            node = known.spec.node_name
            return Addition(note=f"it is on node {node} already" if node else "it waits already")
        if kind == "CronJob":
            return Addition(wanted, note="one run" if wanted else "suspended: it makes no pods")
        there = self._pods.get((kind, meta["namespace"], meta["name"]), [])
        added = Addition(wanted, others=kept_by(workload, admission))
        if not there:
            if kind in ("Job", "DaemonSet") and not wanted:
                added.note = "suspended: it makes no pods" if kind == "Job" else "no node matches it"
            return added
        if kind == "DaemonSet" and not wanted:
            return replace(added, gone=there, note=f"no node matches it: {_pods(len(there))} would go")
        old = self._of_old_template(there, workload, wanted)
        if kind == "DaemonSet":
            return _one_by_one(added, there, old, _pinned_to)
        if kind == "StatefulSet":
            return _one_by_one(added, there, old, lambda pod: pod.name)
        return _by_count(added, there, old, recreates=(workload["spec"].get("strategy") or {}).get("type") == "Recreate")

    def _of_old_template(self, there: list[Pod], workload: Raw, wanted: Sequence[Pod]) -> list[Pod]:
        """Return the pods that have another template than a workload; none, if that makes no pods.

        Templates are compared where the cluster's is known, because pods may have been changed on their way in.
        """
        if not wanted:
            return []
        is_pinned, template = workload["kind"] == "DaemonSet", codec.convert(workload["spec"]["template"], PodTemplateSpec)
        wanted_template, wanted_pod = shape_of(template), shape_of(wanted[0], is_pinned)
        is_old: dict[tuple[str, str, str], bool] = {}
        for key in {_owner_of(pod) for pod in there} & self._templates.keys():
            is_old[key] = shape_of(self._templates[key]) != wanted_template
        return [
            pod
            for pod in there
            if (is_old[_owner_of(pod)] if _owner_of(pod) in is_old else shape_of(pod, is_pinned) != wanted_pod)
        ]


def _owner_of(pod: Pod) -> tuple[str, str, str]:
    owner = pod.metadata.controller()
    return (owner.kind, pod.namespace, owner.name) if owner is not None else ("Pod", pod.namespace, pod.name)


def _managed_by(pod: Pod) -> tuple[str, str, str]:
    """Return kind, namespace and name of the workload that a pod belongs to; of a replica set its Deployment."""
    kind, namespace, name = _owner_of(pod)
    made_for = name.removesuffix(f"-{pod.metadata.labels.get(POD_TEMPLATE_HASH, '')}")
    return ("Deployment", namespace, made_for) if kind == "ReplicaSet" and made_for != name else (kind, namespace, name)


def kept_by(workload: Raw, admission: Admission) -> list[TopLevel]:
    """Return the object by which the default spreading finds the siblings of a pod."""
    if workload["kind"] == "Deployment":
        return [codec.convert(admission.replica_set_of(workload), ReplicaSet)]
    found = codec.decode(workload)
    return [found] if workload["kind"] in ("ReplicaSet", "ReplicationController", "StatefulSet") else []


def _by_count(added: Addition, there: list[Pod], old: list[Pod], *, recreates: bool) -> Addition:
    """Leave out as many pods as there are of this template; let those of an old one go, or stay beside the new ones."""
    gone = {pod.uid for pod in old}
    same = [pod for pod in there if pod.uid not in gone]
    n_same, n_wanted = len(same), len(added.pods)
    if same:
        added.others = []
        added.pods = [_adopted(pod, same[0]) for pod in added.pods[n_same:]]
    if old and recreates:
        added.gone, added.note = old, _going(len(old))
    elif old and not same:
        added.note = f"another template: beside the {_pods(len(old))} of the old one, as at the height of a rolling update"
    elif n_same > n_wanted:
        added.note = f"scaled down: {n_same - n_wanted} of {_pods(n_same)} would go, and are still counted"
    else:
        added.note = _there(n_same, n_wanted)
    return added


def _adopted(pod: Pod, like: Pod) -> Pod:
    """Return a pod that belongs to the same replica set as one that is there."""
    labels = dict(pod.metadata.labels)
    if POD_TEMPLATE_HASH in like.metadata.labels:
        labels[POD_TEMPLATE_HASH] = like.metadata.labels[POD_TEMPLATE_HASH]
    return _replace(pod, metadata=_replace(pod.metadata, labels=labels, owner_references=like.metadata.owner_references))


def _one_by_one(added: Addition, there: list[Pod], old: list[Pod], place_of: Callable[[Pod], str]) -> Addition:
    """Leave out the pods that are in their places already, and let those of an old template go."""
    outdated, n_wanted = {place_of(pod): pod for pod in old}, len(added.pods)
    held = {place_of(pod) for pod in there} - outdated.keys()
    added.pods = [pod for pod in added.pods if place_of(pod) not in held]
    added.gone = [outdated[place_of(pod)] for pod in added.pods if place_of(pod) in outdated]
    added.note = _going(len(added.gone)) if added.gone else _there(n_wanted - len(added.pods), n_wanted)
    return added


def _going(count: int) -> str:
    return f"another template: {'the pod of the old one goes' if count == 1 else f'the {count} pods of the old one go'} first"


def _there(count: int, wanted: int) -> str:
    return f"{_pods(count)} of {wanted} {'is' if count == 1 else 'are'} there already"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _pinned_to(pod: Pod) -> str:
    """Return the node of a DaemonSet's pod, whether it is there yet or not."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    for field_ in (found for term in terms for found in term.match_fields):
        if field_.key == "metadata.name" and field_.values:
            return field_.values[0]
    return ""


def shape_of(pod: Pod | PodTemplateSpec, pinned: bool = False) -> tuple[dict[str, str], PodSpec]:
    """Return what pods of the same template have in common, as far as scheduling reads templates.

    What admission and controllers add is left out, and so are the names of claims, of which each pod of a StatefulSet has
    its own; `pinned` leaves out what ties a DaemonSet's pod to its node.
    """
    labels = {key: value for key, value in pod.metadata.labels.items() if key not in _MADE_BY_CONTROLLERS}
    spec, affinity = pod.spec, pod.spec.affinity
    if pinned and affinity is not None and affinity.node_affinity is not None:
        affinity = _replace(affinity, node_affinity=_replace(affinity.node_affinity, required=None))
    if affinity is not None and codec.to_dict(affinity) in ({}, {"nodeAffinity": {}}):
        affinity = None
    tolerations = sorted((t for t in spec.tolerations if t.key not in _SILENCE), key=repr)
    return labels, _replace(
        spec,
        node_name="",
        affinity=affinity,
        tolerations=tuple(tolerations),
        priority=None,
        preemption_policy="",
        service_account_name="",
        node_selector=spec.node_selector or None,
        overhead={},
        volumes=tuple(
            _replace(volume, persistent_volume_claim=None)
            for volume in spec.volumes
            if not volume.name.startswith(_OF_SERVICE_ACCOUNT)
        ),
        containers=tuple(map(_plain, spec.containers)),
        init_containers=tuple(map(_plain, spec.init_containers)),
    )


def _plain(container: Container) -> Container:
    """Return a container whose amounts are written in one way."""
    given = container.resources
    resources = _replace(
        given,
        requests={name: quantity.parse(amount) for name, amount in given.requests.items()},
        limits={name: quantity.parse(amount) for name, amount in given.limits.items()},
    )
    return _replace(container, resources=resources)
