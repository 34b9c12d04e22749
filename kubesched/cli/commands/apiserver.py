"""What `kubesched apiserver` takes; the work is in `kubesched.cli.apiserver`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs


@click.command(
    "apiserver",
    short_help="Serve the Kubernetes API from this process.",
    epilog="Example:  kubesched apiserver --port 8080 --data-dir ./cluster",
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="HTTP; 0 picks a free one.")
@click.option("--https", is_flag=True, help="Serve HTTPS on --secure-port instead of HTTP.")
@click.option("--secure-port", type=click.IntRange(0, 65535), default=6443, show_default=True, help="The port of --https.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep the objects here across restarts.")
@click.option(
    "--fsync",
    type=click.Choice(["always", "interval", "never"]),
    default="interval",
    show_default=True,
    help="When the data directory is forced to disk. A killed process loses nothing under any of them; a machine "
    "that loses power loses at most a second under interval and nothing under always.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help='Lines of token,user,uid,"group,group". Without it, everybody is an administrator. Clients send tokens over TLS '
    "alone, so --port speaks HTTPS then.",
)
@click.option(
    "--world/--no-world",
    default=True,
    show_default=True,
    help="Run fake kubelets and controllers, so that bound pods run and workloads make pods.",
)
@click.option("--nodes", type=click.IntRange(0), default=0, show_default=True, help="Create so many nodes at the start.")
@click.option(
    "--release",
    type=click.Choice(["1.36", "1.37"]),
    default="1.37",
    show_default=True,
    help="The release of Kubernetes to stand for: /version says it, and its API versions are served.",
)
@click.option("--kubeconfig-out", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the kubeconfig.")
@runs("kubesched.cli.apiserver:run_apiserver")
def command() -> None:
    """Serve the Kubernetes API from this process, until interrupted.

    kubectl, client libraries and kube-scheduler take it for a cluster. Prints the path of a kubeconfig to use.
    """
