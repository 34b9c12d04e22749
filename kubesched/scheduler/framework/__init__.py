"""The contract for plugins, and the one runner for all extension points."""

from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import wakeups
from kubesched.scheduler.framework.advice import AMOUNT, EXAMPLES, REMARK, Advice, Refused, first_names, would_take_it
from kubesched.scheduler.framework.counting import AddsScores
from kubesched.scheduler.framework.cycle_state import NODE_ALLOCATABLE, CycleState
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.equivalence_cache.counters import CounterTable, DomainCounts, PodCounts
from kubesched.scheduler.framework.equivalence_cache.equivalence_class import CachedAnswer
from kubesched.scheduler.framework.equivalence_cache.node_answers import NodeAnswers
from kubesched.scheduler.framework.group_hierarchy import AnyGroup, GroupHierarchy
from kubesched.scheduler.framework.grouping import (
    COMPOSITE,
    GROUP_TURN,
    WORKLOAD,
    FailedGroup,
    GroupPostFiltered,
    GroupRefusal,
    GroupTrial,
    GroupTurn,
    Placement,
    Progress,
    Proposal,
    Shortfall,
    workload_of,
)
from kubesched.scheduler.framework.inputs import Input, compares_nodes, is_counting, is_kept, own_inputs
from kubesched.scheduler.framework.level_rows import LevelRows
from kubesched.scheduler.framework.nominated import NominatedAbove, NominatedByRow, nominated_by_row
from kubesched.scheduler.framework.plugin import POINTS, NodeNames, Plugin, PostFiltered, PreFilterAnswer, Refusal
from kubesched.scheduler.framework.ports import (
    Clock,
    FeatureGates,
    Handle,
    Meter,
    Nominations,
    Random,
    Recorder,
    Waiting,
    WaitingAtPermit,
    Writer,
)
from kubesched.scheduler.framework.preemption.listed_pods import TemplateNumbers
from kubesched.scheduler.framework.preemption.preempting import Preempting, Preemption
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.preemption.whatif_filters import NodeTrial, WhatIfFilters
from kubesched.scheduler.framework.runtime.blame import blamed, is_ctrl_c
from kubesched.scheduler.framework.runtime.building import build_profile, catalogue
from kubesched.scheduler.framework.runtime.finding import classes_in, find_plugins, installed_plugins, not_enabled, run_module
from kubesched.scheduler.framework.runtime.group_points import MAX_SCORE, NO_PLACEMENTS
from kubesched.scheduler.framework.runtime.lifting import NodeView
from kubesched.scheduler.framework.runtime.plugin_calls import PointObserver
from kubesched.scheduler.framework.runtime.profile import PreFiltered, Profile, Scores
from kubesched.scheduler.framework.runtime.registry import Registry, point_name, points_of, purpose_of, verify
from kubesched.scheduler.framework.runtime.with_nominated import (
    feasible_beside_nominated,
    filter_with_nominated,
    refuse_for_nominated,
)
from kubesched.scheduler.framework.verdicts import (
    CLEAR,
    FEW,
    SKIP,
    SUCCESS,
    Bits,
    Code,
    Decision,
    Diagnosis,
    Failed,
    Nomination,
    Placed,
    Reason,
    Rejections,
    Status,
    Unschedulable,
    Verdicts,
    failed,
    none_available,
    unresolvable,
    unschedulable,
)
from kubesched.scheduler.framework.wakeups import (
    ADD,
    ADMITTED_LATER,
    ALL,
    ASSIGNED_POD,
    COMPOSITE_POD_GROUP,
    CSI_CAPACITY,
    CSI_DRIVER,
    CSI_NODE,
    DELETE,
    DEVICE_CLASS,
    FORCE_ACTIVATE,
    INTERESTED_IN_ALL,
    NODE,
    NODE_TAINTS,
    POD,
    POD_GROUP,
    PV,
    PVC,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
    TARGET_POD,
    UNSCHEDULABLE_POD,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD,
    UPDATE,
    VOLUME_ATTACHMENT,
    Action,
    ClusterEvent,
    Hint,
    Wakeup,
    matches,
    on,
    unhinted,
)
