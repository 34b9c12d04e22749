"""The schedulers of Kubernetes 1.3 to 1.17: policy files, algorithm providers, predicates and priorities, on today's engine.

    load_policy(text, version) -> Policy                                   policies/policy, checked by
    policies/policy_validation profile_from_policy(policy, handle, version, options) -> Algorithm     which names run:
    policies/selection, policies/providers profile_from_provider(name, handle, version, options) -> Algorithm     names to
    plugins: registry, algorithms convert_policy(policy, version) -> Conversion                          today's configuration
    for a policy LegacyScheduler                                                        a whole scheduler: flags, files, queue,
    extenders

A predicate becomes a Filter plugin (`predicates`), a priority a Score plugin (`priorities`), and `profile` puts them into a
profile.
"""

from kubesched.scheduler.legacy.custom_functions import PluginFactoryArgs
from kubesched.scheduler.legacy.policies.componentconfig import ComponentConfig, load_component_config
from kubesched.scheduler.legacy.policies.convert import Conversion, convert_policy
from kubesched.scheduler.legacy.policies.policy import CONFIG_MAP_KEY, Policy, load_policy
from kubesched.scheduler.legacy.policies.sources import (
    FromConfigMap,
    FromFile,
    FromProvider,
    PolicyFlags,
    no_config_map,
    policy_from_config_map,
    policy_from_file,
    source_of,
)
from kubesched.scheduler.legacy.profile import Algorithm, Options, profile_from_policy, profile_from_provider
from kubesched.scheduler.legacy.registry import (
    Custom,
    Registry,
    register_algorithm_provider,
    register_fit_predicate,
    register_fit_predicate_factory,
    register_list_priority,
    register_predicate_metadata_producer,
    register_predicate_precomputation,
    register_priority,
    register_priority_factory,
)
from kubesched.scheduler.legacy.releases import LATEST, RELEASES, LegacyGates, Release, release_of
from kubesched.scheduler.legacy.scheduler import LegacyScheduler
from kubesched.scheduler.legacy.ties import ties_of
from kubesched.scheduler.legacy.wording import fit_error

__all__ = [
    "CONFIG_MAP_KEY",
    "LATEST",
    "RELEASES",
    "Algorithm",
    "ComponentConfig",
    "Conversion",
    "Custom",
    "FromConfigMap",
    "FromFile",
    "FromProvider",
    "LegacyGates",
    "LegacyScheduler",
    "Options",
    "PluginFactoryArgs",
    "Policy",
    "PolicyFlags",
    "Registry",
    "Release",
    "convert_policy",
    "fit_error",
    "load_component_config",
    "load_policy",
    "no_config_map",
    "policy_from_config_map",
    "policy_from_file",
    "profile_from_policy",
    "profile_from_provider",
    "register_algorithm_provider",
    "register_fit_predicate",
    "register_fit_predicate_factory",
    "register_list_priority",
    "register_predicate_metadata_producer",
    "register_predicate_precomputation",
    "register_priority",
    "register_priority_factory",
    "release_of",
    "source_of",
    "ties_of",
]
