"""Trials on a real Ray cluster of several nodes: through its client server, and with a node that dies in the middle."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.tools.experiments.executors import run_here, run_on_ray
from kubesched.tools.experiments.experiment import Experiment, read_experiment
from kubesched.tools.experiments.sweep import sweep

ray = pytest.importorskip("ray", reason="ray is not installed: the Ray executor is not tested")
pytest.importorskip("grpc", reason="ray[client] is not installed: the Ray executor is not tested")

SCENARIO: dict[str, Any] = {
    "duration": 600,
    "cluster": {"nodes": [{"name": "n", "count": 3, "capacity": {"cpu": 4, "memory": "8Gi"}}]},
    "workloads": [{"name": "w", "arrivals": {"rate": 0.5}, "runs": 20, "requests": {"cpu": "1"}}],
}


@pytest.fixture(scope="module")
def client_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def cluster(client_port: int) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    # Ray's client server forks a process a client. With gRPC's fork handlers on, that process dies at once in one of four.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")
        head = {"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": client_port}
        made = Cluster(initialize_head=True, head_node_args=head)
        made.add_node(num_cpus=1)
        yield made
        made.shutdown()


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SCENARIO))
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"scenarios": ["s.yaml"], "seeds": {"count": 12}}))
    return read_experiment(tmp_path / "e.yaml")


def test_the_same_rows_come_from_a_cluster_that_is_reached_through_its_client_server(
    cluster: Any, client_port: int, experiment: Experiment
) -> None:
    on_ray = partial(run_on_ray, address=f"ray://127.0.0.1:{client_port}")
    assert sweep(experiment, on_ray).to_csv() == sweep(experiment, run_here).to_csv()
    assert not ray.is_initialized(), "whoever connected lets go"


def test_the_same_rows_come_from_a_cluster_that_loses_a_node(cluster: Any, experiment: Experiment) -> None:
    ray.init(address=cluster.address, log_to_driver=False)
    lost = []

    def with_a_death(experiment: Experiment, trials: Any) -> Iterator[Any]:
        for n, done in enumerate(run_on_ray(experiment, trials)):
            if n == 2:
                victim = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
                cluster.remove_node(victim, allow_graceful=False)
                lost.append(victim)
            yield done

    try:
        assert sweep(experiment, with_a_death).to_csv() == sweep(experiment, run_here).to_csv()
    finally:
        ray.shutdown()
    assert lost
