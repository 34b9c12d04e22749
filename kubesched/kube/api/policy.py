"""Disruption budgets and evictions; and what admission reads: limit ranges, quotas, runtime classes."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.kube.api.meta import Condition, DeleteOptions, LabelSelector, Quantity, TopLevel, Wire, always
from kubesched.kube.api.pod import Toleration


class PodDisruptionBudgetSpec(Wire, kw_only=True):
    """Which pods must stay. An absent selector selects none, an empty one all of the namespace."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None  # a number or a percentage
    max_unavailable: int | str | None = None  # likewise; one of the two is set
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Wire, kw_only=True):
    """How many more pods may be evicted now."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = field(default_factory=dict)  # evicted and not gone yet, by name
    disruptions_allowed: int = 0  # goes down with each eviction
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(TopLevel, kw_only=True):
    """A limit on how many pods may be evicted at once. Preemption prefers not to break it."""

    api_version: str = always("policy/v1")
    kind: str = always("PodDisruptionBudget")
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Eviction(TopLevel, kw_only=True):
    """A deletion of a pod that disruption budgets can refuse."""

    api_version: str = always("policy/v1")
    kind: str = always("Eviction")
    delete_options: DeleteOptions | None = None


class LimitRangeItem(Wire, kw_only=True):
    """Defaults and bounds for containers, pods or volume claims."""

    type: str = ""
    max: dict[str, Quantity] = field(default_factory=dict)
    min: dict[str, Quantity] = field(default_factory=dict)
    default: dict[str, Quantity] = field(default_factory=dict)
    default_request: dict[str, Quantity] = field(default_factory=dict)
    max_limit_request_ratio: dict[str, Quantity] = field(default_factory=dict)


class LimitRangeSpec(Wire, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(TopLevel, kw_only=True):
    """Default requests and limits of a namespace, and bounds for them."""

    api_version: str = always("v1")
    kind: str = always("LimitRange")
    spec: LimitRangeSpec = LimitRangeSpec()


class ResourceQuotaSpec(Wire, kw_only=True):
    """The limits of a quota, and the scopes of the pods it counts."""

    hard: dict[str, Quantity] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, Any] | None = None


class ResourceQuota(TopLevel, kw_only=True):
    """How much of each resource a namespace may use."""

    api_version: str = always("v1")
    kind: str = always("ResourceQuota")
    spec: ResourceQuotaSpec = ResourceQuotaSpec()


class RuntimeOverhead(Wire, kw_only=True):
    """What each pod of a runtime class needs on top of its containers."""

    pod_fixed: dict[str, Quantity] = field(default_factory=dict)


class RuntimeScheduling(Wire, kw_only=True):
    """Where pods of a runtime class can run."""

    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(TopLevel, kw_only=True):
    """How pods of a class are run."""

    api_version: str = always("node.k8s.io/v1")
    kind: str = always("RuntimeClass")
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None
