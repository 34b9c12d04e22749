"""The arguments of every plugin in the tree, by plugin name; the configuration loader is handed this table."""

from __future__ import annotations

from kubesched.config.args import Args
from kubesched.config.catalogue import in_tree
from kubesched.plugins.coscheduling import CoschedulingArgs
from kubesched.plugins.default_preemption import DefaultPreemptionArgs
from kubesched.plugins.dynamic_resources.args import DynamicResourcesArgs
from kubesched.plugins.inter_pod_affinity import InterPodAffinityArgs
from kubesched.plugins.node_affinity import NodeAffinityArgs
from kubesched.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocationArgs
from kubesched.plugins.node_resources_fit import NodeResourcesFitArgs
from kubesched.plugins.pod_topology_spread import PodTopologySpreadArgs
from kubesched.plugins.volume_binding.args import VolumeBindingArgs

IN_TREE_ARGS: dict[str, type[Args]] = {
    "Coscheduling": CoschedulingArgs,
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}

# What the loader needs to know about the plugins in the tree.
IN_TREE_CATALOGUE = in_tree(IN_TREE_ARGS)
