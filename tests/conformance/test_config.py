"""The golden family `config`: the reference's exact error, or the exact document that it writes back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.config import Gates, effective, load
from kubesched.errors import ConfigError
from kubesched.plugins.args import IN_TREE_CATALOGUE

with gzip.open(Path(__file__).with_name("config.jsonl.gz"), "rt") as lines:
    CASES = [json.loads(line) for line in lines]


def answer(config: Any) -> dict[str, Any]:
    """Return what the program would say to a file, without the kubeconfig that differs between machines."""
    try:
        configuration = load(json.dumps(config), gates=Gates.defaults(), registry=IN_TREE_CATALOGUE)
    except ConfigError as error:
        return {"error": str(error)}
    document = effective(configuration)
    del document["clientConnection"]["kubeconfig"]
    return {"effective": document}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden(case: dict[str, Any]) -> None:
    expected = {key: case[key] for key in ("error", "effective") if key in case}
    assert answer(case["config"]) == expected
