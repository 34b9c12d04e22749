"""The contract: every extension point as one method, documented.

A plugin is a class with the points it cares about; what it leaves out is not called. Points that look at nodes answer
for all nodes in one expression: `filter` returns a column of rejections, `score` a column of integers. An author who
prefers to look at one node writes `filter_node` and `score_node` instead, and the framework lifts them over the rows.

`depends_on` tells the framework what an answer is made of, and so when one that it remembers may still be used
(framework/inputs). Saying nothing is always right and costs a recomputation for every pod.
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
    """PreFilter's way to say: only these nodes come into question."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """PostFilter's answer. `nomination` None leaves the nominated node as it is; `preemption` and `follow_up` are carried
    out by the engine, never by the plugin."""

    status: Status
    nomination: Nomination | None = None
    preemption: Preemption | None = None
    follow_up: Callable[[], Awaitable[None]] | None = None
    is_settled: bool = False
    """Whether the answer follows from the verdicts alone: then every pod of the class gets it while they stand."""


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
    """What the answers about nodes are made of, and nothing else: inputs, and kinds of objects. None: anything."""
    pre_binds_in_parallel: ClassVar[bool] = False
    """Whether `pre_bind` may run beside that of a neighbour that allows it too."""
    judges_size: ClassVar[bool] = False
    """Whether a refusal that no eviction changes means that the node is too small for the pod, even empty."""
    needs: tuple[tuple[str, str, str], ...] = ()
    """The points that read what an earlier one wrote: `("filter", "pre_filter", "... not found")`. In a profile that switches
    the earlier one off alone, an attempt that comes to the later one ends in an error with this text."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        inherited = super(cls, cls)
        if "depends_on" not in cls.__dict__ and any(
            name in cls.__dict__ and getattr(inherited, name) is not getattr(Plugin, name) for name in ANSWERS
        ):
            cls.depends_on = None  # what replaces an answer of its base may read more: it declares for itself

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    @classmethod
    def implements(cls, method: str) -> bool:
        """Return whether the plugin has its own version of a point's method."""
        return getattr(cls, method) is not getattr(Plugin, method)

    def wakeups(self) -> tuple[Wakeup, ...] | None:
        """Return the events that may change the plugin's mind; None means that nothing was declared."""
        return self.wakes_on

    # Before the queue

    def pre_enqueue(self, pod: PodView) -> Status | None:
        """Say whether a pod may enter the active queue. Called often: no I/O."""
        return None

    def sort_key(self, pod: PodView, queued_at: float) -> Any:
        """Return what pods are ordered by in the active queue, smallest first."""
        return queued_at

    # Which nodes

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Boil the pod down, once. Return SKIP if `filter` would pass every node, a rejection if no node can do, or the
        only nodes that come into question."""
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Return a verdict for every node of the view."""
        return Rejections.none(nodes)

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> Refusal:
        """Return why one node is refused, or None; for authors who do not want columns.

        A plugin may have both `filter` and `filter_node`: the framework then asks about a single node without the price of
        arrays. `check_plugin` holds them to the same answers.
        """
        return None

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Bring the state up to date: `other` came to the node in `row` (a row of the whole cluster)."""

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Bring the state up to date: `other` left the node in `row` (a row of the whole cluster)."""

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        """Find a way out when no node passed: propose an eviction, or nothing."""
        return PostFiltered(SUCCESS)

    # Which of them

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        """Prepare scoring. Return SKIP if all scores would say nothing."""
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return a score for every node of the view; those of nodes that did not pass are not read."""
        return nodes.uniform(0)

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        """Return one node's score; for authors who do not want columns."""
        return 0

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Bring the scores of the feasible nodes into 0 to 100. `scores` is what `score` returned, and not to be written to."""
        return scores

    # Booked, waiting, bound

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Promise what the pod needs on the node."""
        return None

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Take every promise back; called also if nothing was promised."""

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        """Allow, refuse, or ask to wait at most so many seconds."""
        return SUCCESS, 0.0

    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Say whether `pre_bind` has anything to do: SKIP if not. Does no work itself."""
        return None

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Do what must be done before the binding is written."""
        return None

    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Bind the pod, or return SKIP to leave it to the next plugin."""
        return None

    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Take notice that the pod is bound."""

    # Pods that belong together

    def advise(self, refused: Refused) -> list[Advice]:
        """Return what would help a pod that this plugin keeps off nodes; asked when somebody wants to know why it is pending.

        `refused.alone` are the nodes that would take the pod but for this plugin; without any, there is mostly nothing to
        say. A plugin that has nothing to say about nodes it alone refuses is quoted instead, with its reasons.
        """
        return []

    def group_of(self, pod: PodView) -> GroupKey | None:
        """Return the group that a pod is to be tried together with, or None. Reads nothing but the pod."""
        return None

    def group_failed(self, shortfall: Shortfall) -> GroupRefusal | None:
        """Take notice that a group of this plugin came to nothing, and say what its members are told."""
        return None

    def placement_feasible(self, group: GroupKey, progress: Progress) -> Status | None:
        """Say whether a group has enough members with a place (None), may still get there (WAIT), or cannot (a refusal)."""
        return None

    def pod_group_post_filter(self, failed: FailedGroup, trial: GroupTrial) -> GroupPostFiltered:
        """Find a way out for a group that came to nothing: propose evictions, or nothing."""
        return GroupPostFiltered(unschedulable())

    def generate_placements(self, group: GroupKey, nodes: Snapshot) -> Sequence[Placement] | Status:
        """Return the sets of nodes of which one is to hold the whole group."""
        return (Placement(""),)

    def score_placement(self, group: GroupKey, proposal: Proposal, nodes: Snapshot) -> int | Status:
        """Return how good a placement of a group is; among several the best is taken."""
        return 0

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        """Bring the scores of all placements of a group into 0 to 100."""
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
