"""The plugins in the tree, one file each, in the default order."""

from kubesched.scheduler.framework import Plugin
from kubesched.scheduler.plugins.default_binder import DefaultBinder
from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption
from kubesched.scheduler.plugins.deferred_pod_scheduling import DeferredPodScheduling
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.gang_scheduling import GangScheduling
from kubesched.scheduler.plugins.image_locality import ImageLocality
from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.scheduler.plugins.node_name import NodeName
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubesched.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits
from kubesched.scheduler.plugins.pod_group_pods_count import PodGroupPodsCount
from kubesched.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates
from kubesched.scheduler.plugins.taint_toleration import TaintToleration
from kubesched.scheduler.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubesched.scheduler.plugins.volume_zone import VolumeZone

IN_TREE: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    DeferredPodScheduling,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
)
