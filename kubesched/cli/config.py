"""`kubesched config`: say whether a configuration file is good, what it amounts to, and what became of an old policy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.options import gates_option
from kubesched.cli.printing import warn
from kubesched.server.options.own_flags import LEGACY_RELEASES

if TYPE_CHECKING:
    from kubesched.tools.config.reading import Current, OldFile, OldPolicy

_file = click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
_plugins = click.option("--plugin", "plugins", multiple=True, metavar="FILE.py:Class", help="A plugin of your own.")
_version = click.option(
    "--legacy-version",
    type=click.Choice(LEGACY_RELEASES),
    help=f"The release that a Policy (default: {LEGACY_RELEASES[-1]}) or a v1alpha1 file was written for.",
)
_output = click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="How to print.")


@click.group("config", epilog="Example:  kubesched config check scheduler.yaml")
def command() -> None:
    """Check a KubeSchedulerConfiguration or a legacy Policy, show it with all defaults, or convert a Policy."""


@command.command("check", short_help="Say whether a file is good.", epilog="Example:  kubesched config check scheduler.yaml")
@_file
@gates_option
@_plugins
@_version
def check(file: Path, feature_gates: tuple[str, ...], plugins: tuple[str, ...], legacy_version: str | None) -> None:
    """Check whether the scheduler would start with FILE (`-`: standard input), a configuration or a Policy."""
    found = _read(file, feature_gates, plugins, legacy_version)
    click.echo(f"{file}: {found.sentence()}")


@command.command(
    "show", short_help="Print a file with all defaults.", epilog="Example:  kubesched config show scheduler.yaml -o json"
)
@_file
@gates_option
@_plugins
@_version
@_output
def show(file: Path, feature_gates: tuple[str, ...], plugins: tuple[str, ...], legacy_version: str | None, output: str) -> None:
    """Print FILE (`-`: standard input) as the scheduler understands it, every default filled in.

    Of a configuration it is the document that `kubesched run --write-config-to` writes; of a Policy, the predicates and
    priorities that its release would run; of a v1alpha1 file, with --legacy-version, the file and its final plugins.
    """
    _print(_read(file, feature_gates, plugins, legacy_version).document(), output)


@command.command(
    "convert",
    short_help="Turn a Policy into a configuration.",
    epilog="Example:  kubesched config convert policy.json > scheduler.yaml",
)
@_file
@_plugins
@_version
@click.option("--scheduler-name", default="default-scheduler", show_default=True, help="The name of the profile.")
@click.option("--partial", is_flag=True, help="Print what can be said even if something has no equivalent.")
@_output
def convert_(
    file: Path, plugins: tuple[str, ...], legacy_version: str | None, scheduler_name: str, partial: bool, output: str
) -> None:
    """Print the KubeSchedulerConfiguration that behaves as the Policy in FILE (`-`: standard input).

    What behaves a little differently is said on standard error. If something has no equivalent, that is said instead,
    nothing is printed and the exit code is 1; `--partial` prints the rest, and the exit code is still 1.
    """
    from kubesched.tools.config.reading import convert

    done = convert(file, plugins, legacy_version, scheduler_name)
    for line in done.differences:
        click.echo(f"differs: {line}", err=True)
    for line in done.missing:
        click.echo(f"no equivalent: {line}", err=True)
    if done.is_complete or partial:
        _print(done.document, output)
    if not done.is_complete:
        sys.exit(1)


def _read(
    file: Path, feature_gates: tuple[str, ...], plugins: tuple[str, ...], legacy_version: str | None
) -> Current | OldPolicy | OldFile:
    from kubesched.scheduler.config import Gates
    from kubesched.tools.config.reading import read_configuration

    return read_configuration(file, Gates.fitting(feature_gates), plugins, legacy_version, warn)


def _print(document: dict[str, Any], output: str) -> None:
    from kubesched.scheduler.config import as_json, as_yaml

    click.echo(as_json(document) if output == "json" else as_yaml(document), nl=False)
