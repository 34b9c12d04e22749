"""`kubesched config check` and `config show`, as a user meets them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.config import command as config_group
from kubesched.errors import ConfigError, SchedulerError
from kubesched.scheduler.legacy import registry

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_text(HEAD + "profiles: [{schedulerName: a}, {schedulerName: b}]\n")
    return path


def test_a_good_file_is_said_to_be_good(file: Path) -> None:
    result = CliRunner().invoke(config_group, ["check", str(file)])
    assert (result.exit_code, result.output) == (0, f"{file}: valid, profiles: a, b\n")


def test_a_bad_file_is_named_with_the_references_error(file: Path) -> None:
    file.write_text(HEAD + "parallelism: 0\n", encoding="utf-8")
    result = CliRunner().invoke(config_group, ["check", str(file)])
    assert result.exit_code == 1
    assert isinstance(result.exception, ConfigError)
    rule = "parallelism: Invalid value: 0: should be an integer value greater than zero"
    assert str(result.exception) == f"{file}: {rule}"


def test_a_missing_file_is_named_once() -> None:
    result = CliRunner().invoke(config_group, ["show", "/nowhere.yaml"])
    assert str(result.exception) == "open /nowhere.yaml: no such file or directory"


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_effective_document_is_shown(output: str) -> None:
    golden = Path(__file__).parents[2] / "conformance" / "v1.37" / "config.jsonl.gz"
    with gzip.open(golden, "rt") as lines:
        case = next(case for case in map(json.loads, lines) if case["name"] == "ext-managed")
    result = CliRunner().invoke(config_group, ["show", "-", "-o", output], input=json.dumps(case["config"]))
    assert result.exit_code == 0
    shown = json.loads(result.output) if output == "json" else yaml.safe_load(result.output)
    del shown["clientConnection"]["kubeconfig"]
    assert shown == case["effective"]


def test_gates_change_what_is_shown() -> None:
    words = ["show", "-", "--feature-gates", "StorageCapacityScoring=true", "-o", "json"]
    result = CliRunner().invoke(config_group, words, input=HEAD)
    entries = {entry["name"]: entry["args"] for entry in json.loads(result.output)["profiles"][0]["pluginConfig"]}
    assert entries["VolumeBinding"]["shape"] == [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]


def test_wrong_usage_has_its_own_exit_code() -> None:
    assert CliRunner().invoke(config_group, ["show"]).exit_code == 2
    assert CliRunner().invoke(config_group, ["show", "x", "-o", "table"]).exit_code == 2


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["show", "--help"]])
def test_help_has_an_example(words: list[str]) -> None:
    result = CliRunner().invoke(config_group, words)
    assert "Example:  kubesched config" in result.output


# --- policies ---------------------------------------------------------------------------------------------------------

POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [{"name": "PodFitsResources"}, {"name": "Rack", "argument": {"labelsPresence": {"labels": ["rack"]}}}],
    "priorities": [{"name": "LeastRequestedPriority", "weight": 2}],
    "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "httpTimeout": 1000000000}],
}
SPREAD = {"name": "Spread", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "zone"}}}


def run(*words: str, given: object = POLICY) -> Result:
    return CliRunner().invoke(config_group, list(words), input=json.dumps(given))


def test_a_policy_is_checked_as_its_release_reads_it() -> None:
    assert run("check", "-").output == "-: valid policy of 1.17: 4 predicates, 1 priorities, 1 extenders\n"
    assert run("check", "-", "--legacy-version", "1.6").output == (
        "-: valid policy of 1.6: 2 predicates, 1 priorities, 1 extenders\n"
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"priorities": [{"name": "X", "weight": 0}]},
            "-: couldn't create scheduler from policy: Priority X should have a "
            "positive weight applied to it or it has overflown",
        ),
        ({"predicates": [{"name": "Nonsense"}]}, "-: Invalid configuration: Predicate type not found for Nonsense"),
        ({"nonsense": 1}, '-: invalid policy: strict decoding error: unknown field "nonsense"'),
        ({"apiVersion": "v2"}, '-: invalid policy: no kind "Policy" is registered for version "v2"'),
    ],
)
def test_a_bad_policy_is_refused_in_the_words_of_its_release(change: dict[str, object], error: str) -> None:
    for command in ("check", "show"):
        result = run(command, "-", given={**POLICY, **change})
        assert result.exit_code == 1
        assert str(result.exception).startswith(error)


@pytest.mark.parametrize("version", ["1.4", "1.6", "1.13", "1.17"])
@pytest.mark.parametrize("policy", [POLICY, {"kind": "Policy", "apiVersion": "v1"}, {**POLICY, "priorities": [SPREAD]}])
def test_what_is_shown_of_a_policy_means_the_same(version: str, policy: object) -> None:
    first = run("show", "-", "--legacy-version", version, "-o", "json", given=policy)
    assert first.exit_code == 0
    again = run("show", "-", "--legacy-version", version, "-o", "json", given=json.loads(first.output))
    assert again.output == first.output
    yaml_text = run("show", "-", "--legacy-version", version, given=policy).output
    assert yaml.safe_load(yaml_text) == json.loads(first.output)


def test_a_policy_without_lists_is_shown_with_the_releases_own() -> None:
    empty = {"kind": "Policy", "apiVersion": "v1"}
    shown = json.loads(run("show", "-", "-o", "json", given=empty).output)
    assert {"name": "CheckVolumeBinding"} in shown["predicates"]
    assert {"name": "NodePreferAvoidPodsPriority", "weight": 10000} in shown["priorities"]
    older = json.loads(run("show", "-", "-o", "json", "--legacy-version", "1.6", given=empty).output)
    assert (older["predicates"], older["priorities"]) == ([], [])


def test_a_policy_is_converted_and_the_result_is_good(tmp_path: Path) -> None:
    result = run("convert", "-", "--scheduler-name", "mine")
    assert result.exit_code == 0
    assert "differs: labelsPresence: NodeAffinity also heeds the node selectors of pods\n" in result.stderr
    target = tmp_path / "new.yaml"
    target.write_text(result.stdout)
    assert CliRunner().invoke(config_group, ["check", str(target)]).output == f"{target}: valid, profiles: mine\n"


def test_what_has_no_equivalent_is_said_instead_of_a_configuration() -> None:
    policy = {**POLICY, "priorities": [SPREAD]}
    result = run("convert", "-", given=policy)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no equivalent: priority Spread: no plugin spreads the pods of a service over a label" in result.stderr
    rest = run("convert", "-", "--partial", given=policy)
    assert rest.exit_code == 1
    assert yaml.safe_load(rest.stdout)["kind"] == "KubeSchedulerConfiguration"


def test_a_policy_that_its_release_would_refuse_is_not_converted() -> None:
    result = run("convert", "-", given={**POLICY, "predicates": [{"name": "Nonsense"}]})
    assert str(result.exception) == "-: Invalid configuration: Predicate type not found for Nonsense"
    assert str(run("convert", "-", given={"kind": "Pod"}).exception).startswith('-: invalid policy: no kind "Pod" is')


def test_plugins_of_ones_own_are_known_to_check(tmp_path: Path) -> None:
    plugin, config = tmp_path / "mine.py", tmp_path / "config.yaml"
    plugin.write_text(
        'from kubesched import Plugin\nclass Mine(Plugin):\n    name = "example.com/mine"\n'
        "    def filter_node(self, pod, node, state):\n        return None\n"
    )
    config.write_text(HEAD + "profiles: [{plugins: {filter: {enabled: [{name: example.com/mine}]}}}]\n")
    unknown = CliRunner().invoke(config_group, ["check", str(config)])
    assert 'FilterPlugin "example.com/mine" does not exist' in str(unknown.exception)
    known = CliRunner().invoke(config_group, ["check", str(config), "--plugin", f"{plugin}:Mine"])
    assert known.output == f"{config}: valid, profiles: default-scheduler\n"


def test_predicates_of_ones_own_are_known_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.CUSTOM, "predicates", {})
    plugin = tmp_path / "old.py"
    plugin.write_text(
        "from kubesched.scheduler.legacy import register_fit_predicate\n"
        'register_fit_predicate("HasSSD", lambda pod, node: True)\n'
    )
    policy = {**POLICY, "predicates": [{"name": "HasSSD"}]}
    assert run("check", "-", given=policy).exit_code == 1
    assert run("check", "-", "--plugin", str(plugin), given=policy).exit_code == 0


def test_args_for_a_plugin_that_nobody_registered_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig:\n  - {name: NodeResourcesFit, args: {}}\n  - {name: NodeResourceFit, args: {}}\n"
    )
    done = CliRunner().invoke(config_group, ["check", str(tmp_path / "c.yaml")])
    assert done.exit_code == 0
    assert done.stderr == (
        'Warning: profiles[0].pluginConfig[1]: no plugin "NodeResourceFit" is registered: its args are ignored\n'
    )


OLD = {
    "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
    "kind": "KubeSchedulerConfiguration",
    "schedulerName": "then",
    "plugins": {"score": {"enabled": [{"name": "RequestedToCapacityRatio"}]}},
}


def test_a_file_of_1_17_is_shown_with_its_final_plugins(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps({**OLD, "plugins": {}}))
    shown = json.loads(run("show", str(file), "--legacy-version", "1.17", "-o", "json").output)
    assert shown["componentconfig"]["schedulerName"] == "then"
    filters = [enabled["name"] for enabled in shown["framework"]["plugins"]["filter"]["enabled"]]
    assert filters[:2] == ["NodeUnschedulable", "NodeResourcesFit"]
    checked = run("check", str(file), "--legacy-version", "1.17").output
    assert checked == f"{file}: valid configuration of 1.17, scheduler: then\n"


def test_a_file_of_1_17_is_nothing_for_todays_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps(OLD))
    assert "is registered for version" in str(run("check", str(file)).exception)
    refused = run("check", str(file), "--legacy-version", "1.17").exception
    assert str(refused).endswith('error initializing plugin "RequestedToCapacityRatio": its arguments are read from a policy')


@pytest.mark.parametrize(
    "profile", ["null", "{pluginConfig: [null]}", "{pluginConfig: [{args: {}}]}", "{pluginConfig: [{name: null}]}"]
)
def test_entries_that_say_nothing_end_in_a_line(file: Path, profile: str) -> None:
    file.write_text(f"{HEAD}profiles: [{profile}]\n", encoding="utf-8")
    result = CliRunner().invoke(config_group, ["check", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit | SchedulerError)


def test_a_file_of_another_kind_is_not_quoted_in_full(file: Path) -> None:
    file.write_text("a: 1\nb: 2\n", encoding="utf-8")
    error = CliRunner().invoke(config_group, ["check", str(file)]).exception
    assert str(error) == f"{file}: Object 'Kind' is missing in 'a: 1 ..."
