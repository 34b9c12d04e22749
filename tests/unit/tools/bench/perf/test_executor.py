"""Each operation against the embedded API server, with something in the scheduler's place that binds every pod to a node."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.storage.watch import Change
from kubesched.errors import SchedulerError
from kubesched.tools.bench.perf import cases
from kubesched.tools.bench.perf.controllers import controllers_of
from kubesched.tools.bench.perf.executor import Executor
from kubesched.tools.bench.perf.informer import PodInformer
from kubesched.tools.bench.perf.rest import Rest
from kubesched.tools.bench.processes import connected, following_pods

FILES = {
    "pod.yaml": "metadata: {generateName: pod-, labels: {color: blue}}\nspec: {containers: [{name: c, image: i}]}\n",
    "pod-n.yaml": "metadata: {name: 'pod-{{.Index}}-of-{{.Count}}'}\nspec: {containers: [{name: c, image: '{{.image}}'}]}\n",
    "gated.yaml": "metadata: {generateName: g-}\nspec: {schedulingGates: [{name: g}], containers: [{name: c, image: i}]}\n",
    "node.yaml": "metadata: {name: 'dra-{{.Index}}'}\nstatus: {capacity: {cpu: '8', memory: 1Gi, pods: '9'}}\n",
    "secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: 's-{{.Index}}'}\nstringData: {of: '{{.Count}}'}\n",
    "update.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: 'dra-{{.Index}}', labels: {is: new}}\n"
    "status: {allocatable: {cpu: '16', memory: 1Gi, pods: '9'}}\n",
    "churn-pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: ch-}\nspec: {containers: [{name: c, image: i}]}\n",
    "churn-node.yaml": "apiVersion: v1\nkind: Node\nmetadata: {generateName: churned-}\n",
    "namespace.yaml": "metadata: {labels: {team: devops}}\n",
    "pv.yaml": "spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: d.example.com}}\n",
    "pvc.yaml": "metadata: {annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\n"
    "spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}\n",
    "class.yaml": "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceClass\nmetadata: {name: test-class}\n"
    "spec: {selectors: [{cel: {expression: 'device.driver == \"d.example.com\"'}}]}\n",
    "claim.yaml": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: 'claim-{{.Index}}'}\n"
    "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: test-class}}]}}\n",
    "claim-plain.yaml": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {generateName: c-}\n"
    "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: test-class}}]}}\n",
    "group.yaml": "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: 'group-{{.Index}}'}\n"
    "spec: {schedulingPolicy: {gang: {minCount: {{.min}}}}}\n",
    "unknown.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n",
}


def bind_everything(store: ObjectStore) -> None:
    """Bind every new pod without gates a moment later, as a scheduler would."""

    def bind(change: Change) -> None:
        pod = change.new.obj if change.new is not None and change.old is None else None
        if pod is not None and not pod["spec"].get("schedulingGates"):
            asyncio.get_running_loop().call_soon(_bind, store, pod["metadata"])

    store.listen("pods", bind)


def _bind(store: ObjectStore, meta: dict[str, Any]) -> None:
    with contextlib.suppress(SchedulerError):  # it is gone already
        store.bind(meta["namespace"], meta["name"], "some-node")


Run = Callable[..., Any]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[tuple[ObjectStore, Run]]:
    """Give a store, and something that runs operations against the server in front of it."""
    async with ApiServer() as server:
        controllers = controllers_of(server.store)
        controllers.start()
        bind_everything(server.store)
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")

        async def run(operations: str, *, patience: float = 5.0, meanwhile: Any = None) -> Executor:
            for name, text in FILES.items():
                (tmp_path / name).write_text(text)
            lines = "".join(f"  - {line.strip()}\n" for line in operations.strip().splitlines())
            end = "  - {opcode: createPods, namespace: end, count: 0, collectMetrics: true}\n"
            text = f"- name: C\n  workloadTemplate:\n{lines}{end}  workloads:\n  - {{name: w}}\n"
            (tmp_path / cases.FILE).write_text(text)
            (workload,) = cases.read(tmp_path)
            assert workload.problem == ""
            informer = PodInformer()
            async with connected(str(kubeconfig)) as connection, following_pods(connection, informer):
                rest = Rest(connection)
                executor = Executor(workload, rest, informer, attempts, patience=patience)
                try:
                    await executor.run()
                    if meanwhile is not None:
                        await meanwhile(rest)
                finally:
                    await executor.close()
            return executor

        yield server.store, run
        controllers.stop()


async def attempts() -> dict[float, float]:
    return {0.1: 1.0, math.inf: 1.0}


def names(store: ObjectStore, resource: str, namespace: str = "") -> list[str]:
    return sorted(one["metadata"]["name"] for one in store.list(resource, namespace).items)


def when(store: ObjectStore, resource: str, is_so: Callable[[Change], bool]) -> asyncio.Event:
    """Return an event that is set at the first change of which something is so."""
    event = asyncio.Event()
    store.listen(resource, lambda change: event.set() if is_so(change) else None)
    return event


async def test_nodes_with_strategies(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    await run("""
        {opcode: createNodes, count: 2}
        {opcode: createNodes, count: 3, labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}}
        {opcode: createNodes, count: 2, uniqueNodeLabelStrategy: {labelKey: mine}}
        {opcode: createNodes, count: 1, nodeTemplatePath: node.yaml, nodeAllocatableStrategy: {\
 nodeAllocatable: {x.example/y: '3'}, csiNodeAllocatable: {d.example.com: {count: 39}},\
 migratedPlugins: [kubernetes.io/aws-ebs]}}
    """)
    nodes = {one["metadata"]["name"]: one for one in objects.list("nodes").items}
    assert sorted(nodes)[1:] == [f"node-{op}-{i:05d}" for op, i in ((0, 0), (0, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6))]
    labels = {name: node["metadata"]["labels"] for name, node in nodes.items()}
    assert all(labels[name]["kubernetes.io/hostname"] == name for name in nodes)
    assert [labels[f"node-1-0000{i}"]["zone"] for i in (2, 3, 4)] == ["a", "b", "a"]
    assert labels["node-2-00005"]["mine"] != labels["node-2-00006"]["mine"]
    assert nodes["node-0-00000"]["status"]["allocatable"] == {"cpu": "4", "memory": "32Gi", "pods": "110"}
    assert nodes["dra-0"]["status"]["allocatable"] == {"cpu": "8", "memory": "1Gi", "pods": "9", "x.example/y": "3"}
    csi = objects.get("csinodes", "dra-0")
    assert csi["spec"]["drivers"] == [{"name": "d.example.com", "nodeID": "dra-0", "allocatable": {"count": 39}}]
    assert csi["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"] == "kubernetes.io/aws-ebs"


async def test_pods_are_created_waited_for_and_measured(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    done = await run("""
        {opcode: createNamespaces, prefix: team, count: 2, namespaceTemplatePath: namespace.yaml}
        {opcode: createPods, count: 2}
        {opcode: createPods, count: 3, namespace: named, podTemplatePath: pod-n.yaml, templateParams: {image: mine},\
 collectMetrics: true}
        {opcode: createPodSets, count: 2, namespacePrefix: team, createPodsOp: {count: 2, podTemplatePath: pod.yaml}}
    """)
    assert objects.get("namespaces", "team-1")["metadata"]["labels"]["team"] == "devops"
    assert len(names(objects, "pods", "namespace-1")) == 2
    assert names(objects, "pods", "named") == ["pod-0-of-3", "pod-1-of-3", "pod-2-of-3"]
    assert len(names(objects, "pods", "team-0")) == len(names(objects, "pods", "team-1")) == 2
    pod = objects.get("pods", "pod-2-of-3", "named")
    assert pod["spec"]["containers"][0]["image"] == "mine"
    assert pod["metadata"]["labels"] == {"signature": "signature-label-2"}, "templateParams are of 1.37, and so is this label"
    row = done.rows[0]
    assert (row["collection"], row["scheduled"]) == ("named", 3)
    assert row["throughput"] > 0 and row["attempt_ms"] is None


async def test_pods_with_volumes(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    await run(
        "{opcode: createPods, namespace: v, count: 2, podTemplatePath: pod.yaml, persistentVolumeTemplatePath: pv.yaml,"
        " persistentVolumeClaimTemplatePath: pvc.yaml}"
    )
    assert names(objects, "persistentvolumes") == ["v-vol-0", "v-vol-1"]
    claim, volume = objects.get("persistentvolumeclaims", "pvc-1", "v"), objects.get("persistentvolumes", "v-vol-1")
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == ("v-vol-1", "Bound")
    assert (volume["spec"]["csi"]["volumeHandle"], volume["spec"]["claimRef"]["name"]) == ("v-vol-1", "pvc-1")
    mounted = {pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] for pod in objects.list("pods", "v").items}
    assert mounted == {"pvc-0", "pvc-1"}


async def test_barriers_and_collections_of_their_own(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    done = await run("""
        {opcode: startCollectingMetrics, name: mine, namespaces: [a, b], labelSelector: {color: blue}}
        {opcode: createPods, namespace: a, count: 2, podTemplatePath: pod.yaml, skipWaitToCompletion: true}
        {opcode: createPods, namespace: b, count: 2, skipWaitToCompletion: true}
        {opcode: barrier, namespaces: [a], labelSelector: {color: blue}}
        {opcode: createPods, namespace: gated, count: 2, podTemplatePath: gated.yaml, skipWaitToCompletion: true}
        {opcode: barrier, stageRequirement: Attempted}
        {opcode: stopCollectingMetrics}
        {opcode: sleep, duration: 1ms}
    """)
    assert (done.rows[0]["collection"], done.rows[0]["scheduled"]) == ("mine", 2)
    assert len(names(objects, "pods", "gated")) == 2


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        (
            "{opcode: createPods, namespace: g, count: 2, podTemplatePath: gated.yaml}",
            "operation 0, createPods: only 0 of 2 pods in namespace g were scheduled within 0.2 s, g/g-",
        ),
        ("{opcode: barrier, namespaces: [x]}", "operation 0, barrier: the namespace x is not known"),
        ("{opcode: stopCollectingMetrics}", "operation 0, stopCollectingMetrics: no metrics are being collected"),
        (
            "{opcode: createAny, templatePath: unknown.yaml}",
            "operation 0, createAny: example.com/v1 Thing: the API server does not serve this kind",
        ),
        (
            "{opcode: createAny, templatePath: secret.yaml}",
            "operation 0, createAny: v1 Secret: no namespace is given for this kind",
        ),
        (
            "{opcode: updateAny, templatePath: update.yaml}",
            'operation 0, updateAny: nodes "dra-0" not found',
        ),
    ],
)
async def test_an_operation_that_fails_is_named(store: tuple[ObjectStore, Run], operations: str, said: str) -> None:
    with pytest.raises(SchedulerError) as caught:
        await store[1](operations, patience=0.2)
    assert str(caught.value).startswith(said)


async def test_a_steady_state_replaces_what_was_placed_until_its_time_is_up(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    done = await run(
        "{opcode: createPods, namespace: s, count: 2, podTemplatePath: pod.yaml, steadyState: true, duration: 300ms,"
        " collectMetrics: true}"
    )
    assert done.rows[0]["scheduled"] > 4
    assert len(names(objects, "pods", "s")) <= 4


async def test_any_object_is_created_and_updated(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    await run("""
        {opcode: createNodes, count: 2, nodeTemplatePath: node.yaml}
        {opcode: createAny, namespace: a, templatePath: secret.yaml, count: 3}
        {opcode: updateAny, templatePath: update.yaml, count: 2, updatePerSecond: 1000}
        {opcode: createPodGroups, namespace: a, templatePath: group.yaml, count: 2, templateParams: {min: 4}}
    """)
    assert names(objects, "secrets", "a") == ["s-0", "s-1", "s-2"]
    node = objects.get("nodes", "dra-1")
    assert (node["metadata"]["labels"], node["status"]["allocatable"]["cpu"]) == ({"is": "new"}, "16")
    assert objects.get("podgroups", "group-1", "a")["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}


async def test_pods_are_deleted_all_at_once_or_one_by_one(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store

    gone = when(objects, "pods", lambda change: change.new is None and not names(objects, "pods", "b"))
    await run(
        """
        {opcode: createPods, namespace: a, count: 2, podTemplatePath: gated.yaml, skipWaitToCompletion: true}
        {opcode: createPods, namespace: b, count: 3, podTemplatePath: gated.yaml, skipWaitToCompletion: true}
        {opcode: barrier, stageRequirement: Attempted}
        {opcode: deletePods, namespace: a}
        {opcode: deletePods, namespace: b, skipWaitToCompletion: true, deletePodsPerSecond: 500}
        """,
        meanwhile=lambda rest: asyncio.wait_for(gone.wait(), 5),
    )
    assert names(objects, "pods", "a") == []


@pytest.mark.parametrize("mode", ["create", "recreate"])
async def test_churn_goes_on_beside_the_other_operations(store: tuple[ObjectStore, Run], mode: str) -> None:
    objects, run = store
    seen: dict[str, set[str]] = {"pods": set(), "nodes": set()}

    def is_churned(resource: str, change: Change) -> bool:
        seen[resource].add(change.key)
        return len(seen["nodes"]) > 2

    when(objects, "pods", lambda change: is_churned("pods", change))
    done = when(objects, "nodes", lambda change: is_churned("nodes", change))
    number = "number: 3, " if mode == "create" else "number: 1, "
    await run(
        f"{{opcode: churn, mode: {mode}, {number}intervalMilliseconds: 5, templatePaths: [churn-pod.yaml, churn-node.yaml]}}",
        meanwhile=lambda rest: asyncio.wait_for(done.wait(), 5),
    )
    assert len(names(objects, "nodes")) == 3 if mode == "create" else len(names(objects, "nodes")) <= 1
    assert len(seen["pods"]) > 2 and all(key.startswith("namespace-0/ch-") for key in seen["pods"])


async def test_devices_are_published_and_claims_allocated(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    await run("""
        {opcode: createNodes, count: 2, nodeTemplatePath: node.yaml}
        {opcode: createNodes, count: 1}
        {opcode: createResourceDriver, driverName: d.example.com, nodes: dra-*, maxClaimsPerNode: 2}
        {opcode: createAny, templatePath: class.yaml}
        {opcode: createAny, namespace: init, templatePath: claim.yaml, count: 3}
        {opcode: createResourceClaims, namespace: other, templatePath: claim-plain.yaml, count: 2}
        {opcode: allocResourceClaims, namespace: init}
    """)
    assert names(objects, "resourceslices") == ["dra-0", "dra-1"]
    claims = objects.list("resourceclaims", "init").items
    given = [claim["status"]["allocation"]["devices"]["results"][0] for claim in claims]
    assert len({(one["pool"], one["device"]) for one in given}) == 3
    assert all("allocation" not in claim.get("status", {}) for claim in objects.list("resourceclaims", "other").items)
    with pytest.raises(SchedulerError, match="there is no device left for claim other/c-"):
        await run("{opcode: allocResourceClaims, namespace: other}")


async def test_what_was_made_can_be_taken_away_again(store: tuple[ObjectStore, Run]) -> None:
    objects, run = store
    before = names(objects, "namespaces")
    await run(
        """
        {opcode: createNodes, count: 2}
        {opcode: createPods, namespace: a, count: 2}
        {opcode: createAny, templatePath: class.yaml}
        """,
        meanwhile=lambda rest: rest.remove_all(),
    )
    assert (names(objects, "nodes"), names(objects, "pods"), names(objects, "deviceclasses")) == ([], [], [])
    assert names(objects, "namespaces") == before
