"""`kubesched apiserver`: the embedded API server alone, for kubectl, tests and other schedulers."""

from __future__ import annotations

import contextlib
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.options import FOLDER, NEW_FILE, Options, option, takes, with_default
from kubesched.errors import AlreadyExists
from kubesched.kube.values import HOSTNAME, ZONE

if TYPE_CHECKING:
    from kubesched.embedded import ApiServer, ObjectStore
    from kubesched.embedded.controllers import FakeCluster
    from kubesched.embedded.http.access import User


class ServingOptions(Options):
    """Where the API is served, and to whom."""

    bind_address: str = option("--bind-address", default="127.0.0.1", show_default=True, help="The address to listen on.")
    port: int = with_default("--port", click.IntRange(0, 65535), 8080, "HTTP; 0 picks a free one.")
    https: bool = option("--https", is_flag=True, help="Serve HTTPS on --secure-port instead of HTTP.")
    secure_port: int = with_default("--secure-port", click.IntRange(0, 65535), 6443, "The port of --https.")
    data_dir: Path | None = option("--data-dir", type=FOLDER, help="Keep the objects here across restarts.")
    fsync: str = with_default(
        "--fsync",
        click.Choice(["always", "interval", "never"]),
        "interval",
        "When the data directory is forced to disk. A killed process loses nothing under any of them; a machine "
        "that loses power loses at most a second under interval and nothing under always.",
    )
    token_file: Path | None = option(
        "--token-file",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help='Lines of token,user,uid,"group,group". Without it, everybody is an administrator. Clients send tokens over TLS '
        "alone, so --port speaks HTTPS then.",
    )


class ClusterOptions(Options):
    """What the cluster is made of."""

    world: bool = option(
        "--world/--no-world",
        default=True,
        show_default=True,
        help="Run fake kubelets and controllers, so that bound pods run and workloads make pods.",
    )
    nodes: int = with_default("--nodes", click.IntRange(0), 0, "Create so many nodes at the start.")
    release: str = with_default(
        "--release",
        click.Choice(["1.36", "1.37"]),
        "1.37",
        "The release of Kubernetes to stand for: /version says it, and its API versions are served.",
    )


@click.command("apiserver", epilog="Example:  kubesched apiserver --port 8080 --data-dir ./cluster")
@takes(serving=ServingOptions, cluster=ClusterOptions)
@click.option("--kubeconfig-out", type=NEW_FILE, help="Where to write the kubeconfig.")
def command(serving: ServingOptions, cluster: ClusterOptions, kubeconfig_out: Path | None) -> None:
    """Serve the Kubernetes API from this process, until interrupted.

    kubectl, client libraries and kube-scheduler take it for a cluster. Prints the path of a kubeconfig to use.
    """
    import asyncio
    import gc
    import tempfile

    from kubesched.embedded import ApiServer, ObjectStore
    from kubesched.embedded.controllers import FakeCluster
    from kubesched.embedded.http.access import read_tokens
    from kubesched.http import raise_file_limit

    raise_file_limit()
    tokens = read_tokens(serving.token_file) if serving.token_file is not None else None
    https, secure_port = serving.https, serving.secure_port
    if tokens is not None and not https:  # clients send a token over TLS alone, and would be strangers without a word why
        https, secure_port = True, serving.port
    with tempfile.TemporaryDirectory(prefix="kubesched-") as scratch:
        home = serving.data_dir or Path(scratch)
        store = ObjectStore(data_dir=serving.data_dir, fsync=serving.fsync, release=int(cluster.release.removeprefix("1.")))
        for number in range(cluster.nodes):
            _add_node(store, number)
        # What was loaded stays; walking it again and again would cost more than it could ever free.
        gc.collect()
        gc.freeze()
        server = ApiServer(
            store,
            host=serving.bind_address,
            port=None if https else serving.port,
            secure_port=secure_port if https else None,
            certificate_dir=home / "pki",
            tokens=tokens,
        )
        around = FakeCluster(store) if cluster.world else None
        asyncio.run(_serve(server, around, kubeconfig_out or home / "kubeconfig", _an_admin_token(tokens)))


async def _serve(server: ApiServer, world: FakeCluster | None, kubeconfig: Path, token: str) -> None:
    import asyncio

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stopped.set)
    async with server:
        path = server.write_kubeconfig(kubeconfig, token).absolute()
        click.echo(f"Serving the Kubernetes API at {server.url}")
        click.echo(f"Kubeconfig: {path}")
        click.echo(f"Try:  kubectl --kubeconfig {shlex.quote(str(path))} get all --all-namespaces")
        if world is not None:
            world.start()
        await stopped.wait()
        if world is not None:
            world.stop()
    click.echo("Stopped.")


def _add_node(store: ObjectStore, number: int) -> None:
    """Create a node of the size that kube-scheduler's benchmarks use; one that is there already stays as it is."""
    name = f"node-{number}"
    labels = {HOSTNAME: name, ZONE: f"zone-{number % 10}"}
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    with contextlib.suppress(AlreadyExists):
        store.create("nodes", {"metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}})


def _an_admin_token(tokens: dict[str, User] | None) -> str:
    """Return the token to put into the kubeconfig: an administrator's if there is one."""
    tokens = tokens or {}
    return next((token for token, user in tokens.items() if "system:masters" in user.groups), next(iter(tokens), ""))
