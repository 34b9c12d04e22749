"""What `kubesched plan` takes; the work is in `kubesched.cli.plan`."""

from __future__ import annotations

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import (
    cluster_options,
    manifest_options,
    namespace_option,
    node_groups_option,
    output_option,
    policy_options,
)


@click.command(
    "plan",
    short_help="Say where manifests would go.",
    epilog="Example:  kubesched plan -f deploy/ --snapshot cluster.jsonl.gz --fail-on-pending",
)
@manifest_options
@namespace_option
@click.option("--only", is_flag=True, help="Leave out other pods that wait in the cluster; they compete if not given.")
@click.option("--fail-on-pending", is_flag=True, help="Exit with 1 if a planned pod would wait.")
@node_groups_option
@click.option("--consolidate", "consolidates", is_flag=True, help="With --node-groups: list nodes that could go then.")
@cluster_options
@policy_options
@output_option
@runs("kubesched.cli.plan:run_plan")
def command() -> None:
    """Say where the pods of manifests would go if they were applied now, and which pods would be evicted for them.

    Takes Deployments, StatefulSets, ReplicaSets, ReplicationControllers, Jobs, CronJobs (one run), DaemonSets and Pods, and
    what they need: PriorityClasses, claims, volumes, nodes and so on. Nothing is written.

    With --node-groups it says which nodes to add so that the pods run, cheapest first; without -f, for those that wait.
    """
