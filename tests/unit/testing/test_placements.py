"""The fixture `placements`, as a team uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubesched.errors import SchedulerError
from kubesched.testing import node, pod
from kubesched.tools.snapshots.captured import Captured

if TYPE_CHECKING:
    from kubesched.testing.placements import Placements

pytest_plugins = ["kubesched.testing.placements"]

Describe = Callable[..., "Placements"]
ZONES = [node(f"n{i}", cpu="4", zone=f"zone-{'abc'[i % 3]}") for i in range(6)]
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
      containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "web.yaml").write_text(WEB)
    return tmp_path


def test_a_team_asserts_where_its_manifests_go(placements: Describe, files: Path) -> None:
    plan = placements(nodes=ZONES).plan(files / "web.yaml")
    assert not plan.pending and not plan.victims
    assert plan.zones_of("Deployment/web") == {"zone-a": 2, "zone-b": 2, "zone-c": 2}
    assert sum(plan.nodes_of("Deployment/web").values()) == 6


def test_a_snapshot_and_a_configuration_can_be_given(placements: Describe, files: Path) -> None:
    (files / "cluster.jsonl").write_bytes(b"".join(Captured(5.0, [*ZONES, pod("old", on="n0", requests={"cpu": "4"})]).lines()))
    (files / "scheduler.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n"
    )
    cluster = placements(snapshot=files / "cluster.jsonl", config=files / "scheduler.yaml", nodes=[node("new", zone="zone-a")])
    assert "n0" not in cluster.plan(files / "web.yaml").nodes_of("Deployment/web")
    assert cluster.capacity(files / "web.yaml", drain=["n0"]).drained[0].node


def test_paths_are_taken_from_the_root_and_may_be_patterns(placements: Describe, files: Path) -> None:
    cluster = replace(placements(nodes=ZONES), folder=files)
    assert len(cluster.plan("*.yaml").placed) == 6
    with pytest.raises(SchedulerError, match=r"nothing/\*.yaml: no such file in"):
        cluster.plan("nothing/*.yaml")


def test_what_waits_can_be_read_in_a_failing_assertion(placements: Describe, files: Path) -> None:
    plan = placements(nodes=ZONES[:1]).plan(files / "web.yaml")
    assert repr(plan.pending[0]).startswith("<default/web-5 waits: 0/1 nodes are available: 1 Insufficient cpu.")
    assert repr(plan.placed[0]) == "<default/web-1 on n0>"
