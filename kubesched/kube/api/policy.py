"""Disruption budgets and the request to evict a pod within them; what admission reads: limits and runtime classes."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.kube.api.meta import Condition, DeleteOptions, LabelSelector, Quantity, TopLevel, Wire, always
from kubesched.kube.api.pod import Toleration


class PodDisruptionBudgetSpec(Wire, kw_only=True):
    """Which pods, and how many must stay. An absent selector matches none, an empty one all of the namespace."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Wire, kw_only=True):
    """How many more pods may go now; `disrupted_pods` are already on their way, by name."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = field(default_factory=dict)
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(TopLevel, kw_only=True):
    """A limit on how many pods may be disturbed at once."""

    api_version: str = always("policy/v1")
    kind: str = always("PodDisruptionBudget")
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Eviction(TopLevel, kw_only=True):
    """A deletion that asks the budgets first."""

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
    """What new pods of a namespace are given, and between which bounds they must stay."""

    api_version: str = always("v1")
    kind: str = always("LimitRange")
    spec: LimitRangeSpec = LimitRangeSpec()


class ResourceQuotaSpec(Wire, kw_only=True):
    hard: dict[str, Quantity] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, Any] | None = None


class ResourceQuota(TopLevel, kw_only=True):
    """How much of everything a namespace may hold."""

    api_version: str = always("v1")
    kind: str = always("ResourceQuota")
    spec: ResourceQuotaSpec = ResourceQuotaSpec()


class RuntimeOverhead(Wire, kw_only=True):
    pod_fixed: dict[str, Quantity] = field(default_factory=dict)


class RuntimeScheduling(Wire, kw_only=True):
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(TopLevel, kw_only=True):
    """How pods of a class are run; what that costs, and on which nodes it can be done."""

    api_version: str = always("node.k8s.io/v1")
    kind: str = always("RuntimeClass")
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None
