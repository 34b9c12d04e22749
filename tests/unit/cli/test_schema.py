"""`kubesched schema`: what the schema allows is what the reader takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.tools.node_groups.reading import read_node_groups
from kubesched.tools.schemas import schema_of

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: schemas are not tried")
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.mark.parametrize("name", ["shop.yaml", "batch.yaml", "trace.yaml", "autoscale.yaml"])
def test_the_examples_are_scenarios(name: str) -> None:
    jsonschema.validate(yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8")), schema_of("scenario"))


def test_the_example_is_a_file_of_node_groups() -> None:
    jsonschema.validate(yaml.safe_load((EXAMPLES / "node-groups.yaml").read_text(encoding="utf-8")), schema_of("node-groups"))
    assert [group.name for group in read_node_groups(EXAMPLES / "node-groups.yaml")] == ["small", "large"]


def test_the_example_is_an_experiment() -> None:
    jsonschema.validate(yaml.safe_load((EXAMPLES / "packing-sweep.yaml").read_text(encoding="utf-8")), schema_of("experiment"))


BAD: list[tuple[str, dict[str, Any]]] = [
    ("scenario", {"sead": 1}),
    ("scenario", {"workloads": [{"name": "w", "arrivals": {"order": "sorted"}}]}),
    ("scenario", {"ties": "luck"}),
    ("scenario", {"autoscaler": {"scanIntervall": 10}}),
    ("scenario", {"events": [{"at": 1, "rollout": {"replicas": 3}}]}),
    ("node-groups", {"nodeGroups": [{"name": "a", "capacity": {"cpu": 1}, "prize": 1}]}),
    ("experiment", {}),
    ("experiment", {"scenarios": ["s.yaml"], "seeds": {"cuont": 3}}),
]


@pytest.mark.parametrize(("kind", "document"), BAD)
def test_what_the_reader_refuses_the_schema_refuses(kind: str, document: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema_of(kind))
