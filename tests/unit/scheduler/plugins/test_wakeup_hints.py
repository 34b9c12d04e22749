"""What the node plugins' hints say to changes that may, or cannot, help a pod they refused; one sentence a case.

The golden family wakeups runs the whole road; here stand the corners that random clusters rarely reach.
"""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework.runtime.building import build_profile
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE


def pod(
    name: str = "p",
    *,
    namespace: str = "a",
    node: str = "",
    nominated: str = "",
    labels: Any = None,
    cpu: str = "",
    memory: str = "",
    port: int = 0,
    **spec: Any,
) -> dict[str, Any]:
    requests = {resource: amount for resource, amount in (("cpu", cpu), ("memory", memory)) if amount}
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": requests}, "ports": ports}], **spec},
        "status": {"nominatedNodeName": nominated},
    }


def node(
    *,
    cpu: str = "4",
    pods: str = "10",
    labels: Any = None,
    taints: Any = (),
    cordoned: bool = False,
    features: Any = (),
    **more: str,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"allocatable": {"cpu": cpu, "pods": pods, **more}, "declaredFeatures": list(features)},
    }


def near(label: str, *, key: str = "zone", operator: str = "In", anti: bool = False) -> dict[str, Any]:
    values = {"values": [label]} if operator in ("In", "NotIn") else {}
    term = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": operator, **values}]}, "topologyKey": key}
    group = "podAntiAffinity" if anti else "podAffinity"
    return {group: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
WEB, DB = {"app": "web"}, {"app": "db"}
HARD = {"key": "gpu", "effect": "NoSchedule"}
SOFT = {"key": "gpu", "effect": "PreferNoSchedule"}
TOLERATES = [{"key": "gpu", "operator": "Exists"}]
CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
WEB_POD, DB_POD = pod("x", node="n", labels=WEB), pod("x", node="n", labels=DB)
LIKES_WEB, HATES_WEB = pod(affinity=near("web")), pod(affinity=near("web", anti=True))
SPREADS = pod(topologySpreadConstraints=[SPREAD])
WANTS_SSD = pod(nodeSelector={"disk": "ssd"})
TOLERANT = pod(tolerations=TOLERATES)
IN_ZONE, ON_SSD = node(labels={"zone": "z"}), node(labels={"disk": "ssd"})

FIT = "NodeResourcesFit"
WANTS = "NodeAffinity"
CLOSED = "NodeUnschedulable"
TAINTS = "TaintToleration"
PORTS = "NodePorts"
EVEN = "PodTopologySpread"
NEAR = "InterPodAffinity"
NEEDS = "NodeDeclaredFeatures"
EVICTS = "DefaultPreemption"

HINTS: dict[tuple[str, str], list[tuple[str, dict[str, Any], Any, Any, bool]]] = {
    (FIT, "pod_went"): [
        ("a placed pod that went frees something", pod(), pod("x", node="n"), None, True),
        ("a nominated pod that went frees something", pod(), pod("x", nominated="n"), None, True),
        ("a pending pod that went frees nothing", pod(), pod("x"), None, False),
    ],
    (FIT, "pod_shrank"): [
        (
            "a pod that shrank frees what it gave back",
            pod(cpu="1"),
            pod("x", node="n", cpu="2"),
            pod("x", node="n", cpu="1"),
            True,
        ),
        (
            "a pod that gave back what nobody wants helps nobody",
            pod(memory="1Gi"),
            pod("x", node="n", cpu="2"),
            pod("x", node="n", cpu="1"),
            False,
        ),
        ("a pending pod that shrank helps no other", pod(cpu="1"), pod("x", cpu="2"), pod("x", cpu="1"), False),
        ("a pod that shrank helps itself", pod(cpu="1"), pod(cpu="2"), pod(cpu="1"), True),
    ],
    (FIT, "node_grew"): [
        ("a new node that is large enough helps", pod(cpu="4"), None, node(), True),
        ("a new node that is too small does not", pod(cpu="5"), None, node(), False),
        ("a new node that takes no pods does not", pod(), None, node(pods="0"), False),
        ("more of what is wanted helps", pod(cpu="1"), node(), node(cpu="5"), True),
        ("more of something else does not", pod(cpu="1"), node(), node(memory="1Gi"), False),
        ("room for more pods always helps", pod(), node(), node(pods="11"), True),
        ("a pod that asks for nothing is not helped by more cpu", pod(), node(), node(cpu="9"), False),
    ],
    (WANTS, "matches_now"): [
        ("a new node that matches helps", WANTS_SSD, None, ON_SSD, True),
        ("a new node that does not match does not", WANTS_SSD, None, node(), False),
        ("a node that matches at last helps", WANTS_SSD, node(), ON_SSD, True),
        ("a node that matched all along does not", WANTS_SSD, ON_SSD, node(labels={"disk": "ssd", "a": "b"}), False),
    ],
    (CLOSED, "is_open_now"): [
        ("an open new node helps", pod(), None, node(), True),
        ("a closed new node does not", pod(), None, node(cordoned=True), False),
        ("a node that was opened helps", pod(), node(cordoned=True), node(), True),
        ("a node that was open all along does not", pod(), node(), node(taints=[HARD]), False),
    ],
    (CLOSED, "tolerates_now"): [
        ("a pod that now tolerates the cordon is helped", pod(tolerations=CORDON), pod(), pod(tolerations=CORDON), True),
        ("a pod that now tolerates something else is not", TOLERANT, pod(), TOLERANT, False),
        ("another pod's toleration helps nobody else", pod(), pod("x"), pod("x", tolerations=CORDON), False),
    ],
    (TAINTS, "is_tolerated_now"): [
        ("a taint that went away helps", pod(), node(taints=[HARD]), node(), True),
        ("a taint that became soft helps", pod(), node(taints=[HARD]), node(taints=[SOFT]), True),
        ("a node that was tolerated all along does not help", TOLERANT, node(taints=[HARD]), node(), False),
        ("a new node with a hard taint does not", pod(), None, node(taints=[HARD]), False),
    ],
    (PORTS, "frees_a_port"): [
        ("a freed port helps who wants it", pod(port=80), pod("x", node="n", port=80), None, True),
        ("another freed port does not", pod(port=80), pod("x", node="n", port=81), None, False),
        ("a pending pod had no port to free", pod(port=80), pod("x", port=80), None, False),
    ],
    (EVEN, "pod_may_help"): [
        ("a pod that is counted came", SPREADS, None, WEB_POD, True),
        ("a pod that is not counted came", SPREADS, None, DB_POD, False),
        ("a pod of another namespace is not counted", SPREADS, None, pod("x", namespace="b", node="n", labels=WEB), False),
        ("a pod that is no longer counted helps", SPREADS, WEB_POD, DB_POD, True),
        ("labels that nobody counts by do not help", SPREADS, WEB_POD, pod("x", node="n", labels={**WEB, "a": "b"}), False),
        (
            "the pod's own toleration helps where taints are honoured",
            pod(topologySpreadConstraints=[{**SPREAD, "nodeTaintsPolicy": "Honor"}], tolerations=TOLERATES),
            pod(),
            TOLERANT,
            True,
        ),
        (
            "and does not where they are ignored",
            pod(topologySpreadConstraints=[SPREAD], tolerations=TOLERATES),
            pod(),
            TOLERANT,
            False,
        ),
    ],
    (EVEN, "node_may_help"): [
        ("a node of a domain went", SPREADS, IN_ZONE, None, True),
        ("a node outside all domains went", SPREADS, node(), None, False),
        ("a node moved to another domain", SPREADS, IN_ZONE, node(labels={"zone": "y"}), True),
        ("a node of a domain has other taints", SPREADS, IN_ZONE, node(labels={"zone": "z"}, taints=[HARD]), True),
        ("a node outside all domains has other taints", SPREADS, node(), node(taints=[HARD]), False),
    ],
    (NEAR, "pod_may_help"): [
        ("the pod that was looked for came", LIKES_WEB, None, WEB_POD, True),
        ("it came without a place", LIKES_WEB, None, pod("x", labels=WEB), False),
        ("another pod came", LIKES_WEB, None, DB_POD, False),
        ("the hated pod went", HATES_WEB, WEB_POD, None, True),
        ("a pod went that hated this one", pod(labels=WEB), pod("x", node="n", affinity=near("web", anti=True)), None, True),
        ("the hated pod changed its labels", HATES_WEB, WEB_POD, DB_POD, True),
        ("the pod itself changed its labels", pod(labels=DB), pod(labels=WEB), pod(labels=DB), True),
        ("a term that cannot be read may be about anybody", pod(affinity=near("web", operator="Like")), None, DB_POD, True),
        (
            "a pod went whose own dislikes cannot be read",
            pod(),
            pod("x", node="n", affinity=near("web", operator="Like", anti=True)),
            None,
            True,
        ),
        (
            "a likeness that cannot be read is no dislike",
            pod(),
            pod("x", node="n", affinity=near("web", operator="Like")),
            None,
            False,
        ),
    ],
    (NEAR, "node_may_help"): [
        ("a term that cannot be read may be about any node", pod(affinity=near("web", operator="Like")), None, node(), True),
        ("a node came into the topology", LIKES_WEB, None, IN_ZONE, True),
        ("a node came outside the topology", LIKES_WEB, None, node(), False),
        ("any node that came may be free of the hated", HATES_WEB, None, node(), True),
        ("a node left the topology of the hated", HATES_WEB, IN_ZONE, node(), True),
        ("a node came into the topology of the hated", HATES_WEB, node(), IN_ZONE, False),
    ],
    (NEEDS, "declares_other_features"): [
        ("a node declares other features", pod(), node(), node(features=["f"]), True),
        ("a node declares the same", pod(), node(features=["f"]), node(features=["f"]), False),
    ],
    (NEEDS, "needs_other_features"): [
        ("the pod needs another feature now", pod(), pod(), pod(hostNetwork=True, hostUsers=False), True),
        ("another pod needs another feature", pod(), pod("x"), pod("x", hostNetwork=True, hostUsers=False), False),
    ],
    (EVICTS, "pod_went"): [("who goes does not matter to the preemptor's gate", pod(), pod("x", node="n"), None, False)],
}
"""By plugin and hint: a sentence, the pod that waits, what was, what is, and whether that may help."""

STORE = Store()
_DEFAULTS = config.defaults(gates=Gates.defaults(), registry=IN_TREE_CATALOGUE)
PLUGINS = {
    plugin.name: plugin
    for plugin in build_profile(_DEFAULTS.profiles[0], Registry(*IN_TREE), EngineHandle(STORE.objects)).plugins
}


def decoded(raw: dict[str, Any] | None) -> Pod | Node | None:
    return codec.decode(raw) if raw is not None else None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("plugin", "hint", "waiting", "old", "new", "helps"),
    [pytest.param(*names, *case, id=f"{names[0]}: {sentence}") for names, cases in HINTS.items() for sentence, *case in cases],
)
def test_hint(plugin: str, hint: str, waiting: dict[str, Any], old: Any, new: Any, helps: bool) -> None:
    view = STORE.view(codec.convert(waiting, Pod))
    assert hint in {wakeup.hint for wakeup in PLUGINS[plugin].wakeups() or ()}
    assert getattr(PLUGINS[plugin], hint)(view, decoded(old), decoded(new)) is helps
