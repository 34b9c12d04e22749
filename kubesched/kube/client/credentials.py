"""Who we are and where the API server is: a kubeconfig, the service account of our own pod, or `--master` alone.

In: a file name, a context, an address. Out: `Credentials`, a value, and on request a fresh one: token files are read
again, exec plugins and OIDC are asked again when what they gave has expired. `kubeconfig` reads the
files and runs plugins; here is what to choose, and one line that says what is wrong and how to mend it. Nothing here talks to
the API server.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from kubesched.errors import ConfigError
from kubesched.kube.api import parse_time
from kubesched.kube.client.kubeconfig import Chosen, Entry, ask_plugin, auth_provider, auth_provider_token, choose, file_with

RENEW_SECONDS = 10
"""How long before its end a plugin's answer is no longer used."""
_HEADER_SIGNS = "!#$&'*+-.^_`|~"
"""What the name of a header may have beside letters and digits, except for %, which begins an escape."""
SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
NOTHING_PROVIDED = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)

NO_CLUSTER = (
    "no cluster is known here: give --kubeconfig, set KUBECONFIG, or make ~/.kube/config; "
    "many commands read a file instead, with --snapshot"
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Address, TLS files and tokens for a connection. `origin` names their source, for messages."""

    server: str
    origin: str
    authorization: str = field(default="", repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    impersonation: tuple[tuple[str, str], ...] = ()


class CredentialSource(Protocol):
    """A source of credentials, which can renew them."""

    async def load(self) -> Credentials:
        """Return the credentials, or raise a `ConfigError` of one line."""

    async def renew(self, *, refused: bool) -> Credentials:
        """Return current credentials. `refused`: the server has refused the last ones."""


def find_credentials(
    kubeconfig: str = "",
    *,
    context: str | None = None,
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account_folder: str = SERVICE_ACCOUNT_FOLDER,
) -> CredentialSource:
    """Return the source that the flags name. `master` overrides the address in a kubeconfig."""
    if master:
        master = _checked_address(master, "--master")
    if kubeconfig:
        return KubeconfigSource(kubeconfig, context=context, master=master)
    if master:
        return AddressSource(master)
    if _in_cluster(environ):
        return ServiceAccountSource(environ, service_account_folder)
    if environ.get("KUBERNETES_MASTER"):
        return AddressSource(_checked_address(environ["KUBERNETES_MASTER"], "KUBERNETES_MASTER"))
    raise ConfigError("", NOTHING_PROVIDED)


def kubectl_credentials(kubeconfig: str, context: str, environ: Mapping[str, str] = os.environ) -> CredentialSource:
    """Return the source that kubectl would use: for commands."""
    found = kubeconfig or default_kubeconfig(environ)
    if not (found or _in_cluster(environ) or environ.get("KUBERNETES_MASTER")):
        raise ConfigError("", NO_CLUSTER)
    return find_credentials(found, context=context or None, environ=environ)


def delegated_credentials(
    kubeconfig: str, environ: Mapping[str, str] = os.environ, service_account_folder: str = SERVICE_ACCOUNT_FOLDER
) -> CredentialSource | None:
    """Return the source for token and access reviews: a kubeconfig, the cluster that we run in, or None."""
    if kubeconfig:
        return KubeconfigSource(kubeconfig)
    return ServiceAccountSource(environ, service_account_folder) if _in_cluster(environ) else None


def _in_cluster(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def default_kubeconfig(environ: Mapping[str, str] = os.environ) -> str:
    """Return the kubeconfig that kubectl would use, or "" when there is none."""
    if environ.get("KUBECONFIG"):
        return environ["KUBECONFIG"]
    path = Path(environ.get("HOME", "")) / ".kube" / "config"
    return str(path) if path.is_file() else ""


def kubeconfig_files(path: str) -> list[Path]:
    """Return the files of a path: a single existing file, or a list as in $KUBECONFIG."""
    if Path(path).expanduser().is_file():
        return [Path(path).expanduser()]
    parts = [Path(part).expanduser() for part in path.split(os.pathsep) if part]
    return [part for part in parts if part.is_file()]


class AddressSource:
    """An address without credentials: we are anonymous."""

    def __init__(self, address: str) -> None:
        self._credentials = Credentials(address, "--master")

    async def load(self) -> Credentials:
        return self._credentials

    async def renew(self, *, refused: bool) -> Credentials:
        return self._credentials


class ServiceAccountSource:
    """The service account of the pod that we run in. Its token file is replaced regularly."""

    def __init__(self, environ: Mapping[str, str], folder: str = SERVICE_ACCOUNT_FOLDER) -> None:
        self._environ = dict(environ)
        self._folder = folder

    async def load(self) -> Credentials:
        host, port = (self._environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
        origin = f"service account in {self._folder}"
        ca = f"{self._folder}/ca.crt"
        try:
            # The CA file is read only to find a missing mount now, with a message that says what to do. TLS would name no file.
            token, _ = _content(f"{self._folder}/token"), _content(ca)
        except (OSError, UnicodeDecodeError) as error:
            mend = "mount a service account token, or give --kubeconfig"
            raise ConfigError(origin, f"{_one_line(error)}; {mend}") from error
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        return Credentials(server, origin, f"Bearer {token}", ca)

    async def renew(self, *, refused: bool) -> Credentials:
        return await self.load()


class KubeconfigSource:
    """A kubeconfig file, or several joined by the path separator, and one context of it."""

    def __init__(self, path: str, *, context: str | None = None, master: str = "") -> None:
        self._path = path
        self._context = context
        self._master = master
        self._origin = f"kubeconfig {path}"
        self._chosen: Chosen | None = None
        self._plugin_status: Mapping[str, Any] | None = None
        self._provider: Any = None

    async def load(self) -> Credentials:
        """Read the files anew; plugins are asked again, and so is an `auth-provider`."""
        self._chosen = self._plugin_status = self._provider = None
        return await self.renew(refused=False)

    async def renew(self, *, refused: bool) -> Credentials:
        if refused:
            return await self.load()  # the file itself may have been replaced
        try:
            if self._chosen is None:
                self._chosen = self._read()
            return await self._credentials(*self._chosen)
        except ConfigError as error:
            raise self._wrong(error.detail) from error

    def _read(self) -> Chosen:
        files = kubeconfig_files(self._path)
        if not files:
            raise self._wrong("there is no such file; correct --kubeconfig or clientConnection.kubeconfig")
        try:
            return choose(files, self._context)
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(f"cannot be read: {_one_line(error)}") from error

    async def _credentials(self, cluster: Entry, user: Entry) -> Credentials:
        server = self._master or cluster.text("server")
        if not server:
            raise self._wrong("the cluster has no server; set clusters[].cluster.server, or give --master")
        server = _checked_address(server, self._origin)
        has_tls = server.startswith("https:")
        authorization, certificate = await self._identity(user, cluster) if has_tls or _is_here(server) else ("", (None, None))
        return Credentials(
            server=server,
            origin=self._origin,
            authorization=authorization,
            ca_file=cluster.path("certificate-authority") if has_tls else None,
            cert_file=certificate[0] if has_tls else None,
            key_file=certificate[1] if has_tls else None,
            verify=not cluster.fields.get("insecure-skip-tls-verify"),
            tls_server_name=(not self._master and cluster.text("tls-server-name")) or None,  # it is that of the file's server
            proxy=cluster.text("proxy-url") or None,
            impersonation=self._impersonation(user.fields),
        )

    async def _identity(self, user: Entry, cluster: Entry) -> tuple[str, tuple[str | None, str | None]]:
        """Return a user's `Authorization` and certificate. What the files have counts before a plugin and a provider."""
        own = user.path("client-certificate"), user.path("client-key")
        if authorization := self._written(user):
            return authorization, own
        if user.fields.get("exec") and not own[0]:
            status = await self._ask_plugin(user, cluster)
            if status.get("clientCertificateData"):
                own = (file_with(status["clientCertificateData"].encode()), file_with(status["clientKeyData"].encode()))
            return f"Bearer {status['token']}" if status.get("token") else "", own
        if user.fields.get("auth-provider"):
            try:
                self._provider = self._provider or auth_provider(user)
                return await auth_provider_token(self._provider), own
            except ConfigError as error:
                raise self._wrong(f"credentials cannot be loaded: {error.detail}") from error
        return "", own

    def _written(self, user: Entry) -> str:
        """Return the `Authorization` that the files have: a token, or name and password. Of two tokens that of the file counts,
        as long as it can be read."""
        token, pair = user.text("token"), f"{user.text('username')}:{user.text('password')}"
        if token and pair != ":":
            raise self._wrong("more than one authentication method found; found [token basicAuth], only one is allowed")
        if user.text("tokenFile"):
            try:
                token = (user.folder / user.text("tokenFile")).read_text(encoding="utf-8").strip() or token
            except (OSError, ValueError) as error:
                if not token:
                    raise self._wrong(f"cannot be read: {_one_line(error)}") from error
        if token:
            return f"Bearer {token.strip()}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}" if pair != ":" else ""

    async def _ask_plugin(self, user: Entry, cluster: Entry) -> Mapping[str, Any]:
        """Return what the plugin said, as long as it holds. One that names no expiry holds until the server refuses it."""
        known = self._plugin_status
        if known is not None and (expiry := known.get("expirationTimestamp")):
            # Renewed a little early, so that a request that is on its way does not arrive with an expired token.
            known = known if time.time() < parse_time(expiry) - RENEW_SECONDS else None
        if known is None:
            try:
                known = self._plugin_status = await ask_plugin(user, cluster)
            except FileNotFoundError as error:
                command = user.fields["exec"]["command"]
                raise self._wrong(f"the credential plugin {command!r} is not installed, or not on PATH") from error
            except (ConfigError, OSError, ValueError) as error:
                detail = error.detail if isinstance(error, ConfigError) else _one_line(error)
                raise self._wrong(f"credentials cannot be loaded: {detail}") from error
        return known

    def _impersonation(self, user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        found = [("Impersonate-User", user["as"])] if user.get("as") else []
        if user.get("as-uid"):
            found.append(("Impersonate-Uid", user["as-uid"]))
        found += [("Impersonate-Group", group) for group in user.get("as-groups") or ()]
        for name, values in (user.get("as-user-extra") or {}).items():
            found += [(f"Impersonate-Extra-{quote(name, safe=_HEADER_SIGNS)}", value) for value in values or ()]
        if found and not user.get("as"):
            raise self._wrong("as-uid, as-groups or as-user-extra is set without as")
        return tuple(found)

    def _wrong(self, detail: str) -> ConfigError:
        return ConfigError(self._origin, detail)


def _is_here(server: str) -> bool:
    """Return whether a server is on this machine. Any other one is sent credentials over TLS alone, as client-go has it."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _checked_address(address: str, origin: str) -> str:
    """Return the address as a URL without a closing slash; a bare host and port means plain HTTP."""
    if "://" not in address:
        address = f"http://{address}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(origin, f"{address!r} is no server's address; expected the likes of https://10.0.0.1:6443")
    return address.rstrip("/")


def _content(file: str) -> str:
    text = Path(file).read_text(encoding="utf-8").strip()
    if not text:
        raise OSError(f"{file} is empty")
    return text


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
