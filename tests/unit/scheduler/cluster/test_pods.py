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


def test_containers_that_say_nothing_count_where_fullness_is_judged() -> None:
    assert read(containers=[container(), container()]) == {
        "used": (0, 0),
        "at least": (200, 400),
        "asked": (0, 0),
        "scored": (200, 400),
        "balanced": (0, 0),
    }
    zero = read(containers=[container(cpu="0")])
    assert (zero["at least"], zero["scored"]) == ((0, 200), (0, 200)), "to ask for nothing is to say something"


def test_an_init_container_that_says_nothing_counts_as_one() -> None:
    found = read(containers=[container(cpu="3m", memory="1Mi")], initContainers=[container("i")])
    assert (found["used"], found["at least"]) == ((3, 1), (100, 200))


def test_overhead_is_added_even_without_containers() -> None:
    found = read(containers=[], overhead={"cpu": "10m", "memory": "5Mi"})
    assert set(found.values()) == {(10, 5)}


WHOLE = {"containers": [container(cpu="3")], "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}


def test_pod_level_requests_replace_the_sum_but_not_in_scores() -> None:
    assert read(**WHOLE) == {
        "used": (1000, 64),
        "at least": (1000, 64),
        "asked": (1000, 64),
        "scored": (3000, 200),
        "balanced": (1000, 64),
    }


def test_pod_level_memory_leaves_the_default_for_cpu() -> None:
    found = read(containers=[container()], initContainers=[container("i")], resources={"requests": {"memory": "64Mi"}})
    assert found["at least"] == (100, 64)


def test_pod_level_requests_are_behind_a_gate() -> None:
    found = read(Gates(pod_level_resources=False), **WHOLE)
    assert (found["used"], found["at least"], found["asked"]) == ((3000, 0), (3000, 200), (3000, 0))


@pytest.mark.parametrize(
    ("sentence", "reason", "used"),
    [
        ("while it is under way the largest counts", "Deferred", 700),
        ("if it is infeasible, what is in force or allocated", "Infeasible", 600),
    ],
)
def test_a_resize_counts_on_the_node_and_not_where_the_pod_is_placed(sentence: str, reason: str, used: int) -> None:
    status = {
        "conditions": [{"type": "PodResizePending", "status": "False", "reason": reason}],
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}, "allocatedResources": {"cpu": "600m"}}],
    }
    found = read(None, status, containers=[container(cpu="700m")])
    assert (found["used"][0], found["balanced"][0], found["asked"][0]) == (used, used, 700), sentence


def test_a_resize_of_the_whole_pod_is_behind_a_gate() -> None:
    status = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "4"}}
    assert read(None, status, **WHOLE)["used"][0] == 5000
    assert read(Gates(in_place_pod_level_resize=False), status, **WHOLE)["used"][0] == 1000


def test_what_claims_use_of_the_node_is_behind_a_gate() -> None:
    status = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "x", "resources": {"cpu": "2"}}]}
    spec = {"containers": [container(cpu="1")]}
    assert read(None, status, **spec)["used"][0] == 1000
    behind = read(Gates(node_allocatable_claims=True), status, **spec)
    assert (behind["used"][0], behind["asked"][0]) == (3000, 1000)


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
