"""The contract for plugins: each extension point is one method.

A plugin is a class with the methods it needs; the others are not called. Methods about nodes answer for all nodes at once:
`filter` returns a column of rejections, `score` a column of integers. An author who prefers to look at one node writes
`filter_node` and `score_node` instead, and the framework calls them for each row.

`depends_on` declares what the answers are made of, so that the framework can cache them (framework/inputs). A plugin that
declares nothing is right too, and is called for every pod.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kubesched.scheduler.cluster import Bools, GroupKey, Ints, PodView, Snapshot
from kubesched.scheduler.framework.advice import Advice, Refused
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.grouping import (
    FailedGroup,
    GroupPostFiltered,
    GroupRefusal,
    GroupTrial,
    Placement,
    Progress,
    Proposal,
    Shortfall,
)
from kubesched.scheduler.framework.inputs import DependsOn
from kubesched.scheduler.framework.ports import Handle
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.scheduler.framework.verdicts import (
    SUCCESS,
    Diagnosis,
    Nomination,
    Reason,
    Rejections,
    Status,
    unschedulable,
)
from kubesched.scheduler.framework.wakeups import Wakeup

if TYPE_CHECKING:
    from kubesched.scheduler.framework.runtime.lifting import NodeView
    from kubesched.scheduler.framework.runtime.profile import Profile


@dataclass(frozen=True, slots=True)
class NodeNames:
    """PreFilter's answer if only these nodes can be feasible."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """PostFilter's answer. `nomination` None leaves the nominated node as it is. The engine, not the plugin, carries out
    `preemption` and `follow_up`."""

    status: Status
    nomination: Nomination | None = None
    preemption: Preemption | None = None
    follow_up: Callable[[], Awaitable[None]] | None = None
    is_settled: bool = False
    """Whether the answer follows from the verdicts alone. Then it holds for all pods of the class while these stand."""


PreFilterAnswer = Status | NodeNames | None
Refusal = str | Status | tuple[Reason, ...] | None
"""How `filter_node` refuses a node: with a text, a status, or reasons. None lets it pass."""


ANSWERS = (
    *("pre_filter", "filter", "filter_node"),
    *("pre_score", "score", "score_node", "normalize"),
)
"""The methods that `depends_on` is about."""


class Plugin:
    """Base of all plugins. `args` is the configured `Args` value, `handle` the way to the outside."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[Any] | None] = None
    wakes_on: ClassVar[tuple[Wakeup, ...] | None] = None
    depends_on: ClassVar[DependsOn | None] = None
    """The inputs and kinds of objects that the answers about nodes are made of. None: anything."""
    pre_binds_in_parallel: ClassVar[bool] = False
    """Whether `pre_bind` may run beside that of a neighbour that allows it too."""
    judges_size: ClassVar[bool] = False
    """Whether an unresolvable refusal means that the node is too small for the pod even without other pods."""
    needs: tuple[tuple[str, str, str], ...] = ()
    """The points that read what an earlier point writes: `("filter", "pre_filter", "... not found")`. If a profile disables
    only the earlier point, an attempt that reaches the later one ends in an error with this text."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        inherited = super(cls, cls)
        if "depends_on" not in cls.__dict__ and any(
            name in cls.__dict__ and getattr(inherited, name) is not getattr(Plugin, name) for name in ANSWERS
        ):
            cls.depends_on = None  # a subclass with other answers may read more than its base, so it declares for itself

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    @classmethod
    def implements(cls, method: str) -> bool:
        """Return whether the plugin has its own version of a point's method."""
        return getattr(cls, method) is not getattr(Plugin, method)

    def wakeups(self) -> tuple[Wakeup, ...] | None:
        """Return the events that may change the plugin's answer; None if the plugin declares nothing."""
        return self.wakes_on

    # Before the queue

    def pre_enqueue(self, pod: PodView) -> Status | None:
        """Return None if a pod may enter the active queue, else the reason. It is called often: no I/O."""
        return None

    def sort_key(self, pod: PodView, queued_at: float) -> Any:
        """Return what pods are ordered by in the active queue, smallest first."""
        return queued_at

    # Which nodes

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Read the pod once, before the nodes. Return SKIP if `filter` would pass every node, a rejection if no node is
        feasible, or the only nodes that can be feasible."""
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Return a verdict for every node of the view."""
        return Rejections.none(nodes)

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> Refusal:
        """Return why one node is refused, or None. For authors who do not want columns.

        If a plugin has both `filter` and `filter_node`, the framework calls the second for a single node, which is faster.
        `check_plugin` checks that they agree.
        """
        return None

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Bring the state up to date: `other` came to the node in `row` (a row of the whole cluster)."""

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Bring the state up to date: `other` left the node in `row` (a row of the whole cluster)."""

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        """Try to make the pod schedulable after no node passed: propose an eviction, or nothing."""
        return PostFiltered(SUCCESS)

    # Which of them

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        """Prepare scoring. Return SKIP if all nodes would score the same."""
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return a score for every node of the view. Scores of nodes that are not feasible are not read."""
        return nodes.uniform(0)

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        """Return one node's score. For authors who do not want columns."""
        return 0

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return the scores of the feasible nodes scaled to 0 to 100. `scores` comes from `score` and must not be changed."""
        return scores

    # After a node was chosen

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Reserve what the pod needs on the node."""
        return None

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Release everything that was reserved. It is called even if nothing was."""

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        """Allow, refuse, or wait, at most so many seconds."""
        return SUCCESS, 0.0

    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Return SKIP if `pre_bind` has nothing to do. Does no work itself."""
        return None

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Do the work that must be done before the binding is written."""
        return None

    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Bind the pod, or return SKIP to leave it to the next plugin."""
        return None

    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Called after the pod is bound."""

    # Pods that belong together

    def advise(self, refused: Refused) -> list[Advice]:
        """Return what a user could change so that this plugin lets the pod pass. `why` calls it for a pending pod.

        `refused.alone` are the nodes that only this plugin refuses. If the plugin returns no advice about them, `why` prints
        its reasons instead.
        """
        return []

    def group_of(self, pod: PodView) -> GroupKey | None:
        """Return the group that a pod is scheduled together with, or None. Reads nothing but the pod."""
        return None

    def group_failed(self, shortfall: Shortfall) -> GroupRefusal | None:
        """Called when a group of this plugin could not be placed; return the status for its members."""
        return None

    def placement_feasible(self, group: GroupKey, progress: Progress) -> Status | None:
        """Return None if enough members of a group are placed, WAIT if enough may still be, or a refusal."""
        return None

    def pod_group_post_filter(self, failed: FailedGroup, trial: GroupTrial) -> GroupPostFiltered:
        """Try to make a group schedulable that could not be placed: propose evictions, or nothing."""
        return GroupPostFiltered(unschedulable())

    def generate_placements(self, group: GroupKey, nodes: Snapshot) -> Sequence[Placement] | Status:
        """Return sets of nodes; one of them shall hold the whole group."""
        return (Placement(""),)

    def score_placement(self, group: GroupKey, proposal: Proposal, nodes: Snapshot) -> int | Status:
        """Return the score of a placement of a group. The best placement wins."""
        return 0

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        """Return the scores of all placements of a group scaled to 0 to 100."""
        return scores


POINTS: dict[str, tuple[str, ...]] = {
    "pre_enqueue": ("pre_enqueue",),
    "queue_sort": ("sort_key",),
    "pre_filter": ("pre_filter",),
    "filter": ("filter", "filter_node"),
    "post_filter": ("post_filter",),
    "pre_score": ("pre_score",),
    "score": ("score", "score_node"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "pre_bind": ("pre_bind",),
    "bind": ("bind",),
    "post_bind": ("post_bind",),
    "pod_group_post_filter": ("pod_group_post_filter",),
    "placement_generate": ("generate_placements",),
    "placement_score": ("score_placement",),
}
"""Extension points by name, with the methods of which a plugin must have one to be there."""
