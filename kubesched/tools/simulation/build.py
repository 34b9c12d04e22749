"""A simulation built from a scenario: its nodes, its pods as they come, its events.

In: a scenario, and how pods are decided. Out: a `Simulation` that has everything on its agenda and is ready to run. Pods are
admitted as an API server admits them (priority, tolerations, defaults), once for all pods of a workload. All chance comes from
one seeded source: each workload has a source of its own drawn from it, so that they do not disturb each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from random import Random

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.api import Node, codec
from kubesched.scheduler import config as configs
from kubesched.scheduler.engine import EngineOptions, FirstByName, FirstShuffled, Ties, UniformTies
from kubesched.scheduler.framework import Registry
from kubesched.solver.node_groups import DaemonSetPods, NodeGroup
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.cluster_files import read_cluster_file
from kubesched.tools.plan.manifests import SILENT, WORKLOADS, Manifest, read_manifests
from kubesched.tools.simulation.clock import EPOCH
from kubesched.tools.simulation.cluster import incidents
from kubesched.tools.simulation.cluster.autoscaler import ClusterAutoscaler
from kubesched.tools.simulation.cluster.node_supply import NodeSupply
from kubesched.tools.simulation.cluster.quotas import Quotas
from kubesched.tools.simulation.cluster.simulated_cluster import LogWriter, SimulatedCluster
from kubesched.tools.simulation.cluster.workload_runner import WorkloadRunner
from kubesched.tools.simulation.scenario import Choice, Event, Scenario, seconds
from kubesched.tools.simulation.simulation import DEFAULT_SAMPLE_SECONDS, Simulation
from kubesched.tools.simulation.traces import read_nodes
from kubesched.tools.snapshots.captured import Captured, after_what_it_needs

_SAMPLES = 500
_TIES: dict[str, Callable[[int], Ties | None]] = {
    "chance": lambda seed: None,
    "uniform": UniformTies,
    "shuffled": FirstShuffled,
    "name": lambda seed: FirstByName(),
}
_ACTS: dict[str, Callable[[SimulatedCluster, str], None]] = {
    "recover": incidents.recover,
    "remove": incidents.remove,
    "drain": incidents.drain,
    "cordon": incidents.cordon,
    "uncordon": partial(incidents.cordon, is_on=False),
}


def build_simulation(
    scenario: Scenario,
    *,
    configuration: configs.Configuration | None = None,
    gates: configs.Gates | None = None,
    registry: Registry | None = None,
    options: EngineOptions | None = None,
    journal: LogWriter | None = None,
) -> Simulation:
    """Return a simulation of a scenario that has not begun; `run` it to the end of the scenario's duration."""
    there, sample, duration = _captured(scenario), scenario.sample_every, seconds(scenario.duration)
    every = seconds(sample) if sample is not None else max(duration / _SAMPLES, 1.0) if duration else DEFAULT_SAMPLE_SECONDS
    sim = Simulation(
        config=configuration,
        seed=scenario.seed,
        gates=gates,
        registry=registry,
        options=options,
        decision_seconds=seconds(scenario.decision_time),
        binding_seconds=seconds(scenario.binding_latency),
        sample_seconds=every,
        epoch=there.at if there is not None else EPOCH,
        journal=journal,
        ties=_TIES[scenario.ties](scenario.seed),
    )
    for obj in sorted(there.objects, key=after_what_it_needs) if there is not None else ():
        sim.add(obj)
    _Builder(sim, scenario).set_up()
    return sim


class _Builder:
    """Knows the scenario while it is played."""

    def __init__(self, sim: Simulation, scenario: Scenario) -> None:
        self._sim = sim
        self._scenario = scenario
        self._folder = Path(scenario.folder)
        self._chance = Random(scenario.seed)
        self._admission = Admission(sim.world.objects.values())
        self._runners: dict[str, WorkloadRunner] = {}
        self._daemons: list[WorkloadRunner] = []
        there = [record.pod for record in sim.world.records.values() if record.is_daemon]
        self._daemons_there = DaemonSetPods(there)
        self._supply = NodeSupply(sim, scenario.cluster.nodes, self._follow)

    def set_up(self) -> None:
        """Put everything on the agenda."""
        if self._scenario.quotas:
            quotas = self._sim.world.quotas = Quotas(self._scenario.quotas)
            for record in self._sim.world.records.values():
                quotas.count(record.pod, 1)
        for i, group in enumerate(self._scenario.cluster.nodes):
            self._add_nodes(group, f"cluster.nodes[{i}]")
        for listed in self._scenario.cluster.node_lists:
            for node in read_nodes(self._folder / listed.file, listed.format):
                self._sim.add(node)
        for manifest in self._manifests(self._scenario.cluster.manifests):
            self._take(manifest)
        for i, workload in enumerate(self._scenario.workloads):
            chance, where = Random(self._chance.getrandbits(64)), f"workloads[{i}]"
            runner = WorkloadRunner(workload, self._sim, self._admission, chance, self._folder, where)
            self._runners[workload.name] = runner
            for manifest in self._manifests((workload.manifest,) if workload.manifest else ()):
                if manifest.kind in WORKLOADS:
                    runner.learn(self._admission.take(manifest))
                else:
                    self._take(manifest)
            if runner.is_endless and self._scenario.duration is None:
                raise ConfigError(f"workloads[{i}].arrivals", "pods would come forever: give an end, a count, or a duration")
            runner.begin()
        self._check_events()
        for event in self._scenario.events:
            self._sim.at(seconds(event.at), partial(self._happen, event))
        if self._scenario.autoscaler is not None:
            if self._scenario.duration is None:
                raise ConfigError("autoscaler", "it would scan forever: give a duration")
            daemons = DaemonSetPods([*self._daemons_there.pods, *(runner.daemon_pod() for runner in self._daemons)])
            ClusterAutoscaler(self._sim, self._supply, self._scenario.autoscaler, daemons).begin()

    def _check_events(self) -> None:
        """Refuse an event on nodes that there never are."""
        groups = [*self._scenario.cluster.nodes, *(event.add for event in self._scenario.events if event.add is not None)]
        n_ever = Counter[str]()
        for group in groups:
            n_ever[group.name] += group.count
        names = {*self._sim.world.nodes, *(f"{name}-{i}" for name, count in n_ever.items() for i in range(count))}
        for i, event in enumerate(self._scenario.events):
            choice = getattr(event, event.what)
            if isinstance(choice, Choice) and not any(fnmatchcase(name, choice.nodes) for name in names):
                raise ConfigError(f"events[{i}].{event.what}.nodes", f"there is never a node {choice.nodes}")

    def _take(self, manifest: Manifest) -> None:
        """Take in an object of a manifest that belongs to the cluster; its workloads come at the beginning."""
        raw = self._admission.take(manifest)
        if manifest.kind in WORKLOADS:
            runner = WorkloadRunner.of_manifest(raw, self._sim, self._admission)
            self._runners.setdefault(runner.workload.name, runner)
            if manifest.kind == "DaemonSet":
                self._daemons.append(runner)
            runner.begin()
        elif manifest.type is not None:
            self._sim.add(codec.convert(raw, manifest.type))
        elif manifest.kind not in SILENT:
            raise SchedulerError(f"{manifest.where}: {manifest.kind} is not a kind that is simulated")

    def _add_nodes(self, group: NodeGroup, where: str = "") -> None:
        """Let a group's nodes come, after their startup time; a group of a name that is there grows."""
        names = (*self._sim.world.nodes, *self._supply.coming)
        if where and group.count and any(name.rpartition("-")[0] == group.name for name in names):
            raise ConfigError(f"{where}.name", f"there are nodes named {group.name} already")
        self._supply.add(group, group.count, at_once=bool(where))

    def _follow(self, node: Node) -> None:
        """Let what runs on every node come to one that came later."""
        for pod in self._daemons_there.on(node):
            self._sim.add(pod)
        for runner in self._daemons:
            runner.follow(node)

    def _happen(self, event: Event) -> None:
        """Let an event of the scenario happen."""
        cluster = self._sim.world
        if event.add is not None:
            self._add_nodes(event.add)
        elif event.scale is not None:
            cluster.tell("scaled", workload=event.scale.workload, replicas=event.scale.replicas)
            self._runners[event.scale.workload].scale(event.scale.replicas)
        elif event.rollout is not None:
            self._runners[event.rollout.workload].roll_out(event.rollout)
        elif event.fail is not None:
            for name in self._chosen(event.fail):
                incidents.fail(cluster, name)
                self._sim.at(
                    self._sim.now + seconds(event.fail.lost_after),
                    partial(incidents.lose_pods, cluster, name, cluster.down[name]),
                )
        elif event.resize is not None:
            for name in self._chosen(event.resize):
                incidents.resize(cluster, name, event.resize.capacity)
        else:
            for name in self._chosen(getattr(event, event.what)):
                _ACTS[event.what](cluster, name)

    def _chosen(self, choice: Choice) -> list[str]:
        found = sorted(name for name in self._sim.world.nodes if fnmatchcase(name, choice.nodes))
        return found if choice.count is None else self._chance.sample(found, min(choice.count, len(found)))

    def _manifests(self, files: tuple[str, ...]) -> list[Manifest]:
        return read_manifests([self._folder / file for file in files])


def _captured(scenario: Scenario) -> Captured | None:
    if not scenario.cluster.snapshot:
        return None
    named = Path(scenario.cluster.snapshot)
    try:
        return read_cluster_file(named if str(named) == "-" else Path(scenario.folder) / named)
    except SchedulerError as error:
        raise ConfigError("cluster.snapshot", str(error)) from error
