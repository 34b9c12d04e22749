"""Feature gates of a running scheduler, read off what it serves: its metrics, or /flagz.

    kubectl get --raw /api/v1/namespaces/kube-system/pods/https:kube-scheduler-NODE:10259/proxy/metrics |
        kubesched why team-a/web-0 --feature-gates @-

Metrics have every gate (`kubernetes_feature_enabled`), /flagz those that were set. Gates that no scheduler reads are left out.
"""

from __future__ import annotations

import re

from kubesched.errors import ConfigError
from kubesched.scheduler import config

_METRIC = re.compile(r'^kubernetes_feature_enabled\{[^}]*\bname="(\w+)"[^}]*\} ([01])(?:\.0)?\s*$', re.MULTILINE)
_FLAG = re.compile(r"^\s*feature-gates\s*[=:]\s*(.*)$", re.MULTILINE)
_PAIR = re.compile(r"(\w+)[=:](true|false)")


def gates_of_running(text: str, source: str) -> str:
    """Return the gates in a text that a scheduler served, as `--feature-gates` takes them; `source` is named in errors."""
    pairs = [(name, "true" if value == "1" else "false") for name, value in _METRIC.findall(text)]
    if not pairs:
        flags = _FLAG.findall(text)
        if not flags:
            raise ConfigError("", f"{source}: no kubernetes_feature_enabled and no feature-gates: neither metrics nor /flagz")
        pairs = [pair for flag in flags for pair in _PAIR.findall(flag)]
    known = config.GATES.keys() - {"AllAlpha", "AllBeta"}  # metrics have each gate that these have switched
    return ",".join(f"{name}={value}" for name, value in pairs if name in known)
