"""`kubesched plugins`: list, new, check."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.commands.plugins import command as plugins_group
from kubesched.errors import ConfigError
from kubesched.plugins import IN_TREE

BROKEN = """
import numpy as np
from kubesched import Plugin

class Numbered(Plugin):
    def score(self, pod, nodes, state):
        return np.arange(nodes.n)
"""


def run(*words: str) -> str:
    result = CliRunner().invoke(plugins_group, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_names_every_plugin_in_the_tree() -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "-o", "json"))}
    assert rows.keys() == {cls.name for cls in IN_TREE}
    assert rows["TaintToleration"]["weight"] == 3
    assert rows["NodePorts"]["points"] == ["PreFilter", "Filter"]
    assert "host port" in rows["NodePorts"]["about"]


def test_a_new_plugin_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "quiet_nodes.py" in run("new", "QuietNodes")
    assert run("check", "quiet_nodes.py") == "QuietNodes: keeps the contract (Filter, Score)\n"


def test_what_is_there_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quiet_nodes.py").write_text("mine")
    with pytest.raises(ConfigError, match="exists"):
        run("new", "QuietNodes")


@pytest.mark.parametrize("name", ["quiet", "9Lives", "Two Words"])
def test_a_name_must_be_a_class_name(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a plugin class"):
        run("new", name)


def test_a_plugin_that_depends_on_the_order_of_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "numbered.py").write_text(BROKEN)
    with pytest.raises(ConfigError, match="depends on the order of the nodes"):
        run("check", str(tmp_path / "numbered.py"))
