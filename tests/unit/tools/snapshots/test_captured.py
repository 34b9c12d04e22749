"""A captured cluster: the state at the end of a log, and the same log again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.errors import Forbidden, SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.kinds import KIND_TABLE
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.resource import DeviceTaintRule
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import default_configuration
from kubesched.testing import node, pod
from kubesched.tools.simulation.replay import replay
from kubesched.tools.snapshots.captured import Captured, capture, read_captured


def line(**fields: Any) -> bytes:
    return msgspec.json.encode({"at": 5.0, **fields})


def changed(obj: Any) -> bytes:
    return line(kind=obj.kind, object=codec.to_dict(obj))


def test_a_captured_cluster_is_a_log_that_says_the_same() -> None:
    captured = Captured(7.5, [node("a"), pod("old", on="a"), pod("new")], seed=3)
    again = read_captured(captured.lines())
    assert (again.at, again.seed, again.objects) == (captured.at, captured.seed, captured.objects)
    assert [(each["pod"], each["note"]) for each in replay(captured.lines())] == [
        ("default/new", "Successfully assigned default/new to a")
    ]


def test_of_a_longer_log_the_state_at_its_end_is_taken() -> None:
    lines = [
        line(seed=0),
        changed(node("a")),
        changed(node("b")),
        changed(pod("one")),
        changed(pod("two")),
        line(bound="uid-default-one", node="a"),
        line(kind="Node", gone={"name": "b"}),
        changed(pod("two", labels={"x": "y"})),
        line(bound="uid-of-nobody", node="a"),
    ]
    captured = read_captured(lines)
    assert [each.metadata.name for each in captured.of(Node)] == ["a"]
    assert {each.key: (each.spec.node_name, each.metadata.labels) for each in captured.of(Pod)} == {
        "default/one": ("a", {}),
        "default/two": ("", {"x": "y"}),
    }


def test_an_engine_believes_in_it_whatever_the_order() -> None:
    captured = Captured(7.5, [pod("new"), pod("old", on="a"), node("a")])
    gates = config.Gates.defaults()
    engine = captured.engine(default_configuration(gates), gates)
    assert (engine.store.n_pods, engine.queue.n_active, engine.handle.clock.now()) == (1, 1, 7.5)


@pytest.mark.parametrize("lines", [[], [b"{}"], [b'{"at": 1}'], [b"no json"]])
def test_what_is_no_log_is_said_in_one_line(lines: list[bytes]) -> None:
    with pytest.raises(SchedulerError) as caught:
        read_captured(lines)
    assert "inbox log" in str(caught.value) and "\n" not in str(caught.value)


def test_a_snapshot_that_is_cut_off_is_not_a_smaller_cluster() -> None:
    lines = list(Captured(7.5, [node("a"), pod("old", on="a"), pod("new")], seed=3).lines())
    for n in range(1, len(lines)):
        with pytest.raises(SchedulerError, match=f"cut off: {n - 1} of its 3 objects are there"):
            read_captured(lines[:n])


@pytest.mark.parametrize(
    ("told", "release"), [("1.36", (1, 36)), ("1.99", (1, 37)), ("1.2", (1, 33)), ("2", None), (7, None), (None, None)]
)
def test_a_release_that_is_told_is_emulated_as_near_as_can_be(told: object, release: tuple[int, int] | None) -> None:
    first = msgspec.json.encode({"at": 1.0, "seed": 0} | ({"release": told} if told is not None else {}))
    assert read_captured([first]).release == release


def test_the_release_of_a_cluster_goes_with_its_snapshot() -> None:
    cluster = Captured(5.0, [node("a")], release=(1, 36))
    assert read_captured(cluster.without_applied_manifests().lines()).release == (1, 36)


class Server:
    """An API server that serves every kind in its first version, but for what it was told."""

    server = origin = "https://cluster"

    def __init__(self, rules_in: tuple[str, ...] = ("v1",), forbidden: tuple[str, ...] = ()) -> None:
        self.rules_in, self.forbidden = [f"resource.k8s.io/{version}" for version in rules_in], forbidden
        self.listed: list[str] = []

    async def request(self, method: str, path: str) -> bytes:
        if path == "/version":
            return b'{"major": "1", "minor": "37"}'
        if "?" not in path:
            return msgspec.json.encode({"resources": [{"name": name} for name in self._served(path.split("/", 2)[2])]})
        address = path.partition("?")[0]
        self.listed.append(address)
        if (plural := address.rpartition("/")[2]) in self.forbidden:
            raise Forbidden(403, "Forbidden", f"{plural} is forbidden")
        items = [{"metadata": {"name": "rule"}}] if address.endswith("/devicetaintrules") else []
        return msgspec.json.encode({"items": items, "metadata": {}})

    def _served(self, api_version: str) -> list[str]:
        rows = [info.plural for info in KIND_TABLE if info.api_version == api_version and info.plural != "devicetaintrules"]
        return [*rows, "devicetaintrules"] if api_version in self.rules_in else rows


@pytest.mark.parametrize(
    ("rules_in", "used"),
    [(("v1",), "v1"), (("v1", "v1beta2"), "v1"), (("v1beta2",), "v1beta2"), (("v1alpha3", "v1beta2"), "v1beta2")],
)
async def test_a_kind_is_listed_in_the_version_that_is_served(rules_in: tuple[str, ...], used: str) -> None:
    server, warnings = Server(rules_in), list[str]()
    found = await capture(server, config.Gates.fitting(["DRADeviceTaintRules=true"]), 5.0, warnings.append)  # type: ignore[arg-type]
    assert f"/apis/resource.k8s.io/{used}/devicetaintrules" in server.listed
    assert [(rule.name, rule.api_version) for rule in found.of(DeviceTaintRule)] == [("rule", f"resource.k8s.io/{used}")]
    assert (found.release, warnings) == ((1, 37), [])


async def test_kinds_that_are_not_served_or_forbidden_are_said_and_end_nothing() -> None:
    warnings: list[str] = []
    gates = config.Gates.fitting(["DRADeviceTaintRules=true"])
    await capture(Server((), ("volumeattachments", "runtimeclasses")), gates, 5.0, warnings.append)  # type: ignore[arg-type]
    tried = "resource.k8s.io/v1 or resource.k8s.io/v1beta2 or resource.k8s.io/v1alpha3"
    assert warnings == [
        "left out are volumeattachments (attached volumes are not counted), runtimeclasses (new pods get no overhead): "
        "volumeattachments is forbidden",
        f"left out are devicetaintrules (devices have only the taints of their slices): the server does not serve {tried}",
    ]
    with pytest.raises(Forbidden, match="nodes is forbidden"):
        await capture(Server(forbidden=("nodes",)), gates, 5.0, warnings.append)  # type: ignore[arg-type]
