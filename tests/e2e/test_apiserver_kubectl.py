"""A real kubectl against the embedded API server, over HTTP and HTTPS.

Skipped where no kubectl is on the path (Debian: package kubernetes-client).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on the path (Debian: kubernetes-client)")

NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {kubernetes.io/hostname: %s}}
status:
  capacity: {cpu: 4, memory: 32Gi, pods: 110}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v1.36.4}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 80}], resources: {requests: {cpu: 100m}}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    metadata: {annotations: {kubesched.io/run-seconds: "0.1"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.x-k8s.io}
spec:
  group: scheduling.x-k8s.io
  names: {kind: PodGroup, plural: podgroups, shortNames: [pg, pgs]}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Min, type: integer, jsonPath: .spec.minMember}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [minMember]
            properties:
              minMember: {type: integer, minimum: 1}
              scheduleTimeoutSeconds: {type: integer, default: 60}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
POD_GROUP = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: gang}
spec: {minMember: 3}
"""


class Cluster:
    """A running `kubesched apiserver` and kubectl for it."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        program = "from kubesched.cli import main; main()"
        command = [sys.executable, "-c", program, "apiserver", "--kubeconfig-out", str(self.kubeconfig), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(3)]
        assert lines[2].startswith("Try:  kubectl"), lines

    def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [
                str(KUBECTL),
                "--kubeconfig",
                str(self.kubeconfig),
                "--cache-dir",
                str(self.directory / "cache"),
                *arguments,
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **(env or {})},
        )
        assert (done.returncode != 0) is fails, f"kubectl {arguments}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def read(self, *arguments: str) -> dict:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(10) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"), "--port", "0", *NO_WORLD)
    for name in ("n1", "n2"):
        running.kubectl("apply", "-f", "-", stdin=NODE % (name, name))
    yield running
    running.stop()


NO_WORLD = ("--no-world",)


def bind(cluster: Cluster, pod: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    path = f"/api/v1/namespaces/default/pods/{pod}/binding"
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))


def test_nodes_are_listed_and_described(cluster: Cluster) -> None:
    lines = cluster.kubectl("get", "nodes", "-o", "wide").splitlines()
    assert lines[0].split() == [
        *("NAME", "STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION"),
        "CONTAINER-RUNTIME",
    ]
    assert lines[1].split()[:3] == ["n1", "Ready", "<none>"]
    described = cluster.kubectl("describe", "node", "n1")
    assert "memory:  32Gi" in described
    assert "Allocated resources" in described


def test_a_pod_is_run_read_labelled_annotated_and_deleted(cluster: Cluster) -> None:
    cluster.kubectl("run", "single", "--image=nginx")
    lines = cluster.kubectl("get", "pods", "single", "-o", "wide").splitlines()
    assert lines[0].split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[1].split()[:4] == ["single", "0/1", "Pending", "0"]
    cluster.kubectl("label", "pod", "single", "tier=front")
    cluster.kubectl("annotate", "pod", "single", "note=hello")
    assert cluster.kubectl("get", "pods", "-l", "tier in (front,back)", "-o", "name").strip() == "pod/single"
    assert "schedulerName: default-scheduler" in cluster.kubectl("get", "pod", "single", "-o", "yaml")
    assert "single" in cluster.kubectl("get", "pods", "--field-selector", "spec.nodeName=")
    assert "field label not supported: foo" in cluster.kubectl("get", "pods", "--field-selector", "foo=bar", fails=True)
    described = cluster.kubectl("describe", "pod", "single")
    assert "Node:         <none>" in described
    assert "note: hello" in described
    cluster.kubectl("delete", "pod", "single")
    assert 'pods "single" not found' in cluster.kubectl("get", "pod", "single", fails=True)


def test_the_three_patches(cluster: Cluster) -> None:
    cluster.kubectl("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=2")
    cluster.kubectl("patch", "cm", "settings", "-p", '{"data":{"c":"3"}}')
    cluster.kubectl("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"a":null}}')
    cluster.kubectl("patch", "cm", "settings", "--type=json", "-p", '[{"op":"replace","path":"/data/b","value":"4"}]')
    assert cluster.read("cm", "settings")["data"] == {"b": "4", "c": "3"}


def test_apply_creates_changes_and_leaves_alone(cluster: Cluster) -> None:
    assert "created" in cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "unchanged" in cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "configured" in cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1", "nginx:2"))
    assert cluster.read("deploy", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    wrong = cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("replicas", "replica"), fails=True)
    assert 'unknown field "spec.replica"' in wrong
    cluster.kubectl("scale", "deploy", "web", "--replicas=5")
    assert cluster.kubectl("get", "deploy", "web").splitlines()[1].split()[1] == "0/5"
    cluster.kubectl("delete", "deploy", "web")


def test_server_side_apply_knows_who_owns_what(cluster: Cluster) -> None:
    manifest = DEPLOYMENT.replace("web", "owned")
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    changed = manifest.replace("nginx:1", "nginx:2")
    refused = cluster.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=changed, fails=True)
    assert 'conflict with "kubectl"' in refused
    assert '.spec.template.spec.containers[name="c"].image' in refused
    cluster.kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=changed)
    live = cluster.read("deploy", "owned")
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert len(live["spec"]["template"]["spec"]["containers"][0]["ports"]) == 1
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=changed.replace("  replicas: 2\n", ""))
    assert cluster.read("deploy", "owned")["spec"]["replicas"] == 2, "the other manager still wants it"
    cluster.kubectl("delete", "deploy", "owned")


def test_custom_resources(cluster: Cluster) -> None:
    unknown = cluster.kubectl("create", "-f", "-", stdin=POD_GROUP, fails=True)
    assert 'no matches for kind "PodGroup" in version "scheduling.x-k8s.io/v1alpha1"' in unknown
    cluster.kubectl("apply", "-f", "-", stdin=DEFINITION)
    cluster.kubectl("wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io", "--timeout=10s")
    cluster.kubectl("apply", "-f", "-", stdin=POD_GROUP)
    assert cluster.kubectl("get", "pg").split() == ["NAME", "MIN", "gang", "3"]
    assert cluster.read("pg", "gang")["spec"]["scheduleTimeoutSeconds"] == 60
    refused = cluster.kubectl("patch", "pg", "gang", "--type=merge", "-p", '{"spec":{"minMember":0}}', fails=True)
    assert "spec.minMember: Invalid value: 0" in refused
    assert "minMember" in cluster.kubectl("explain", "podgroups.scheduling.x-k8s.io.spec")
    cluster.kubectl("delete", "crd", "podgroups.scheduling.x-k8s.io")
    time.sleep(0.1)
    assert "gang" not in cluster.kubectl("get", "podgroups.v1alpha1.scheduling.x-k8s.io", fails=True).split()


def test_cordon_taint_and_drain(cluster: Cluster) -> None:
    cluster.kubectl("run", "guest", "--image=nginx")
    bind(cluster, "guest", "n2")
    assert "n2" in cluster.kubectl("get", "pod", "guest", "-o", "wide")
    assert "already assigned to node" in _second_binding(cluster, "guest")
    cluster.kubectl("cordon", "n2")
    assert "Ready,SchedulingDisabled" in cluster.kubectl("get", "node", "n2")
    cluster.kubectl("uncordon", "n2")
    cluster.kubectl("taint", "node", "n2", "a=b:NoSchedule")
    assert cluster.read("node", "n2")["spec"]["taints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    cluster.kubectl("taint", "node", "n2", "a-")
    drained = cluster.kubectl("drain", "n2", "--force", "--grace-period=0", "--timeout=20s")
    assert "pod/guest evicted" in drained
    assert "node/n2 drained" in drained
    cluster.kubectl("uncordon", "n2")


def _second_binding(cluster: Cluster, pod: str) -> str:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": "n1"}}
    path = f"/api/v1/namespaces/default/pods/{pod}/binding"
    return cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body), fails=True)


def test_an_eviction_that_a_budget_forbids(cluster: Cluster) -> None:
    cluster.kubectl("run", "kept", "--image=nginx", "--labels=app=kept")
    bind(cluster, "kept", "n1")
    ready = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    cluster.kubectl("patch", "pod", "kept", "--subresource=status", "-p", ready)
    cluster.kubectl("create", "pdb", "kept", "--selector=app=kept", "--min-available=1")
    counts = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    status = json.dumps({"status": {"observedGeneration": 1, **counts}})
    cluster.kubectl("patch", "pdb", "kept", "--subresource=status", "--type=merge", "-p", status)
    refused = cluster.kubectl("drain", "n1", "--force", "--timeout=2s", fails=True)
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    cluster.kubectl("uncordon", "n1")
    cluster.kubectl("delete", "pdb", "kept")
    cluster.kubectl("delete", "pod", "kept", "--force", "--grace-period=0")


def test_wait_and_watch(cluster: Cluster) -> None:
    cluster.kubectl("create", "configmap", "watched", "--from-literal=a=1")
    command = [str(KUBECTL), "--kubeconfig", str(cluster.kubeconfig), "get", "cm", "watched", "-w", "-o", "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().strip() == "configmap/watched"
        cluster.kubectl("label", "cm", "watched", "x=y")
        assert watching.stdout.readline().strip() == "configmap/watched"
        watching.terminate()
    cluster.kubectl("run", "short", "--image=nginx")
    waiting = subprocess.Popen(
        [str(KUBECTL), "--kubeconfig", str(cluster.kubeconfig), "wait", "--for=delete", "pod/short", "--timeout=20s"]
    )
    cluster.kubectl("delete", "pod", "short")
    assert waiting.wait(20) == 0


def test_events_show_in_both_apis(cluster: Cluster) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "someone", "namespace": "default", "apiVersion": "v1"},
        "reason": "FailedScheduling",
        "note": "0/2 nodes are available: 2 Insufficient cpu.",
        "type": "Warning",
        "action": "Scheduling",
        "reportingController": "default-scheduler",
        "reportingInstance": "here",
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(event))
    assert "Insufficient cpu" in cluster.kubectl("events", "--for", "pod/someone")
    line = cluster.kubectl("get", "events", "--field-selector", "involvedObject.name=someone").splitlines()[1]
    assert line.split()[1:4] == ["Warning", "FailedScheduling", "pod/someone"]


def test_namespaces_quotas_of_kinds_and_help(cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", "team-a")
    cluster.kubectl("-n", "team-a", "create", "secret", "generic", "s", "--from-literal=k=v")
    assert cluster.read("-n", "team-a", "secret", "s")["data"] == {"k": "dg=="}
    kinds = cluster.kubectl("api-resources", "-o", "name").split()
    assert {"pods", "nodes", "deployments.apps", "leases.coordination.k8s.io", "resourceclaims.resource.k8s.io"} <= set(kinds)
    assert "PodSpec" in cluster.kubectl("explain", "pod.spec")
    assert "yes" in cluster.kubectl("auth", "can-i", "create", "pods")
    assert "[*]" in cluster.kubectl("auth", "can-i", "--list")
    assert "v1.37.0-rc.1+kubesched" in cluster.kubectl("version")
    assert "is invalid" in cluster.kubectl("create", "namespace", "Team_B", fails=True)
    for kind in ("priorityclass", "job", "service"):
        extra = {
            "priorityclass": ["p", "--value=7"],
            "job": ["j", "--image=busybox"],
            "service": ["clusterip", "s", "--tcp=80"],
        }
        cluster.kubectl("create", kind, *extra[kind])
    assert cluster.read("pc", "p")["value"] == 7
    assert cluster.kubectl("get", "svc", "s").splitlines()[1].split()[1] == "ClusterIP"


def test_differences_edits_and_what_no_container_can_answer(cluster: Cluster) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"
    cluster.kubectl("apply", "-f", "-", stdin=config)
    assert cluster.kubectl("diff", "-f", "-", stdin=config) == ""
    changed = cluster.kubectl("diff", "-f", "-", stdin=config.replace("'1'", "'2'"), fails=True)
    assert '-  a: "1"\n+  a: "2"' in changed
    edited = cluster.kubectl("edit", "configmap", "c", env={"KUBE_EDITOR": "sed -i s/'a: \"1\"'/'a: \"3\"'/"})
    assert "configmap/c edited" in edited
    assert cluster.read("configmap", "c")["data"] == {"a": "3"}
    cluster.kubectl("run", "p", "--image=i")
    said = cluster.kubectl("logs", "p", fails=True)
    assert "this cluster only pretends to run pods" in said
    assert "100m" in cluster.kubectl("top", "nodes"), "what a node uses without pods"
    cluster.kubectl("debug", "p", "--image=busybox", "--container=debugger")
    assert cluster.read("pod", "p")["spec"]["ephemeralContainers"][0]["name"] == "debugger"
    assert "system:admin" in cluster.kubectl("auth", "whoami")


@pytest.fixture
def living(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with kubelets and controllers, and the simplest scheduler: this test binds by hand."""
    running = Cluster(tmp_path, "--port", "0", "--nodes", "3")
    yield running
    running.stop()


def schedule(cluster: Cluster, seconds: float = 20.0, until: int = 0) -> int:
    """Bind pending pods to nodes in turn until `until` pods are bound."""
    bound = 0
    end = time.monotonic() + seconds
    while bound < until and time.monotonic() < end:
        for pod in cluster.read("pods", "--field-selector", "spec.nodeName=")["items"]:
            if "deletionTimestamp" not in pod["metadata"]:
                bind(cluster, pod["metadata"]["name"], f"node-{bound % 3}")
                bound += 1
        time.sleep(0.05)
    return bound


def test_a_deployment_rolls_out_and_back(living: Cluster) -> None:
    living.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert schedule(living, until=2) == 2
    assert "successfully rolled out" in living.kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    lines = living.kubectl("get", "pods", "-l", "app=web", "-o", "wide").splitlines()
    assert [line.split()[1:3] for line in lines[1:]] == [["1/1", "Running"]] * 2
    living.kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=10s")
    living.kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=web", "--timeout=10s")
    assert "ScalingReplicaSet" in living.kubectl("describe", "deploy", "web")
    assert "Started" in living.kubectl("events")
    living.kubectl("set", "image", "deploy/web", "c=nginx:2")
    assert schedule(living, until=2) >= 1
    schedule(living, seconds=3, until=1)
    assert "successfully rolled out" in living.kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    assert "nginx:2" in living.kubectl("get", "rs", "-o", "wide")
    assert living.kubectl("rollout", "history", "deploy/web").split()[-4::2] == ["1", "2"]
    living.kubectl("rollout", "undo", "deploy/web")
    assert living.read("deploy", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"
    living.kubectl("delete", "deploy", "web", "--cascade=foreground", "--timeout=20s")
    assert living.read("pods")["items"] == []


def test_a_drain_moves_pods_and_a_namespace_ends(living: Cluster) -> None:
    living.kubectl("create", "deployment", "app", "--image=nginx:1", "--replicas=2")
    schedule(living, until=2)
    living.kubectl("wait", "--for=condition=Available", "deploy/app", "--timeout=20s")
    drained = living.kubectl("drain", "node-0", "--timeout=30s")
    assert "evicted" in drained
    assert "node/node-0 drained" in drained
    assert "node.kubernetes.io/unschedulable" in living.kubectl("describe", "node", "node-0")
    living.kubectl("create", "ns", "gone")
    living.kubectl("-n", "gone", "create", "cm", "x")
    living.kubectl("delete", "ns", "gone", "--timeout=20s")
    living.kubectl("apply", "-f", "-", stdin=JOB)
    schedule(living, until=2)
    living.kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=30s")


def test_https_with_tokens(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret-a,admin,1,"system:masters"\nsecret-b,bob,2,"viewers"\n')
    running = Cluster(
        tmp_path,
        "--https",
        "--secure-port",
        "0",
        "--token-file",
        str(tokens),
        "--data-dir",
        str(tmp_path / "data"),
        *NO_WORLD,
    )
    try:
        running.kubectl("create", "ns", "mine")
        refused = running.kubectl("--token", "secret-b", "get", "pods", fails=True)
        assert 'User "bob" cannot list resource "pods"' in refused
        assert "Unauthorized" in running.kubectl("--token", "wrong", "get", "pods", fails=True)
        running.kubectl("create", "clusterrole", "see", "--verb=get,list", "--resource=pods")
        running.kubectl("create", "clusterrolebinding", "bob-sees", "--clusterrole=see", "--user=bob")
        assert "No resources found" in running.kubectl("--token", "secret-b", "get", "pods")
        assert running.kubectl("--token", "secret-b", "auth", "can-i", "delete", "pods", fails=True).startswith("no")
        assert "bob" in running.kubectl("--token", "secret-b", "auth", "whoami")
    finally:
        running.stop()
    again = Cluster(
        tmp_path, "--https", "--secure-port", "0", "--token-file", str(tokens), "--data-dir", str(tmp_path / "data")
    )
    assert "mine" in again.kubectl("get", "ns")
    again.stop()


def test_tokens_bring_tls_along(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret-b,bob,2,"viewers"\nsecret-a,admin,1,"system:masters"\n')
    running = Cluster(tmp_path, "--port", "0", "--token-file", str(tokens), *NO_WORLD)
    try:
        config = json.loads(running.kubeconfig.read_text(encoding="utf-8"))
        assert config["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
        assert config["clusters"][0]["cluster"]["certificate-authority-data"]
        assert "system:masters" in running.kubectl("auth", "whoami"), "the token was sent"
        running.kubectl("create", "ns", "mine")
        refused = running.kubectl("--token", "secret-b", "get", "ns", fails=True)
        assert 'User "bob" cannot list resource "namespaces"' in refused
        trust = json.loads(
            running.kubectl("-n", "kube-system", "get", "cm", "extension-apiserver-authentication", "-o", "json")
        )
        authorities = [trust["data"][name] for name in ("client-ca-file", "requestheader-client-ca-file")]
        assert all(x509.load_pem_x509_certificate(pem.encode()) for pem in authorities) and len(set(authorities)) == 2
        assert trust["data"]["requestheader-allowed-names"] == '["front-proxy-client"]'
    finally:
        running.stop()
