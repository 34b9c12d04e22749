"""`kubesched snapshot`: everything that a scheduler reads of a cluster, in one file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import click

from kubesched.errors import SchedulerError
from kubesched.files import write_private
from kubesched.scheduler import config
from kubesched.tools.snapshots.anonymizing import hide_names
from kubesched.tools.snapshots.sources import read_cluster


def run_snapshot(
    file: Path,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    feature_gates: tuple[str, ...],
    hides_names: bool,
    names_file: Path | None,
) -> None:
    if names_file is not None and not hides_names:
        raise click.UsageError("--names goes with --hide-names")
    cluster = read_cluster(snapshot_file, kubeconfig, context, config.Gates.fitting(feature_gates))
    if hides_names:
        cluster, names = hide_names(cluster, lambda text: click.echo(f"Warning: {text}", err=True))
        if names_file is not None:
            _write(names_file, json.dumps(names, indent=1).encode() + b"\n")
    data = b"".join(cluster.without_applied_manifests().lines())
    _write(file, gzip.compress(data, 6, mtime=0) if file.suffix == ".gz" else data)
    click.echo(f"{len(cluster.objects)} objects written to {file}{', names hidden' if hides_names else ''}")


def _write(file: Path, data: bytes) -> None:
    try:
        write_private(file, data)
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from error
