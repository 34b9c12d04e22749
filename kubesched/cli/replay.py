"""`kubesched replay`: make the engine decide again what an inbox log says that it saw."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kubesched.tools.simulation.replay import replay
from kubesched.tools.snapshots.sources import named, read_log


def run_replay(
    log: Path, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...], seed: int | None
) -> None:
    entries, policy = read_log(log, config_file, feature_gates, plugins)
    with named(log):
        lines = replay(entries, policy.configuration, policy.gates, seed, policy.registry)
    for line in lines:
        click.echo(msgspec.json.encode(line).decode())
