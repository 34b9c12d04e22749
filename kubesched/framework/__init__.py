"""The contract for plugins, and the one runner for all extension points."""

from kubesched.cluster import PodView, Snapshot
from kubesched.framework import wakeups
from kubesched.framework.advice import Advice, Refused
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.feasible import FeasibleNodes
from kubesched.framework.inputs import Input
from kubesched.framework.lifting import NodeView
from kubesched.framework.plugin import (
    POINTS,
    NodeNames,
    Plugin,
    PostFiltered,
    PreFilterAnswer,
    Refusal,
)
from kubesched.framework.preempting import Preemption
from kubesched.framework.profile import Profile, Scores
from kubesched.framework.registry import Registry
from kubesched.framework.verdicts import (
    SKIP,
    SUCCESS,
    Code,
    Decision,
    Diagnosis,
    DomainScores,
    DomainVerdicts,
    Failed,
    Placed,
    Reason,
    Rejections,
    SpreadScores,
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
    "DomainScores",
    "DomainVerdicts",
    "Failed",
    "FeasibleNodes",
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
    "SpreadScores",
    "Status",
    "Unschedulable",
    "failed",
    "unresolvable",
    "unschedulable",
    "wakeups",
]
