"""What we believe about the cluster: the store, its columns, and the snapshots it lends."""

from kubesched.scheduler.cluster.changelog import ChangeLog, Reader
from kubesched.scheduler.cluster.claims import ClaimCache, PromiseError, VolumeCache, class_of_claim, class_of_volume
from kubesched.scheduler.cluster.columns import Array, Bools, Codes, Ints, lowest
from kubesched.scheduler.cluster.device_claims import ClaimError, DeviceClaims, DeviceId, PoolId
from kubesched.scheduler.cluster.device_classes import DeviceClassMap
from kubesched.scheduler.cluster.fragmentation import fragmentation
from kubesched.scheduler.cluster.groups import Group, GroupKey, GroupReader, Groups
from kubesched.scheduler.cluster.intern import Memo
from kubesched.scheduler.cluster.journal import ALLOCATABLE, NODE, SPEC, STARTED, Change, Journal
from kubesched.scheduler.cluster.nodes import ABSENT
from kubesched.scheduler.cluster.objects import KindVersions, ObjectChange, Objects
from kubesched.scheduler.cluster.pods import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NATIVE_RESOURCES,
    AffinityGroup,
    Gates,
    LabelClass,
    LabelClasses,
    PodTemplate,
    PodView,
    Templates,
    sign,
)
from kubesched.scheduler.cluster.selection import match_node_selector, match_required, match_requirement, match_term
from kubesched.scheduler.cluster.snapshot import ClusterTables, Snapshot, is_uniform
from kubesched.scheduler.cluster.store import Aside, Store, StoreError, TakenOut
from kubesched.scheduler.cluster.topology import REGION_LABELS, ZONE_LABELS, zone_key
