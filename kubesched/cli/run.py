"""`kubesched run`: the scheduler, with kube-scheduler's own flags."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click

from kubesched import telemetry
from kubesched.app import Face, Scheduler, Wiring, stop_on_signals
from kubesched.cli.flagset import UsageError
from kubesched.cli.options import Answer, Options, read_options, usage_text
from kubesched.client.credentials import find_credentials
from kubesched.client.fencing import LeaseLost
from kubesched.config import Configuration, as_yaml, effective
from kubesched.config.gates import BINARY_VERSION, spec_of
from kubesched.errors import ConfigError
from kubesched.telemetry import MetricsSettings, logs


@click.command(
    "run", add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def run_command(words: tuple[str, ...]) -> None:
    """Run the scheduler; takes kube-scheduler's flags (see `run --help`)."""
    columns = shutil.get_terminal_size().columns
    try:
        options = read_options(words, columns=columns, command="kubesched run")
    except UsageError as error:
        click.echo(usage_text(columns=columns, command="kubesched run"), err=True)
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    if isinstance(options, Answer):
        click.echo(options.text, nl=False)
        return
    sys.exit(_run(options))


def _run(options: Options) -> int:
    read = _reader(options)
    configuration = read()
    if options.write_config_to:
        _write(options.write_config_to, as_yaml(effective(configuration)))
        return 0
    telemetry.configure(options.logs)
    try:
        return asyncio.run(_serve(options, configuration, read))
    finally:
        logs.shut_down()


async def _serve(options: Options, configuration: Configuration, read: Callable[[], Configuration]) -> int:
    scheduler = Scheduler(configuration, _wiring(options, configuration, read))
    stop_on_signals(scheduler)
    try:
        await scheduler.run()
    except LeaseLost as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    return 0


def _reader(options: Options) -> Callable[[], Configuration]:
    known = Scheduler.catalogue()
    return lambda: options.configuration(known)


def _wiring(options: Options, configuration: Configuration, read: Callable[[], Configuration]) -> Wiring:
    face = Face(options.serving, options.authentication, options.authorization, options.parsed.shown,
                options.reported_version)
    metrics = MetricsSettings(
        disabled=options.metrics.disabled, shown_for=options.metrics.show_hidden_for_version,
        allowed_label_values=options.metrics.allowed_label_values, is_enabled=options.gates.is_enabled,
        features=tuple((name, spec_of(name, BINARY_VERSION).stage.value, on)
                       for name, on in sorted(options.gates.states.items())),
        build={"git_version": options.reported_version, "major": "1", "minor": "36"})
    return Wiring(
        find_credentials(configuration.client_connection.kubeconfig, master=options.master),
        options.gates,
        max_waiting_seconds=options.pod_max_in_unschedulable_pods_duration.seconds,
        face=face,
        metrics=metrics,
        reload=read if options.config else None,
        has_changed=_watched(Path(options.config)) if options.config else lambda: False,
    )


def _watched(path: Path) -> Callable[[], bool]:
    """Return a function that says whether a file has changed since it was last asked."""

    def mark() -> object:
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
            return False  # a file that is just being replaced is looked at again
        seen = now
        return True

    return has_changed


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise ConfigError("", f"open {path}: {(error.strerror or str(error)).lower()}") from error
