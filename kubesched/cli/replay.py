"""`kubesched replay`: make the engine decide again what an inbox log says that it saw."""

from __future__ import annotations

import zlib
from pathlib import Path

import click
import msgspec

from kubesched import config
from kubesched.engine.assembly import registry_with
from kubesched.errors import SchedulerError
from kubesched.framework.building import catalogue
from kubesched.framework.finding import find_plugins
from kubesched.simulator.replay import replay


@click.command("replay", epilog="Example:  kubesched replay inbox.jsonl --config other.yaml")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Decide with this KubeSchedulerConfiguration instead of the default one.")
@click.option("--feature-gates", "feature_gates", multiple=True, metavar="A=true,B=false",
              help="Gates to switch, as for `run`.")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py:Class", help="A plugin that --config names.")
@click.option("--seed", type=int, help="Another seed than the recorded one.")
def replay_command(log: Path, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...],
                   seed: int | None) -> None:
    """Play an inbox log (see `run --inbox-log`) to a new engine in virtual time; print one JSON line a decision.

    The same log, configuration and seed print the same bytes.
    """
    gates = config.Gates.parse(feature_gates)
    registry = registry_with([cls for asked in plugins for cls in find_plugins(asked)])
    configuration = None
    if config_file is not None:
        configuration = config.load(config_file, gates=gates, registry=catalogue(registry))
    for line in replay(_read(log), configuration, gates, seed, registry):
        click.echo(msgspec.json.encode(line).decode())


def _read(log: Path) -> list[bytes]:
    """Return the lines of a log, also of one whose writer was killed: what is whole is used."""
    data = log.read_bytes()
    if log.suffix == ".gz":
        whole = zlib.decompressobj(wbits=31)
        try:
            data = whole.decompress(data)
        except zlib.error as error:
            raise SchedulerError(f"{log}: not compressed with gzip: {error}") from error
    lines = data.splitlines()
    return lines if data.endswith(b"\n") else lines[:-1]
