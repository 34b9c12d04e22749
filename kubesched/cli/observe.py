"""`kubesched observe`: a cluster and what its scheduler decides, on a page, read-only."""

from __future__ import annotations

import click

from kubesched.cli.options import PolicyOptions, context_option, takes
from kubesched.cli.serve import DoorOptions
from kubesched.cli.shadow import ConfigzOptions
from kubesched.errors import SchedulerError


@click.command("observe", epilog="Example:  kubesched observe --insecure --kubeconfig ~/.kube/config")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    default="",
    help="Kubeconfig of the cluster. Default: the one that kubectl uses.",
)
@context_option
@takes(policy=PolicyOptions, live=ConfigzOptions, doors=DoorOptions)
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=10272,
    show_default=True,
    help="Port of the page. With --insecure, 0 picks a free one.",
)
@click.option(
    "--decision-records",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="How many decisions to keep on record.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the choice among equally good nodes.")
def command(
    kubeconfig: str,
    context: str,
    policy: PolicyOptions,
    live: ConfigzOptions,
    doors: DoorOptions,
    secure_port: int,
    decision_records: int,
    seed: int,
) -> None:
    """Show a cluster beside its own scheduler on a page: which pods wait and why, which plugins decided each placement, how
    full and how fragmented the cluster is over time, and how often kubesched decides the same. You can also try manifests and
    other configurations.

    It only reads: the rights to list and watch are enough (docs/how-to/observe.md).
    """
    import asyncio

    from kubesched import telemetry
    from kubesched.kube.client import kubectl_credentials
    from kubesched.tools.observe.run import ObserveSettings, observe
    from kubesched.tools.shadow.judging import Settings
    from kubesched.tools.snapshots.sources import Policy, live_release

    if live.configz and policy.config_file is not None:
        raise click.UsageError("--config and --configz both say how the live scheduler decides: give one")
    options = doors.read(secure_port)
    telemetry.configure(options.logs)
    source = live.read() or policy.config_file
    try:
        chosen = Policy.for_dry_run(source, policy.feature_gates, policy.plugins, live_release(kubeconfig, context))
    except SchedulerError as error:
        raise error if not live.configz else SchedulerError(f"{live.configz}: {error}") from error
    settings = ObserveSettings(
        kubectl_credentials(kubeconfig, context),
        Settings(chosen.configuration, chosen.gates, chosen.registry, seed),
        options,
        doors.is_open,
        decision_records,
    )
    asyncio.run(observe(settings, lambda text: click.echo(text, err=True)))
