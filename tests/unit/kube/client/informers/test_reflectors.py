"""What the server serves is followed, what it does not is named; paths are exact; reading once works page by page."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest
from client_fakes import FakeConnection, bookmark, line, page, pod, status

from kubesched.errors import AnswerLost, ConfigError, NotFound, Unreachable
from kubesched.kube.api.core import Namespace
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.resource import DeviceTaintRule
from kubesched.kube.api.workload import CoschedulingPodGroup, PodGroup
from kubesched.kube.client.informers.decoding import Decoder, garbage_kept
from kubesched.kube.client.informers.discovery import discover
from kubesched.kube.client.informers.reading import get_object, list_objects
from kubesched.kube.client.informers.reflectors import Reflectors
from kubesched.kube.client.informers.resources import WATCH_SET, collection_path, custom, object_path, watch_set
from kubesched.testing.fakes import settle


class OldServer(FakeConnection):
    """A server of 1.26 without dynamic resources, whose every list is empty."""

    groups = {"v1": ["pods", "nodes", "namespaces", "pods/status"], "apps/v1": ["replicasets"]}  # noqa: RUF012

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        self.requests.append((method, path, None))
        if path == "/version":
            return b'{"major":"1","minor":"26+","gitVersion":"v1.26.3"}'
        if "?" in path:
            return json.dumps(page(5)).encode()
        for version, names in self.groups.items():
            if path in (f"/api/{version}", f"/apis/{version}"):
                return json.dumps({"resources": [{"name": name} for name in names]}).encode()
        raise status(404, "NotFound")


class Quiet:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    def deliver(self, kind: str, old: Any, new: Any) -> None:
        raise AssertionError("nothing is there to be delivered")

    def synced(self, kind: str) -> None:
        self.kinds.append(kind)


async def test_what_is_not_served_is_noticed_and_its_plugins_named(caplog: pytest.LogCaptureFixture) -> None:
    connection = OldServer()
    sink = Quiet()
    watching = await Reflectors.prepare(connection, watch_set(["DynamicResourceAllocation"]), sink)  # type: ignore[arg-type]
    assert "ResourceClaim" in watching.by_kind and not any(each.is_synced for each in watching.by_kind.values())
    task = asyncio.create_task(watching.run())
    await asyncio.wait_for(watching.wait_synced(), 5)
    task.cancel()
    why = "the server does not serve them in resource.k8s.io/v1; pods with resource claims are not placed"
    assert f"resourceclaims are left out: {why}" in caplog.text
    assert sorted(sink.kinds) == ["Namespace", "Node", "Pod", "ReplicaSet"]
    assert all(each.is_synced or each.is_left_out for each in watching.by_kind.values())
    # 1.26 would ignore a request for a streaming list without a word, so it is not asked for one.
    assert not any("sendInitialEvents" in path for path in connection.watches)


async def test_the_first_version_that_is_served_is_taken() -> None:
    connection = OldServer()
    connection.groups = {"resource.k8s.io/v1alpha3": ["devicetaintrules"]}
    [rule] = [row for row in watch_set(["DRADeviceTaintRules"]) if row.type is DeviceTaintRule]
    served = await discover(connection, rule.api_versions)  # type: ignore[arg-type]
    assert served.version_of(rule) == "resource.k8s.io/v1alpha3"
    assert served.minor == 26


async def test_something_that_is_no_api_server_is_recognised() -> None:
    connection = FakeConnection()
    connection.replies = [b"<html>welcome</html>"]
    with pytest.raises(Unreachable, match="https://cluster/version does not answer as a Kubernetes API server does"):
        await discover(connection, [])  # type: ignore[arg-type]


def test_the_watch_set_is_the_references() -> None:
    plain = {row.plural for row in watch_set()}
    assert len(plain) == 15
    devices = {"resourceclaims", "resourceslices", "deviceclasses"}  # only with the gate may its role read them
    assert plain.isdisjoint(devices | {"devicetaintrules", "podgroups"})
    assert {row.plural for row in watch_set(["DynamicResourceAllocation"])} - plain == devices
    gated = {row.plural for row in watch_set(["GenericWorkload", "DRADeviceTaintRules"])}
    assert gated - plain == {"devicetaintrules", "podgroups"}
    assert [row.plural for row in WATCH_SET if row.field_selector] == ["pods"]


def test_resources_of_plugins_join_the_watch_set_once() -> None:
    extra = ["widgets.v1.example.com", "widgets.v1.example.com", "replicasets.v1.apps", "deployments.v1.apps"]
    rows = watch_set(extra=extra)[15:]
    assert [(row.kind, row.plural, row.api_versions) for row in rows] == [
        ("widgets.v1.example.com", "widgets", ("example.com/v1",)),
        ("Deployment", "deployments", ("apps/v1",)),
    ]


def test_kinds_of_the_same_name_do_not_get_in_each_others_way() -> None:
    rows = watch_set(["GenericWorkload"], ["podgroups.v1alpha1.scheduling.x-k8s.io"])
    assert [(row.kind, row.type) for row in rows if row.plural == "podgroups"] == [
        ("PodGroup", PodGroup),
        ("podgroups.v1alpha1.scheduling.x-k8s.io", CoschedulingPodGroup),
    ]


@pytest.mark.parametrize("name", ["widgets", "widgets.v1", ".v1.example.com", "widgets..example.com"])
def test_a_resource_with_fewer_than_two_dots_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="Incorrect event registration"):
        custom(name)


def test_paths_are_exact() -> None:
    assert collection_path("v1", "pods") == "/api/v1/pods"
    assert collection_path("v1", "pods", "a") == "/api/v1/namespaces/a/pods"
    assert collection_path("apps/v1", "replicasets", "a b") == "/apis/apps/v1/namespaces/a%20b/replicasets"
    node = Decoder(WATCH_SET[1]).page(json.dumps(page(1, {"metadata": {"name": "n/1"}})).encode()).items[0]
    assert object_path(node, "status") == "/api/v1/nodes/n%2F1/status"


async def test_reading_once_goes_through_all_pages() -> None:
    connection = FakeConnection()
    connection.replies = [page(5, pod("a", 1), token="t/1"), page(5, pod("b", 2)), pod("c", 3), status(404, "NotFound")]
    found = await list_objects(connection, Pod, "a", label_selector="x=y", field_selector="spec.nodeName=")  # type: ignore[arg-type]
    assert [obj.name for obj in found] == ["a", "b"]
    first = "/api/v1/namespaces/a/pods?limit=2000&fieldSelector=spec.nodeName%3D&labelSelector=x%3Dy"
    assert [path for _, path, _ in connection.requests] == [first, f"{first}&continue=t%2F1"]
    assert (await get_object(connection, Pod, "c", "a")).name == "c"  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await get_object(connection, Node, "n")  # type: ignore[arg-type]


def test_lists_without_items_are_empty() -> None:
    decoder = Decoder(WATCH_SET[0])
    for body in (b'{"items":null,"metadata":{"resourceVersion":"3"}}', b'{"metadata":{"resourceVersion":"3"}}'):
        found = decoder.page(body)
        assert (list(found.items), found.metadata.resource_version) == ([], "3")


@pytest.mark.parametrize("body", [b"", b'{"items":[{"metadata"', b"\xff\xff", b"[]"])
def test_pages_that_were_cut_short_are_lost_answers(body: bytes) -> None:
    with pytest.raises(AnswerLost, match="list of pods"):
        Decoder(WATCH_SET[0]).page(body)


def test_events_of_verbs_we_do_not_know_are_passed_on() -> None:
    decoder = Decoder(WATCH_SET[0])
    data = line("RENAMED", pod("a", 1)) + bookmark(2) + line("ERROR", {"status": "Failure", "code": 500})
    assert [event.verb for event in decoder.lines(data)] == ["RENAMED", "BOOKMARK", "ERROR"]


def test_the_collector_is_given_back_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), garbage_kept():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with garbage_kept():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


async def test_namespaces_have_no_namespace() -> None:
    connection = FakeConnection()
    connection.replies = [page(1, {"metadata": {"name": "kube-system"}})]
    [found] = await list_objects(connection, Namespace)  # type: ignore[arg-type]
    await settle()
    assert found.key == "kube-system"


@pytest.mark.parametrize("streams", [True, False])
async def test_first_lists_come_in_pages_where_streaming_is_switched_off(streams: bool) -> None:
    class NewServer(OldServer):
        async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
            if path == "/version":
                return b'{"major":"1","minor":"36","gitVersion":"v1.36.0"}'
            return await super().request(method, path, body, content_type)

    connection = NewServer()
    watching = await Reflectors.prepare(connection, watch_set(), Quiet(), streams=streams)  # type: ignore[arg-type]
    assert {reflector._streams for reflector in watching.by_kind.values()} == {streams}
