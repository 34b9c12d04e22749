"""Tuning: search the weights, arguments and strategies that are best for an objective, and test them on held-out seeds.

In: an experiment with a `tune` section. Out: the best candidate on the training scenarios and seeds, and its difference from
the baseline on held-out ones. The difference is paired by scenario and seed, and has a confidence interval. A candidate whose
interval includes zero is not recommended. Optuna proposes candidates and any executor runs them. The same seed and batch size
give the same candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubesched.errors import ConfigError, SchedulerError
from kubesched.tools.experiments.experiment import Experiment, Objective, Search, Trial, Tune, seeds_from
from kubesched.tools.experiments.results import Estimate
from kubesched.tools.experiments.sweep import Executor
from kubesched.tools.experiments.trial import Outcome

if TYPE_CHECKING:
    import optuna

Candidate = tuple[tuple[str, Any], ...]
"""Parameters as pairs of path and value."""
Judged = tuple[Candidate, dict[str, float]]
"""A candidate and its mean figures."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of tuning."""

    candidate: Candidate
    """The best candidate on the training scenarios."""
    n_candidates: int
    objectives: tuple[Objective, ...]
    train: dict[str, Estimate]
    """By figure, the difference from the baseline on the training seeds; `held_out` is that on the held-out ones."""
    held_out: dict[str, Estimate]
    score: Estimate
    """The weighted sum of the objectives on the held-out seeds, as a difference from the baseline: more is better."""
    front: tuple[Judged, ...]
    """The Pareto front with its figures; for a single objective only the best."""

    @property
    def holds_out(self) -> bool:
        """Return whether the candidate is better than the baseline on held-out seeds, with 95 % confidence."""
        return self.score.is_other_than_zero and self.score.mean > 0


def tune(
    experiment: Experiment,
    execute: Executor,
    *,
    batch: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tuned:
    """Search for the best candidate and test it; raise ConfigError if the experiment has no `tune` section."""
    wanted = experiment.file.tune
    if wanted is None:
        raise ConfigError("tune", "missing: what may be searched, and what counts")
    configuration = experiment.file.baseline or next(iter(experiment.configurations))
    held = set(wanted.hold_out)
    arena = _Arena(experiment, execute, configuration)
    train = [(name, seed) for name in experiment.scenarios if name not in held for seed in seeds_from(experiment.file.seeds)]
    test = [(name, seed) for name in wanted.hold_out or experiment.scenarios for seed in seeds_from(wanted.hold_out_seeds)]
    if not wanted.hold_out and set(test) & set(train):
        raise ConfigError("tune.holdOutSeeds", "must differ from the seeds, where no scenario is held out")
    found = list(_searched(_study(wanted), wanted, arena, train, batch, progress))
    if not found:
        raise SchedulerError("every candidate failed; the first error: " + (arena.first_error or "unknown"))
    best, _ = max(found, key=lambda each: _worth(each[1], wanted.objectives))
    base, tried = arena.figures((), test), arena.figures(best, test)
    at_home, trained = arena.figures((), train), arena.figures(best, train)
    return Tuned(
        best,
        len(found),
        wanted.objectives,
        {o.figure: _difference(at_home, trained, o.figure) for o in wanted.objectives},
        {o.figure: _difference(base, tried, o.figure) for o in wanted.objectives},
        Estimate.of([_worth(t, wanted.objectives) - _worth(b, wanted.objectives) for b, t in zip(base, tried, strict=True)]),
        tuple(_front(found, wanted.objectives)),
    )


class _Arena:
    """Runs candidates on scenarios and seeds, and keeps the outcomes, so that no run is repeated."""

    def __init__(self, experiment: Experiment, execute: Executor, configuration: str) -> None:
        self._experiment = experiment
        self._execute = execute
        self._configuration = configuration
        self._known: dict[str, Outcome] = {}
        self.first_error = ""

    def run(self, candidates: Sequence[Candidate], places: Sequence[tuple[str, int]]) -> None:
        """Run the trials without an outcome, as one batch."""
        trials = [self._trial(candidate, *place) for candidate in candidates for place in places]
        new = list({trial.name: trial for trial in trials if trial.name not in self._known}.values())
        for i, outcome in self._execute(self._experiment, new) if new else ():
            self._known[new[i].name] = outcome
            self.first_error = self.first_error or outcome.error

    def figures(self, candidate: Candidate, places: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
        """Return the figures of a candidate for each scenario and seed; raise SchedulerError if a run failed."""
        self.run([candidate], places)
        outcomes = [self._known[self._trial(candidate, *place).name] for place in places]
        for place, outcome in zip(places, outcomes, strict=True):
            if outcome.error:
                raise SchedulerError(f"{place[0]}, seed {place[1]}: {outcome.error}")
        return [outcome.figures for outcome in outcomes]

    def _trial(self, candidate: Candidate, scenario: str, seed: int) -> Trial:
        return Trial(scenario, self._configuration, candidate, seed)


def _searched(
    study: optuna.Study,
    wanted: Tune,
    arena: _Arena,
    places: Sequence[tuple[str, int]],
    batch: int,
    progress: Callable[[int, int], None],
) -> Iterator[Judged]:
    """Yield candidates and their mean figures. A failed candidate is reported to Optuna and left out."""
    from optuna.trial import TrialState

    n_tried, failed = 0, TrialState.FAIL
    while n_tried < wanted.candidates:
        trials = [study.ask() for _ in range(min(batch, wanted.candidates - n_tried))]
        candidates = [tuple((path, _suggested(each, path, span)) for path, span in wanted.search.items()) for each in trials]
        arena.run(candidates, places)
        for each, candidate in zip(trials, candidates, strict=True):
            n_tried += 1
            try:
                rows = arena.figures(candidate, places)
            except SchedulerError:
                study.tell(each, state=failed)
                continue
            means = {o.figure: Estimate.of([_figure(row, o.figure) for row in rows]).mean for o in wanted.objectives}
            worths = [o.weight * o.sign * means[o.figure] for o in wanted.objectives]
            study.tell(each, worths if wanted.pareto else sum(worths))
            yield candidate, means
        progress(n_tried, wanted.candidates)


def _study(wanted: Tune) -> optuna.Study:
    """Return a seeded Optuna study with one direction, or one for each objective."""
    try:
        import optuna
    except ImportError as error:
        raise SchedulerError("tuning needs the extra: pip install 'kubesched[experiments]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions: Any = ["maximize"] * (len(wanted.objectives) if wanted.pareto else 1)
    return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=wanted.seed), directions=directions)


def _suggested(trial: optuna.Trial, path: str, span: Search) -> Any:
    """Return the value that Optuna proposes for a parameter."""
    if span.choices:
        return span.choices[trial.suggest_categorical(path, list(range(len(span.choices))))]
    assert span.low is not None and span.high is not None
    if isinstance(span.low, int) and isinstance(span.high, int):
        return trial.suggest_int(path, span.low, span.high, step=int(span.step or 1))
    return trial.suggest_float(path, float(span.low), float(span.high), step=span.step)


def _figure(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    if not isinstance(value, (int, float)):
        raise ConfigError(f"tune.objectives: {name}", "is no figure of these simulations")
    return float(value)


def _worth(row: Mapping[str, Any], objectives: Sequence[Objective]) -> float:
    """Return the weighted sum of the objectives; more is better."""
    return float(sum(o.weight * o.sign * _figure(row, o.figure) for o in objectives))


def _difference(base: Sequence[dict[str, Any]], tried: Sequence[dict[str, Any]], name: str) -> Estimate:
    return Estimate.of([_figure(t, name) - _figure(b, name) for b, t in zip(base, tried, strict=True)])


def _front(found: Sequence[Judged], objectives: Sequence[Objective]) -> list[Judged]:
    """Return the Pareto front, in the order of the search: no other candidate is better in one figure and as good in all."""
    points = [[o.sign * figures[o.figure] for o in objectives] for _, figures in found]
    front: list[Judged] = []
    for each, mine in zip(found, points, strict=True):
        is_beaten = any(other != mine and all(a >= b for a, b in zip(other, mine, strict=True)) for other in points)
        if not is_beaten and each not in front:
            front.append(each)
    return front
