"""The contract for plugins, and the one runner for all extension points."""

from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import wakeups
from kubesched.scheduler.framework.advice import Advice, Refused
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.inputs import Input
from kubesched.scheduler.framework.plugin import POINTS, NodeNames, Plugin, PostFiltered, PreFilterAnswer, Refusal
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.scheduler.framework.runtime.lifting import NodeView
from kubesched.scheduler.framework.runtime.profile import Profile, Scores
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.scheduler.framework.verdicts import (
    SKIP,
    SUCCESS,
    Code,
    Decision,
    Diagnosis,
    Failed,
    Placed,
    Reason,
    Rejections,
    Status,
    Unschedulable,
    failed,
    unresolvable,
    unschedulable,
)

__all__ = [
    "POINTS",
    "SKIP",
    "SUCCESS",
    "Advice",
    "Code",
    "CycleState",
    "Decision",
    "Diagnosis",
    "Failed",
    "Input",
    "NodeNames",
    "NodeView",
    "Placed",
    "Plugin",
    "PodView",
    "PostFiltered",
    "PreFilterAnswer",
    "Preemption",
    "Profile",
    "Reason",
    "Refusal",
    "Refused",
    "Registry",
    "Rejections",
    "Scores",
    "Snapshot",
    "Status",
    "Unschedulable",
    "failed",
    "unresolvable",
    "unschedulable",
    "wakeups",
]
