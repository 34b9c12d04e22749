"""The runner: how the answers of several plugins at one point become one."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from framework_fakes import Says, named, profile_of, small_store, snapshot, some_pod

from kubesched.errors import PluginError
from kubesched.scheduler.framework import SKIP, CycleState, NodeNames, PostFiltered, Reason, Rejections, Status
from kubesched.scheduler.framework.preemption.whatif_filters import WhatIfFilters
from kubesched.scheduler.framework.verdicts import (
    CLEAR,
    SUCCESS,
    Code,
    Diagnosis,
    Nomination,
    failed,
    unresolvable,
    unschedulable,
)

ALL = np.ones(3, dtype=np.bool_)


def names(*given: str) -> NodeNames:
    return NodeNames(frozenset(given))


# PreFilter


def pre_filter(*answers: Any) -> Any:
    plugins = [named(name, pre_filter=answer) for name, answer in zip("ABCD", answers, strict=False)]
    store, state = small_store("a", "b", "c"), CycleState()
    found = profile_of(*plugins).pre_filter(some_pod(store), store.snapshot(), state)
    return found, state, [plugin.name for plugin in plugins if plugin.asked]


MERGED = [
    ("a plugin that skips is left out of Filter", (SKIP, None, SUCCESS), None, {"A"}, "ABC"),
    ("an unresolvable refusal ends it", (None, unresolvable("never"), None), unresolvable("never").by("B"), set(), "AB"),
    (
        "after another refusal the others are called, and the last one stands",
        (unschedulable("first"), None, unschedulable("last"), SKIP),
        unschedulable("last").by("C"),
        {"D"},
        "ABCD",
    ),
    (
        "an unresolvable refusal beats an earlier one",
        (unschedulable("first"), unresolvable("never")),
        unresolvable("never").by("B"),
        set(),
        "AB",
    ),
]


@pytest.mark.parametrize(("answers", "status", "skipped", "asked"), [c[1:] for c in MERGED], ids=[str(c[0]) for c in MERGED])
def test_answers_of_pre_filter_are_merged(answers: Any, status: Status | None, skipped: set[str], asked: str) -> None:
    found, state, were_asked = pre_filter(*answers)
    assert (found.status, state.skip_filter, were_asked) == (status, skipped, [*asked])
    assert found.considered is None


@pytest.mark.parametrize("answer", [failed("broken"), Status(Code.PENDING, ("broken",)), Status(Code.WAIT, ("broken",))])
def test_any_other_answer_is_an_error(answer: Status) -> None:
    with pytest.raises(PluginError) as error:
        pre_filter(None, answer)
    assert str(error.value) == 'running PreFilter plugin "B": broken'


def test_named_nodes_are_what_all_agree_on_as_far_as_they_exist() -> None:
    found, _, _ = pre_filter(names("a", "b", "gone"), None, names("b", "c", "gone"))
    assert found.considered.tolist() == [False, True, False]
    assert found.narrowed_by == {"A", "C"}
    assert found.absent == unresolvable("node(s) didn't satisfy plugin(s) [A C]")


def test_names_of_nodes_that_are_not_there_refuse_nobody_but_leave_no_node() -> None:
    found, _, _ = pre_filter(names("gone"))
    assert found.status is None
    assert not found.considered.any()


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ((names(), None), "node(s) didn't satisfy plugin A"),
        ((None, names("b"), names("a")), "node(s) didn't satisfy plugin(s) [B C] simultaneously"),
        ((names("c"), names("a"), names("b")), "node(s) didn't satisfy plugin(s) [A B] simultaneously"),
    ],
)
def test_no_node_that_all_agree_on_is_a_refusal(answers: tuple[Any, ...], text: str) -> None:
    found, _, _ = pre_filter(*answers)
    assert found.status == unresolvable(text)
    assert found.status.plugin == "", "nobody alone is to blame"


# Filter


def test_a_filter_must_answer_for_every_node() -> None:
    short = Rejections.where(np.array([True]), Reason("x"))
    with pytest.raises(PluginError, match='running "A" filter plugin: expected one verdict for each of 3 nodes'):
        profile_of(named("A", filter=short)).filter(some_pod(), snapshot(), CycleState())


def test_an_error_on_a_node_ends_the_attempt() -> None:
    broken = named("A", filter=Rejections(None, (), {1: "no answer"}))
    with pytest.raises(PluginError) as error:
        profile_of(broken).filter(some_pod(), snapshot(), CycleState())
    assert str(error.value) == 'running "A" filter plugin: no answer'


def test_filters_that_were_skipped_are_not_asked() -> None:
    plugin, state = named("A", filter=Rejections.where(ALL, Reason("x"))), CycleState()
    state.skip_filter |= {"A"}
    assert profile_of(plugin).filter(some_pod(), snapshot(), state).feasible.all()
    assert plugin.asked == []


# PostFilter


def post_filter(*answers: PostFiltered) -> tuple[PostFiltered, list[str]]:
    plugins = [named(name, post_filter=answer) for name, answer in zip("ABCD", answers, strict=False)]
    found = profile_of(*plugins).post_filter(some_pod(), snapshot(), CycleState(), Diagnosis(3))
    return found, [plugin.name for plugin in plugins if plugin.asked]


X, Y = PostFiltered(unschedulable("x"), Nomination("a")), PostFiltered(unschedulable("y"), CLEAR)
ENDINGS = [
    ("the first success is taken", (X, PostFiltered(SUCCESS, Nomination("b")), Y), SUCCESS, Nomination("b"), "AB"),
    (
        "refusals add up under the first name, and the last nomination is kept",
        (X, Y),
        unschedulable("x", "y").by("A"),
        CLEAR,
        "AB",
    ),
    ("None does not change the nomination", (Y, PostFiltered(unschedulable())), unschedulable("y").by("A"), CLEAR, "AB"),
    ("an unresolvable answer ends it", (X, PostFiltered(unresolvable("no")), X), unresolvable("no").by("B"), None, "AB"),
    ("an error ends it", (PostFiltered(failed("not found")), X), failed("not found").by("A"), None, "A"),
]


@pytest.mark.parametrize(("answers", "status", "nomination", "asked"), [c[1:] for c in ENDINGS], ids=[c[0] for c in ENDINGS])
def test_answers_of_post_filter_are_merged(answers: Any, status: Status, nomination: Nomination | None, asked: str) -> None:
    found, were_asked = post_filter(*answers)
    assert (found.status, found.nomination, were_asked) == (status, nomination, [*asked])


# Scoring


def score(*plugins: Any, feasible: Any = ALL, weights: Any = ()) -> Any:
    profile, state, pod, nodes = profile_of(*plugins, weights=weights), CycleState(), some_pod(), snapshot()
    profile.pre_score(pod, nodes, feasible, state)
    return profile.score(pod, nodes, feasible, state)


def test_scores_are_weighed_and_added() -> None:
    scores = score(named("A", score=[1, 2, 3]), named("B", score=[100, 0, 50]), weights=(3, 2))
    assert scores.total.tolist() == [203, 6, 109]
    assert {name: column.tolist() for name, column in scores.by_plugin.items()} == {"A": [3, 6, 9], "B": [200, 0, 100]}


def test_scores_may_be_any_array_of_numpys() -> None:
    class Backwards(Says):
        def score(self, pod: Any, nodes: Any, state: Any) -> Any:
            return np.array([3, 2, 1], dtype=np.int64)[::-1]

    assert score(Backwards(), named("B", score=[100, 0, 50]), weights=(3, 1)).total.tolist() == [103, 6, 59]


def test_a_weight_of_zero_is_one() -> None:
    assert score(named("A", score=[1, 2, 3]), weights=(0,)).total.tolist() == [1, 2, 3]


def test_nodes_that_are_not_feasible_are_out_of_the_running() -> None:
    assert score(named("A", score=[1, 2, 3]), feasible=np.array([True, False, True])).total.tolist() == [1, -1, 3]


def test_a_plugin_that_skips_pre_score_is_not_asked_for_scores() -> None:
    silent = named("A", pre_score=SKIP, score=[9, 9, 9])
    assert score(silent, named("B", score=[1, 2, 3])).total.tolist() == [1, 2, 3]
    assert "score" not in silent.asked


def test_any_other_answer_in_pre_score_is_an_error() -> None:
    with pytest.raises(PluginError) as error:
        score(named("A", pre_score=unschedulable("no"), score=[1, 2, 3]))
    assert str(error.value) == 'running PreScore plugin "A": no'


@pytest.mark.parametrize(("column", "value"), [([0, 101, 5], 101), ([0, -1, 5], -1)])
def test_a_score_out_of_range_is_an_error_in_the_words_of_the_reference(column: list[int], value: int) -> None:
    with pytest.raises(PluginError) as error:
        score(named("A", score=column))
    assert str(error.value) == (
        f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {value}, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_scores_of_nodes_that_are_not_feasible_may_be_anything() -> None:
    scores = score(named("A", score=[7, 500, -3]), feasible=np.array([True, False, False]))
    assert scores.total.tolist() == [7, -1, -1]


def test_a_score_must_be_given_for_every_node() -> None:
    with pytest.raises(PluginError, match="expected one 64-bit integer for each of 3 nodes"):
        score(named("A", score=[1, 2]))


def test_every_call_is_timed_under_the_name_of_its_point_and_plugin() -> None:
    seen: list[tuple[str, str, str]] = []
    profile = profile_of(named("A", pre_filter=SKIP), named("B"))
    profile.observe = lambda point, plugin, code, seconds: seen.append((point, plugin, code))
    store, state = small_store(), CycleState()
    profile.pre_filter(some_pod(store), store.snapshot(), state)
    profile.filter(some_pod(store), store.snapshot(), state)
    assert seen == [
        ("PreFilter", "A", "Skip"),
        ("PreFilter", "B", "Success"),
        ("PreFilter", "", "Success"),
        ("Filter", "B", "Success"),
        ("Filter", "", "Success"),
    ]


# What is kept


def test_nothing_keeps_a_profile_that_is_no_longer_used() -> None:
    """Plugins know their handle, handles the queue, and the queue its profiles: simulation after simulation stayed there."""
    store, plugin = small_store("a"), named("A")
    profile: Any = profile_of(plugin)
    plugin.handle.activate = lambda pods, queue=[profile]: None
    WhatIfFilters(profile, some_pod(store), CycleState(), None)
    gone = weakref.ref(profile)
    del profile, plugin
    gc.collect()
    assert gone() is None
