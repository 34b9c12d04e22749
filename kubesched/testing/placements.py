"""A pytest fixture that plans manifests, so that a team can test where its pods would be placed.

    # conftest.py
    pytest_plugins = ["kubesched.testing.placements"]

    # test_deploy.py
    def test_web_is_in_every_zone(placements):
        cluster = placements(snapshot="cluster.jsonl.gz", config="scheduler.yaml")
        plan = cluster.plan("deploy/*.yaml")
        assert not plan.pending and not plan.victims
        assert plan.zones_of("Deployment/web").keys() == {"zone-a", "zone-b", "zone-c"}

It runs the code of the command `plan`. Paths are relative to the folder of pytest's configuration. It is not a pytest entry
point, because then every pytest run in an environment with this package would import NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubesched.errors import SchedulerError
from kubesched.scheduler import config as configuration
from kubesched.scheduler.engine import default_configuration, registry_with
from kubesched.scheduler.framework import Plugin, catalogue
from kubesched.tools.plan.capacity import Capacity, measure
from kubesched.tools.plan.cluster_files import read_cluster_file
from kubesched.tools.plan.manifests import Manifest, read_manifests
from kubesched.tools.plan.plan import Plan
from kubesched.tools.plan.planning import make_plan
from kubesched.tools.simulation.clock import EPOCH
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import Policy


@dataclass(frozen=True, slots=True)
class Placements:
    """A cluster and a scheduler configuration."""

    cluster: Captured
    policy: Policy
    folder: Path

    def plan(self, *files: str | Path, namespace: str = "default", only: bool = False) -> Plan:
        """Return the plan for manifests in files, folders or patterns (`deploy/*.yaml`)."""
        return make_plan(self.cluster, self._read(files), self.policy.engine, namespace=namespace, only=only)

    def capacity(
        self,
        *files: str | Path,
        workload: str = "",
        namespace: str = "default",
        limit: int = 100_000,
        without: Iterable[str] = (),
        drain: Iterable[str] = (),
    ) -> Capacity:
        """Return how many more of a workload in files fit."""
        return measure(
            self.cluster,
            self._read(files),
            self.policy.engine,
            workload=workload,
            namespace=namespace,
            limit=limit,
            without=without,
            drain=drain,
        )

    def _read(self, files: Sequence[str | Path]) -> list[Manifest]:
        found: list[Path] = []
        for given in files:
            path = self.folder / given
            matching = [path] if path.exists() else sorted(self.folder.glob(str(given)))
            if not matching:
                raise SchedulerError(f"{given}: no such file in {self.folder}")
            found += matching
        return read_manifests(found)


@pytest.fixture
def placements(request: pytest.FixtureRequest) -> Callable[..., Placements]:
    """Return a function that describes a cluster and returns its `Placements`."""
    folder = request.config.rootpath

    def describe(
        *,
        nodes: Iterable[Any] = (),
        objects: Iterable[Any] = (),
        snapshot: str | Path = "",
        config: str | Path = "",
        feature_gates: Sequence[str] = (),
        plugins: Sequence[type[Plugin]] = (),
    ) -> Placements:
        """Describe a cluster by a snapshot, by nodes and objects, or by both together.

        `nodes` and `objects` are structs, as `kubesched.testing.node` and `pod` make them. `config` is a
        KubeSchedulerConfiguration. `plugins` are classes that it may name.
        """
        cluster = read_cluster_file(folder / snapshot) if snapshot else Captured(EPOCH)
        cluster.objects += [*nodes, *objects]
        gates, registry = configuration.Gates.parse(feature_gates), registry_with(plugins, installed=True)
        found = (
            configuration.load(folder / config, gates=gates, registry=catalogue(registry))
            if config
            else default_configuration(gates, registry)
        )
        return Placements(cluster, Policy(found, gates, registry), folder)

    return describe
