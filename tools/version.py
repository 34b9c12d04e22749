"""The version of kubesched: that of the tag `vX.Y.Z` on this commit, or else `NEXT`.

In: GIT_TAG in the environment, which the release sets, or git. Out: what every artefact is called. A source
distribution brings its version with it and does not ask here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEXT = "1.0.0rc1"
"""What the next release will be. After a release, the first change writes the one after it here."""


def version() -> str:
    """Return the version of this tree."""
    return (os.environ.get("GIT_TAG") or _tag() or NEXT).removeprefix("v")


def _tag() -> str:
    if not (ROOT / ".git").exists():
        return ""
    words = ["git", "-C", str(ROOT), "describe", "--exact-match", "--tags", "--match", "v[0-9]*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git on this machine
        return ""


if __name__ == "__main__":
    print(version())
