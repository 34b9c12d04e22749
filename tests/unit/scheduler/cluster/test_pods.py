"""What a pod asks for, in each of the five ways in which it is counted, and what the gates change about them."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import testing
from kubesched.kube.api import codec
from kubesched.kube.api.meta import LabelSelector
from kubesched.kube.api.node import Taint
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.selectors import compile_selector
from kubesched.scheduler.cluster import Gates, PodView, Store
from kubesched.scheduler.cluster.intern import Memo
from kubesched.scheduler.cluster.pods import AffinityGroup
from kubesched.testing import near

MIB = 1024 * 1024


def container(name: str = "c", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def read(gates: Gates | None = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a pod's amounts of cpu and memory: used on a node, used at least, asked, scored, balanced."""
    store = Store(gates)
    pod = codec.convert({"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": spec, "status": status or {}}, Pod)
    template = store.view(pod).template
    names = store.templates.resources.values

    def two(amounts: dict[str, int]) -> tuple[int, int]:
        return amounts.get("cpu", 0), amounts.get("memory", 0) // MIB

    return {
        "used": two({names[r]: amount for r, amount in template.usage}),
        "at least": (template.non_zero_cpu, template.non_zero_memory // MIB),
        "asked": two({names[r]: amount for r, amount in template.requested}),
        "scored": two(template.resources.scored),
        "balanced": two(template.resources.balanced(("cpu", "memory"))),
    }


NOTHING = container()
WHOLE: dict[str, Any] = {"containers": [container(cpu="3")], "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
WHOLE_RESIZED = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "4"}}
CLAIMED = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "x", "resources": {"cpu": "2"}}]}


def resized(reason: str) -> dict[str, Any]:
    held = {"name": "c", "resources": {"requests": {"cpu": "500m"}}, "allocatedResources": {"cpu": "600m"}}
    return {"conditions": [{"type": "PodResizePending", "status": "False", "reason": reason}], "containerStatuses": [held]}


READINGS: list[tuple[str, Gates | None, dict[str, Any], dict[str, Any], dict[str, tuple[int, int]]]] = [
    (
        "containers without requests count where fullness is scored",
        None,
        {},
        {"containers": [NOTHING, NOTHING]},
        {"used": (0, 0), "at least": (200, 400), "asked": (0, 0), "scored": (200, 400), "balanced": (0, 0)},
    ),
    (
        "a request of zero is a request",
        None,
        {},
        {"containers": [container(cpu="0")]},
        {"at least": (0, 200), "scored": (0, 200)},
    ),
    (
        "an init container without requests counts as one",
        None,
        {},
        {"containers": [container(cpu="3m", memory="1Mi")], "initContainers": [container("i")]},
        {"used": (3, 1), "at least": (100, 200)},
    ),
    (
        "pod-level requests replace the sum, but not in scores",
        None,
        {},
        WHOLE,
        {"used": (1000, 64), "at least": (1000, 64), "asked": (1000, 64), "scored": (3000, 200), "balanced": (1000, 64)},
    ),
    (
        "pod-level requests are behind a gate",
        Gates(pod_level_resources=False),
        {},
        WHOLE,
        {"used": (3000, 0), "at least": (3000, 200), "asked": (3000, 0)},
    ),
    (
        "pod-level memory leaves the default for cpu",
        None,
        {},
        {"containers": [NOTHING], "resources": {"requests": {"memory": "64Mi"}}},
        {"at least": (100, 64)},
    ),
    (
        "during a resize the largest counts on the node",
        None,
        resized("Deferred"),
        {"containers": [container(cpu="700m")]},
        {"used": (700, 0), "balanced": (700, 0), "asked": (700, 0)},
    ),
    (
        "of an infeasible resize, what is in force or allocated counts on the node",
        None,
        resized("Infeasible"),
        {"containers": [container(cpu="700m")]},
        {"used": (600, 0), "balanced": (600, 0), "asked": (700, 0)},
    ),
    ("a resize of the whole pod counts", None, WHOLE_RESIZED, WHOLE, {"used": (5000, 64)}),
    ("and is behind a gate", Gates(in_place_pod_level_resize=False), WHOLE_RESIZED, WHOLE, {"used": (1000, 64)}),
    ("claims of the node do not count", None, CLAIMED, {"containers": [container(cpu="1")]}, {"used": (1000, 0)}),
    (
        "but with a gate",
        Gates(node_allocatable_claims=True),
        CLAIMED,
        {"containers": [container(cpu="1")]},
        {"used": (3000, 0), "asked": (1000, 0)},
    ),
]


@pytest.mark.parametrize(("gates", "status", "spec", "expected"), [c[1:] for c in READINGS], ids=[c[0] for c in READINGS])
def test_requests_are_read_in_five_ways(
    gates: Gates | None, status: dict[str, Any], spec: dict[str, Any], expected: dict[str, tuple[int, int]]
) -> None:
    found = read(gates, status, **spec)
    assert {way: found[way] for way in expected} == expected


def test_values_of_taints_are_compared_behind_a_gate() -> None:
    raw = {"metadata": {"name": "p"}, "spec": {"tolerations": [{"key": "level", "operator": "Gt", "value": "2"}]}}
    level = Taint(key="level", value="3", effect="NoSchedule")
    assert not Store().view(codec.convert(raw, Pod)).tolerates(level)
    assert Store(Gates(toleration_comparison=True)).view(codec.convert(raw, Pod)).tolerates(level)


def test_a_pod_as_it_will_be_on_a_node_keeps_what_was_computed() -> None:
    store = Store()
    view = store.view(codec.convert({"metadata": {"name": "p", "uid": "u"}}, Pod))
    booked = view.on("a")
    assert (booked.node_name, booked.pod.spec.node_name, booked.template) == ("a", "a", view.template)
    assert view.node_name == "" and not view.pod.spec.node_name


def test_who_may_be_meant_by_an_affinity_is_found_by_labels() -> None:
    """Found by one label that each term asks for; a term that asks for none of a certain value may mean anybody."""
    store = Store()
    groups, kept = store.templates.affinity_groups, []

    def group(*expressions: tuple[str, str, list[str]], also: Any = None, **fields: Any) -> AffinityGroup:
        terms = [
            {"topologyKey": "z", "labelSelector": {"matchExpressions": [_expression(*one) for one in expressions]}, **fields}
        ]
        terms += [also] if also else []
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        raw = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"affinity": affinity}}
        kept.append(store.view(codec.convert(raw, Pod)))
        return kept[-1].template.affinity_group

    web_or_db = group(("app", "In", ["web", "db"]), ("tier", "Exists", []))
    prod_web = group(("tier", "Exists", []), ("app", "In", ["web"]), ("env", "In", ["prod"]))
    not_web = group(("app", "NotIn", ["web"]))
    nobody = group(("app", "In", ["none"]), also={"topologyKey": "zone"})
    elsewhere = group(("app", "In", ["web"]), namespaces=["e", "f"])
    anywhere = group(("app", "In", ["web"]), namespaceSelector={"matchLabels": {"team": "x"}}, namespaces=["d"])
    assert groups.n_known == 6, "group 0 says nothing"
    for namespace, labels, expected in (
        ("d", {}, {not_web}),
        ("d", {"app": "web"}, {web_or_db, not_web, anywhere}),
        ("d", {"app": "web", "env": "prod"}, {web_or_db, prod_web, not_web, anywhere}),
        ("d", {"app": "db", "env": "prod"}, {web_or_db, prod_web, not_web}),
        ("d", {"app": "none"}, {nobody, not_web}),
        ("f", {"app": "web"}, {elsewhere, anywhere}),
        ("g", {"app": "web"}, {anywhere}),
    ):
        assert set(groups.candidates(namespace, labels)) == expected, labels
    assert set(groups.candidates("d", {"app": "web"}, not_web.serial)) == {anywhere}, "those that are newer"


def test_the_groups_of_a_rollout_are_found_by_its_own_label() -> None:
    """The API server adds the rollout's label to the selector of each term with `matchLabelKeys`."""
    store, kept = Store(), []
    for i in range(100):
        affinity = near({"app": "web", "pod-template-hash": str(i)}, away=True)
        kept.append(store.view(testing.pod(f"p-{i}", affinity=affinity)))
    groups = store.templates.affinity_groups
    found = set(groups.candidates("default", {"app": "web", "pod-template-hash": "50"}))
    assert kept[50].template.affinity_group in found and len(found) <= 2
    del kept[50:], found
    assert (groups.n_known, len(groups)) == (50, 101)
    assert not set(groups.candidates("default", {"app": "web", "pod-template-hash": "50"})) - {kept[0].template.affinity_group}


def _expression(key: str, operator: str, values: list[str]) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": values}


def test_of_pods_that_are_gone_nothing_is_kept() -> None:
    """Each run of a Job has labels of its own: a scheduler sees new ones for as long as it lives."""
    store = Store()
    templates = store.templates

    def come(i: int) -> PodView:
        raw = {"metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": {"app": "x", "job": str(i)}}, "spec": {}}
        return store.view(codec.convert(raw, Pod))

    first = come(0)
    for i in range(1, 5000):
        come(i)
    assert (templates._templates.n_known, len(templates._resources)) == (1, 1)
    classes = templates.label_classes
    assert classes[first.template.class_id] is first.template.label_class
    assert (len(classes), classes.n_known) == (3, 1)
    second = come(1)
    assert second.template.class_id == 2, "the number of those that are gone"
    assert second.template.label_class.serial > first.template.label_class.serial + 4999, "which is no other's"
    app = compile_selector(LabelSelector(match_labels={"app": "x"}))
    found = set(classes.candidates("d", app, range(10_000)))  # type: ignore[arg-type]
    assert found == {first.template.label_class, second.template.label_class}
    assert come(0).template is first.template


def test_what_is_worked_out_for_label_classes_is_forgotten_with_them() -> None:
    store = Store()
    known: Memo[int] = Memo(store.templates.label_classes)
    kept = [store.view(testing.pod("p", labels={"i": str(i)})) for i in range(100)]
    for one in kept:
        known[one.template.label_class.serial] = 1
    assert len(known) == 100
    for i in range(1000):
        one = store.view(testing.pod("p", labels={"job": str(i)}))
        known[one.template.label_class.serial] = 1
    assert len(known) <= 202 and set(known) >= {one.template.label_class.serial for one in kept}
