"""A cluster autoscaler in virtual time: nodes come when pods wait for them, and go when they have long not been needed.

In: a simulation, the groups of its nodes, and cluster-autoscaler's settings by their own names. Out: nodes ordered, which come
after their group's `startup`, and nodes drained and removed. A scan looks at the cluster as cluster-autoscaler does: pods that
the scheduler has refused are tried on nodes that are coming, then on new ones (node_groups/estimate.py); one group grows in a
scan, and nothing shrinks in it. A node is unneeded while its requests are below the threshold and all its pods could move
elsewhere; who may be moved is what `rebalance` says. Empty nodes go together, those with pods one after the other.
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
"""For so long a node that could not be cleared is not looked at again, as in cluster-autoscaler."""
_MOST_CANDIDATES = 30
"""Of nodes with pods, so many are looked at in a scan, as in cluster-autoscaler."""


class ClusterAutoscaler:
    """Scans again and again."""

    def __init__(self, sim: Simulation, supply: NodeSupply, settings: Autoscaler, daemons: DaemonSetPods) -> None:
        self._sim = sim
        self._world = sim.world
        self._supply = supply
        self._settings = settings
        self._daemons = daemons
        self._estimator = NodeEstimator(sim.engine, supply.sizes, daemons)
        self._last_added = -float("inf")
        self._unneeded: dict[str, float] = {}
        """Since when."""
        self._not_before: dict[str, float] = {}
        self._draining: set[str] = set()
        self._seen_by: tuple[int, int, int] | None = None
        self._seen_when_growing: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """Scan from now on."""
        self._sim.at(self._sim.now + seconds(self._settings.scan_interval), self._scan)

    def _scan(self) -> None:
        self._sim.engine.take_in()  # what happened in this moment is seen
        if not self._grow() and self._settings.scale_down:
            self._look_for_unneeded()
            if self._sim.now >= self._last_added + seconds(self._settings.scale_down_delay_after_add):
                self._shrink()
        self.begin()

    def _now_there(self) -> tuple[int, int, int]:
        """Return numbers that stay the same as long as nothing changes."""
        return self._world.version, len(self._supply.coming), len(self._world.nodes)

    # Up

    def _grow(self) -> bool:
        """Order nodes for pods that wait; return whether any were."""
        now, delay = self._sim.now, seconds(self._settings.new_pod_scale_up_delay)
        seen = self._now_there()
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
        self._world.tell("scaledUp", group=chosen[0].group.name, nodes=len(chosen))
        self._sim.measures.n_scaled_up += len(chosen)
        for each in chosen:
            self._supply.order(each.group, each.node)
        self._last_added = now
        return True

    # Down

    def _look_for_unneeded(self) -> None:
        """Find the nodes whose pods could all be elsewhere, each with those before it gone."""
        seen, now = self._now_there(), self._sim.now
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
        """Return the nodes of groups that may shrink whose requests are below the threshold: first those found before, then
        the emptiest."""
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
                and name in self._world.nodes
                and not self._world.nodes[name].spec.unschedulable
                and name not in self._world.down
                and not any(map(store.is_assumed, store.pods_on(name)))
            ),
            key=lambda name: (name not in self._unneeded, shares[name], name),
        )

    def _shrink(self) -> None:
        """Remove nodes that have been unneeded for long enough."""
        ripe_since = self._sim.now - seconds(self._settings.scale_down_unneeded_time)
        n_gone = len(self._draining)
        for name, since in list(self._unneeded.items()):
            group = self._supply.sizes.of(name)
            if since > ripe_since or group is None or not self._supply.sizes.is_above_min(group):
                continue
            pods = [record for record in self._world.pods_on(name) if not record.is_daemon]
            if n_gone >= self._settings.max_scale_down_parallelism:
                break
            if pods and len(self._draining) >= self._settings.max_drain_parallelism:
                continue
            n_gone += 1
            del self._unneeded[name]
            self._supply.sizes.remove(name)
            self._world.tell("scaledDown", group=group.name, node=name)
            self._sim.measures.n_scaled_down += 1
            if not pods:
                incidents.remove(self._world, name)
                continue
            longest = max(grace_of(record.pod) for record in pods)
            self._draining.add(name)
            incidents.drain(self._world, name)
            self._sim.at(self._sim.now + longest, lambda name=name: self._drained(name))  # type: ignore[misc]

    def _drained(self, name: str) -> None:
        self._draining.discard(name)
        if name in self._world.nodes:
            incidents.remove(self._world, name)
