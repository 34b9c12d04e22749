"""Saves differences as files: the state on which a pod was decided, with both decisions in the first line.

In: a `Judged` whose state is shown now. Out: a gzipped snapshot that only its owner can read, for `replay` and `why
--snapshot`. The number of files is limited, as each holds a whole cluster. A thread encodes and writes them.
"""

from __future__ import annotations

import gzip
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.files import write_private
from kubesched.tools.shadow.judging import Judged
from kubesched.tools.snapshots.captured import Captured


class Snapshots:
    """Writes the first differences of a run."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder = folder
        self.n_kept = 0
        self._most = most
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="shadow-snapshots")
        self._under_way: list[Future[None]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SchedulerError(f"{folder} cannot be made: {error.strerror}") from error

    def keep(self, judged: Judged) -> str:
        """Keep the state on which a difference was found; return the file, or an empty name if enough are kept."""
        if judged.state is None or self.n_kept >= self._most:
            return ""
        self.n_kept += 1
        namespace, _, name = judged.pod.partition("/")
        file = self.folder / f"{self.n_kept:04d}-{namespace}-{name}.jsonl.gz"
        self._under_way = [each for each in self._under_way if not each.done() or each.exception() is not None]
        self._under_way.append(self._writer.submit(_write, file, judged.state(), judged.document()))
        return str(file)

    def close(self) -> None:
        """Wait until all are written; raise SchedulerError for the first that could not be."""
        self._writer.shutdown(wait=True)
        for each in self._under_way:
            error = each.exception()
            if isinstance(error, OSError):
                raise SchedulerError(f"{error.filename or self.folder} cannot be written: {error.strerror}") from error
            if error is not None:
                raise error


def _write(file: Path, captured: Captured, first_line: dict[str, Any]) -> None:
    data = b"".join(captured.without_applied_manifests().lines(first_line))
    write_private(file, gzip.compress(data, 6, mtime=0))
