"""`kubesched apiserver`: the embedded API server alone, for kubectl, tests and other schedulers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shlex
import signal
import tempfile
from pathlib import Path

import click

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.controllers import FakeCluster
from kubesched.embedded.http.access import User, read_tokens
from kubesched.errors import AlreadyExists
from kubesched.http import raise_file_limit
from kubesched.kube.values.well_known import HOSTNAME, ZONE


def run_apiserver(
    bind_address: str,
    port: int,
    https: bool,
    secure_port: int,
    data_dir: Path | None,
    fsync: str,
    token_file: Path | None,
    world: bool,
    nodes: int,
    release: str,
    kubeconfig_out: Path | None,
) -> None:
    raise_file_limit()
    tokens = read_tokens(token_file) if token_file is not None else None
    if tokens is not None and not https:  # clients send a token over TLS alone, and would be strangers without a word why
        https, secure_port = True, port
    with tempfile.TemporaryDirectory(prefix="kubesched-") as scratch:
        home = data_dir or Path(scratch)
        store = ObjectStore(data_dir=data_dir, fsync=fsync, release=int(release.removeprefix("1.")))
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
        around = FakeCluster(store) if world else None
        asyncio.run(_serve(server, around, kubeconfig_out or home / "kubeconfig", _an_admin_token(tokens)))


async def _serve(server: ApiServer, world: FakeCluster | None, kubeconfig: Path, token: str) -> None:
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
