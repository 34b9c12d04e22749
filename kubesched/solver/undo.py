"""The undo log of a world: what was changed, as the calls that change it back."""

from __future__ import annotations

from collections.abc import Callable

Undo = Callable[[], object]


class UndoLog:
    """Calls that undo changes, oldest first."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[Undo] = []

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, undo: Undo) -> None:
        """Remember how the last change is undone."""
        self._calls.append(undo)

    def play_back(self, n_kept: int = 0) -> None:
        """Undo all changes but the first `n_kept`, the last one first."""
        while len(self._calls) > n_kept:
            self._calls.pop()()
