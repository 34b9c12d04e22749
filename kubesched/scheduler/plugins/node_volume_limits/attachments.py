"""Which volumes are attached to which nodes, counted by driver.

In: placed pods, the claims, volumes and classes behind them, and VolumeAttachments. Out: for each driver a column with
the number of distinct volumes on each node, and for one volume the nodes that hold it. A volume has the name
`driver/handle`. One that is still unbound has a stand-in name made from its claim, so that two pods with the same claim
count once; when the claim is bound, its holders move to the volume's own name.

`volumes_of` is the same arithmetic for one pod, without any index: for the pod that is to be placed, for the pods of a
node in a what-if, and as the truth that the index is tested against.
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
    """One attached volume; `migrated` says that it counts only on nodes that have a CSINode."""

    name: str
    driver: str
    migrated: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The volumes that a pod brings, by driver, what is wrong with one of them, and the rows that a what-if has changed."""

    by_driver: dict[str, tuple[Attached, ...]]
    inline_error: str = ""
    touched: frozenset[int] = frozenset()

    def touching(self, row: int) -> Wanted:
        """Return the same after one more row was changed."""
        return replace(self, touched=self.touched | {row})


class ClaimMissing(VolumeError):
    """A pod that is to be placed names a claim that does not exist."""


def is_attachable(volume: Volume) -> bool:
    """Return whether a volume could count: a claim, an ephemeral volume, or a kind that CSI drivers took over."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or bool(csi.in_tree_plugin(volume))


class Resolver:
    """From claims and inline volumes to attached volumes; `stand_in` is what names of unbound volumes begin with."""

    def __init__(self, objects: Objects, stand_in: str) -> None:
        self.objects = objects
        self.stand_in = stand_in

    def claim(self, claim: PersistentVolumeClaim) -> Attached | None:
        """Return the volume behind a claim, None if nothing will be attached as far as anyone can tell."""
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
        """Return the attached volume that an inline volume stands for; raise if it has no CSI form."""
        plugin = csi.in_tree_plugin(volume)
        if plugin not in csi.MIGRATED:
            return None
        try:
            return _attached(csi.CSI_DRIVERS[plugin], csi.inline_handle(volume), migrated=True)
        except csi.TranslationError as error:
            raise VolumeError(f"converting volume({volume.name}) from inline to csi: {error}") from error

    def _from_class(self, claim: PersistentVolumeClaim) -> Attached | None:
        class_name = class_of_claim(claim)
        storage_class = self.objects.get(StorageClass, class_name) if class_name else None
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        handle = f"{self.stand_in}-{claim.metadata.namespace}/{claim.metadata.name}"
        if provisioner not in csi.CSI_DRIVERS:
            return _attached(provisioner, handle)
        return _attached(csi.CSI_DRIVERS[provisioner], handle, True) if provisioner in csi.MIGRATED else None


def _attached(driver: str, handle: str, migrated: bool = False) -> Attached | None:
    return Attached(f"{driver}/{handle}", driver, migrated) if driver and handle else None


def volumes_of(pod: Pod, resolver: Resolver, *, is_new: bool, inline_errors: list[str] | None = None) -> dict[str, Attached]:
    """Return the volumes that a pod attaches, by name.

    A claim that does not exist is an error for a pod that is to be placed, and nothing for one that is there already.
    An inline volume without a CSI form raises, or is written down in `inline_errors`.
    """
    found: dict[str, Attached] = {}
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
    """Return volumes by driver, drivers and volumes in the order in which they stand."""
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
    """Who keeps a volume on a row, and which: what was found last, and all objects that would make it another one."""

    row: int
    names: Named | None
    """The claim, or the volume, that it is about; None for one that is declared in the pod."""
    find: Callable[[], Attached | None]
    held: Attached | None = None
    depends_on: Sequence[Named] = ()


class Attachments(PlacedPods):
    """The attached volumes of all nodes; those that only VolumeAttachments tell of are counted if asked for."""

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
        changes = {kind: reader.changed(self._objects.log(kind)) for kind, reader in self._readers.items()}
        if any(entries is None for entries in changes.values()):
            self._reader.forget()  # everything is looked at again
        super().follow(nodes)
        self._take_in(changes)

    def count(self, driver: str) -> Ints | None:
        """Return how many volumes of a driver each node of the whole cluster has; None if none has any."""
        return self._counts.get(driver)

    def rows_with(self, name: str) -> Collection[int]:
        """Return the rows of the whole cluster whose pods hold a volume."""
        return self._by_pods.get(name, {})

    def by_attachments(self, row: int) -> list[Attached]:
        """Return the volumes that VolumeAttachments put on a row of the whole cluster."""
        found = (self._holdings[holder].held for holder in self._attachments_on.get(row, ()))
        return [held for held in found if held is not None]

    # Who comes and goes

    def restart(self, nodes: Snapshot) -> None:
        """Forget all pods and attachments."""
        self._clear()
        self._nodes = nodes.everything()
        for attachment in self._objects.all(VolumeAttachment) if VolumeAttachment in self._readers else ():
            self._take_attachment(attachment)

    def came(self, pod: PodView, row: int) -> None:
        """Take in a pod's volumes."""
        for index, volume in enumerate(pod.pod.spec.volumes):
            if is_attachable(volume):
                name = claim_name(pod.pod, volume)
                names = (PersistentVolumeClaim, pod.namespace, name) if name is not None else None
                find = partial(_attached_by, pod.pod, volume, self.resolver, is_new=False)
                self._holdings[pod.uid, index] = _Holding(row, names, find)
                self._look_at((pod.uid, index))

    def left(self, pod: PodView, row: int) -> None:
        """Let go of a pod's volumes."""
        for index in range(len(pod.pod.spec.volumes)):
            self._let_go((pod.uid, index))

    def _take_attachment(self, attachment: VolumeAttachment) -> None:
        spec, holder = attachment.spec, (attachment.metadata.name, ATTACHMENT)
        volume_name = spec.source.persistent_volume_name
        assert self._nodes is not None
        row = self._nodes.row(spec.node_name)
        if spec.attacher and volume_name is not None and row >= 0:
            self._attachments_on.setdefault(row, set()).add(holder)
            find = partial(self._attached_as, spec.attacher, volume_name)
            self._holdings[holder] = _Holding(row, (PersistentVolume, "", volume_name), find)
            self._look_at(holder)

    def _attached_as(self, attacher: str, volume_name: str) -> Attached | None:
        volume = self._objects.get(PersistentVolume, volume_name)
        csi_volume = volume.spec.csi if volume is not None else None
        return Attached(f"{attacher}/{csi_volume.volume_handle}", attacher) if csi_volume is not None else None

    def _take_in(self, changes: dict[type, list[ObjectChange] | None]) -> None:
        """Look again at what a claim, a volume or a class may have given another meaning, and at attachments that changed."""
        again: dict[Holder, None] = {}
        for kind, entries in changes.items():
            for old, new in entries or ():
                found = new if new is not None else old
                assert found is not None
                meta = found.metadata
                if kind is VolumeAttachment:
                    self._let_go((meta.name, ATTACHMENT))
                    latest = self._objects.get(VolumeAttachment, meta.name)
                    if latest is not None:
                        self._take_attachment(latest)
                else:
                    again |= self._dependants.get((kind, meta.namespace, meta.name), {})
        for holder in again:
            if holder in self._holdings:
                self._look_at(holder)

    # What is held

    def _let_go(self, holder: Holder) -> None:
        holding = self._holdings.pop(holder, None)
        if holding is not None:
            self._count(holder, holding, -1)
            self._depend(holder, holding, ())
            self._forget_error(holder, holding)
            self._attachments_on.get(holding.row, set()).discard(holder)

    def _look_at(self, holder: Holder) -> None:
        """Find out which volume it is, and count that one only. What is wrong with it keeps its place among the errors of the
        node, of which the first is told."""
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
        """Return an object with those on which it depends in turn what it stands for: a claim's volume and class."""
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
        """Count one more or one fewer holder of a volume on a row; the volume itself counts once, whoever holds it."""
        volume, row = holding.held, holding.row
        if volume is None:
            return
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
