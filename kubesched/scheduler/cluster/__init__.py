"""What we believe about the cluster: the store, its columns, and the snapshots it lends."""

from kubesched.scheduler.cluster.columns import Bools, Codes, Ints
from kubesched.scheduler.cluster.groups import Group, GroupKey, Groups
from kubesched.scheduler.cluster.nodes import ABSENT
from kubesched.scheduler.cluster.objects import Objects
from kubesched.scheduler.cluster.pods import CPU, EPHEMERAL_STORAGE, MEMORY, Gates, PodView
from kubesched.scheduler.cluster.snapshot import ClusterTables, Snapshot
from kubesched.scheduler.cluster.store import Store, StoreError

__all__ = [
    "ABSENT",
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "Bools",
    "ClusterTables",
    "Codes",
    "Gates",
    "Group",
    "GroupKey",
    "Groups",
    "Ints",
    "Objects",
    "PodView",
    "Snapshot",
    "Store",
    "StoreError",
]
