"""Writes the bill of materials of a release: dist/kubesched.cdx.json, in CycloneDX.

In: pyproject.toml, and requirements/image.txt, the lock that the image and the kubectl plugin are made from. Out: kubesched in
the version that git says, and every package below it with its hashes. cyclonedx-py knows neither a version that comes from
git nor that the product depends on the list, so both are added here. The same commit gives the same bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def complete(document: dict[str, Any], version: str) -> dict[str, Any]:
    """Add the version of what the document describes, and that it depends on everything in the list."""
    product = document["metadata"]["component"]
    product |= {"version": version, "purl": f"pkg:pypi/{product['name']}@{version}"}
    parts = [one["bom-ref"] for one in document["components"]]
    others = [one for one in document["dependencies"] if one["ref"] != product["bom-ref"]]
    document["dependencies"] = [{"ref": product["bom-ref"], "dependsOn": parts}, *others]
    return document


def _said_by(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    lock = ("requirements", "requirements/image.txt", "--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON")
    listed = json.loads(_said_by("cyclonedx_py", *lock, "-o", "-"))
    file = ROOT / "dist" / "kubesched.cdx.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(complete(listed, _said_by("hatchling", "version").strip()), indent=2) + "\n")
