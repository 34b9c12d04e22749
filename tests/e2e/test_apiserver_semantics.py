"""The same stories told to the embedded API server and to a real kube-apiserver: a difference is a bug in ours.

The real one needs etcd and kube-apiserver in KUBEBUILDER_ASSETS; without them only the embedded one is asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kubesched.embedded import ApiServer, ObjectStore

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
TOKEN = "admin-token"
SPEC = {"containers": [{"name": "c", "image": "i"}]}


class Api:
    """Requests to one server, in one fresh namespace."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str) -> None:
        self.session = session
        self.namespace = namespace
        self.core = f"/api/v1/namespaces/{namespace}"

    async def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, dict]:
        data = None if body is None else json.dumps(body)
        async with self.session.request(method, path, data=data, headers={"Content-Type": kind}) as answer:
            return answer.status, json.loads(await answer.read())

    async def create(self, path: str, body: dict) -> dict:
        status, made = await self.call("POST", path, body)
        assert status == 201, made
        return made

    async def pod(self, name: str, **spec: Any) -> dict:
        labels = {"app": name, "rev": "7"}
        return await self.create(f"{self.core}/pods", {"metadata": {"name": name, "labels": labels}, "spec": {**SPEC, **spec}})

    async def bind(self, name: str, node: str, **metadata: str) -> tuple[int, dict]:
        body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
        return await self.call("POST", f"{self.core}/pods/{name}/binding", body)


@pytest.fixture(scope="module")
def real_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real kube-apiserver with its etcd, for as long as this module runs."""
    if not ASSETS:
        pytest.skip("no etcd and kube-apiserver in KUBEBUILDER_ASSETS")
    home = tmp_path_factory.mktemp("real")
    etcd_port, port = _free_port(), _free_port()
    _write_key(home)
    (home / "tokens").write_text(f"{TOKEN},admin,admin,system:masters\n")
    etcd = [f"{ASSETS}/etcd", "--data-dir", str(home / "etcd"), "--listen-peer-urls", "http://127.0.0.1:0"]
    etcd += [
        f"--listen-client-urls=http://127.0.0.1:{etcd_port}",
        f"--advertise-client-urls=http://127.0.0.1:{etcd_port}",
    ]
    server = [f"{ASSETS}/kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd_port}", f"--secure-port={port}"]
    server += [
        "--bind-address=127.0.0.1",
        f"--cert-dir={home}/certs",
        "--service-account-issuer=https://kubernetes.local",
    ]
    server += [f"--service-account-key-file={home}/key", f"--service-account-signing-key-file={home}/key"]
    server += [
        f"--token-auth-file={home}/tokens",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]
    server += ["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds"]
    with (home / "log").open("wb") as log:
        processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in (etcd, server)]
    try:
        _until_ready(f"https://127.0.0.1:{port}")
        yield f"https://127.0.0.1:{port}"
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_key(home: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    (home / "key").write_bytes(key.private_bytes(*form))


def _until_ready(url: str) -> None:
    """Wait, without a loop of one's own: the fixture is asked for from inside one."""
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=5):
            return
        time.sleep(0.5)
    pytest.fail("kube-apiserver did not become ready")


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    namespace = f"t{time.time_ns()}"
    if request.param == "real":
        url, headers = request.getfixturevalue("real_url"), {"Authorization": f"Bearer {TOKEN}"}
        server = None
    else:
        server, headers = ApiServer(ObjectStore()), {}
        await server.start()
        url = server.url
    async with aiohttp.ClientSession(url, headers=headers, connector=aiohttp.TCPConnector(ssl=False)) as session:
        made = Api(session, namespace)
        await made.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield made
    if server is not None:
        await server.stop()


async def test_a_pod_gets_its_defaults(api: Api) -> None:
    pod = await api.pod("p")
    expected = {"schedulerName": "default-scheduler", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
    expected |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", "dnsPolicy": "ClusterFirst"}
    assert expected.items() <= pod["spec"].items()
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"


async def test_binding_and_its_refusals(api: Api) -> None:
    pod = await api.pod("p")
    status, said = await api.bind("p", "n", uid="11111111-1111-1111-1111-111111111111")
    assert status == 409
    assert "Precondition failed: UID in precondition: 11111111-1111-1111-1111-111111111111" in said["message"]
    status, said = await api.bind("p", "n", uid=pod["metadata"]["uid"])
    assert (status, said["status"]) == (201, "Success")
    status, said = await api.bind("p", "m")
    assert (status, said["reason"]) == (409, "Conflict")
    assert said["message"] == 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
    _, bound = await api.call("GET", f"{api.core}/pods/p")
    assert bound["spec"]["nodeName"] == "n"
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert (await api.bind("gone", "n"))[0] == 404
    await api.pod("gated", schedulingGates=[{"name": "g"}])
    status, said = await api.bind("gated", "n")
    assert status == 409
    assert "has non-empty .spec.schedulingGates" in said["message"]


async def test_a_nomination_is_cleared_by_binding(api: Api) -> None:
    await api.pod("p")
    path = f"{api.core}/pods/p/status"
    patch = {"status": {"nominatedNodeName": "n"}}
    _, nominated = await api.call("PATCH", path, patch, "application/strategic-merge-patch+json")
    assert nominated["status"]["nominatedNodeName"] == "n"
    await api.bind("p", "n")
    _, bound = await api.call("GET", f"{api.core}/pods/p")
    assert "nominatedNodeName" not in bound["status"]


async def test_an_old_version_conflicts_and_a_name_is_taken_once(api: Api) -> None:
    config = await api.create(f"{api.core}/configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    status, said = await api.call("POST", f"{api.core}/configmaps", {"metadata": {"name": "c"}})
    assert (status, said["reason"], said["message"]) == (409, "AlreadyExists", 'configmaps "c" already exists')
    path = f"{api.core}/configmaps/c"
    assert (await api.call("PUT", path, {**config, "data": {"a": "2"}}))[0] == 200
    status, said = await api.call("PUT", path, {**config, "data": {"a": "3"}})
    assert (status, said["reason"]) == (409, "Conflict")
    assert said["message"].endswith("please apply your changes to the latest version and try again")


async def test_a_write_that_changes_nothing_keeps_its_version(api: Api) -> None:
    config = await api.create(f"{api.core}/configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    _, same = await api.call("PUT", f"{api.core}/configmaps/c", config)
    assert same["metadata"]["resourceVersion"] == config["metadata"]["resourceVersion"]


async def test_status_and_spec_are_written_apart(api: Api) -> None:
    pod = await api.pod("p")
    changed = {**pod, "status": {"phase": "Running"}, "spec": {**pod["spec"], "activeDeadlineSeconds": 9}}
    _, after = await api.call("PUT", f"{api.core}/pods/p/status", changed)
    assert after["status"]["phase"] == "Running"
    assert "activeDeadlineSeconds" not in after["spec"]
    assert after["metadata"]["generation"] == 1


async def test_pages_are_consistent(api: Api) -> None:
    for number in range(5):
        await api.create(f"{api.core}/configmaps", {"metadata": {"name": f"c{number}", "labels": {"mine": "yes"}}})
    path = f"{api.core}/configmaps?labelSelector=mine%3Dyes&limit=2"
    _, page = await api.call("GET", path)
    names = [one["metadata"]["name"] for one in page["items"]]
    await api.call("DELETE", f"{api.core}/configmaps/c4")
    while page["metadata"].get("continue"):
        _, page = await api.call("GET", f"{path}&continue={page['metadata']['continue']}")
        names += [one["metadata"]["name"] for one in page["items"]]
    assert names == ["c0", "c1", "c2", "c3", "c4"]


async def test_a_watch_turns_departures_into_deletions(api: Api) -> None:
    _, listed = await api.call("GET", f"{api.core}/pods")
    version = listed["metadata"]["resourceVersion"]
    selector = "status.phase!%3DSucceeded,status.phase!%3DFailed"
    path = f"{api.core}/pods?watch=1&resourceVersion={version}&fieldSelector={selector}&timeoutSeconds=5"
    async with api.session.get(path) as answer:
        await api.pod("p")
        patch = {"status": {"phase": "Succeeded"}}
        await api.call("PATCH", f"{api.core}/pods/p/status", patch, "application/merge-patch+json")
        events = [json.loads(await answer.content.readline()) for _ in range(2)]
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    assert events[1]["object"]["status"]["phase"] == "Pending", "a departure shows the object as it was"


async def test_deletion_waits_for_grace_and_finalizers(api: Api) -> None:
    await api.pod("free")
    assert (await api.call("DELETE", f"{api.core}/pods/free"))[0] == 200
    assert (await api.call("GET", f"{api.core}/pods/free"))[0] == 404
    await api.pod("placed")
    await api.bind("placed", "n")
    _, marked = await api.call("DELETE", f"{api.core}/pods/placed")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    status, said = await api.bind("placed", "m")
    assert status == 409
    assert "pod placed is being deleted, cannot be assigned to a host" in said["message"]
    await api.call("DELETE", f"{api.core}/pods/placed", {"gracePeriodSeconds": 0})
    assert (await api.call("GET", f"{api.core}/pods/placed"))[0] == 404
    body = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    await api.create(f"{api.core}/configmaps", body)
    _, held = await api.call("DELETE", f"{api.core}/configmaps/held")
    assert "deletionTimestamp" in held["metadata"]
    free = {"metadata": {"finalizers": None}}
    await api.call("PATCH", f"{api.core}/configmaps/held", free, "application/merge-patch+json")
    assert (await api.call("GET", f"{api.core}/configmaps/held"))[0] == 404


async def test_label_keys_are_merged_and_gates_are_told(api: Api) -> None:
    selector = {"matchLabels": {"app": "p"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["rev"]}
    spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    pod = await api.pod(
        "p", affinity={"podAntiAffinity": required}, topologySpreadConstraints=[spread], schedulingGates=[{"name": "g"}]
    )
    merged = [{"key": "rev", "operator": "In", "values": ["7"]}]
    found = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert found["labelSelector"]["matchExpressions"] == merged
    assert pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == merged
    (condition,) = pod["status"]["conditions"]
    assert (condition["reason"], condition["status"]) == ("SchedulingGated", "False")


WRONG = [
    ({"restartPolicy": "Maybe"}, 422, 'spec.restartPolicy: Unsupported value: "Maybe"'),
    ({"containers": []}, 422, "spec.containers: Required value"),
    ({"priorityClassName": "no"}, 403, "no PriorityClass with name no was found"),
    ({"tolerations": [{"value": "x"}]}, 422, "operator must be Exists when `key` is empty"),
    ({"nodeSelector": {"a b": "c"}}, 422, "spec.nodeSelector"),
]


@pytest.mark.parametrize(("spec", "code", "text"), WRONG)
async def test_wrong_pods_are_refused_alike(api: Api, spec: dict, code: int, text: str) -> None:
    status, said = await api.call("POST", f"{api.core}/pods", {"metadata": {"name": "p"}, "spec": {**SPEC, **spec}})
    assert status == code, said
    assert text in said["message"]
    assert said["kind"] == "Status"


async def test_unknown_fields_strictly(api: Api) -> None:
    body = {"metadata": {"name": "p"}, "spec": {**SPEC, "nodeNam": "x"}}
    status, said = await api.call("POST", f"{api.core}/pods?fieldValidation=Strict", body)
    assert status == 400
    assert 'unknown field "spec.nodeNam"' in said["message"]


async def test_server_side_apply_conflicts(api: Api) -> None:
    path = f"{api.core}/configmaps/c"
    kind = "application/apply-patch+yaml"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    assert (await api.call("PATCH", f"{path}?fieldManager=one", body, kind))[0] == 201
    other = {**body, "data": {"a": "2"}}
    status, said = await api.call("PATCH", f"{path}?fieldManager=two", other, kind)
    assert status == 409
    assert 'conflict with "one"' in said["message"]
    _, forced = await api.call("PATCH", f"{path}?fieldManager=two&force=true", other, kind)
    assert forced["data"] == {"a": "2", "b": "2"}
    _, less = await api.call("PATCH", f"{path}?fieldManager=one", {**body, "data": {}}, kind)
    assert less["data"] == {"a": "2"}


async def test_an_event_of_one_api_is_seen_in_the_other(api: Api) -> None:
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": api.namespace},
        "reason": "Scheduled",
        "note": "told",
        "type": "Normal",
        "action": "Binding",
        "reportingController": "me",
        "reportingInstance": "here",
    }
    await api.create(f"/apis/events.k8s.io/v1/namespaces/{api.namespace}/events", event)
    _, core = await api.call("GET", f"{api.core}/events/e")
    assert (core["message"], core["involvedObject"]["name"], core["reportingComponent"]) == ("told", "p", "me")


async def test_a_lease_is_updated_only_at_its_version(api: Api) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    lease = await api.create(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    taken = {**lease, "spec": {"holderIdentity": "b"}}
    assert (await api.call("PUT", f"{path}/l", taken))[0] == 200
    assert (await api.call("PUT", f"{path}/l", taken))[0] == 409


async def test_an_eviction_asks_the_budget(api: Api) -> None:
    await api.pod("p")
    await api.bind("p", "n")
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await api.call("PATCH", f"{api.core}/pods/p/status", ready, "application/strategic-merge-patch+json")
    budgets = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
    spec = {"selector": {"matchLabels": {"app": "p"}}, "minAvailable": 1}
    budget = await api.create(budgets, {"metadata": {"name": "b"}, "spec": spec})
    counts = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    _, budget = await api.call("PUT", f"{budgets}/b/status", {**budget, "status": {"observedGeneration": 1, **counts}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    status, said = await api.call("POST", f"{api.core}/pods/p/eviction", eviction)
    assert (status, said["reason"]) == (429, "TooManyRequests")
    assert said["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert said["details"]["causes"][0]["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    allowed = {**budget["status"], "disruptionsAllowed": 1}
    await api.call("PUT", f"{budgets}/b/status", {**budget, "status": allowed})
    assert (await api.call("POST", f"{api.core}/pods/p/eviction", eviction))[0] == 201
    _, after = await api.call("GET", f"{budgets}/b")
    assert after["status"]["disruptionsAllowed"] == 0
    assert set(after["status"]["disruptedPods"]) == {"p"}
    _, pod = await api.call("GET", f"{api.core}/pods/p")
    assert "deletionTimestamp" in pod["metadata"]
    assert ("DisruptionTarget", "True") in [(one["type"], one["status"]) for one in pod["status"]["conditions"]]
