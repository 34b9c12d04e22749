"""What `kubesched shadow` takes; the work is in `kubesched.cli.shadow`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import output_option, policy_options


@click.command(
    "shadow",
    short_help="Judge a live scheduler without writing anything.",
    epilog="Example:  kubesched shadow --configz https://127.0.0.1:10259 --token $TOKEN --snapshots differences --pods 1000",
)
@click.option(
    "--kubeconfig", type=click.Path(dir_okay=False), default="", help="The cluster; what kubectl would take if not given."
)
@click.option("--context", default="", help="The context of the kubeconfig; its current one if not given.")
@policy_options
@click.option(
    "--configz",
    default="",
    metavar="URL|FILE",
    help="Take the live scheduler's configuration from its secure port (https://HOST:10259), or from a file with its /configz.",
)
@click.option("--token", default="", help="With --configz URL: who we are, for its secure port.")
@click.option(
    "--certificate-authority",
    "ca_file",
    type=click.Path(exists=True, dir_okay=False),
    help="With --configz URL: whose certificates to trust.",
)
@click.option("--insecure-skip-tls-verify", "is_trusting", is_flag=True, help="With --configz URL: trust any certificate.")
@click.option(
    "--window",
    "window_seconds",
    type=click.FloatRange(0, 60),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How far before and after a placement to look for a state that explains it.",
)
@click.option(
    "--control",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="For this share of the placements judge a node drawn by lot as well, to see how many of these would pass as races.",
)
@click.option(
    "--snapshots",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep every difference here as a snapshot that `replay` decides again.",
)
@click.option(
    "--max-snapshots", type=click.IntRange(0), default=100, show_default=True, help="With --snapshots: how many at most."
)
@click.option("--pods", "most_pods", type=click.IntRange(1), help="Stop when so many placements have been judged.")
@click.option(
    "--duration", "seconds", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop after so long."
)
@click.option("--all", "shows_all", is_flag=True, help="Print a line for every placement, not only for differences.")
@click.option("--seed", type=int, default=0, show_default=True, help="How our own ties are broken.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Serve /metrics, /healthz, /readyz and /shadow.json here; 0 for any port."
)
@click.option("--bind-address", "host", default="127.0.0.1", show_default=True, help="With --port: the address to serve on.")
@click.option("--exit-code", "has_exit_code", is_flag=True, help="Exit with 1 if there was a difference.")
@output_option
@runs("kubesched.cli.shadow:run_shadow")
def command() -> None:
    """Follow a cluster beside its live scheduler, decide every pod that it places on the state that it saw, and tell where we
    would differ. Nothing is written: the rights to list and watch are enough (docs/how-to/shadow.md).

    Each placement is one of: same node; tie, another of our best nodes; sampled, the best of the part of the nodes that
    percentageOfNodesToScore lets a scheduler look at; worse, by how much and by which plugin's score; infeasible, and who
    refuses the node. What bindings, nominations and watches that overtake each other explain is a race and no difference.

    Stops at Ctrl-C and prints a summary.
    """
