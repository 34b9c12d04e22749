"""The rows that a selector over node labels matches, cached until a node's labels change.

There may be thousands of volumes and capacities, each for one node or zone. To match each of them against each node would be
too slow. So the rows are sorted by their value of a label once, and `hostname In [n7]` takes the rows with that value:

    rows by zone: a: 0, 3    b: 1, 2, 4          zone In [b]  ->  1, 2, 4, without looking at other rows

Only labels count: a volume's affinity cannot select nodes by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from kubesched.kube.api import (
    IN,
    LabelSelector,
    NodeSelector,
    Requirement,
    SelectorError,
    TopologySelectorTerm,
    compile_node_selector,
    compile_selector,
)
from kubesched.scheduler.cluster import Bools, Change, Ints, Reader, Snapshot, match_requirement

Alternatives = Sequence[Sequence[Requirement]]
"""A node matches if it meets all requirements of one of the sequences."""
_MANY = 1 << 15


class RowsBySelector:
    """Rows of the whole cluster by selector. Call `follow` before reading."""

    def __init__(self) -> None:
        self._reader: Reader[Change] = Reader()
        self._by_value: dict[str, tuple[Ints, Ints]] = {}
        self._rows: dict[Hashable, Ints] = {}
        self._nodes: Snapshot | None = None
        self.epoch = 0
        self.nowhere: Bools = np.zeros(0, dtype=np.bool_)
        """A column of False; never written to."""

    def follow(self, nodes: Snapshot) -> None:
        """Follow the cluster. If labels changed, `epoch` changes and all earlier answers are outdated."""
        changes = self._reader.changed(nodes.journal)
        if changes is not None and not any(change.labels for change in changes):
            return
        self._nodes = nodes.everything()
        self._by_value.clear()
        self._rows.clear()
        self.epoch += 1
        self.nowhere = np.zeros(self.n, dtype=np.bool_)

    @property
    def n(self) -> int:
        """Return the number of nodes of the whole cluster."""
        return self._nodes.n if self._nodes is not None else 0

    def of_node_selector(self, selector: NodeSelector | None) -> Ints:
        """Return the rows that match a volume's node affinity, all if it has none. matchFields are ignored."""
        return self._reached(selector, lambda: _terms(selector))

    def of_label_selector(self, selector: LabelSelector | None) -> Ints:
        """Return the rows that match a label selector, none if it is absent or invalid."""
        return self._reached(("labels", _frozen(selector)), lambda: _requirements(selector))

    def of_topologies(self, terms: tuple[TopologySelectorTerm, ...]) -> Ints:
        """Return the rows that match one of a storage class's allowedTopologies, all if it has none."""
        return self._reached(terms, lambda: _allowed(terms))

    def column(self, rows: Ints) -> Bools:
        """Return rows as a column of the whole cluster."""
        held = np.zeros(self.n, dtype=np.bool_)
        held[rows] = True
        return held

    def _reached(self, key: Hashable, alternatives: Callable[[], Alternatives]) -> Ints:
        found = self._rows.get(key)
        if found is None:
            # Selectors of deleted volumes stay here until labels change or the cache is full. Emptying it is enough:
            # rows are found again.
            if len(self._rows) >= _MANY:
                self._rows.clear()
            found = self._rows[key] = _union([self._of_requirements(wanted) for wanted in alternatives()])
        return found

    def _of_requirements(self, requirements: Sequence[Requirement]) -> Ints:
        """Return the rows that match all requirements: an `In` narrows them by the sorted index, the others are checked on
        what is left."""
        assert self._nodes is not None
        # Most selectors of volumes have one `In` (a host name, a zone), so this index alone answers them.
        listed = next((wanted for wanted in requirements if wanted.operator == IN), None)
        rows = self._with_values(listed) if listed is not None else np.arange(self.n, dtype=np.int64)
        rest = [wanted for wanted in requirements if wanted is not listed]
        if not rest or not len(rows):
            return rows
        view = self._nodes.take(rows)
        matched = np.ones(view.n, dtype=np.bool_)
        for wanted in rest:
            matched &= match_requirement(wanted, view)
        return rows[matched]

    def _with_values(self, wanted: Requirement) -> Ints:
        """Return the rows with one of the values of a label, from the rows sorted by that label."""
        assert self._nodes is not None
        column = self._nodes.label(wanted.key)
        if column is None:
            return np.zeros(0, dtype=np.int64)
        sorted_by = self._by_value.get(wanted.key)
        if sorted_by is None:
            codes = self._nodes.codes(wanted.key)
            # The rows sorted by code, and where each code begins: codes 1 0 1 2 give order [1, 0, 2, 3] and starts
            # [0, 1, 3, 4]. The rows with code 1 are order[1:3] = [0, 2].
            order = np.argsort(codes, kind="stable").astype(np.int64)
            starts = np.searchsorted(codes[order], np.arange(len(column.values) + 1)).astype(np.int64)
            sorted_by = self._by_value[wanted.key] = (order, starts)
        order, starts = sorted_by
        codes_wanted = {column.values.find(value) for value in wanted.values}
        # A value without a code had no node when the rows were sorted, and labels have not changed since.
        parts = [order[starts[code] : starts[code + 1]] for code in codes_wanted if 0 <= code < len(starts) - 1]
        return _union(parts)


def _union(parts: Sequence[Ints]) -> Ints:
    if len(parts) == 1:
        return parts[0]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def _terms(selector: NodeSelector | None) -> Alternatives:
    if selector is None:
        return [()]
    return [term.expressions for term in compile_node_selector(selector).terms if term.error is None]


def _requirements(selector: LabelSelector | None) -> Alternatives:
    try:
        compiled = compile_selector(selector)
    except SelectorError:
        return []
    return [] if compiled.is_nothing else [compiled.requirements]


def _allowed(terms: tuple[TopologySelectorTerm, ...]) -> Alternatives:
    return (
        [
            [Requirement(wanted.key, IN, wanted.values) for wanted in term.match_label_expressions]
            for term in terms
            if term.match_label_expressions and all(wanted.values for wanted in term.match_label_expressions)
        ]
        if terms
        else [()]
    )


def _frozen(selector: LabelSelector | None) -> Hashable:
    if selector is None:
        return None
    return (tuple(sorted(selector.match_labels.items())), selector.match_expressions)
