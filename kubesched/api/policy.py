"""Disruption budgets, and the request to evict a pod within them."""

from __future__ import annotations

from msgspec import field

from kubesched.api.meta import Condition, DeleteOptions, LabelSelector, TopLevel, Wire, always


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
