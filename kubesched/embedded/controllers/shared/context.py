"""How fast the fake cluster moves, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Delays of kubelets and controllers. A pod's annotations can override its own; see kubelets.py."""

    pull_seconds: float = 1.0  # the first time a node sees an image
    start_seconds: float = 0.3
    ready_seconds: float = 0.3
    stop_seconds: float = 0.5  # at most the pod's grace
    run_seconds: float = 5.0  # how long the pods of jobs run
    provision_seconds: float = 0.5
    lease_seconds: float = 10.0  # 0: no leases, and nodes never count as lost
    lease_duration_seconds: int = 40


INSTANT = Pace(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
