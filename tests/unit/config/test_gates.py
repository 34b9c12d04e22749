"""Feature gates: defaults, parsing, and the refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubesched
from kubesched.config.gates import (
    BINARY_VERSION,
    GATES,
    NEEDS,
    NOT_BUILT,
    NOT_OURS,
    OUR_GATES,
    Gates,
    Stage,
    known_gates,
    spec_of,
)
from kubesched.config.other_gates import OTHER_GATES
from kubesched.errors import ConfigError

DEFAULT_OFF = {
    "AllAlpha",
    "AllBeta",
    "CoordinatedLeaderElection",
    "DRADeviceTaintRules",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAWorkloadResourceClaims",
    "GangScheduling",
    "GenericWorkload",
    "LoggingAlphaOptions",
    "NativeHistograms",
    "SchedulerAsyncAPICalls",
    "StorageCapacityScoring",
    "TaintTolerationComparisonOperators",
    "TopologyAwareWorkloadScheduling",
    "VolumeLimitScaling",
    "WorkloadAwarePreemption",
}


@pytest.mark.parametrize("name", OUR_GATES)
def test_each_gate_has_its_default(name: str) -> None:
    assert Gates.defaults().is_enabled(name) is (name not in DEFAULT_OFF)


REFUSED = [
    ("X=true", "unrecognized feature gate: X"),
    (
        "SchedulerQueueingHints=false",
        "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
    ),
    (
        "GangScheduling=true",
        "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
    ),
    (
        "DRAResourceClaimDeviceStatus=false",
        "[DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
        "[DRAResourceClaimDeviceStatus], DRAResourceClaimGranularStatusAuthorization is enabled, but depends on "
        "features that are disabled: [DRAResourceClaimDeviceStatus]]",
    ),
    ("GenericWorkload", "missing bool value for GenericWorkload"),
    (
        "GenericWorkload=maybe",
        'invalid value of GenericWorkload=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
    ),
    (
        "kube:GenericWorkload=true,OpportunisticBatching=false",
        "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
    ),
    ("wardle:GenericWorkload=true", "component not registered: wardle"),
    (
        "SchedulerAsyncAPICalls=true",
        "cannot set feature gate SchedulerAsyncAPICalls to true, the feature is not built in this scheduler",
    ),
]


@pytest.mark.parametrize(("text", "error"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_wrong_setting_is_refused(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Gates.parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    "text", ["StorageCapacityScoring=true", "kube:StorageCapacityScoring=T", " StorageCapacityScoring = 1 ,"]
)
def test_a_gate_can_be_set_in_several_spellings(text: str) -> None:
    gates = Gates.parse(text)
    assert gates.is_enabled("StorageCapacityScoring")
    assert gates.asked == {"StorageCapacityScoring"}


def test_a_stage_can_be_switched_and_single_gates_excepted() -> None:
    everything = Gates.parse("AllAlpha=true,NativeHistograms=false", not_built=frozenset())
    alphas = {name for name in GATES if spec_of(name, BINARY_VERSION).stage is Stage.ALPHA}
    assert {name for name in alphas if not everything.is_enabled(name)} == {"NativeHistograms"}


@pytest.mark.parametrize(
    "text", ["AllAlpha=true", "AllAlpha=false", "AllBeta=true", "AllBeta=false", "AllAlpha=true,AllBeta=true"]
)
def test_the_switches_of_a_stage_start_and_tell_what_they_leave_out(text: str) -> None:
    gates = Gates.parse(text)
    stages = {group.removeprefix("All").upper() for group in text.replace("=true", "").replace("=false", "").split(",")}
    for name in GATES:
        spec = spec_of(name, BINARY_VERSION)
        if spec.stage.value in stages:
            assert gates.is_enabled(name) is (spec.default if name in gates.left_out else text.endswith("true")), name
    assert all((name, True) in NOT_BUILT for name in gates.left_out)


def test_an_older_release_has_its_own_defaults() -> None:
    gates = Gates.defaults((1, 34))
    assert not gates.is_enabled("NodeDeclaredFeatures")
    assert not gates.is_enabled("DRAExtendedResource")
    assert gates.is_enabled("SchedulerAsyncPreemption")


def test_a_gate_of_the_future_cannot_be_set() -> None:
    with pytest.raises(ConfigError) as caught:
        Gates.parse("GenericWorkload=true", emulated=(1, 34))
    assert str(caught.value) == (
        "cannot set feature gate GenericWorkload to true, feature is PreAlpha at emulated version 1.34, "
        "min compatibility version 1.33"
    )


OTHERS: list[tuple[str, str]] = [
    ("NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
    ("AnyVolumeDataSource=false", "cannot set feature gate AnyVolumeDataSource to false, feature is locked to true"),
    (
        "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false",
        "[ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: [NodeDeclaredFeatures], "
        "InPlacePodVerticalScalingInitContainers is enabled, but depends on features that are disabled: "
        "[NodeDeclaredFeatures], RestartAllContainersOnContainerExits is enabled, but depends on features that are "
        "disabled: [NodeDeclaredFeatures]]",
    ),
]


@pytest.mark.parametrize(("text", "error"), OTHERS, ids=[case[0] for case in OTHERS])
def test_gates_of_other_components_have_their_locks_and_needs(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Gates.parse(text)
    assert str(caught.value) == error


def test_gates_of_other_components_can_be_set_and_stand_in_no_one_elses_table() -> None:
    gates = Gates.parse("CPUManagerPolicyAlphaOptions=true,APIResponseCompression=false")
    assert gates.is_enabled("CPUManagerPolicyAlphaOptions")
    assert not gates.is_enabled("APIResponseCompression")
    assert not set(OUR_GATES) & set(OTHER_GATES)
    assert len(GATES) == len(OUR_GATES) + len(OTHER_GATES)
    with pytest.raises(ConfigError, match=r"feature is PreAlpha at emulated version 1\.35"):
        Gates.parse("CRIListStreaming=true", emulated=(1, 35))


def test_the_tables_fit_together() -> None:
    assert set(NEEDS) <= set(GATES)
    assert {need for needs in NEEDS.values() for need in needs} <= set(GATES)
    assert {name for name, _ in NOT_BUILT} <= set(GATES)
    for name, value in NOT_BUILT:
        assert spec_of(name, BINARY_VERSION).default is not value, f"{name}: the default must be built"


def test_no_gate_is_read_and_ignored() -> None:
    """Each gate that can be switched is looked at by some code, or its other side is refused."""
    package = Path(kubesched.__file__).parent
    files = [file for file in package.rglob("*.py") if file.name not in ("gates.py", "other_gates.py")]
    source = "\n".join(file.read_text() for file in files)
    for name in GATES:
        for emulated in ((1, 33), (1, 34), (1, 35), (1, 36)):
            spec = spec_of(name, emulated)
            switchable = spec.stage is not Stage.PRE_ALPHA and not spec.locked and name not in ("AllAlpha", "AllBeta")
            if switchable and name not in NOT_OURS and (name, not spec.default) not in NOT_BUILT:
                assert f'"{name}"' in source, f"{name} can be set but nothing reads it: read it, or add it to NOT_BUILT"


@pytest.mark.parametrize("minor", [33, 34, 35, 36])
def test_every_release_that_can_be_emulated_starts(minor: int) -> None:
    gates = Gates.parse("", emulated=(1, minor))
    assert gates.states == Gates.defaults((1, minor)).states


def test_the_usage_lists_what_can_be_switched() -> None:
    lines = known_gates()
    assert "kube:GangScheduling=true|false (ALPHA - default=false)" in lines
    assert "kube:OpportunisticBatching=true|false (BETA - default=true)" in lines
    assert not any("SchedulerQueueingHints" in line for line in lines)
    assert lines == sorted(lines)


@given(st.dictionaries(st.sampled_from(sorted(GATES)), st.booleans()))
def test_a_setting_is_honoured_or_refused_never_ignored(asked: dict[str, bool]) -> None:
    try:
        gates = Gates.of(asked, not_built=frozenset())
    except ConfigError:
        return
    assert all(gates.is_enabled(name) is value for name, value in asked.items())
    for name, needs in NEEDS.items():
        assert not gates.is_enabled(name) or all(gates.is_enabled(need) for need in needs)
