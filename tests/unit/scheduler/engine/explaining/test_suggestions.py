"""What would help a pod that fits nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cycle_scene import Scene, pinned

from kubesched.kube.api.matching import UNSCHEDULABLE_TAINT
from kubesched.scheduler.engine.deciding.cycle import Rules
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.explaining.explain import Explanation, explain
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Profile, Reason, Rejections, Snapshot
from kubesched.scheduler.framework.advice import Advice, Refused
from kubesched.testing import even, near, node, pod, taint

OVER_ZONES = "over topology.kubernetes.io/zone"
GPU, DOWN = taint("gpu", "yes"), taint("node.kubernetes.io/not-ready", "", "NoExecute")
LOUD = Reason("node(s) were loud")
BIG = {"requests": {"cpu": "3"}}


def told(objects: list[Any], wanted: Any) -> Explanation:
    scene = Scene(*objects)
    rules = Rules(SeededTies(0), scene.nominations, preempts=False, scores_single=True)
    return explain(scene.attempt(wanted, scores_single=True), profile=scene.profile, rules=rules)


CASES: list[tuple[str, list[Any], Any, list[tuple[str, int, str]]]] = [
    (
        "a taint is to be tolerated",
        [node("a", taints=[GPU]), node("b", taints=[GPU]), node("c", cpu="1")],
        pod(**BIG),
        [
            ("tolerate", 2, "tolerating gpu=yes:NoSchedule, 2 nodes would take it (a, b)"),
            ("lower", 1, "closest is c: it would fit with 2 more cpu; asking for 1 cpu, 1 node would take it (c)"),
            ("never", 0, "c could not hold it even empty: ask for less, or add larger nodes"),
        ],
    ),
    (
        "two taints open what one of them opens too",
        [node("a", taints=[GPU]), node("b", taints=[GPU, taint("team")])],
        pod(),
        [
            ("tolerate", 2, "tolerating gpu=yes:NoSchedule and team:NoSchedule, 2 nodes would take it (a, b)"),
            ("tolerate", 1, "tolerating gpu=yes:NoSchedule, 1 node would take it (a)"),
        ],
    ),
    (
        "what is wrong with a node is not to be tolerated",
        [node("a", taints=[DOWN])],
        pod(),
        [("taint", 1, "once the taint node.kubernetes.io/not-ready:NoExecute is gone, 1 node would take it (a)")],
    ),
    (
        "a cordon with its taint is one thing",
        [node("a", cordoned=True, taints=[UNSCHEDULABLE_TAINT])],
        pod(),
        [("uncordon", 1, "uncordoned, 1 node would take it (a)")],
    ),
    (
        "a cordon and another taint are two",
        [node("a", cordoned=True, taints=[UNSCHEDULABLE_TAINT, GPU])],
        pod(),
        [
            (
                "together",
                1,
                "no single change helps; if neither NodeUnschedulable nor TaintToleration refused, 1 node would take it "
                "(a); NodeUnschedulable says: node(s) were unschedulable; "
                "TaintToleration says: node(s) had untolerated taint(s)",
            )
        ],
    ),
    (
        "the amount at which it fits",
        [node("a"), node("b"), pod("x", on="a", requests={"cpu": "2"}), pod("y", on="b", requests={"cpu": "1500m"})],
        pod(**BIG),
        [
            ("lower", 1, "closest is b: it would fit with 500m more cpu; asking for 2500m cpu, 1 node would take it (b)"),
            ("empty", 2, "2 of 2 nodes short of resources could hold it if they were empty"),
        ],
    ),
    (
        "short nodes are those that are counted as short, not the tainted ones among them",
        [node("a"), node("b"), node("c", taints=[GPU])],
        pod(requests={"cpu": "6"}),
        [
            ("lower", 2, "closest is a: it would fit with 2 more cpu; asking for 4 cpu, 2 nodes would take it (a, b)"),
            (
                "never",
                0,
                "none of the 2 nodes short of resources could hold it even empty (the largest has 4 cpu): "
                "ask for less, or add larger nodes",
            ),
        ],
    ),
    (
        "a node that is large enough is nearer than one that is too small",
        [node("small", cpu="2"), node("large", cpu="8"), pod("x", on="large", requests={"cpu": "7"})],
        pod(**BIG),
        [
            (
                "lower",
                2,
                "closest is large: it would fit with 2 more cpu; asking for 1 cpu, 2 nodes would take it (small, large)",
            ),
            ("empty", 1, "1 of 2 nodes short of resources could hold it if they were empty"),
        ],
    ),
    (
        "of two changes at once, those about nodes that are large enough",
        [node("s1", cpu="1", taints=[GPU]), node("s2", cpu="1", taints=[GPU]), node("l", taints=[GPU], cordoned=True)],
        pod(**BIG),
        [
            (
                "together",
                1,
                "no single change helps; if neither NodeUnschedulable nor TaintToleration refused, 1 node would take it "
                "(l); NodeUnschedulable says: node(s) were unschedulable; "
                "TaintToleration says: node(s) had untolerated taint(s)",
            ),
        ],
    ),
    (
        "amounts of two things at once",
        [node("a"), node("b")],
        pod(requests={"cpu": "6", "memory": "40Gi"}),
        [
            (
                "lower",
                2,
                "closest is a: it would fit with 2 more cpu and 8Gi more memory; asking for 4 cpu and 32Gi memory, "
                "2 nodes would take it (a, b)",
            ),
            (
                "never",
                0,
                "none of the 2 nodes short of resources could hold it even empty (the largest has 4 cpu and 32Gi memory): "
                "ask for less, or add larger nodes",
            ),
        ],
    ),
    (
        "nothing left to ask for",
        [node("a", cpu="1"), pod("x", on="a", requests={"cpu": "1"})],
        pod(requests={"cpu": "1"}),
        [
            ("closest", 0, "closest is a: it would fit with 1 more cpu"),
            ("empty", 1, "1 of 1 node short of resources could hold it if they were empty"),
        ],
    ),
    (
        "as many pods as allowed",
        [node("a", pods=1), pod("x", on="a")],
        pod(),
        [
            ("pods", 1, "1 node has the resources but as many pods as allowed (a)"),
            ("empty", 1, "1 of 1 node short of resources could hold it if they were empty"),
        ],
    ),
    (
        "a label that nobody has",
        [node("a"), node("b")],
        pod(node_selector={"disk": "ssd"}),
        [("selector", 2, "without nodeSelector disk=ssd 2 nodes would take it (a, b); no node has a label disk")],
    ),
    (
        "a label that is spelt otherwise",
        [node("a", labels={"disk": "SSD"}), node("b")],
        pod(node_selector={"disk": "ssd"}),
        [("selector", 2, "without nodeSelector disk=ssd 2 nodes would take it (a, b); of disk, 1 has none, 1 has SSD")],
    ),
    (
        "one of two labels is to blame",
        [node("a", labels={"disk": "ssd"})],
        pod(node_selector={"disk": "ssd", "gpu": "a100"}),
        [("selector", 1, "without nodeSelector gpu=a100 1 node would take it (a); no node has a label gpu")],
    ),
    (
        "both of two labels are",
        [node("a")],
        pod(node_selector={"disk": "ssd", "gpu": "a100"}),
        [
            (
                "selector",
                1,
                "without its node selector and affinity 1 node would take it (a); no single part of them is to blame",
            )
        ],
    ),
    (
        "a node that is asked for by name",
        [node("a", cordoned=True), node("b")],
        pod(affinity=pinned("a")),
        [
            ("uncordon", 1, "uncordoned, 1 node would take it (a)"),
            ("selector", 1, "without node affinity metadata.name=a 1 node would take it (b)"),
        ],
    ),
    (
        "a spread constraint",
        [node("a", zone="z"), node("b", zone="y", cordoned=True), pod("x", on="a", labels={"app": "web"})],
        pod(labels={"app": "web"}, spread=[even({"app": "web"}), even({"app": "web"}, skew=5)]),
        [
            ("uncordon", 1, "uncordoned, 1 node would take it (b)"),
            ("constraint", 1, f"without the spread constraint {OVER_ZONES} (maxSkew 1) 1 node would take it (a)"),
        ],
    ),
    (
        "an affinity to pods that are not there",
        [node("a", zone="z")],
        pod(affinity=near({"app": "db"})),
        [("constraint", 1, f"without the required affinity to pods with app=db {OVER_ZONES} 1 node would take it (a)")],
    ),
    (
        "an anti-affinity",
        [node("a", zone="z"), pod("x", on="a", labels={"app": "db"})],
        pod(affinity=near({"app": "db"}, away=True)),
        [("constraint", 1, f"without the required anti-affinity to pods with app=db {OVER_ZONES} 1 node would take it (a)")],
    ),
    (
        "somebody else's anti-affinity",
        [node("a", zone="z"), pod("x", on="a", affinity=near({"app": "db"}, away=True))],
        pod(labels={"app": "db"}),
        [
            (
                "alone",
                1,
                "if only InterPodAffinity did not refuse, 1 node would take it (a); it says: node(s) didn't satisfy "
                "existing pods anti-affinity rules",
            )
        ],
    ),
    (
        "a port that is taken",
        [node("a"), pod("x", on="a", host_ports=[80])],
        pod(host_ports=[80]),
        [
            (
                "alone",
                1,
                "if only NodePorts did not refuse, 1 node would take it (a); it says: node(s) didn't have free ports for "
                "the requested pod ports",
            )
        ],
    ),
    (
        "a claim that is not there",
        [node("a")],
        pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]),
        [
            (
                "whole",
                0,
                "VolumeRestrictions and VolumeBinding and VolumeZone refuse it wherever it would go: "
                'persistentvolumeclaim "data" not found',
            )
        ],
    ),
    ("no nodes at all", [], pod(), []),
]


@pytest.mark.parametrize(("sentence", "objects", "wanted", "advice"), CASES, ids=[case[0] for case in CASES])
def test_the_smallest_change_that_would_help_is_named(
    sentence: str, objects: list[Any], wanted: Any, advice: list[tuple[str, int, str]]
) -> None:
    assert [(each.kind, each.n_nodes, each.text) for each in told(objects, wanted).suggestions] == advice


def test_who_keeps_a_pod_off_a_nominated_node_is_not_said_to_refuse_the_others() -> None:
    scene = Scene(node("a", taints=[GPU]), node("b"))
    scene.nominations.put(scene.store.view(pod("ahead", requests={"cpu": "3"}, priority=5)), "b")
    rules = Rules(SeededTies(0), scene.nominations, preempts=False, scores_single=True)
    told = explain(scene.attempt(pod(**BIG), scores_single=True), profile=scene.profile, rules=rules)
    assert told.suggestions[0].text == "tolerating gpu=yes:NoSchedule, 1 node would take it (a)"


def test_the_change_is_given_in_the_words_of_the_api() -> None:
    tolerate, lower, _ = told([node("a", taints=[GPU]), node("c", cpu="1")], pod(**BIG)).suggestions
    assert tolerate.change == {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]}
    assert lower.change == {"requests": {"cpu": "1"}, "lacking": {"cpu": "2"}}


class Quiet(Plugin):
    """Keeps pods off loud nodes, and knows what would help."""

    helps: Any = staticmethod(lambda refused: [refused.advise("hush", "were they quieter,", refused.alone)])

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        return Rejections.where(np.array([nodes.name(row) != "c" for row in range(nodes.n)]), LOUD)

    def advise(self, refused: Refused) -> list[Advice]:
        return self.helps(refused)  # type: ignore[no-any-return]


def _broken(refused: Refused) -> list[Advice]:
    raise ValueError("no idea")


QUOTED = "if only Quiet did not refuse, 1 node would take it (b); it says: node(s) were loud"
OTHERS_ADVICE = [
    ("what it says", Quiet.helps, "were they quieter, 1 node would take it (b)"),
    ("nothing to say", lambda refused: [], QUOTED),
    ("it breaks", _broken, QUOTED),
]


@pytest.mark.parametrize(("sentence", "helps", "text"), OTHERS_ADVICE, ids=[case[0] for case in OTHERS_ADVICE])
def test_a_plugin_of_other_people_is_asked_too(sentence: str, helps: Any, text: str) -> None:
    scene = Scene(node("a", taints=[GPU]), node("b"), node("c", cpu="1"))
    quiet = Quiet(None, scene.profile.plugins[0].handle)
    quiet.helps = helps
    points = {**scene.profile.points, "filter": (*scene.profile.points["filter"], (quiet, 0))}
    scene.profile = Profile("default-scheduler", points)
    found = explain(scene.attempt(pod(**BIG), scores_single=True), profile=scene.profile)
    assert [each.text for each in found.suggestions if each.plugin == "Quiet"] == [text]


EVER = [
    (
        "never",
        [node("a", cpu="1"), node("b", cpu="2")],
        pod(**BIG),
        (0, 0, "never on these nodes: none of the 2 is large enough, even empty"),
    ),
    (
        "once others make room",
        [node("a"), node("b", cpu="1"), pod("x", on="a", requests={"cpu": "2"})],
        pod(**BIG),
        (1, 1, "yes: 1 of 2 nodes is large enough, 1 of them open to it once others make room"),
    ),
    (
        "not as the nodes are",
        [node("a", taints=[GPU])],
        pod(**BIG),
        (
            1,
            0,
            "not on these nodes as they are: 1 of 1 nodes is large enough, but something that no eviction changes keeps it off",
        ),
    ),
]


@pytest.mark.parametrize(("sentence", "objects", "wanted", "answer"), EVER, ids=[case[0] for case in EVER])
def test_whether_it_will_ever_fit(sentence: str, objects: list[Any], wanted: Any, answer: tuple[int, int, str]) -> None:
    ever = told(objects, wanted).ever
    assert ever is not None and (ever.n_large, ever.n_open, ever.text) == answer


def test_what_would_wake_it_is_told_in_words() -> None:
    wakes = {each.plugin: each for each in told([node("a", taints=[GPU]), node("c", cpu="1")], pod(**BIG)).wakes}
    assert wakes["TaintToleration"].text == "a node comes or changes its taints; a pod tolerates more"
    assert wakes["TaintToleration"].events == ("Node/Add", "Node/UpdateNodeTaint", "Pod/UpdatePodToleration")
    assert wakes["NodeResourcesFit"].text.startswith("a pod goes")
