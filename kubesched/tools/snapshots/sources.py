"""Where a command takes its cluster from, and how it is to be decided: what the shared options name, read.

A live cluster is read and never written; what a file may be is told in `kubesched.tools.plan.cluster_files`.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import click
import msgspec

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.client import connect, default_kubeconfig, kubeconfig_files, kubectl_credentials
from kubesched.kube.values import content_of, shown, yaml_document
from kubesched.scheduler import config
from kubesched.scheduler.config import Version
from kubesched.scheduler.engine import Engine, Ports, default_configuration, registry_with
from kubesched.scheduler.framework import Plugin, Registry, catalogue, find_plugins, not_enabled
from kubesched.server.options.server_release import release_of
from kubesched.tools.plan.cluster_files import inbox_log_in, read_cluster_file
from kubesched.tools.plan.manifests import Manifest, manifests_in, read_manifests
from kubesched.tools.simulation.replay import LogEntry
from kubesched.tools.snapshots.captured import Captured, capture

_READ_QPS = 200.0
_MOST_QUOTED = 200


@dataclass(frozen=True, slots=True)
class Policy:
    """How pods are decided."""

    configuration: config.Configuration
    gates: config.Gates
    registry: Registry
    plugins: tuple[type[Plugin], ...] = ()
    """Those that were brought along."""

    @classmethod
    def read(
        cls,
        config_file: Path | str | None,
        feature_gates: tuple[str, ...],
        plugins: tuple[str, ...],
        *,
        release: Version | None = None,
        warns: bool = True,
    ) -> Policy:
        """Read what the options of `PolicyOptions` name, as a release does; raise ConfigError if it cannot be used.
        Instead of the file its text may be given."""
        fitting = config.Gates.fitting
        gates = fitting(feature_gates) if release is None else config.Gates.parse(feature_gates, emulated=release)
        brought = [cls for asked in plugins for cls in find_plugins(asked)]
        registry = registry_with(brought, installed=config_file is not None)
        if config_file is None:
            configuration = default_configuration(gates, registry)
        else:
            with named(config_file) if isinstance(config_file, Path) else nullcontext():
                configuration = config.load(config_file, gates=gates, registry=catalogue(registry))
        if warns:
            warn_not_enabled(brought, configuration)
        return cls(configuration, gates, registry, tuple(brought))

    @classmethod
    def for_dry_run(
        cls,
        config_file: Path | str | None,
        feature_gates: tuple[str, ...],
        plugins: tuple[str, ...],
        release: Version | None = None,
    ) -> Policy:
        """Do the same, without extenders, and say so: asking them is not for who only looks."""
        policy = cls.read(config_file, feature_gates, plugins, release=release)
        if policy.configuration.extenders:
            click.echo("Warning: extenders are not asked", err=True)
            policy = replace(policy, configuration=replace(policy.configuration, extenders=()))
        return policy

    def engine(self, cluster: Captured, ports: Ports | None = None) -> Engine:
        """Return an engine that decides so and believes in a cluster."""
        return cluster.engine(self.configuration, self.gates, registry=self.registry, ports=ports)


@contextmanager
def named(file: Path) -> Iterator[None]:
    """Name a file in what is wrong with it, in one line: some errors quote all that they could not read."""
    try:
        yield
    except SchedulerError as error:
        first, *others = str(error).split("\n")
        most = _MOST_QUOTED + (len(shown(file)) if shown(file) in first else 0)
        text = f"{first[:most]} ..." if others or len(first) > most else first
        raise SchedulerError(text if shown(file) in text else f"{shown(file)}: {text}") from error


def warn_not_enabled(brought: Iterable[type[Plugin]], *configurations: config.Configuration) -> None:
    """Say so on stderr."""
    for text in not_enabled(brought, *configurations):
        click.echo(f"Warning: {text}", err=True)


def live_release(kubeconfig: str, context: str) -> Version | None:
    """Return the release of a live cluster, whose gates its scheduler has; None for who does not say."""
    try:
        return release_of(kubectl_credentials(kubeconfig, context))
    except SchedulerError:  # whoever connects says what is wrong
        return None


def open_cluster(
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    manifests: Sequence[Manifest] = (),
) -> tuple[Captured, Policy]:
    """Read the cluster that the options of `ClusterOptions` name, and how a dry run decides its pods: as its
    release does. The manifests are those that will be applied to it."""
    if snapshot_file is not None:
        cluster = read_snapshot(snapshot_file, kubeconfig, context, manifests)
        return cluster, Policy.for_dry_run(config_file, feature_gates, plugins, cluster.release)
    policy = Policy.for_dry_run(config_file, feature_gates, plugins, live_release(kubeconfig, context))
    return read_cluster(None, kubeconfig, context, policy.gates), policy


def read_cluster(snapshot_file: Path | None, kubeconfig: str, context: str, gates: config.Gates) -> Captured:
    """Read the cluster that the options of `ClusterOptions` name."""
    if snapshot_file is not None:
        return read_snapshot(snapshot_file, kubeconfig, context)
    if sys.stderr.isatty():
        click.echo("reading the cluster", err=True)
    return asyncio.run(_read_live(kubeconfig, context, gates))


def read_snapshot(file: Path, kubeconfig: str, context: str, manifests: Sequence[Manifest] = ()) -> Captured:
    """Read the cluster in a file, and say on stderr what kubectl wrote there; nothing may name a live cluster beside it."""
    if kubeconfig or context:
        raise click.UsageError("--snapshot reads a file: --kubeconfig and --context have no part in it")
    with named(file):
        return read_cluster_file(file, say_on_stderr, manifests)


def say_on_stderr(text: str) -> None:
    """Print a line where it is no part of the answer."""
    click.echo(text, err=True)


def read_log(
    file: Path, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...]
) -> tuple[list[bytes], Policy]:
    """Return the lines of an inbox log, or of one that says what another file holds, and how its pods are decided."""
    with named(file):
        lines = inbox_log_in(shown(file), content_of(file, may_be_cut_off=True), say_on_stderr)
    return lines, Policy.read(
        config_file, feature_gates, plugins, release=msgspec.json.decode(lines[0], type=LogEntry).emulated_release
    )


async def _read_live(kubeconfig: str, context: str, gates: config.Gates) -> Captured:
    source = kubectl_credentials(kubeconfig, context)
    connection = await connect(source, name="reader", qps=_READ_QPS, burst=int(2 * _READ_QPS))
    try:
        return await capture(connection, gates, time.time(), lambda text: click.echo(f"Warning: {text}", err=True))
    finally:
        await connection.close()


def namespace_of(given: str, snapshot_file: Path | None, kubeconfig: str, context: str) -> str:
    """Return the namespace for what names none."""
    return given or ("" if snapshot_file is not None else _context_namespace(kubeconfig, context)) or "default"


class _Context(msgspec.Struct):
    namespace: str = ""


class _NamedContext(msgspec.Struct):
    name: str = ""
    context: _Context = msgspec.field(default_factory=_Context)


class _Contexts(msgspec.Struct, rename="kebab"):
    """What of a kubeconfig says in which namespace one is."""

    current_context: str = ""
    contexts: tuple[_NamedContext, ...] = ()


def _context_namespace(kubeconfig: str, context: str) -> str:
    """Return the namespace of a kubeconfig's context, as kubectl takes it; empty if it has none, or cannot be read."""
    for file in kubeconfig_files(kubeconfig or default_kubeconfig()):
        try:
            document = msgspec.convert(yaml_document(file.read_bytes()) or {}, _Contexts)
        except (OSError, ConfigError, msgspec.ValidationError):
            continue  # whoever connects says what is wrong with it
        wanted = context or document.current_context
        for each in document.contexts:
            if each.name == wanted:
                return each.context.namespace
    return ""


def read_given(
    files: tuple[str, ...], more_files: tuple[str, ...], kustomization: str | None, recursive: bool
) -> list[Manifest]:
    """Read the manifests that the options of `ManifestOptions` name; raise SchedulerError if there is no object."""
    if bool(files) == bool(kustomization) or (more_files and not files):
        raise click.UsageError("either -f FILE or -k FOLDER is needed" if not files else "-f and -k do not go together")
    if kustomization:
        found = manifests_in(kustomization, _kustomized(kustomization))
    else:
        found = read_manifests((*files, *more_files), recursive=recursive)
    if not found:
        names = map(shown, (*files, *more_files))
        raise SchedulerError(f"{kustomization or ', '.join(names)}: no objects in it")
    return found


def _kustomized(folder: str) -> str:
    """Return the manifests that kubectl builds of a kustomization."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise SchedulerError(f"{folder}: kubectl, which builds kustomizations, is not in the PATH")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().removeprefix("error: ").splitlines()
        raise SchedulerError(f"{folder}: {said[0] if said else f'kubectl kustomize exits with {done.returncode}'}")
    return done.stdout
