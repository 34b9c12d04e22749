"""Where a command takes its cluster from, and how it is to be decided: what the shared options name, read.

A live cluster is read and never written; a file is a snapshot or an inbox log, plain or gzipped.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import click
import yaml

from kubesched import config
from kubesched.client.connection import connect
from kubesched.client.credentials import default_kubeconfig, find_credentials
from kubesched.engine.assembly import Ports, default_configuration, registry_with
from kubesched.engine.loop import Engine
from kubesched.errors import SchedulerError
from kubesched.framework.building import catalogue
from kubesched.framework.finding import find_plugins
from kubesched.framework.registry import Registry
from kubesched.simulator.captured import Captured, capture, read_captured

_READ_QPS = 200.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How pods are decided."""

    configuration: config.Configuration
    gates: config.Gates
    registry: Registry

    @classmethod
    def read(cls, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...]) -> Policy:
        """Read what the options of `shared.policy_options` name; raise ConfigError if it cannot be used."""
        gates = config.Gates.parse(feature_gates)
        registry = registry_with([cls for asked in plugins for cls in find_plugins(asked)])
        if config_file is None:
            return cls(default_configuration(gates, registry), gates, registry)
        return cls(config.load(config_file, gates=gates, registry=catalogue(registry)), gates, registry)

    @classmethod
    def for_dry_run(cls, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...]) -> Policy:
        """Do the same, without extenders, and say so: asking them is not for who only looks."""
        policy = cls.read(config_file, feature_gates, plugins)
        if policy.configuration.extenders:
            click.echo("Warning: extenders are not asked", err=True)
            policy = replace(policy, configuration=replace(policy.configuration, extenders=()))
        return policy

    def engine(self, cluster: Captured, ports: Ports | None = None) -> Engine:
        """Return an engine that decides so and believes in a cluster."""
        return cluster.engine(self.configuration, self.gates, registry=self.registry, ports=ports)


def read_cluster(snapshot_file: Path | None, kubeconfig: str, context: str, gates: config.Gates) -> Captured:
    """Read the cluster that the options of `shared.cluster_options` name."""
    if snapshot_file is not None:
        if kubeconfig or context:
            raise click.UsageError("--snapshot reads a file: --kubeconfig and --context have no part in it")
        return read_captured(read_lines(snapshot_file))
    return asyncio.run(_read_live(kubeconfig, context, gates))


async def _read_live(kubeconfig: str, context: str, gates: config.Gates) -> Captured:
    source = find_credentials(kubeconfig or default_kubeconfig(), context=context or None)
    connection = await connect(source, name="reader", qps=_READ_QPS, burst=int(2 * _READ_QPS))
    try:
        return await capture(connection, gates, time.time(), lambda text: click.echo(f"Warning: {text}", err=True))
    finally:
        await connection.close()


def namespace_of(given: str, snapshot_file: Path | None, kubeconfig: str, context: str) -> str:
    """Return the namespace for what names none."""
    return given or ("" if snapshot_file is not None else _context_namespace(kubeconfig, context)) or "default"


def _context_namespace(kubeconfig: str, context: str) -> str:
    """Return the namespace of a kubeconfig's context, as kubectl takes it; empty if it has none, or cannot be read."""
    for part in filter(None, (kubeconfig or default_kubeconfig()).split(os.pathsep)):
        try:
            document = yaml.safe_load(Path(part).expanduser().read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        document = document if isinstance(document, dict) else {}
        wanted = context or document.get("current-context")
        for each in document.get("contexts") or ():
            if each.get("name") == wanted:
                return str((each.get("context") or {}).get("namespace") or "")
    return ""


def read_lines(file: Path) -> list[bytes]:
    """Return the lines of a log, also of one whose writer was killed: what is whole is used."""
    data = file.read_bytes()
    if file.suffix == ".gz":
        whole = zlib.decompressobj(wbits=31)
        try:
            data = whole.decompress(data)
        except zlib.error as error:
            raise SchedulerError(f"{file}: not compressed with gzip: {error}") from error
    lines = data.splitlines()
    return lines if data.endswith(b"\n") else lines[:-1]
