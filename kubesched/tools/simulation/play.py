"""A scenario, an inbox log or a snapshot that is simulated: read once, run under one configuration or under two."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kubesched.kube.values import content_of, shown
from kubesched.tools.plan.cluster_files import holds_cluster, inbox_log_in
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.cluster.simulated_cluster import LogWriter
from kubesched.tools.simulation.from_log import simulation_of_log
from kubesched.tools.simulation.replay import entries_of
from kubesched.tools.simulation.scenario import Scenario, read_scenario, seconds
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.sources import Policy, named, say_on_stderr


def collect_seldom() -> None:
    """Let the collector look less often: a simulation makes hundreds of thousands of objects that stay."""
    gc.set_threshold(50_000, 20, 100)


@dataclass(frozen=True, slots=True)
class Play:
    """A scenario or a log that was read, to be simulated once or more often."""

    scenario: Scenario | None
    entries: list[dict[str, Any]]
    seed: int | None
    until: float | None

    @classmethod
    def read(cls, file: Path, until: float | None, seed: int | None) -> Play:
        """Read a file; a duration and a seed that are given win over what it says."""
        with named(file):
            content = content_of(file, may_be_cut_off=True)
            if holds_cluster(content.data):
                return cls(None, entries_of(inbox_log_in(shown(file), content, say_on_stderr)), seed, until)
        scenario = read_scenario(file, content.data)
        if until is not None:
            scenario = msgspec.structs.replace(scenario, duration=until)
        elif scenario.duration is not None:
            until = seconds(scenario.duration)
        return cls(scenario if seed is None else msgspec.structs.replace(scenario, seed=seed), [], seed, until)

    def simulation(self, policy: Policy, journal: LogWriter | None = None) -> Simulation:
        """Return a simulation that has not begun."""
        if self.scenario is None:
            return simulation_of_log(
                self.entries,
                seed=self.seed,
                configuration=policy.configuration,
                gates=policy.gates,
                registry=policy.registry,
                journal=journal,
            )
        return build_simulation(
            self.scenario, configuration=policy.configuration, gates=policy.gates, registry=policy.registry, journal=journal
        )
