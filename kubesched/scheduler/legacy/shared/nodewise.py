"""Columns of facts that the store does not keep: conditions, annotations and volume limits of nodes.

A column calls a function for each node object, and again only for objects that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kubesched.kube.api import Node
from kubesched.scheduler.cluster import Snapshot


class NodeColumn:
    """A function of a node, and its answers for all nodes: bool or int."""

    __slots__ = ("_answers", "_asked", "_function")

    def __init__(self, function: Callable[[Node], bool | int], dtype: npt.DTypeLike = np.bool_) -> None:
        self._function = function
        self._asked: list[Node] = []
        self._answers: npt.NDArray[Any] = np.zeros(0, dtype=dtype)

    def on(self, nodes: Snapshot) -> npt.NDArray[Any]:
        """Return the answers for the nodes of a view."""
        objects = nodes.everything().node_objects
        if self._asked != objects:
            self._ask(list(objects))
        return self._answers if nodes.rows is None else self._answers[nodes.rows]

    def _ask(self, objects: list[Node]) -> None:
        answers = np.zeros(len(objects), dtype=self._answers.dtype)
        known = len(self._asked)
        for row, node in enumerate(objects):
            answers[row] = self._answers[row] if row < known and self._asked[row] is node else self._function(node)
        answers.flags.writeable = False
        self._asked, self._answers = objects, answers
