"""What every predicate and priority of a scheduler is told when it is built: the release, its gates, its options."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubesched.scheduler.legacy.releases import LATEST, LegacyGates, Release


@dataclass(frozen=True, slots=True)
class LegacyContext:
    """One legacy scheduler's circumstances; `args` of all its plugins."""

    release: Release = LATEST
    gates: LegacyGates = field(default_factory=LegacyGates)
    hard_pod_affinity_weight: int = 1
    ignored_resources: frozenset[str] = frozenset()
    max_pd_volumes: int | None = None
    """The environment's KUBE_MAX_PD_VOLS: how many disks a node takes that does not say so itself."""
    bind_timeout_seconds: int | None = None
    """How long CheckVolumeBinding waits for volumes; None is the default."""
    to_the_letter: bool = False
    """Repeat the release's mistakes as well. Without it they are put right, as later releases did."""
