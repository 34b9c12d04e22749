"""`kubesched serve`: the solver as a service, for whatever asks whether, where and what if."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.options import FILE, Options, PolicyOptions, context_option, option, shared, takes
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.server.options.options import Options as PortOptions

MEBI = 1 << 20
BEST_OPTIONS = "/grpcplugin.Expander/BestOptions"
NO_GRPC = "gRPC needs grpcio, which is not installed: pip install 'kubesched[serve]', or serve HTTP alone with --grpc-port=off"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class DoorOptions(Options):
    """Where a port is, and who may ask; the flags of `run`."""

    bind_address: str = option(
        "--bind-address", default="0.0.0.0", show_default=True, help="Address to serve on. With --insecure: 127.0.0.1."
    )
    cert_file: str = option("--tls-cert-file", default="", help="Certificate. Default: a self-signed one.")
    key_file: str = option("--tls-private-key-file", default="", help="Key of the certificate.")
    client_ca_file: str = option(
        "--client-ca-file", default="", help="Certificate authorities of client certificates (HTTP only)."
    )
    authentication: str = option(
        "--authentication-kubeconfig",
        default="",
        help="Kubeconfig of the API server that checks tokens. Default: the cluster that this runs in.",
    )
    authorization: str = option(
        "--authorization-kubeconfig",
        default="",
        help="Kubeconfig of the API server that checks what callers may do. Default: the cluster that this runs in.",
    )
    allowed: str = option(
        "--authorization-always-allow-paths",
        default="/healthz,/readyz,/livez",
        show_default=True,
        help="Paths that need no authorization.",
    )
    tolerates: bool = option(
        "--authentication-tolerate-lookup-failure/--no-authentication-tolerate-lookup-failure",
        default=True,
        help="Start also if the cluster does not name the authorities of client certificates.",
    )
    is_open: bool = option("--insecure", is_flag=True, help="Serve without TLS and without login, to this machine only.")

    def read(self, port: int, more_allowed: tuple[str, ...] = ()) -> PortOptions:
        """Return the flags as `run` reads them; raise SchedulerError for what it refuses."""
        from kubesched.server.options.flagset import UsageError
        from kubesched.server.options.options import Options, read_options

        host = self.bind_address
        if self.is_open and host == "0.0.0.0":
            host = "127.0.0.1"
        if self.is_open and host not in _LOOPBACK:
            raise click.UsageError(f"--insecure is for a loopback address, and --bind-address is {host}")
        words = [
            f"--bind-address={'127.0.0.1' if host == 'localhost' else host}",
            f"--secure-port={port}",
            f"--tls-cert-file={self.cert_file}",
            f"--tls-private-key-file={self.key_file}",
            f"--client-ca-file={self.client_ca_file}",
            f"--authentication-kubeconfig={self.authentication}",
            f"--authorization-kubeconfig={self.authorization}",
            f"--authorization-always-allow-paths={','.join(filter(None, (self.allowed, *more_allowed)))}",
            f"--authentication-tolerate-lookup-failure={'true' if self.tolerates else 'false'}",
            "--leader-elect=false",
        ]
        try:
            found = read_options(words)
        except UsageError as error:
            raise click.UsageError(str(error)) from error
        assert isinstance(found, Options)
        return found


class LimitOptions(Options):
    """What callers may take."""

    most_seconds: float = option(
        "--most-seconds",
        type=click.FloatRange(0.1, 600),
        default=30.0,
        show_default=True,
        help="Longest time that a question may take, in seconds.",
    )
    most_waiting: int = option(
        "--most-waiting",
        type=click.IntRange(1),
        default=64,
        show_default=True,
        help="How many questions of one caller may wait.",
    )
    forks: int = option(
        "--forks",
        type=click.IntRange(1, 256),
        default=8,
        show_default=True,
        help="How many longer questions run at the same time.",
    )
    forks_each: int = option(
        "--forks-each", type=click.IntRange(1, 256), default=2, show_default=True, help="How many of them for one caller."
    )
    fork_mebibytes: int = option(
        "--fork-memory",
        type=click.IntRange(16),
        default=1024,
        show_default=True,
        metavar="MIB",
        help="Most memory of one longer question.",
    )
    sessions: int = option(
        "--sessions", type=click.IntRange(0), default=16, show_default=True, help="How many sessions all callers have."
    )
    sessions_each: int = option(
        "--sessions-each", type=click.IntRange(0), default=4, show_default=True, help="How many of them for one caller."
    )
    session_mebibytes: int = option(
        "--session-memory",
        type=click.IntRange(16),
        default=1024,
        show_default=True,
        metavar="MIB",
        help="Most memory of a session.",
    )
    session_idle: float = option(
        "--session-idle",
        type=click.FloatRange(1),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="End a session that gets no call for so long.",
    )


class ServeOptions(Options):
    """What is followed, and what is served where."""

    kubeconfig: str = option(
        "--kubeconfig",
        type=click.Path(dir_okay=False),
        default="",
        help="Kubeconfig of the cluster. Default: the one that kubectl uses.",
    )
    context: str = shared(context_option)
    no_cluster: bool = option("--no-cluster", is_flag=True, help="Watch no cluster: callers send their own, as sessions.")
    secure_port: int = option(
        "--secure-port",
        type=click.IntRange(0, 65535),
        default=10270,
        show_default=True,
        help="Port of HTTP. With --insecure, 0 picks a free one.",
    )
    grpc_port: str = option(
        "--grpc-port",
        default="10271",
        show_default=True,
        metavar="PORT",
        help="Port of gRPC. 0 picks a free one; off serves HTTP alone.",
    )
    expander: bool = option(
        "--expander", is_flag=True, help="Also serve Cluster Autoscaler's expander calls. They need no credentials."
    )
    groups_file: Path | None = option(
        "--node-groups", type=FILE, help="With --expander: file with the prices of nodes (docs/how-to/node-groups.md)."
    )
    kueue: bool = option(
        "--kueue",
        is_flag=True,
        help="Answer Kueue's AdmissionChecks of controller kubesched.io/fits. This writes to the cluster.",
    )

    def port(self) -> int | None:
        """Return the port of gRPC; None for none. Raise what is wrong with the options together."""
        given = self.grpc_port
        if given != "off" and (not given.isdecimal() or int(given) > 65535):
            raise click.BadParameter(f"{given!r} is no port, and not off", param_hint="--grpc-port")
        if self.expander and (given == "off" or self.no_cluster):
            raise click.UsageError("--expander needs gRPC and a cluster to follow")
        if self.kueue and self.no_cluster:
            raise click.UsageError("--kueue needs a cluster to follow")
        if self.groups_file is not None and not self.expander:
            raise click.UsageError("--node-groups says what nodes cost to --expander")
        return None if given == "off" else int(given)


@click.command(
    "serve",
    epilog="Example:  kubesched serve --insecure --kubeconfig ~/.kube/config & "
    "curl -d @question.json -H 'Content-Type: application/json' localhost:10270/v1/fits",
)
@takes(asked=ServeOptions, policy=PolicyOptions, doors=DoorOptions, limits=LimitOptions)
def command(asked: ServeOptions, policy: PolicyOptions, doors: DoorOptions, limits: LimitOptions) -> None:
    """Answer over HTTP and gRPC: does a pod fit, where would pods go, what if nodes are added or drained, which nodes are
    cheapest. Works beside any scheduler (docs/how-to/serve.md).

    It watches the cluster and does not write to it, except for --kueue.

    The API server authenticates and authorizes callers, as on the scheduler's own port.
    """
    from importlib.util import find_spec

    port = asked.port()
    if port is not None and find_spec("grpc") is None:
        raise SchedulerError(NO_GRPC)

    from kubesched import telemetry
    from kubesched.kube.client import kubectl_credentials
    from kubesched.tools.node_groups.reading import read_node_groups
    from kubesched.tools.serve.run import ServeSettings, nursery_for, run
    from kubesched.tools.serve.service import Limits
    from kubesched.tools.snapshots.sources import Policy, live_release

    options = doors.read(asked.secure_port, (BEST_OPTIONS,) if asked.expander else ())
    telemetry.configure(options.logs)
    source = None if asked.no_cluster else kubectl_credentials(asked.kubeconfig, asked.context)
    release = None if asked.no_cluster else live_release(asked.kubeconfig, asked.context)
    settings = ServeSettings(
        Policy.for_dry_run(policy.config_file, policy.feature_gates, policy.plugins, release),
        policy.feature_gates,
        source,
        options,
        doors.is_open,
        port or 0,
        Limits(
            most_seconds=limits.most_seconds,
            most_waiting=limits.most_waiting,
            forks=limits.forks,
            forks_each=limits.forks_each,
            fork_bytes=limits.fork_mebibytes * MEBI,
            sessions=limits.sessions,
            sessions_each=limits.sessions_each,
            session_bytes=limits.session_mebibytes * MEBI,
            session_idle_seconds=limits.session_idle,
        ),
        asked.kueue,
        options.reported_version,
    )
    groups = (read_node_groups(asked.groups_file) if asked.groups_file is not None else ()) if asked.expander else None
    nursery = nursery_for(settings)
    open_grpc = None
    if port is not None:
        from functools import partial

        from kubesched.tools.serve.grpc_face import GrpcServer

        open_grpc = partial(GrpcServer, node_groups=groups)
    run(settings, nursery, open_grpc, lambda text: click.echo(text, err=True))
