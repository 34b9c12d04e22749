"""Validation of a pod's volumes, of what its containers mount, and of the device claims it names.

In: the defaulted spec of a pod. Out: a cause for every field that is wrong.
"""

from __future__ import annotations

from kubesched.embedded.http.refusals import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    required,
    unknown_name,
)
from kubesched.embedded.resources import Object
from kubesched.embedded.validation.containers import GROUPS
from kubesched.embedded.validation.naming import dns_label_faults, dns_subdomain_faults

# In the order in which the API looks for them: the first that a volume has is its kind, any other is one too many.
_KINDS = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flocker", "downwardAPI", "fc", "azureFile"),
    *("configMap", "flexVolume", "quobyte", "vsphereVolume", "azureDisk", "storageos", "photonPersistentDisk"),
    *("portworxVolume", "scaleIO", "projected", "csi", "ephemeral", "image"),
)
_NEEDED = {  # what a volume of a kind cannot do without
    "hostPath": "path",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "configMap": "name",
    "csi": "driver",
}


def volume_problems(spec: Object, path: str) -> list[Cause]:
    """Return what is wrong with the volumes and the mounts."""
    causes = []
    names: set[str] = set()
    for at, volume in enumerate(spec.get("volumes") or ()):
        where = f"{path}.volumes[{at}]"
        causes += _name_problems(volume.get("name", ""), f"{where}.name", names)
        kinds = [kind for kind in _KINDS if kind in volume]
        for kind in kinds[1:]:
            causes.append(forbidden_field(f"{where}.{kind}", "may not specify more than 1 volume type"))
        for kind in kinds[:1]:
            if kind in _NEEDED and not volume[kind].get(_NEEDED[kind]):
                causes.append(required(f"{where}.{kind}.{_NEEDED[kind]}"))
    for group in GROUPS:
        for at, container in enumerate(spec.get(group) or ()):
            causes += _mount_problems(container, f"{path}.{group}[{at}].volumeMounts", names)
    return causes


def _name_problems(name: str, path: str, names: set[str]) -> list[Cause]:
    if not name:
        return [required(path)]
    if name in names:
        return [duplicate(path, name)]
    names.add(name)
    return invalid_values(path, name, dns_label_faults(name))


def _mount_problems(container: Object, path: str, names: set[str]) -> list[Cause]:
    causes = []
    taken = set()
    for at, mount in enumerate(container.get("volumeMounts") or ()):
        name, place = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            causes.append(required(f"{path}[{at}].name"))
        elif name not in names:
            causes.append(unknown_name(f"{path}[{at}].name", name))
        if not place:
            causes.append(required(f"{path}[{at}].mountPath"))
        elif place in taken:
            causes.append(invalid_value(f"{path}[{at}].mountPath", place, "must be unique"))
        taken.add(place)
    return causes


def claim_problems(spec: Object, path: str) -> list[Cause]:
    """Return what is wrong with the device claims that a pod names."""
    causes = []
    names: set[str] = set()
    for at, claim in enumerate(spec.get("resourceClaims") or ()):
        where = f"{path}.resourceClaims[{at}]"
        causes += _name_problems(claim.get("name", ""), f"{where}.name", names)
        sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field)]
        if len(sources) > 1:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(invalid_value(where, claim, text))
        elif not sources:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(invalid_value(where, claim, text))
        for field in sources:
            causes += invalid_values(f"{where}.{field}", claim[field], dns_subdomain_faults(claim[field]))
    return causes
