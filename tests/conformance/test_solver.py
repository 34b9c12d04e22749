"""What `Cluster.fits` answers for every golden case with one pod is what the reference answered: reasons, scores, node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod, codec
from kubesched.solver import Cluster, Fits
from kubesched.solver.cluster import NOT_LOOKED_AT
from kubesched.tools.conformance.cases import Case, read_cases, version_of

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.rglob("*.jsonl.gz"))


def cases_of(file: Path) -> Iterator[Case]:
    for _, case in read_cases([file]):
        is_one = len(case.get("pods", ())) == 1 and "results" in case.get("expected", {})
        if is_one and not {"preEnqueue", "error"} & case["expected"]["results"][0].keys():
            yield case


def answer_of(case: Case) -> Fits:
    document = case.get("config")
    cluster = Cluster.from_objects(
        (codec.decode(dict(raw)) for raw in case["objects"]),
        configuration=codec.encode(document).decode() if document is not None else None,
        release=version_of(case),
        at=0.0,
    )
    raw = dict(case["pods"][0])
    if raw["spec"].get("schedulerName", "default-scheduler") not in cluster.engine.profiles:
        raw["spec"] = {**raw["spec"], "schedulerName": next(iter(cluster.engine.profiles))}
    return cluster.fits(codec.convert(raw, Pod))


def differences(wanted: dict[str, Any], answer: Fits) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is not as in the golden answer."""
    table = answer.nodes
    assert table is not None
    feasible = {each.node: each for each in table if each.fits}
    if set(feasible) != set(wanted.get("feasible") or ()):
        yield "feasible", wanted.get("feasible"), sorted(feasible)
    rejected = wanted.get("rejected") or {}
    for each in table:
        said = rejected.get(each.node)
        if said is None and not each.fits:
            said = wanted.get("preFilter") or wanted.get("otherNodes") or {"reasons": [NOT_LOOKED_AT]}
        if said is not None and Counter(said.get("reasons", ())) != Counter(each.reasons):
            yield f"reasons of {each.node}", said, each
        if said is not None and each.node in rejected and said.get("plugin", "") != each.plugin:
            yield f"plugin of {each.node}", said, each
    for name, scores in (wanted.get("scores") or {}).items():
        if name in feasible and feasible[name].scores != scores:
            yield f"scores of {name}", scores, feasible[name].scores
    if bool(wanted.get("decision")) != bool(answer.node):
        yield "decision", wanted.get("decision"), answer.node
    best = max((each.total or 0 for each in feasible.values()), default=0)
    for node in filter(None, (wanted.get("decision"), answer.node)):
        if (feasible[node].total or 0) != best:
            yield "not among the best", node, feasible[node]
    if "fitError" in wanted and "postFilter" not in wanted and wanted["fitError"] != answer.message:
        yield "message", wanted["fitError"], answer.message


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(FOLDER).as_posix().removesuffix(".jsonl.gz"))
def test_fits_answers_as_the_reference(file: Path) -> None:
    n_asked = 0
    for case in cases_of(file):
        try:
            answer = answer_of(case)
        except SchedulerError as error:
            pytest.fail(f"{case['name']}: {error}")
        found = list(differences(case["expected"]["results"][0], answer))
        assert not found, f"{case['name']}: {found[0]}"
        n_asked += 1
    if not n_asked:
        pytest.skip("no case with one pod")


def test_most_golden_cases_are_of_one_pod() -> None:
    assert sum(1 for file in FILES for _ in cases_of(file)) > 1000
