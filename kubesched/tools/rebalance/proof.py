"""The proof of a plan of moves: made one after the other in a simulation, each replacement lands where the plan says.

In: a captured cluster, a plan, and how to build an engine. Out: how many of the moves, from the first on, came out as
planned, and what was different about the next one. In the simulation a pod is evicted as the API evicts it, its controller
makes another one, and the real engine with its queue decides: nothing of how the plan was found is used. Among equal nodes
the first by name is taken, as the plan does; on a cluster it may be another of them, and what comes after is planned anew.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.kube.api import Pod, is_finished
from kubesched.scheduler.engine import Engine, FirstByName, Ports
from kubesched.tools.rebalance.goals import MovePlan
from kubesched.tools.simulation.cluster import incidents
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured, after_what_it_needs

EVICTED = "drained"
_SECONDS = 120.0
"""How long a move may take: the pod's grace period, and its replacement's way through the queue."""


def prove(cluster: Captured, plan: MovePlan, build: Callable[[Captured, Ports], Engine]) -> tuple[int, str]:
    """Return how many moves come out as planned, and what surprised at the next one (nothing, if all do)."""
    empty = Captured(cluster.at, [], cluster.seed)
    with Simulation(build=lambda ports: build(empty, ports), seed=cluster.seed, epoch=cluster.at, ties=FirstByName()) as sim:
        for obj in sorted(cluster.objects, key=after_what_it_needs):
            if not (isinstance(obj, Pod) and (is_finished(obj) or not obj.spec.node_name)):  # who waits is not in the way
                sim.add(obj)
        for name in plan.closed:
            incidents.cordon(sim.world, name)
        sim.run(sim.now + 1.0)
        for n, move in enumerate(plan.moves):
            record, known = sim.world.record(move.key), set(sim.world.records)
            if record is None or record.node != move.source:
                return n, f"{move.key} is not on {move.source}"
            sim.world.evict(record, EVICTED)
            sim.run(sim.now + _SECONDS)
            new = [each for uid, each in sim.world.records.items() if uid not in known]
            if len(new) != 1 or new[0].node not in move.targets:
                where = new[0].node or f"nowhere: {new[0].note}" if new else "nowhere: nobody replaced it"
                return n, f"the replacement of {move.key} lands on {where}"
        if plan.waiting is not None:
            for name in plan.closed:
                incidents.cordon(sim.world, name, is_on=False)
            sim.add(plan.waiting)
            sim.run(sim.now + _SECONDS)
            where = sim.pods[plan.waiting.key].node
            if where != plan.waiting_node:
                return len(plan.moves), f"{plan.waiting.key} lands on {where or 'no node'}, not on {plan.waiting_node}"
    return len(plan.moves), ""
