"""Files for their owner alone: what holds credentials, or says what a cluster is made of.

In: a path and bytes. Out: a file of mode 0600, also where one of another mode was before. Raises `OSError`.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody else may read, at no moment."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(opened, "wb") as file:
        if os.path.isfile(path):  # /dev/stdout has a mode of its own
            os.fchmod(opened, 0o600)
            file.truncate()
        file.write(data)
