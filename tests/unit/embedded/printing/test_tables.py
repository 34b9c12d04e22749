"""Tables: what `kubectl get` shows for objects in their various states."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.printing.cells import human_duration, node_status, pod_status
from kubesched.embedded.printing.tables import encode_table
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.verbs.reading import Listing

DURATIONS = [
    (0, "0s"),
    (119, "119s"),
    (120, "2m"),
    (123, "2m3s"),
    (605, "10m"),
    (3 * 3600 - 1, "179m"),
    (3 * 3600, "3h"),
    (3 * 3600 + 300, "3h5m"),
    (8 * 3600 + 59, "8h"),
    (47 * 3600, "47h"),
    (48 * 3600, "2d"),
    (50 * 3600, "2d2h"),
    (8 * 86400, "8d"),
    (729 * 86400, "729d"),
    (731 * 86400, "2y1d"),
    (9 * 365 * 86400, "9y"),
    (-5, "<invalid>"),
]


@pytest.mark.parametrize(("seconds", "text"), DURATIONS)
def test_durations_read_as_in_kubectl(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def container(**state: Any) -> dict:
    return {"name": "c", "ready": "running" in state, "state": state}


STATES: list[tuple[str, dict, str]] = [
    ("pending", {"phase": "Pending"}, "Pending"),
    ("a reason", {"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    (
        "waiting",
        {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ImagePullBackOff"})]},
        "ImagePullBackOff",
    ),
    ("crashed", {"phase": "Running", "containerStatuses": [container(terminated={"exitCode": 3})]}, "ExitCode:3"),
    ("killed", {"phase": "Running", "containerStatuses": [container(terminated={"signal": 9})]}, "Signal:9"),
    (
        "done",
        {"phase": "Succeeded", "containerStatuses": [container(terminated={"reason": "Completed", "exitCode": 0})]},
        "Completed",
    ),
    ("initialising", {"phase": "Pending", "initContainerStatuses": [container(running={})]}, "Init:0/1"),
    (
        "init failed",
        {"phase": "Pending", "initContainerStatuses": [container(terminated={"exitCode": 1, "reason": "Error"})]},
        "Init:Error",
    ),
    (
        "gated",
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
        "SchedulingGated",
    ),
]


@pytest.mark.parametrize(("status", "word"), [row[1:] for row in STATES], ids=[row[0] for row in STATES])
def test_the_status_of_a_pod(status: dict, word: str) -> None:
    pod = {"metadata": {}, "spec": {"initContainers": [{"name": "i"}]}, "status": status}
    assert pod_status(pod) == word
    assert pod_status({**pod, "metadata": {"deletionTimestamp": "x"}}) == "Terminating"


def test_the_status_of_a_node() -> None:
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert node_status(ready) == "Ready"
    assert node_status({**ready, "spec": {"unschedulable": True}}) == "Ready,SchedulingDisabled"
    assert node_status({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}) == "NotReady"
    assert node_status({}) == "Unknown"


def test_every_kind_can_be_shown_even_when_it_is_empty() -> None:
    store = ObjectStore(ManualClock(), seed=1)
    for resource in store.context.catalogue:
        bare = {"metadata": {"name": "x", "namespace": "d"}, "spec": {}}
        entry = Entry("d/x", bare, 1)
        table = msgspec.json.decode(encode_table(resource, Listing([entry], 1), 0.0, "Metadata"))
        titles = [column["name"] for column in table["columnDefinitions"]]
        assert len(titles) == len(table["rows"][0]["cells"]), resource.qualified
        assert titles[0] == "Name" or resource.plural == "events"


def test_how_much_of_the_object_goes_along() -> None:
    store = ObjectStore(ManualClock(), seed=1)
    store.create("nodes", {"metadata": {"name": "n"}})
    nodes = store.context.resource("nodes")

    def shown(include: str) -> Any:
        return msgspec.json.decode(encode_table(nodes, store.list("nodes"), 0.0, include))["rows"][0]["object"]

    assert shown("Metadata")["kind"] == "PartialObjectMetadata"
    assert shown("Object")["kind"] == "Node"
    assert shown("None") is None
