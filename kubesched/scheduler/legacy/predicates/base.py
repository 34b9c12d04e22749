"""The base of predicates, and `AllOf`: several predicates as one.

A predicate is a Filter plugin whose reasons depend on the release. Up to 1.6 a reason is the short name of a failure, later a
sentence. In 1.3 and 1.17 a predicate gives one reason against a node, in between all that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from kubesched.scheduler.cluster import Bools, PodView, Snapshot
from kubesched.scheduler.framework import (
    SKIP,
    Code,
    CycleState,
    Handle,
    NodeNames,
    Plugin,
    PreFilterAnswer,
    Reason,
    Rejections,
    Wakeup,
)
from kubesched.scheduler.framework.runtime import lifting
from kubesched.scheduler.legacy.releases import LegacyContext

Cases = list[tuple[Bools, Reason]]
P = TypeVar("P", bound=Plugin)


def named(cls: type[P], name: str) -> type[P]:
    """Return the same plugin class under another name."""
    return type(cls.__name__, (cls,), {"name": name, "__doc__": cls.__doc__, "__module__": cls.__module__})


class Predicate(Plugin):
    """The base. It has no `wakes_on`: any event moves refused pods, as in old releases."""

    failure: ClassVar[str] = ""
    """The short name of the failure, shown up to 1.6; empty: the predicate's name."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self.context = context
        self.release = context.release

    def reason(self, sentence: str, *, resolvable: bool = True, failure: str = "") -> Reason:
        """Return a reason with the text of the release."""
        text = (failure or self.failure or self.name) if self.release.names_failures else sentence
        return Reason(text, resolvable=resolvable)

    def refuse(self, nodes: Snapshot, cases: Cases) -> Rejections:
        """Refuse nodes for all reasons that hold; in releases with one reason, for the first that an eviction cannot help, else
        for the first."""
        if not cases:
            return Rejections.none(nodes)
        if not self.release.gives_one_reason:
            return Rejections.every(*cases)
        return Rejections.first(*sorted(cases, key=lambda case: case[1].resolvable))


class AllOf(Plugin):
    """Several predicates as one: a node is refused for the reasons of all of them."""

    parts: ClassVar[tuple[Plugin, ...]] = ()

    @staticmethod
    def under(name: str, parts: Sequence[Plugin], handle: Handle) -> AllOf:
        """Return a plugin with this name and these parts."""
        points: dict[str, Any] = {"name": name, "parts": tuple(parts), "__doc__": AllOf.__doc__}
        cls: type[AllOf] = type("AllOf", (AllOf,), points)
        return cls(None, handle)

    def wakeups(self) -> tuple[Wakeup, ...] | None:
        """Return the events of all parts; None, which means all events, if a part declares none."""
        declared = [part.wakeups() for part in self.parts]
        if any(wakeups is None for wakeups in declared):
            return None
        # Without hints, because a hint is a method of its own plugin.
        return tuple(dict.fromkeys(Wakeup(wakeup.event) for wakeups in declared for wakeup in wakeups or ()))

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Call PreFilter of all parts. The nodes are those that all parts name; AllOf is skipped if all parts are."""
        skipping: set[str] = set()
        names: frozenset[str] | None = None
        for part in self.parts:
            answer = part.pre_filter(pod, nodes, state) if part.implements("pre_filter") else None
            if isinstance(answer, NodeNames):
                names = answer.names if names is None else names & answer.names
            elif answer is not None and answer.code is Code.SKIP:
                skipping.add(part.name)
            elif answer is not None and not answer.is_success:
                return answer
        state.write(self._skipping, frozenset(skipping))
        if len(skipping) == len(self.parts):
            return SKIP
        return NodeNames(names) if names is not None else None

    @property
    def _skipping(self) -> str:
        return f"{self.name}.skipping"

    def _running(self, state: CycleState) -> list[Plugin]:
        skipping: frozenset[str] = state.find(self._skipping) or frozenset()
        return [part for part in self.parts if part.name not in skipping]

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        columns: dict[Reason, Bools] = {}
        errors: dict[int, str] = {}
        for part in self._running(state):
            if part.implements("filter"):
                verdict = part.filter(pod, nodes, state)
            else:
                verdict = lifting.filter_rows(part, pod, nodes, state)
            errors.update({row: text for row, text in (verdict.errors or {}).items() if row not in errors})
            if verdict.bits is None:
                continue
            for i, reason in enumerate(verdict.reasons):
                refused = verdict.has(i)
                columns[reason] = columns[reason] | refused if reason in columns else refused
        said = (
            Rejections.every(*((column, reason) for reason, column in columns.items())) if columns else Rejections.none(nodes)
        )
        return Rejections(said.bits, said.reasons, errors, said.sets) if errors else said

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        for part in self._running(state):
            part.add_pod(pod, other, row, nodes, state)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        for part in self._running(state):
            part.remove_pod(pod, other, row, nodes, state)
