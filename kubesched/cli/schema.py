"""`kubesched schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import click

from kubesched.cli.printing import print_document

KINDS = ("scenario", "experiment", "node-groups")


@click.command("schema", epilog="Example:  kubesched schema scenario > scenario.schema.json")
@click.argument("kind", type=click.Choice(KINDS))
def command(kind: str) -> None:
    """Print the JSON Schema of a KIND of file, for completion and checks in an editor.

    With the YAML extension of most editors a first line `# yaml-language-server: $schema=scenario.schema.json` is enough.
    """
    from kubesched.tools.schemas import schema_of

    print_document(schema_of(kind), "json")
