"""The program of the scheduler: read the command line, log warnings about it, and run until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import click

from kubesched import telemetry
from kubesched.errors import ConfigError, SchedulerError
from kubesched.http import raise_file_limit
from kubesched.kube.cel.checking import NO_CEL
from kubesched.kube.client import LeaseLost, Served, find_credentials
from kubesched.scheduler import kernels
from kubesched.scheduler.config import (
    NEWEST,
    NO_EFFECT,
    NOT_OURS,
    OLDEST_RECORDED,
    ClientConnection,
    Configuration,
    Gates,
    Stage,
    Version,
    as_yaml,
    effective,
    nearest_recorded,
    spec_of,
    text_of,
)
from kubesched.scheduler.engine import DecisionLog, spans_to
from kubesched.scheduler.framework import Plugin, classes_in, find_plugins, not_enabled, run_module
from kubesched.scheduler.legacy import LegacyScheduler
from kubesched.scheduler.legacy.registry import CUSTOM
from kubesched.scheduler.legacy.wording import say_start
from kubesched.server.app import Face, Scheduler, Wiring, stop_on_signals
from kubesched.server.options.flagset import UsageError
from kubesched.server.options.options import Answer, Logs, Options, overruled, read_options
from kubesched.server.options.server_release import server_of, what_differs
from kubesched.server.options.usage import asks_for_help, help_text, usage_text
from kubesched.telemetry import MetricsSettings, logs
from kubesched.tools.plan.what_if import what_ifs_of_scheduler

log = logs.logger(__name__)


Configure = Callable[[Configuration], Configuration]


def main(plugins: Iterable[type[Plugin]] = (), words: Sequence[str] | None = None, configure: Configure | None = None) -> None:
    """Run a scheduler with own plugins built in. It takes the flags of `kubesched run`, and ends the process as `run` does.

    `words` replaces the command line. `configure` may change the checked configuration, also to values that no file can have:
    a test without pauses sets both backoffs to 0. Plugins of --plugin are added.
    """
    given = sys.argv[1:] if words is None else list(words)
    columns, command = shutil.get_terminal_size().columns, Path(sys.argv[0]).name
    if asks_for_help(given):
        click.echo(help_text(columns=columns, command=command), nl=False)
        return
    try:
        run_scheduler(given, columns, command, tuple(plugins), configure)
    except SchedulerError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def run_scheduler(
    words: Sequence[str], columns: int, command: str, own: tuple[type[Plugin], ...] = (), configure: Configure | None = None
) -> None:
    """Run until a signal. `columns` is the width of the terminal, `command` the name of the program; the rest as in `main`."""
    is_logging = False

    def begin_to_log(settings: Logs) -> None:
        nonlocal is_logging
        telemetry.configure(settings)
        is_logging = True

    try:
        server = server_of(words)
        release = nearest_recorded(server.minor) if server is not None else None
        options = read_options(words, columns=columns, command=command, on_logs=begin_to_log, release=release or NEWEST)
        if isinstance(options, Answer):
            click.echo(options.text, nl=False)
            return
        if server is not None and release is not None:
            _say_release(server, release)
        status = _run(options, own, configure or (lambda configuration: configuration))
    except UsageError as error:
        click.echo(usage_text(columns=columns, command=command), err=True)
        click.echo(f"Error: {error}", err=True)
        status = 1
    except SchedulerError as error:
        if not is_logging:
            raise
        log.error("command failed", err=error)
        status = 1
    finally:
        logs.shut_down()
    sys.exit(status)


def _say_release(server: Served, release: Version) -> None:
    """Log the release of the API server, the one that is emulated for it, and the differences."""
    fields = {"server": server.version, "emulated": text_of(release)}
    if server.minor == release[1]:
        log.info("Emulating the release of the API server", **fields)
        return
    text = "Emulating another release than the API server's, the nearest one whose decisions were recorded"
    log.warning(text, **fields, differs=what_differs(server.minor, release))


def _run(options: Options, own: tuple[type[Plugin], ...], configure: Configure) -> int:
    """Log what the options mean, then serve, or write the configuration if --write-config-to asks for it."""
    for notice in options.notices:
        click.echo(notice, err=True)
    logs.set_contextual(options.gates.is_enabled("ContextualLogging"))
    logs.say_flags(options.parsed.shown)
    plugins = (*own, *_plugins(options))
    for cls in plugins:
        logs.hear(cls.__module__.partition(".")[0])
    if options.legacy is not None:
        options = replace(options, legacy=_with_plugins(options.legacy, plugins))
    known = Scheduler.catalogue(plugins)

    def read() -> Configuration:
        return configure(options.configuration(known))

    configuration = read()
    unused = not_enabled(plugins, configuration) if options.legacy is None else options.legacy.not_enabled()
    for text in (*overruled(options, configuration), *unused):
        log.warning(text)
    _say_settled_gates(options.gates)
    _say_unspoken(configuration.client_connection)
    has_claims = any("DynamicResources" in profile.plugin_names for profile in configuration.profiles)
    if has_claims and find_spec("cel_expr_python") is None and options.legacy is None:
        log.warning(f"Pods with device selectors cannot be placed: {NO_CEL}")
    if options.write_config_to or log.level >= 2:
        document = as_yaml(effective(configuration) if options.legacy is None else options.legacy.document())
        log.v(2).info("Using component config", config=document)
        if options.write_config_to:
            try:
                Path(options.write_config_to).write_text(document, encoding="utf-8")
            except OSError as error:
                raise _cannot_open(options.write_config_to, error) from error
            log.info("Wrote configuration", file=options.write_config_to)
            return 0
    raise_file_limit()
    with _opened(options.inbox_log) as inbox_log:
        wiring = _wiring(options, configuration, plugins, read, inbox_log)
        if options.legacy is not None:
            say_start(options.legacy.release, options.reported_version)
        else:
            log.info("Starting Kubernetes Scheduler", version=options.reported_version)
        if kernels.why_not_compiled:
            log.v(4).info("Formulas over all nodes run in NumPy, not compiled", reason=kernels.why_not_compiled)
        return asyncio.run(_serve(configuration, wiring))


async def _serve(configuration: Configuration, wiring: Wiring) -> int:
    """Run until a signal and return the exit code. As in kube-scheduler, an end without leader election is an error."""
    scheduler = Scheduler(configuration, wiring)
    stop_on_signals(scheduler)
    try:
        await scheduler.run()
    except LeaseLost as error:
        log.error("Leaderelection lost", err=error)
        return 1
    if configuration.leader_election.leader_elect:
        log.info("Requested to terminate, exiting")
        return 0
    raise SchedulerError("finished without leader elect")


def _say_unspoken(given: ClientConnection) -> None:
    """Warn about a configured content type that is not supported. The default is passed over: no user has chosen it."""
    wanted = {given.content_type, *filter(None, given.accept_content_types.split(","))}
    for media in sorted(wanted - {ClientConnection().defaulted().content_type, "application/json"}):
        log.warning(f"clientConnection asks for {media}: the API server is spoken to in application/json")


def _say_settled_gates(gates: Gates) -> None:
    """Warn about gates that are set though they are GA, deprecated, or without effect here."""
    for name in sorted(gates.asked):
        value = "true" if gates.is_enabled(name) else "false"
        stage = {Stage.GA: "GA", Stage.DEPRECATED: "deprecated"}.get(spec_of(name, gates.emulated).stage)
        if stage is not None:
            log.warning(f"Setting {stage} feature gate {name}={value}. It will be removed in a future release.")
        if name in NO_EFFECT:
            log.info(f"Feature gate {name}={value} changes nothing here: {NO_EFFECT[name]}")
        if name in NOT_OURS:
            log.info(f"Feature gate {name}={value} is for another component and changes nothing here")


def _plugins(options: Options) -> tuple[type[Plugin], ...]:
    """Return the plugins of --plugin. For a legacy release, a file may register predicates and priorities instead."""
    found: list[type[Plugin]] = []
    for name in options.plugins:
        before = len(CUSTOM)
        if options.legacy is not None and ":" not in name:
            module = run_module(name)
            logs.hear(module.__name__.partition(".")[0])
            if len(CUSTOM) > before:
                found += classes_in(module)
                continue
        found += find_plugins(name)
    return tuple(found)


def _with_plugins(scheduler: LegacyScheduler, plugins: tuple[type[Plugin], ...]) -> LegacyScheduler:
    """Return the legacy scheduler with plugins; of the old releases only 1.17 runs plugins of the framework."""
    if plugins and not scheduler.release.runs_plugins:
        raise ConfigError(
            "", f"plugin {plugins[0].name}: {scheduler.release} runs no plugins; register predicates, priorities and providers"
        )
    return replace(scheduler, brought=plugins)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes] | None]:
    """Open the inbox log for writing, compressed if its name ends in .gz; None without a path."""
    if not path:
        yield None
        return
    try:
        opened: Any = gzip.open(path, "wb", compresslevel=5) if path.endswith(".gz") else open(path, "wb")  # noqa: SIM115
    except OSError as error:
        raise _cannot_open(path, error) from error
    with opened:
        yield opened


def _decision_log(options: Options) -> DecisionLog | None:
    """Open the decision log; None without a path."""
    if not options.decision_log:
        return None
    try:
        return DecisionLog(options.decision_log)
    except OSError as error:
        raise _cannot_open(options.decision_log, error) from error


def _wiring(
    options: Options,
    configuration: Configuration,
    plugins: tuple[type[Plugin], ...],
    read: Callable[[], Configuration],
    inbox_log: IO[bytes] | None,
) -> Wiring:
    """Return all that the scheduler needs besides its configuration."""
    legacy, ttl, release = options.legacy, options.assumed_pod_ttl, max(options.gates.emulated, OLDEST_RECORDED)
    watched = legacy.policy_file if legacy is not None else options.config
    face = Face(
        options.serving,
        options.authentication,
        options.authorization,
        options.parsed.shown,
        options.reported_version,
        what_ifs_of_scheduler,
    )
    metrics = MetricsSettings(
        disabled=options.metrics.disabled,
        shown_for=options.metrics.show_hidden_for_version,
        allowed_label_values=options.metrics.allowed_label_values,
        is_enabled=options.gates.is_enabled,
        features=tuple(
            (name, spec_of(name, options.gates.emulated).stage.value, on) for name, on in sorted(options.gates.states.items())
        ),
        build={"git_version": options.reported_version, "major": str(release[0]), "minor": str(release[1])},
        versions={  # of the metric version_info: the release, the emulated one, and the oldest compatible one
            "component": "kube",
            "binary": text_of(release),
            "emulation": text_of(options.gates.emulated),
            "min_compat": text_of((options.gates.emulated[0], options.gates.emulated[1] - 1)),
        },
        release=release,
        is_legacy=legacy is not None,
        has_native_histograms=options.gates.is_enabled("NativeHistograms"),
    )
    return Wiring(
        find_credentials(configuration.client_connection.kubeconfig, master=options.master),
        options.gates,
        plugins,
        max_waiting_seconds=options.pod_max_in_unschedulable_pods_duration.seconds,
        owns_process=True,
        assumed_ttl_seconds=None if ttl is None else ttl.seconds,
        face=face,
        metrics=metrics,
        inbox_log=inbox_log,
        decision_records=options.decision_records,
        decision_log=_decision_log(options),
        decision_spans=spans_to(options.otlp_endpoint) if options.otlp_endpoint else None,
        reload=read if watched else None,
        has_changed=_watched(Path(watched)) if watched else lambda: False,
        legacy=legacy,
    )


def _watched(path: Path) -> Callable[[], bool]:
    """Return a function that returns whether a file has changed since its last call."""

    def mark() -> object:
        """Return what changes with the file; None if it is missing."""
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    seen = mark()

    def has_changed() -> bool:
        nonlocal seen
        now = mark()
        if now is None or now == seen:
            return False  # None: the file is being replaced; the next call finds the new one
        seen = now
        return True

    return has_changed


def _cannot_open(path: str, error: OSError) -> ConfigError:
    """Return an error in the words of Go's os.Open, as kube-scheduler prints it."""
    return ConfigError("", f"open {path}: {(error.strerror or str(error)).lower()}")
