"""The golden family dra, asked of DynamicResources alone: what it says to each node, its scores, its refusals.

The whole default profile runs the same cases elsewhere; here a difference names the plugin's own answer.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from kubesched.errors import PluginError
from kubesched.kube.api import codec
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, Profile
from kubesched.scheduler.framework.runtime.registry import points_of
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources

with gzip.open(Path(__file__).parent / "dra.jsonl.gz") as family:
    CASES = [json.loads(line) for line in family]
NAME = DynamicResources.name
WEIGHT = 2


class Alone:
    """DynamicResources as the only plugin of a profile, on one case's cluster."""

    def __init__(self, objects):
        self.store = Store()
        for raw in objects:
            obj = codec.decode(json.dumps(raw))
            self.store.put(obj)
        plugin = DynamicResources(None, EngineHandle(self.store.objects, Gates.defaults((1, 36))))
        self.profile = Profile("alone", {point: [(plugin, WEIGHT)] for point in points_of(DynamicResources)})

    def ask(self, raw, expected):
        """Return the answers in the shape of the expected result, as far as they are this plugin's."""
        pod = self.store.view(codec.decode(json.dumps(raw)))
        gate = self.profile.pre_enqueue(pod)
        if not gate.is_success:
            return {"preEnqueue": words(gate)}
        nodes, state = self.store.snapshot(), CycleState()
        before = self.profile.pre_filter(pod, nodes, state)
        if before.status is not None:
            return {"preFilter": words(before.status)}
        others = {name for name, status in (expected.get("rejected") or {}).items() if status["plugin"] != NAME}
        considered = np.array([name not in others for name in nodes.names])
        try:
            verdicts = self.profile.filter(pod, nodes, state, considered)
        except PluginError as error:
            return {"error": str(error)}
        feasible = verdicts.feasible
        found = {
            "rejected": {name: words(status) for name, status in verdicts.statuses().items()},
            "feasible": sorted(nodes.name(row) for row in np.flatnonzero(feasible)),
        }
        if feasible.any():
            column = self.profile.score(pod, nodes, feasible, state).by_plugin[NAME]
            found["scores"] = {nodes.name(row): int(column[row]) for row in np.flatnonzero(feasible)}
        if expected.get("decision"):
            assert self.profile.reserve(pod, expected["decision"], state).is_success
        return found


def words(status):
    return {"code": status.code.text, "plugin": status.plugin, "reasons": sorted(status.reasons)}


def wanted(expected):
    """Return the part of an expected result that is this plugin's."""
    for key in ("preEnqueue", "preFilter"):
        if key in expected:
            return {key: expected[key]}
    if "error" in expected:
        return {"error": expected["error"]}
    mine = {name: status for name, status in (expected.get("rejected") or {}).items() if status["plugin"] == NAME}
    found = {"rejected": mine, "feasible": expected.get("feasible") or []}
    if found["feasible"]:
        found["scores"] = {name: scores[NAME] for name, scores in expected["scores"].items()}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_decides_as_the_reference(case):
    alone = Alone(case["objects"])
    for raw, expected in zip(case["pods"], case["expected"]["results"], strict=True):
        if (expected.get("preFilter") or {"plugin": NAME})["plugin"] != NAME:
            continue
        found = alone.ask(raw, expected)
        if "error" in expected:
            assert found.keys() == {"error"}
        else:
            assert found == wanted(expected)
