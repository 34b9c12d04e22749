"""What `kubesched why` takes; the work is in `kubesched.cli.why`."""

from __future__ import annotations

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import cluster_options, namespace_option, policy_options, server_options


@click.command(
    "why",
    short_help="Explain why a pod waits, or is where it is.",
    epilog="Example:  kubesched why team-a/web-0 --kubeconfig ~/.kube/config",
)
@click.argument("what", metavar="[[NS/]POD|KIND/NAME]", default="")
@namespace_option
@cluster_options
@server_options
@policy_options
@click.option(
    "--top",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="How many nodes to rank; a running scheduler ranks five.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "patch"]),
    default="table",
    show_default=True,
    help="How to print; patch: each change that would help as a kubectl command.",
)
@runs("kubesched.cli.why:run_why")
def command() -> None:
    """Explain a pending pod, or a placed one: who refuses which nodes, what would help, what it would evict.

    Takes a pod (web-0, team-a/web-0, pod/web-0), a workload (deploy/web, sts/db, job/report, ...), or nothing: then all pods
    that wait are shown, grouped by what would help. -o patch prints each change that would help as a kubectl command.

    The pod is looked for in a cluster, which is only read, in a file that `snapshot` or `run --inbox-log` wrote, or in the
    memory of a running scheduler.
    """
