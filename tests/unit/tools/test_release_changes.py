"""The list of what changed between two tags of Kubernetes, from a small repository."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[3] / "tools/release_changes.py"
_GATES = """package features

var specs = map[string]Specs{
	Old: {
		{Version: version.MustParse("1.30"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
	Kept: {
		{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Alpha},
	},
}
"""
_NEWER = """package features

var specs = map[string]Specs{
	Kept: {
		{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.Beta}, // lock in 1.38
	},
	New: {
		{Version: version.MustParse("1.37"), Default: false, PreRelease: featuregate.Alpha},
	},
}
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("release_changes", _SCRIPT)
    module = sys.modules["release_changes"] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clone(tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(("git", "-C", str(tmp_path), *who, *arguments), check=True, capture_output=True)

    def commit(subject, files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        git("add", "-A")
        git("commit", "-m", subject)

    types = "staging/src/k8s.io/api/core/v1/types.go"
    git("init", "-b", "main")
    commit("begin", {"pkg/features/kube_features.go": _GATES, types: '\tOld int `json:"old"`\n\tName string `json:"name"`\n'})
    git("tag", "v1.36.0")
    commit(
        "Score otherwise", {"pkg/scheduler/score.go": "package x // since 1.38 gone\n", "pkg/scheduler/score_test.go": "x\n"}
    )
    commit("Only a test", {"pkg/scheduler/score_test.go": "y\n"})
    commit("Elsewhere", {"pkg/kubelet/x.go": "package x\n"})
    commit(
        "New gates", {"pkg/features/kube_features.go": _NEWER, types: '\tName string `json:"name"`\n\tNew int `json:"new"`\n'}
    )
    git("tag", "v1.37.0")
    return tmp_path


def test_commits_are_listed_by_area_without_those_that_change_tests_alone(script, clone):
    (found,) = script.commits(clone, "v1.36.0", "v1.37.0", script.AREAS["Scheduler"])
    assert (found.subject, found.files) == ("Score otherwise", ("pkg/scheduler/score.go",))


def test_the_report_names_gates_fields_and_what_is_announced(script, clone):
    text = script.report(clone, "v1.36.0", "v1.37.0")
    for line in (
        "* Old: 1.30 ga on, locked → gone",
        "* Kept: 1.36 alpha off → 1.36 alpha off · 1.37 beta on",
        "* New: new → 1.37 alpha off",
        "* core/v1 -old (Old)",
        "* core/v1 +new (New)",
        "* `Kept: // lock in 1.38`",
        "* `pkg/scheduler/score.go:1: package x // since 1.38 gone`",
    ):
        assert line in text.splitlines(), line
    assert "(Name)" not in text
    assert "Elsewhere" not in text


def test_a_tag_that_is_not_there_is_named(script, clone):
    with pytest.raises(SystemExit, match=r"git log: .*v9"):
        script.report(clone, "v1.36.0", "v9")
