"""Questions about node objects that no column answers: conditions, annotations.

In: a yes-or-no question about one node. Out: its answers as a column. An object is asked once; as long as the cluster
holds the very same objects, which is a comparison of two lists, the column stands.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.api.node import Node
from kubesched.cluster import Bools, Snapshot


class NodeQuestion:
    """One question, and what every node answered last."""

    __slots__ = ("_answers", "_asked", "_question")

    def __init__(self, question: Callable[[Node], bool]) -> None:
        self._question = question
        self._asked: list[Node] = []
        self._answers: Bools = np.zeros(0, dtype=np.bool_)

    def column(self, nodes: Snapshot) -> Bools:
        """Return the answer for every node of a view."""
        objects = nodes.everything().node_objects
        if self._asked != objects:
            self._ask(list(objects))
        return self._answers if nodes.rows is None else self._answers[nodes.rows]

    def _ask(self, objects: list[Node]) -> None:
        answers = np.zeros(len(objects), dtype=np.bool_)
        known = len(self._asked)
        for row, node in enumerate(objects):
            answers[row] = self._answers[row] if row < known and self._asked[row] is node else self._question(node)
        answers.flags.writeable = False
        self._asked, self._answers = objects, answers
