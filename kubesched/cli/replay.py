"""`kubesched replay`: make the engine decide again what an inbox log says that it saw."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kubesched.tools.simulation.replay import replay
from kubesched.tools.snapshots.sources import Policy, named, read_lines, release_in


def run_replay(
    log: Path, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...], seed: int | None
) -> None:
    policy = Policy.read(config_file, feature_gates, plugins, release=release_in(log))
    with named(log):
        lines = replay(read_lines(log), policy.configuration, policy.gates, seed, policy.registry)
    for line in lines:
        click.echo(msgspec.json.encode(line).decode())
