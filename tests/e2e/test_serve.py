"""`kubesched serve` as it is deployed: the program, over TLS, with the rights that its manifest grants and callers with theirs.

The cluster is an API server with RBAC in this process; HTTP and gRPC are spoken to the program's real ports.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from control_planes import PROGRAM, free_port, process

from kubesched.embedded import ApiServer
from kubesched.embedded.http.access import User
from kubesched.kube.api import codec
from kubesched.server.web.access.certificates import self_signed
from kubesched.solver import Cluster

grpc = pytest.importorskip("grpc")

from kubesched.tools.serve.descriptors import protocol  # noqa: E402

MANIFEST = Path(__file__).parents[2] / "deploy" / "serve.yaml"
AUTHENTICATED = "system:authenticated"
TOKENS = {
    "root": User("root", ("system:masters", AUTHENTICATED)),
    "serve": User("system:serviceaccount:kube-system:kubesched-serve", ("system:serviceaccounts", AUTHENTICATED)),
    "caller": User("caller", (AUTHENTICATED,)),
    "hostile": User("hostile", (AUTHENTICATED,)),
    "guest": User("guest", (AUTHENTICATED,)),
}
CALLERS = {
    "metadata": {"name": "callers"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubesched-serve-caller"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name} for name in ("caller", "hostile")],
}
AUTHENTICATION_READER = {
    "metadata": {"name": "extension-apiserver-authentication-reader"},
    "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
}
PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings"}
ENOUGH_SECONDS = 60.0

Object = dict[str, Any]


def a_node(name: str, cpu: str = "4") -> Object:
    offer = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    status = {"capacity": offer, "allocatable": offer}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def a_pod(name: str, cpu: str = "1") -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]},
    }


@dataclass
class Serving:
    """A service that runs, and its callers."""

    api: ApiServer
    http: int
    grpc: int
    certificate: bytes
    session: aiohttp.ClientSession

    async def ask(self, path: str, body: Any, token: str = "caller", method: str = "POST", **query: Any) -> tuple[int, Any]:
        trusted = ssl.create_default_context(cadata=self.certificate.decode())
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"https://localhost:{self.http}/v1/{path}"
        async with self.session.request(method, url, json=body, headers=headers, params=query, ssl=trusted) as answer:
            return answer.status, await answer.json(content_type=None)

    @asynccontextmanager
    async def calls(
        self, token: str = "caller", service: str = "kubesched.v1.Solver", file: str = "solver"
    ) -> AsyncIterator[Any]:
        """Lend a function that calls by the method's name."""
        credentials = grpc.ssl_channel_credentials(self.certificate)
        if token:
            credentials = grpc.composite_channel_credentials(credentials, grpc.access_token_call_credentials(token))
        methods = protocol(file).services[service]
        async with grpc.aio.secure_channel(f"localhost:{self.grpc}", credentials) as channel:

            def call(name: str, timeout: float = 20.0, **fields: Any) -> Any:
                method = methods[name]
                make = channel.unary_stream if method.is_stream else channel.unary_unary
                send = make(f"/{service}/{name}", method.request.SerializeToString, method.answer.FromString)
                return send(method.request(**fields), timeout=timeout)

            yield call


@asynccontextmanager
async def serving(tmp_path: Path, *flags: str) -> AsyncIterator[Serving]:
    async with ApiServer(tokens=TOKENS) as api:
        api.store.create("roles", AUTHENTICATION_READER, "kube-system")
        for rule in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")):
            if rule["kind"] in PLURALS:
                api.store.create(PLURALS[rule["kind"]], rule, rule["metadata"].get("namespace", ""))
        api.store.create("clusterrolebindings", CALLERS)
        for i in range(4):
            api.store.create("nodes", a_node(f"n{i}"))
        pair = self_signed("127.0.0.1", time.time())
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        kubeconfig, http, rpc = api.write_kubeconfig(tmp_path / "kubeconfig", "serve"), free_port(), free_port()
        words = [f"--{name}={kubeconfig}" for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]
        words += [f"--tls-cert-file={tmp_path}/tls.crt", f"--tls-private-key-file={tmp_path}/tls.key"]
        words += ["--bind-address=127.0.0.1", f"--secure-port={http}", f"--grpc-port={rpc}", *flags]
        log = tmp_path / "serve.log"
        async with process(*PROGRAM, "serve", *words, log=log) as run, aiohttp.ClientSession() as session:
            found = Serving(api, http, rpc, pair.certificate, session)
            async with asyncio.timeout(ENOUGH_SECONDS):
                while "Serving gRPC" not in log.read_text() or (await found.ask("fits", {"pod": a_pod("a")}))[0] == 503:
                    assert run.poll() is None, log.read_text()
                    await asyncio.sleep(0.1)
            yield found


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as found:
        yield found


async def test_both_protocols_let_in_who_may_and_answer_alike(served: Serving) -> None:
    pod = json.dumps(a_pod("a")).encode()
    expected = Cluster([a_node(f"n{i}") for i in range(4)]).fits(a_pod("a"), nodes=False).as_dict()
    assert await served.ask("fits", {"pod": a_pod("a")}) == (200, expected)
    async with served.calls() as call:
        answer = await call("Fits", pod=pod)
        assert (answer.fits, answer.node, json.loads(answer.json)) == (True, expected["node"], expected)
        assert not (await call("Fits", pod=json.dumps(a_pod("big", "99")).encode())).fits
        placed = await call("Place", pods=[json.dumps(a_pod(f"p{i}", "3")).encode() for i in range(5)])
        assert (placed.placed, placed.unplaced) == (4, 1)
        template = json.dumps(a_node("big", "32")).encode()
        what_if = await call(
            "WhatIf", pods=[json.dumps(a_pod("b", "20")).encode()], add_nodes=[{"template": template, "count": 1}]
        )
        assert (what_if.placed, json.loads(what_if.json)["newNodes"]) == (1, ["big-0"])
        cheapest = await call(
            "CheapestNodes",
            pods=[json.dumps(a_pod(f"q{i}", "16")).encode() for i in range(3)],
            templates=[{"name": "big", "node": template, "price": 2.0}, {"name": "dear", "node": template, "price": 3.0}],
        )
        assert [(each.template, each.count) for each in cheapest.nodes] == [("big", 2)] and cheapest.price == 4.0
        assert json.loads((await call("Explain", pod=pod)).json)["nodeCount"] == 4
    refused = {"": (401, "UNAUTHENTICATED"), "wrong": (401, "UNAUTHENTICATED"), "guest": (403, "PERMISSION_DENIED")}
    for token, (status, code) in refused.items():
        assert (await served.ask("fits", {"pod": a_pod("a")}, token))[0] == status
        async with served.calls(token) as call:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call("Fits", pod=pod)
            assert error.value.code() is grpc.StatusCode[code]


async def test_the_cluster_is_followed_and_a_watch_tells(served: Serving) -> None:
    async with served.calls() as call:
        watch = call("Watch", timeout=60, pod=json.dumps(a_pod("w", "8")).encode()).__aiter__()
        assert not (await anext(watch)).fits
        served.api.store.create("nodes", a_node("large", "16"))
        answers = [await anext(watch)]
        while not answers[-1].fits:  # the node may come into view before its taint goes
            answers.append(await anext(watch))
        assert answers[-1].node == "large"
    trusted = ssl.create_default_context(cadata=served.certificate.decode())
    headers = {"Authorization": "Bearer caller"}
    url = f"https://localhost:{served.http}/v1/watch"
    async with served.session.post(url, json={"pod": a_pod("w", "8")}, headers=headers, ssl=trusted) as answer:
        assert json.loads(await answer.content.readline())["node"] == "large"
        served.api.store.delete("nodes", "large")
        assert json.loads(await answer.content.readline())["node"] == ""


async def test_a_session_is_its_callers_own(served: Serving) -> None:
    objects = [a_node("mine")]
    status, told = await served.ask("sessions/s", {"objects": objects, "idleSeconds": 60}, method="PUT")
    assert (status, told) == (200, {"nodes": 1, "pods": 0})
    assert (await served.ask("fits", {"pod": a_pod("a")}, session="s"))[1]["node"] == "mine"
    assert (await served.ask("fits", {"pod": a_pod("a")}, "hostile", session="s"))[0] == 404
    assert (await served.ask("sessions/s", {"put": [a_node("other")]}, method="PATCH"))[1]["nodes"] == 2
    async with served.calls() as call:
        changed = await call("ChangeSession", session="s", remove=[{"kind": "Node", "name": "mine"}])
        assert (changed.nodes, changed.idle_seconds) == (1, 60)
        assert (await call("Fits", session="s", pod=json.dumps(a_pod("a")).encode())).node == "other"
        await call("DeleteSession", session="s")
    status, told = await served.ask("fits", {"pod": a_pod("a")}, session="s")
    assert (status, told["code"]) == (404, "NOT_FOUND") and told["error"].startswith("session s: it has expired")


BAD: list[tuple[str, str, Any, int, str]] = [
    ("POST", "fits", {"pod": {**a_pod("a"), "spec": {"containerz": []}}}, 400, "pod.spec.containerz: unknown field"),
    ("POST", "fits", {"pod": a_pod("a"), "x": 1}, 400, "x: unknown field"),
    ("POST", "place", {"pods": [{}] * 1_000_000}, 400, "pods: 1000000 are given, at most 100000 are taken"),
    (
        "POST",
        "what-if",
        {"addNodes": [{"template": {"metadata": {"name": "t"}}}]},
        400,
        "addNodes[0].template.status.allocatable",
    ),
    ("PUT", "sessions/s", {"objects": [{"kind": "Pod"}]}, 400, "objects[0].apiVersion: is missing"),
    ("PUT", "sessions/s", {"objekts": []}, 400, "Object contains unknown field `objekts`"),
    ("PATCH", "sessions/gone", {"put": []}, 404, "session gone: it has expired, or was never begun by you"),
    ("DELETE", "sessions/gone", {}, 404, "session gone: it has expired"),
    ("POST", "fits?timeoutSeconds=soon", {"pod": a_pod("a")}, 400, "timeoutSeconds: 'soon' is not a number above 0"),
]


async def test_bad_input_gets_a_status_and_the_service_goes_on(served: Serving) -> None:
    for method, path, body, status, says in BAD:
        found, told = await served.ask(path, body, method=method)
        assert (found, told["error"][: len(says)]) == (status, says), told
    cyclic = codec.to_dict(codec.decode({**a_pod("a"), "apiVersion": "v1", "kind": "Pod"}))
    cyclic["metadata"] |= {"uid": "u", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]}
    found, told = await served.ask("sessions/s", {"objects": [a_node("n"), cyclic]}, method="PUT")
    assert (found, told["error"]) == (400, "objects[1].metadata.ownerReferences: the object owns itself")
    assert (await served.ask("fits", {"pod": a_pod("a")}))[0] == 200


async def test_a_hostile_caller_delays_nobody(served: Serving) -> None:
    """Thousands of pods with spread constraints, over and over, beside a caller that asks whether one pod fits."""
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    pods = [a_pod(f"p{i}", "1m") for i in range(4000)]
    for i, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"app": f"a{i}"}
        pod["spec"]["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": f"a{i}"}}}]
    attack = [asyncio.create_task(served.ask("place", {"pods": pods}, "hostile", timeoutSeconds=3)) for _ in range(6)]
    await asyncio.sleep(1.0)
    times = []
    for _ in range(30):
        began = time.monotonic()
        assert (await served.ask("fits", {"pod": a_pod("a")}))[0] == 200
        times.append(time.monotonic() - began)
    statuses = {status for status, _ in await asyncio.gather(*attack)}
    assert statuses <= {200, 504}
    assert sorted(times)[len(times) // 2] < 0.5, times
    assert (await served.ask("place", {"pods": pods[:2]}, "hostile"))[1]["summary"]["placed"] == 2


async def test_health_and_metrics_are_as_on_the_schedulers_port(served: Serving) -> None:
    trusted = ssl.create_default_context(cadata=served.certificate.decode())
    for path, token, status in (("/readyz", "", 200), ("/livez", "", 200), ("/metrics", "", 401), ("/metrics", "root", 200)):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with served.session.get(f"https://localhost:{served.http}{path}", headers=headers, ssl=trusted) as answer:
            assert answer.status == status
            text = await answer.text()
    assert 'kubesched_serve_questions_total{call="fits",code="OK"}' in text and "kubesched_serve_ready 1.0" in text


async def test_cluster_autoscaler_needs_no_token_for_its_expander_and_for_nothing_else(tmp_path: Path) -> None:
    def message(*fields: tuple[int, bytes]) -> bytes:
        return b"".join(bytes([number << 3 | 2, len(value)]) + value for number, value in fields)

    cpu = (2, message((1, b"cpu"), (2, message((1, b"8")))))
    offer = (2, message((1, b"cpu"), (2, message((1, b"16")))))
    many = (2, message((1, b"pods"), (2, message((1, b"10")))))
    template = message((1, message((1, b"t"))), (3, message(offer, many)))
    container = message((1, b"c"), (2, b"image"), (8, message(cpu)))
    pod = message((1, message((1, b"p"), (3, b"default"))), (2, message((2, container))))
    (tmp_path / "groups.yaml").write_text(
        "nodeGroups:\n- {name: dear, capacity: {cpu: 16}, price: 5}\n- {name: cheap, capacity: {cpu: 16}, price: 2}\n"
    )
    async with serving(tmp_path, "--expander", f"--node-groups={tmp_path}/groups.yaml") as served:
        async with served.calls("", "grpcplugin.Expander", "expander") as call:
            options = [{"nodeGroupId": name, "nodeCount": 1, "podBytes": [pod]} for name in ("dear", "cheap")]
            found = await call("BestOptions", options=options, nodeBytesMap={"dear": template, "cheap": template})
            assert [(each.nodeGroupId, each.debug) for each in found.options] == [
                ("cheap", "kubesched: places 1 pods on 1 of 1 nodes, 2 a pod")
            ]
        async with served.calls("") as call:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call("Fits", pod=b"{}")
            assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
