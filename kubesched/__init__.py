"""kubesched: a Kubernetes scheduler that decides as kube-scheduler does, over NumPy columns, and explains itself.

The public names are imported when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.scheduler.framework import (
        SKIP,
        SUCCESS,
        Advice,
        Code,
        CycleState,
        Input,
        NodeNames,
        NodeView,
        Plugin,
        PodView,
        PostFiltered,
        Preemption,
        Reason,
        Refused,
        Rejections,
        Snapshot,
        Status,
        unresolvable,
        unschedulable,
        wakeups,
    )
    from kubesched.server.app import Scheduler
    from kubesched.solver import AsyncCluster, Cluster
    from kubesched.tools.run.program import main
    from kubesched.tools.simulation.simulation import Simulation

_WHERE = {
    "AsyncCluster": "kubesched.solver",
    "Cluster": "kubesched.solver",
    "Scheduler": "kubesched.server.app",
    "Simulation": "kubesched.tools.simulation.simulation",
    "main": "kubesched.tools.run.program",
    **dict.fromkeys(
        (
            "SKIP",
            "SUCCESS",
            "Advice",
            "Code",
            "Input",
            "NodeNames",
            "NodeView",
            "Plugin",
            "PodView",
            "PostFiltered",
            "Preemption",
            "Reason",
            "Refused",
            "Rejections",
            "Snapshot",
            "CycleState",
            "Status",
            "unresolvable",
            "unschedulable",
            "wakeups",
        ),
        "kubesched.scheduler.framework",
    ),
}

__all__ = [
    "SKIP",
    "SUCCESS",
    "Advice",
    "AsyncCluster",
    "Cluster",
    "Code",
    "CycleState",
    "Input",
    "NodeNames",
    "NodeView",
    "Plugin",
    "PodView",
    "PostFiltered",
    "Preemption",
    "Reason",
    "Refused",
    "Rejections",
    "Scheduler",
    "Simulation",
    "Snapshot",
    "Status",
    "main",
    "unresolvable",
    "unschedulable",
    "wakeups",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'kubesched' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)
