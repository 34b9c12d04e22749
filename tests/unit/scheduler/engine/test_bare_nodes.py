"""Nodes that an extender sends back are scored as if they were empty, today; old releases knew better."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from kubesched.scheduler.cluster import Store
from kubesched.scheduler.config import Extender
from kubesched.scheduler.engine.deciding.extenders import Extenders
from kubesched.scheduler.framework.verdicts import Diagnosis
from kubesched.testing import node, pod


class Echo:
    """Sends back what it was sent."""

    def post(self, url: str, body: bytes, extender: Any) -> bytes:
        given = json.loads(body)
        return json.dumps({"Nodes": given["Nodes"], "NodeNames": given["NodeNames"]}).encode()


@pytest.mark.parametrize(
    ("capable", "today", "bare"), [(False, True, True), (False, False, False), (True, True, False), (True, False, False)]
)
def test_who_scores_bare_nodes(capable: bool, today: bool, bare: bool) -> None:
    store = Store()
    store.put_node(node("a"))
    nodes = store.snapshot()
    extenders = Extenders(
        [Extender(url_prefix="http://x", filter_verb="filter", node_cache_capable=capable)], Echo(), scores_bare_nodes=today
    )
    feasible, are_bare = extenders.filter(store.view(pod()), nodes, np.ones(1, dtype=np.bool_), Diagnosis(1))
    assert (feasible.tolist(), are_bare) == ([True], bare)
