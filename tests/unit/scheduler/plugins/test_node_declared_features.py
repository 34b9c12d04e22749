"""NodeDeclaredFeatures."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.plugins import NodeDeclaredFeatures
from kubesched.testing import node

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
LACKING = ("UnschedulableAndUnresolvable", ["node(s) didn't match Pod's required features"])


def wanting(**spec: Any) -> Pod:
    return codec.convert(
        {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"containers": [{"name": "c"}], **spec}}, Pod
    )


RULES = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}


@pytest.mark.parametrize(
    ("sentence", "wanted", "fits"),
    [
        ("restart rules", wanting(containers=[{"name": "c", **RULES}]), ["restart", "both"]),
        ("restart rules of an init container", wanting(initContainers=[{"name": "i", **RULES}]), ["restart", "both"]),
        ("user namespaces on the host's network", wanting(hostNetwork=True, hostUsers=False), ["users", "both"]),
        ("both", wanting(hostNetwork=True, hostUsers=False, initContainers=[{"name": "i", **RULES}]), ["both"]),
    ],
)
def test_a_feature_that_a_pod_makes_use_of_must_be_declared(sentence: str, wanted: Pod, fits: list[str]) -> None:
    bench = Bench(
        NodeDeclaredFeatures,
        node("none", features=["Tomorrow"]),
        node("restart", features=[RESTART]),
        node("users", features=[USERS, "Tomorrow"]),
        node("both", features=[USERS, RESTART]),
    )
    refused = bench.refusals(wanted)
    assert [name for name in bench.store.snapshot().names if name not in refused] == fits, sentence
    assert set(map(str, refused.values())) <= {str(LACKING)}


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("nothing special", wanting()),
        ("host users on the host's network", wanting(hostNetwork=True, hostUsers=True)),
        ("host users not said", wanting(hostNetwork=True)),
        ("user namespaces on the pod's own network", wanting(hostUsers=False)),
        ("a rule to restart one container", wanting(containers=[{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}])),
    ],
)
def test_other_pods_are_not_asked_about(sentence: str, wanted: Pod) -> None:
    assert Bench(NodeDeclaredFeatures, node("a")).pre_filter(wanted) == "Skip", sentence
