"""Feature gates: which behaviours of the scheduler are on.

In: `--feature-gates` text and the version to emulate. Out: a frozen `Gates` that answers `is_enabled("X")`.
A gate that nobody knows, one that is locked and one whose prerequisites are off are errors here.

The table holds every gate of the scheduler with its history since 1.33, the oldest release that can be emulated; the gates
of other components (`kubesched.scheduler.config.releases.other_gates`) are known beside them and change nothing. A gate
absent at the emulated version is off and cannot be set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from kubesched.errors import ConfigError
from kubesched.kube.values.gotext import go_quote
from kubesched.scheduler.config.documents.fielderrors import aggregate
from kubesched.scheduler.config.releases.other_gates import OTHER_GATES, OTHER_NEEDS
from kubesched.scheduler.config.releases.versions import NEWEST, RELEASES, Behaviour, Version


class Stage(Enum):
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"
    PRE_ALPHA = "PRE_ALPHA"
    GONE = "GONE"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a gate is from one release on."""

    since: Version
    default: bool
    stage: Stage
    locked: bool = False


def _alpha(minor: int) -> Spec:
    return Spec((1, minor), False, Stage.ALPHA)


def _beta(minor: int, default: bool = True) -> Spec:
    return Spec((1, minor), default, Stage.BETA)


def _ga(minor: int, locked: bool = True) -> Spec:
    return Spec((1, minor), True, Stage.GA, locked)


def _gone(minor: int) -> Spec:
    return Spec((1, minor), True, Stage.GONE, locked=True)


_ABSENT = Spec((0, 0), False, Stage.PRE_ALPHA)
_STAGES = {"a": Stage.ALPHA, "b": Stage.BETA, "g": Stage.GA, "d": Stage.DEPRECATED, "x": Stage.GONE}


def _history(row: str) -> tuple[Spec, ...]:
    """Return what a row of the other table says: `33a- 35b+ 36g+!`."""
    return tuple(Spec((1, int(word[:2])), word[3] == "+", _STAGES[word[2]], word.endswith("!")) for word in row.split())


OUR_GATES: Mapping[str, tuple[Spec, ...]] = {
    "AllAlpha": (_alpha(0),),
    "AllBeta": (_beta(0, False),),
    "ClearingNominatedNodeNameAfterBinding": (_alpha(34), _beta(35)),
    "ComponentFlagz": (_alpha(32), _beta(36)),
    "ComponentStatusz": (_alpha(32), _beta(36)),
    "CompositePodGroup": (_alpha(37),),
    "ContextualLogging": (_beta(30),),
    "CoordinatedLeaderElection": (_beta(33, False),),
    "DRAAdminAccess": (_alpha(32), _beta(34), _ga(36)),
    "DRAConsumableCapacity": (_alpha(34), _beta(36)),
    "DRADerivedAttributes": (_alpha(37),),
    "DRADeviceBindingConditions": (_alpha(34), _beta(36)),
    "DRADeviceCompatibilityGroups": (_alpha(37),),
    "DRADeviceTaintRules": (_alpha(35), _beta(36, False), _ga(37, locked=False)),
    "DRADeviceTaints": (_alpha(33), _beta(36), _ga(37, locked=False)),
    "DRAExtendedResource": (_alpha(34), _beta(36), _ga(37)),
    "DRAFractionalCapacityRange": (_beta(37),),
    "DRAListTypeAttributes": (_alpha(36),),
    "DRANodeAllocatableResources": (_alpha(36),),
    "DRAOptionalNodeOperations": (_alpha(37),),
    "DRAPartitionableDevices": (_alpha(33), _beta(36)),
    "DRAPrioritizedList": (_alpha(33), _beta(34), _ga(36, locked=False), _ga(37)),
    "DRAResourceClaimDeviceStatus": (_beta(33), _ga(37)),
    "DRAResourceClaimGranularStatusAuthorization": (_beta(36),),
    "DRASchedulerFilterTimeout": (_beta(34),),
    "DRAWorkloadResourceClaims": (_alpha(36), _beta(37, False)),
    "DynamicResourceAllocation": (_beta(32, False), _ga(34, locked=False), _ga(35)),
    "GangScheduling": (_alpha(35), _gone(37)),
    "GenericWorkload": (_alpha(35), _beta(37, False)),
    "InPlacePodLevelResourcesVerticalScaling": (_alpha(35), _beta(36)),
    "InPlacePodVerticalScaling": (_beta(33), _ga(35)),
    "InPlacePodVerticalScalingSchedulerPreemption": (_alpha(37),),
    "InterPodAffinityHostnameFastPath": (_alpha(37),),
    "LoggingAlphaOptions": (_alpha(24),),
    "LoggingBetaOptions": (_beta(24),),
    "MatchLabelKeysInPodAffinity": (_ga(33),),
    "MatchLabelKeysInPodTopologySpread": (_beta(27),),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": (_beta(34),),
    "NativeHistograms": (_alpha(36), _beta(37)),
    "NodeDeclaredFeatures": (_alpha(35), _beta(36), _ga(37)),
    "NodeInclusionPolicyInPodTopologySpread": (_ga(33),),
    "NominatedNodeNameForExpectation": (_alpha(34), _beta(35)),
    "OpportunisticBatching": (_beta(35),),
    "PodGroupPreemptionPolicy": (_alpha(37),),
    "PodLevelResources": (_alpha(32), _beta(34)),
    "PodSchedulingReadiness": (_ga(30),),
    "SELinuxMountReadWriteOncePod": (_beta(28), _ga(36)),
    "SchedulerAsyncAPICalls": (_beta(34, False),),
    "SchedulerAsyncPreemption": (_beta(33),),
    "SchedulerPopFromBackoffQ": (_beta(33),),
    "SchedulerPreQueueingHints": (_alpha(37),),
    "SchedulerQueueingHints": (_beta(32), _ga(34), _gone(37)),
    "SidecarContainers": (_ga(33), _gone(37)),
    "StorageCapacityScoring": (_alpha(33), _beta(37)),
    "TaintTolerationComparisonOperators": (_alpha(35),),
    "TopologyAwareWorkloadScheduling": (_alpha(36),),
    "VolumeAttributesClass": (_beta(31, False), _ga(34, locked=False), _ga(36)),
    "VolumeLimitScaling": (_alpha(35), _beta(37)),
    "WatchListClient": (_beta(30, False), _beta(35)),
    "WorkloadAwarePreemption": (_alpha(36), _gone(37)),
}

GATES: Mapping[str, tuple[Spec, ...]] = {
    **OUR_GATES,
    **{name: _history(row) for name, row in OTHER_GATES.items()},
}

# A gate that is on while one of these is off is refused.
NEEDS: Mapping[str, tuple[str, ...]] = {
    **OTHER_NEEDS,
    "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "DRAAdminAccess": ("DynamicResourceAllocation",),
    "DRAConsumableCapacity": ("DynamicResourceAllocation",),
    "DRADerivedAttributes": ("DynamicResourceAllocation",),
    "DRADeviceBindingConditions": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRADeviceCompatibilityGroups": ("DynamicResourceAllocation", "DRAPartitionableDevices"),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRADeviceTaints": ("DynamicResourceAllocation",),
    "DRAExtendedResource": ("DynamicResourceAllocation",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAListTypeAttributes": ("DynamicResourceAllocation",),
    "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
    "DRAOptionalNodeOperations": ("DynamicResourceAllocation", "NodeDeclaredFeatures"),
    "DRAPartitionableDevices": ("DynamicResourceAllocation",),
    "DRAPrioritizedList": ("DynamicResourceAllocation",),
    "DRAResourceClaimGranularStatusAuthorization": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRASchedulerFilterTimeout": ("DynamicResourceAllocation",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "GangScheduling": ("GenericWorkload",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "InPlacePodVerticalScaling",
        "PodLevelResources",
        "NodeDeclaredFeatures",
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": ("InPlacePodVerticalScaling",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadAwarePreemption": ("GangScheduling",),
}

# These steer other components; in the reference's scheduler, too, either side is accepted and changes nothing.
NOT_OURS = frozenset(
    {
        "ClearingNominatedNodeNameAfterBinding",
        "DRAResourceClaimGranularStatusAuthorization",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "SELinuxMountReadWriteOncePod",
        *OTHER_GATES,
    }
)

# What a gate that is gone has become part of; one that is not here was locked on before it went.
REPLACED_BY: Mapping[str, str] = {"GangScheduling": "GenericWorkload", "WorkloadAwarePreemption": "GenericWorkload"}

# These are the scheduler's and taken on either side, but there is nothing here for them to switch; the reason is logged.
NO_EFFECT: Mapping[str, str] = {
    "InterPodAffinityHostnameFastPath": "it only changes speed, and hostnames are counted in columns anyway",
    "SchedulerPreQueueingHints": "it only changes speed: for which pods hints are called first, not the result",
}

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True, slots=True)
class Gates:
    """Every gate's final state."""

    states: Mapping[str, bool]
    emulated: Version = NEWEST
    asked: frozenset[str] = frozenset()  # set by the user, as opposed to defaulted

    def is_enabled(self, name: str) -> bool:
        """Tell whether a gate is on; a name that is no gate is a bug of the caller."""
        return self.states[name]

    @property
    def behaviour(self) -> Behaviour:
        """Return what the emulated release does that no gate switches."""
        return Behaviour.of(self.emulated)

    @classmethod
    def defaults(cls, emulated: Version = NEWEST) -> Gates:
        return cls(_replaced({name: spec_of(name, emulated).default for name in GATES}, emulated), emulated)

    @classmethod
    def parse(
        cls,
        text: str | Iterable[str],
        *,
        emulated: Version = NEWEST,
        min_compatibility: Version | None = None,
    ) -> Gates:
        """Read `A=true,B=false`, `kube:A=true` or several of them; raise ConfigError in the reference's words."""
        asked = read_pairs([text] if isinstance(text, str) else text)
        return cls.of(asked, emulated=emulated, min_compatibility=min_compatibility)

    @classmethod
    def fitting(cls, text: str | Iterable[str]) -> Gates:
        """Read the same as the newest recorded release that has these gates; what none has is told in the newest one's words.

        For who asks without a cluster that would say which release it is of.
        """
        texts = [text] if isinstance(text, str) else list(text)
        for release in sorted(RELEASES, reverse=True):
            try:
                return cls.parse(texts, emulated=release)
            except ConfigError:
                continue
        return cls.parse(texts)

    @classmethod
    def of(
        cls,
        asked: Mapping[str, bool],
        *,
        emulated: Version = NEWEST,
        min_compatibility: Version | None = None,
    ) -> Gates:
        """Return the gates with these set and all others at their default, or raise ConfigError."""
        unknown = next((name for name in asked if name not in GATES or spec_of(name, emulated).stage is Stage.GONE), None)
        if unknown is not None:
            raise ConfigError("", f"unrecognized feature gate: {unknown}")
        errors = [text for name, value in asked.items() if (text := _refusal(name, value, emulated, min_compatibility))]
        if errors:
            raise ConfigError("", aggregate(errors))
        states = {name: spec_of(name, emulated).default for name in GATES}
        for group, stage in (("AllAlpha", Stage.ALPHA), ("AllBeta", Stage.BETA)):
            if group in asked:
                states |= {name: asked[group] for name in GATES if spec_of(name, emulated).stage is stage}
        states |= asked
        errors = [text for name, needs in NEEDS.items() if (text := _unmet(name, needs, states, emulated))]
        if errors:
            raise ConfigError("", aggregate(errors))
        return cls(_replaced(states, emulated), emulated, frozenset(asked))


def _replaced(states: dict[str, bool], emulated: Version) -> dict[str, bool]:
    """Let the gates that are gone follow what they became part of."""
    gone = {old: states[new] for old, new in REPLACED_BY.items() if spec_of(old, emulated).stage is Stage.GONE}
    return states | gone


def spec_of(name: str, emulated: Version) -> Spec:
    """Return what a gate is at a version."""
    return next((spec for spec in reversed(GATES[name]) if spec.since <= emulated), _ABSENT)


def known_gates(emulated: Version = NEWEST) -> list[str]:
    """Return the lines that the usage text lists: the gates that can be switched, with stage and default."""
    lines = []
    for name in GATES:
        spec = spec_of(name, emulated)
        if spec.stage in (Stage.ALPHA, Stage.BETA):
            lines.append(f"kube:{name}=true|false ({spec.stage.value} - default={_go(spec.default)})")
    return sorted(lines)


def read_pairs(texts: Iterable[str]) -> dict[str, bool]:
    """Return what `A=true,B=false`, `kube:A=true` or several of them ask for, whether or not such gates exist."""
    by_component: dict[str, list[str]] = {}
    for text in texts:
        for pair in text.split(","):
            if not pair:
                continue
            component, colon, setting = pair.partition(":")
            if not colon:
                component, setting = "", pair
            by_component.setdefault(component.strip(), []).append(setting.strip())
    if "" in by_component and "kube" in by_component:
        detail = "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        raise ConfigError("", detail)
    asked = {}
    for component, settings in by_component.items():
        if component not in ("", "kube"):
            raise ConfigError("", f"component not registered: {component}")
        for setting in settings:
            name, equals, value = (part.strip() for part in setting.partition("="))
            if not setting:
                continue
            if not equals:
                raise ConfigError("", f"missing bool value for {name}")
            asked[name] = _boolean(name, value)
    return asked


def _boolean(name: str, value: str) -> bool:
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    cause = f"strconv.ParseBool: parsing {go_quote(value)}: invalid syntax"
    raise ConfigError("", f"invalid value of {name}={value}, err: {cause}")


def _refusal(name: str, value: bool, emulated: Version, min_compatibility: Version | None) -> str:
    spec = spec_of(name, emulated)
    if spec.locked and spec.default != value:
        return f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(spec.default)}"
    if spec.stage is Stage.PRE_ALPHA:
        oldest = min_compatibility or (emulated[0], emulated[1] - 1)
        return (
            f"cannot set feature gate {name} to {_go(value)}, feature is PreAlpha at emulated version "
            f"{emulated[0]}.{emulated[1]}, min compatibility version {oldest[0]}.{oldest[1]}"
        )
    return ""


def _unmet(name: str, needs: tuple[str, ...], states: Mapping[str, bool], emulated: Version) -> str:
    if not states[name] or spec_of(name, emulated).stage is Stage.GONE:
        return ""
    missing = [need for need in needs if not states[need]]
    return f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]" if missing else ""


def _go(value: bool) -> str:
    return "true" if value else "false"
