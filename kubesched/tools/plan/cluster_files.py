"""Clusters in files: our snapshots and inbox logs, what kubectl wrote, or manifests.

In: a file, or the standard input. What is in it says what it is. Out: a captured cluster, or the lines of an inbox log. An
object that an API server has stored is taken as it stands; any other is applied, as a manifest is. Of objects that kubectl
wrote, one line says how many there are, and which kinds a decision may need that are not among them.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import (
    INFO,
    CSINode,
    DeviceClass,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodTemplateSpec,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    codec,
    is_finished,
    parse_time,
)
from kubesched.kube.values import Content, content_of, shown
from kubesched.tools.plan.applying import apply_manifests
from kubesched.tools.plan.manifests import SILENT, WORKLOADS, Manifest, objects_in
from kubesched.tools.snapshots.captured import Captured, read_captured

_LONGEST_FIRST_LINE = 1 << 20
_OBJECT = re.compile(rb"(?:\s|---.*+|#.*+|\{|\xef\xbb\xbf)*+\"?(?:apiVersion|kind)\"?\s*:")
_NOT_LOOKED_AT = SILENT | {"Deployment", "DaemonSet", "Job", "CronJob"}
"""Kinds that nothing is decided by once the pods are there."""


class _FirstLine(msgspec.Struct):
    at: float
    seed: Any = None
    kind: Any = None


def read_cluster_file(
    file: Path, say: Callable[[str], None] = lambda text: None, manifests: Sequence[Manifest] = ()
) -> Captured:
    """Return the cluster in a file; `-` is the standard input. Raise SchedulerError for what cannot be read.

    `say` is told what kubectl wrote there, and what is missing for the pods in it and for those of the manifests, which will be
    applied to it.
    """
    return cluster_in(shown(file), content_of(file, may_be_cut_off=True), say, manifests)


def inbox_log_in(name: str, content: Content, say: Callable[[str], None] = lambda text: None) -> list[bytes]:
    """Return the lines of an inbox log; of any other file with a cluster in it, those of a log that says the same."""
    return list(_whole_lines(content.data) if is_inbox_log(content.data) else cluster_in(name, content, say).lines())


def is_inbox_log(data: bytes | bytearray) -> bool:
    """Tell whether this is a snapshot or an inbox log of ours: its first line says when it begins, and is no object."""
    first, _, _ = bytes(memoryview(data)[:_LONGEST_FIRST_LINE]).partition(b"\n")
    try:
        return msgspec.json.decode(first, type=_FirstLine).kind is None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def holds_cluster(data: bytes | bytearray) -> bool:
    """Tell whether this is a log or API objects, and not a document of another kind."""
    return is_inbox_log(data) or _OBJECT.match(data) is not None


def _whole_lines(data: bytes | bytearray) -> Iterator[bytes]:
    """Yield the lines of a log without the last one if its writer was killed in it."""
    for line in io.BytesIO(data):
        if not line.endswith(b"\n"):
            try:
                msgspec.json.decode(line, type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError):
                return
        yield line


def cluster_in(
    name: str, content: Content, say: Callable[[str], None] = lambda text: None, manifests: Sequence[Manifest] = ()
) -> Captured:
    """Do what `read_cluster_file` does for what was read already; `name` is where it comes from."""
    if is_inbox_log(content.data):
        return read_captured(_whole_lines(content.data))
    if not content.is_whole:
        raise SchedulerError(f"{name}: cut off: the end of what was compressed is missing")
    stored: dict[tuple[Any, ...], Any] = {}
    seen: dict[tuple[Any, ...], str] = {}
    given: list[Manifest] = []
    counts: Counter[tuple[str, Any]] = Counter()
    at = 0.0
    for found in objects_in(name, content.data):
        type_ = found.struct
        counts[found.kind, type_] += 1
        if not found.is_stored:
            given.append(found.manifest())
        elif type_ is not None and found.kind not in _NOT_LOOKED_AT:
            obj = found.decoded(type_)
            key = type_, obj.metadata.namespace, obj.metadata.name
            if key in seen:
                raise SchedulerError(f"{found.where}: {found.kind} {obj.key} stands in {seen[key]} too")
            seen[key] = found.where
            try:
                at = max(at, parse_time(obj.metadata.creation_timestamp or ""))
            except SchedulerError as error:
                raise SchedulerError(f"{found.where}: {found.kind} {obj.key}: metadata.creationTimestamp: {error}") from error
            if not (isinstance(obj, Pod) and is_finished(obj)):  # no scheduler looks at these
                stored[key] = obj
    if not counts:
        raise SchedulerError(f"{name}: no objects in it")
    cluster = Captured(at, list(stored.values()))
    if stored:
        say(_described(name, counts, cluster.of(Pod), [*given, *manifests]))
    return apply_manifests(cluster, given).cluster if given else cluster


# --- what is there, and what is not -----------------------------------------------------------------------------------


def _described(name: str, counts: Counter[tuple[str, Any]], pods: Iterable[Pod], manifests: Sequence[Manifest]) -> str:
    """Return the line that says what a file holds, and what is judged without the kinds that are not in it."""
    told = ", ".join(f"{n:,} {_named(kind, type_, n)}" for (kind, type_), n in counts.items())
    there = {type_ for _, type_ in counts} | {manifest.type for manifest in manifests}
    wanted = _wanted(pods, manifests)
    absent = {type_: what for type_, what in wanted.items() if type_ not in there}
    if not absent:
        return f"{name}: {told}"
    *first, last = dict.fromkeys(absent.values())
    judged = f"{', '.join(first)} and {last}" if first else last
    kinds = ", ".join(INFO[type_].plural for type_ in absent)
    return f"{name}: {told}; no {kinds} in it: {judged} {'are' if first else 'is'} judged without them"


def _named(kind: str, type_: Any, n: int) -> str:
    if type_ is None:
        return kind
    return kind.lower() if n == 1 else INFO[type_].plural


def _wanted(pods: Iterable[Pod], manifests: Sequence[Manifest]) -> dict[type[Any], str]:
    """Return the kinds by which these pods, and those of the manifests, are decided, and what each is for."""
    asked: list[Pod | PodTemplateSpec] = list(pods)
    wanted: dict[type[Any], str] = {Node: "every pod"} if asked else {}
    priorities: set[int] = set()
    templates: list[Pod | PodTemplateSpec] = [template for manifest in manifests for template in _templates(manifest)]
    for pod in asked + templates:
        spec, owner = pod.spec, pod.metadata.controller()
        priorities.add(spec.priority or 0)
        affinity = spec.affinity
        if affinity is not None and any(
            term.namespace_selector is not None
            for side in (affinity.pod_affinity, affinity.pod_anti_affinity)
            if side is not None
            for term in (*side.required, *(each.pod_affinity_term for each in side.preferred))
        ):
            wanted[Namespace] = "affinity by namespace labels"
        if any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes):
            wanted |= dict.fromkeys((PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode), "volume binding")
        if spec.resource_claims:
            wanted |= dict.fromkeys((ResourceClaim, ResourceSlice, DeviceClass), "device allocation")
        if pod.metadata.labels and not spec.topology_spread_constraints:
            wanted[Service] = "default spreading"
            for type_ in (ReplicaSet, ReplicationController, StatefulSet):
                if owner is not None and owner.kind == INFO[type_].kind:
                    wanted[type_] = "default spreading"
    if templates:
        wanted[PriorityClass] = "preemption"
    if len(priorities) > 1 or any(template.spec.priority_class_name for template in templates):
        wanted[PodDisruptionBudget] = "preemption"
    return wanted


def _templates(manifest: Manifest) -> Iterator[PodTemplateSpec]:
    """Yield what the pods of a workload are like, if it can be read; whoever applies it says what is wrong."""
    found: Any = manifest.content
    try:
        if manifest.kind == "CronJob":
            found = found["spec"]["jobTemplate"]
        if manifest.kind in WORKLOADS:
            yield codec.convert(found if manifest.kind == "Pod" else found["spec"]["template"], PodTemplateSpec)
    except (SchedulerError, KeyError, TypeError):
        return
