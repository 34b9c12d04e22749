"""The lines that the write-ups quote, in the words of the release."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest
from legacy_clusters import node, pod

from kubesched.kube.api import codec
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.assembly import Ports, new_handle
from kubesched.scheduler.legacy import (
    ComponentConfig,
    LegacyScheduler,
    load_policy,
    profile_from_policy,
    profile_from_provider,
    release_of,
)
from kubesched.scheduler.legacy.wording import say_start
from kubesched.telemetry.logs import set_verbosity


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    caplog.set_level(logging.INFO)
    set_verbosity(10)
    yield caplog
    set_verbosity(0)


POLICY = """{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}],
 "priorities": [{"name": "EqualPriority", "weight": 2}],
 "extenders": [{"urlPrefix": "http://e", "filterVerb": "f", "enableHttps": false}]}"""

MADE = [
    ("1.4", ""),
    ("1.6", "Creating scheduler with fit predicates 'map[HostName:{}]' and priority functions 'map[EqualPriority:{}]"),
    ("1.13", "Creating scheduler with fit predicates 'map[HostName:{}]' and priority functions 'map[EqualPriority:{}]'"),
    ("1.17", "Creating scheduler with fit predicates 'map[HostName:{}]' and priority functions 'map[]'"),
]


@pytest.mark.parametrize(("version", "keys"), MADE, ids=[case[0] for case in MADE])
def test_how_a_scheduler_is_made_from_a_policy(version: str, keys: str, said: pytest.LogCaptureFixture) -> None:
    handle = new_handle(config.Gates.defaults(), Ports())[1]
    profile_from_policy(load_policy(POLICY, version), handle, version)
    lines = said.messages
    assert lines[0].startswith('Creating scheduler from configuration: {"predicates":[{"name":"HostName"}]')
    assert lines[1:3] == ["Registering predicate: HostName", "Registering priority: EqualPriority"]
    assert lines[3].startswith('Creating extender with config {"urlPrefix":"http://e"')
    assert (lines[4] if len(lines) > 4 else "") == keys


def test_what_a_policy_leaves_out_is_the_providers(said: pytest.LogCaptureFixture) -> None:
    handle = new_handle(config.Gates.defaults(), Ports())[1]
    profile_from_policy(load_policy('{"kind": "Policy", "apiVersion": "v1"}', "1.17"), handle, "1.17")
    assert "Using predicates from algorithm provider 'DefaultProvider'" in said.messages
    assert "Using priorities from algorithm provider 'DefaultProvider'" in said.messages


def test_how_a_scheduler_is_made_from_a_provider(said: pytest.LogCaptureFixture) -> None:
    handle = new_handle(config.Gates.defaults(), Ports())[1]
    profile_from_provider("ClusterAutoscalerProvider", handle, "1.17")
    assert said.messages[0] == "Creating scheduler from algorithm provider 'ClusterAutoscalerProvider'"
    assert said.messages[-1].startswith('The final configuration of the framework: {"plugins":{"filter":{"enabled":[{"name"')


SCORED = [("1.4", "Host b Score 7"), ("1.6", "Host b => Score 7"), ("1.17", "Host b => Score 7")]


@pytest.mark.parametrize(("version", "line"), SCORED, ids=[case[0] for case in SCORED])
def test_every_feasible_node_is_said_with_its_score(version: str, line: str, said: pytest.LogCaptureFixture) -> None:
    release = release_of(version)
    ties = LegacyScheduler(release, ComponentConfig().defaulted(release)).ties(0)
    store = Store()
    for name in ("a", "b"):
        store.put_node(codec.decode(node(name)))
    nodes, refused = store.snapshot(), -1
    totals = np.array([7 if nodes.name(row) == "b" else refused for row in range(nodes.n)])
    assert nodes.name(ties.best(store.view(codec.decode(pod("p"))), totals, nodes)) == "b"
    assert said.messages == [line]


START = [("1.6", []), ("1.13", ["Version: v1"]), ("1.17", ["Starting Kubernetes Scheduler version v1"])]


@pytest.mark.parametrize(("version", "lines"), START, ids=[case[0] for case in START])
def test_the_first_words(version: str, lines: list[str], said: pytest.LogCaptureFixture) -> None:
    say_start(release_of(version), "v1")
    assert said.messages == lines


def test_a_quiet_log_says_nothing_of_it(said: pytest.LogCaptureFixture) -> None:
    set_verbosity(0)
    profile_from_provider("", new_handle(config.Gates.defaults(), Ports())[1], "1.17")
    say_start(release_of("1.17"), "v1")
    assert said.messages == []
