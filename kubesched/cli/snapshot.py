"""`kubesched snapshot`: everything that a scheduler reads of a cluster, in one file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import click

from kubesched import config
from kubesched.cli.sources import cluster_options, gates_option, read_cluster
from kubesched.errors import SchedulerError
from kubesched.simulator.hiding import hide_names


@click.command("snapshot", epilog="Example:  kubesched snapshot cluster.jsonl.gz && kubesched replay cluster.jsonl.gz")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@cluster_options
@gates_option
@click.option(
    "--hide-names",
    "hides_names",
    is_flag=True,
    help="Replace names, label values and the like by pseudonyms; pods are decided the same (see docs/why.md).",
)
@click.option(
    "--names",
    "names_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --hide-names: write down here, for yourself, which name became which.",
)
def snapshot_command(
    file: Path,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    feature_gates: tuple[str, ...],
    hides_names: bool,
    names_file: Path | None,
) -> None:
    """Write the state of a cluster to FILE, gzipped if its name ends in .gz; the cluster is only read.

    The file is an inbox log that ends where everything has been listed: `replay` decides its pending pods, the same way every
    time.
    """
    if names_file is not None and not hides_names:
        raise click.UsageError("--names goes with --hide-names")
    cluster = read_cluster(snapshot_file, kubeconfig, context, config.Gates.parse(feature_gates))
    if hides_names:
        cluster, names = hide_names(cluster)
        if names_file is not None:
            _write(names_file, json.dumps(names, indent=1).encode() + b"\n")
    data = b"".join(cluster.lines())
    _write(file, gzip.compress(data, 6, mtime=0) if file.suffix == ".gz" else data)
    click.echo(f"{len(cluster.objects)} objects written to {file}{', names hidden' if hides_names else ''}")


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from error
