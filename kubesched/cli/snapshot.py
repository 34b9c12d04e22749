"""`kubesched snapshot`: everything that a scheduler reads of a cluster, in one file."""

from __future__ import annotations

import gzip
from pathlib import Path

import click

from kubesched import config
from kubesched.cli.sources import cluster_options, gates_option, read_cluster
from kubesched.errors import SchedulerError


@click.command("snapshot", epilog="Example:  kubesched snapshot cluster.jsonl.gz && kubesched replay cluster.jsonl.gz")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@cluster_options
@gates_option
def snapshot_command(file: Path, snapshot_file: Path | None, kubeconfig: str, context: str,
                     feature_gates: tuple[str, ...]) -> None:
    """Write the state of a cluster to FILE, gzipped if its name ends in .gz; the cluster is only read.

    The file is an inbox log that ends where everything has been listed: `replay` decides its pending pods, the same way every
    time.
    """
    cluster = read_cluster(snapshot_file, kubeconfig, context, config.Gates.parse(feature_gates))
    data = b"".join(cluster.lines())
    try:
        file.write_bytes(gzip.compress(data, 6, mtime=0) if file.suffix == ".gz" else data)
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"{len(cluster.objects)} objects written to {file}")
