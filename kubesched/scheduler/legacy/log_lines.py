"""What the schedulers of then wrote to their logs while they were made and while they scored, in each release's words.

In: what is being built or was decided. Out: log lines, at the verbosity of then. Nothing here is read by the program. Where Go
printed a value with its own notation, sets are printed as Go prints them and policies as JSON, which can be read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec
import numpy as np

from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.config import encode
from kubesched.scheduler.engine import Ties
from kubesched.scheduler.framework import LevelRows
from kubesched.scheduler.legacy.framework_plugins import Framework
from kubesched.scheduler.legacy.policies.policy import Policy
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER
from kubesched.scheduler.legacy.releases import Release
from kubesched.telemetry.logs import logger

log = logger(__name__)
_plain = logging.getLogger(__name__)  # they printed sentences, not keys and values
SCORES = 10
"""The verbosity at which every node's score is said."""


def say_start(release: Release, version: str) -> None:
    """Say what is running, as 1.13 and 1.17 did first of all."""
    if release.minor >= 17:
        _say(1, f"Starting Kubernetes Scheduler version {version}")
    elif release.minor >= 10:
        _say(0, f"Version: {version}")


def say_provider(name: str) -> None:
    """Say that a provider is asked."""
    _say(2, f"Creating scheduler from algorithm provider '{name}'")


def say_policy(policy: Policy, release: Release) -> None:
    """Say what a policy asks for, entry by entry."""
    if log.level < 2:
        return
    _say(2, f"Creating scheduler from configuration: {_json(policy)}")
    if policy.predicates is None and release.absent_means_default:
        _say(2, f"Using predicates from algorithm provider '{DEFAULT_PROVIDER}'")
    for predicate in policy.predicates or ():
        _say(2, f"Registering predicate: {predicate.name}")
    if policy.priorities is None and release.absent_means_default:
        _say(2, f"Using priorities from algorithm provider '{DEFAULT_PROVIDER}'")
    for priority in policy.priorities or ():
        _say(2, f"Registering priority: {priority.name}")
    for extender in policy.extenders:
        _say(2, f"Creating extender with config {_json(extender)}")


def say_keys(predicates: Iterable[str], priorities: Iterable[str], release: Release) -> None:
    """Say which predicates and priorities run; the quote that 1.6 forgot to close is kept."""
    if release.minor >= 6:
        end = "'" if release.minor >= 10 else ""
        _say(2, f"Creating scheduler with fit predicates '{_set(predicates)}' and priority functions '{_set(priorities)}{end}")


def say_framework(framework: Framework) -> None:
    """Say what the final plugins are, and what they are told."""
    if log.level >= 2:
        _say(2, f"The final configuration of the framework: {msgspec.json.encode(framework.document()).decode()}")


def say_precomputation(name: str) -> None:
    """Say that a predicate's own metadata is computed."""
    _say(SCORES, f"Precompute: {name}")


class SayingTies:
    """Chooses as another does, and says every node's score before."""

    __slots__ = ("_others", "_text")

    def __init__(self, others: Ties, release: Release) -> None:
        self._others = others
        self._text = "Host {} Score {}" if release.minor < 6 else "Host {} => Score {}"

    @property
    def chooser(self) -> str:
        """Return who chooses."""
        return self._others.chooser

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the row that the other chooses."""
        for row in np.flatnonzero(totals >= 0).tolist():
            _say(SCORES, self._text.format(nodes.name(row), int(totals[row])))
        return self._others.best(pod, totals, nodes, level)


def saying(ties: Ties, release: Release) -> Ties:
    """Return how a node is chosen, with every score said if the log is that verbose."""
    return SayingTies(ties, release) if log.level >= SCORES else ties


def _say(verbosity: int, text: str) -> None:
    if log.level >= verbosity:
        _plain.info("%s", text)


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(encode(value)).decode()


def _set(names: Iterable[str]) -> str:
    return f"map[{' '.join(f'{name}:{{}}' for name in sorted(names))}]"
