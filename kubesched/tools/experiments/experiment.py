"""The experiment file: all combinations of scenarios, configurations, parameters and seeds.

In: YAML or JSON, and the files that it names. Out: an `Experiment` with the contents of these files, so that a trial needs no
file of this machine, and the trials in an order that only the file decides. An unknown field, a missing file or an invalid path
is an error of one line. docs/how-to/experiments.md is the reference.

For example 2 scenarios, 3 configurations, a parameter with 2 values and 10 seeds make 120 trials.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import itertools
import re
import runpy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import check_yaml
from kubesched.tools.plan.manifests import SUFFIXES
from kubesched.tools.simulation.scenario import Scenario, Strict, read_document

DEFAULT = "default"
"""The name of the default configuration."""
ROOTS = ("scenario", "configuration", "weights")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Seeds(Strict, kw_only=True):
    """`count` consecutive seeds."""

    start: int = 0
    count: int


class Search(Strict, kw_only=True):
    """The values that a parameter may take: a range, or a list of choices."""

    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    choices: tuple[Any, ...] = ()


class Objective(Strict, kw_only=True):
    """A figure to minimise or maximise."""

    figure: str
    goal: Literal["min", "max"] = "min"
    weight: float = 1.0

    @property
    def sign(self) -> int:
        """Return 1 where more is better, else -1."""
        return 1 if self.goal == "max" else -1


class Tune(Strict, kw_only=True):
    """What `kubesched tune` searches, its objectives, and the scenarios and seeds that are held out."""

    search: dict[str, Search]
    objectives: tuple[Objective, ...]
    candidates: int = 50
    seed: int = 0
    pareto: bool = False
    hold_out: tuple[str, ...] = ()
    """Scenarios that are not used for training."""
    hold_out_seeds: tuple[int, ...] | Seeds = Seeds(start=1000, count=10)


class ExperimentFile(Strict, kw_only=True):
    """The fields of the file."""

    name: str = ""
    scenarios: dict[str, str | dict[str, Any]] | tuple[str, ...]
    configurations: dict[str, str | dict[str, Any]] = msgspec.field(default_factory=lambda: {DEFAULT: DEFAULT})
    plugins: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()
    seeds: tuple[int, ...] | Seeds = (0,)
    parameters: dict[str, tuple[Any, ...]] = msgspec.field(default_factory=dict)
    """Values by path: `scenario.ties`, `configuration.profiles[0].pluginConfig[0].args.x`, `weights.ImageLocality`. All
    combinations are run."""
    measures: tuple[str, ...] = ()
    """Functions `module:function` that return more figures of a finished simulation."""
    baseline: str = ""
    report: tuple[str, ...] = ()
    """The dotted names of the figures to print."""
    tune: Tune | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One simulation of an experiment; together with the experiment's files it decides the result."""

    scenario: str
    configuration: str
    parameters: tuple[tuple[str, Any], ...]
    seed: int

    @property
    def name(self) -> str:
        """Return a name that is unique in the experiment."""
        more = [f"{path}={msgspec.json.encode(value).decode()}" for path, value in self.parameters]
        return "/".join([self.scenario, self.configuration, *more, f"seed {self.seed}"])


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment with the contents of its files."""

    file: ExperimentFile
    scenarios: dict[str, bytes]
    """Scenario documents by name. File names in them are keys of `files`."""
    configurations: dict[str, bytes]
    files: dict[str, bytes]
    plugins: tuple[str, ...]
    """As in the file; the path of a Python file is a key of `files`."""
    measures: tuple[str, ...] = ()
    """As `plugins`."""

    @property
    def digest(self) -> str:
        """Return a hash of the experiment and all its files."""
        return hashlib.sha256(msgspec.msgpack.encode(self, order="deterministic")).hexdigest()

    def trials(self) -> Iterator[Trial]:
        """Yield all trials: scenarios, then configurations, then parameters, and seeds last."""
        spans = [[(path, value) for value in values] for path, values in self.file.parameters.items()]
        for scenario, configuration in itertools.product(self.scenarios, self.configurations):
            for parameters in itertools.product(*spans):
                for seed in seeds_from(self.file.seeds):
                    yield Trial(scenario, configuration, parameters, seed)


def seeds_from(seeds: tuple[int, ...] | Seeds) -> tuple[int, ...]:
    """Return the seeds as a tuple."""
    return tuple(range(seeds.start, seeds.start + seeds.count)) if isinstance(seeds, Seeds) else seeds


def read_experiment(path: Path, settings: Mapping[str, str] | None = None) -> Experiment:
    """Read an experiment and the files that it names; raise ConfigError if it is not valid.

    A file that ends in .py defines a function `experiment` that returns the document. `settings` are its arguments.
    """
    if path.suffix == ".py":
        file = _from_python(path, settings or {})
    elif settings:
        raise ConfigError(str(path), "only an experiment in Python takes settings")
    else:
        file = read_document(path, ExperimentFile)
    try:
        return _Reader(path.parent, file).read()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.path}", error.detail) from error


def _from_python(path: Path, settings: Mapping[str, str]) -> ExperimentFile:
    try:
        make = runpy.run_path(str(path)).get("experiment")
    except Exception as error:  # user code may raise anything
        raise ConfigError(str(path), f"cannot be run: {type(error).__name__}: {error}") from error
    if not callable(make):
        raise ConfigError(str(path), "has no function `experiment`")
    try:
        inspect.signature(make).bind(**settings)
    except TypeError as error:
        raise ConfigError(f"{path}: experiment", str(error)) from error
    try:
        return msgspec.convert(make(**settings), ExperimentFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: experiment", str(error)) from error
    except ConfigError:
        raise
    except Exception as error:  # as above
        raise ConfigError(f"{path}: experiment", f"{type(error).__name__}: {error}") from error


class _Reader:
    """Reads and checks an experiment, and collects its files."""

    def __init__(self, folder: Path, file: ExperimentFile) -> None:
        self._folder = folder
        self._file = file
        self._files: dict[str, bytes] = {}
        self._names: dict[Path, str] = {}

    def read(self) -> Experiment:
        file = self._file
        named = file.scenarios if isinstance(file.scenarios, dict) else {Path(text).stem: text for text in file.scenarios}
        if not named or len(named) < len(file.scenarios):
            raise ConfigError("scenarios", "expected at least one, and names that differ")
        if not file.configurations:
            raise ConfigError("configurations", "expected at least one")
        seeds = seeds_from(file.seeds)
        if not seeds or len(set(seeds)) < len(seeds):
            raise ConfigError("seeds", "expected at least one, and each once")
        if file.baseline and file.baseline not in file.configurations:
            raise ConfigError("baseline", f"{file.baseline!r} is none of the configurations")
        for path, values in file.parameters.items():
            _check_path(path, f"parameters.{path}")
            if not values:
                raise ConfigError(f"parameters.{path}", "expected values")
        for i, text in enumerate(file.measures):
            if not all(text.rpartition(":")):
                raise ConfigError(f"measures[{i}]", f"expected module:function or FILE.py:function, found {text!r}")
        if file.tune is not None:
            _check_tune(file.tune, set(named))
        return Experiment(
            file=file,
            scenarios={name: self._scenario(text, f"scenarios.{name}") for name, text in named.items()},
            configurations={name: self._configuration(name, given) for name, given in file.configurations.items()},
            files=self._files,
            plugins=tuple(self._code(text, f"plugins[{i}]") for i, text in enumerate(file.plugins)),
            measures=tuple(self._code(text, f"measures[{i}]") for i, text in enumerate(file.measures)),
        )

    def _scenario(self, given: str | dict[str, Any], where: str) -> bytes:
        """Return a scenario document in which each file is replaced by its key in `files`."""
        if isinstance(given, dict):
            document, folder = copy.deepcopy(given), self._folder
        else:
            path = self._folder / given
            self._bytes(path, where)
            document, folder = msgspec.to_builtins(read_document(path, Scenario)), path.parent
        folder = folder / (document.pop("folder", "") or "")
        cluster = document.get("cluster") or {}
        if cluster.get("snapshot"):
            cluster["snapshot"] = self._take(folder / cluster["snapshot"], f"{where}: cluster.snapshot")
        if cluster.get("manifests"):
            taken: list[str] = []
            for path in (folder / given for given in cluster["manifests"]):
                inside = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES) if path.is_dir() else [path]
                taken += (self._take(each, f"{where}: cluster.manifests") for each in inside)
            cluster["manifests"] = taken
        for i, trace in enumerate(cluster.get("nodeLists") or ()):
            trace["file"] = self._take(folder / trace["file"], f"{where}: cluster.nodeLists[{i}].file")
        for i, workload in enumerate(document.get("workloads") or ()):
            arrivals = workload.get("arrivals") or {}
            if arrivals.get("trace"):
                arrivals["trace"] = self._take(folder / arrivals["trace"], f"{where}: workloads[{i}].arrivals.trace")
            if workload.get("manifest"):
                workload["manifest"] = self._take(folder / workload["manifest"], f"{where}: workloads[{i}].manifest")
        return msgspec.json.encode(document, order="deterministic")

    def _configuration(self, name: str, given: str | dict[str, Any]) -> bytes:
        if isinstance(given, dict):
            return msgspec.json.encode(given, order="deterministic")
        if given == DEFAULT:
            return b""
        text = self._bytes(self._folder / given, f"configurations.{name}")
        check_yaml(text)
        return text

    def _code(self, text: str, where: str) -> str:
        """Return a plugin or measure as workers load it: a Python file is collected, an installed module is not."""
        path, colon, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
        if not path.endswith(".py"):
            return text
        return self._take(self._folder / path, where) + colon + name

    def _take(self, path: Path, where: str) -> str:
        """Collect a file and return its key in `files`."""
        key = path.resolve()
        if key not in self._names:
            content = self._bytes(path, where)
            self._names[key] = f"{len(self._names)}-{path.name}"
            self._files[self._names[key]] = content
        return self._names[key]

    @staticmethod
    def _bytes(path: Path, where: str) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise ConfigError(where, f"{path} cannot be read: {error.strerror}") from error


def _check_path(path: str, where: str) -> None:
    if path.partition(".")[0] not in ROOTS or not path.partition(".")[2]:
        raise ConfigError(where, f"expected a path that begins with {', '.join(f'{root}.' for root in ROOTS)}")


def _check_tune(tune: Tune, scenarios: set[str]) -> None:
    if not tune.search or not tune.objectives:
        raise ConfigError("tune", "expected something to search, and an objective")
    if not 1 <= tune.candidates <= 100_000:
        raise ConfigError("tune.candidates", f"must be from 1 to 100,000, found {tune.candidates}")
    for path, span in tune.search.items():
        where = f"tune.search.{path}"
        _check_path(path, where)
        if bool(span.choices) == (span.low is not None or span.high is not None):
            raise ConfigError(where, "expected either low and high, or choices")
        if not span.choices and (span.low is None or span.high is None or span.low > span.high):
            raise ConfigError(where, "expected low and high, the lower one first")
        if span.step is not None and span.step <= 0:
            raise ConfigError(f"{where}.step", "must be more than 0")
    for name in tune.hold_out:
        if name not in scenarios:
            raise ConfigError("tune.holdOut", f"{name!r} is none of the scenarios")
    if set(tune.hold_out) == scenarios:
        raise ConfigError("tune.holdOut", "nothing is left to train on")
    if len(seeds_from(tune.hold_out_seeds)) < 2:
        raise ConfigError("tune.holdOutSeeds", "expected at least two: one says nothing of chance")


def set_weight(document: dict[str, Any], plugin: str, weight: int) -> None:
    """Set the weight of a Score plugin in every profile of a configuration; 0 disables the plugin."""
    profiles = document.setdefault("profiles", [])
    if not profiles:
        profiles.append({"schedulerName": "default-scheduler"})
    for profile in profiles:
        score = profile.setdefault("plugins", {}).setdefault("score", {})
        for part in ("enabled", "disabled"):
            score[part] = [each for each in score.get(part) or () if each.get("name") != plugin]
        score["disabled"].append({"name": plugin})
        if weight:
            score["enabled"].append({"name": plugin, "weight": weight})


def set_at(document: Any, path: str, value: Any) -> None:
    """Set the value at a path such as `profiles[0].plugins.score`; raise ConfigError if the path does not exist.

    Missing objects on the way are created. The index after the last element of a list appends one.
    """
    steps: list[str | int] = [int(index) if index else name for name, index in _STEP.findall(path)]
    if not steps:
        raise ConfigError(path, "not a path")
    here = document
    for step, following in itertools.pairwise(steps):
        if isinstance(here, dict) and isinstance(step, str):
            here = here.setdefault(step, [] if isinstance(following, int) else {})
        elif isinstance(here, list) and step == len(here):
            here.append([] if isinstance(following, int) else {})
            here = here[-1]
        else:
            here = _element(here, step, path)
    last = steps[-1]
    if isinstance(here, list) and last == len(here):
        here.append(value)
        return
    if not (isinstance(here, dict) and isinstance(last, str)):
        _element(here, last, path)
    here[last] = value


def _element(here: Any, step: str | int, path: str) -> Any:
    if not isinstance(here, list) or not isinstance(step, int) or not step < len(here):
        raise ConfigError(path, f"leads nowhere at {step!r}")
    return here[step]
