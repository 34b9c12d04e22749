"""`kubesched replay`: make the engine decide again what an inbox log says that it saw."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.options import FILE_OR_STDIN, PolicyOptions, takes


@click.command("replay", epilog="Example:  kubesched replay inbox.jsonl --config other.yaml")
@click.argument("log", type=FILE_OR_STDIN)
@takes(policy=PolicyOptions)
@click.option("--seed", type=int, help="Seed, instead of the recorded one.")
def command(log: Path, policy: PolicyOptions, seed: int | None) -> None:
    """Play an inbox log (see `run --inbox-log`) or a snapshot to a new engine in virtual time. One JSON line a decision.

    The same log, configuration and seed print the same bytes.
    """
    import msgspec

    from kubesched.tools.simulation.replay import replay
    from kubesched.tools.snapshots.sources import named

    entries, chosen = policy.read_log(log)
    with named(log):
        lines = replay(entries, chosen.configuration, chosen.gates, seed, chosen.registry)
    for line in lines:
        click.echo(msgspec.json.encode(line).decode())
