"""Trials on a real Ray cluster of several nodes, one of which dies in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.simulator.experiments.executors import run_here, run_on_ray
from kubesched.simulator.experiments.experiment import Experiment, read_experiment
from kubesched.simulator.experiments.sweep import sweep

ray = pytest.importorskip("ray", reason="ray is not installed: the Ray executor is not tested")

SCENARIO: dict[str, Any] = {
    "duration": 600,
    "cluster": {"nodes": [{"name": "n", "count": 3, "capacity": {"cpu": 4, "memory": "8Gi"}}]},
    "workloads": [{"name": "w", "arrivals": {"rate": 0.5}, "runs": 20, "requests": {"cpu": "1"}}],
}


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def test_the_same_rows_come_from_a_cluster_that_loses_a_node(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SCENARIO))
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"scenarios": ["s.yaml"], "seeds": {"count": 12}}))
    experiment, lost = read_experiment(tmp_path / "e.yaml"), []

    def with_a_death(experiment: Experiment, trials: Any) -> Iterator[Any]:
        for n, done in enumerate(run_on_ray(experiment, trials)):
            if n == 2:
                victim = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
                cluster.remove_node(victim, allow_graceful=False)
                lost.append(victim)
            yield done

    assert sweep(experiment, with_a_death).to_csv() == sweep(experiment, run_here).to_csv()
    assert lost
