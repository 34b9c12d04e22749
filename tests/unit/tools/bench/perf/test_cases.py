"""performance-config.yaml: what is read, what is chosen, and the sentence about everything that is not known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.config import NEWEST, OLDEST_RECORDED
from kubesched.tools.bench.perf import cases
from kubesched.tools.bench.perf.operations import Churn, CreateAny, CreatePods, Sleep

POD = "metadata: {generateName: pod-}\nspec: {containers: [{name: c, image: i}]}\n"
BASIC = """
- name: Basic
  featureGates: {DynamicResourceAllocation: true}
  defaultPodTemplatePath: pod.yaml
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
  workloads:
  - {name: small, params: {nodes: 5, pods: 10}, labels: [integration-test, short]}
  - {name: large, params: {nodes: 5000, pods: 10000.0}, labels: [performance], threshold: 270}
"""


def tree(folder: Path, text: str, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "performance-config.yaml").write_text(text)
    (folder / "pod.yaml").write_text(POD)
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(content)
    return folder


def one(folder: Path, operation: str, params: str = "{}", more: str = "", workload: str = "") -> cases.Workload:
    """Return the workload of a file with one operation before the measured one."""
    text = f"""
- name: Case
  {more}
  workloadTemplate:
  - {operation}
  - {{opcode: createPods, count: 1, collectMetrics: true}}
  workloads:
  - {{name: one, params: {params}, {workload}}}
"""
    (found,) = cases.read(tree(folder, text))
    return found


def test_parameters_are_put_in_and_counts_may_be_written_as_floats(tmp_path: Path) -> None:
    small, large = cases.read(tree(tmp_path, BASIC))
    assert [operation.count for operation in small.operations] == [5, 10]  # type: ignore[attr-defined]
    assert [operation.count for operation in large.operations] == [5000, 10000]  # type: ignore[attr-defined]
    assert (small.full_name, small.threshold, large.threshold) == ("Basic/small", None, 270.0)
    assert small.gates == {"DynamicResourceAllocation": True} and not small.problem


def test_choosing_by_labels_cases_and_workloads(tmp_path: Path) -> None:
    found = cases.read(tree(tmp_path, BASIC))

    def names(labels: str = "", case: tuple[str, ...] = (), workload: tuple[str, ...] = ()) -> list[str]:
        return [each.name for each in cases.chosen(found, labels, case, workload)]

    assert names() == ["small", "large"]
    assert names("performance") == names("+performance") == names("-short") == ["large"]
    assert names("short,performance") == []
    assert names(case=("Ba*",), workload=("sm*", "none")) == ["small"]
    assert names(case=("Other",)) == []


KNOWN = [
    ("sleep", "{opcode: sleep, durationParam: $d}", "{d: 1m30s}", Sleep(opcode="sleep", duration="1m30s")),
    (
        "churn",
        "{opcode: churn, mode: recreate, number: 3, templatePaths: [pod.yaml]}",
        "{}",
        Churn(opcode="churn", mode="recreate", number=3, template_paths=["pod.yaml"]),
    ),
    (
        "a template's parameters, with defaults as YAML",
        "{opcode: createAny, templatePath: pod.yaml, templateParams: {a: $x, b: '$y|[1, z]', c: '$w|', d: plain}}",
        "{x: 4}",
        CreateAny(
            opcode="createAny", template_path="pod.yaml", template_params={"a": 4, "b": [1, "z"], "c": None, "d": "plain"}
        ),
    ),
    (
        "a count that is multiplied",
        "{opcode: createPods, countParam: $groups, countMultiplierParam: $each, skipWaitToCompletion: true}",
        "{groups: 3, each: 4}",
        CreatePods(opcode="createPods", count=12, skip_wait_to_completion=True),
    ),
]


@pytest.mark.parametrize(("case", "written", "params", "made"), KNOWN, ids=[case[0] for case in KNOWN])
def test_operations_as_they_run(case: str, written: str, params: str, made: object, tmp_path: Path) -> None:
    found = one(tmp_path, written, params)
    assert found.problem == ""
    assert found.operations[0] == made


def test_a_set_of_pods_becomes_an_operation_for_each_namespace(tmp_path: Path) -> None:
    inner = "{opcode: createPods, countParam: $each}"
    found = one(
        tmp_path,
        f"{{opcode: createPodSets, countParam: $sets, namespacePrefix: ns, createPodsOp: {inner}}}",
        "{sets: 2, each: 5}",
    )
    made = found.operations[:2]
    assert all(isinstance(each, CreatePods) for each in made)
    assert [(each.namespace, each.count) for each in made] == [("ns-0", 5), ("ns-1", 5)]  # type: ignore[attr-defined]


PROBLEMS = [
    ("{opcode: deleteNodes}", "{}", "operation 0: the opcode 'deleteNodes' is not known"),
    ("{opcode: sleep, speed: 3}", "{}", "operation 0: sleep: Object contains unknown field `speed`"),
    ("{opcode: createNodes, countParam: $n}", "{}", "operation 0: the parameter n is not defined"),
    (
        "{opcode: createNodes, countParam: $n}",
        "{n: many}",
        "operation 0: createNodes: Expected `int`, got `str` - at `$.count`",
    ),
    (
        "{opcode: createNodes, durationParam: $n}",
        "{n: 1}",
        "operation 0: createNodes: Object contains unknown field `duration`",
    ),
    ("{opcode: createNodes, count: 1}", "{n: 3}", "the parameters n are used by no operation"),
    ("{opcode: createNodes, count: -1}", "{}", "operation 0: createNodes: count is -1, and cannot be negative"),
    ("{opcode: createAny, templatePath: gone.yaml}", "{}", "gone.yaml: cannot be read: No such file or directory"),
    (
        "{opcode: churn, mode: stir, templatePaths: [pod.yaml]}",
        "{}",
        "operation 0: churn: mode 'stir' is neither create nor recreate",
    ),
    (
        "{opcode: barrier, stageRequirement: Run}",
        "{}",
        "operation 0: barrier: stageRequirement 'Run' is neither Scheduled nor Attempted",
    ),
    (
        "{opcode: createPods, count: 1, collectMetrics: true, skipWaitToCompletion: true}",
        "{}",
        "operation 0: createPods: skipWaitToCompletion and collectMetrics cannot both be true",
    ),
    ("{opcode: createPods, count: 1, steadyState: true}", "{}", "operation 0: createPods: a steady state needs a duration"),
]


@pytest.mark.parametrize(("written", "params", "said"), PROBLEMS, ids=[case[2] for case in PROBLEMS])
def test_what_cannot_run_says_why(written: str, params: str, said: str, tmp_path: Path) -> None:
    assert one(tmp_path, written, params).problem == said


@pytest.mark.parametrize(
    ("more", "workload", "said"),
    [
        ("featureGates: {NoSuchGate: true}", "", "unrecognized feature gate: NoSuchGate"),
        (
            "",
            "featureGates: {PodSchedulingReadiness: false}",
            "cannot set feature gate PodSchedulingReadiness to false",
        ),
        ("schedulerConfigPath: pod.yaml", "", "Object 'Kind' is missing"),
        ("defaultThresholdMetricSelector: {name: Memory, dataBucket: Max}", "", "a threshold for Memory Max is not known"),
        ("defaultPodTemplatePath: bad.yaml", "", "bad.yaml: the template function 'Reverse' is not known"),
    ],
)
def test_gates_configurations_and_templates_are_checked_before_anything_runs(
    more: str, workload: str, said: str, tmp_path: Path
) -> None:
    tree(tmp_path, "", bad="{{Reverse .Index}}")
    assert said in one(tmp_path, "{opcode: sleep, duration: 1s}", "{}", more, workload).problem


def test_without_queueing_hints_the_last_release_that_could_do_so_is_emulated(tmp_path: Path) -> None:
    found = one(tmp_path, "{opcode: sleep, duration: 1s}", "{}", "featureGates: {SchedulerQueueingHints: false}")
    assert (found.problem, found.emulated) == ("", (1, 33))
    assert not found.set_gates.is_enabled("SchedulerQueueingHints")
    assert one(tmp_path, "{opcode: sleep, duration: 1s}").emulated == OLDEST_RECORDED


def test_gates_of_the_command_line_come_before_those_of_a_workload(tmp_path: Path) -> None:
    one(tmp_path, "{opcode: sleep, duration: 1s}", "{}", "featureGates: {DRANodeAllocatableResources: true}")
    (found,) = cases.read(tmp_path, {"DRANodeAllocatableResources": False})
    assert (found.problem, found.gates) == ("", {"DRANodeAllocatableResources": False})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- name: x\n  speed: 3\n", "unknown field `speed`"),
        ("{", "did not find expected"),
        (BASIC + BASIC, "two cases of the name Basic"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        cases.read(tree(tmp_path, text))


def test_a_folder_without_workloads_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no performance-config.yaml in this folder or below"):
        cases.read(tmp_path)


def test_a_folder_with_two_releases_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path / "v1/misc", BASIC)
    tree(tmp_path / "v2/misc", BASIC)
    with pytest.raises(ConfigError, match="case Basic is in v1/misc and in v2/misc: give the folder of one release"):
        cases.read(tmp_path)


def test_of_several_thresholds_the_folder_chooses(tmp_path: Path) -> None:
    text = BASIC.replace("threshold: 270", "threshold: {dra: 40, dra_sub: 50}")
    for folder, threshold in (("dra", 40.0), ("dra/sub", 50.0), ("misc", None)):
        root = tmp_path / folder.replace("/", "-")
        tree(root / "tree" / folder, text)
        assert cases.read(root / "tree")[1].threshold == threshold
        assert cases.read(root / "tree" / folder)[1].threshold == (40.0 if folder == "dra" else None)


def test_fields_of_1_37_tell_the_release(tmp_path: Path) -> None:
    assert {each.release for each in cases.read(tree(tmp_path / "a", BASIC))} == {OLDEST_RECORDED}
    newer = BASIC.replace("collectMetrics: true", "collectMetrics: true, signatureBatchSize: 5")
    assert {each.emulated for each in cases.read(tree(tmp_path / "b", newer))} == {NEWEST}


@pytest.mark.parametrize("part", ["affinity", "dra/resource/scoring"])
def test_a_part_of_a_release_is_of_the_release_that_the_whole_is_of(tmp_path: Path, part: str) -> None:
    whole = tmp_path / "scheduler_perf"
    tree(whole / part, BASIC)
    tree(whole / "misc", BASIC.replace("collectMetrics: true", "collectMetrics: true, signatureBatchSize: 5"))
    assert {each.release for each in cases.read(whole / part)} == {OLDEST_RECORDED}, "nothing says that they belong together"
    (whole / "templates").mkdir()
    assert {each.release for each in cases.read(whole / part)} == {NEWEST}


def upstream() -> list[Path]:
    """Return the releases' own files where they are: beside the project, or where the environment says."""
    beside = Path(__file__).parents[6] / "shared" / "scheduler_perf"
    root = Path(os.environ.get("KUBESCHED_SCHEDULER_PERF", beside))
    return sorted(path for path in root.glob("v*") if path.is_dir()) or [root] * root.is_dir()


@pytest.mark.skipif(
    not upstream(),
    reason="no scheduler_perf files: set KUBESCHED_SCHEDULER_PERF to a Kubernetes' test/integration/scheduler_perf",
)
def test_all_operations_and_templates_of_kubernetes_own_files_are_known() -> None:
    for root in upstream():
        problems = {each.problem for each in cases.read(root)}
        known = ("feature gate", "features that are disabled", "numNodeDeclaredFeatures", "the parameter measurePods")
        assert not [text for text in problems if text and not any(part in text for part in known)], root
