"""The open persistent volumes, by class: for a claim, the smallest volume that fits it, on every node at once.

A volume is open if it is Available and has no claimRef, also not a promised one. The open volumes of a class are sorted by
size, so the volume with the lowest index that fits is the smallest. Volumes with the same node affinity are one *group*.

    index   size   group (rows)        claim: 4Gi                  best index by row, 9 for none yet
      0      2Gi   g0 (0, 1)           too small
      1      5Gi   g1 (2)              fits, first of g1            row 2: 1
      2      8Gi   g0 (0, 1)           fits, first of g0            rows 0, 1: 2

Only (group, row) pairs are stored. A thousand local volumes are a thousand pairs, not a thousand columns. A volume that is
promised is only marked as not alive; the arrays are sorted again when new volumes come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from kubesched.kube.api import NodeSelector, PersistentVolume, PersistentVolumeClaim, Selector, SelectorError, compile_selector
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import Bools, Ints, ObjectChange, Objects, Reader, VolumeCache, class_of_volume
from kubesched.scheduler.plugins.shared.volumes import STORAGE, VolumeError, requested_nano
from kubesched.scheduler.plugins.volume_binding.rows_by_selector import RowsBySelector

NONE = -1
"""No volume suits."""
_NONE_YET = np.iinfo(np.int64).max
_FILESYSTEM = "Filesystem"
_MANY_SELECTORS = 256

Kind = tuple[str, str, frozenset[str]]
"""(volume mode, attributes class, access modes). The first two must be equal; a volume may have more access modes than the
claim."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a claim requests of a volume; storage in nano bytes."""

    nano: int
    kind: Kind
    selector: Selector | None

    def takes(self, kind: Kind) -> bool:
        """Return whether a volume of this kind fits."""
        return kind[:2] == self.kind[:2] and self.kind[2] <= kind[2]

    def takes_if_given(self, volume: PersistentVolume) -> bool:
        """Return whether a volume whose claimRef names the claim fits: its access modes and labels are not compared."""
        is_alike = capacity_nano(volume) >= self.nano and kind_of(volume)[:2] == self.kind[:2]
        return is_alike and volume.metadata.deletion_timestamp is None


def wanted_by(claim: PersistentVolumeClaim) -> Wanted:
    """Return what a claim requests; raise VolumeError for a selector that cannot be parsed."""
    try:
        selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
    except SelectorError as error:
        raise VolumeError(f"error creating internal label selector for claim: {claim.key}: {error}") from error
    return Wanted(requested_nano(claim), kind_of(claim), selector)


def kind_of(found: PersistentVolume | PersistentVolumeClaim) -> Kind:
    """Return the kind of a volume, or the kind that a claim requests."""
    spec = found.spec
    return (spec.volume_mode or _FILESYSTEM, spec.volume_attributes_class_name or "", frozenset(spec.access_modes))


def capacity_nano(volume: PersistentVolume) -> int:
    """Return a volume's size in nano bytes."""
    offered = volume.spec.capacity.get(STORAGE, 0)
    return quantity.parse_field(offered, f"persistentvolume {volume.metadata.name}", "spec.capacity.storage")


def affinity_of(volume: PersistentVolume) -> NodeSelector | None:
    """Return the node affinity of a volume, None for all nodes."""
    affinity = volume.spec.node_affinity
    return affinity.required if affinity is not None else None


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume's claimRef names the claim; a name without a uid is enough."""
    ref = volume.spec.claim_ref
    if ref is None:
        return False
    meta = claim.metadata
    return ref.name == meta.name and ref.namespace == meta.namespace and (not ref.uid or ref.uid == meta.uid)


def _is_open(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.status.phase == "Available" and volume.metadata.deletion_timestamp is None


class ClassVolumes:
    """The open volumes of one class as arrays, smallest first."""

    def __init__(self) -> None:
        self._open: dict[str, PersistentVolume] = {}
        self._read()

    def refresh(self) -> None:
        """Sort the open volumes again if new ones came."""
        if self._stale:
            self._read()

    def _read(self) -> None:
        """Sort the open volumes by size and rebuild the arrays of kinds and groups."""
        self._epoch = -1
        self._selected: dict[Selector, Bools] = {}
        self.volumes = sorted(self._open.values(), key=capacity_nano)
        self._at = {volume.metadata.name: at for at, volume in enumerate(self.volumes)}
        self._nanos = [capacity_nano(volume) for volume in self.volumes]
        self.sizes = np.array([quantity.value(nano) for nano in self._nanos], dtype=np.int64)
        self._alive = np.ones(len(self.volumes), dtype=np.bool_)
        kinds: dict[Kind, int] = {}
        self._kind = np.array([kinds.setdefault(kind_of(v), len(kinds)) for v in self.volumes], dtype=np.int64)
        self._kinds = list(kinds)
        groups: dict[NodeSelector | None, int] = {}
        self._group = np.array([groups.setdefault(affinity_of(v), len(groups)) for v in self.volumes], dtype=np.int64)
        self._selectors = list(groups)
        self._stale = False  # last: after a quantity that cannot be parsed, the next call tries again

    def put(self, volume: PersistentVolume) -> None:
        """Add an open volume or its new version."""
        name = volume.metadata.name
        self._open[name] = volume
        at = self._at.get(name)
        # A volume that was promised and is free again, or whose status changed: its place in the arrays is still right.
        if self._stale or at is None or not _same_offer(self.volumes[at], volume):
            self._stale = True
            return
        self.volumes = self.volumes.copy()  # plans keep the list that they were made with
        self.volumes[at] = volume
        self._alive[at] = True

    def drop(self, name: str) -> None:
        """Remove a volume that is no longer open."""
        # Volumes that are gone stay in the arrays, marked as not alive, until there are clearly more of them than of open ones.
        if self._open.pop(name, None) is not None and not self._stale:
            self._alive[self._at[name]] = False
            self._stale = len(self._at) > 64 + 2 * len(self._open)

    def choose(self, wanted: Wanted, taken: list[Ints], by_selector: RowsBySelector) -> Ints:
        """Return for every row the index in `volumes` of the smallest volume that fits, or NONE.

        `taken` are the answers of this class for other claims of the pod: a row cannot use a volume twice. With n of them, one
        of the n + 1 smallest volumes of each group is free for every row. So n + 1 rounds are enough, each with the next
        smallest.
        """
        if self._epoch != by_selector.epoch:
            self._epoch = by_selector.epoch
            rows = [by_selector.of_node_selector(selector) for selector in self._selectors]
            self._pair_group = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
            self._pair_row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        best = np.full(by_selector.n, _NONE_YET, dtype=np.int64)
        fitting = self._fitting(wanted)
        for _ in range(len(taken) + 1):
            # One round. `fitting` are indexes, smallest volume first. `of_group[g]` is the smallest one of group g;
            # `offered` is the same for each (group, row) pair; an earlier claim's volume is struck out on the row where
            # it chose it, and `best` keeps the minimum.
            #
            #     taken: the earlier claim chose index 1 on row 2
            #     round 1: row 2 is offered 1, which is taken; rows 0 and 1 are offered 2
            #     round 2: the next smallest volume of each group; row 2 gets it if there is one
            groups = self._group[fitting]
            of_group = np.full(len(self._selectors), _NONE_YET, dtype=np.int64)
            of_group[groups[::-1]] = fitting[::-1]  # in reverse order, so the smallest of a group is written last
            offered = of_group[self._pair_group]
            for earlier in taken:
                offered = np.where(earlier[self._pair_row] == offered, _NONE_YET, offered)
            np.minimum.at(best, self._pair_row, offered)
            fitting = fitting[of_group[groups] != fitting]  # without the smallest of each group
        best[best == _NONE_YET] = NONE
        return best

    def _fitting(self, wanted: Wanted) -> Ints:
        """Return the indexes of the volumes that fit, smallest first."""
        # Volumes are sorted by size, so those that are large enough are a tail of the arrays. Kinds are few:
        # (Filesystem, ReadWriteOnce) is mostly the only one, so each is compared once and not each volume.
        first = bisect_left(self._nanos, wanted.nano)
        kinds = np.fromiter((wanted.takes(kind) for kind in self._kinds), dtype=np.bool_, count=len(self._kinds))
        suits = self._alive[first:] & kinds[self._kind[first:]]
        if wanted.selector is not None:
            suits &= self._match_labels(wanted.selector)[first:]
        found: Ints = np.flatnonzero(suits) + first
        return found

    def _match_labels(self, selector: Selector) -> Bools:
        found = self._selected.get(selector)
        if found is None:
            if len(self._selected) >= _MANY_SELECTORS:
                self._selected.clear()
            found = self._selected[selector] = np.fromiter(
                (selector.matches(volume.metadata.labels) for volume in self.volumes), dtype=np.bool_, count=len(self.volumes)
            )
        return found


def _same_offer(old: PersistentVolume, new: PersistentVolume) -> bool:
    """Return whether two versions of a volume differ in nothing that the arrays hold."""
    return (
        old.spec.capacity == new.spec.capacity
        and kind_of(old) == kind_of(new)
        and affinity_of(old) == affinity_of(new)
        and old.metadata.labels == new.metadata.labels
    )


class OpenVolumes:
    """The open volumes of all classes, and the volumes by the claim in their claimRef."""

    def __init__(self, objects: Objects, cache: VolumeCache) -> None:
        self._objects = objects
        self._cache = cache
        self._reader: Reader[ObjectChange] = Reader()
        self._promises: Reader[str] = Reader()
        self._classes: defaultdict[str, ClassVolumes] = defaultdict(ClassVolumes)
        self._known: dict[str, PersistentVolume] = {}
        self._claimed: dict[tuple[str, str], dict[str, PersistentVolume]] = {}

    def follow(self) -> None:
        """Follow the changes of volumes and promises since the last call."""
        # Two logs: objects that changed in the API, and promises that were made or taken back. Both name volumes, and
        # each volume is looked at once, in the newest version with promises (`VolumeCache.get`).
        changes = self._reader.changed(self._objects.log(PersistentVolume))
        touched = self._promises.changed(self._cache.touched)
        if changes is None or touched is None:
            for index in (self._classes, self._known, self._claimed):
                index.clear()
            names = [volume.metadata.name for volume in self._objects.all(PersistentVolume)]
        else:
            found = (change.new if change.new is not None else change.old for change in changes)
            names = [*touched, *(volume.metadata.name for volume in found if volume is not None)]
        for name in dict.fromkeys(names):
            self._update(name)

    def of_class(self, class_name: str) -> ClassVolumes:
        """Return the open volumes of a class, sorted."""
        self._classes[class_name].refresh()
        return self._classes[class_name]

    def meant_for(self, claim: PersistentVolumeClaim, class_name: str, wanted: Wanted) -> PersistentVolume | None:
        """Return a volume of the class whose claimRef names the claim, and that fits; None if there is none."""
        # Of several volumes that name the claim the first one wins, in the order in which they were seen.
        for volume in self._claimed.get((claim.metadata.namespace, claim.metadata.name), {}).values():
            if class_of_volume(volume) == class_name and is_meant_for(volume, claim) and wanted.takes_if_given(volume):
                return volume
        return None

    def _update(self, name: str) -> None:
        """Move a volume to where its newest version, with promises, belongs."""
        # First out of the places where the old version was, then into those of the new one. An open volume that stays
        # open in its class is not dropped, so that `put` finds its place and nothing is sorted again.
        before, volume = self._known.pop(name, None), self._cache.get(name)
        if before is not None:
            ref, class_name = before.spec.claim_ref, class_of_volume(before)
            if ref is not None:
                claimed = self._claimed[(ref.namespace, ref.name)]
                del claimed[name]
                if not claimed:
                    del self._claimed[(ref.namespace, ref.name)]
            if volume is None or class_name != class_of_volume(volume) or not _is_open(volume):
                self._classes[class_name].drop(name)
        if volume is None:
            return
        self._known[name] = volume
        ref = volume.spec.claim_ref
        if ref is not None:
            self._claimed.setdefault((ref.namespace, ref.name), {})[name] = volume
        elif _is_open(volume):
            self._classes[class_of_volume(volume)].put(volume)
