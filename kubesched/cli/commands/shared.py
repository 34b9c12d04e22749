"""Options that several commands take: which cluster, how it is to be decided, how to print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Decide with this KubeSchedulerConfiguration instead of the default one.",
)
gates_option = click.option(
    "--feature-gates", "feature_gates", multiple=True, metavar="A=true,B=false", help="Gates to switch, as for `run`."
)
plugin_option = click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE.py:Class", help="A plugin that --config names."
)
output_option = click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True, help="How to print."
)
namespace_option = click.option(
    "-n", "--namespace", default="", help="For what names none; the kubeconfig's namespace, or default, if not given."
)


node_groups_option = click.option(
    "--node-groups",
    "groups_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Groups of nodes that may grow (docs/how-to/node-groups.md), or Karpenter's NodePools with instanceTypes.",
)


def policy_options(command: F) -> F:
    """Add the options that say how pods are decided."""
    return config_option(gates_option(plugin_option(command)))


def manifest_options(command: F) -> F:
    """Add the options that say which manifests are looked at."""
    for option in (
        click.argument("more_files", nargs=-1, metavar="[FILE]..."),
        click.option("-R", "--recursive", is_flag=True, help="Look into the folders of folders too."),
        click.option(
            "-k",
            "--kustomize",
            "kustomization",
            type=click.Path(exists=True, file_okay=False),
            help="A folder with a kustomization.yaml, to be built by kubectl.",
        ),
        click.option(
            "-f",
            "--filename",
            "files",
            multiple=True,
            metavar="FILE",
            help="A file of manifests, a folder of such files, or - for the standard input. More may follow.",
        ),
    ):
        command = option(command)
    return command


def cluster_options(command: F) -> F:
    """Add the options that say which cluster is looked at."""
    for option in (
        click.option("--context", default="", help="The context of the kubeconfig; its current one if not given."),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False),
            default="",
            help="The cluster to read; what kubectl would take if not given.",
        ),
        click.option(
            "--snapshot",
            "snapshot_file",
            type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
            help="Read a file instead of a cluster, or - for the standard input: what `kubectl get nodes,pods -A -o json` or "
            "`kubesched snapshot` wrote, an inbox log, or manifests.",
        ),
    ):
        command = option(command)
    return command


def server_options(command: F) -> F:
    """Add the options that say which running scheduler is asked."""
    for option in (
        click.option("--insecure-skip-tls-verify", "is_trusting", is_flag=True, help="With --server: trust any certificate."),
        click.option(
            "--certificate-authority",
            "ca_file",
            type=click.Path(exists=True, dir_okay=False),
            help="With --server: whose certificates to trust.",
        ),
        click.option("--token", default="", help="With --server: who we are, for its secure port."),
        click.option(
            "--server",
            default="",
            metavar="URL",
            help="Ask a running kubesched: its secure port (https://HOST:10259) or a demo's page.",
        ),
    ):
        command = option(command)
    return command
