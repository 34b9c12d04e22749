"""What we believe about the cluster: the store, its columns, and the snapshots it lends."""

from kubesched.cluster.columns import Bools, Codes, Ints
from kubesched.cluster.groups import Group, GroupKey, Groups
from kubesched.cluster.nodes import ABSENT
from kubesched.cluster.objects import Objects
from kubesched.cluster.pods import CPU, EPHEMERAL_STORAGE, MEMORY, Gates, PodView
from kubesched.cluster.snapshot import ClusterTables, Snapshot
from kubesched.cluster.store import Store, StoreError

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
