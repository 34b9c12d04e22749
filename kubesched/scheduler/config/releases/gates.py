"""Feature gates: `--feature-gates` and the emulated version make a frozen `Gates`, which answers `is_enabled("X")`.

An unknown gate, a locked gate, and a gate that needs another one that is off are errors.

The table has every gate of the scheduler with its history since 1.33, the oldest release that can be emulated. A row is for
example

    "34a- 36b+ 37g+! needs A B"

        since 1.34   alpha, off
        since 1.36   beta, on
        since 1.37   general, on and locked
        A and B must be on

with `a`lpha, `b`eta, `g`eneral, `d`eprecated, e`x`tinct, then `+` or `-` for the default, then `!` if it is locked. A gate that
does not exist at the emulated version is off and cannot be set. The gates of other components (`other_gates`) are accepted and
change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from kubesched.errors import ConfigError
from kubesched.kube.values import aggregate, go_quote
from kubesched.scheduler.config.releases.other_gates import OTHER_GATES
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
    """The stage and default of a gate from one release on."""

    since: Version
    default: bool
    stage: Stage
    locked: bool = False


_ABSENT = Spec((0, 0), False, Stage.PRE_ALPHA)
_STAGES = {"a": Stage.ALPHA, "b": Stage.BETA, "g": Stage.GA, "d": Stage.DEPRECATED, "x": Stage.GONE}


def _history(row: str) -> tuple[Spec, ...]:
    """Return the history in a row: `33a- 35b+ 36g+!`."""
    return tuple(Spec((1, int(word[:2])), word[3] == "+", _STAGES[word[2]], word.endswith("!")) for word in row.split())


OUR_GATES: Mapping[str, str] = {
    "AllAlpha": "00a-",
    "AllBeta": "00b-",
    "ClearingNominatedNodeNameAfterBinding": "34a- 35b+",
    "ComponentFlagz": "32a- 36b+",
    "ComponentStatusz": "32a- 36b+",
    "CompositePodGroup": "37a- needs GenericWorkload TopologyAwareWorkloadScheduling",
    "ContextualLogging": "30b+",
    "CoordinatedLeaderElection": "33b-",
    "DRAAdminAccess": "32a- 34b+ 36g+! needs DynamicResourceAllocation",
    "DRAConsumableCapacity": "34a- 36b+ needs DynamicResourceAllocation",
    "DRADerivedAttributes": "37a- needs DynamicResourceAllocation",
    "DRADeviceBindingConditions": "34a- 36b+ needs DynamicResourceAllocation DRAResourceClaimDeviceStatus",
    "DRADeviceCompatibilityGroups": "37a- needs DynamicResourceAllocation DRAPartitionableDevices",
    "DRADeviceTaintRules": "35a- 36b- 37g+ needs DRADeviceTaints",
    "DRADeviceTaints": "33a- 36b+ 37g+ needs DynamicResourceAllocation",
    "DRAExtendedResource": "34a- 36b+ 37g+! needs DynamicResourceAllocation",
    "DRAFractionalCapacityRange": "37b+ needs DRAConsumableCapacity",
    "DRAListTypeAttributes": "36a- needs DynamicResourceAllocation",
    "DRANodeAllocatableResources": "36a- needs DynamicResourceAllocation",
    "DRAOptionalNodeOperations": "37a- needs DynamicResourceAllocation NodeDeclaredFeatures",
    "DRAPartitionableDevices": "33a- 36b+ needs DynamicResourceAllocation",
    "DRAPrioritizedList": "33a- 34b+ 36g+ 37g+! needs DynamicResourceAllocation",
    "DRAResourceClaimDeviceStatus": "33b+ 37g+!",
    "DRAResourceClaimGranularStatusAuthorization": "36b+ needs DynamicResourceAllocation DRAResourceClaimDeviceStatus",
    "DRASchedulerFilterTimeout": "34b+ needs DynamicResourceAllocation",
    "DRAWorkloadResourceClaims": "36a- 37b- needs DynamicResourceAllocation GenericWorkload",
    "DynamicResourceAllocation": "32b- 34g+ 35g+!",
    "GangScheduling": "35a- 37x+! needs GenericWorkload",
    "GenericWorkload": "35a- 37b-",
    "InPlacePodLevelResourcesVerticalScaling": "35a- 36b+ "
    "needs InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures",
    "InPlacePodVerticalScaling": "33b+ 35g+!",
    "InPlacePodVerticalScalingSchedulerPreemption": "37a- needs InPlacePodVerticalScaling",
    "InterPodAffinityHostnameFastPath": "37a-",
    "LoggingAlphaOptions": "24a-",
    "LoggingBetaOptions": "24b+",
    "MatchLabelKeysInPodAffinity": "33g+!",
    "MatchLabelKeysInPodTopologySpread": "27b+",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": "34b+ needs MatchLabelKeysInPodTopologySpread",
    "NativeHistograms": "36a- 37b+",
    "NodeDeclaredFeatures": "35a- 36b+ 37g+!",
    "NodeInclusionPolicyInPodTopologySpread": "33g+!",
    "NominatedNodeNameForExpectation": "34a- 35b+",
    "OpportunisticBatching": "35b+",
    "PodGroupPreemptionPolicy": "37a- needs GenericWorkload",
    "PodLevelResources": "32a- 34b+",
    "PodSchedulingReadiness": "30g+!",
    "SELinuxMountReadWriteOncePod": "28b+ 36g+!",
    "SchedulerAsyncAPICalls": "34b-",
    "SchedulerAsyncPreemption": "33b+",
    "SchedulerPopFromBackoffQ": "33b+",
    "SchedulerPreQueueingHints": "37a-",
    "SchedulerQueueingHints": "32b+ 34g+! 37x+!",
    "SidecarContainers": "33g+! 37x+!",
    "StorageCapacityScoring": "33a- 37b+",
    "TaintTolerationComparisonOperators": "35a-",
    "TopologyAwareWorkloadScheduling": "36a- needs GenericWorkload",
    "VolumeAttributesClass": "31b- 34g+ 36g+!",
    "VolumeLimitScaling": "35a- 37b+",
    "WatchListClient": "30b- 35b+",
    "WorkloadAwarePreemption": "36a- 37x+! needs GangScheduling",
}

GATES: Mapping[str, tuple[Spec, ...]] = {
    name: _history(row.partition(" needs ")[0]) for name, row in {**OUR_GATES, **OTHER_GATES}.items()
}
NEEDS: Mapping[str, tuple[str, ...]] = {
    name: tuple(needs.split()) for name, row in {**OTHER_GATES, **OUR_GATES}.items() if (needs := row.partition(" needs ")[2])
}
"""A gate that is on while one of these is off is refused; errors come in this order."""

# These are for other components. kube-scheduler accepts both values too, and changes nothing.
NOT_OURS = frozenset(
    {
        "ClearingNominatedNodeNameAfterBinding",
        "DRAResourceClaimGranularStatusAuthorization",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "SELinuxMountReadWriteOncePod",
        *OTHER_GATES,
    }
)

# The gate that replaced a removed one. A removed gate that is not listed was locked on before.
REPLACED_BY: Mapping[str, str] = {"GangScheduling": "GenericWorkload", "WorkloadAwarePreemption": "GenericWorkload"}

# Gates of the scheduler that are accepted and switch nothing here; the reason is logged.
NO_EFFECT: Mapping[str, str] = {
    "InterPodAffinityHostnameFastPath": "it only changes speed, and hostnames are counted in columns anyway",
    "SchedulerPreQueueingHints": "it only changes speed: for which pods hints are called first, not the result",
}

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True, slots=True)
class Gates:
    """The state of every gate."""

    states: Mapping[str, bool]
    emulated: Version = NEWEST
    asked: frozenset[str] = frozenset()  # set by the user, as opposed to defaulted

    def is_enabled(self, name: str) -> bool:
        """Return whether a gate is on; KeyError for an unknown name."""
        return self.states[name]

    @property
    def behaviour(self) -> Behaviour:
        """Return the behaviour of the emulated release that no gate switches."""
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
        """Read the gates for the newest recorded release that has all of them; for commands without a cluster that tells its
        release. If no release has them, raise the error of the newest one."""
        texts = [text] if isinstance(text, str) else list(text)
        # GangScheduling, say, is gone in 1.37. Someone who switches it on means 1.36, and need not say so a second time.
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
        """Return the gates with these set and the others at their default; raise ConfigError."""
        # Unknown names first, one at a time, as flags are parsed one by one; what is wrong with known gates is reported
        # together.
        unknown = next((name for name in asked if name not in GATES or spec_of(name, emulated).stage is Stage.GONE), None)
        if unknown is not None:
            raise ConfigError("", f"unrecognized feature gate: {unknown}")
        errors = [text for name, value in asked.items() if (text := _refusal(name, value, emulated, min_compatibility))]
        if errors:
            raise ConfigError("", aggregate(errors))
        states = {name: spec_of(name, emulated).default for name in GATES}
        # AllAlpha and AllBeta come before single gates, in whatever order they are written: `AllBeta=false,X=true` leaves X on.
        for group, stage in (("AllAlpha", Stage.ALPHA), ("AllBeta", Stage.BETA)):
            if group in asked:
                states |= {name: asked[group] for name in GATES if spec_of(name, emulated).stage is stage}
        states |= asked
        errors = [text for name, needs in NEEDS.items() if (text := _unmet(name, needs, states, emulated))]
        if errors:
            raise ConfigError("", aggregate(errors))
        return cls(_replaced(states, emulated), emulated, frozenset(asked))


def _replaced(states: dict[str, bool], emulated: Version) -> dict[str, bool]:
    """Set removed gates to the state of the gate that replaced them."""
    gone = {old: states[new] for old, new in REPLACED_BY.items() if spec_of(old, emulated).stage is Stage.GONE}
    return states | gone


def spec_of(name: str, emulated: Version) -> Spec:
    """Return stage and default of a gate at a version."""
    # The newest entry that the emulated release has reached. Without one the gate does not exist yet.
    return next((spec for spec in reversed(GATES[name]) if spec.since <= emulated), _ABSENT)


def known_gates(emulated: Version = NEWEST) -> list[str]:
    """Return the lines of the usage text: alpha and beta gates with stage and default."""
    lines = []
    for name in GATES:
        spec = spec_of(name, emulated)
        if spec.stage in (Stage.ALPHA, Stage.BETA):
            lines.append(f"kube:{name}=true|false ({spec.stage.value} - default={_go(spec.default)})")
    return sorted(lines)


def read_pairs(texts: Iterable[str]) -> dict[str, bool]:
    """Return the values in `A=true,B=false` or `kube:A=true`, without a check that the gates exist."""
    # Two passes: whether prefixes are mixed can be said only when all of them are read.
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
    """Return why a gate cannot be set to a value, empty if it can: it is locked, or newer than the emulated version."""
    spec = spec_of(name, emulated)
    if spec.locked and spec.default != value:
        return f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(spec.default)}"
    # The gate is known to this program and newer than the release that it emulates.
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
