"""Who we are and where the API server is: a kubeconfig, the service account of our own pod, or `--master` alone.

In: a file name, a context, an address. Out: `Credentials`, a value, and on request a fresh one: token files are read
again, exec plugins and OIDC are asked again when what they gave has expired. Reading and running all of that is
kubernetes_asyncio's work; ours is to choose, and to say in one line what is wrong and how to mend it. Nothing here
talks to the API server.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol
from urllib.parse import urlsplit

from kubesched.errors import ConfigError
from kubesched.kube.client.kubeconfig_loading import credential_loaders
from kubesched.kube.values import yaml_documents

SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
NOTHING_PROVIDED = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)

NO_CLUSTER = (
    "no cluster is known here: --kubeconfig names one, or KUBECONFIG, or ~/.kube/config; "
    "many commands read a --snapshot instead"
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
        loaders = credential_loaders()
        found: Any = SimpleNamespace(api_key={})
        origin = f"service account in {self._folder}"
        token, ca = f"{self._folder}/token", f"{self._folder}/ca.crt"
        try:
            loaders.service_account.InClusterConfigLoader(token, ca, environ=self._environ).load_and_set(found)
        except (loaders.refused, OSError) as error:
            mend = "mount a service account token, or give --kubeconfig"
            raise ConfigError(origin, f"{_one_line(error)}; {mend}") from error
        return Credentials(found.host, origin, found.api_key["BearerToken"].strip(), found.ssl_ca_cert)

    async def renew(self, *, refused: bool) -> Credentials:
        return await self.load()


class KubeconfigSource:
    """A kubeconfig file, or several joined by the path separator, and one context of it."""

    def __init__(self, path: str, *, context: str | None = None, master: str = "") -> None:
        self._path = path
        self._context = context
        self._master = master
        self._origin = f"kubeconfig {path}"
        self._loader: Any = None
        self._user: Mapping[str, Any] = {}
        self._loaded: Credentials | None = None

    async def load(self) -> Credentials:
        self._open()
        return await self._read()

    async def renew(self, *, refused: bool) -> Credentials:
        if refused or self._loader is None:
            return await self.load()  # the file itself may have been replaced
        if "exec" in self._user and not hasattr(self._loader, "exec_plugin_expiry") and self._loaded is not None:
            return self._loaded  # a plugin that gives no expiry is called again only after a refusal
        return await self._read()

    def _open(self) -> None:
        """Read and merge the files and choose the context."""
        loaders = credential_loaders()
        logging.getLogger("kubernetes_asyncio.config").setLevel(logging.CRITICAL)  # we raise what it would log
        files = kubeconfig_files(self._path)
        if not files:
            raise self._wrong("there is no such file; correct --kubeconfig or clientConnection.kubeconfig")
        try:
            merger = loaders.kubeconfig.KubeConfigMerger("")  # which would split a name that contains the separator
            for file in files:
                yaml_documents(file.read_bytes())  # the library would load unsafe YAML
                merger.load_config(str(file))
            merged: Any = merger.config
            if not isinstance(merged.value, dict):
                raise self._wrong("not a kubeconfig: expected a YAML mapping with clusters, contexts and users")
            context = self._context or merged.value.get("current-context")
            if not context:
                raise self._wrong("no current-context is set; choose one with `kubectl config use-context`")
            self._user = self._user_of(merged, merged["contexts"].get_with_name(context)["context"])
            self._loader = loaders.kubeconfig.KubeConfigLoader(
                config_dict=merged, config_base_path=None, active_context=context
            )
        except ConfigError as error:
            raise self._wrong(error.detail) from error
        except loaders.refused as error:
            raise self._wrong(_one_line(error).removeprefix("Invalid kube-config file. ")) from error
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(f"cannot be read: {_one_line(error)}") from error
        except (TypeError, ValueError, AttributeError, LookupError, AssertionError) as error:
            # The library raises anything if the file has a wrong shape. Its messages help nobody.
            raise self._wrong("not a kubeconfig: clusters, contexts or users do not have the expected shape") from error

    @staticmethod
    def _user_of(merged: Any, chosen: Any) -> Mapping[str, Any]:
        """Return the user of a context; if it has none, a user without credentials, which the loader needs."""
        name = chosen.safe_get("user")
        user = merged["users"].get_with_name(name, safe=True) if name else None
        if user is None:
            chosen.value["user"] = name = name or "nobody in particular"
            merged.value["users"].append({"name": name, "user": {}})
            return {}
        return user.value.get("user") or {}

    async def _read(self) -> Credentials:
        """Load the credentials of the chosen context. This may run an exec plugin."""
        found = SimpleNamespace(api_key={})
        refused = credential_loaders().refused
        try:
            await self._loader.load_and_set(found)
        except FileNotFoundError as error:
            if "exec" in self._user:
                command = self._user["exec"].get("command")
                raise self._wrong(f"the credential plugin {command!r} is not installed, or not on PATH") from error
            raise self._wrong(f"cannot be read: {_one_line(error)}") from error
        except AssertionError as error:
            raise self._wrong("the chosen context, cluster or user is empty") from error
        except (refused, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._wrong(f"credentials cannot be loaded: {_one_line(error)}") from error
        server = self._master or getattr(found, "host", "")
        if not server:
            raise self._wrong("the cluster has no server; set clusters[].cluster.server, or give --master")
        self._loaded = Credentials(
            server=_checked_address(server, self._origin),
            origin=self._origin,
            authorization=found.api_key.get("BearerToken", "").strip(),
            ca_file=getattr(found, "ssl_ca_cert", None),
            cert_file=getattr(found, "cert_file", None),
            key_file=getattr(found, "key_file", None),
            verify=getattr(found, "verify_ssl", True),
            tls_server_name=getattr(found, "tls_server_name", None),
            proxy=getattr(found, "proxy", None),
            impersonation=tuple(_impersonation(self._user)),
        )
        return replace(self._loaded)

    def _wrong(self, detail: str) -> ConfigError:
        return ConfigError(self._origin, detail)


def _impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    headers = []
    if user.get("as"):
        headers.append(("Impersonate-User", str(user["as"])))
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for name, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{name}", str(value)) for value in values]
    return headers


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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
