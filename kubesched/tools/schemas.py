"""JSON Schemas of scenario, experiment and node group files, made from the types that read them."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.tools.experiments.experiment import ExperimentFile
from kubesched.tools.node_groups.reading import NodeGroupFile
from kubesched.tools.simulation.scenario import Scenario

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES: dict[str, type[Any]] = {"scenario": Scenario, "experiment": ExperimentFile, "node-groups": NodeGroupFile}


def schema_of(kind: str) -> dict[str, Any]:
    """Return the schema of a kind of file."""
    (reference,), definitions = msgspec.json.schema_components([TYPES[kind]], ref_template="#/$defs/{name}")
    return {"$schema": DIALECT, "title": f"kubesched {kind}", **reference, "$defs": definitions}
