"""Questions as JSON: the answers are the library's, and what is wrong is said with its path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.errors import SchedulerError
from kubesched.solver import Cluster, NodeTemplate
from kubesched.tools.serve import questions
from kubesched.tools.serve.questions import AskedCluster
from kubesched.tools.serve.solver_process import answered
from kubesched.tools.serve.wire import INVALID, Ask, Refusal

Object = dict[str, Any]


def a_node(name: str, cpu: str = "4") -> Object:
    offer = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": offer}}


def a_pod(name: str, cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"containers": [container], **spec}}


NODES = [a_node("n1"), a_node("n2")]


@pytest.fixture
def asked() -> AskedCluster:
    return AskedCluster(Cluster(NODES))


def ask(asked: AskedCluster, call: str, question: Any) -> Any:
    return json.loads(asked.answer(call, json.dumps(question).encode()))


def test_answers_are_the_librarys_documents(asked: AskedCluster) -> None:
    cluster = Cluster(NODES)
    assert ask(asked, "fits", {"pod": a_pod("a")}) == cluster.fits(a_pod("a"), nodes=False).as_dict()
    assert ask(asked, "fits", {"pod": a_pod("a"), "nodes": True}) == cluster.fits(a_pod("a")).as_dict()
    assert ask(asked, "explain", {"pod": a_pod("a", "9")}) == json.loads(json.dumps(cluster.why(a_pod("a", "9"))))
    pods = [a_pod(f"p{i}", "3") for i in range(4)]
    with cluster.what_if() as world:
        assert ask(asked, "place", {"pods": pods}) == world.place(pods).as_dict()
    with cluster.what_if() as world:
        world.add_nodes(a_node("big", "16"), 2)
        told = ask(asked, "what-if", {"pods": pods, "addNodes": [{"template": a_node("big", "16"), "count": 2}]})
        assert told == world.place(pods).as_dict() and told["summary"]["placed"] == 4
    templates = [NodeTemplate(a_node("small"), 1.0), NodeTemplate(a_node("large", "16"), 2.0, name="l")]
    offers = [
        {"name": "small", "node": a_node("small"), "price": 1.0},
        {"name": "l", "node": a_node("large", "16"), "price": 2.0},
    ]
    told = ask(asked, "cheapest-nodes", {"pods": pods, "templates": offers})
    assert told == json.loads(json.dumps(cluster.cheapest_nodes(pods, templates).as_dict())) and told["counts"]


def test_a_question_leaves_no_trace(asked: AskedCluster) -> None:
    before = ask(asked, "fits", {"pod": a_pod("a"), "nodes": True})
    for question in ({"pods": [a_pod("b", "3")]}, {"drain": ["n1"]}, {"addNodes": [{"template": a_node("x")}]}):
        ask(asked, "what-if", question)
    assert ask(asked, "fits", {"pod": a_pod("a"), "nodes": True}) == before


BAD: list[tuple[str, Any, str]] = [
    ("fits", {"pod": a_pod("a"), "podd": 1}, "podd: unknown field"),
    ("fits", {}, "Object missing required field `pod`"),
    ("fits", {"pod": 3}, "pod: Expected `object`, got `int`"),
    ("fits", {"pod": a_pod("a", contaners=[])}, "pod.spec.contaners: unknown field"),
    ("fits", {"pod": a_pod("a", nodeSelector=["x"])}, "pod.spec.nodeSelector: cannot unmarshal array"),
    ("fits", {"pod": a_pod("a", "one core")}, "pod.spec.containers[0].resources.requests.cpu: cannot unmarshal string"),
    ("fits", {"pod": {"metadata": {"name": "a"}, "spec": {}}}, "pod a: spec.containers is empty"),
    ("fits", {"pod": {**a_pod("a"), "kind": "Node"}}, "pod.kind: found Node, expected Pod"),
    (
        "fits",
        {"pod": a_pod("a", schedulerName="other")},
        "pod team/a: spec.schedulerName: 'other' is none of default-scheduler",
    ),
    ("place", {"pods": [a_pod("a"), a_pod("b", x=1)]}, "pods[1].spec.x: unknown field"),
    ("place", {"pods": [a_pod("a"), a_pod("a")]}, "pod team/a: it is given twice"),
    ("place", {"pods": [{}] * 100_001}, "pods: 100001 are given, at most 100000 are taken"),
    ("what-if", {"drain": ["n9"]}, "node n9: there is no such node"),
    ("what-if", {"delete": ["team/x"]}, "pod team/x: there is no such pod"),
    (
        "what-if",
        {"addNodes": [{"template": {"metadata": {"name": "x"}}}]},
        "addNodes[0].template.status.allocatable: is missing",
    ),
    ("what-if", {"addNodes": [{"template": a_node("x"), "count": 0}]}, "addNodes[0].count: 0 is below 1"),
    (
        "what-if",
        {"addNodes": [{"template": a_node("x"), "count": 20_000}]},
        "addNodes: 20000 are given, at most 10000 are taken",
    ),
    (
        "cheapest-nodes",
        {"pods": [], "templates": [{"name": "t", "node": a_node("t"), "price": -1}]},
        "templates[0].price: is below 0",
    ),
    (
        "cheapest-nodes",
        {"pods": [], "templates": [{"name": "t", "node": {"metadata": {"name": "t"}, "status": {"allocatble": {}}}}]},
        "templates[0].node.status.allocatble: unknown field",
    ),
    ("change", {"put": [{"kind": "Node"}]}, "put[0]"),
    ("change", {"put": [{"apiVersion": "v1"}]}, "put[0].kind: is missing"),
    ("change", {"remove": [{"kind": "Nod", "name": "n1"}]}, "remove[0].kind: 'Nod' is no kind that decisions depend on"),
]


@pytest.mark.parametrize(("call", "question", "says"), BAD, ids=[f"{call}: {says[:40]}" for call, _, says in BAD])
def test_bad_input_is_named_and_the_cluster_goes_on(asked: AskedCluster, call: str, question: Any, says: str) -> None:
    reply = answered(asked, Ask(7, call, json.dumps(question).encode(), 1.0))
    assert (reply.number, reply.code) == (7, INVALID)
    assert reply.body.decode().startswith(says), reply.body.decode()
    assert ask(asked, "fits", {"pod": a_pod("a")})["node"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"pod":' + b"[" * 100_000, b'{"pod":' + b'{"a":' * 100_000])
def test_what_is_no_json_is_refused(asked: AskedCluster, body: bytes) -> None:
    assert answered(asked, Ask(1, "fits", body, 1.0)).code == INVALID


def owned(name: str, uid: str, *owners: str) -> Object:
    references = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner} for owner in owners]
    return {
        **a_pod(name),
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": uid, "ownerReferences": references},
    }


def test_an_object_that_owns_itself_is_refused_over_however_many_steps() -> None:
    def read(*objects: Object) -> None:
        questions.objects_in([questions.Raw(json.dumps(each).encode()) for each in objects], "objects")

    read(owned("a", "1", "2"), owned("b", "2", "gone"), owned("c", "3", "2", "1"))
    for cycle in (
        [owned("a", "1", "1")],
        [owned("a", "1", "2"), owned("b", "2", "3"), owned("c", "3", "1")],
        [owned("a", "1", "2", "3"), owned("b", "2"), owned("c", "3", "1")],
    ):
        with pytest.raises(SchedulerError, match=r"objects\[\d\].metadata.ownerReferences: the object owns itself"):
            read(*cycle)


def test_a_session_takes_deltas(asked: AskedCluster) -> None:
    assert ask(asked, "change", {"put": [a_node("n3"), {**a_node("n1"), "spec": {"unschedulable": True}}]}) == {
        "nodes": 3,
        "pods": 0,
    }
    assert ask(asked, "change", {"remove": [{"kind": "Node", "name": "n2"}]}) == {"nodes": 2, "pods": 0}
    placed = {**a_pod("a", nodeName="n3"), "apiVersion": "v1", "kind": "Pod"}
    assert ask(asked, "change", {"put": [placed]}) == {"nodes": 2, "pods": 1}
    assert [each["fits"] for each in ask(asked, "fits", {"pod": a_pod("b"), "nodes": True})["nodes"]] == [False, True]


def test_an_unchanged_cluster_answers_a_watch_with_nothing(asked: AskedCluster) -> None:
    body = json.dumps({"pod": a_pod("a")}).encode()
    first = answered(asked, Ask(1, "fits", body, 1.0))
    assert first.body and not answered(asked, Ask(2, "fits", body, 1.0, seen=first.revision)).body
    ask(asked, "change", {"put": [a_node("n3")]})
    assert answered(asked, Ask(3, "fits", body, 1.0, seen=first.revision)).body


def test_deltas_with_a_mistake_change_nothing(asked: AskedCluster) -> None:
    before = ask(asked, "sizes", None)
    remove = [{"kind": "Node", "name": "n1"}, {"kind": "Nod", "name": "x"}]
    with pytest.raises(Refusal, match=r"remove\[1\].kind: 'Nod' is no kind"):
        ask(asked, "change", {"remove": remove})
    assert ask(asked, "sizes", None) == before
