"""`kubesched plugins`: list, new, check."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched import CycleState, NodeView, Plugin, PodView
from kubesched.cli.plugins import command as plugins_group
from kubesched.errors import ConfigError
from kubesched.scheduler.plugins import IN_TREE
from kubesched.testing import contract

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
    assert list(rows) == [*(cls.name for cls in IN_TREE), "Coscheduling"]
    assert rows["TaintToleration"]["weight"] == 3
    assert rows["NodePorts"]["points"] == ["PreFilter", "Filter"]
    assert "host port" in rows["NodePorts"]["about"]


def test_a_new_plugin_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "quiet_nodes.py" in run("new", "QuietNodes")
    assert run("check", "quiet_nodes.py") == "QuietNodes: keeps the contract (Filter, Score)\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    written: dict[str, Any] = {}
    exec(compile((tmp_path / "test_quiet_nodes.py").read_text(encoding="utf-8"), "test_quiet_nodes.py", "exec"), written)
    tests = [value for name, value in written.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()


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


@pytest.mark.parametrize(
    ("name", "error"),
    [("NodeAffinity", "is in the tree already"), ("None", "a word of Python")],
    ids=["in the tree", "a keyword"],
)
def test_a_name_that_is_taken_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=error):
        run("new", name)
    assert list(tmp_path.iterdir()) == []


HEAD = (
    "import time\nfrom kubesched import Plugin, Reason, Rejections\n"
    "from kubesched.scheduler.config import Args, FieldError, Path\n\n"
    "class P(Plugin):\n"
)
CHECKED = [
    (
        "validate refuses the defaults",
        "    class Args(Args):\n        def validate(self, path, gates):\n            return ['args.size: too small']\n"
        "    def filter(self, pod, nodes, state):\n        return None\n",
        "plugin P: Args.validate refuses the defaults: args.size: too small",
    ),
    (
        "validate has another signature",
        "    class Args(Args):\n        def validate(self):\n            return []\n"
        "    def filter(self, pod, nodes, state):\n        return None\n",
        "P.Args.validate() takes 1 positional argument but 3 were given",
    ),
    (
        "the arguments of a method are mixed up",
        "    def filter(self, nodes, pod, state):\n        return None\n",
        "filter(nodes, pod, state) does not take the arguments of the contract, filter(pod, nodes, state)",
    ),
    (
        "it cannot be made",
        "    def __init__(self):\n        pass\n    def filter(self, pod, nodes, state):\n        return None\n",
        "plugin P: __init__(self) is not called with args and handle: too many positional arguments",
    ),
    (
        "it raises",
        "    def filter(self, pod, nodes, state):\n        return 1 / 0\n",
        "plugin P raises ZeroDivisionError in p.py, line 7: division by zero",
    ),
    (
        "it raises for one node",
        "    def filter_node(self, pod, node, state):\n        return {}['x']\n",
        "plugin P raises KeyError in p.py, line 7: 'x'",
    ),
    (
        "it raises for a node that is chosen",
        "    def reserve(self, pod, node_name, state):\n        return {}['x']\n",
        "plugin P raises KeyError in p.py, line 7: 'x'",
    ),
    (
        "it raises when the promise is taken back",
        "    def reserve(self, pod, node_name, state):\n        pass\n"
        "    def unreserve(self, pod, node_name, state):\n        return 1 / 0\n",
        "plugin P raises ZeroDivisionError in p.py, line 9: division by zero",
    ),
    (
        "it permits without a number of seconds",
        "    def permit(self, pod, node_name, state):\n        return None\n",
        "expected a Status and a number of seconds, got NoneType",
    ),
    (
        "it keeps a promise that was taken back",
        "    full, reason = False, Reason('full')\n"
        "    def filter(self, pod, nodes, state):\n"
        "        return Rejections.where((nodes.pod_count >= 0) & self.full, self.reason)\n"
        "    def reserve(self, pod, node_name, state):\n        self.full = True\n",
        "after Reserve and Unreserve it says",
    ),
    (
        "it raises before it binds",
        "    async def pre_bind(self, pod, node_name, state):\n        return 1 / 0\n",
        "plugin P raises ZeroDivisionError in p.py, line 7: division by zero",
    ),
    (
        "it binds twice",
        "    async def bind(self, pod, node_name, state):\n"
        "        await self.handle.writer.bind(pod, node_name)\n        await self.handle.writer.bind(pod, node_name)\n",
        "it binds the pod 2 times",
    ),
    (
        "it finds a way out that is none",
        "    def post_filter(self, pod, nodes, state, diagnosis, profile):\n        return None\n",
        "expected PostFiltered, got NoneType",
    ),
]


@pytest.mark.parametrize(("body", "error"), [case[1:] for case in CHECKED], ids=[case[0] for case in CHECKED])
def test_what_a_plugin_does_wrong_is_one_line(tmp_path: Path, body: str, error: str) -> None:
    (tmp_path / "p.py").write_text(HEAD + body)
    with pytest.raises(ConfigError) as raised:
        run("check", str(tmp_path / "p.py"))
    assert error in str(raised.value) and "\n" not in str(raised.value)


def test_a_plugin_that_was_held_up_once_is_not_called_slow(tmp_path: Path) -> None:
    body = (
        "    held_up = []\n    def score(self, pod, nodes, state):\n"
        "        if nodes.n > 99 and not self.held_up:\n            self.held_up.append(time.sleep(0.3))\n"
        "        return nodes.pod_count * 0\n"
    )
    (tmp_path / "p.py").write_text(HEAD + body)
    assert CliRunner().invoke(plugins_group, ["check", str(tmp_path / "p.py")]).stderr == ""


def test_a_slow_plugin_is_named(tmp_path: Path) -> None:
    body = (
        "    def score(self, pod, nodes, state):\n        time.sleep(0.12 if nodes.n > 99 else 0)\n"
        "        return nodes.pod_count * 0\n"
    )
    (tmp_path / "p.py").write_text(HEAD + body)
    done = CliRunner().invoke(plugins_group, ["check", str(tmp_path / "p.py")])
    assert (done.exit_code, done.stdout) == (0, "P: keeps the contract (Score)\n")
    assert done.stderr == "Warning: P is slow: 0.1 s for one pod on 100 nodes\n"


def test_a_machine_that_was_busy_once_makes_no_plugin_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    class Quick(Plugin):
        def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
            return 1

    moments = iter((0.0, 5.0, 5.0, 5.01))
    monkeypatch.setattr(contract, "perf_counter", lambda: next(moments))
    took, _ = contract.seconds_a_pod(Quick, sizes=(1,), limit=0.1)
    assert took < 0.1
