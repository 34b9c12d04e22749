"""Policy files, algorithm providers, predicates and priorities of older releases, on the same columns."""

from kubesched.legacy.choosing import ties_of
from kubesched.legacy.convert import Conversion, convert_policy
from kubesched.legacy.policy import CONFIG_MAP_KEY, Policy, load_policy
from kubesched.legacy.profile import Algorithm, Options, profile_from_policy, profile_from_provider
from kubesched.legacy.registry import (
    Custom,
    Registry,
    register_algorithm_provider,
    register_fit_predicate,
    register_priority,
)
from kubesched.legacy.releases import LATEST, RELEASES, LegacyGates, Release, release_of
from kubesched.legacy.wording import fit_error

__all__ = [
    "CONFIG_MAP_KEY", "LATEST", "RELEASES", "Algorithm", "Conversion", "Custom", "LegacyGates", "Options", "Policy",
    "Registry", "Release", "convert_policy", "fit_error", "load_policy", "profile_from_policy",
    "profile_from_provider", "register_algorithm_provider", "register_fit_predicate", "register_priority",
    "release_of", "ties_of",
]
