"""What pods bring along, and what the controllers around a scheduler make of it.

In: pods, and the claims, volumes and classes of a cluster. Out: the volume claims of ephemeral volumes, the resource claims
made from templates, volumes bound to claims or made for them, and how many disruptions a budget allows. Only values: who
keeps them and tells the engine is elsewhere (`scenarios/fake_api.py`, `planning.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from kubesched.embedded.controllers.resource_claims import FROM_POD_CLAIM
from kubesched.embedded.controllers.volumes import NO_PROVISIONER, PROVISIONED_BY
from kubesched.kube.api import (
    CsiPersistentVolume,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    Pod,
    PodDisruptionBudget,
    PodResourceClaimStatus,
    ResourceClaim,
    ResourceClaimTemplate,
    StorageClass,
    TopLevel,
    VolumeNodeAffinity,
    codec,
    compile_selector,
)
from kubesched.kube.values import BIND_COMPLETED, BOUND_BY_CONTROLLER, ZONE, quantity
from kubesched.tools.plan.admission import Admission, uid_of

_replace = msgspec.structs.replace


# --- claims that are made for pods ------------------------------------------------------------------------------------


def with_claims(
    pod: Pod, templates: Mapping[str, ResourceClaimTemplate], admission: Admission
) -> tuple[Pod, list[TopLevel], str]:
    """Return a pod with the names of its claims, the claims made for it, and what is missing to make them all.

    `templates` are known by namespace/name.
    """
    made: list[TopLevel] = []
    for volume in pod.spec.volumes:
        wanted = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if wanted is not None:
            metadata = codec.to_dict(_owned(pod, f"{pod.name}-{volume.name}", wanted.metadata))
            made.append(admission.admit_claim({"metadata": metadata, "spec": codec.to_dict(wanted.spec)}))
    statuses, missing = list(pod.status.resource_claim_statuses), ""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name is None or any(status.name == entry.name for status in statuses):
            continue
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        if template is None:
            wanted_name = f"{pod.namespace}/{entry.resource_claim_template_name}"
            missing = f"ResourceClaimTemplate {wanted_name} is neither in the files nor in the cluster"
            continue
        meta = _owned(pod, f"{pod.name}-{entry.name}", template.spec.metadata)
        uid = uid_of("ResourceClaim", meta.namespace, meta.name)
        meta = _replace(meta, uid=uid, annotations={**meta.annotations, FROM_POD_CLAIM: entry.name})
        made.append(ResourceClaim(metadata=meta, spec=template.spec.spec))
        statuses.append(PodResourceClaimStatus(name=entry.name, resource_claim_name=meta.name))
    if len(statuses) != len(pod.status.resource_claim_statuses):
        pod = _replace(pod, status=_replace(pod.status, resource_claim_statuses=tuple(statuses)))
    return pod, made, missing


def _owned(pod: Pod, name: str, given: ObjectMeta) -> ObjectMeta:
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return ObjectMeta(
        name=name, namespace=pod.namespace, labels=given.labels, annotations=given.annotations, owner_references=(owner,)
    )


# --- volumes ----------------------------------------------------------------------------------------------------------


def bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """Return a claim and a volume that name each other."""
    annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER] = "yes"
    status = _replace(claim.status, phase="Bound", access_modes=volume.spec.access_modes, capacity=volume.spec.capacity)
    claim = _replace(
        claim,
        metadata=_replace(claim.metadata, annotations=annotations),
        status=status,
        spec=_replace(claim.spec, volume_name=volume.name),
    )
    reference = ObjectReference(
        kind="PersistentVolumeClaim", api_version="v1", namespace=claim.namespace, name=claim.name, uid=claim.uid
    )
    return claim, _replace(
        volume, spec=_replace(volume.spec, claim_ref=reference), status=_replace(volume.status, phase="Bound")
    )


def provisioned(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None) -> PersistentVolume:
    """Return the volume that a provisioner would make for a claim: in the zone of a node, if one is given and has one."""
    zone = node.metadata.labels.get(ZONE, "") if node is not None else ""
    affinity = None
    if zone:
        term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,)),))
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
    name = f"pvc-{uid_of('PersistentVolumeClaim', claim.namespace, claim.name)}"
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name, uid=uid_of("PersistentVolume", "", name), annotations={PROVISIONED_BY: storage_class.provisioner}
        ),
        spec=PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes or ("ReadWriteOnce",),
            storage_class_name=storage_class.name,
            volume_mode=claim.spec.volume_mode,
            node_affinity=affinity,
            csi=CsiPersistentVolume(driver=storage_class.provisioner, volume_handle=name),
        ),
    )


def settled_at_once(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], storage_class: StorageClass | None
) -> tuple[PersistentVolumeClaim, PersistentVolume] | None:
    """Return what the volume controller makes of a claim that waits for no consumer; None if it can make nothing.

    It is given the volume that it names or that names it, else the smallest free one that is large enough, else a new one;
    of a new one nobody can say in advance from which nodes it will be reached, so it is from all.
    """
    if storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer":
        return None
    fitting = []
    for volume in volumes:
        ref = volume.spec.claim_ref
        is_meant = ref is not None and (ref.namespace, ref.name) == (claim.namespace, claim.name)
        if volume.name == claim.spec.volume_name or is_meant:
            return bound(claim, volume)
        if ref is None and _suits(volume, claim):
            fitting.append((_storage(volume.spec.capacity), volume.name, volume))
    if claim.spec.volume_name:
        return None
    if fitting:
        return bound(claim, min(fitting, key=lambda found: found[:2])[2])
    if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
        return None
    return bound(claim, provisioned(claim, storage_class, None))


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    given, wanted = volume.spec, claim.spec
    return (
        _storage(given.capacity) >= _storage(wanted.resources.requests)
        and given.storage_class_name == (wanted.storage_class_name or "")
        and set(wanted.access_modes) <= set(given.access_modes)
        and (given.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and (wanted.selector is None or compile_selector(wanted.selector).matches(volume.metadata.labels))
    )


def _storage(amounts: Mapping[str, str | int | float]) -> int:
    return quantity.parse(amounts.get("storage", "0"))


# --- budgets ----------------------------------------------------------------------------------------------------------


def with_allowance(budget: PodDisruptionBudget, pods: Iterable[Pod]) -> PodDisruptionBudget:
    """Return a budget that says how many of these pods may go now, those with a node counting as healthy."""
    selector, spec = compile_selector(budget.spec.selector), budget.spec
    n_healthy = sum(
        pod.namespace == budget.namespace and bool(pod.spec.node_name) and selector.matches(pod.metadata.labels) for pod in pods
    )
    desired = 0
    if spec.max_unavailable is not None:
        desired = max(0, n_healthy - _of(spec.max_unavailable, n_healthy))
    elif spec.min_available is not None:
        desired = _of(spec.min_available, n_healthy)
    status = _replace(
        budget.status,
        current_healthy=n_healthy,
        desired_healthy=desired,
        expected_pods=n_healthy,
        disruptions_allowed=max(0, n_healthy - desired),
    )
    return _replace(budget, status=status)


def _of(value: int | str, total: int) -> int:
    """Return a number, or so many percent of a total, rounded up."""
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * total / 100)
