"""`kubesched observe`: a cluster and what its scheduler decides, on a page, read-only."""

from __future__ import annotations

import click

from kubesched.cli.options import PolicyOptions, context_option, takes
from kubesched.cli.serve import DoorOptions
from kubesched.cli.shadow import ConfigzOptions
from kubesched.errors import SchedulerError


@click.command("observe", epilog="Example:  kubesched observe --insecure --kubeconfig ~/.kube/config")
@click.option(
    "--kubeconfig", type=click.Path(dir_okay=False), default="", help="The cluster; what kubectl would take if not given."
)
@context_option
@takes(policy=PolicyOptions, live=ConfigzOptions, doors=DoorOptions)
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=10272,
    show_default=True,
    help="Where the page is; 0 for any, with --insecure.",
)
@click.option(
    "--decision-records", type=click.IntRange(1), default=10_000, show_default=True, help="Keep so many decisions on record."
)
@click.option("--seed", type=int, default=0, show_default=True, help="How our own ties are broken.")
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
    """Follow a cluster beside its own scheduler and show it on the page: what waits and why, what every placement was decided
    by, what-ifs, how full and how fragmented the cluster is over time, and how often we would have decided alike.

    Nothing is written: the rights to list and watch are enough (docs/how-to/observe.md).
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
