"""Names to predicates and priorities: the built-in ones of a release, and those that users register.

`register_fit_predicate` and `register_priority` add a Python function under a name, which a Policy can then use. A scheduler is
built from a `Registry`: the names of the release, then the registered ones, which replace built-in ones of the same name. An
invalid or unknown name is a ConfigError with the old text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kubesched.errors import ConfigError
from kubesched.scheduler.framework import Handle, Plugin
from kubesched.scheduler.legacy.algorithms import PREDICATES, PRIORITIES, PredicateFactory, PriorityFactory
from kubesched.scheduler.legacy.custom_functions import (
    FitFunction,
    FitFunctionFactory,
    FunctionPredicate,
    FunctionPriority,
    ListFunctionFactory,
    ListPriority,
    MapFunction,
    MapReduceFactory,
    MetadataProducerFactory,
    MetadataSource,
    PluginFactoryArgs,
    Precomputation,
    ReduceFunction,
)
from kubesched.scheduler.legacy.policies.providers import known_to, providers_of
from kubesched.scheduler.legacy.predicates.base import named
from kubesched.scheduler.legacy.releases import LegacyContext, LegacyGates, Release

_NAME = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"
_NAME_SYNTAX = re.compile(_NAME)


def _checked(name: str) -> str:
    if not _NAME_SYNTAX.fullmatch(name):
        raise ConfigError("", f'Algorithm name {name} does not match the name validation regexp "{_NAME}".')
    return name


@dataclass(slots=True)
class PriorityEntry:
    """A priority and its default weight."""

    factory: PriorityFactory
    weight: int


@dataclass(slots=True)
class Custom:
    """What users registered, for all releases."""

    predicates: dict[str, PredicateFactory] = field(default_factory=dict)
    mandatory: set[str] = field(default_factory=set)
    priorities: dict[str, PriorityEntry] = field(default_factory=dict)
    providers: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)
    precomputations: dict[str, Precomputation] = field(default_factory=dict)
    metadata_producer: MetadataProducerFactory | None = None

    def __len__(self) -> int:
        return len(self.predicates) + len(self.priorities) + len(self.providers) + len(self.precomputations)

    def register_fit_predicate(self, name: str, function: FitFunction, *, mandatory: bool = False) -> str:
        """Register `function(pod, node)`, which returns whether a pod fits a node; return the name."""
        return self.register_fit_predicate_factory(name, lambda args: function, mandatory=mandatory)

    def register_fit_predicate_factory(self, name: str, factory: FitFunctionFactory, *, mandatory: bool = False) -> str:
        """Register `factory(args)`, which gets listers and returns such a function; return the name.

        A function with three parameters, `function(pod, metadata, node)`, also gets the metadata of the attempt.
        """
        cls = named(FunctionPredicate, _checked(name))
        self.predicates[name] = lambda context, handle: [cls(context, handle, factory, self._metadata_source)]
        if mandatory:
            self.mandatory.add(name)
        return name

    def register_priority(self, name: str, function: MapFunction, weight: int = 1, reduce: ReduceFunction | None = None) -> str:
        """Register `function(pod, node)`, which scores a node from 0 to the release's maximum; return the name."""
        return self.register_priority_factory(name, lambda args: (function, reduce), weight)

    def register_priority_factory(self, name: str, factory: MapReduceFactory, weight: int = 1) -> str:
        """Register `factory(args)`, which gets listers and returns a map function, and a reduce function or None."""
        cls = named(FunctionPriority, _checked(name))
        self.priorities[name] = PriorityEntry(lambda context, handle: cls(context, handle, factory), weight)
        return name

    def register_list_priority(self, name: str, factory: ListFunctionFactory, weight: int = 1) -> str:
        """Register `factory(args)`, which returns the oldest form: `function(pod, nodes)` with a score by node name."""
        cls = named(ListPriority, _checked(name))
        self.priorities[name] = PriorityEntry(lambda context, handle: cls(context, handle, factory), weight)
        return name

    def register_predicate_precomputation(self, name: str, function: Precomputation) -> None:
        """Register `function(metadata)`, which completes the metadata once for each attempt."""
        self.precomputations[name] = function

    def register_predicate_metadata_producer(self, factory: MetadataProducerFactory) -> None:
        """Register `factory(args)`, which returns `producer(pod, nodes)`: it makes the metadata instead of `Metadata`."""
        self.metadata_producer = factory

    def _metadata_source(self, args: PluginFactoryArgs) -> MetadataSource:
        return MetadataSource(args, self.metadata_producer, self.precomputations)

    def register_algorithm_provider(self, name: str, predicates: Iterable[str], priorities: Iterable[str]) -> str:
        """Register a set of predicates and priorities as a provider; return the name."""
        self.providers[_checked(name)] = (set(predicates), set(priorities))
        return name


CUSTOM = Custom()
"""What the module's `register_...` functions add to, and the default of `Options.custom`."""

register_fit_predicate = CUSTOM.register_fit_predicate
register_priority = CUSTOM.register_priority
register_algorithm_provider = CUSTOM.register_algorithm_provider
register_fit_predicate_factory = CUSTOM.register_fit_predicate_factory
register_priority_factory = CUSTOM.register_priority_factory
register_list_priority = CUSTOM.register_list_priority
register_predicate_precomputation = CUSTOM.register_predicate_precomputation
register_predicate_metadata_producer = CUSTOM.register_predicate_metadata_producer


class Registry:
    """The names that one scheduler of a release knows."""

    def __init__(self, release: Release, gates: LegacyGates | None = None, custom: Custom | None = None) -> None:
        self.release = release
        custom = CUSTOM if custom is None else custom
        names = known_to(release, gates or LegacyGates.of(release))
        self.predicates: dict[str, PredicateFactory] = {name: PREDICATES[name] for name in names.predicates}
        self.predicates.update(custom.predicates)
        self.mandatory = names.mandatory_predicates | custom.mandatory
        self.priorities = {name: PriorityEntry(PRIORITIES[name], weight) for name, weight in names.priorities.items()}
        self.priorities.update({name: PriorityEntry(e.factory, e.weight) for name, e in custom.priorities.items()})
        self.providers = {**providers_of(names), **custom.providers}

    # Changing

    def add_predicate(self, name: str, factory: PredicateFactory) -> str:
        """Register a predicate under a name; return the name."""
        self.predicates[_checked(name)] = factory
        return name

    def add_priority(self, name: str, factory: PriorityFactory, weight: int) -> str:
        """Register a priority under a name; return the name."""
        self.priorities[_checked(name)] = PriorityEntry(factory, weight)
        return name

    # Looking up

    def provider(self, name: str) -> tuple[set[str], set[str]]:
        """Return the predicates and priorities of a provider."""
        if name not in self.providers:
            raise ConfigError(
                "",
                f'provider "{name}" is not registered'
                if self.release.minor >= 17
                else f'plugin "{name}" has not been registered',
            )
        return self.providers[name]

    def build_predicate(self, name: str, context: LegacyContext, handle: Handle) -> list[Plugin]:
        """Return the plugins of a predicate."""
        if name not in self.predicates:
            raise ConfigError("", f'{self._invalid} predicate name "{name}" specified - no corresponding function found')
        return self.predicates[name](context, handle)

    def priority(self, name: str) -> PriorityEntry:
        """Return a priority and its weight."""
        if name not in self.priorities:
            raise ConfigError("", f"{self._invalid} priority name {name} specified - no corresponding function found")
        return self.priorities[name]

    @property
    def _invalid(self) -> str:
        return "invalid" if self.release.minor >= 17 else "Invalid"
