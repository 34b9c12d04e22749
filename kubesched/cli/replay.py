"""`kubesched replay`: make the engine decide again what an inbox log says that it saw."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kubesched.cli.sources import Policy, policy_options, read_lines
from kubesched.simulator.replay import replay


@click.command("replay", epilog="Example:  kubesched replay inbox.jsonl --config other.yaml")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@policy_options
@click.option("--seed", type=int, help="Another seed than the recorded one.")
def replay_command(
    log: Path, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...], seed: int | None
) -> None:
    """Play an inbox log (see `run --inbox-log`) or a snapshot to a new engine in virtual time; print one JSON line a decision.

    The same log, configuration and seed print the same bytes.
    """
    policy = Policy.read(config_file, feature_gates, plugins)
    for line in replay(read_lines(log), policy.configuration, policy.gates, seed, policy.registry):
        click.echo(msgspec.json.encode(line).decode())
