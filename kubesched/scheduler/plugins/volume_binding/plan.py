"""The arithmetic of VolumeBinding: for every node, which volumes the pod's claims would use there.

A plan has a column for each reason against a node, and for each delayed claim two columns: `chosen`, the open volume that it
would get on each row, and `provisioned`, the rows where a volume would be made for it.

    claims data-1 (1Gi), data-2 (3Gi)          open: pv-1 (5Gi, rows 0 and 1)     class allows provisioning on row 1
                      row 0     row 1    row 2
    data-1 chosen     pv-1      pv-1     -               the smaller claim chooses first
    data-2 chosen     -         -        -               pv-1 is taken
    must provision    data-2    data-2   both            possible on row 1 only, so rows 0 and 2 are refused

Nothing depends on the pods of a node, so one plan serves an attempt and its what-ifs. A plan changes nothing; Reserve reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from kubesched.kube.api import (
    CSIDriver,
    CSIStorageCapacity,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.kube.values import SELECTED_NODE, quantity
from kubesched.scheduler.cluster import Bools, Ints, Objects, Snapshot, VolumeCache, class_of_claim
from kubesched.scheduler.plugins.node_volume_limits.csi_nodes import CsiNodes
from kubesched.scheduler.plugins.shared import csi_translation as csi
from kubesched.scheduler.plugins.shared.volumes import NO_PROVISIONER, STORAGE, VolumeError, requested_nano
from kubesched.scheduler.plugins.volume_binding.capacities import StorageCapacities, total_bytes
from kubesched.scheduler.plugins.volume_binding.open_volumes import NONE, OpenVolumes, affinity_of, capacity_nano, wanted_by
from kubesched.scheduler.plugins.volume_binding.rows_by_selector import RowsBySelector


@dataclass(slots=True)
class DelayedClaim:
    """One delayed claim on all rows of the cluster.

    `chosen` are indexes of `volumes`: the open volumes of the class, and last, if there is one, the volume whose claimRef names
    the claim already.
    """

    claim: PersistentVolumeClaim
    class_name: str
    chosen: Ints
    provisioned: Bools
    volumes: list[PersistentVolume] = field(default_factory=list)
    sizes: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    capacity: Ints | None = None
    capacities: list[CSIStorageCapacity] = field(default_factory=list)


class VolumePlan:
    """The plan for all rows of the cluster. Each of the four columns is true on the rows that are refused for that reason."""

    def __init__(self, nodes: Snapshot, nowhere: Bools) -> None:
        self.nodes = nodes
        self.out_of_reach = self.cannot_bind = self.no_space = self.volume_missing = nowhere
        self.delayed: list[DelayedClaim] = []
        self.errors: list[tuple[Bools, str]] = []

    def bindings_on(self, row: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Return the claims that get an existing volume on a row, with the volume."""
        return [(each.claim, each.volumes[each.chosen[row]]) for each in self.delayed if each.chosen[row] != NONE]

    def provisions_on(self, row: int) -> list[PersistentVolumeClaim]:
        """Return the claims for which a volume is provisioned on a row."""
        return [delayed.claim for delayed in self.delayed if delayed.provisioned[row]]

    def errors_in(self, rows: Ints | None) -> dict[int, str]:
        """Return the errors on the given rows (None: all), by position among them."""
        found: dict[int, str] = {}
        for where, text in self.errors:
            for at in np.flatnonzero(where if rows is None else where[rows]).tolist():
                found.setdefault(at, text)
        return found


class Planner:
    """Makes plans, and keeps the indexes of volumes and capacities between attempts."""

    def __init__(
        self, objects: Objects, cache: VolumeCache, heeds_capacity: bool = True, knows_attributes: bool = True
    ) -> None:
        self._knows_attributes = knows_attributes
        self._objects = objects
        self._cache = cache
        self._heeds_capacity = heeds_capacity
        self._open = OpenVolumes(objects, cache)
        self._capacities = StorageCapacities(objects)
        self._csi_nodes = CsiNodes(objects)
        self._by_selector = RowsBySelector()

    def plan(self, bound: list[PersistentVolumeClaim], delayed: list[PersistentVolumeClaim], nodes: Snapshot) -> VolumePlan:
        """Return the plan for a pod's bound and delayed claims, on all rows of the cluster of a view."""
        self._by_selector.follow(nodes)
        plan = VolumePlan(nodes.everything(), self._by_selector.nowhere)
        self._check_bound(bound, plan)
        if delayed:
            self._open.follow()
            self._check_delayed(delayed, plan)
        return plan

    # Bound claims

    def _check_bound(self, claims: list[PersistentVolumeClaim], plan: VolumePlan) -> None:
        """Set `out_of_reach`. A node is refused for the first volume that does not fit, as kube-scheduler stops there."""
        # Kept quirk: the order of the claims decides. A claim whose volume is gone refuses the nodes that no earlier
        # claim has refused, and later claims are not looked at.
        for claim in claims:
            volume = self._cache.get(claim.spec.volume_name)
            if volume is None:
                plan.volume_missing = ~plan.out_of_reach
                return
            plan.out_of_reach = plan.out_of_reach | self._misfits(volume, plan)

    def _misfits(self, volume: PersistentVolume, plan: VolumePlan) -> Bools:
        """Return the rows that do not reach a volume. On nodes with CSI migration an in-tree volume has the affinity that its
        CSI form has."""
        # kube-scheduler translates an in-tree volume for nodes whose CSINode lists its plugin as migrated, because
        # labels differ there: `topology.kubernetes.io/zone` of the volume is `topology.ebs.csi.aws.com/zone` of the
        # driver. Other nodes are matched by the volume as it is. So the two answers are mixed by row.
        here = self._out_of_reach(affinity_of(volume))
        plugin = csi.in_tree_plugin(volume.spec) if volume.spec.csi is None else ""
        if plugin not in csi.MIGRATED:
            return here
        self._csi_nodes.follow(plan.nodes)
        migrated = self._csi_nodes.migrated(plugin)
        if not migrated.any():
            return here
        try:
            translated = csi.translated_affinity(volume)
        except csi.TranslationError as error:
            plan.errors.append((migrated & ~plan.out_of_reach, f"could not translate pv: {error}"))
            return here
        return np.where(migrated, self._out_of_reach(translated), here)

    def _out_of_reach(self, selector: NodeSelector | None) -> Bools:
        if selector is None:
            return self._by_selector.nowhere
        return ~self._by_selector.column(self._by_selector.of_node_selector(selector))

    # Delayed claims

    def _check_delayed(self, claims: list[PersistentVolumeClaim], plan: VolumePlan) -> None:
        """Choose volumes for claims without a selected node, the smallest claim first. A claim with one, from an earlier
        attempt whose provisioning has begun, allows only that node."""
        # A selected node comes from an attempt that failed after it was written. The provisioner may have made the
        # volume there already, so kube-scheduler does not choose again: all rows but that one are refused.
        n = plan.nodes.n
        open_rows = np.ones(n, dtype=np.bool_)
        pinned = [claim for claim in claims if SELECTED_NODE in claim.metadata.annotations]
        free = [claim for claim in claims if SELECTED_NODE not in claim.metadata.annotations]
        for claim in pinned:
            open_rows &= np.arange(n) == plan.nodes.row(claim.metadata.annotations[SELECTED_NODE])
        plan.cannot_bind = ~open_rows
        plan.delayed = [
            DelayedClaim(claim, class_of_claim(claim), np.full(n, NONE, dtype=np.int64), open_rows) for claim in pinned
        ]
        # The smallest claim first, as in kube-scheduler: the large ones cannot use the small volumes anyway. The order
        # matters, because a later claim sees what earlier ones have taken (`plan.delayed`).
        for claim in sorted(free, key=requested_nano):
            plan.delayed.append(self._match(claim, plan, open_rows))
        self._check_provisioning(plan, open_rows)

    def _match(self, claim: PersistentVolumeClaim, plan: VolumePlan, open_rows: Bools) -> DelayedClaim:
        """Choose the existing volume of a claim on each row; the other rows must provision."""
        class_name = class_of_claim(claim)
        found = DelayedClaim(claim, class_name, np.full(plan.nodes.n, NONE, dtype=np.int64), open_rows)
        try:
            if claim.spec.volume_attributes_class_name and not self._knows_attributes:
                raise VolumeError(
                    f"unsupported volumeAttributesClassName is set on claim {claim.key} when the "
                    "feature-gate VolumeAttributesClass is disabled"
                )
            wanted = wanted_by(claim)
        except VolumeError as error:
            plan.errors.append((open_rows, str(error)))
            return found
        volumes = self._open.of_class(class_name)
        found.volumes, found.sizes = volumes.volumes, volumes.sizes
        undecided = np.ones(plan.nodes.n, dtype=np.bool_)
        given = self._open.meant_for(claim, class_name, wanted)
        if given is not None:
            # A volume that names the claim is its only choice, except on rows where another claim has taken it.
            undecided, at = ~undecided, len(found.volumes)
            for earlier in plan.delayed:
                if earlier.volumes and earlier.volumes[-1] is given:
                    undecided |= earlier.chosen == at
            reached = self._by_selector.column(self._by_selector.of_node_selector(affinity_of(given)))
            found.volumes = [*found.volumes, given]
            found.sizes = np.append(found.sizes, quantity.value(capacity_nano(given)))
            found.chosen[reached & ~undecided] = at
        if undecided.any():
            taken = [earlier.chosen for earlier in plan.delayed if earlier.volumes and earlier.class_name == class_name]
            chosen = volumes.choose(wanted, taken, self._by_selector)
            found.chosen = np.where(undecided, chosen, found.chosen)
        found.provisioned = open_rows & (found.chosen == NONE)
        return found

    def _check_provisioning(self, plan: VolumePlan, open_rows: Bools) -> None:
        """Refuse the rows where a volume cannot be provisioned for a claim that needs it. A row is refused for the first such
        claim."""
        # `left` are the rows on which all claims so far have a volume or can get one. A row is refused by the first
        # claim that can neither find nor provision one, so the reasons do not add up.
        left = open_rows
        for delayed in plan.delayed:
            wanted = left & delayed.provisioned
            if not wanted.any():
                continue
            storage_class = self._objects.get(StorageClass, delayed.class_name) if delayed.class_name else None
            if storage_class is None:
                text = (
                    f'failed to find storage class "{delayed.class_name}"'
                    if delayed.class_name
                    else f'no class for claim "{delayed.claim.key}"'
                )
                plan.errors.append((wanted, text))
                continue
            if storage_class.provisioner in ("", NO_PROVISIONER):
                # A class without a provisioner (local volumes) can only use existing ones.
                fits = np.zeros(plan.nodes.n, dtype=np.bool_)
            else:
                fits = self._by_selector.column(self._by_selector.of_topologies(storage_class.allowed_topologies))
            plan.cannot_bind = plan.cannot_bind | (wanted & ~fits)
            roomy = self._has_room(delayed, storage_class)
            if roomy is not None:
                plan.no_space = plan.no_space | (wanted & fits & ~roomy)
                fits = fits & roomy
            left = left & (fits | ~delayed.provisioned)

    def _has_room(self, delayed: DelayedClaim, storage_class: StorageClass) -> Bools | None:
        """Return the rows that reach enough storage for a claim; None if its CSI driver does not report capacity."""
        # Capacity counts only if the CSIDriver says `storageCapacity: true`: other drivers publish no
        # CSIStorageCapacity, and none would then look like full everywhere. A claim without a requested size fits
        # anything.
        if not self._heeds_capacity or STORAGE not in delayed.claim.spec.resources.requests:
            return None
        driver = self._objects.get(CSIDriver, storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        capacities = self._capacities.of_class(storage_class.metadata.name)
        delayed.capacity = capacities.enough(quantity.value(requested_nano(delayed.claim)), self._by_selector)
        delayed.capacities = capacities.objects
        roomy: Bools = delayed.capacity != NONE
        return roomy


class _Share:
    """The storage that claims of one class request, and what is available, by row."""

    def __init__(self, n: int) -> None:
        self.requested = np.zeros(n, dtype=np.int64)
        self.available = np.zeros(n, dtype=np.int64)
        self.counts = np.zeros(n, dtype=np.bool_)

    def ask(self, delayed: DelayedClaim, rows: Bools) -> None:
        """Add what a claim requests on some rows."""
        self.counts |= rows
        self.requested[rows] += quantity.value(requested_nano(delayed.claim))


def storage_scores(plan: VolumePlan, line: Ints) -> Ints:
    """Return the score of all rows of the cluster (gate StorageCapacityScoring).

    For each storage class, the used share in percent is looked up in the configured shape; the score is the mean over the
    classes. By default less used is better: 2Gi requested of a volume of 8Gi is 25 percent, score 75. Rows that use existing
    volumes count only these, the other rows only the capacities for provisioning.
    """
    # Two tables, because the rows of one pod may differ: on row 0 a claim finds an existing volume (`chosen`), on row 1
    # one is made for it (`provisioned`). `given` says for each row which of the tables counts.
    n = plan.nodes.n
    given = np.zeros(n, dtype=np.bool_)
    existing: defaultdict[str, _Share] = defaultdict(lambda: _Share(n))
    made: defaultdict[str, _Share] = defaultdict(lambda: _Share(n))
    for delayed in plan.delayed:
        given |= delayed.chosen != NONE
        _add_existing(delayed, existing)
        _add_made(delayed, made)
    return np.where(given, _average(existing.values(), line, n), _average(made.values(), line, n))


def _add_existing(delayed: DelayedClaim, shares: defaultdict[str, _Share]) -> None:
    # By the class in the volume's spec: with the old annotation it may differ from the class by which the volume was found.
    by_class: defaultdict[str, list[int]] = defaultdict(list)
    for at in np.unique(delayed.chosen[delayed.chosen != NONE]).tolist():
        by_class[delayed.volumes[at].spec.storage_class_name].append(at)
    for name, volumes in by_class.items():
        mine = np.isin(delayed.chosen, volumes)
        shares[name].ask(delayed, mine)
        shares[name].available[mine] += delayed.sizes[delayed.chosen[mine]]


def _add_made(delayed: DelayedClaim, shares: defaultdict[str, _Share]) -> None:
    if delayed.capacity is None:
        return
    rows = delayed.provisioned & (delayed.capacity != NONE)
    if rows.any():
        totals = np.array([total_bytes(capacity) or 0 for capacity in delayed.capacities], dtype=np.int64)
        shares[delayed.class_name].ask(delayed, rows)
        shares[delayed.class_name].available[rows] = totals[delayed.capacity[rows]]


def _average(shares: Iterable[_Share], line: Ints, n: int) -> Ints:
    total, classes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for share in shares:
        #     shape 0 % -> 100, 100 % -> 0:   class fast 2Gi of 8Gi: 25 % -> 75     class slow 5Gi of 10Gi: 50 % -> 50
        #     mean (75 + 50) / 2 = 62.5, rounded half up: 63
        full = (share.available == 0) | (share.requested > share.available)
        percent = np.where(full, 100, share.requested * 100 // np.where(full, 1, share.available))
        total += np.where(share.counts, line[np.clip(percent, 0, 100)], 0)
        classes += share.counts
    # The mean rounded half up: (2t + c) // 2c = floor(t / c + 1/2). Without a class 0.
    return np.where(classes > 0, (2 * total + classes) // np.maximum(2 * classes, 1), 0)
