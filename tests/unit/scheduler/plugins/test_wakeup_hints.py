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
    name: str = "p", *, namespace: str = "a", node: str = "", nominated: str = "", labels: Any = None, **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
        "spec": {"nodeName": node, "containers": [{"name": "c"}], **spec},
        "status": {"nominatedNodeName": nominated},
    }


def asks(cpu: str | None = None, *, port: int | None = None, **more: str) -> list[dict[str, Any]]:
    requests = {**({"cpu": cpu} if cpu else {}), **more}
    return [
        {"name": "c", "resources": {"requests": requests}, "ports": [{"containerPort": port, "hostPort": port}] if port else []}
    ]


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
HONORING = {**SPREAD, "nodeTaintsPolicy": "Honor"}
WEB, DB = {"app": "web"}, {"app": "db"}
HARD = {"key": "gpu", "effect": "NoSchedule"}
SOFT = {"key": "gpu", "effect": "PreferNoSchedule"}
TOLERATES = [{"key": "gpu", "operator": "Exists"}]
CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
SSD = {"nodeSelector": {"disk": "ssd"}}

SPREADS, HONORS = {"topologySpreadConstraints": [SPREAD]}, {"topologySpreadConstraints": [HONORING]}

FIT = "NodeResourcesFit"
WANTS = "NodeAffinity"
CLOSED = "NodeUnschedulable"
TAINTS = "TaintToleration"
PORTS = "NodePorts"
EVEN = "PodTopologySpread"
NEAR = "InterPodAffinity"
NEEDS = "NodeDeclaredFeatures"
EVICTS = "DefaultPreemption"

CASES: list[tuple[str, str, str, dict[str, Any], Any, Any, bool]] = [
    ("a placed pod that went frees something", FIT, "pod_went", pod(), pod("x", node="n"), None, True),
    ("a nominated pod that went frees something", FIT, "pod_went", pod(), pod("x", nominated="n"), None, True),
    ("a pending pod that went frees nothing", FIT, "pod_went", pod(), pod("x"), None, False),
    (
        "a pod that shrank frees what it gave back",
        FIT,
        "pod_shrank",
        pod(containers=asks("1")),
        pod("x", node="n", containers=asks("2")),
        pod("x", node="n", containers=asks("1")),
        True,
    ),
    (
        "a pod that gave back what nobody wants helps nobody",
        FIT,
        "pod_shrank",
        pod(containers=asks(memory="1Gi")),
        pod("x", node="n", containers=asks("2")),
        pod("x", node="n", containers=asks("1")),
        False,
    ),
    (
        "a pending pod that shrank helps no other",
        FIT,
        "pod_shrank",
        pod(containers=asks("1")),
        pod("x", containers=asks("2")),
        pod("x", containers=asks("1")),
        False,
    ),
    (
        "a pod that shrank helps itself",
        FIT,
        "pod_shrank",
        pod(containers=asks("1")),
        pod(containers=asks("2")),
        pod(containers=asks("1")),
        True,
    ),
    ("a new node that is large enough helps", FIT, "node_grew", pod(containers=asks("4")), None, node(), True),
    ("a new node that is too small does not", FIT, "node_grew", pod(containers=asks("5")), None, node(), False),
    ("a new node that takes no pods does not", FIT, "node_grew", pod(), None, node(pods="0"), False),
    ("more of what is wanted helps", FIT, "node_grew", pod(containers=asks("1")), node(), node(cpu="5"), True),
    ("more of something else does not", FIT, "node_grew", pod(containers=asks("1")), node(), node(memory="1Gi"), False),
    ("room for more pods always helps", FIT, "node_grew", pod(), node(), node(pods="11"), True),
    ("a pod that asks for nothing is not helped by more cpu", FIT, "node_grew", pod(), node(), node(cpu="9"), False),
    ("a new node that matches helps", WANTS, "matches_now", pod(**SSD), None, node(labels={"disk": "ssd"}), True),
    ("a new node that does not match does not", WANTS, "matches_now", pod(**SSD), None, node(), False),
    ("a node that matches at last helps", WANTS, "matches_now", pod(**SSD), node(), node(labels={"disk": "ssd"}), True),
    (
        "a node that matched all along does not",
        WANTS,
        "matches_now",
        pod(**SSD),
        node(labels={"disk": "ssd"}),
        node(labels={"disk": "ssd", "a": "b"}),
        False,
    ),
    ("an open new node helps", CLOSED, "is_open_now", pod(), None, node(), True),
    ("a closed new node does not", CLOSED, "is_open_now", pod(), None, node(cordoned=True), False),
    ("a node that was opened helps", CLOSED, "is_open_now", pod(), node(cordoned=True), node(), True),
    ("a node that was open all along does not", CLOSED, "is_open_now", pod(), node(), node(taints=[HARD]), False),
    (
        "a pod that now tolerates the cordon is helped",
        CLOSED,
        "tolerates_now",
        pod(tolerations=CORDON),
        pod(),
        pod(tolerations=CORDON),
        True,
    ),
    (
        "a pod that now tolerates something else is not",
        CLOSED,
        "tolerates_now",
        pod(tolerations=TOLERATES),
        pod(),
        pod(tolerations=TOLERATES),
        False,
    ),
    (
        "another pod's toleration helps nobody else",
        CLOSED,
        "tolerates_now",
        pod(),
        pod("x"),
        pod("x", tolerations=CORDON),
        False,
    ),
    ("a taint that went away helps", TAINTS, "is_tolerated_now", pod(), node(taints=[HARD]), node(), True),
    ("a taint that became soft helps", TAINTS, "is_tolerated_now", pod(), node(taints=[HARD]), node(taints=[SOFT]), True),
    (
        "a node that was tolerated all along does not help",
        TAINTS,
        "is_tolerated_now",
        pod(tolerations=TOLERATES),
        node(taints=[HARD]),
        node(),
        False,
    ),
    ("a new node with a hard taint does not", TAINTS, "is_tolerated_now", pod(), None, node(taints=[HARD]), False),
    (
        "a freed port helps who wants it",
        PORTS,
        "frees_a_port",
        pod(containers=asks(port=80)),
        pod("x", node="n", containers=asks(port=80)),
        None,
        True,
    ),
    (
        "another freed port does not",
        PORTS,
        "frees_a_port",
        pod(containers=asks(port=80)),
        pod("x", node="n", containers=asks(port=81)),
        None,
        False,
    ),
    (
        "a pending pod had no port to free",
        PORTS,
        "frees_a_port",
        pod(containers=asks(port=80)),
        pod("x", containers=asks(port=80)),
        None,
        False,
    ),
    ("a pod that is counted came", EVEN, "pod_may_help", pod(**SPREADS), None, pod("x", node="n", labels=WEB), True),
    ("a pod that is not counted came", EVEN, "pod_may_help", pod(**SPREADS), None, pod("x", node="n", labels=DB), False),
    (
        "a pod of another namespace is not counted",
        EVEN,
        "pod_may_help",
        pod(**SPREADS),
        None,
        pod("x", namespace="b", node="n", labels=WEB),
        False,
    ),
    (
        "a pod that is no longer counted helps",
        EVEN,
        "pod_may_help",
        pod(**SPREADS),
        pod("x", node="n", labels=WEB),
        pod("x", node="n", labels=DB),
        True,
    ),
    (
        "labels that nobody counts by do not help",
        EVEN,
        "pod_may_help",
        pod(**SPREADS),
        pod("x", node="n", labels=WEB),
        pod("x", node="n", labels={**WEB, "a": "b"}),
        False,
    ),
    (
        "the pod's own toleration helps where taints are honoured",
        EVEN,
        "pod_may_help",
        pod(**HONORS, tolerations=TOLERATES),
        pod(),
        pod(tolerations=TOLERATES),
        True,
    ),
    (
        "and does not where they are ignored",
        EVEN,
        "pod_may_help",
        pod(**SPREADS, tolerations=TOLERATES),
        pod(),
        pod(tolerations=TOLERATES),
        False,
    ),
    ("a node of a domain went", EVEN, "node_may_help", pod(**SPREADS), node(labels={"zone": "z"}), None, True),
    ("a node outside all domains went", EVEN, "node_may_help", pod(**SPREADS), node(), None, False),
    (
        "a node moved to another domain",
        EVEN,
        "node_may_help",
        pod(**SPREADS),
        node(labels={"zone": "z"}),
        node(labels={"zone": "y"}),
        True,
    ),
    (
        "a node of a domain has other taints",
        EVEN,
        "node_may_help",
        pod(**SPREADS),
        node(labels={"zone": "z"}),
        node(labels={"zone": "z"}, taints=[HARD]),
        True,
    ),
    ("a node outside all domains has other taints", EVEN, "node_may_help", pod(**SPREADS), node(), node(taints=[HARD]), False),
    (
        "the pod that was looked for came",
        NEAR,
        "pod_may_help",
        pod(affinity=near("web")),
        None,
        pod("x", node="n", labels=WEB),
        True,
    ),
    ("it came without a place", NEAR, "pod_may_help", pod(affinity=near("web")), None, pod("x", labels=WEB), False),
    ("another pod came", NEAR, "pod_may_help", pod(affinity=near("web")), None, pod("x", node="n", labels=DB), False),
    (
        "the hated pod went",
        NEAR,
        "pod_may_help",
        pod(affinity=near("web", anti=True)),
        pod("x", node="n", labels=WEB),
        None,
        True,
    ),
    (
        "a pod went that hated this one",
        NEAR,
        "pod_may_help",
        pod(labels=WEB),
        pod("x", node="n", affinity=near("web", anti=True)),
        None,
        True,
    ),
    (
        "the hated pod changed its labels",
        NEAR,
        "pod_may_help",
        pod(affinity=near("web", anti=True)),
        pod("x", node="n", labels=WEB),
        pod("x", node="n", labels=DB),
        True,
    ),
    ("the pod itself changed its labels", NEAR, "pod_may_help", pod(labels=DB), pod(labels=WEB), pod(labels=DB), True),
    (
        "a term that cannot be read may be about anybody",
        NEAR,
        "pod_may_help",
        pod(affinity=near("web", operator="Like")),
        None,
        pod("x", node="n", labels=DB),
        True,
    ),
    ("and about any node", NEAR, "node_may_help", pod(affinity=near("web", operator="Like")), None, node(), True),
    (
        "a pod went whose own dislikes cannot be read",
        NEAR,
        "pod_may_help",
        pod(),
        pod("x", node="n", affinity=near("web", operator="Like", anti=True)),
        None,
        True,
    ),
    (
        "a likeness that cannot be read is no dislike",
        NEAR,
        "pod_may_help",
        pod(),
        pod("x", node="n", affinity=near("web", operator="Like")),
        None,
        False,
    ),
    ("a node came into the topology", NEAR, "node_may_help", pod(affinity=near("web")), None, node(labels={"zone": "z"}), True),
    ("a node came outside the topology", NEAR, "node_may_help", pod(affinity=near("web")), None, node(), False),
    (
        "any node that came may be free of the hated",
        NEAR,
        "node_may_help",
        pod(affinity=near("web", anti=True)),
        None,
        node(),
        True,
    ),
    (
        "a node left the topology of the hated",
        NEAR,
        "node_may_help",
        pod(affinity=near("web", anti=True)),
        node(labels={"zone": "z"}),
        node(),
        True,
    ),
    (
        "a node came into the topology of the hated",
        NEAR,
        "node_may_help",
        pod(affinity=near("web", anti=True)),
        node(),
        node(labels={"zone": "z"}),
        False,
    ),
    ("a node declares other features", NEEDS, "declares_other_features", pod(), node(), node(features=["f"]), True),
    ("a node declares the same", NEEDS, "declares_other_features", pod(), node(features=["f"]), node(features=["f"]), False),
    (
        "the pod needs another feature now",
        NEEDS,
        "needs_other_features",
        pod(),
        pod(),
        pod(hostNetwork=True, hostUsers=False),
        True,
    ),
    (
        "another pod needs another feature",
        NEEDS,
        "needs_other_features",
        pod(),
        pod("x"),
        pod("x", hostNetwork=True, hostUsers=False),
        False,
    ),
    ("who goes does not matter to the preemptor's gate", EVICTS, "pod_went", pod(), pod("x", node="n"), None, False),
]

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
    [case[1:] for case in CASES],
    ids=[f"{case[1]}: {case[0]}" for case in CASES],
)
def test_hint(plugin: str, hint: str, waiting: dict[str, Any], old: Any, new: Any, helps: bool) -> None:
    view = STORE.view(codec.convert(waiting, Pod))
    assert hint in {wakeup.hint for wakeup in PLUGINS[plugin].wakeups() or ()}
    assert getattr(PLUGINS[plugin], hint)(view, decoded(old), decoded(new)) is helps
