"""The volumes on each node, counted by CSI driver.

`Attachments` is the index over placed pods and VolumeAttachments: for each driver a column with the number of distinct volumes
on each row, and for a volume the rows that hold it. `volumes_of` reads one pod without the index: the incoming pod, and the
pods of a node in a what-if.

A volume is named `driver/handle`. The volume of an unbound claim has a stand-in name from its claim, so that two pods with one
claim count once. What a claim stands for changes with the claim, its volume and its class; each *holder* (a volume of a pod, or
a VolumeAttachment) lists the objects it depends on, and is read again when one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kubesched.kube.api import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume, VolumeAttachment
from kubesched.scheduler.cluster import Ints, ObjectChange, Objects, PodView, Reader, Snapshot, class_of_claim
from kubesched.scheduler.plugins.shared import csi_translation as csi
from kubesched.scheduler.plugins.shared.volumes import PlacedPods, VolumeError, claim_name, claim_not_found, ownership_error


class Attached(NamedTuple):
    """One attached volume. `migrated`: of an in-tree plugin, so it counts only on nodes with a CSINode."""

    name: str
    driver: str
    migrated: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The volumes of the incoming pod by driver, the error of an inline one, and the rows that a what-if has changed."""

    by_driver: dict[str, tuple[Attached, ...]]
    inline_error: str = ""
    touched: frozenset[int] = frozenset()

    def touching(self, row: int) -> Wanted:
        """Return the same with one more changed row."""
        return replace(self, touched=self.touched | {row})


class ClaimMissing(VolumeError):
    """The incoming pod names a claim that does not exist."""


def is_attachable(volume: Volume) -> bool:
    """Return whether a volume may count: a claim, an ephemeral volume, or an in-tree kind with a CSI driver."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or bool(csi.in_tree_plugin(volume))


class Resolver:
    """From claims and inline volumes to attached volumes; `stand_in` is the prefix of the names of unbound volumes."""

    def __init__(self, objects: Objects, stand_in: str) -> None:
        self.objects = objects
        self.stand_in = stand_in

    def claim(self, claim: PersistentVolumeClaim) -> Attached | None:
        """Return the volume of a claim; None if it is not known, or not a CSI volume."""
        # An unbound claim will get a volume of its class, so it counts for the driver of the class. That is a guess: an
        # existing volume of another driver may be bound instead.
        volume_name = claim.spec.volume_name
        volume = self.objects.get(PersistentVolume, volume_name) if volume_name else None
        if volume is None:
            return self._from_class(claim)
        if volume.spec.csi is not None:
            return _attached(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        plugin = csi.in_tree_plugin(volume.spec)
        if plugin not in csi.MIGRATED:
            return None
        try:
            return _attached(csi.CSI_DRIVERS[plugin], csi.volume_handle(volume), migrated=True)
        except csi.TranslationError:
            return None

    def inline(self, volume: Volume) -> Attached | None:
        """Return the attached volume of an inline volume, None if it does not count; raise VolumeError if it has no CSI
        form."""
        plugin = csi.in_tree_plugin(volume)
        if plugin not in csi.MIGRATED:
            return None
        try:
            return _attached(csi.CSI_DRIVERS[plugin], csi.inline_handle(volume), migrated=True)
        except csi.TranslationError as error:
            raise VolumeError(f"converting volume({volume.name}) from inline to csi: {error}") from error

    def _from_class(self, claim: PersistentVolumeClaim) -> Attached | None:
        """Return the stand-in for the volume of an unbound claim: of the driver that its class provisions with."""
        class_name = class_of_claim(claim)
        storage_class = self.objects.get(StorageClass, class_name) if class_name else None
        if storage_class is None:
            return None
        # Three cases: a CSI driver (the provisioner is its name), a migrated in-tree provisioner (counts for the CSI
        # driver that replaced it), and one that is not migrated (does not count).
        provisioner = storage_class.provisioner
        handle = f"{self.stand_in}-{claim.metadata.namespace}/{claim.metadata.name}"
        if provisioner not in csi.CSI_DRIVERS:
            return _attached(provisioner, handle)
        return _attached(csi.CSI_DRIVERS[provisioner], handle, True) if provisioner in csi.MIGRATED else None


def _attached(driver: str, handle: str, migrated: bool = False) -> Attached | None:
    return Attached(f"{driver}/{handle}", driver, migrated) if driver and handle else None


def volumes_of(pod: Pod, resolver: Resolver, *, is_new: bool, inline_errors: list[str] | None = None) -> dict[str, Attached]:
    """Return the volumes that a pod attaches, by name.

    A claim that does not exist is an error for an incoming pod (`is_new`) and ignored for a placed one. An inline volume
    without a CSI form raises VolumeError, or adds to `inline_errors`.
    """
    found: dict[str, Attached] = {}
    # Errors of claims end it; errors of inline volumes are collected, because they refuse only nodes with a CSINode.
    for volume in pod.spec.volumes:
        try:
            attached = _attached_by(pod, volume, resolver, is_new=is_new)
        except VolumeError as error:
            if inline_errors is None or claim_name(pod, volume) is not None:
                raise
            inline_errors.append(str(error))
        else:
            if attached is not None:
                found[attached.name] = attached
    return found


def _attached_by(pod: Pod, volume: Volume, resolver: Resolver, *, is_new: bool) -> Attached | None:
    """Return what one volume of a pod attaches: the volume of its claim, an inline volume in its CSI form, or None."""
    # A pod that is placed keeps running if its claim is deleted, so a missing claim only matters for a new pod.
    name, namespace = claim_name(pod, volume), pod.metadata.namespace
    if name is None:
        return resolver.inline(volume)
    if not name:
        raise VolumeError("PersistentVolumeClaim had no name")
    claim = resolver.objects.get(PersistentVolumeClaim, name, namespace)
    if claim is None:
        if is_new:
            raise ClaimMissing(f"looking up PVC {namespace}/{name}: {claim_not_found(name)}")
        return None
    wrong = ownership_error(pod, claim) if volume.ephemeral is not None else ""
    if wrong:
        raise VolumeError(wrong)
    return resolver.claim(claim)


def by_driver(volumes: dict[str, Attached]) -> dict[str, tuple[Attached, ...]]:
    """Return volumes by driver, both in their order."""
    return {
        driver: tuple(volume for volume in volumes.values() if volume.driver == driver)
        for driver in dict.fromkeys(volume.driver for volume in volumes.values())
    }


Named = tuple[type, str, str]
"""(kind, namespace, name) of an object"""
Holder = tuple[str, int]
"""(uid of a pod, which of its volumes), or (name of a VolumeAttachment, ATTACHMENT)"""
ATTACHMENT = -1


@dataclass(slots=True)
class _Holding:
    """The row of a holder, the volume that it was found to hold, and the objects on which that depends."""

    row: int
    names: Named | None
    """The claim or the persistent volume; None for an inline volume."""
    find: Callable[[], Attached | None]
    held: Attached | None = None
    depends_on: Sequence[Named] = ()


class Attachments(PlacedPods):
    """The index of the attached volumes of all nodes; `with_attachments`: VolumeAttachments count too."""

    def __init__(self, resolver: Resolver, with_attachments: bool = True) -> None:
        super().__init__()
        self.resolver = resolver
        self._objects = resolver.objects
        kinds = (PersistentVolumeClaim, PersistentVolume, StorageClass, *((VolumeAttachment,) if with_attachments else ()))
        self._readers: dict[type, Reader[ObjectChange]] = {kind: Reader() for kind in kinds}
        self._nodes: Snapshot | None = None
        self._clear()

    def _clear(self) -> None:
        self._counts: dict[str, Ints] = {}
        self._by_pods: dict[str, dict[int, int]] = {}
        self._by_attachments: dict[str, dict[int, int]] = {}
        self._holdings: dict[Holder, _Holding] = {}
        self._dependants: dict[Named, dict[Holder, None]] = {}
        self._attachments_on: dict[int, set[Holder]] = {}
        self.errors: dict[int, dict[Holder, str]] = {}

    def follow(self, nodes: Snapshot) -> None:
        """Bring the counts up to date with the cluster that a view is of."""
        # The changes of claims, volumes and classes are read before the journal is followed and applied after it: pods
        # that came read the newest objects anyway, and holders that were there before are read again.
        changes = {kind: reader.changed(self._objects.log(kind)) for kind, reader in self._readers.items()}
        if any(entries is None for entries in changes.values()):
            self._reader.forget()  # read everything again
        super().follow(nodes)
        self._take_in(changes)

    def count(self, driver: str) -> Ints | None:
        """Return the number of volumes of a driver on each row of the whole cluster; None if there are none."""
        return self._counts.get(driver)

    def rows_with(self, name: str) -> Collection[int]:
        """Return the rows of the whole cluster with pods that use a volume."""
        return self._by_pods.get(name, {})

    def by_attachments(self, row: int) -> list[Attached]:
        """Return the volumes of a row of the whole cluster that VolumeAttachments list."""
        found = (self._holdings[holder].held for holder in self._attachments_on.get(row, ()))
        return [held for held in found if held is not None]

    # Pods and VolumeAttachments that come and go

    def restart(self, nodes: Snapshot) -> None:
        self._clear()
        self._nodes = nodes.everything()
        for attachment in self._objects.all(VolumeAttachment) if VolumeAttachment in self._readers else ():
            self._take_attachment(attachment)

    def came(self, pod: PodView, row: int) -> None:
        for index, volume in enumerate(pod.pod.spec.volumes):
            if is_attachable(volume):
                name = claim_name(pod.pod, volume)
                names = (PersistentVolumeClaim, pod.namespace, name) if name is not None else None
                find = partial(_attached_by, pod.pod, volume, self.resolver, is_new=False)
                self._holdings[pod.uid, index] = _Holding(row, names, find)
                self._resolve((pod.uid, index))

    def left(self, pod: PodView, row: int) -> None:
        for index in range(len(pod.pod.spec.volumes)):
            self._release((pod.uid, index))

    def _take_attachment(self, attachment: VolumeAttachment) -> None:
        """Add a VolumeAttachment as a holder, if it names an attacher, a persistent volume and an existing node."""
        spec, holder = attachment.spec, (attachment.metadata.name, ATTACHMENT)
        volume_name = spec.source.persistent_volume_name
        assert self._nodes is not None
        row = self._nodes.row(spec.node_name)
        if spec.attacher and volume_name is not None and row >= 0:
            self._attachments_on.setdefault(row, set()).add(holder)
            find = partial(self._attached_as, spec.attacher, volume_name)
            self._holdings[holder] = _Holding(row, (PersistentVolume, "", volume_name), find)
            self._resolve(holder)

    def _attached_as(self, attacher: str, volume_name: str) -> Attached | None:
        volume = self._objects.get(PersistentVolume, volume_name)
        csi_volume = volume.spec.csi if volume is not None else None
        return Attached(f"{attacher}/{csi_volume.volume_handle}", attacher) if csi_volume is not None else None

    def _take_in(self, changes: dict[type, list[ObjectChange] | None]) -> None:
        """Read VolumeAttachments that changed, and holders that depend on a changed claim, volume or class."""
        # Collected first, so that a holder whose claim, volume and class all changed is read once. `_resolve` changes
        # `_dependants`.
        again: dict[Holder, None] = {}
        for kind, entries in changes.items():
            for old, new in entries or ():
                found = new if new is not None else old
                assert found is not None
                meta = found.metadata
                if kind is VolumeAttachment:
                    self._release((meta.name, ATTACHMENT))
                    latest = self._objects.get(VolumeAttachment, meta.name)
                    if latest is not None:
                        self._take_attachment(latest)
                else:
                    again |= self._dependants.get((kind, meta.namespace, meta.name), {})
        for holder in again:
            if holder in self._holdings:
                self._resolve(holder)

    # Holders

    def _release(self, holder: Holder) -> None:
        holding = self._holdings.pop(holder, None)
        if holding is not None:
            self._count(holder, holding, -1)
            self._depend(holder, holding, ())
            self._forget_error(holder, holding)
            self._attachments_on.get(holding.row, set()).discard(holder)

    def _resolve(self, holder: Holder) -> None:
        """Find the volume of a holder again, and count only that one. An error keeps its place among those of the row: the
        first one is reported."""
        # Remove what was counted, find the volume again, count that. A change of a class may move thousands of holders
        # to another driver.
        holding = self._holdings[holder]
        self._count(holder, holding, -1)
        self._depend(holder, holding, self._behind(holding.names) if holding.names is not None else ())
        try:
            holding.held = holding.find()
        except VolumeError as error:
            holding.held = None
            self.errors.setdefault(holding.row, {})[holder] = str(error)
        else:
            self._forget_error(holder, holding)
        self._count(holder, holding, 1)

    def _forget_error(self, holder: Holder, holding: _Holding) -> None:
        errors = self.errors.get(holding.row)
        if errors is not None and errors.pop(holder, None) is not None and not errors:
            del self.errors[holding.row]

    def _behind(self, names: Named) -> Sequence[Named]:
        """Return the objects on which a holder depends: a persistent volume, or a claim with its volume and class."""
        kind, namespace, name = names
        claim = self._objects.get(PersistentVolumeClaim, name, namespace) if kind is PersistentVolumeClaim else None
        if claim is None:
            return (names,)
        return names, (PersistentVolume, "", claim.spec.volume_name), (StorageClass, "", class_of_claim(claim))

    def _depend(self, holder: Holder, holding: _Holding, depends_on: Sequence[Named]) -> None:
        for one in holding.depends_on:
            dependants = self._dependants[one]
            del dependants[holder]
            if not dependants:
                del self._dependants[one]
        holding.depends_on = depends_on
        for one in depends_on:
            self._dependants.setdefault(one, {})[holder] = None

    def _count(self, holder: Holder, holding: _Holding, sign: int) -> None:
        """Add or remove a holder of a volume on a row. The volume counts once, however many pods and VolumeAttachments hold
        it."""
        volume, row = holding.held, holding.row
        if volume is None:
            return
        # Two tables by volume and row: holders that are pods and holders that are VolumeAttachments. The volume counts
        # on a row while either has an entry.
        #
        #     v1 on row 3, pods a and b: {v1: {3: 2}}        b leaves: {3: 1}, count unchanged       a leaves: {}, count - 1
        mine, theirs = self._by_pods, self._by_attachments
        if holder[1] == ATTACHMENT:
            mine, theirs = theirs, mine
        rows = mine.setdefault(volume.name, {})
        before = rows.get(row, 0)
        after = before + sign
        if after:
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del mine[volume.name]
        if (before > 0) != (after > 0) and not theirs.get(volume.name, {}).get(row):
            counts = self._counts.get(volume.driver)
            if counts is None:
                assert self._nodes is not None
                counts = self._counts[volume.driver] = np.zeros(self._nodes.n, dtype=np.int64)
            counts[row] += sign
