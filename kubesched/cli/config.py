"""`kubesched config`: say whether a configuration file is good, and what it amounts to with every default filled in.

The errors are the ones with which the scheduler itself would refuse to start.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubesched.config import Configuration, Gates, as_json, as_yaml, effective, load
from kubesched.errors import ConfigError
from kubesched.plugins.args import IN_TREE_CATALOGUE

_STDIN = "-"


@click.group("config", epilog="Example:  kubesched config check scheduler.yaml")
def config_group() -> None:
    """Check a KubeSchedulerConfiguration file, or show it with all defaults."""


_file = click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
_gates = click.option(
    "--feature-gates", "feature_gates", multiple=True, metavar="A=true,B=false", help="Gates to switch, as for `run`."
)


@config_group.command("check", epilog="Example:  kubesched config check scheduler.yaml")
@_file
@_gates
def check_command(file: Path, feature_gates: tuple[str, ...]) -> None:
    """Say whether the scheduler would start with FILE (`-`: standard input)."""
    configuration = _load(file, feature_gates)
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    click.echo(f"{file}: valid, profiles: {names}")


@config_group.command("show", epilog="Example:  kubesched config show scheduler.yaml -o json")
@_file
@_gates
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="How to print.")
def show_command(file: Path, feature_gates: tuple[str, ...], output: str) -> None:
    """Print FILE (`-`: standard input) as the scheduler understands it, every default filled in.

    It is the document that `kubesched run --write-config-to` writes.
    """
    document = effective(_load(file, feature_gates))
    click.echo(as_json(document) if output == "json" else as_yaml(document), nl=False)


def _load(file: Path, feature_gates: tuple[str, ...]) -> Configuration:
    gates = Gates.parse(feature_gates)
    source: str | Path = file
    if str(file) == _STDIN:
        source = sys.stdin.read()
    try:
        return load(source, gates=gates, registry=IN_TREE_CATALOGUE)
    except ConfigError as error:
        text = str(error)
        raise error if str(file) in text else ConfigError(str(file), text) from error
