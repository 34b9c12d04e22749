"""Where a command takes its cluster from, and how it is to be decided: what the shared options name, read.

A live cluster is read and never written; a file is a snapshot or an inbox log, plain or gzipped, or manifests in YAML: the
cluster then consists of these, for a question that a few nodes and pods can ask.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import click
import msgspec

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.client.connection import connect
from kubesched.kube.client.credentials import default_kubeconfig, kubeconfig_files, kubectl_credentials
from kubesched.kube.values.bounds import lines_of, yaml_document
from kubesched.scheduler import config
from kubesched.scheduler.config.releases.versions import Version
from kubesched.scheduler.engine.assembly import Ports, default_configuration, registry_with
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.scheduler.framework.runtime.finding import find_plugins
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.server.options.server_release import release_of
from kubesched.tools.plan.applying import apply_manifests
from kubesched.tools.plan.manifests import Manifest, manifests_in, read_manifests
from kubesched.tools.snapshots.captured import Captured, capture, read_captured, release_told

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
        text = f"{first[:_MOST_QUOTED]} ..." if others or len(first) > _MOST_QUOTED else first
        raise SchedulerError(text if str(file) in text else f"{file}: {text}") from error


def not_enabled(brought: Iterable[type[Plugin]], *configurations: config.Configuration) -> list[str]:
    """Return a sentence for each plugin that was brought along and that no profile runs."""
    profiles = [profile for configuration in configurations for profile in configuration.profiles]
    enabled = {name for profile in profiles for name in profile.plugin_names}
    return [
        f"plugin {cls.name} does nothing: no profile enables it (profiles[].plugins.multiPoint.enabled in --config)"
        for cls in brought
        if cls.name not in enabled
    ]


def warn_not_enabled(brought: Iterable[type[Plugin]], *configurations: config.Configuration) -> None:
    """Say so on stderr."""
    for text in not_enabled(brought, *configurations):
        click.echo(f"Warning: {text}", err=True)


def live_release(snapshot_file: Path | None, kubeconfig: str, context: str) -> Version | None:
    """Return the release of the cluster that the options of `shared.cluster_options` name, whose gates its scheduler has; None
    for who does not say."""
    if snapshot_file is not None:
        return release_in(snapshot_file)
    try:
        return release_of(kubectl_credentials(kubeconfig, context))
    except SchedulerError:  # whoever connects says what is wrong
        return None


def release_in(file: Path) -> Version | None:
    """Return the release that a snapshot or inbox log is of; None if it does not say, or is not one."""
    if file.suffix in (".yaml", ".yml"):
        return None
    try:
        first = msgspec.json.decode(next(read_lines(file), b"{}"))
    except (SchedulerError, msgspec.DecodeError):  # whoever reads it says what is wrong
        return None
    return release_told(first) if isinstance(first, dict) else None


def read_cluster(snapshot_file: Path | None, kubeconfig: str, context: str, gates: config.Gates) -> Captured:
    """Read the cluster that the options of `shared.cluster_options` name."""
    if snapshot_file is not None:
        if kubeconfig or context:
            raise click.UsageError("--snapshot reads a file: --kubeconfig and --context have no part in it")
        with named(snapshot_file):
            if snapshot_file.suffix in (".yaml", ".yml"):
                return apply_manifests(Captured(0.0), read_manifests([snapshot_file])).cluster
            return read_captured(read_lines(snapshot_file))
    return asyncio.run(_read_live(kubeconfig, context, gates))


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
        named = ("standard input" if each == "-" else each for each in (*files, *more_files))
        raise SchedulerError(f"{kustomization or ', '.join(named)}: no objects in it")
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


def read_lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a log, also of one whose writer was killed: what is whole is used."""
    n_lines = 0
    try:
        for line in lines_of(file, may_be_cut_off=True):
            n_lines += 1
            yield line
        if not n_lines and file.stat().st_size:
            raise SchedulerError(f"{file}: not one whole line in it: this is no log")
    except OSError as error:
        raise SchedulerError(f"{file}: {error.strerror or error}") from error
