"""`kubesched snapshot`: everything that a scheduler reads of a cluster, in one file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import click

from kubesched.cli.options import NEW_FILE, ClusterOptions, gates_option, takes
from kubesched.cli.printing import warn
from kubesched.errors import SchedulerError


@click.command("snapshot", epilog="Example:  kubesched snapshot cluster.jsonl.gz && kubesched replay cluster.jsonl.gz")
@click.argument("file", type=NEW_FILE)
@takes(cluster=ClusterOptions)
@gates_option
@click.option(
    "--hide-names",
    "hides_names",
    is_flag=True,
    help="Replace names and label values by pseudonyms. Pods are decided the same (docs/how-to/why.md).",
)
@click.option(
    "--names",
    "names_file",
    type=NEW_FILE,
    help="With --hide-names: file for the list of names and their pseudonyms. Keep it to yourself.",
)
def command(
    file: Path, cluster: ClusterOptions, feature_gates: tuple[str, ...], hides_names: bool, names_file: Path | None
) -> None:
    """Write the state of a cluster to FILE, gzipped if its name ends in .gz; the cluster is only read.

    The file is an inbox log that ends where everything has been listed: `replay` decides its pending pods, the same way every
    time.
    """
    from kubesched.scheduler.config import Gates
    from kubesched.tools.snapshots.anonymizing import hide_names

    if names_file is not None and not hides_names:
        raise click.UsageError("--names goes with --hide-names")
    captured = cluster.read(Gates.fitting(feature_gates))
    if hides_names:
        captured, names = hide_names(captured, warn)
        if names_file is not None:
            _write(names_file, json.dumps(names, indent=1).encode() + b"\n")
    data = b"".join(captured.without_applied_manifests().lines())
    _write(file, gzip.compress(data, 6, mtime=0) if file.suffix == ".gz" else data)
    click.echo(f"{len(captured.objects)} objects written to {file}{', names hidden' if hides_names else ''}")


def _write(file: Path, data: bytes) -> None:
    from kubesched.files import write_private

    try:
        write_private(file, data)
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from error
