"""One pod's record in a simulation, from its arrival to its end.

pending -> running -> finished           it ran for as long as it was to run
   |          '-----> deleted            it was evicted, lost with its node, scaled away, or the log says so
   '----------------> deleted
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.kube.api import Pod

PENDING, RUNNING, FINISHED, DELETED = "pending", "running", "finished", "deleted"


@dataclass(slots=True, eq=False)
class PodRecord:
    """What is known of one pod; times are virtual seconds."""

    pod: Pod
    """The newest version."""
    workload: str
    arrived: float
    runs: float | None = None
    """How long it runs once it is placed; None is forever."""
    restarts: bool = False
    """Whether somebody sees to it that another one comes when this one is evicted or lost."""
    state: str = PENDING
    node: str = ""
    zone: str = ""
    placed: float | None = None
    ended: float | None = None
    why: str = ""
    """Why it was deleted, or is about to be."""
    preempted_by: str = ""
    """The pod that it had to make way for; several may share what it leaves, the first is named."""
    note: str = ""
    """Why it could not be placed when it was last tried."""
    is_going: bool = False
    is_daemon: bool = False
    n_before: int = 0
    """How many pods it is the replacement of the replacement of."""
    cpu_milli: int = 0
    memory_bytes: int = 0

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return self.pod.key

    @property
    def is_alive(self) -> bool:
        """Return whether the pod is pending or running."""
        return self.state in (PENDING, RUNNING)
