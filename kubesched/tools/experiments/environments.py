"""Simulations as environments of Gymnasium, for agents that learn to schedule.

    import gymnasium, kubesched.tools.experiments.environments
    env = gymnasium.make("kubesched/Placement-v0", scenario="batch.yaml")

`kubesched/Placement-v0` asks for the node of every pod that has a choice; `kubesched/Weights-v0` asks every so often for
the weights of the profile's score plugins. In: a scenario, and a configuration whose filters hold. Out: observations, and
rewards in percent of what the cluster offers of one resource. The real engine decides everything else, in virtual time; the
same seed and actions give the same episode. Nodes that come later than at the beginning cannot be chosen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsFloat

import msgspec
import numpy as np
import numpy.typing as npt

from kubesched.contrib.gpu_table import COUNT, WHOLE, request_of, table_of
from kubesched.errors import ConfigError, SchedulerError
from kubesched.scheduler.cluster import CPU, MEMORY, Ints, PodView, Snapshot
from kubesched.scheduler.config import Configuration, Gates
from kubesched.scheduler.engine import PoppedPod, Question, filter_nodes, registry_with
from kubesched.scheduler.framework import CycleState, EquivalenceCache, LevelRows, find_plugins
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.configuration import read_configuration
from kubesched.tools.simulation.scenario import read_scenario, scenario_from, seconds
from kubesched.tools.simulation.simulation import Simulation

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise SchedulerError("these environments need the extra: pip install 'kubesched[gym]'") from error

Floats = npt.NDArray[np.float32]
RESOURCES = ("cpu", "memory", "gpu")
"""What is seen of nodes and pods; `gpu` is what pods ask for of GPUs by annotation (contrib/gpu_table)."""
Document = str | os.PathLike[str] | Mapping[str, Any]


class _Environment(gymnasium.Env[Any, Any]):
    """What both have in common: a simulation that begins anew with every episode."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        scenario: Document,
        configuration: Document | None = None,
        plugins: Sequence[str] = (),
        reward: str = "cpu",
    ) -> None:
        if reward not in RESOURCES:
            raise ConfigError("reward", f"{reward!r} is none of {', '.join(RESOURCES)}")
        self._scenario = scenario_from(scenario, "scenario") if isinstance(scenario, Mapping) else read_scenario(Path(scenario))
        self._registry = registry_with([cls for text in plugins for cls in find_plugins(text)])
        given = msgspec.json.encode(configuration).decode() if isinstance(configuration, Mapping) else configuration
        self._configuration = self._adapted(read_configuration(given, Gates.defaults(), self._registry))
        self._rewarded = RESOURCES.index(reward)
        self._sim: Simulation | None = None
        with self._built(0) as sim:
            sim.engine.take_in()
            self._names = sorted(sim.nodes)
        if not self._names:
            raise ConfigError("scenario: cluster", "expected nodes at the beginning")
        self._set_up()

    def _set_up(self) -> None:
        """Say what is seen and done."""

    def _adapted(self, configuration: Configuration) -> Configuration:
        return configuration

    def _built(self, seed: int) -> Simulation:
        scenario = msgspec.structs.replace(self._scenario, seed=seed)
        return build_simulation(scenario, configuration=self._configuration, registry=self._registry)

    def _begin(self, seed: int | None) -> Simulation:
        super().reset(seed=seed)
        self.close()
        self._sim = sim = self._built(seed if seed is not None else int(self.np_random.integers(1 << 31)))
        sim.engine.take_in()
        return sim

    @property
    def sim(self) -> Simulation:
        """Return the simulation of this episode."""
        if self._sim is None:
            raise gymnasium.error.ResetNeeded("reset comes before anything else")
        return self._sim

    @property
    def _until(self) -> float | None:
        return None if self._scenario.duration is None else seconds(self._scenario.duration)

    def close(self) -> None:
        """Give back what the simulation holds."""
        if self._sim is not None:
            self._sim.close()
            self._sim = None


class Placement(_Environment):
    """Choose the node of every pod that has a choice.

    Observation: `nodes`, a row a node in the order of their names: free and offered cpu, memory and GPUs, each as a share
    of the largest node's, and the largest free share of one GPU; `pod`, what it asks for in the same units. Action: a node.
    `info["action_mask"]` has 1 where the pod fits; another action means the next node that fits, going round. Reward: the
    percentage of the cluster's cpu (memory, gpu) that the pod takes up, so that the return of an episode whose pods stay is
    what is in use at its end. Pods that fit nowhere are refused as ever, and not asked about.
    """

    def _set_up(self) -> None:
        n = len(self._names)
        self.action_space = spaces.Discrete(n)
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(0.0, 1.0, (n, 2 * len(RESOURCES) + 1), np.float32),
                "pod": spaces.Box(0.0, 1.0, (len(RESOURCES),), np.float32),
            }
        )
        self._tried: PoppedPod | None = None
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._visited: list[str] | None = None
        self._mask: npt.NDArray[np.int8] = np.zeros(n, dtype=np.int8)

    def _adapted(self, configuration: Configuration) -> Configuration:
        """Nobody scores: among equal nodes the agent chooses."""
        return replace(
            configuration,
            profiles=tuple(
                replace(profile, points={**profile.points, "score": (), "pre_score": ()}) for profile in configuration.profiles
            ),
        )

    def _built(self, seed: int) -> Simulation:
        self._agent = AgentTies()
        sim = super()._built(seed)
        rules = sim.engine.attempts.rules
        sim.engine.attempts.rules = replace(rules, ties=self._agent)
        return sim

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Begin an episode."""
        self._begin(seed)
        self._visited = None
        self._advance()
        return self._seen()

    def step(self, action: Any) -> tuple[dict[str, Floats], SupportsFloat, bool, bool, dict[str, Any]]:
        """Put the pod on a node, and run until another one has a choice."""
        sim, reward = self.sim, 0.0
        if self._tried is None:
            raise gymnasium.error.ResetNeeded("the episode is over")
        chosen = int(action)
        if not self._mask[chosen]:
            fits = np.flatnonzero(self._mask)
            chosen = int(fits[np.searchsorted(fits, chosen) % len(fits)])
        self._agent.row = int(self._rows[chosen])
        decided = sim.decide(self._tried)
        if decided is not None and decided.node:
            reward = 100.0 * float(self._asked[self._rewarded]) / self._total[self._rewarded]
        self._agent.row = -1
        self._advance()
        seen, info = self._seen()
        return seen, reward, self._tried is None, False, info

    def _advance(self) -> None:
        """Run until a pod has a choice; without one the episode is over."""
        sim = self.sim
        while (tried := sim.next_pod(self._until)) is not None:
            if tried.gang is None and self._is_choice(tried):
                self._tried = tried
                return
            sim.decide(tried)
        self._tried = None
        self._mask[:] = 0

    def _is_choice(self, tried: PoppedPod) -> bool:
        engine, pod = self.sim.engine, tried.queued.view
        nodes = engine.store.snapshot()
        state = CycleState()
        before = tried.profile.pre_filter(pod, nodes, state)
        feasible = filter_nodes(Question(pod, nodes, tried.profile, engine.attempts.rules), state, before).feasible
        if feasible is None or not feasible.any():
            return False
        visited = nodes.order.names
        if visited is not self._visited:
            self._rows = np.array([nodes.row(name) for name in self._names], dtype=np.int64)
            self._visited = visited
        self._mask = (feasible[self._rows] & (self._rows >= 0)).astype(np.int8)
        asked, gpus = dict(pod.requests), request_of(pod.pod)
        self._asked = np.array((asked.get(CPU, 0), asked.get(MEMORY, 0), gpus.count * gpus.milli), dtype=np.float64)
        return bool(self._mask.any())

    def _seen(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        nodes = self.sim.engine.store.snapshot()
        free, offered, piece = usage_of(nodes)
        info: dict[str, Any] = {"action_mask": self._mask.copy()}
        if self._tried is None:
            asked, info["figures"] = np.zeros(len(RESOURCES)), self.sim.metrics()
        else:
            asked, self._total = self._asked, np.maximum(offered.sum(axis=1), 1)
        largest = np.maximum(offered.max(axis=1, initial=0), 1)
        seen = np.zeros((nodes.n + 1, 2 * len(RESOURCES) + 1), dtype=np.float32)  # the last row is for a node that is gone
        for i in range(len(RESOURCES)):
            seen[:-1, 2 * i] = free[i] / largest[i]
            seen[:-1, 2 * i + 1] = offered[i] / largest[i]
        seen[:-1, -1] = piece / WHOLE
        rows = self._rows if len(self._rows) else np.array([nodes.row(name) for name in self._names], dtype=np.int64)
        return {"nodes": seen[rows].clip(0.0, 1.0), "pod": (asked / largest).astype(np.float32).clip(0.0, 1.0)}, info


class Weights(_Environment):
    """Choose the weights of the score plugins, every `period` seconds.

    Observation: the shares of the cluster's cpu, memory and GPUs in use, of pods that wait among those that are there, of
    nodes in use, and fragmentation. Action: for every score plugin of the first profile, in its order (`info["plugins"]`),
    a number from 0 to 1, which is a weight from 0 to 100. Reward: the percentage of the cluster's cpu (memory, gpu) in use
    after the period, weighted with its length, so that the return is about the mean over the episode. The scenario needs a
    duration.
    """

    def __init__(
        self,
        scenario: Document,
        configuration: Document | None = None,
        plugins: Sequence[str] = (),
        reward: str = "cpu",
        period: float = 300.0,
    ) -> None:
        super().__init__(scenario, configuration, plugins, reward)
        if self._until is None:
            raise ConfigError("scenario: duration", "expected one: it is when an episode ends")
        if not period > 0:
            raise ConfigError("period", f"expected more than 0 seconds, found {period}")
        self._period = period
        self._plugins = [entry.name for entry in self._configuration.profiles[0].points.get("score", ())]
        self.action_space = spaces.Box(0.0, 1.0, (len(self._plugins),), np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (len(RESOURCES) + 3,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode."""
        self._begin(seed)
        return self._seen()[0], {"plugins": list(self._plugins)}

    def step(self, action: Any) -> tuple[Floats, SupportsFloat, bool, bool, dict[str, Any]]:
        """Set the weights, and run for a period."""
        sim, until = self.sim, self._until
        assert until is not None
        if sim.now >= until:
            raise gymnasium.error.ResetNeeded("the episode is over")
        weights = dict(
            zip(self._plugins, np.rint(100 * np.asarray(action, dtype=np.float64)).astype(int).tolist(), strict=True)
        )
        engine, name = sim.engine, self._configuration.profiles[0].scheduler_name
        profile = engine.profiles[name]
        profile.scorers = tuple((plugin, weights[plugin.name]) for plugin, _ in profile.scorers)
        engine.attempts.caches[name] = EquivalenceCache(profile)  # what is remembered was added up with the old weights
        started = sim.now
        figures = sim.run(min(started + self._period, until))
        seen, in_use = self._seen()
        reward = in_use * (sim.now - started) / until
        is_over = sim.now >= until - 1e-6
        return seen, reward, is_over, False, {"plugins": list(self._plugins), **({"figures": figures} if is_over else {})}

    def _seen(self) -> tuple[Floats, float]:
        figures, nodes = self.sim.metrics(), self.sim.engine.store.snapshot()
        free, offered, _ = usage_of(nodes)
        shares = (offered - free).sum(axis=1) / np.maximum(offered.sum(axis=1), 1)
        pods, packing = figures["pods"], figures["packing"]
        there = max(pods["pending"] + pods["running"], 1)
        used = packing["nodesUsed"]["end"] / max(nodes.n, 1)
        seen = np.array([*shares, pods["pending"] / there, used, packing["fragmentation"]["end"]], dtype=np.float32)
        return seen.clip(0.0, 1.0), 100.0 * float(shares[self._rewarded])


class AgentTies:
    """Takes the node that the agent named."""

    __slots__ = ("row",)
    chooser = "agent"

    def __init__(self) -> None:
        self.row = -1

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the agent's row where it is one of the best, as every feasible one is; else the first of these."""
        best = int(totals.argmax())
        return self.row if 0 <= self.row < nodes.n and nodes.rows is None and totals[self.row] == totals[best] else best


def usage_of(nodes: Snapshot) -> tuple[Ints, Ints, Ints]:
    """Return what is free and what is offered of every resource, a column a node, and the largest free piece of one GPU."""
    table = table_of(nodes.objects, nodes)
    gpus = nodes.allocatable(nodes.resource(COUNT)) * WHOLE
    free = np.stack([nodes.free(CPU), nodes.free(MEMORY), table.left.sum(axis=1)])
    offered = np.stack([nodes.allocatable(CPU), nodes.allocatable(MEMORY), gpus])
    return free, offered, table.left.max(axis=1, initial=0)


def register() -> None:
    """Make the environments known by their names; Gymnasium calls this itself where the package is installed."""
    for name, entry in (("kubesched/Placement-v0", Placement), ("kubesched/Weights-v0", Weights)):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{__name__}:{entry.__name__}")


register()
