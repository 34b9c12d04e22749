"""Policy files, algorithm providers, predicates and priorities of older releases, on the same columns."""

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

__all__ = [
    "CONFIG_MAP_KEY", "LATEST", "RELEASES", "Algorithm", "Custom", "LegacyGates", "Options", "Policy", "Registry",
    "Release", "load_policy", "profile_from_policy", "profile_from_provider", "register_algorithm_provider",
    "register_fit_predicate", "register_priority", "release_of",
]
