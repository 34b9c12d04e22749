"""What `kubesched snapshot` takes; the work is in `kubesched.cli.snapshot`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import cluster_options, gates_option


@click.command(
    "snapshot",
    short_help="Write the state of a cluster to a file.",
    epilog="Example:  kubesched snapshot cluster.jsonl.gz && kubesched replay cluster.jsonl.gz",
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@cluster_options
@gates_option
@click.option(
    "--hide-names",
    "hides_names",
    is_flag=True,
    help="Replace names, label values and the like by pseudonyms; pods are decided the same (see docs/how-to/why.md).",
)
@click.option(
    "--names",
    "names_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --hide-names: write down here, for yourself, which name became which.",
)
@runs("kubesched.cli.snapshot:run_snapshot")
def command() -> None:
    """Write the state of a cluster to FILE, gzipped if its name ends in .gz; the cluster is only read.

    The file is an inbox log that ends where everything has been listed: `replay` decides its pending pods, the same way every
    time.
    """
