"""What `kubesched schema` takes; the work is in `kubesched.cli.schema`."""

from __future__ import annotations

import click

from kubesched.cli.commands.lazy import runs

KINDS = ("scenario", "experiment", "node-groups")


@click.command(
    "schema",
    short_help="Print the JSON Schema of a file.",
    epilog="Example:  kubesched schema scenario > scenario.schema.json",
)
@click.argument("kind", type=click.Choice(KINDS))
@runs("kubesched.cli.schema:run_schema")
def command() -> None:
    """Print the JSON Schema of a KIND of file, for completion and checks in an editor.

    With the YAML extension of most editors a first line `# yaml-language-server: $schema=scenario.schema.json` is enough.
    """
