"""A cluster on which moves are tried: who may be moved, and where the scheduler would put the pod that comes instead.

In: an engine that believes in a cluster. Out: moves. A pod is moved by evicting it: its controller makes another one, and
the scheduler, not we, says where that goes. So a move is a pod and the nodes that are best for its replacement, all equally
good: one of them it will be. Moves are tried in the engine's own store, booked or taken back; nothing is written anywhere.

A pod stays where it is if nobody would replace it (no controller), if it would come back to the same node (a DaemonSet's, a
mirror pod), if it is on its way out, if it belongs to the node's own work (system priorities), if what it holds is on the
node (hostPath, emptyDir, local volumes), or if its disruption budgets allow no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kubesched.kube.api import Pod, PodDisruptionBudget, compile_selector
from kubesched.kube.values import MIRROR_POD
from kubesched.scheduler.cluster import CPU, MEMORY, PodView
from kubesched.scheduler.engine import Engine, FirstByName, Rules, attempt, best_rows
from kubesched.scheduler.framework import Placed

SYSTEM_PRIORITY = 2_000_000_000
BELONGS = "it belongs to its node"
_REPLACED_BY = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", "Job"})
_NOW = "1970-01-01T00:00:00Z"
_with = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is evicted, and the nodes of which its replacement takes one."""

    pod: Pod
    source: str
    targets: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return the pod's namespace/name."""
        return self.pod.key


class Board:
    """The cluster while moves are tried."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._rules = Rules(FirstByName(), preempts=False, scores_single=True)
        budgets = list(engine.store.objects.all(PodDisruptionBudget))
        self._budgets = [(budget, compile_selector(budget.spec.selector)) for budget in budgets]
        self._allowed = {budget.key: budget.status.disruptions_allowed for budget in budgets}

    def pods_on(self, node_name: str) -> list[PodView]:
        """Return the pods of a node, in the order of their names."""
        return sorted(self.engine.store.pods_on(node_name).values(), key=lambda view: view.key)

    def work_on(self, node_name: str) -> list[PodView]:
        """Return the pods that a node is there for: those of no DaemonSet and not the kubelet's own."""
        return [view for view in self.pods_on(node_name) if self.why_it_stays(view) != BELONGS]

    def utilisation(self, node_name: str) -> float:
        """Return the larger of the shares of a node's cpu and memory that its pods ask for."""
        nodes = self.engine.store.snapshot()
        row = nodes.row(node_name)
        offers = [nodes.usage_at(resource, row) for resource in (CPU, MEMORY)]
        return max((asked / offered for offered, asked in offers if offered), default=0.0)

    def close(self, node_name: str, is_on: bool = True) -> None:
        """Let nothing new come to a node, as if it were cordoned; or take that back."""
        node = self.engine.store.node(node_name)
        assert node is not None
        self.engine.store.put_node(_with(node, spec=_with(node.spec, unschedulable=is_on)))

    def clear(self, node_name: str) -> list[Move] | str:
        """Close a node and move its pods to others; say why it cannot be, and leave all as it was."""
        self.close(node_name)
        made: list[Move] = []
        for view in self.work_on(node_name):
            move = self.try_move(view)
            if isinstance(move, str):
                self.put_back(node_name, made)
                return f"{view.key}: {move}"
            made.append(move)
        return made

    def put_back(self, node_name: str, moves: list[Move]) -> None:
        """Let a node not have been cleared."""
        for move in reversed(moves):
            self.take_back(move)
        self.close(node_name, False)

    def why_it_stays(self, view: PodView) -> str:
        """Return why a pod is not to be moved, or nothing."""
        pod, meta = view.pod, view.pod.metadata
        owner = meta.controller()
        if MIRROR_POD in (meta.annotations or {}) or (owner is not None and owner.kind in ("DaemonSet", "Node")):
            return BELONGS
        if owner is None or owner.kind not in _REPLACED_BY:
            return "nobody would replace it"
        if meta.deletion_timestamp is not None:
            return "it is on its way out"
        if (pod.spec.priority or 0) >= SYSTEM_PRIORITY:
            return "it has a system priority"
        if pod.spec.scheduler_name not in self.engine.profiles:
            return f"its scheduler {pod.spec.scheduler_name} is not configured here"
        if any(volume.host_path is not None or volume.empty_dir is not None for volume in pod.spec.volumes):
            return "it keeps data on its node"
        for budget, _ in self._over(pod):
            if self._allowed[budget.key] <= 0:
                return f"its disruption budget {budget.key} allows no more"
        return ""

    def _over(self, pod: Pod) -> list[tuple[PodDisruptionBudget, object]]:
        labels = pod.metadata.labels or {}
        return [each for each in self._budgets if each[0].namespace == pod.namespace and each[1].matches(labels)]

    def try_move(self, view: PodView) -> Move | str:
        """Take a pod off its node and book its replacement where it would go; say why not, and leave all as it was."""
        stays = self.why_it_stays(view)
        if stays:
            return stays
        source, store = view.pod.spec.node_name, self.engine.store
        # The replacement comes while the old pod still has its grace period, and so its place; only a StatefulSet waits.
        if _keeps_name(view.pod):
            store.remove_pod(view.uid)
        else:
            store.put_pod(_with(view.pod, metadata=_with(view.pod.metadata, deletion_timestamp=_NOW)))
        targets = self.targets(replacement(view.pod))
        if isinstance(targets, str) or source in targets:
            store.put_pod(view.pod)
            return targets if isinstance(targets, str) else "its replacement may come back to the same node"
        if not _keeps_name(view.pod):
            store.remove_pod(view.uid)
        move = Move(view.pod, source, targets)
        self.book(replacement(view.pod), targets[0])
        for budget, _ in self._over(view.pod):
            self._allowed[budget.key] -= 1
        return move

    def take_back(self, move: Move) -> None:
        """Let a move not have been made."""
        self.engine.store.remove_pod(replacement(move.pod).uid)
        self.engine.store.put_pod(move.pod)
        for budget, _ in self._over(move.pod):
            self._allowed[budget.key] += 1

    def targets(self, pod: Pod) -> tuple[str, ...] | str:
        """Return the nodes that are best for a pod, sorted by name; why there is none, if there is none."""
        store = self.engine.store
        view = store.view(pod)
        profile = self.engine.profiles[pod.spec.scheduler_name]
        gate = profile.pre_enqueue(view)
        if not gate.is_success:
            return gate.message
        made = attempt(view, store.snapshot(), profile, self._rules)
        if not isinstance(made.decision, Placed):
            return getattr(made.decision, "message", "") or "no node takes it"
        assert made.scores is not None
        return tuple(sorted(made.nodes.name(row) for row in best_rows(made.scores.total)))

    def book(self, pod: Pod, node_name: str) -> None:
        """Let a pod that waits be on a node."""
        placed = _with(pod, spec=_with(pod.spec, node_name=node_name), status=_with(pod.status, phase="Running"))
        self.engine.store.put_pod(placed)


def replacement(pod: Pod) -> Pod:
    """Return the pod that its controller makes instead: of the same template, with a name and uid of its own, and no node."""
    name = pod.metadata.name if _keeps_name(pod) else f"{pod.metadata.name}-moved"
    meta = _with(pod.metadata, name=name, uid=f"{pod.metadata.uid}-moved", resource_version="")
    status = type(pod.status)(resource_claim_statuses=pod.status.resource_claim_statuses)
    return _with(pod, metadata=meta, spec=_with(pod.spec, node_name=""), status=status)


def _keeps_name(pod: Pod) -> bool:
    owner = pod.metadata.controller()
    return owner is not None and owner.kind == "StatefulSet"
