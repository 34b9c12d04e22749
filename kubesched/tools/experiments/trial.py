"""Runs one trial: a pure function from an experiment and a trial to figures.

In: the experiment with its files, and a trial. Out: a flat row of figures, or an error in one line. A worker writes the files
once to a folder of its own, and no trial changes them.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import ConfigError, SchedulerError
from kubesched.scheduler import config
from kubesched.scheduler.engine import default_configuration, registry_with
from kubesched.scheduler.framework import catalogue, find_plugins, run_module
from kubesched.tools.experiments.experiment import Experiment, Trial, set_at, set_weight
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.scenario import scenario_from, seconds
from kubesched.tools.simulation.simulation import Simulation

Figures = dict[str, float | int | str | bool | None]
Measure = Callable[[Simulation], Mapping[str, Any]]


class Outcome(msgspec.Struct, frozen=True):
    """The result of a trial: figures by dotted names, or an error."""

    figures: Figures
    error: str = ""


class Worker:
    """Runs trials of one experiment."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._folder = tempfile.TemporaryDirectory(prefix="kubesched-experiment-")
        for name, content in experiment.files.items():
            (Path(self._folder.name) / name).write_bytes(content)
        gc.set_threshold(50_000, 20, 100)  # a simulation makes hundreds of thousands of objects that stay

    def run(self, trial: Trial) -> Outcome:
        """Run one trial. Any exception, from a plugin, a measure or kubesched, becomes the error of this trial."""
        flat: Figures = {}
        try:
            measures = [_function(text, Path(self._folder.name)) for text in self._experiment.measures]
            sim, until = self._simulation(trial)
            with sim:
                _flatten(sim.run(until), "", flat)
                for measure in measures:
                    _flatten(_measured(measure, sim), "", flat)
        except SchedulerError as error:
            return Outcome({}, " ".join(str(error).split()))
        except Exception as error:  # see above
            return Outcome({}, " ".join(f"{type(error).__name__}: {error}".split()))
        return Outcome(flat)

    def _simulation(self, trial: Trial) -> tuple[Simulation, float | None]:
        """Return the simulation of a trial, and the time at which it ends."""
        experiment, folder = self._experiment, Path(self._folder.name)
        document = msgspec.json.decode(experiment.scenarios[trial.scenario])
        policy = configuration_of(experiment, trial.configuration, trial.parameters)
        for path, value in trial.parameters:
            if path.startswith("scenario."):
                set_at(document, path.removeprefix("scenario."), value)
        scenario = scenario_from(document, f"scenario {trial.scenario}")
        scenario = msgspec.structs.replace(scenario, seed=trial.seed, folder=str(folder))
        gates = config.Gates.parse(experiment.file.feature_gates)
        plugins = [str(folder / text) if ".py" in text else text for text in experiment.plugins]
        registry = registry_with([cls for text in plugins for cls in find_plugins(text)], installed=True)
        if policy is None:
            configuration = default_configuration(gates, registry)
        else:
            configuration = config.load(msgspec.json.encode(policy).decode(), gates=gates, registry=catalogue(registry))
        sim = build_simulation(scenario, configuration=configuration, gates=gates, registry=registry)
        return sim, None if scenario.duration is None else seconds(scenario.duration)


def configuration_of(experiment: Experiment, name: str, parameters: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    """Return a configuration with the parameters set; None for the unchanged default configuration."""
    text = experiment.configurations[name]
    document = msgspec.yaml.decode(text) if text else None
    for path, value in parameters:
        root, _, rest = path.partition(".")
        if root == "scenario":
            continue
        if document is None:
            document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        if root == "weights":
            set_weight(document, rest, value)
        else:
            set_at(document, rest, value)
    return document


def _measured(measure: Measure, sim: Simulation) -> Mapping[str, Any]:
    name = getattr(measure, "__name__", repr(measure))
    try:
        found = measure(sim)
    except Exception as error:  # user code may raise anything
        raise SchedulerError(f"measure {name}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        raise SchedulerError(f"measure {name}: expected figures by name, returned {type(found).__name__}")
    return found


def _flatten(document: Mapping[str, Any], prefix: str, into: Figures) -> None:
    """Add figures to a flat dict by dotted names; lists are left out."""
    for name, value in document.items():
        if isinstance(value, Mapping):
            _flatten(value, f"{prefix}{name}.", into)
        elif value is None or isinstance(value, (int, float, str, bool)):
            into[prefix + name] = value


def _function(text: str, folder: Path) -> Measure:
    """Return a measure by `module:function`, or `FILE:function` of a collected file."""
    where, _, name = text.rpartition(":")
    try:
        found = getattr(run_module(str(folder / where) if where.endswith(".py") else where), name, None)
    except ConfigError as error:
        raise ConfigError(f"measures: {text}", f"cannot be imported: {error.detail.rpartition(': ')[2]}") from error
    if not callable(found):
        raise ConfigError(f"measures: {text}", f"{where} has no function {name}")
    return found  # type: ignore[no-any-return]
