"""The results of a sweep or a search as the document that the command prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.tools.experiments.experiment import Experiment
from kubesched.tools.experiments.results import Estimate, Group, Results
from kubesched.tools.experiments.trial import configuration_of
from kubesched.tools.experiments.tune import Tuned

_FIGURES = ("pods.placed", "pods.pending", "timeToPlacement.p99", "utilisation.cpu.mean", "packing.nodesUsed.mean")


def figures_of(experiment: Experiment) -> Sequence[str]:
    """Return the figures that an experiment reports, or five common ones."""
    return experiment.file.report or _FIGURES


def document_of_sweep(results: Results, experiment: Experiment) -> dict[str, Any]:
    """Return all rows, and for the reported figures the means and the differences from the baseline."""

    def rows_of(found: dict[Group, Estimate]) -> list[dict[str, Any]]:
        return [{"group": list(group), **_estimate("mean", e)} for group, e in found.items()]

    figures = figures_of(experiment)
    return {
        "name": experiment.file.name,
        "trials": len(results.rows),
        "failed": len(results.errors),
        "summary": {name: rows_of(results.summary(name)) for name in figures},
        "deltas": {name: rows_of(results.deltas(name)) for name in figures} if experiment.file.baseline else {},
        "rows": list(results.rows),
    }


def document_of_search(found: Tuned, experiment: Experiment) -> dict[str, Any]:
    """Return the best candidate with its figures, and its whole configuration if it is recommended."""

    base = experiment.file.baseline or next(iter(experiment.configurations))
    return {
        "recommended": found.holds_out,
        "candidate": dict(found.candidate),
        "candidates": found.n_candidates,
        "train": {name: _estimate("difference", e) for name, e in found.train.items()},
        "heldOut": {name: _estimate("difference", e) for name, e in found.held_out.items()},
        "score": _estimate("difference", found.score),
        "front": [{"candidate": dict(candidate), "figures": figures} for candidate, figures in found.front],
        "configuration": configuration_of(experiment, base, found.candidate) if found.holds_out else None,
    }


def _estimate(name: str, estimate: Estimate) -> dict[str, Any]:
    return {name: estimate.mean, "halfWidth95": estimate.half_width, "n": estimate.n}
