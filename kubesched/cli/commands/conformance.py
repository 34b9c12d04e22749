"""What `kubesched conformance` takes; the work is in `kubesched.cli.conformance`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs


@click.command(
    "conformance",
    short_help="Run golden cases of kube-scheduler.",
    epilog="Example:  kubesched conformance tests/conformance -o json",
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.conformance:run_conformance")
def command() -> None:
    """Run golden cases (.jsonl, .jsonl.gz, folders of them) and compare with what was recorded.

    Exits with 1 if anything differs.
    """
