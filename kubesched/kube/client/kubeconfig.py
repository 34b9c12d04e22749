"""Kubeconfig files: merged as kubectl merges them, one context chosen, and the credential plugin that its user may name.

In: files. Out: the cluster and the user of a context, each with the folder that its relative paths start from; certificates
as files; what a plugin answers. Problems are `ConfigError`s of one line. What an `auth-provider` such as OIDC needs is not
here: that is kubernetes_asyncio's work (`auth_provider_token`), which the extra `oidc` installs.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import msgspec

from kubesched.errors import ConfigError, MalformedObject
from kubesched.kube.api import parse_time
from kubesched.kube.values import yaml_document

KINDS = ("clusters", "contexts", "users")
_NO_LINES = {ord("\r"): None, ord("\n"): None}
"""What base64 may be wrapped with."""
PLUGIN_SECONDS = 60
"""How long a plugin that talks to nobody may take."""
KILL_SECONDS = 1


class _Extension(msgspec.Struct):
    name: str = ""


class _Cluster(msgspec.Struct, rename="kebab"):
    """The shape of a cluster's fields. A text where a boolean belongs is an error: "false" is true to Python, and would end
    the verification of certificates."""

    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    extensions: list[_Extension] | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str | None = None


class _Exec(msgspec.Struct, rename="camel"):
    command: str | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    api_version: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: Literal["Never", "IfAvailable", "Always", ""] | None = None


class _AuthProvider(msgspec.Struct):
    name: str
    config: dict[str, str] | None = None


class _User(msgspec.Struct, rename="kebab"):
    """The shape of a user's fields."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    as_: str | None = msgspec.field(name="as", default=None)
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str | None = None
    password: str | None = None
    auth_provider: _AuthProvider | None = None
    exec: _Exec | None = None


class _Status(msgspec.Struct, rename="camel"):
    """The shape of a plugin's answer."""

    token: str | None = None
    expiration_timestamp: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class Entry(NamedTuple):
    """A cluster or a user: its fields, and the folder of the file that it stands in."""

    fields: Mapping[str, Any]
    folder: Path = Path()

    def text(self, key: str) -> str:
        """Return a field as text, "" where it is absent."""
        value = self.fields.get(key)
        return "" if value is None else str(value)

    def path(self, key: str) -> str | None:
        """Return the file that a field names, or that holds what the field `KEY-data` has in base64."""
        if data := self.text(f"{key}-data"):
            try:
                return file_with(base64.b64decode(data.translate(_NO_LINES), validate=True))
            except ValueError as error:
                raise ConfigError("", f"{key}-data is not base64") from error
        if not self.text(key):
            return None
        path = self.folder / self.text(key)
        if not path.is_file():
            raise ConfigError("", f"{key}: there is no file {path}")
        return str(path)


class Chosen(NamedTuple):
    """What a context stands for."""

    cluster: Entry
    user: Entry


def choose(files: Sequence[Path], context: str | None) -> Chosen:
    """Read files and return what a context stands for, or the current one. Of two entries of one name the first counts."""
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    current = context or ""
    for file in files:
        document = yaml_document(file.read_bytes())
        if not isinstance(document, dict):
            raise ConfigError("", "not a kubeconfig: expected a YAML mapping with clusters, contexts and users")
        # As kubectl merges several files: the first one that sets a value wins.
        current = current or str(document.get("current-context") or "")
        for kind in KINDS:
            for name, fields in _named(document, kind):
                entries[kind].setdefault(name, Entry(fields, file.parent.absolute()))
    if not current:
        raise ConfigError("", "no current-context is set; choose one with `kubectl config use-context`")
    chosen = _find(entries, "contexts", current)
    cluster = _find(entries, "clusters", chosen.text("cluster"))
    user = entries["users"].get(chosen.text("user"), Entry({}))  # kubectl takes an unknown user for nobody, too
    _check(cluster.fields, _Cluster, f"clusters: {chosen.text('cluster')}")
    _check(user.fields, _User, f"users: {chosen.text('user')}")
    return Chosen(cluster, user)


def _named(document: Mapping[str, Any], kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the entries of one list: their names and fields."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    listed = document.get(kind) or []
    for entry in listed if isinstance(listed, list) else [listed]:
        fields = entry.get(kind.removesuffix("s")) if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or "name" not in entry or not isinstance(fields, dict | None):
            raise ConfigError("", f"not a kubeconfig: {kind} do not have the expected shape")
        found.append((str(entry["name"]), fields or {}))
    return found


def _find(entries: Mapping[str, Mapping[str, Entry]], kind: str, name: str) -> Entry:
    found = entries[kind].get(name)
    if found is None:
        raise ConfigError("", f"Expected object with name {name} in {kind} list")
    if not found.fields:
        raise ConfigError("", f"{kind}: {name} is empty")
    return found


def _check(fields: Mapping[str, Any], shape: type, what: str) -> None:
    """Raise `ConfigError` for a field of another type than Go's. The text has no value: it may be a secret."""
    try:
        msgspec.convert(fields, shape)
    except msgspec.ValidationError as error:
        raise ConfigError("", f"{what}: {error}") from error


@cache
def file_with(content: bytes) -> str:
    """Return a file with a content, for the libraries that want one. Only its owner can read it; it goes when we end."""
    descriptor, name = tempfile.mkstemp()
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return name


async def ask_plugin(user: Entry, cluster: Entry) -> Mapping[str, Any]:
    """Run the program that `exec` names, as client.authentication.k8s.io says; return the status of its answer."""
    section = user.fields["exec"]
    if not section.get("command") or not section.get("apiVersion"):
        raise ConfigError("", "exec: command and apiVersion are needed")
    command, mode = str(section["command"]), section.get("interactiveMode") or "IfAvailable"
    # A path is relative to the kubeconfig, a bare name is looked up on PATH. As client-go.
    if os.sep in command:
        command = str(user.folder / command)
    interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not interactive:
        raise ConfigError("", f"exec: {command} wants to talk to a person, and standard input is no terminal")
    spec: dict[str, Any] = {"interactive": interactive}
    if section.get("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": section["apiVersion"], "kind": "ExecCredential", "spec": spec}
    process = await asyncio.create_subprocess_exec(
        command,
        *(section.get("args") or ()),
        env={
            **os.environ,
            **{one["name"]: one.get("value") or "" for one in section.get("env") or ()},
            "KUBERNETES_EXEC_INFO": json.dumps(info),
        },
        # A plugin that may talk to a person gets our terminal, and as much time as the person needs.
        stdin=None if interactive else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if interactive else asyncio.subprocess.PIPE,
        start_new_session=not interactive,  # so that what it starts can be ended with it
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), None if interactive else PLUGIN_SECONDS)
    except TimeoutError as error:
        raise ConfigError("", f"exec: {command} did not answer within {PLUGIN_SECONDS} s") from error
    finally:
        if process.returncode is None:  # too late, or nobody waits any more
            with suppress(ProcessLookupError):
                process.kill() if interactive else os.killpg(process.pid, signal.SIGKILL)
            with suppress(TimeoutError):  # a daemon that it left behind may hold its output open
                await asyncio.wait_for(process.wait(), KILL_SECONDS)
    if process.returncode:
        printed = " ".join((errors or b"").decode(errors="replace").split())
        raise ConfigError("", f"exec: process returned {process.returncode}" + (f". {printed}" if printed else ""))
    return _status(output, section["apiVersion"])


def _cluster_info(cluster: Entry) -> dict[str, Any]:
    """Return what a plugin with `provideClusterInfo` gets about the cluster."""
    info: dict[str, Any] = {
        key: cluster.fields[key]
        for key in ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
        if cluster.fields.get(key)
    }
    if path := cluster.path("certificate-authority"):
        info["certificate-authority-data"] = base64.b64encode(Path(path).read_bytes()).decode()
    for extension in cluster.fields.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _status(output: bytes, version: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(output)
    except ValueError as error:
        raise ConfigError("", f"exec: failed to decode process output: {error}") from error
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(status, dict):
        raise ConfigError("", "exec: the answer has no status")
    _check(status, _Status, "exec: the answer's status")
    if answer.get("apiVersion") != version:
        raise ConfigError("", f"exec: plugin api version {answer.get('apiVersion')} does not match {version}")
    has_certificate = bool(status.get("clientCertificateData"))
    if has_certificate != bool(status.get("clientKeyData")) or not (status.get("token") or has_certificate):
        raise ConfigError("", "exec: the answer has neither a token nor a certificate with its key")
    if expiry := status.get("expirationTimestamp"):
        try:
            parse_time(expiry)
        except MalformedObject as error:  # otherwise it would hold for ever
            raise ConfigError("", f"exec: expirationTimestamp: {error}") from error
    return status


def auth_provider(user: Entry) -> Any:
    """Return kubernetes_asyncio's loader of a user with an `auth-provider`. It keeps what it refreshes."""
    try:
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader
    except ImportError as error:
        name = user.fields["auth-provider"]["name"]
        raise ConfigError("", f"auth-provider {name!r} needs: pip install 'kubesched[oidc]'") from error
    logging.getLogger("kubernetes_asyncio.config").setLevel(logging.CRITICAL)  # what it would log, we raise
    one = {
        "clusters": [{"name": "c", "cluster": {"server": "http://unused"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"auth-provider": user.fields["auth-provider"]}}],
    }
    return KubeConfigLoader(one, active_context="x", config_base_path=str(user.folder))


async def auth_provider_token(loader: Any) -> str:
    """Return the `Authorization` of a user with an `auth-provider`, refreshed where it has expired."""
    found = SimpleNamespace(api_key={})
    try:
        await loader.load_and_set(found)
    except Exception as error:  # the library's own kinds, and those of what it talks through
        raise ConfigError("", " ".join(str(error).split()) or type(error).__name__) from error
    return str(found.api_key.get("BearerToken", ""))
