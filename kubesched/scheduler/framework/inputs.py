"""What a plugin's answers are made of (`Plugin.depends_on`). The cache derives from it which answers it may keep, and until
when.

In: a tuple of inputs and of kinds of API objects. Out: answers to a few questions, for framework/equivalence_cache and
framework/preemption/whatif_filters. A plugin that declares nothing is always right: it is called for every pod. If a plugin
declares something, its answers must follow from that and from nothing else.

  nothing else than     what pods of a template share, and of the cluster the node's own object (NODE), the pods on it
                        (PODS_ON_NODE), and all node objects (ALL_NODES): columns are kept, and only rows that changed computed
  without POD_TEMPLATE  whoever asks the same of a node gets the same answer: the columns are shared
  nor POD_REQUIREMENTS  whatever resources and images it asks for, too: they are kept for pods that are like no other (UNLIKE)
  COUNTED_PODS          counters are kept, and answers derived from them
  a kind of objects     what was kept is begun anew when any object of the kind changes
  POD_VOLUMES and the   the answers for a pod that has such are never kept; those for all other pods are
  other things of one pod
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from kubesched.kube.api import TopLevel
from kubesched.scheduler.cluster import EPHEMERAL_STORAGE, DeviceClassMap, Objects, PodView

if TYPE_CHECKING:
    from kubesched.scheduler.framework.plugin import Plugin


class Input(Enum):
    """A thing that an answer may be made of."""

    POD_NODE_CONSTRAINTS = auto()
    """What the pod asks of a node, without resources and images: node selector, node affinity, tolerations, host ports, host
    network and users, restart rules of containers."""
    POD_REQUIREMENTS = auto()
    """Everything that the pod asks of a node: the above, and the resources and images of its containers."""
    POD_TEMPLATE = auto()
    """Everything that replicas share: the above, and namespace, labels, owner, priority, terms about other pods."""
    POD_VOLUMES = auto()
    """Its claims and disks. Other volumes come with the pod to any node."""
    POD_RESOURCE_CLAIMS = auto()
    POD_NODE_NAME = auto()
    POD_DEVICES = auto()
    """The devices that serve the extended resources it asks for."""
    NODE = auto()
    """The node's own object."""
    PODS_ON_NODE = auto()
    """The pods on the node, and what they use of it."""
    ALL_NODES = auto()
    """The objects of other nodes."""
    COUNTED_PODS = auto()
    """Counters from `CycleState.counted`. Whether the plugin answers SKIP must follow from these counters, and from the other
    declared inputs of the pod, alone."""


DependsOn = tuple[Input | type[TopLevel], ...]
Inputs = frozenset[Input]

NO_INPUTS: Inputs = frozenset()
UNLIKE: Inputs = frozenset({Input.POD_TEMPLATE, Input.POD_REQUIREMENTS})
"""What a pod has of its own if no other pod is like it. Of such pods only answers that follow from node constraints are
kept."""


def is_kept(plugin: Plugin, own: Inputs = NO_INPUTS) -> bool:
    """Return whether a plugin's columns may be kept for pods that have inputs of their own."""
    made_of = plugin.depends_on
    return made_of is not None and Input.COUNTED_PODS not in made_of and own.isdisjoint(made_of)


def is_counting(plugin: Plugin, own: Inputs = NO_INPUTS) -> bool:
    """Return whether a plugin's answers follow from counters that are kept."""
    made_of = plugin.depends_on
    if made_of is None or Input.COUNTED_PODS not in made_of or Input.PODS_ON_NODE in made_of:
        return False
    return own.isdisjoint(made_of)


def follows_pods(plugin: Plugin) -> bool:
    """Return whether a kept column changes with the pods on a node."""
    return Input.PODS_ON_NODE in (plugin.depends_on or ())


def compares_nodes(plugin: Plugin) -> bool:
    """Return whether a kept column changes on all rows with any node object."""
    return Input.ALL_NODES in (plugin.depends_on or ())


def kinds_of(plugin: Plugin) -> tuple[type[TopLevel], ...]:
    """Return the kinds of objects that a plugin's answers are made of."""
    return tuple(kind for kind in plugin.depends_on or () if not isinstance(kind, Input))


_CLAIMS_AND_DISKS = (
    "persistent_volume_claim",
    "ephemeral",
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "rbd",
    "iscsi",
    "cinder",
    "azure_disk",
    "azure_file",
    "vsphere_volume",
    "portworx_volume",
)


def own_inputs(pod: PodView, objects: Objects) -> Inputs:
    """Return what a pod has that others of its template may not have."""
    spec = pod.pod.spec
    if not (spec.volumes or spec.resource_claims or spec.node_name or pod.template.resources.asks_for_scalars):
        return NO_INPUTS
    own = set()
    if any(getattr(volume, source) is not None for volume in spec.volumes for source in _CLAIMS_AND_DISKS):
        own.add(Input.POD_VOLUMES)
    if spec.resource_claims:
        own.add(Input.POD_RESOURCE_CLAIMS)
    if spec.node_name:
        own.add(Input.POD_NODE_NAME)
    if pod.template.resources.asks_for_scalars:
        find, names = objects.shared(DeviceClassMap).find, pod.template.interners.resources.values
        if any(find(names[resource]) is not None for resource, _ in pod.requests if resource > EPHEMERAL_STORAGE):
            own.add(Input.POD_DEVICES)
    return frozenset(own)
