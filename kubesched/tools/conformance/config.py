"""Golden configuration files: the exact error, or the exact document with all defaults."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.errors import ConfigError
from kubesched.scheduler import config
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE
from kubesched.tools.conformance.cases import Case, Difference, version_of


def run_config_case(case: Case) -> list[Difference]:
    """Load a configuration, and compare its error or its document with the recorded one."""
    text = msgspec.json.encode(case["config"]).decode() if not isinstance(case["config"], str) else case["config"]
    found = answer(text, config.Gates.defaults(version_of(case)))
    return [
        Difference(case["name"], what, case.get(what), found.get(what))
        for what in ("error", "effective")
        if case.get(what) != found.get(what)
    ]


def answer(text: str, gates: config.Gates) -> dict[str, Any]:
    """Return the error or the document of a configuration, without the kubeconfig, which depends on the machine."""
    try:
        loaded = config.load(text, gates=gates, registry=IN_TREE_CATALOGUE)
    except ConfigError as error:
        return {"error": str(error)}
    document = config.effective(loaded)
    document["clientConnection"].pop("kubeconfig", None)
    return {"effective": document}
