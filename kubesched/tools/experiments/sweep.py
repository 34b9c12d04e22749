"""A sweep: all trials of an experiment, and what is kept of them while they run.

In: an experiment, an executor, and a folder. Out: results, and in the folder a line for every trial that is done, written
as soon as it is, so that a sweep that was stopped goes on where it was; at the end the rows as CSV and, where pyarrow is
installed, as Parquet. A line belongs to an experiment with these very files: after a change nothing of it is taken over.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from kubesched.errors import SchedulerError
from kubesched.tools.experiments.experiment import Experiment, Trial
from kubesched.tools.experiments.results import Results
from kubesched.tools.experiments.trial import Outcome

Executor = Callable[[Experiment, Sequence[Trial]], Iterator[tuple[int, Outcome]]]
TRIALS = "trials.jsonl"


class _Line(msgspec.Struct, frozen=True):
    """A finished trial, one line of the file."""

    experiment: str
    trial: str
    outcome: Outcome


def sweep(
    experiment: Experiment,
    execute: Executor,
    folder: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Results:
    """Run the trials that are not finished, and return the results of all."""
    trials, digest = list(experiment.trials()), experiment.digest
    kept = _Kept(folder, digest) if folder is not None else None
    known = kept.known if kept is not None else {}
    outcomes = {i: known[trial.name] for i, trial in enumerate(trials) if trial.name in known}
    left = [i for i in range(len(trials)) if i not in outcomes]
    progress(len(outcomes), len(trials))
    if left:
        for i, outcome in execute(experiment, [trials[i] for i in left]):
            outcomes[left[i]] = outcome
            if kept is not None and not outcome.error:
                kept.write(trials[left[i]], outcome)
            progress(len(outcomes), len(trials))
    results = Results.of(trials, outcomes, experiment.file.baseline)
    if folder is not None:
        try:
            (folder / "trials.csv").write_text(results.to_csv(), encoding="utf-8")
            if importlib.util.find_spec("pyarrow") is not None:
                results.to_parquet(str(folder / "trials.parquet"))
        except OSError as error:
            raise SchedulerError(f"{folder}: results cannot be written: {error.strerror or error}") from error
    return results


class _Kept:
    """The file of finished trials, by which a stopped sweep continues."""

    def __init__(self, folder: Path, digest: str) -> None:
        self._digest = digest
        self._file = folder / TRIALS
        self.known: dict[str, Outcome] = {}
        """Outcomes by the name of the trial."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written = self._file.read_bytes() if self._file.is_file() else b""
            whole = written[: written.rfind(b"\n") + 1]
            if whole != written:  # the line that was being written when the sweep was stopped
                self._file.write_bytes(whole)
        except OSError as error:
            raise SchedulerError(f"{folder}: {error.strerror or error}") from error
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                found = msgspec.json.decode(line, type=_Line)
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                raise SchedulerError(f"{self._file}, line {number}: not a trial that was kept: {error}") from error
            if found.experiment == digest:
                self.known[found.trial] = found.outcome

    def write(self, trial: Trial, outcome: Outcome) -> None:
        """Append a finished trial."""
        line = msgspec.json.encode(_Line(self._digest, trial.name, outcome)) + b"\n"
        try:
            with self._file.open("ab") as file:
                file.write(line)
        except OSError as error:
            raise SchedulerError(
                f"{self._file}: {trial.name} is done and cannot be written down: {error.strerror or error}"
            ) from error
