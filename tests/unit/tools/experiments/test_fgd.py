"""The experiment of docs/experiments/fgd.py, on a trace in small, and on the real one where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubesched.tools.experiments.executors import run_here, run_in_processes
from kubesched.tools.experiments.experiment import read_experiment
from kubesched.tools.experiments.sweep import sweep

ROOT = Path(__file__).parents[4]
FILE = ROOT / "docs" / "experiments" / "fgd.py"
OPENB = Path(os.environ.get("KUBESCHED_TRACES") or ROOT.parent / "shared" / "traces") / "openb"
PODS = "openb_pod_list_default.csv"
NODES = "openb_node_list_gpu_node.csv"


def test_a_small_trace(tmp_path: Path) -> None:
    kinds = [("4000", "8192", "1", "500", ""), ("8000", "16384", "1", "1000", ""), ("2000", "4096", "0", "0", "")]
    rows = [f"p{i:03},{','.join(kinds[i % 3])},LS,Running,{i},," for i in range(60)]
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    (tmp_path / PODS).write_text("\n".join([header, *rows]) + "\n")
    nodes = [f"n{i},64000,262144,{2 + i % 3},T4" for i in range(8)]
    (tmp_path / NODES).write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *nodes]) + "\n")
    results = sweep(read_experiment(FILE, {"trace": str(tmp_path), "seeds": "2", "ties": "name,chance"}), run_here)
    assert not results.errors and len(results.rows) == 24
    for row in results.rows:
        assert 0 <= row["gpu.unallocatedAt100"] <= 60 and 40 <= row["gpu.allocated"] <= 100
        assert row["gpu.fragmentedAt100"] <= row["gpu.unallocatedAt100"] + 1e-6


@pytest.mark.nightly
@pytest.mark.skipif(not OPENB.is_dir(), reason="the openb trace is not at hand (KUBESCHED_TRACES names its folder)")
def test_the_published_table() -> None:
    published = {"Random": 13.70, "DotProd": 9.38, "Clustering": 8.35, "Packing": 8.22, "BestFit": 7.14, "FGD": 4.77}
    results = sweep(read_experiment(FILE, {"trace": str(OPENB)}), run_in_processes)
    found = {group[1]: estimate.mean for group, estimate in results.summary("gpu.unallocatedAt100").items()}
    assert not results.errors
    assert {name: abs(found[name] - value) <= 1.0 for name, value in published.items()} == dict.fromkeys(published, True), found
