"""Importing the room is cheap: msgspec and the standard library, none of the heavy libraries of the rooms above."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "numpy",
    "aiohttp",
    "yaml",
    "cryptography",
    "click",
    "kubernetes_asyncio",
    "prometheus_client",
    "asyncio",
}


def test_importing_the_api_pulls_in_nothing_heavy_and_no_room_but_the_one_below() -> None:
    script = "import sys, kubesched.kube.api, kubesched.kube.api.requests, kubesched.kube.api.matching; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    rooms = {".".join(name.split(".")[1:3]) for name in loaded if name.startswith("kubesched.")}
    assert rooms <= {"kube", "kube.api", "kube.values", "errors"}
