"""The answers of plugins, and the result of a scheduling cycle. "Does not fit" is always a value, never an exception.

`Status` is one answer for a whole pod (PreFilter, Reserve, Permit ...). `Rejections` is the answer of one filter for every
node: a column of bits. Each bit stands for a `Reason`, and zero means that the node passes. `Verdicts` holds the answers of
all filters, `Diagnosis` why no node was found, and `Decision` is what a cycle returns.

Example: a filter has the reasons (Insufficient cpu, Insufficient memory). The column 0, 1, 3 says: node 0 passes, node 1 has
too little cpu, node 2 too little of both. Texts are made only when a message is written: for most pods never.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot

Bits = npt.NDArray[np.uint64]
Packed = npt.NDArray[np.uint8]
MAX_REASONS = 64
"""So many reasons have a bit each in a column; a verdict with more of them numbers its sets of reasons."""
FEW = 16
"""Up to so many elements are gone through one by one, which is faster than NumPy on short arrays."""


class Code(IntEnum):
    """The status codes of kube-scheduler, in its order."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def text(self) -> str:
        """Return the name that users see."""
        return _CODE_TEXTS[self]

    @property
    def is_rejected(self) -> bool:
        """Return whether the code says "not here" or "not now", as opposed to "something broke"."""
        return self in _REJECTED


_CODE_TEXTS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node is refused. `resolvable` says whether removing pods from the node could help."""

    text: str
    resolvable: bool = True
    pending: bool = False

    @property
    def code(self) -> Code:
        """Return the status code that this reason alone gives a node."""
        if self.pending:
            return Code.PENDING
        return Code.UNSCHEDULABLE if self.resolvable else Code.UNRESOLVABLE


@dataclass(frozen=True, slots=True)
class Status:
    """One answer: a code, the reasons for it, and the plugin that gave it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    is_gone: bool = False
    """Whether this is an error only because the pod does not exist any more."""

    @property
    def message(self) -> str:
        """Return the reasons as one text."""
        return ", ".join(self.reasons)

    @property
    def is_success(self) -> bool:
        """Return whether the code is SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        """Return whether the pod is refused; false for success and for an error."""
        return self.code.is_rejected

    def by(self, plugin: str) -> Status:
        """Return the same answer with the plugin's name on it."""
        return Status(self.code, self.reasons, plugin, self.is_gone)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return a refusal that removing pods could change."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a refusal that removing pods would not change."""
    return Status(Code.UNRESOLVABLE, reasons)


def failed(*reasons: str) -> Status:
    """Return an error."""
    return Status(Code.ERROR, reasons)


class Rejections:
    """One filter's verdict on every node: a node passes if its bits are zero.

    Bit i stands for reason i. With more than 64 reasons there are `sets`: `bits` is then the number of a row of `sets`, and
    bit i of that row stands for reason i. Row 0 is empty.

    `errors` has the rows for which the plugin has no answer but an error. Such a row ends the attempt, unless an earlier filter
    refused it: kube-scheduler would not have called this filter for it.

    `domains` is set if all nodes of a domain have the same verdict: a label key, and the bits for each of its values
    (`by_domain`).
    """

    __slots__ = ("bits", "errors", "reasons", "sets")

    domains: tuple[str, Bits] | None = None

    def __init__(
        self,
        bits: Bits | None,
        reasons: tuple[Reason, ...],
        errors: Mapping[int, str] | None = None,
        sets: Packed | None = None,
    ) -> None:
        self.bits = bits
        self.reasons = reasons
        self.errors = errors
        self.sets = sets

    @staticmethod
    def none(nodes: Snapshot) -> Rejections:
        """Refuse no node."""
        return _NONE

    @staticmethod
    def where(refused: Bools, reason: Reason) -> Rejections:
        """Refuse the nodes where the column is true, all for one reason."""
        return Rejections(refused.astype(np.uint64), (reason,))

    @staticmethod
    def first(*cases: tuple[Bools, Reason]) -> Rejections:
        """Refuse each node for the first of the reasons whose column is true on it."""
        if len(cases) == 1:
            return Rejections.where(*cases[0])
        bits = np.zeros(len(cases[0][0]), dtype=np.uint64)
        if len(cases) > MAX_REASONS:
            for i, (refused, _) in enumerate(cases):
                bits[refused & (bits == 0)] = i + 1
            return Rejections.choose(bits, [reason for _, reason in cases])
        for i, (refused, _) in enumerate(cases):
            bits[refused & (bits == 0)] = 1 << i
        return Rejections(bits, tuple(reason for _, reason in cases))

    @staticmethod
    def every(*cases: tuple[Bools, Reason]) -> Rejections:
        """Refuse each node for all of the reasons whose columns are true on it."""
        if len(cases) == 1:
            return Rejections.where(*cases[0])
        if len(cases) > MAX_REASONS:
            return _with_sets((refused for refused, _ in cases), tuple(reason for _, reason in cases))
        bits = np.zeros(len(cases[0][0]), dtype=np.uint64)
        for i, (refused, _) in enumerate(cases):
            bits |= refused.astype(np.uint64) << np.uint64(i)
        return Rejections(bits, tuple(reason for _, reason in cases))

    @staticmethod
    def by_domain(nodes: Snapshot, key: str, bits: Bits, reasons: tuple[Reason, ...]) -> Rejections:
        """Refuse all nodes of a domain alike: `bits` has an element for each value of the label key, and a last one for nodes
        without the label."""
        return _DomainRejections(key, bits, nodes.codes(key), reasons)

    @staticmethod
    def choose(which: npt.NDArray[np.integer[Any]], reasons: Sequence[Reason]) -> Rejections:
        """Refuse each node for the reason of that number; 0 lets it pass, 1 is the first reason."""
        if len(reasons) > MAX_REASONS:
            return _with_sets((which == i + 1 for i in range(len(reasons))), tuple(reasons))
        bits = np.where(which > 0, np.uint64(1) << (which.astype(np.uint64) - np.uint64(1)), np.uint64(0))
        return Rejections(bits, tuple(reasons))

    @property
    def passes(self) -> Bools | None:
        """Return which nodes pass; None means all of them."""
        return self.bits == 0 if self.bits is not None else None

    @staticmethod
    def by_reason(rows: Mapping[Reason, Sequence[int]], n: int) -> Rejections:
        """Refuse each of so many nodes for all of the reasons that name its row."""
        if not rows:
            return _NONE
        if len(rows) <= MAX_REASONS:
            bits = np.zeros(n, dtype=np.uint64)
            for i, refused in enumerate(rows.values()):
                bits[refused] |= np.uint64(1 << i)
            return Rejections(bits, tuple(rows))
        return _with_sets((_column(refused, n) for refused in rows.values()), tuple(rows))

    @property
    def refuses_any(self) -> bool:
        """Return whether any node is refused."""
        bits = self.bits if self.domains is None else self.domains[1]
        return bits is not None and bool(bits.any())

    def taken(self, rows: Ints) -> Rejections:
        """Return the verdicts on some rows."""
        return Rejections(self.bits[rows] if self.bits is not None else None, self.reasons, sets=self.sets)

    def has(self, i: int) -> Bools:
        """Return which nodes are refused for a reason, given by its place in `reasons`."""
        assert self.bits is not None
        if self.sets is not None:
            return self._of_sets(self.sets[:, i >> 3] & (1 << (i & 7)) != 0)
        found: Bools = self.bits & np.uint64(1 << i) != 0
        return found

    def has_any(self, codes: Iterable[Code]) -> Bools:
        """Return which nodes are refused for a reason that alone gives one of these codes."""
        assert self.bits is not None
        wanted = [reason.code in codes for reason in self.reasons]
        if self.sets is not None:
            return self._of_sets(np.bitwise_or.reduce(self.sets & np.packbits(wanted, bitorder="little"), axis=1) != 0)
        found: Bools = self.bits & np.uint64(sum(1 << i for i, is_wanted in enumerate(wanted) if is_wanted)) != 0
        return found

    def counts(self, rows: Bools) -> list[int]:
        """Return for each reason how many of the rows are refused for it."""
        assert self.bits is not None
        if self.sets is None:
            return [int(np.count_nonzero((self.bits & np.uint64(1 << i) != 0) & rows)) for i in range(len(self.reasons))]
        totals = np.zeros(len(self.reasons), dtype=np.int64)
        numbers, n_rows = np.unique(self.bits[rows], return_counts=True)
        for number, n in zip(numbers.tolist(), n_rows.tolist(), strict=True):
            totals[self._places(number)] += n
        counts: list[int] = totals.tolist()
        return counts

    def at(self, row: int) -> tuple[Reason, ...]:
        """Return the reasons against one node; none if it passes."""
        bits = int(self.bits[row]) if self.bits is not None else 0
        if self.sets is not None:
            return tuple(self.reasons[i] for i in self._places(bits).tolist())
        return tuple(reason for i, reason in enumerate(self.reasons) if bits >> i & 1) if bits else ()

    def _places(self, number: int) -> Ints:
        """Return which reasons are in a set."""
        assert self.sets is not None
        return np.flatnonzero(np.unpackbits(self.sets[number], bitorder="little"))

    def _of_sets(self, is_true: Bools) -> Bools:
        """Return for each node what is true of its set."""
        found: Bools = is_true[self.bits]
        return found

    def status(self, row: int) -> Status:
        """Return one node's verdict in words."""
        given = self.at(row)
        return Status(worst_code(given), tuple(reason.text for reason in given)) if given else SUCCESS


class _DomainRejections(Rejections):
    """Verdicts by domain. The column for all nodes is only made if it is read: the cache needs the table alone."""

    __slots__ = ("_bits", "_codes", "domains")

    def __init__(self, key: str, bits: Bits, codes: Ints, reasons: tuple[Reason, ...]) -> None:
        self.domains = key, bits
        self.reasons, self.errors, self.sets = reasons, None, None
        self._codes = codes
        self._bits: Bits | None = None

    @property
    def bits(self) -> Bits | None:  # type: ignore[override]
        """Return the column of bits; None if no domain is refused."""
        assert self.domains is not None
        if self._bits is None and self.domains[1].any():
            self._bits = self.domains[1].take(self._codes)
        return self._bits


_NONE = Rejections(None, ())


def _column(rows: npt.NDArray[np.int64] | Bools | Sequence[int], n: int) -> Bools:
    column = np.zeros(n, dtype=np.bool_)
    column[rows] = True
    return column


def _with_sets(columns: Iterable[Bools], reasons: tuple[Reason, ...]) -> Rejections:
    """Refuse each node for all of the reasons whose columns are true on it, for any number of reasons.

    Nodes are refused in few different ways, so each distinct set of reasons is stored once, and a node has the number of its
    set. Example with 70 reasons: nodes 0 and 2 are refused for reasons 3 and 69, node 1 passes. Then `sets` has two rows, the
    empty set and {3, 69}, and the numbers are 1, 0, 1.
    """
    packed: Packed | None = None
    for i, refused in enumerate(columns):
        if packed is None:
            packed = np.zeros((len(reasons) + 7 >> 3, 1 + len(refused)), dtype=np.uint8)
        packed[i >> 3, 1:] |= refused.astype(np.uint8) << (i & 7)
    assert packed is not None
    # As strings of bytes they are sorted in one go, and the empty one comes first.
    alike = np.ascontiguousarray(packed.T).view(np.dtype((np.void, len(packed)))).ravel()
    sets, number = np.unique(alike, return_inverse=True)
    return Rejections(number[1:].astype(np.uint64), reasons, sets=sets.view(np.uint8).reshape(len(sets), -1))


_WORSE: dict[Code, tuple[Code, ...]] = {
    Code.UNRESOLVABLE: (),
    Code.UNSCHEDULABLE: (Code.UNRESOLVABLE,),
    Code.PENDING: (Code.UNRESOLVABLE, Code.UNSCHEDULABLE),
}


def worst_code(reasons: Sequence[Reason]) -> Code:
    """Return the code of a node that is refused for all of these reasons."""
    codes = {reason.code for reason in reasons}
    return next(code for code in _WORSE if code in codes)


ABSENT_BY_DEFAULT = Status(Code.UNRESOLVABLE)
"""The status of a node that no filter looked at. It has no reasons, so it adds nothing to the message."""


@dataclass(slots=True)
class Diagnosis:
    """Why no node was found. Nodes in `statuses` were looked at; all others have the `absent` status."""

    n_nodes: int
    verdicts: Verdicts | None = None
    extra: dict[str, Status] = field(default_factory=dict)
    absent: Status = ABSENT_BY_DEFAULT
    pre_filter_message: str = ""
    post_filter_message: str = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)

    def status(self, node_name: str) -> Status:
        """Return one node's status."""
        if node_name in self.extra:
            return self.extra[node_name]
        if self.verdicts is not None:
            row, considered = self.verdicts.nodes.row(node_name), self.verdicts.considered
            if row >= 0 and self.verdicts.owner[row] >= 0 and (considered is None or considered[row]):
                return self.verdicts.status(row)
        return self.absent

    def statuses(self) -> dict[str, Status]:
        """Return the status of every node that was looked at and refused, by name."""
        found: dict[str, Status] = {}
        if self.verdicts is not None:
            found.update(self.verdicts.statuses())
        found.update(self.extra)
        return found

    def message(self) -> str:
        """Return the text that users see."""
        if self.pre_filter_message:
            text = f"0/{self.n_nodes} nodes are available: {self.pre_filter_message}."
        else:
            text = none_available(self.n_nodes, self.histogram())
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text

    def histogram(self) -> dict[str, int]:
        """Return how many nodes gave each reason."""
        counts: dict[str, int] = {}
        explicit = 0
        if self.verdicts is not None:
            explicit = self.verdicts.count_reasons(counts, leaving_out=self.extra)
        for status in self.extra.values():
            explicit += 1
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        if explicit < self.n_nodes:
            for reason in self.absent.reasons:
                counts[reason] = counts.get(reason, 0) + self.n_nodes - explicit
        return counts


def none_available(n_nodes: int, histogram: Mapping[str, int]) -> str:
    """Return the message that counts the nodes for each reason. Kept quirk: parts are sorted as text, so "10 x" is before "2
    y"."""
    lines = sorted(f"{count} {reason}" for reason, count in histogram.items())
    text = f"0/{n_nodes} nodes are available:"
    return f"{text} {', '.join(lines)}." if lines else text


class Verdicts:
    """The answers of all filters for all nodes. A node belongs to the first filter that refuses it (`owner`, -1 for none): as
    in kube-scheduler, which calls no further filter for it, only this filter's reasons are reported."""

    __slots__ = ("_owned", "columns", "considered", "error", "nodes", "owner")

    def __init__(self, nodes: Snapshot, considered: Bools | None = None) -> None:
        self.nodes = nodes
        self.considered = considered
        self.error: tuple[str, str] | None = None
        self.owner = np.empty(nodes.n, dtype=np.int16)
        self.owner.fill(-1)  # np.full takes three times as long, and this is made for every pod
        self.columns: list[tuple[str, Rejections]] = []
        self._owned: tuple[Bools | None, list[tuple[int, Bools]]] | None = None

    def add(self, plugin: str, rejections: Rejections) -> None:
        """Add the verdict of the next filter. It owns the nodes that no earlier filter refused."""
        self.columns.append((plugin, rejections))
        self._owned = None
        if rejections.errors and self.error is None:
            for row, text in rejections.errors.items():
                if self.owner[row] < 0 and (self.considered is None or self.considered[row]):
                    self.error = plugin, text
                    break
        bits = rejections.bits
        if bits is not None:
            self.owner[(bits != 0) & (self.owner < 0)] = len(self.columns) - 1

    def refuse(self, rows: npt.NDArray[np.int64] | Bools, plugin: str, reasons: tuple[Reason, ...]) -> None:
        """Refuse rows for all of these reasons, in place of earlier refusals."""
        refused = _column(rows, self.nodes.n)
        self.columns.append((plugin, Rejections.every(*((refused, reason) for reason in reasons))))
        self.owner[rows] = len(self.columns) - 1
        self._owned = None

    def overrule(self, rows: npt.NDArray[np.int64], by: Verdicts) -> None:
        """Refuse the rows that other verdicts refuse. `by` has one row for each of `rows`."""
        for plugin, reasons, alike in by.refusals():
            self.refuse(rows[alike], plugin, reasons)

    def refusals(self) -> Iterator[tuple[str, tuple[Reason, ...], npt.NDArray[np.int64]]]:
        """Yield the plugin, the reasons and the considered rows, for each group of rows that is refused alike."""
        for i, column in self.owned():
            plugin, rejections = self.columns[i]
            assert rejections.bits is not None
            mine = np.flatnonzero(column)
            kinds, kind = np.unique(rejections.bits[mine], return_inverse=True)
            for at in range(len(kinds)):
                alike = mine[kind == at]
                yield plugin, rejections.at(int(alike[0])), alike

    def owned(self) -> list[tuple[int, Bools]]:
        """Return the number of each column that owns considered rows, with these rows."""
        if self._owned is None or self._owned[0] is not self.considered:
            refusing = (i for i, (_, rejections) in enumerate(self.columns) if rejections.bits is not None)
            groups = ((i, self.owner == i) for i in refusing)
            if self.considered is not None:
                considered = self.considered
                groups = ((i, mine & considered) for i, mine in groups)
            self._owned = self.considered, [(i, mine) for i, mine in groups if mine.any()]
        return self._owned[1]

    @property
    def feasible(self) -> Bools:
        """Return which nodes pass every filter."""
        passing: Bools = self.owner < 0
        return passing if self.considered is None else passing & self.considered

    def status(self, row: int) -> Status:
        """Return a row's status in words."""
        owner = int(self.owner[row])
        if owner < 0:
            return SUCCESS
        plugin, rejections = self.columns[owner]
        return rejections.status(row).by(plugin)

    def statuses(self) -> dict[str, Status]:
        """Return the status of every refused node by name."""
        refused = self.owner >= 0 if self.considered is None else (self.owner >= 0) & self.considered
        return {self.nodes.name(row): self.status(row) for row in np.flatnonzero(refused).tolist()}

    def plugins(self) -> tuple[set[str], set[str]]:
        """Return the plugins that refused some node, and those of them with the code PENDING."""
        refusing: set[str] = set()
        pending: set[str] = set()
        for i, mine in self.owned():
            plugin, rejections = self.columns[i]
            refusing.add(plugin)
            if any(reason.pending for reason in rejections.reasons) and (mine & code_column(rejections, Code.PENDING)).any():
                pending.add(plugin)
        return refusing, pending

    def count_reasons(self, counts: dict[str, int], leaving_out: Mapping[str, Status]) -> int:
        """Add the number of nodes for each reason to `counts`; return how many nodes are refused."""
        left_out = self.nodes.rows_of(leaving_out) if leaving_out else None
        n_refused = 0
        for i, mine in self.owned():
            _, rejections = self.columns[i]
            if left_out is not None:
                mine = mine.copy()
                mine[left_out] = False
            n_mine = int(np.count_nonzero(mine))
            n_refused += n_mine
            each = [n_mine] if len(rejections.reasons) == 1 else rejections.counts(mine)
            for reason, hits in zip(rejections.reasons, each, strict=True):
                if hits:
                    counts[reason.text] = counts.get(reason.text, 0) + hits
        return n_refused

    def has_code(self, code: Code) -> Bools:
        """Return which considered nodes were refused with exactly this code."""
        found = np.zeros(self.nodes.n, dtype=np.bool_)
        for i, mine in self.owned():
            _, rejections = self.columns[i]
            if len(rejections.reasons) == 1:
                if worst_code(rejections.reasons) is code:
                    found |= mine
            else:
                found |= mine & code_column(rejections, code)
        return found


def code_column(rejections: Rejections, code: Code) -> Bools:
    """Return on which nodes one filter's reasons add up to a code."""
    found = rejections.has_any({code})
    worse = _WORSE[code]
    return found & ~rejections.has_any(worse) if worse else found


@dataclass(frozen=True, slots=True)
class Nomination:
    """The value for status.nominatedNodeName; an empty name clears it."""

    node_name: str


CLEAR = Nomination("")


class Placed(Struct, frozen=True):
    """A node was found."""

    pod: PodView
    node_name: str
    evaluated: int = 0
    feasible: int = 0


class Unschedulable(Struct, frozen=True):
    """No node was found. `nomination` None leaves the pod's nominated node as it is."""

    pod: PodView
    diagnosis: Diagnosis
    nomination: Nomination | None = None
    message_override: str = ""

    @property
    def message(self) -> str:
        """Return the text that users see."""
        return self.message_override or self.diagnosis.message()


class Failed(Struct, frozen=True):
    """The attempt ended in an error. Whether the pod fits is not known."""

    pod: PodView
    message: str
    nomination: Nomination | None = CLEAR


Decision = Placed | Unschedulable | Failed
