"""What `kubesched config` takes; the work is in `kubesched.cli.config`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import gates_option
from kubesched.server.options.own_flags import LEGACY_RELEASES

_file = click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
_plugins = click.option("--plugin", "plugins", multiple=True, metavar="FILE.py:Class", help="A plugin of your own.")
_version = click.option(
    "--legacy-version",
    type=click.Choice(LEGACY_RELEASES),
    help=f"The release that a Policy (default: {LEGACY_RELEASES[-1]}) or a v1alpha1 file was written for.",
)
_output = click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="How to print.")


@click.group(
    "config", short_help="Check, show or convert a configuration.", epilog="Example:  kubesched config check scheduler.yaml"
)
def command() -> None:
    """Check a KubeSchedulerConfiguration or a legacy Policy, show it with all defaults, or convert a Policy."""


@command.command("check", short_help="Say whether a file is good.", epilog="Example:  kubesched config check scheduler.yaml")
@_file
@gates_option
@_plugins
@_version
@runs("kubesched.cli.config:run_config_check")
def check() -> None:
    """Say whether the scheduler would start with FILE (`-`: standard input), a configuration or a Policy."""


@command.command(
    "show", short_help="Print a file with all defaults.", epilog="Example:  kubesched config show scheduler.yaml -o json"
)
@_file
@gates_option
@_plugins
@_version
@_output
@runs("kubesched.cli.config:run_config_show")
def show() -> None:
    """Print FILE (`-`: standard input) as the scheduler understands it, every default filled in.

    Of a configuration it is the document that `kubesched run --write-config-to` writes; of a Policy, the predicates and
    priorities that its release would run; of a v1alpha1 file, with --legacy-version, the file and its final plugins.
    """


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
@runs("kubesched.cli.config:run_config_convert")
def convert() -> None:
    """Print the KubeSchedulerConfiguration that behaves as the Policy in FILE (`-`: standard input).

    What behaves a little differently is said on standard error. If something has no equivalent, that is said instead,
    nothing is printed and the exit code is 1; `--partial` prints the rest, and the exit code is still 1.
    """
