"""`kubesched replay`: make the engine decide again what an inbox log says that it saw."""

from __future__ import annotations

import gzip
from pathlib import Path

import click
import msgspec

from kubesched import config
from kubesched.engine.assembly import registry_with
from kubesched.framework.building import catalogue
from kubesched.simulator.replay import replay


@click.command("replay", epilog="Example:  kubesched replay inbox.jsonl --config other.yaml")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Decide with this KubeSchedulerConfiguration instead of the default one.")
@click.option("--seed", type=int, help="Another seed than the recorded one.")
def replay_command(log: Path, config_file: Path | None, seed: int | None) -> None:
    """Play an inbox log (see `run --inbox-log`) to a new engine in virtual time; print one JSON line a decision.

    The same log, configuration and seed print the same bytes.
    """
    gates = config.Gates.defaults()
    configuration = None
    if config_file is not None:
        configuration = config.load(config_file, gates=gates, registry=catalogue(registry_with()))
    data = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
    for line in replay(data.splitlines(), configuration, gates, seed):
        click.echo(msgspec.json.encode(line).decode())
