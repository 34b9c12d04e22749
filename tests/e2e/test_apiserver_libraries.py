"""The client libraries people use, against the embedded API server: `kubernetes` and `kubernetes_asyncio`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import kubernetes
import kubernetes_asyncio
import pytest

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.http.access import User

TOKEN = "a-token"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """Over HTTPS and with a token, as a library reaches a real cluster."""
    tokens = {TOKEN: User("admin", ("system:masters",))}
    async with ApiServer(ObjectStore(seed=1), port=None, secure_port=0, certificate_dir=tmp_path, tokens=tokens) as running:
        yield running


def a_pod(library: Any, name: str) -> Any:
    spec = library.V1PodSpec(containers=[library.V1Container(name="c", image="i")])
    return library.V1Pod(metadata=library.V1ObjectMeta(name=name, labels={"app": name}), spec=spec)


def a_deployment(library: Any) -> Any:
    labels = {"app": "x"}
    template = library.V1PodTemplateSpec(metadata=library.V1ObjectMeta(labels=labels), spec=a_pod(library, "x").spec)
    spec = library.V1DeploymentSpec(selector=library.V1LabelSelector(match_labels=labels), template=template)
    return library.V1Deployment(metadata=library.V1ObjectMeta(name="d"), spec=spec)


async def test_the_library_that_blocks(server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig", TOKEN)
    await asyncio.to_thread(_use_blocking, str(kubeconfig))


def _use_blocking(kubeconfig: str) -> None:
    library = kubernetes.client
    with kubernetes.config.new_client_from_config(kubeconfig) as api:
        core, apps = library.CoreV1Api(api), library.AppsV1Api(api)
        assert library.VersionApi(api).get_code().minor == "37"
        first = core.list_namespaced_pod("default").metadata.resource_version
        made = core.create_namespaced_pod("default", a_pod(library, "p"))
        assert made.spec.scheduler_name == "default-scheduler"
        core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"a": "b"}}})
        target = library.V1ObjectReference(kind="Node", name="n")
        binding = library.V1Binding(metadata=library.V1ObjectMeta(name="p"), target=target)
        core.create_namespaced_pod_binding("p", "default", binding, _preload_content=False)
        found = core.list_namespaced_pod("default", label_selector="a=b", field_selector="spec.nodeName=n")
        assert [pod.metadata.name for pod in found.items] == ["p"]
        stream = kubernetes.watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=first, timeout_seconds=1)
        seen = [(event["type"], event["object"].spec.node_name) for event in stream]
        assert seen == [("ADDED", None), ("MODIFIED", None), ("MODIFIED", "n")]
        apps.create_namespaced_deployment("default", a_deployment(library))
        apps.patch_namespaced_deployment_scale("d", "default", [{"op": "replace", "path": "/spec/replicas", "value": 4}])
        assert apps.read_namespaced_deployment("d", "default").spec.replicas == 4
        with pytest.raises(library.ApiException) as refused:
            core.create_namespaced_pod("default", a_pod(library, "p"))
        assert (refused.value.status, refused.value.reason) == (409, "Conflict")
        pages, token = [], None
        for number in range(5):
            core.create_namespaced_config_map("default", {"metadata": {"name": f"c{number}"}})
        while token != "":
            page = core.list_namespaced_config_map("default", limit=2, _continue=token)
            pages += [one.metadata.name for one in page.items]
            token = page.metadata._continue or ""
        assert pages == [f"c{number}" for number in range(5)]
        dynamic = kubernetes.dynamic.DynamicClient(api)
        pods = dynamic.resources.get(api_version="v1", kind="Pod")
        assert pods.get(name="p", namespace="default").spec.nodeName == "n"
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": "default"}}
        maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
        maps.server_side_apply(body={**applied, "data": {"a": "b"}}, field_manager="me")
        assert maps.get(name="s", namespace="default").data.a == "b"
        core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
        assert core.list_pod_for_all_namespaces().items == []


async def test_the_library_that_waits(server: ApiServer, tmp_path: Path) -> None:
    library = kubernetes_asyncio.client
    kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig", TOKEN)
    async with await kubernetes_asyncio.config.new_client_from_config(str(kubeconfig)) as api:
        core, apps = library.CoreV1Api(api), library.AppsV1Api(api)
        made = await core.create_namespaced_pod("default", a_pod(library, "p"))
        assert made.spec.scheduler_name == "default-scheduler"
        await core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"a": "b"}}})
        listed = await core.list_namespaced_pod("default", label_selector="a=b")
        assert [pod.metadata.name for pod in listed.items] == ["p"]
        server.store.bind("default", "p", "n")
        version = listed.metadata.resource_version
        stream = kubernetes_asyncio.watch.Watch().stream(
            core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=1
        )
        seen = [(event["type"], event["object"].spec.node_name) async for event in stream]
        assert seen == [("MODIFIED", "n")]
        with pytest.raises(library.ApiException) as refused:
            await core.create_namespaced_pod("default", a_pod(library, "p"))
        assert refused.value.status == 409
        await apps.create_namespaced_deployment("default", a_deployment(library))
        await apps.patch_namespaced_deployment_scale("d", "default", {"spec": {"replicas": 4}})
        assert (await apps.read_namespaced_deployment("d", "default")).spec.replicas == 4
        await core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
        assert (await core.list_pod_for_all_namespaces()).items == []
