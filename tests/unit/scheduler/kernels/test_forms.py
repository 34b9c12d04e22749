"""Both forms of a formula give the same answer to the last bit, and say of the same columns that they are not for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.kernels import form, numpy_form
from kubesched.scheduler.kernels.numpy_form import EXACT, LARGEST, Ints

compiled_form: Any = pytest.importorskip(
    "kubesched.scheduler.kernels.compiled_form",
    reason="nothing was compiled: there was no C compiler when kubesched was installed",
)

SIZES = st.sampled_from([1, 2, 7, 8, 63, 511, 512, 513, 1300])
"""Around what a vector holds, and around a block of rows."""
ODD_AMOUNTS = (-(1 << 63), -1, 0, 1, 99, 100, EXACT - 1, EXACT, LARGEST - 1, LARGEST, (1 << 63) - 1)


@st.composite
def columns(draw: st.DrawFn, n: int, low: int, high: int, odd: bool = False) -> Ints:
    """Return numbers by a seed, some of them the ends of the range, and at most one that is out of the ordinary."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    column = random.integers(low, high, n, endpoint=True)
    column[random.integers(0, n, max(n // 8, 1))] = draw(st.sampled_from([low, high]))
    if odd and draw(st.booleans()):
        column[draw(st.integers(0, n - 1))] = draw(st.sampled_from(ODD_AMOUNTS))
    return column


@st.composite
def usages(draw: st.DrawFn, n: int, most: int) -> tuple[numpy_form.Usage, ...]:
    found = []
    for _ in range(draw(st.integers(1, most))):
        offer = draw(st.sampled_from([1, 3, 110, 4000, 1 << 35, EXACT - 1]))
        offered, used = draw(columns(n, max(offer // 2, 1), offer, True)), draw(columns(n, 0, offer + offer // 3, True))
        more = draw(st.one_of(st.integers(0, offer), st.sampled_from([0, 1, LARGEST - 1, LARGEST, -1, 1 << 70])))
        found.append((offered, used, more, draw(st.sampled_from([1, 1, 2, 3, 100]))))
    return tuple(found)


def assert_same(formula: str, *args: Any) -> None:
    in_numpy, compiled = getattr(numpy_form, formula)(*args), getattr(compiled_form, formula)(*args)
    if in_numpy is None or compiled is None:
        assert in_numpy is compiled
    elif isinstance(in_numpy, int):
        assert in_numpy == compiled
    elif isinstance(in_numpy, tuple):
        assert (in_numpy[0].tolist(), in_numpy[1]) == (compiled[0].tolist(), compiled[1])
    else:
        assert compiled.dtype == in_numpy.dtype
        assert compiled.tolist() == in_numpy.tolist()


@given(st.data(), SIZES, st.booleans())
def test_how_free_or_full_nodes_are(data: st.DataObject, n: int, spreads: bool) -> None:
    assert_same("allocation_percent", data.draw(usages(n, 4)), spreads, n)


@given(st.data(), SIZES)
def test_how_balanced_nodes_are(data: st.DataObject, n: int) -> None:
    assert_same("balance_scores", data.draw(usages(n, 3)), n)


@given(st.data(), SIZES)
def test_the_lowest_difference(data: st.DataObject, n: int) -> None:
    assert_same("lowest_difference", data.draw(columns(n, -100, 100, True)), data.draw(columns(n, 0, 100, True)))


@st.composite
def spreads(draw: st.DrawFn, n: int) -> tuple[numpy_form.Spread, ...]:
    found = []
    for _ in range(draw(st.sampled_from([1, 2, 3, 16, 17, 20]))):
        n_domains = draw(st.sampled_from([1, 2, 10, 600]))
        has_codes, has_lacking = draw(st.booleans()), draw(st.booleans())
        counts = draw(columns(n_domains if has_codes else n, 0, draw(st.sampled_from([0, 1, 50])))).astype(np.float64)
        codes = draw(columns(n, -1, n_domains - 1)) if has_codes else None
        lacking = draw(masks(n)) if has_lacking else None
        found.append((counts, codes, lacking, draw(st.floats(0.6, 12.0)), float(draw(st.integers(0, 5)))))
    return tuple(found)


@st.composite
def masks(draw: st.DrawFn, n: int) -> npt.NDArray[np.bool_]:
    which = draw(st.sampled_from(["some", "all", "none"]))
    return draw(columns(n, 0, 1)).astype(np.bool_) if which == "some" else np.full(n, which == "all")


@given(st.data(), SIZES)
def test_scores_of_domains_that_are_added_to_totals(data: st.DataObject, n: int) -> None:
    totals = data.draw(columns(n, -(1 << 40), 1000))
    assert_same(
        "add_spread_scores", totals, data.draw(spreads(n)), data.draw(masks(n)), data.draw(st.sampled_from([1, 2, 100]))
    )


@given(st.data(), SIZES, st.sampled_from([1, 2, 10, 600]))
def test_the_nodes_of_refused_domains(data: st.DataObject, n: int, n_domains: int) -> None:
    bits, codes = data.draw(columns(n_domains, 0, 2)), data.draw(columns(n, -1, n_domains - 1))
    assert_same("refuse_domains", data.draw(columns(n, -(1 << 40), 1000)), bits, codes, -(1 << 40))


@given(st.data(), SIZES)
def test_the_sum_of_columns_by_their_weights(data: st.DataObject, n: int) -> None:
    terms = [
        (data.draw(columns(n, -(1 << 40), 100, True)), data.draw(st.integers(1, 300)))
        for _ in range(data.draw(st.integers(0, 20)))
    ]
    assert_same("weighted_total", tuple(terms), data.draw(st.integers(-5, 10**6)), n)


SHORT, LONG = np.zeros(3, dtype=np.int64), np.zeros(4, dtype=np.int64)
CASES: list[tuple[str, type[Exception], Callable[[], object]]] = [
    ("columns of different lengths", TypeError, lambda: compiled_form.lowest_difference(LONG, SHORT)),
    ("a column of 32 bits", TypeError, lambda: compiled_form.lowest_difference(LONG.astype(np.int32), LONG)),
    ("a column of floats", TypeError, lambda: compiled_form.lowest_difference(LONG.astype(np.float64), LONG)),
    ("every other row", ValueError, lambda: compiled_form.lowest_difference(np.zeros(8, dtype=np.int64)[::2], LONG)),
    ("no column", TypeError, lambda: compiled_form.lowest_difference(None, LONG)),
    ("one argument", TypeError, lambda: compiled_form.lowest_difference(LONG)),
    ("an offer that is too short", TypeError, lambda: compiled_form.allocation_percent(((SHORT, LONG, 1, 1),), True, 4)),
    ("a term without a weight", ValueError, lambda: compiled_form.weighted_total(((LONG,),), 0, 4)),
    ("a term that is too short", ValueError, lambda: compiled_form.weighted_total(((SHORT, 1),), 0, 4)),
    ("half a usage", TypeError, lambda: compiled_form.balance_scores(((LONG, LONG, 1, 1), (LONG, LONG, 1)), 4)),
    (
        "a count for each of fewer nodes",
        TypeError,
        lambda: compiled_form.add_spread_scores(LONG, ((SHORT.astype(np.float64), None, None, 1.0, 0.0),), LONG == 0, 1),
    ),
    (
        "a count for a domain that is not there",
        IndexError,
        lambda: compiled_form.add_spread_scores(LONG, ((SHORT.astype(np.float64), LONG + 3, None, 1.0, 0.0),), LONG == 0, 1),
    ),
    (
        "no counts for any domain",
        IndexError,
        lambda: compiled_form.add_spread_scores(
            LONG, ((SHORT[:0].astype(np.float64), LONG - 1, None, 1.0, 0.0),), LONG == 0, 1
        ),
    ),
    ("a node in a domain beyond the bits", IndexError, lambda: compiled_form.refuse_domains(LONG, SHORT, LONG + 3, -1)),
    ("no bits for any domain", IndexError, lambda: compiled_form.refuse_domains(LONG, SHORT[:0], LONG - 1, -1)),
    ("totals of other nodes", TypeError, lambda: compiled_form.refuse_domains(SHORT, LONG, LONG, -1)),
    ("numbers for a mask", TypeError, lambda: compiled_form.add_spread_scores(LONG, (), LONG, 1)),
    ("totals for fewer nodes", TypeError, lambda: compiled_form.add_spread_scores(LONG, (), SHORT == 0, 1)),
]


@pytest.mark.parametrize(("error", "call"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_no_column_for_it_is_refused_and_not_read(error: type[Exception], call: Callable[[], object]) -> None:
    with pytest.raises(error):
        call()


def test_more_resources_than_there_is_room_for_are_left_to_whoever_asks() -> None:
    usage = (LONG + 10, LONG, 1, 1)
    assert compiled_form.allocation_percent((usage,) * 17, True, 4) is None


@pytest.mark.parametrize(
    "scores",
    [
        np.arange(8)[::2],
        np.arange(4)[::-1],
        np.arange(4, dtype=np.int32),
        np.arange(4, dtype=">i8"),
        np.broadcast_to(np.int64(7), 4),
    ],
    ids=["every other", "backwards", "of 32 bits", "of the other byte order", "one for all"],
)
def test_totals_are_made_of_whatever_is_a_column_to_numpy(scores: Any) -> None:
    assert compiled_form.weighted_total(((LONG, 1), (scores, 3)), 5, 4).tolist() == (5 + 3 * scores).tolist()


def test_what_is_compiled_is_what_runs() -> None:
    assert form == "compiled"
