"""InterPodAffinity: near whom, away from whom, and what both sides' wishes are worth."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api.pod import Pod
from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.framework.equivalence_cache.counters import CounterTable
from kubesched.scheduler.plugins import InterPodAffinity
from kubesched.scheduler.plugins.inter_pod_affinity import counts as _affinity_counts
from kubesched.scheduler.plugins.inter_pod_affinity.counts import matches_other
from kubesched.testing import namespace, near, node, pod

REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
FAR = ("UnschedulableAndUnresolvable", ["node(s) didn't match pod affinity rules"])
AWAY = ("Unschedulable", ["node(s) didn't match pod anti-affinity rules"])
UNLIKED = ("Unschedulable", ["node(s) didn't satisfy existing pods anti-affinity rules"])
NODES = node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("nowhere")
WEB, DB = {"app": "web"}, {"app": "db"}


def term(selector: Any = None, key: str = "topology.kubernetes.io/zone", **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": WEB} if selector is None else selector, "topologyKey": key, **more}


def wanting(*terms: dict[str, Any], kind: str = "podAffinity", **fields: Any) -> Pod:
    return pod("new", affinity={kind: {REQUIRED: list(terms)}}, **fields)


def test_pods_without_terms_are_asked_about_only_where_somebody_minds() -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("old", on="a1", labels=DB))
    assert bench.pre_filter(pod("new", labels=WEB)) == "Skip"
    bench.put(pod("jealous", on="a1", affinity=near(WEB, away=True)))
    assert bench.pre_filter(pod("new", labels=WEB)) is None
    assert bench.pre_filter(pod("new", labels=DB)) == "Skip"


@pytest.mark.parametrize(
    ("sentence", "wanted", "refused"),
    [
        ("a wanted pod opens its whole domain", wanting(term()), {"b1": FAR, "nowhere": FAR}),
        ("over hosts, its host alone", wanting(term(key=HOST)), {"a2": FAR, "b1": FAR, "nowhere": FAR}),
        (
            "nobody there to be near",
            wanting(term({"matchLabels": {"app": "x"}})),
            {"a1": FAR, "a2": FAR, "b1": FAR, "nowhere": FAR},
        ),
        (
            "the first of its kind may start anywhere that has the label",
            wanting(term({"matchLabels": {"app": "x"}}), labels={"app": "x"}),
            {"nowhere": FAR},
        ),
        ("not the first: one is there", wanting(term(), labels=WEB), {"b1": FAR, "nowhere": FAR}),
        (
            "no selector selects nobody",
            wanting({"topologyKey": HOST}, labels=WEB),
            {"a1": FAR, "a2": FAR, "b1": FAR, "nowhere": FAR},
        ),
        ("an empty selector selects everybody in the namespace", wanting(term({})), {"b1": FAR, "nowhere": FAR}),
        ("every term must be met", wanting(term(), term(key=HOST)), {"a2": FAR, "b1": FAR, "nowhere": FAR}),
    ],
)
def test_near(sentence: str, wanted: Pod, refused: Any) -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("web", on="a1", labels=WEB))
    assert bench.refusals(wanted) == refused, sentence


def test_different_pods_may_meet_different_keys_but_each_must_meet_all_selectors() -> None:
    both = {**WEB, "tier": "x"}
    bench = Bench(InterPodAffinity, node("a1", zone="a"), node("a2", zone="a"), pod("web", on="a1", labels=both))
    wanted = wanting(term(), term({"matchLabels": {"tier": "x"}}, key=HOST))
    assert bench.fits(wanted) == ["a1"]
    bench.put(pod("half", on="a2", labels={"tier": "x"}))
    assert bench.fits(wanted) == ["a1"], "it has one of the labels only, and does not count for either term"
    bench.put(pod("other", on="a2", labels=both))
    assert bench.fits(wanted) == ["a1", "a2"]


def test_away() -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("web", on="a1", labels=WEB))
    assert bench.refusals(wanting(term(), kind="podAntiAffinity")) == {"a1": AWAY, "a2": AWAY}
    assert bench.refusals(wanting(term(key=HOST), kind="podAntiAffinity")) == {"a1": AWAY}
    assert bench.refusals(wanting(term(key="nobody-has"), kind="podAntiAffinity")) == {}
    either = wanting(term({"matchLabels": DB}, key=HOST), term(key=HOST), kind="podAntiAffinity")
    assert bench.refusals(either) == {"a1": AWAY}, "one term is enough, unlike with near"


def test_a_placed_pod_keeps_others_away_too() -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("jealous", on="a1", affinity=near(WEB, away=True)))
    assert bench.refusals(pod("new", labels=WEB)) == {"a1": UNLIKED, "a2": UNLIKED}


def test_a_pod_on_its_way_out_still_counts() -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("web", on="a1", labels=WEB, deleted_at="2026-01-01T00:00:00Z"))
    assert bench.refusals(wanting(term(), kind="podAntiAffinity")) == {"a1": AWAY, "a2": AWAY}


def test_near_is_judged_first_then_away_then_the_others() -> None:
    bench = Bench(
        InterPodAffinity,
        *NODES,
        pod("web", on="a1", labels={**WEB, "tier": "x"}),
        pod("jealous", on="b1", labels={"tier": "x"}, affinity=near(DB, away=True)),
    )
    wanted = pod(
        "new",
        labels=DB,
        affinity={"podAffinity": {REQUIRED: [term({"matchLabels": {"tier": "x"}})]}, "podAntiAffinity": {REQUIRED: [term()]}},
    )
    assert bench.refusals(wanted) == {"a1": AWAY, "a2": AWAY, "b1": UNLIKED, "nowhere": FAR}


NAMESPACES = namespace("default"), namespace("team-a", team="a"), namespace("team-b", team="b")


@pytest.mark.parametrize(
    ("sentence", "more", "found"),
    [
        ("its own namespace", {}, []),
        ("a list", {"namespaces": ["team-a"]}, ["a1"]),
        ("an empty list is no list", {"namespaces": []}, []),
        ("a selector", {"namespaceSelector": {"matchLabels": {"team": "b"}}}, ["b1"]),
        (
            "a selector and a list",
            {"namespaces": ["team-a"], "namespaceSelector": {"matchLabels": {"team": "b"}}},
            ["a1", "b1"],
        ),
        ("all namespaces, also those without an object", {"namespaceSelector": {}}, ["a1", "b1", "nowhere"]),
        (
            "negations match the namespaces that there are",
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}},
            ["b1"],
        ),
        (
            "with something positive beside them they do not",
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "team", "operator": "NotIn", "values": ["a"]},
                        {"key": "team", "operator": "Exists"},
                    ]
                }
            },
            ["b1"],
        ),
    ],
)
def test_namespaces(sentence: str, more: dict[str, Any], found: list[str]) -> None:
    assert refused_beside_others(more) == found, sentence


def refused_beside_others(more: dict[str, Any], **options: Any) -> list[str]:
    bench = Bench(
        InterPodAffinity,
        *NODES,
        *NAMESPACES,
        pod("x", namespace="team-a", on="a1", labels=WEB),
        pod("y", namespace="team-b", on="b1", labels=WEB),
        pod("z", namespace="lost", on="nowhere", labels=WEB),
        **options,
    )
    return sorted(bench.refusals(wanting(term(key=HOST, **more), kind="podAntiAffinity")))


def test_before_1_37_negations_alone_match_every_namespace() -> None:
    negation = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}
    assert refused_beside_others(negation, release=(1, 36)) == ["a1", "b1", "nowhere"]


def test_a_placed_pods_namespace_selector_reads_the_labels_of_the_incoming_pods_namespace() -> None:
    selector = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
    jealous = pod("jealous", on="a1", affinity={"podAntiAffinity": {REQUIRED: [term(key=HOST, namespaceSelector=selector)]}})
    bench = Bench(InterPodAffinity, *NODES, *NAMESPACES, jealous)
    assert bench.pre_filter(pod("new", namespace="team-a", labels=WEB)) == "Skip"
    assert bench.refusals(pod("new", namespace="team-b", labels=WEB)) == {"a1": UNLIKED}


BROKEN = term({"matchExpressions": [{"key": "app", "operator": "Like"}]})


def test_a_term_that_cannot_be_read_refuses_the_pod_for_good() -> None:
    bench = Bench(InterPodAffinity, *NODES)
    text = '"Like" is not a valid label selector operator'
    assert bench.pre_filter(wanting(BROKEN)) == (
        "UnschedulableAndUnresolvable",
        [f"parsing pod: requiredAffinityTerms: {text}"],
    )
    both = pod(
        affinity={
            "podAffinity": {REQUIRED: [BROKEN]},
            "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": BROKEN}]},
        }
    )
    assert bench.pre_filter(both) == (
        "UnschedulableAndUnresolvable",
        [f"parsing pod: [requiredAffinityTerms: {text}, preferredAntiAffinityTerms: {text}]"],
    )


def test_of_a_placed_pod_only_the_group_that_cannot_be_read_is_dropped() -> None:
    odd = pod("odd", on="a1", affinity={"podAffinity": {REQUIRED: [BROKEN]}, "podAntiAffinity": {REQUIRED: [term()]}})
    assert sorted(Bench(InterPodAffinity, *NODES, odd).refusals(pod("new", labels=WEB))) == ["a1", "a2"]


# Scores


def wishing(weight: int, away: bool = False, selector: dict[str, str] | None = None, **fields: Any) -> Pod:
    return pod("new", affinity=near(selector or WEB, weight=weight, away=away), **fields)


@pytest.mark.parametrize(
    ("sentence", "wanted", "raw"),
    [
        ("near", wishing(5), {"a1": 10, "a2": 10, "b1": 5, "nowhere": 0}),
        ("away", wishing(5, away=True), {"a1": -10, "a2": -10, "b1": -5, "nowhere": 0}),
    ],
)
def test_own_wishes_count_every_pod(sentence: str, wanted: Pod, raw: dict[str, int]) -> None:
    bench = Bench(
        InterPodAffinity,
        *NODES,
        pod("x", on="a1", labels=WEB),
        pod("y", on="a2", labels=WEB),
        pod("z", on="b1", labels=WEB),
        pod("w", on="nowhere", labels=WEB),
    )
    assert bench.scores(wanted, raw=True) == raw, sentence


def test_wishes_of_placed_pods_count_as_well() -> None:
    bench = Bench(
        InterPodAffinity,
        *NODES,
        pod("x", on="a1", affinity=near(WEB, weight=7)),
        pod("y", on="b1", affinity=near(WEB, weight=3, away=True)),
    )
    assert bench.scores(pod("new", labels=WEB), raw=True) == {"a1": 7, "a2": 7, "b1": -3, "nowhere": 0}
    assert bench.scores(pod("new", labels=WEB)) == {"a1": 100, "a2": 100, "b1": 0, "nowhere": 30}


@pytest.mark.parametrize(("weight", "score"), [(1, 1), (50, 50)])
def test_required_affinity_of_placed_pods_is_worth_what_is_configured(weight: int, score: int) -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("x", on="a1", affinity=near(WEB)), args={"hardPodAffinityWeight": weight})
    assert bench.scores(pod("new", labels=WEB), raw=True)["a2"] == score


def test_who_has_nothing_to_say_about_scores() -> None:
    hard = pod("x", on="a1", affinity=near(WEB))
    assert Bench(InterPodAffinity, *NODES, hard).pre_score(pod("new", labels=WEB)) is None
    silent = Bench(InterPodAffinity, *NODES, hard, args={"hardPodAffinityWeight": 0})
    assert silent.pre_score(pod("new", labels=WEB)) == "Skip"
    ignoring = Bench(InterPodAffinity, *NODES, hard, args={"ignorePreferredTermsOfExistingPods": True})
    assert ignoring.pre_score(pod("new", labels=WEB)) == "Skip"
    assert ignoring.pre_score(wishing(1, labels=WEB)) is None
    assert Bench(InterPodAffinity, *NODES).pre_score(wishing(1)) == "Skip", "nobody is there to wish for"


def test_wishes_that_cancel_out_are_wishes_all_the_same() -> None:
    bench = Bench(InterPodAffinity, *NODES, pod("x", on="a1", labels={**WEB, "tier": "x"}))
    both = pod("new", affinity={**near(WEB, weight=5), **near({"tier": "x"}, weight=5, away=True)})
    assert bench.scores(both) == {"a1": 0, "a2": 0, "b1": 0, "nowhere": 0}


def test_a_term_that_cannot_be_read_is_an_error_in_scoring() -> None:
    code, (text,) = Bench(InterPodAffinity, *NODES).pre_score(wanting(BROKEN))
    assert code == "Error" and text.startswith("failed to parse pod: requiredAffinityTerms: ")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"a": -50, "b": 0, "c": 21}, {"a": 0, "b": 70, "c": 100}),
        ({"a": 7, "b": 7, "c": 7}, {"a": 0, "b": 0, "c": 0}),
        ({"a": 0, "b": 29, "c": 100}, {"a": 0, "b": 28, "c": 100}),
        ({"a": 0, "b": 57, "c": 100}, {"a": 0, "b": 56, "c": 100}),
        ({"a": 0, "b": 58, "c": 100}, {"a": 0, "b": 57, "c": 100}),
    ],
)
def test_normalising_divides_first_and_cuts_then(raw: dict[str, int], expected: dict[str, int]) -> None:
    placed = [
        pod(f"x{name}", on=name, affinity=near(WEB, HOST, weight=abs(worth), away=worth < 0))
        for name, worth in raw.items()
        if worth
    ]
    bench = Bench(InterPodAffinity, *(node(name) for name in raw), *placed)
    assert bench.scores(pod("new", labels=WEB)) == expected


def test_what_others_are_to_the_same_terms_is_judged_once_whatever_labels_a_pod_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod of a StatefulSet has a label of its own, and all of them the same terms."""
    placed = [pod(f"web-{i}", on="a", labels={**WEB, "ordinal": str(i)}) for i in range(5)]
    bench = Bench(InterPodAffinity, node("a"), node("b"), *placed)
    asked: list[object] = []

    def note(*args: Any) -> bool:
        asked.append(args)
        return matches_other(*args)

    monkeypatch.setattr(_affinity_counts, "matches_other", note)
    nodes, states = bench.store.snapshot(), [CycleState() for _ in range(3)]
    for i, state in enumerate(states):
        newcomer = wanting(term(key=HOST), kind="podAntiAffinity", labels={**WEB, "ordinal": str(9 + i)})
        view = bench.store.view(newcomer)
        assert bench.plugin.pre_filter(view, nodes, state) is None
        passes = bench.plugin.filter(view, nodes, state).passes
        assert passes is not None and passes.tolist() == [False, True]
    assert len(asked) == len(placed)


def test_pods_whose_own_labels_matter_to_nobody_share_their_counters() -> None:
    bench = Bench(InterPodAffinity, node("a"), node("b"), pod("web-0", on="a", labels=WEB, affinity=near(WEB, HOST, away=True)))
    nodes, table = bench.store.snapshot(), CounterTable()

    def counters(ordinal: int, **labels: str) -> Any:
        newcomer = wanting(term(key=HOST), kind="podAntiAffinity", labels={**WEB, "ordinal": str(ordinal), **labels})
        return bench.plugin.counters(bench.store.view(newcomer), nodes, CycleState(None, table))

    first = counters(1)
    assert counters(2) is first
    assert counters(3, app="db") is not first, "whom web pods do not mean"
    two = bench.store.view(wanting(term(key=HOST), kind="podAntiAffinity", labels={**WEB, "ordinal": "2"}))
    assert first.is_for(two, nodes)
    bench.put(pod("jealous", on="b", affinity=near({"ordinal": "2"}, HOST, away=True)))
    assert not first.is_for(two, nodes), "somebody came who means it and not the others"
    assert counters(1) is first
    parted = counters(2)
    assert parted is not first
    assert [c.existing_anti.on(HOST, nodes).tolist() for c in (first, parted)] == [[1, 0], [1, 1]]
