"""A cluster with the default profile, to make attempts in."""

from __future__ import annotations

from typing import Any

from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.assembly import Ports, build_profiles, default_configuration, new_handle, registry_with
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.testing.nominations import Nominations

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Scene:
    """A cluster with the default profile."""

    def __init__(self, *objects: Node | Pod) -> None:
        gates = Gates.defaults()
        self.store, handle = new_handle(gates, Ports())
        for obj in objects:
            self.store.put_node(obj) if isinstance(obj, Node) else self.store.put_pod(obj)
        self.nominations = Nominations()
        handle.nominations = self.nominations
        self.profile: Profile = build_profiles(default_configuration(gates), registry_with(), handle)["default-scheduler"]

    def attempt(self, wanted: Pod, memo: EquivalenceCache | None = None, **rules: Any) -> Attempt:
        given = Rules(SeededTies(0), self.nominations, **{"preempts": False, **rules})
        return attempt(self.store.view(wanted), self.store.snapshot(), self.profile, given, memo)


def pinned(*names: str) -> dict[str, Any]:
    """Return an affinity to nodes of these names, one term each."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
