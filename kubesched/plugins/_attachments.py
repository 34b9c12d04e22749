"""Which volumes are attached to which nodes, counted by driver.

In: placed pods, the claims, volumes and classes behind them, and VolumeAttachments. Out: for each driver a column with
the number of distinct volumes on each node, and for one volume the nodes that hold it. A volume has the name
`driver/handle`. One that is still unbound has a stand-in name made from its claim, so that two pods with the same claim
count once; when the claim is bound, its holders move to the volume's own name.

`volumes_of` is the same arithmetic for one pod, without any index: for the pod that is to be placed, for the pods of a
node in a what-if, and as the truth that the index is tested against.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from kubesched.api.volumes import Volume
from kubesched.cluster import Ints, Objects, PodView, Snapshot
from kubesched.cluster.changelog import Reader
from kubesched.cluster.claims import class_of_claim
from kubesched.cluster.objects import ObjectChange
from kubesched.plugins import _csi_translation as csi
from kubesched.plugins._placed import PlacedPods
from kubesched.plugins._volumes import VolumeError, claim_not_found, ephemeral_claim_name, ownership_error

K = TypeVar("K")


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
        return Wanted(self.by_driver, self.inline_error, self.touched | {row})


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


def volumes_of(
    pod: Pod, resolver: Resolver, *, is_new: bool, on_inline_error: Callable[[str], None] | None = None
) -> dict[str, Attached]:
    """Return the volumes that a pod attaches, by name.

    A claim that does not exist is an error for a pod that is to be placed, and nothing for one that is there already.
    An inline volume without a CSI form raises, or is handed to `on_inline_error`.
    """
    found: dict[str, Attached] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            try:
                attached = resolver.inline(volume)
            except VolumeError as error:
                if on_inline_error is None:
                    raise
                on_inline_error(str(error))
                continue
        else:
            attached = _claimed(pod, volume, resolver, is_new)
        if attached is not None:
            found[attached.name] = attached
    return found


def by_driver(volumes: dict[str, Attached]) -> dict[str, tuple[Attached, ...]]:
    """Return volumes by driver, drivers and volumes in the order in which they stand."""
    return {
        driver: tuple(volume for volume in volumes.values() if volume.driver == driver)
        for driver in dict.fromkeys(volume.driver for volume in volumes.values())
    }


def _claimed(pod: Pod, volume: Volume, resolver: Resolver, is_new: bool) -> Attached | None:
    name = claim_name(pod, volume)
    if not name:
        raise VolumeError("PersistentVolumeClaim had no name")
    namespace = pod.metadata.namespace
    claim = resolver.objects.get(PersistentVolumeClaim, name, namespace)
    if claim is None:
        if is_new:
            raise ClaimMissing(f"looking up PVC {namespace}/{name}: {claim_not_found(name)}")
        return None
    if volume.ephemeral is not None:
        wrong = ownership_error(pod, claim)
        if wrong:
            raise VolumeError(wrong)
    return resolver.claim(claim)


def claim_name(pod: Pod, volume: Volume) -> str:
    """Return the name of the claim behind a volume that is one."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return ephemeral_claim_name(pod, volume)


@dataclass(slots=True)
class _Holding:
    """One pod's use of one claim."""

    pod: Pod
    row: int
    ephemeral: bool
    held: Attached | None = None


@dataclass(slots=True)
class _Claim:
    """A claim that placed pods use: what it stood for when last looked at, and on which objects that depends."""

    volume_name: str = ""
    class_name: str = ""
    holdings: dict[tuple[str, int], _Holding] = field(default_factory=dict)


class Attachments(PlacedPods):
    """The attached volumes of all nodes; those that only VolumeAttachments tell of are counted if asked for."""

    def __init__(self, resolver: Resolver, with_attachments: bool = True) -> None:
        super().__init__()
        self.resolver = resolver
        self._kinds: tuple[type, ...] = (PersistentVolumeClaim, PersistentVolume, StorageClass)
        if with_attachments:
            self._kinds += (VolumeAttachment,)
        self._objects = resolver.objects
        self._size = 0
        self._counts: dict[str, Ints] = {}
        self._by_pods: dict[str, dict[int, int]] = {}
        self._by_attachments: dict[str, dict[int, int]] = {}
        self._attachment_held: dict[str, tuple[Attached, int]] = {}
        self._attachments_on: dict[int, set[str]] = {}
        self._claims: dict[tuple[str, str], _Claim] = {}
        self._claims_of_volume: dict[str, set[tuple[str, str]]] = {}
        self._claims_of_class: dict[str, set[tuple[str, str]]] = {}
        self._attachments_of_volume: dict[str, set[str]] = {}
        self._readers: dict[type, Reader[ObjectChange]] = {}
        self._rows: Callable[[str], int] = lambda _: -1
        self.errors: dict[int, dict[tuple[str, int], str]] = {}

    def follow(self, nodes: Snapshot) -> None:
        """Bring the counts up to date with the cluster that a view is of."""
        super().follow(nodes)
        self._follow_objects()

    def count(self, driver: str) -> Ints | None:
        """Return how many volumes of a driver each node of the whole cluster has; None if none has any."""
        return self._counts.get(driver)

    def rows_with(self, name: str) -> Collection[int]:
        """Return the rows of the whole cluster whose pods hold a volume."""
        return self._by_pods.get(name, {})

    def by_attachments(self, row: int) -> set[Attached]:
        """Return the volumes that VolumeAttachments put on a row of the whole cluster."""
        return {self._attachment_held[name][0] for name in self._attachments_on.get(row, ())}

    # Pods

    def restart(self, nodes: Snapshot) -> None:
        """Forget all pods and attachments."""
        self._size = nodes.total
        self._counts, self._by_pods, self._by_attachments, self._attachment_held = {}, {}, {}, {}
        self._claims, self._claims_of_volume, self._claims_of_class, self.errors = {}, {}, {}, {}
        self._attachments_of_volume, self._attachments_on = {}, {}
        self._rows = nodes.everything().row
        self._readers = {kind: Reader(self._objects.log(kind)) for kind in self._kinds}
        for attachment in self._objects.all(VolumeAttachment) if VolumeAttachment in self._kinds else ():
            self._take_attachment(attachment)

    def came(self, pod: PodView, row: int) -> None:
        """Take in a pod's volumes."""
        spec = pod.pod
        for index, volume in enumerate(spec.spec.volumes):
            if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
                holding = _Holding(spec, row, volume.ephemeral is not None)
                key = (pod.namespace, claim_name(spec, volume))
                stored = self._objects.get(PersistentVolumeClaim, key[1], key[0])
                claim = self._claims.get(key)
                if claim is None:
                    claim = self._claims[key] = _Claim()
                    self._depend(key, claim, stored)
                claim.holdings[(pod.uid, index)] = holding
                self._take(key[1], stored, (pod.uid, index), holding)
            else:
                try:
                    attached = self.resolver.inline(volume)
                except VolumeError as error:
                    self.errors.setdefault(row, {})[(pod.uid, index)] = str(error)
                else:
                    self._hold(self._by_pods, attached, row, 1)

    def left(self, pod: PodView, row: int) -> None:
        """Let go of a pod's volumes."""
        spec = pod.pod
        for index, volume in enumerate(spec.spec.volumes):
            self._forget_error(row, (pod.uid, index))
            if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
                key = (pod.namespace, claim_name(spec, volume))
                claim = self._claims[key]
                holding = claim.holdings.pop((pod.uid, index))
                self._hold(self._by_pods, holding.held, row, -1)
                if not claim.holdings:
                    self._depend(key, claim, None)
                    del self._claims[key]
            else:
                try:
                    attached = self.resolver.inline(volume)
                except VolumeError:
                    continue
                self._hold(self._by_pods, attached, row, -1)

    def _take(self, name: str, claim: PersistentVolumeClaim | None, holder: tuple[str, int], holding: _Holding) -> None:
        """Find out what one pod's use of a claim stands for, and count it."""
        wrong = ""
        if not name:
            wrong = "PersistentVolumeClaim had no name"
        elif claim is not None and holding.ephemeral:
            wrong = ownership_error(holding.pod, claim)
        if wrong:
            self.errors.setdefault(holding.row, {})[holder] = wrong
        else:
            self._forget_error(holding.row, holder)
        holding.held = self.resolver.claim(claim) if claim is not None and not wrong else None
        self._hold(self._by_pods, holding.held, holding.row, 1)

    def _look_again(self, key: tuple[str, str]) -> None:
        claim = self._claims.get(key)
        if claim is None:
            return
        stored = self._objects.get(PersistentVolumeClaim, key[1], key[0])
        self._depend(key, claim, stored)
        for holder, holding in claim.holdings.items():
            self._hold(self._by_pods, holding.held, holding.row, -1)
            self._take(key[1], stored, holder, holding)

    def _depend(self, key: tuple[str, str], claim: _Claim, stored: PersistentVolumeClaim | None) -> None:
        """Write down which volume and class a claim's meaning depends on."""
        volume_name = stored.spec.volume_name if stored is not None else ""
        class_name = class_of_claim(stored) if stored is not None else ""
        for index, old, new in (
            (self._claims_of_volume, claim.volume_name, volume_name),
            (self._claims_of_class, claim.class_name, class_name),
        ):
            if old != new:
                _discard(index, old, key)
                if new:
                    index.setdefault(new, set()).add(key)
        claim.volume_name, claim.class_name = volume_name, class_name

    def _forget_error(self, row: int, holder: tuple[str, int]) -> None:
        errors = self.errors.get(row)
        if errors is not None and errors.pop(holder, None) is not None and not errors:
            del self.errors[row]

    # What claims, volumes, classes and attachments say

    def _follow_objects(self) -> None:
        claims: set[tuple[str, str]] = set()
        for kind, reader in self._readers.items():
            changes = reader.changed(self._objects.log(kind))
            if changes is None:
                if kind is VolumeAttachment:
                    for name in list(self._attachment_held):
                        self._drop_attachment(name)
                    for attachment in self._objects.all(VolumeAttachment):
                        self._take_attachment(attachment)
                else:
                    claims.update(self._claims)
                    for names in list(self._attachments_of_volume.values()):
                        self._look_again_at_attachments(names)
                continue
            for old, new in changes:
                found = new if new is not None else old
                assert found is not None
                meta = found.metadata
                if kind is VolumeAttachment:
                    if old is not None:
                        _discard(self._attachments_of_volume, old.spec.source.persistent_volume_name or "", meta.name)
                    self._look_again_at_attachments({meta.name})
                elif kind is PersistentVolumeClaim:
                    claims.add((meta.namespace, meta.name))
                elif kind is StorageClass:
                    claims.update(self._claims_of_class.get(meta.name, ()))
                else:
                    claims.update(self._claims_of_volume.get(meta.name, ()))
                    self._look_again_at_attachments(self._attachments_of_volume.get(meta.name, set()))
        for key in claims:
            self._look_again(key)

    def _look_again_at_attachments(self, names: set[str]) -> None:
        for name in list(names):
            self._drop_attachment(name)
            attachment = self._objects.get(VolumeAttachment, name)
            if attachment is not None:
                self._take_attachment(attachment)

    def _take_attachment(self, attachment: VolumeAttachment) -> None:
        spec = attachment.spec
        volume_name = spec.source.persistent_volume_name
        row = self._rows(spec.node_name)
        if not spec.attacher or volume_name is None or row < 0:
            return
        name = attachment.metadata.name
        self._attachments_of_volume.setdefault(volume_name, set()).add(name)
        volume = self._objects.get(PersistentVolume, volume_name)
        if volume is not None and volume.spec.csi is not None:
            held = Attached(f"{spec.attacher}/{volume.spec.csi.volume_handle}", spec.attacher)
            self._attachment_held[name] = (held, row)
            self._attachments_on.setdefault(row, set()).add(name)
            self._hold(self._by_attachments, held, row, 1)

    def _drop_attachment(self, name: str) -> None:
        found = self._attachment_held.pop(name, None)
        if found is not None:
            self._attachments_on[found[1]].discard(name)
            self._hold(self._by_attachments, found[0], found[1], -1)

    # Counting

    def _hold(self, mine: dict[str, dict[int, int]], volume: Attached | None, row: int, sign: int) -> None:
        """Count one more or one fewer holder of a volume on a row; the volume itself counts once, whoever holds it."""
        if volume is None:
            return
        theirs = self._by_attachments if mine is self._by_pods else self._by_pods
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
                counts = self._counts[volume.driver] = np.zeros(self._size, dtype=np.int64)
            counts[row] += sign


def _discard(index: dict[str, set[K]], name: str, key: K) -> None:
    keys = index.get(name)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del index[name]
