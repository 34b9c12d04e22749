"""Plugins of installed packages: an entry point is enough for a configuration to name them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: QuietNodes}]}
"""
MODULE = """
from kubesched import Plugin

class QuietNodes(Plugin):
    \"\"\"Prefers quiet nodes.\"\"\"

    def score_node(self, pod, node, state):
        return 0
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which a package with one good and one broken plugin is installed."""
    site = tmp_path / "site-packages"
    package = site / "quiet-1.0.dist-info"
    package.mkdir(parents=True)
    (site / "quiet_nodes.py").write_text(MODULE)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: quiet\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[kubesched.plugins]\nBroken = nowhere:Broken\nQuietNodes = quiet_nodes:QuietNodes\n"
    )
    (tmp_path / "config.yaml").write_text(CONFIG)
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}


def kubesched(environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubesched", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_configuration_may_name_a_plugin_of_an_installed_package(installed: dict[str, str], tmp_path: Path) -> None:
    done = kubesched(installed, tmp_path, "config", "check", "config.yaml")
    assert (done.returncode, done.stdout) == (0, "config.yaml: valid, profiles: default-scheduler\n"), done.stderr
    assert "entry point Broken = nowhere:Broken cannot be used: ModuleNotFoundError" in done.stderr
    listed = kubesched(installed, tmp_path, "plugins", "list", "-o", "json")
    (row,) = [row for row in json.loads(listed.stdout) if row["name"] == "QuietNodes"]
    assert row["points"] == ["Score"] and not row["default"]


def test_without_the_package_there_is_no_such_plugin(installed: dict[str, str], tmp_path: Path) -> None:
    done = kubesched({**installed, "PYTHONPATH": str(ROOT)}, tmp_path, "config", "check", "config.yaml")
    assert done.returncode == 1 and "QuietNodes" in done.stderr
