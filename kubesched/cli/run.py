"""`kubesched run`: the scheduler, with kube-scheduler's own flags."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import click

from kubesched.app import LeaseLost, Scheduler, Wiring, stop_on_signals
from kubesched.cli.flagset import UsageError
from kubesched.cli.options import Answer, Options, read_options, usage_text
from kubesched.client.credentials import find_credentials
from kubesched.config import as_yaml, effective
from kubesched.errors import ConfigError


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
    configuration = options.configuration(Scheduler.catalogue())
    if options.write_config_to:
        _write(options.write_config_to, as_yaml(effective(configuration)))
        return 0
    source = find_credentials(configuration.client_connection.kubeconfig, master=options.master)
    wiring = Wiring(source, options.gates,
                    max_waiting_seconds=options.pod_max_in_unschedulable_pods_duration.seconds)

    async def serve() -> int:
        scheduler = Scheduler(configuration, wiring)
        stop_on_signals(scheduler)
        try:
            await scheduler.run()
        except LeaseLost as error:
            click.echo(f"Error: {error}", err=True)
            return 1
        return 0

    return asyncio.run(serve())


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise ConfigError("", f"open {path}: {(error.strerror or str(error)).lower()}") from error
