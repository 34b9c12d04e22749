"""An inbox log or a snapshot as a scenario: what it says happens at its times, and the scheduler decides anew.

In: the entries of a log. Out: a `Simulation` that has them on its agenda. `replay` shows what the engine would have answered to
the same watch events; here the pods that it places stay where it puts them and run on, until the log says that they are gone.
What the log's own scheduler did (bindings, statuses) is left out. Up to the end of the log, pods come because the log says
so; from then on, controllers replace what is evicted or lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kubesched.kube.api import Node, Pod, is_finished
from kubesched.scheduler import config as configs
from kubesched.scheduler.engine import EngineOptions
from kubesched.scheduler.framework import Registry
from kubesched.tools.simulation.cluster.simulated_cluster import REMOVED
from kubesched.tools.simulation.pod_record import RUNNING
from kubesched.tools.simulation.scenario import DECISION_SECONDS
from kubesched.tools.simulation.simulation import DEFAULT_SAMPLE_SECONDS, Simulation
from kubesched.tools.snapshots.captured import after_what_it_needs


def simulation_of_log(
    entries: Sequence[Any],
    *,
    seed: int | None = None,
    configuration: configs.Configuration | None = None,
    gates: configs.Gates | None = None,
    registry: Registry | None = None,
    options: EngineOptions | None = None,
    sample_seconds: float = DEFAULT_SAMPLE_SECONDS,
    journal: Any = None,
) -> Simulation:
    """Return a simulation of what a log tells; `entries` as `replay.entries_of` returns them."""
    began = entries[0].at
    sim = Simulation(
        config=configuration,
        seed=(entries[0].seed or 0) if seed is None else seed,
        gates=gates,
        registry=registry,
        options=options,
        decision_seconds=DECISION_SECONDS,
        sample_seconds=sample_seconds,
        epoch=began,
        journal=journal,
    )
    changes = [(entry, entry.decoded()) for entry in entries if entry.kind]
    changes.sort(key=lambda each: (each[0].at, after_what_it_needs(each[1])))
    sim.world.replaces = False
    player = _LogPlayer(sim)
    for entry, obj in changes:
        sim.at(max(entry.at - began, 0.0), partial(player.tell, entry.key, obj))
    sim.at(max(changes[-1][0].at - began, 0.0) if changes else 0.0, player.end)
    return sim


class _LogPlayer:
    """Makes what the log says true."""

    def __init__(self, sim: Simulation) -> None:
        self._cluster = sim.world
        self._ours = frozenset(sim.engine.profiles)

    def end(self) -> None:
        """The log has no more to say."""
        self._cluster.replaces = True

    def tell(self, key: tuple[str, str, str], obj: Any | None) -> None:
        """Let one entry happen."""
        if obj is None:
            self._gone(*key)
        elif isinstance(obj, Node):
            is_new = obj.metadata.name not in self._cluster.nodes
            self._cluster.put_node(obj)
            if is_new and self._cluster.now:
                self._cluster.tell("nodeAdded", node=obj.metadata.name)
        elif isinstance(obj, Pod):
            self._pod(obj)
        else:
            self._cluster.put(obj)

    def _gone(self, kind: str, namespace: str, name: str) -> None:
        if kind == "Node":
            if name in self._cluster.nodes:
                self._cluster.tell("nodeRemoved", node=name)
                self._cluster.drop_node(name)
        elif kind == "Pod":
            record = self._cluster.record(f"{namespace}/{name}")
            if record is not None:
                self._cluster.remove(record, REMOVED)
        elif (known := self._cluster.objects.get((kind, namespace, name))) is not None:
            self._cluster.drop(known)

    def _pod(self, pod: Pod) -> None:
        record, is_over = self._cluster.records.get(pod.metadata.uid), is_finished(pod)
        if record is None:
            namesake = self._cluster.record(pod.key)
            if namesake is not None:
                self._cluster.remove(namesake, REMOVED)
            if not is_over:
                self._cluster.arrive(pod)
        elif is_over and record.state == RUNNING:
            self._cluster.finish(record)
        elif is_over:
            self._cluster.remove(record, REMOVED)
        elif record.is_alive:
            self._cluster.change(record, pod)
            record.is_going = record.is_going or pod.metadata.deletion_timestamp is not None
            if pod.spec.node_name and not record.node and pod.spec.scheduler_name not in self._ours:
                self._cluster.place(record, pod.spec.node_name)  # somebody else's pod, and somebody else's decision
