"""NodePorts."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.plugins import NodePorts
from kubesched.testing import node, pod


def with_ports(name: str, *ports: dict[str, Any], on: str = "", init: list[dict[str, Any]] | None = None) -> Pod:
    spec = {"containers": [{"name": "c", "ports": list(ports)}], "initContainers": init or [], "nodeName": on}
    return codec.convert({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}, Pod)


def port(number: int, ip: str = "", protocol: str = "") -> dict[str, Any]:
    return {"containerPort": 1, "hostPort": number, "hostIP": ip, "protocol": protocol}


TAKEN = {"a": ("Unschedulable", ["node(s) didn't have free ports for the requested pod ports"])}


@pytest.mark.parametrize(
    ("sentence", "held", "wanted", "fits"),
    [
        ("the same port", port(80), port(80), False),
        ("another port", port(80), port(81), True),
        ("another protocol", port(80, protocol="TCP"), port(80, protocol="UDP"), True),
        ("no protocol is TCP", port(80), port(80, protocol="TCP"), False),
        ("two addresses", port(80, "10.0.0.1"), port(80, "10.0.0.2"), True),
        ("one address twice", port(80, "10.0.0.1"), port(80, "10.0.0.1"), False),
        ("every address wants what one has", port(80, "10.0.0.1"), port(80, "0.0.0.0"), False),
        ("one address wants what every has", port(80), port(80, "10.0.0.1"), False),
        ("the IPv6 wildcard is an address like any other", port(80, "::"), port(80, "10.0.0.1"), True),
    ],
)
def test_ports_conflict_by_number_protocol_and_address(sentence: str, held: Any, wanted: Any, fits: bool) -> None:
    bench = Bench(NodePorts, node("a"), with_ports("old", held, on="a"))
    assert bench.refusals(with_ports("new", wanted)) == ({} if fits else TAKEN), sentence


def test_a_pod_without_host_ports_is_not_asked_about() -> None:
    bench = Bench(NodePorts, node("a"))
    assert bench.pre_filter(pod()) == "Skip"
    assert bench.pre_filter(with_ports("p", {"containerPort": 80})) == "Skip"
    init = [{"name": "i", "ports": [port(80)]}]
    assert bench.pre_filter(with_ports("p", init=init)) == "Skip", "an init container is gone before anybody asks"


def test_a_sidecars_port_counts() -> None:
    sidecar = [{"name": "s", "restartPolicy": "Always", "ports": [port(80)]}]
    bench = Bench(NodePorts, node("a"), with_ports("old", on="a", init=sidecar))
    assert bench.refusals(with_ports("new", port(80))) == TAKEN


def test_ports_of_one_pod_are_not_checked_against_each_other() -> None:
    assert Bench(NodePorts, node("a")).fits(with_ports("new", port(80), port(80))) == ["a"]
