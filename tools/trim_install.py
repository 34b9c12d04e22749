"""Takes out of an installation what a running kubesched never opens: tests and unused extensions.

In: a site-packages folder that belongs to kubesched alone, that of its image or of the kubectl plugin. Of CEL the extensions
that device selectors have are used; its wheel also brings the tree that it was built in. Not for an environment that others
share.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

UNUSED = (
    *(f"cel_expr_python/ext/ext_{name}.*" for name in ("encoders", "math", "proto")),
    "bazel-project",
    "**/tests",
    "**/__pycache__",
    # Where it was built: paths of that machine, and the sums of files that hold them.
    "bin",
    "**/direct_url.json",
    "kubesched-*.dist-info/RECORD",
)


def trim(folder: Path) -> int:
    """Delete what is not used; return how many bytes that was."""
    before = _size(folder)
    for path in [path for pattern in UNUSED for path in folder.glob(pattern)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return before - _size(folder)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    print(f"{trim(Path(sys.argv[1])) // 10**6} MB that are not used were taken out")
