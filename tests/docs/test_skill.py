"""SKILL.md tells agents what to run and what to read in the answer: the commands exist, and the fields are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from page_blocks import ROOT
from page_shell import run

TEXT = (ROOT / "SKILL.md").read_text(encoding="utf-8")
SHOP = ROOT / "docs" / "examples" / "shop-cluster.yaml"
DEMO = ROOT / "docs" / "examples" / "demo.jsonl.gz"
LAUNCH = ROOT / "docs" / "examples" / "launch.yaml"
ASKED = {
    "kubesched why NS/POD -o json": f"kubesched why shop/checkout-7 --snapshot {SHOP} -o json",
    "kubesched why -o json": f"kubesched why --snapshot {SHOP} -o json",
    "kubesched plan -f FILE --only -o json": f"kubesched plan -f {LAUNCH} --snapshot {DEMO} --only -o json",
    "kubesched capacity -f FILE [--drain NODE] -o json": (
        f"kubesched capacity -f {LAUNCH} --workload Deployment/shop --snapshot {DEMO} -o json"
    ),
    "kubesched simulate SCENARIO.yaml -o json": f"kubesched simulate {ROOT}/docs/examples/batch.yaml -o json",
}


def fields_of(command: str) -> list[str]:
    """Return the paths that the table names for a command."""
    (row,) = [line for line in TEXT.splitlines() if line.startswith("|") and f"`{command}`" in line]
    last = row.rstrip("|").rpartition("|")[2]
    paths = []
    for text in re.findall(r"`([^`]+)`", last):
        if re.fullmatch(r"[\w.\[\]{},]+", text):
            head, brace, rest = text.partition("{")
            paths += [head + part for part in rest.rstrip("}").split(",")] if brace else [text]
    return paths


def found(document: Any, path: str) -> bool:
    """Return whether a path leads somewhere; a list without elements says nothing against it."""
    head, _, rest = path.partition(".")
    key = head.removesuffix("[]")
    if not isinstance(document, dict) or key not in document:
        return False
    value = document[key]
    if head.endswith("[]"):
        return not rest or not value or any(found(each, rest) for each in value)
    return not rest or value is None or found(value, rest)


@pytest.mark.parametrize("command", ASKED)
def test_answers_have_the_fields_that_the_skill_names(command: str, tmp_path: Path) -> None:
    document = json.loads(run(ASKED[command], tmp_path))
    paths = fields_of(command)
    assert paths, command
    assert [path for path in paths if not found(document, path)] == []
