"""A cluster autoscaler in virtual time: it adds nodes for pending pods and removes nodes that are not needed.

In: a simulation, its node groups, and cluster-autoscaler's settings. Out: new nodes, which join after the `startup` of their
group, and nodes that are drained and removed.

A scan works as in cluster-autoscaler. Pods that the scheduler has refused are tried on nodes that will join soon, then on new
nodes (node_groups/estimate.py). One scan adds nodes to one group only, and then removes none. A node is unneeded while its
requests are below the threshold and all its pods fit on other nodes; `rebalance` decides which pods can be moved. Empty nodes
are removed together, nodes with pods one after the other.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import CPU, MEMORY
from kubesched.solver.node_groups import DaemonSetPods, NodeEstimator
from kubesched.tools.rebalance.board import Board, Move
from kubesched.tools.simulation.cluster import incidents
from kubesched.tools.simulation.cluster.node_supply import NodeSupply
from kubesched.tools.simulation.cluster.simulated_cluster import grace_of
from kubesched.tools.simulation.scenario import Autoscaler, seconds
from kubesched.tools.simulation.simulation import Simulation

_RECHECK_SECONDS = 300.0
"""How long a node whose pods fit nowhere else is skipped, as in cluster-autoscaler."""
_MOST_CANDIDATES = 30
"""How many nodes with pods are checked in one scan, as in cluster-autoscaler."""


class ClusterAutoscaler:
    """Scans the cluster at an interval, and adds or removes nodes."""

    def __init__(self, sim: Simulation, supply: NodeSupply, settings: Autoscaler, daemons: DaemonSetPods) -> None:
        self._sim = sim
        self._cluster = sim.world
        self._supply = supply
        self._settings = settings
        self._daemons = daemons
        self._estimator = NodeEstimator(sim.engine, supply.sizes, daemons)
        self._last_added = -float("inf")
        self._unneeded: dict[str, float] = {}
        """By node, since when it is unneeded."""
        self._not_before: dict[str, float] = {}
        self._draining: set[str] = set()
        self._seen_by: tuple[int, int, int] | None = None
        self._seen_when_growing: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """Schedule the next scan."""
        self._sim.at(self._sim.now + seconds(self._settings.scan_interval), self._scan)

    def _scan(self) -> None:
        self._sim.engine.take_in()  # also changes of this moment count
        if not self._grow() and self._settings.scale_down:
            self._look_for_unneeded()
            if self._sim.now >= self._last_added + seconds(self._settings.scale_down_delay_after_add):
                self._shrink()
        self.begin()

    def _versions(self) -> tuple[int, int, int]:
        """Return numbers that change with the cluster: a scan of an unchanged cluster can be skipped."""
        return self._cluster.version, len(self._supply.coming), len(self._cluster.nodes)

    # Up

    def _grow(self) -> bool:
        """Order nodes for pending pods; return whether any were ordered."""
        now, delay = self._sim.now, seconds(self._settings.new_pod_scale_up_delay)
        seen = self._versions()
        if seen == self._seen_when_growing and not delay:
            return False  # nothing helped then, and nothing has changed
        waiting = [
            record.pod for record in self._sim.measures.pending.values() if record.note and now - record.arrived >= delay
        ]
        if not waiting:
            return False
        sizes = self._supply.sizes
        new = self._estimator.estimate(waiting, coming=list(self._supply.coming.values()))
        chosen = [each for each in new if each.group.name == new[0].group.name]
        for each in reversed(new):
            sizes.take_back(each.name)
        if not chosen:
            self._seen_when_growing = seen
            return False
        self._cluster.tell("scaledUp", group=chosen[0].group.name, nodes=len(chosen))
        self._sim.measures.n_scaled_up += len(chosen)
        for each in chosen:
            self._supply.order(each.group, each.node)
        self._last_added = now
        return True

    # Down

    def _look_for_unneeded(self) -> None:
        """Find the nodes that could all be removed together: the pods of each fit on nodes that stay."""
        seen, now = self._versions(), self._sim.now
        if seen == self._seen_by:
            return
        self._seen_by = seen
        board, cleared = Board(self._sim.engine), list[tuple[str, list[Move]]]()
        found, n_with_pods = dict[str, float](), 0
        for name in self._candidates():
            if self._not_before.get(name, 0.0) > now or n_with_pods >= _MOST_CANDIDATES:
                continue
            moves = board.clear(name)
            if isinstance(moves, str):
                self._not_before[name] = now + _RECHECK_SECONDS
                continue
            n_with_pods += bool(moves)
            cleared.append((name, moves))
            found[name] = self._unneeded.get(name, now)
        for name, moves in reversed(cleared):
            board.put_back(name, moves)
        self._unneeded = found

    def _candidates(self) -> list[str]:
        """Return the nodes below the threshold in groups that may shrink: first those found before, then the emptiest."""
        store, sizes = self._sim.engine.store, self._supply.sizes
        nodes = store.snapshot()
        share = np.zeros(nodes.n)
        for resource in (CPU, MEMORY):
            share = np.maximum(share, nodes.requested(resource) / np.maximum(nodes.allocatable(resource), 1))
        threshold = self._settings.scale_down_utilization_threshold
        shares = {nodes.name(row): float(share[row]) for row in np.flatnonzero(share < threshold).tolist()}
        return sorted(
            (
                name
                for name in shares
                if (group := sizes.of(name)) is not None
                and sizes.is_above_min(group)
                and name in self._cluster.nodes
                and not self._cluster.nodes[name].spec.unschedulable
                and name not in self._cluster.down
                and not any(map(store.is_assumed, store.pods_on(name)))
            ),
            key=lambda name: (name not in self._unneeded, shares[name], name),
        )

    def _shrink(self) -> None:
        """Remove the nodes that have been unneeded for `scaleDownUnneededTime`."""
        ripe_since = self._sim.now - seconds(self._settings.scale_down_unneeded_time)
        n_gone = len(self._draining)
        for name, since in list(self._unneeded.items()):
            group = self._supply.sizes.of(name)
            if since > ripe_since or group is None or not self._supply.sizes.is_above_min(group):
                continue
            pods = [record for record in self._cluster.pods_on(name) if not record.is_daemon]
            if n_gone >= self._settings.max_scale_down_parallelism:
                break
            if pods and len(self._draining) >= self._settings.max_drain_parallelism:
                continue
            n_gone += 1
            del self._unneeded[name]
            self._supply.sizes.remove(name)
            self._cluster.tell("scaledDown", group=group.name, node=name)
            self._sim.measures.n_scaled_down += 1
            if not pods:
                incidents.remove(self._cluster, name)
                continue
            longest = max(grace_of(record.pod) for record in pods)
            self._draining.add(name)
            incidents.drain(self._cluster, name)
            self._sim.at(self._sim.now + longest, lambda name=name: self._drained(name))  # type: ignore[misc]

    def _drained(self, name: str) -> None:
        self._draining.discard(name)
        if name in self._cluster.nodes:
            incidents.remove(self._cluster, name)
