"""The texts of the old releases: the message of a pod that fits no node (`fit_error`), and their log lines (`say_...`).

    1.4     pod (web) failed to fit in any node\nfit failure on node (n1): PodFitsHostPorts\n
    1.6     No nodes are available that match all of the following predicates:: PodFitsHostPorts (1).
    1.13    0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.

A node that was not listed (up to 1.6) is not mentioned, and neither is the result of preemption. Log lines are printed at the
verbosity of then; where Go printed a struct in its own notation, JSON is printed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec
import numpy as np

from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.config import encode
from kubesched.scheduler.engine import NO_NODES, Ties
from kubesched.scheduler.framework import Diagnosis, LevelRows
from kubesched.scheduler.legacy.framework_plugins import Framework
from kubesched.scheduler.legacy.policies.policy import Policy
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER
from kubesched.scheduler.legacy.releases import Release
from kubesched.telemetry.logs import logger


def fit_error(pod: PodView, diagnosis: Diagnosis, release: Release) -> str:
    """Return the message of a pod that fits no node."""
    statuses = diagnosis.statuses()
    if not diagnosis.n_nodes or (release.lists_ready_nodes and not statuses):
        return NO_NODES
    if release.minor < 5:
        lines = [f"fit failure on node ({node}): {', '.join(status.reasons)}\n" for node, status in sorted(statuses.items())]
        return f"pod ({pod.name}) failed to fit in any node\n{''.join(lines)}"
    if release.minor < 10:
        counts: dict[str, int] = {}
        for status in statuses.values():
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        listed = ", ".join(sorted(f"{reason} ({count})" for reason, count in counts.items()))
        return f"No nodes are available that match all of the following predicates:: {listed}."
    if diagnosis.pre_filter_message:
        return f"0/{diagnosis.n_nodes} nodes are available: {diagnosis.pre_filter_message}."
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in diagnosis.histogram().items()))
    return f"0/{diagnosis.n_nodes} nodes are available: {listed}."


log = logger(__name__)
_plain = logging.getLogger(__name__)  # they printed sentences, not keys and values
SCORES = 10
"""The verbosity at which the score of every node is logged."""


def say_start(release: Release, version: str) -> None:
    """Log the version, the first line of 1.13 and 1.17."""
    if release.minor >= 17:
        _say(1, f"Starting Kubernetes Scheduler version {version}")
    elif release.minor >= 10:
        _say(0, f"Version: {version}")


def say_provider(name: str) -> None:
    """Log the algorithm provider."""
    _say(2, f"Creating scheduler from algorithm provider '{name}'")


def say_policy(policy: Policy, release: Release) -> None:
    """Log a policy, entry by entry."""
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
    """Log the predicates and priorities that run. Kept quirk: 1.6 does not close the last quote."""
    if release.minor >= 6:
        end = "'" if release.minor >= 10 else ""
        _say(2, f"Creating scheduler with fit predicates '{_set(predicates)}' and priority functions '{_set(priorities)}{end}")


def say_framework(framework: Framework) -> None:
    """Log the final plugins and their configuration."""
    if log.level >= 2:
        _say(2, f"The final configuration of the framework: {msgspec.json.encode(framework.document()).decode()}")


def say_precomputation(name: str) -> None:
    """Log that the metadata of a registered predicate is computed."""
    _say(SCORES, f"Precompute: {name}")


class SayingTies:
    """Logs the scores of all nodes, then chooses as another `Ties` does."""

    __slots__ = ("_others", "_text")

    def __init__(self, others: Ties, release: Release) -> None:
        self._others = others
        self._text = "Host {} Score {}" if release.minor < 6 else "Host {} => Score {}"

    @property
    def chooser(self) -> str:
        """Return the name of the way of choosing."""
        return self._others.chooser

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the chosen row."""
        for row in np.flatnonzero(totals >= 0).tolist():
            _say(SCORES, self._text.format(nodes.name(row), int(totals[row])))
        return self._others.best(pod, totals, nodes, level)


def saying(ties: Ties, release: Release) -> Ties:
    """Return the ties, with a log of all scores if the log is that verbose."""
    return SayingTies(ties, release) if log.level >= SCORES else ties


def _say(verbosity: int, text: str) -> None:
    if log.level >= verbosity:
        _plain.info("%s", text)


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(encode(value)).decode()


def _set(names: Iterable[str]) -> str:
    return f"map[{' '.join(f'{name}:{{}}' for name in sorted(names))}]"
