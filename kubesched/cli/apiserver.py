"""`kubesched apiserver`: the embedded API server alone, for kubectl, tests and other schedulers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import shlex
import signal
import tempfile
from pathlib import Path

import click

from kubesched.apiserver import ApiServer, Store
from kubesched.apiserver.access import User, read_tokens
from kubesched.apiserver.journal import SYNC_POLICIES
from kubesched.apiserver.world import World
from kubesched.errors import AlreadyExists


@click.command("apiserver", epilog="Example:  kubesched apiserver --port 8080 --data-dir ./cluster")
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="HTTP; 0 picks a free one.")
@click.option("--https", is_flag=True, help="Serve HTTPS on --secure-port instead of HTTP.")
@click.option("--secure-port", type=click.IntRange(0, 65535), default=6443, show_default=True, help="The port of --https.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep the objects here across restarts.")
@click.option(
    "--fsync",
    type=click.Choice(SYNC_POLICIES),
    default="interval",
    show_default=True,
    help="When the data directory is forced to disk. A killed process loses nothing under any of them; a machine "
    "that loses power loses at most a second under interval and nothing under always.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help='Lines of token,user,uid,"group,group". Without it, everybody is an administrator.',
)
@click.option(
    "--world/--no-world",
    default=True,
    show_default=True,
    help="Run fake kubelets and controllers, so that bound pods run and workloads make pods.",
)
@click.option("--nodes", type=click.IntRange(0), default=0, show_default=True, help="Create so many nodes at the start.")
@click.option("--kubeconfig-out", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the kubeconfig.")
def apiserver_command(
    bind_address: str,
    port: int,
    https: bool,
    secure_port: int,
    data_dir: Path | None,
    fsync: str,
    token_file: Path | None,
    world: bool,
    nodes: int,
    kubeconfig_out: Path | None,
) -> None:
    """Serve the Kubernetes API from this process, until interrupted.

    kubectl, client libraries and kube-scheduler take it for a cluster. Prints the path of a kubeconfig to use.
    """
    _allow_many_connections()
    tokens = read_tokens(token_file) if token_file is not None else None
    with tempfile.TemporaryDirectory(prefix="kubesched-") as scratch:
        home = data_dir or Path(scratch)
        store = Store(data_dir=data_dir, fsync=fsync)
        for number in range(nodes):
            _add_node(store, number)
        # What was loaded stays; walking it again and again would cost more than it could ever free.
        gc.collect()
        gc.freeze()
        server = ApiServer(
            store,
            host=bind_address,
            port=None if https else port,
            secure_port=secure_port if https else None,
            certificate_dir=home / "pki",
            tokens=tokens,
        )
        around = World(store) if world else None
        asyncio.run(_serve(server, around, kubeconfig_out or home / "kubeconfig", _an_admin_token(tokens)))


async def _serve(server: ApiServer, world: World | None, kubeconfig: Path, token: str) -> None:
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


def _add_node(store: Store, number: int) -> None:
    """Create a node of the size that kube-scheduler's benchmarks use; one that is there already stays as it is."""
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 10}"}
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    with contextlib.suppress(AlreadyExists):
        store.create("nodes", {"metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}})


def _an_admin_token(tokens: dict[str, User] | None) -> str:
    """Return the token to put into the kubeconfig: an administrator's if there is one."""
    tokens = tokens or {}
    return next((token for token, user in tokens.items() if "system:masters" in user.groups), next(iter(tokens), ""))


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
