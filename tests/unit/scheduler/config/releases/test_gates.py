"""Feature gates: defaults, parsing, and the refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubesched
from kubesched.errors import ConfigError
from kubesched.scheduler.config.releases.gates import (
    GATES,
    NEEDS,
    NO_EFFECT,
    NOT_OURS,
    OUR_GATES,
    Gates,
    Stage,
    known_gates,
    spec_of,
)
from kubesched.scheduler.config.releases.other_gates import OTHER_GATES
from kubesched.scheduler.config.releases.versions import NEWEST, OLDEST_EMULATED

RELEASES = [(1, minor) for minor in range(OLDEST_EMULATED[1], NEWEST[1] + 1)]
DEFAULT_OFF = {
    "AllAlpha",
    "AllBeta",
    "CompositePodGroup",
    "CoordinatedLeaderElection",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "DRAWorkloadResourceClaims",
    "GangScheduling",
    "GenericWorkload",
    "InPlacePodVerticalScalingSchedulerPreemption",
    "InterPodAffinityHostnameFastPath",
    "LoggingAlphaOptions",
    "PodGroupPreemptionPolicy",
    "SchedulerAsyncAPICalls",
    "SchedulerPreQueueingHints",
    "TaintTolerationComparisonOperators",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
}
ON_SINCE_1_37 = {
    "DRADeviceTaintRules",
    "DRAFractionalCapacityRange",
    "NativeHistograms",
    "StorageCapacityScoring",
    "VolumeLimitScaling",
}


@pytest.mark.parametrize("name", OUR_GATES)
def test_each_gate_has_its_default(name: str) -> None:
    assert Gates.defaults().is_enabled(name) is (name not in DEFAULT_OFF)
    assert Gates.defaults((1, 36)).is_enabled(name) is (name not in DEFAULT_OFF | ON_SINCE_1_37)


REFUSED = [
    ("X=true", "unrecognized feature gate: X"),
    ("SchedulerQueueingHints=false", "unrecognized feature gate: SchedulerQueueingHints"),
    ("GangScheduling=true", "unrecognized feature gate: GangScheduling"),
    (
        "NodeDeclaredFeatures=false",
        "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
    ),
    (
        "DRADeviceTaints=false",
        "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]",
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
]


@pytest.mark.parametrize(("text", "error"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_wrong_setting_is_refused(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Gates.parse(text)
    assert str(caught.value) == error


REFUSED_IN_1_36 = [
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
    (
        "SchedulerPreQueueingHints=true",
        "cannot set feature gate SchedulerPreQueueingHints to true, feature is PreAlpha at emulated version 1.36, "
        "min compatibility version 1.35",
    ),
]


@pytest.mark.parametrize(("text", "error"), REFUSED_IN_1_36, ids=[case[0] for case in REFUSED_IN_1_36])
def test_1_36_refuses_in_its_own_way(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Gates.parse(text, emulated=(1, 36))
    assert str(caught.value) == error


FITTING = [
    ("no gate: the newest", "", (1, 37)),
    ("a gate of both", "OpportunisticBatching=false", (1, 37)),
    ("a gate that 1.37 does not have any more", "GenericWorkload=true,GangScheduling=true", (1, 36)),
    ("a gate that 1.36 does not have yet", "DRAFractionalCapacityRange=false", (1, 37)),
]


@pytest.mark.parametrize(("text", "release"), [case[1:] for case in FITTING], ids=[case[0] for case in FITTING])
def test_without_a_cluster_the_newest_release_that_has_the_gates_is_taken(text: str, release: tuple[int, int]) -> None:
    assert Gates.fitting(text).emulated == release


def test_what_no_release_has_is_told_in_the_words_of_the_newest() -> None:
    with pytest.raises(ConfigError, match="unrecognized feature gate: X"):
        Gates.fitting("X=true")


def test_a_gate_that_is_gone_follows_what_replaced_it() -> None:
    gates = Gates.parse("GenericWorkload=true")
    assert gates.is_enabled("GangScheduling")
    assert gates.is_enabled("SidecarContainers")
    assert not Gates.parse("GenericWorkload=true", emulated=(1, 36)).is_enabled("GangScheduling")


@pytest.mark.parametrize(
    "text", ["StorageCapacityScoring=true", "kube:StorageCapacityScoring=T", " StorageCapacityScoring = 1 ,"]
)
def test_a_gate_can_be_set_in_several_spellings(text: str) -> None:
    gates = Gates.parse(text)
    assert gates.is_enabled("StorageCapacityScoring")
    assert gates.asked == {"StorageCapacityScoring"}


def test_a_stage_can_be_switched_and_single_gates_excepted() -> None:
    everything = Gates.parse("AllAlpha=true,GenericWorkload=true,EventedPLEG=false")
    alphas = {name for name in GATES if spec_of(name, NEWEST).stage is Stage.ALPHA}
    assert {name for name in alphas if not everything.is_enabled(name)} == {"EventedPLEG"}


@pytest.mark.parametrize(
    "text", ["AllAlpha=true", "AllAlpha=false", "AllBeta=true", "AllBeta=false", "AllAlpha=true,AllBeta=true"]
)
@pytest.mark.parametrize("release", [(1, 36), (1, 37)], ids=["1.36", "1.37"])
def test_the_switches_of_a_stage_switch_all_of_it(text: str, release: tuple[int, int]) -> None:
    if (text, release) == ("AllAlpha=true", (1, 37)):
        # GenericWorkload is beta and off there, and gates that need it are alpha: the reference does not start either.
        with pytest.raises(ConfigError, match=r"WorkloadWithJob is enabled, but depends on .*: \[GenericWorkload\]"):
            Gates.parse(text, emulated=release)
        return
    gates = Gates.parse(text, emulated=release)
    stages = {group.removeprefix("All").upper() for group in text.replace("=true", "").replace("=false", "").split(",")}
    for name in GATES:
        spec = spec_of(name, release)
        if spec.stage.value in stages:
            assert gates.is_enabled(name) is text.endswith("true"), name


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
        Gates.parse(text, emulated=(1, 36))
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
    assert not set(NO_EFFECT) & NOT_OURS


def test_no_gate_is_read_and_ignored() -> None:
    """Each gate of ours that can be switched is looked at by some code."""
    package = Path(kubesched.__file__).parent
    files = [file for file in package.rglob("*.py") if file.name not in ("gates.py", "other_gates.py")]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for name in GATES:
        for emulated in RELEASES:
            spec = spec_of(name, emulated)
            switchable = spec.stage is not Stage.PRE_ALPHA and not spec.locked and name not in ("AllAlpha", "AllBeta")
            is_ours = name not in NOT_OURS and name not in NO_EFFECT
            if switchable and is_ours:
                assert f'"{name}"' in source, f"{name} can be set but nothing reads it"


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_that_can_be_emulated_starts(release: tuple[int, int]) -> None:
    assert Gates.parse("", emulated=release).states == Gates.defaults(release).states


def test_the_usage_lists_what_can_be_switched() -> None:
    lines = known_gates()
    assert "kube:GenericWorkload=true|false (BETA - default=false)" in lines
    assert "kube:GangScheduling=true|false (ALPHA - default=false)" in known_gates((1, 36))
    assert not any("GangScheduling" in line for line in lines)
    assert "kube:OpportunisticBatching=true|false (BETA - default=true)" in lines
    assert not any("SchedulerQueueingHints" in line for line in lines)
    assert lines == sorted(lines)


@given(st.dictionaries(st.sampled_from(sorted(GATES)), st.booleans()))
def test_a_setting_is_honoured_or_refused_never_ignored(asked: dict[str, bool]) -> None:
    try:
        gates = Gates.of(asked)
    except ConfigError:
        return
    assert all(gates.is_enabled(name) is value for name, value in asked.items())
    for name, needs in NEEDS.items():
        is_gone = spec_of(name, NEWEST).stage is Stage.GONE
        assert is_gone or not gates.is_enabled(name) or all(gates.is_enabled(need) for need in needs)
