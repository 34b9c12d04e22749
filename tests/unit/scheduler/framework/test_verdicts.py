"""Verdicts: who owns a node, what its code is, and the text that users see."""

from __future__ import annotations

import numpy as np
import pytest
from framework_fakes import small_store, snapshot

from kubesched.scheduler.framework.verdicts import (
    MAX_REASONS,
    SUCCESS,
    Code,
    Diagnosis,
    Reason,
    Rejections,
    Verdicts,
    code_column,
    failed,
    none_available,
    unresolvable,
    unschedulable,
    worst_code,
)

CPU, MEMORY = Reason("Insufficient cpu"), Reason("Insufficient memory")
NEVER = Reason("Insufficient cpu", resolvable=False)
TAINT = Reason("node(s) had untolerated taint(s)", resolvable=False)
LATER = Reason("not yet", pending=True)


def column(*rows: bool | int) -> np.ndarray:
    return np.array(rows, dtype=np.bool_)


@pytest.mark.parametrize(
    ("code", "text", "rejected"),
    [
        (Code.SUCCESS, "Success", False),
        (Code.ERROR, "Error", False),
        (Code.UNSCHEDULABLE, "Unschedulable", True),
        (Code.UNRESOLVABLE, "UnschedulableAndUnresolvable", True),
        (Code.WAIT, "Wait", False),
        (Code.SKIP, "Skip", False),
        (Code.PENDING, "Pending", True),
    ],
)
def test_codes_have_the_names_and_the_order_of_the_reference(code: Code, text: str, rejected: bool) -> None:
    assert (code.text, code.is_rejected) == (text, rejected)
    assert list(Code).index(code) == code.value


def test_a_status_joins_its_reasons() -> None:
    assert unschedulable("one", "two").message == "one, two"
    assert unresolvable("one").by("Taints").plugin == "Taints"
    assert SUCCESS.is_success and not failed("x").is_rejected


@pytest.mark.parametrize(
    ("sentence", "reasons", "code"),
    [
        ("one that eviction helps with", [CPU], Code.UNSCHEDULABLE),
        ("all that eviction helps with", [CPU, MEMORY], Code.UNSCHEDULABLE),
        ("one of them hopeless", [MEMORY, NEVER], Code.UNRESOLVABLE),
        ("only waiting", [LATER], Code.PENDING),
        ("waiting and short", [LATER, CPU], Code.UNSCHEDULABLE),
    ],
)
def test_the_worst_reason_decides_the_code(sentence: str, reasons: list[Reason], code: Code) -> None:
    assert worst_code(reasons) is code, sentence
    nodes = snapshot("a")
    verdicts = Verdicts(nodes)
    verdicts.add("P", Rejections.every(*((column(1), reason) for reason in reasons)))
    for asked in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING):
        assert verdicts.has_code(asked).tolist() == [asked is code], sentence


def test_every_keeps_all_reasons_and_first_only_one() -> None:
    cases = (column(1, 1, 0), CPU), (column(0, 1, 0), MEMORY)
    assert [Rejections.every(*cases).at(row) for row in range(3)] == [(CPU,), (CPU, MEMORY), ()]
    assert [Rejections.first(*cases).at(row) for row in range(3)] == [(CPU,), (CPU,), ()]


def test_reasons_can_be_given_by_number_and_by_domain() -> None:
    assert [Rejections.choose(np.array([0, 1, 2]), (CPU, TAINT)).at(row) for row in range(3)] == [(), (CPU,), (TAINT,)]
    nodes = small_store("a", "b").snapshot()
    refused = Rejections.by_domain(nodes, "zone", np.array([2], dtype=np.uint64), (CPU, TAINT))
    assert refused.refuses_any and [refused.at(row) for row in range(2)] == [(TAINT,)] * 2, "neither has a zone"
    refused = Rejections.by_domain(nodes, "zone", np.zeros(1, dtype=np.uint64), (CPU,))
    assert not refused.refuses_any and refused.passes is None


@pytest.mark.parametrize("n_reasons", [2, MAX_REASONS, MAX_REASONS + 1, 200])
def test_a_verdict_takes_any_number_of_reasons(n_reasons: int) -> None:
    chance = np.random.default_rng(n_reasons)
    columns = chance.random((n_reasons, 40)) < 0.3
    columns[:, 0] = False
    columns[:, 1:3] = columns[:, 3:4]
    reasons = [Reason(f"r{i}", resolvable=i % 7 != 0, pending=i % 7 != 0 and i % 3 == 0) for i in range(n_reasons)]
    found = Rejections.every(*zip(columns, reasons, strict=True))
    said = [tuple(reason for reason, refused in zip(reasons, column, strict=True) if refused) for column in columns.T]
    assert found.passes is not None and found.passes.tolist() == [not given for given in said]
    assert [found.at(row) for row in range(40)] == said
    assert all((found.has(i) == column).all() for i, column in enumerate(columns))
    for code in (Code.UNRESOLVABLE, Code.UNSCHEDULABLE, Code.PENDING):
        assert code_column(found, code).tolist() == [bool(given) and worst_code(given) is code for given in said]
    rows = chance.random(40) < 0.5
    assert found.counts(rows) == np.count_nonzero(columns & rows, axis=1).tolist()
    some = np.array([5, 3, 0])
    assert [found.taken(some).at(i) for i in range(3)] == [said[5], said[3], ()]
    again = Rejections.by_reason({reason: np.flatnonzero(c).tolist() for reason, c in zip(reasons, columns, strict=True)}, 40)
    assert [again.at(row) for row in range(40)] == said
    first = Rejections.first(*zip(columns, reasons, strict=True))
    assert [first.at(row) for row in range(40)] == [given[:1] for given in said]


@pytest.mark.parametrize("n_reasons", [3, 100])
def test_verdicts_with_any_number_of_reasons_overrule_and_are_counted(n_reasons: int) -> None:
    reasons = tuple(Reason(f"r{i}", resolvable=i != 1) for i in range(n_reasons))
    verdicts = Verdicts(snapshot("a", "b", "c"))
    verdicts.add("Fit", Rejections.every(*((column(i == 0, 1, 0), reason) for i, reason in enumerate(reasons))))
    verdicts.refuse(np.array([2]), "Extender", reasons)
    assert verdicts.statuses() == {
        "a": unschedulable("r0").by("Fit"),
        "b": unresolvable(*(reason.text for reason in reasons)).by("Fit"),
        "c": unresolvable(*(reason.text for reason in reasons)).by("Extender"),
    }
    counts: dict[str, int] = {}
    assert verdicts.count_reasons(counts, leaving_out={}) == 3
    assert counts == {reason.text: 3 if i == 0 else 2 for i, reason in enumerate(reasons)}
    assert verdicts.has_code(Code.UNRESOLVABLE).tolist() == [False, True, True]
    other = Verdicts(snapshot("a", "b", "c"))
    other.overrule(np.arange(3), verdicts)
    assert other.statuses() == verdicts.statuses()


def test_the_first_plugin_to_refuse_a_node_owns_it() -> None:
    verdicts = Verdicts(snapshot("a", "b", "c"))
    verdicts.add("Taints", Rejections.where(column(1, 0, 0), TAINT))
    verdicts.add("Fit", Rejections.every((column(1, 1, 0), CPU), (column(0, 1, 0), MEMORY)))
    assert verdicts.statuses() == {
        "a": unresolvable(TAINT.text).by("Taints"),
        "b": unschedulable(CPU.text, MEMORY.text).by("Fit"),
    }
    assert verdicts.feasible.tolist() == [False, False, True]
    assert verdicts.plugins() == ({"Taints", "Fit"}, set())


def test_nodes_that_are_not_considered_are_neither_feasible_nor_refused() -> None:
    verdicts = Verdicts(snapshot("a", "b", "c"), column(0, 1, 1))
    verdicts.add("Fit", Rejections.where(column(1, 1, 0), CPU))
    assert list(verdicts.statuses()) == ["b"]
    assert verdicts.feasible.tolist() == [False, False, True]


def test_an_error_counts_only_where_nobody_refused_before() -> None:
    verdicts = Verdicts(snapshot("a", "b"))
    verdicts.add("Taints", Rejections.where(column(1, 0), TAINT))
    verdicts.add("Devices", Rejections(None, (), {0: "broken"}))
    assert verdicts.error is None
    verdicts.add("Devices", Rejections(None, (), {1: "broken"}))
    assert verdicts.error == ("Devices", "broken")


def test_pending_plugins_are_named_apart() -> None:
    verdicts = Verdicts(snapshot("a", "b"))
    verdicts.add("Devices", Rejections.where(column(1, 0), LATER))
    verdicts.add("Fit", Rejections.where(column(0, 1), CPU))
    assert verdicts.plugins() == ({"Devices", "Fit"}, {"Devices"})


def test_later_verdicts_on_some_rows_overrule_earlier_ones() -> None:
    nodes = snapshot("a", "b", "c")
    verdicts = Verdicts(nodes)
    verdicts.add("Fit", Rejections.where(column(0, 0, 1), CPU))
    beside = Verdicts(nodes.take([0, 2]))
    beside.add("Ports", Rejections.where(column(1, 0), MEMORY))
    verdicts.overrule(np.array([0, 2]), beside)
    assert verdicts.statuses() == {"a": unschedulable(MEMORY.text).by("Ports"), "c": unschedulable(CPU.text).by("Fit")}


# Texts


def diagnosis(names: int, *columns: tuple[str, Rejections], considered: np.ndarray | None = None) -> Diagnosis:
    verdicts = Verdicts(snapshot(*(f"n{i}" for i in range(names))), considered)
    for plugin, rejections in columns:
        verdicts.add(plugin, rejections)
    return Diagnosis(names, verdicts)


def test_reasons_are_counted_and_sorted_as_text() -> None:
    rows = np.arange(12)
    told = diagnosis(
        12, ("Fit", Rejections.every((rows < 10, CPU), (rows < 2, MEMORY))), ("Taints", Rejections.where(rows >= 10, TAINT))
    )
    told.post_filter_message = (
        "no new claims to deallocate, preemption: 0/12 nodes are available: 10 No preemption victims "
        "found for incoming pod, 2 Preemption is not helpful for scheduling."
    )
    assert told.message() == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 Insufficient memory, 2 node(s) had untolerated taint(s). "
        "no new claims to deallocate, preemption: 0/12 nodes are available: 10 No preemption victims found for incoming "
        "pod, 2 Preemption is not helpful for scheduling."
    )


def test_nodes_that_nobody_looked_at_add_nothing_unless_there_is_a_reason() -> None:
    short = Rejections.every((column(1, 1, 0, 0, 0), CPU), (column(0, 1, 0, 0, 0), MEMORY))
    taint = Reason("node(s) had untolerated taint", resolvable=False)
    told = diagnosis(
        5, ("Fit", short), ("Taints", Rejections.where(column(0, 0, 1, 0, 0), taint)), considered=column(1, 1, 1, 0, 0)
    )
    text = "0/5 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint, 2 Insufficient cpu."
    assert told.message() == text
    assert told.status("n4").reasons == ()
    told.absent = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    assert told.message() == text[:-1] + ", 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert told.status("n4") == told.absent


def test_a_refusal_in_pre_filter_speaks_for_all_nodes() -> None:
    told = Diagnosis(3, pre_filter_message="pod affinity terms conflict", post_filter_message="not found")
    assert told.message() == "0/3 nodes are available: pod affinity terms conflict. not found"


def test_extra_statuses_stand_in_for_verdicts() -> None:
    told = diagnosis(2, ("Fit", Rejections.where(column(1, 1), CPU)))
    told.extra["n0"] = unschedulable("extender said no")
    assert told.message() == "0/2 nodes are available: 1 Insufficient cpu, 1 extender said no."
    assert told.status("n0").message == "extender said no"
    assert set(told.statuses()) == {"n0", "n1"}


def test_no_reasons_leave_the_sentence_open() -> None:
    assert none_available(4, {}) == "0/4 nodes are available:"
