"""Two clusters to test against: the embedded API server, and etcd with kube-apiserver, each in processes of its own.

In: a folder. Out: a running control plane on free ports of the loopback, with certificates and tokens of its own, RBAC,
and the scheduler's role as `deploy/` has it: the token "scheduler" may do what that grants and nothing more. The real
binaries come from the folder that KUBEBUILDER_ASSETS names.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

PROGRAM = (sys.executable, "-c", "from kubesched.cli import main; main()")
DEPLOY = Path(__file__).parents[2] / "deploy"
ACCOUNT = "system:serviceaccount:kube-system:kubesched"
SHADOW_ACCOUNT = f"{ACCOUNT}-shadow"
TOKENS = f'admin,admin,1,"system:masters"\nscheduler,{ACCOUNT},2\nguest,guest,3\nshadow,{SHADOW_ACCOUNT},4\n'
PATIENCE_SECONDS = 60.0
READ = ["get", "list", "watch"]
VIEW = {  # of what Kubernetes' own role of this name grants, the part that schedulers read
    "kind": "ClusterRole",
    "metadata": {"name": "view"},
    "rules": [
        {
            "apiGroups": [""],
            "resources": ["pods", "namespaces", "services", "replicationcontrollers", "persistentvolumeclaims"],
            "verbs": READ,
        },
        {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets"], "verbs": READ},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": READ},
    ],
}

Object = dict[str, Any]


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def write_kubeconfig(path: Path, server: str, user: Object, authority: Path | None = None) -> Path:
    """Write a kubeconfig."""
    cluster: Object = {"server": server}
    if authority is not None and server.startswith("https"):
        cluster["certificate-authority"] = str(authority)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def start(*words: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as errors:
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors)


@asynccontextmanager
async def process(*words: str, log: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Run a program, its stdout to be read and its stderr in a file, and end it."""
    run = start(*words, log=log)
    try:
        yield run
    finally:
        run.kill()
        await asyncio.to_thread(run.communicate)


class ControlPlane:
    """A control plane; `start` and `stop` may be called again and again, the objects stay."""

    kind = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.authority = folder / "ca.crt"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokens.csv").write_text(TOKENS)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def kubeconfig(self, token: str, server: str = "", token_file: Path | None = None) -> Path:
        """Return a kubeconfig for a token or a file with one, straight to the server or through something in between."""
        path = self.folder / f"{token}-{(server or self.url).rpartition(':')[2]}.kubeconfig"
        user = {"token": token} if token_file is None else {"tokenFile": str(token_file)}
        return write_kubeconfig(path, server or self.url, user, self.authority)

    async def start(self) -> None:
        """Start what is not running, and wait until it answers."""
        self._launch()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            for process in self.processes:
                assert process.poll() is None, f"{process.args} ended with {process.returncode}: {self.last_words()}"
            assert time.monotonic() < deadline, f"{self.kind}: not ready: {self.last_words()}"
            try:
                async with self.api() as api:
                    await api.get("/readyz")
                    await api.get("/api/v1/namespaces/kube-system")
                    await api.get("/api/v1/namespaces/default")
                    return
            except (OSError, aiohttp.ClientError, Refused):
                await asyncio.sleep(0.05)

    def kill(self) -> None:
        """End the API server at once."""
        self.processes[-1].kill()
        self.processes.pop().wait()

    def stop(self) -> None:
        """End everything."""
        while self.processes:
            process = self.processes.pop()
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    async def forget_history(self) -> None:
        """Let nobody go on watching from where they were: what happened until now is compacted."""
        self.kill()
        await self.start()

    def last_words(self) -> str:
        """Return the ends of the logs."""
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1000:]}" for log in self.folder.glob("*.log"))

    @asynccontextmanager
    async def api(self, token: str = "admin") -> AsyncIterator[Api]:
        """Connect, as an administrator or as who has another token."""
        tls = self.tls if self.authority.exists() else True
        connector = aiohttp.TCPConnector(limit=32, ssl=tls)
        headers = {"Authorization": f"Bearer {token}"}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with aiohttp.ClientSession(self.url, connector=connector, headers=headers, timeout=timeout) as session:
            yield Api(session)

    async def grant(self) -> None:
        """Give the tokens of the scheduler and of the shadow what `deploy/` gives these."""
        async with self.api() as api:
            for rule in (VIEW, *roles("base"), *roles("shadow")):
                with suppress(AlreadyThere):
                    await api.create(rule)
            # Of a real one the rules are filled in by a controller, which is not here.
            await api.patch(f"{_COLLECTIONS['ClusterRole']}/view", {"rules": VIEW["rules"]})

    def _launch(self) -> None:
        """Start the processes; each kind of control plane has its own."""
        raise NotImplementedError

    def _run(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))


class EmbeddedPlane(ControlPlane):
    """`kubesched apiserver` with a data directory, so that it can be restarted."""

    kind = "embedded"

    def _launch(self) -> None:
        data = self.folder / "data"
        self.authority = data / "pki" / "ca.crt"
        if not self.processes:
            self._run(
                "apiserver",
                *PROGRAM,
                "apiserver",
                "--no-world",
                "--https",
                "--secure-port",
                str(self.port),
                "--data-dir",
                str(data),
                "--token-file",
                str(self.folder / "tokens.csv"),
                "--kubeconfig-out",
                str(self.folder / "unused.kubeconfig"),
            )


class RealPlane(ControlPlane):
    """etcd and kube-apiserver."""

    kind = "real"

    def __init__(
        self,
        folder: Path,
        assets: Path,
        without: tuple[str, ...] = ("ServiceAccount", "TaintNodesByCondition"),
        more: tuple[str, ...] = (),
    ) -> None:
        """`without` names the admission plugins that are left out, `more` are further flags."""
        super().__init__(folder)
        self.assets = assets
        self.without, self.more = without, more
        self.authority = folder / "certs" / "apiserver.crt"
        self.etcd = f"http://127.0.0.1:{free_port()}"
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        (folder / "sa.pub").write_bytes(public)
        (folder / "sa.key").write_bytes(private)

    def _launch(self) -> None:
        if not self.processes:
            self._run(
                "etcd",
                str(self.assets / "etcd"),
                "--data-dir",
                str(self.folder / "etcd"),
                "--listen-client-urls",
                self.etcd,
                "--advertise-client-urls",
                self.etcd,
                "--listen-peer-urls",
                "http://127.0.0.1:0",
                "--unsafe-no-fsync",
            )
        if len(self.processes) < 2:
            self._run(
                "apiserver",
                str(self.assets / "kube-apiserver"),
                "--etcd-servers",
                self.etcd,
                "--secure-port",
                str(self.port),
                "--bind-address",
                "127.0.0.1",
                "--cert-dir",
                str(self.folder / "certs"),
                "--service-account-issuer",
                "https://kubernetes.default.svc",
                "--service-account-key-file",
                str(self.folder / "sa.pub"),
                "--service-account-signing-key-file",
                str(self.folder / "sa.key"),
                "--token-auth-file",
                str(self.folder / "tokens.csv"),
                "--authorization-mode",
                "RBAC",
                "--service-cluster-ip-range",
                "10.0.0.0/24",
                "--disable-admission-plugins",
                ",".join(self.without),
                "--max-requests-inflight",
                "5000",
                "--max-mutating-requests-inflight",
                "5000",
                "--shutdown-delay-duration",
                "0s",
                *self.more,
            )

    async def forget_history(self) -> None:
        async with aiohttp.ClientSession(self.etcd) as etcd:
            async with etcd.post("/v3/kv/range", json={"key": "AA=="}) as answer:
                revision = (await answer.json())["header"]["revision"]
            async with etcd.post("/v3/kv/compaction", json={"revision": revision, "physical": True}) as answer:
                assert answer.status == 200, await answer.text()
        await super().forget_history()


def real_assets() -> tuple[Path | None, str]:
    """Return the folder of the real binaries, or None and why there is none."""
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not named:
        return None, "the real API server is not tested: KUBEBUILDER_ASSETS is not set"
    missing = [name for name in ("etcd", "kube-apiserver") if shutil.which(str(Path(named) / name)) is None]
    if missing:
        return None, f"the real API server is not tested: no {' and no '.join(missing)} in KUBEBUILDER_ASSETS={named}"
    return Path(named), ""


def scheduler_program() -> tuple[str, ...]:
    """Return the command of the scheduler that is judged: kube-scheduler where KUBEBUILDER_ASSETS has one, else our own."""
    found = shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
    return (found,) if found is not None else (*PROGRAM, "run")


def roles(part: str) -> list[Object]:
    """Return the roles and bindings of a part of `deploy/kustomize`, in the namespace it sets."""
    found = []
    for rule in yaml.safe_load_all((DEPLOY / "kustomize" / part / "rbac.yaml").read_text(encoding="utf-8")):
        if rule["kind"] in ("Role", "RoleBinding", "ServiceAccount"):
            rule["metadata"].setdefault("namespace", "kube-system")
        found.append(rule)
    return found


class Refused(Exception):
    """The API server said no."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:300]}")
        self.status = status


class AlreadyThere(Refused):
    """There is an object of that name."""


_COLLECTIONS = {
    "Node": "/api/v1/nodes",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Namespace": "/api/v1/namespaces",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kubesched"


class Api:
    """An administrator's view of the cluster."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, path: str) -> Any:
        return await self._ask("GET", path)

    async def create(self, obj: Object) -> Object:
        namespace = obj["metadata"].get("namespace", "default")
        found: Object = await self._ask("POST", _COLLECTIONS[obj["kind"]].format(namespace=namespace), json=obj)
        return found

    async def account_token(self, name: str) -> str:
        """Return a token of a service account in kube-system, as `kubectl create token` does."""
        path = f"/api/v1/namespaces/kube-system/serviceaccounts/{name}/token"
        made = await self._ask("POST", path, json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
        return str(made["status"]["token"])

    async def patch(self, path: str, patch: Object) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        await self._ask("PATCH", path, data=json.dumps(patch), headers=headers)

    async def delete(self, path: str) -> None:
        await self._ask("DELETE", f"{path}?gracePeriodSeconds=0")

    async def delete_gracefully(self, path: str) -> None:
        await self._ask("DELETE", path)

    async def add_nodes(self, count: int, cpu: str = "4") -> None:
        await asyncio.gather(*(self.create(a_node(f"node-{number}", cpu)) for number in range(count)))

    async def add_pods(self, first: int, count: int, cpu: str = "100m") -> None:
        await asyncio.gather(*(self.create(a_pod(f"pod-{number}", cpu)) for number in range(first, first + count)))

    async def pods(self) -> list[Object]:
        found: list[Object] = (await self.get("/api/v1/namespaces/default/pods"))["items"]
        return found

    async def n_bound(self) -> int:
        return sum(1 for pod in await self.pods() if pod["spec"].get("nodeName"))

    async def until_bound(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until so many pods have a node."""
        deadline = time.monotonic() + seconds
        while (found := await self.n_bound()) < count:
            assert time.monotonic() < deadline, f"{found} of {count} pods are bound after {seconds} s"
            await asyncio.sleep(0.05)

    async def leader(self) -> str:
        """Return who holds the lease, "" for nobody."""
        try:
            lease = await self.get(LEASE)
        except Refused as error:
            if error.status != 404:
                raise
            return ""
        return str(lease["spec"].get("holderIdentity") or "")

    async def lease_time(self, field: str) -> float:
        """Return a time that the lease holds, in seconds since the epoch."""
        lease = await self.get(LEASE)
        return datetime.fromisoformat(lease["spec"][field]).timestamp()

    async def until_leader(self, but: str = "", seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until somebody else than `but` leads."""
        deadline = time.monotonic() + seconds
        while (found := await self.leader()) in ("", but):
            assert time.monotonic() < deadline, f"nobody but {but!r} leads after {seconds} s"
            await asyncio.sleep(0.05)
        return found

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        async with self._session.request(method, path, **more) as answer:
            text = await answer.text()
            if answer.status >= 300:
                raise (AlreadyThere if '"AlreadyExists"' in text else Refused)(answer.status, text)
            return json.loads(text) if text.startswith("{") else text


def a_node(name: str, cpu: str = "4", memory: str = "32Gi", *, labels: Object | None = None, **spec: Any) -> Object:
    """Return a ready node."""
    capacity = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> Object:
    """Return a pod that wants a little cpu."""
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def serving(kubeconfig: Path, port: int) -> list[str]:
    """Return the flags of a scheduler that leads at once and asks the API server about the callers of its port."""
    names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    flags = [f"--{name}={kubeconfig}" for name in names]
    return [*flags, "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={port}"]


def ask_port(port: int, path: str, token: str = "", body: object = None) -> tuple[int, str]:
    """Return the status and the text that a scheduler's secure port answers, (0, "") while nobody listens."""
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers={"Content-Type": "application/json"})
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    data = None if body is None else json.dumps(body).encode()
    try:
        # As the kubelet does, nobody looks at the certificate.
        with urllib.request.urlopen(request, data, timeout=30, context=ssl._create_unverified_context()) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
