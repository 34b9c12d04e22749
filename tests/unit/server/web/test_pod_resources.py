"""/metrics/resources: what pods ask for, as series."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from web_fakes import client_for, new_parts

from kubesched.kube.api.codec import convert
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.cluster.pods import Templates
from kubesched.server.web import build_app
from kubesched.server.web.pod_resources import CHUNK, lines, unit_of


def view(name: str, containers: list[dict[str, Any]], status: dict[str, Any] | None = None, **spec: Any) -> PodView:
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"containers": containers, **spec},
        "status": status or {},
    }
    return Templates().view(convert(document, Pod))


def asking(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def shown(*pods: PodView) -> list[str]:
    """Return the series, without what all have in common."""
    text = "".join(lines(pods))
    return [line.removeprefix("kube_pod_resource_") for line in text.splitlines() if not line.startswith("#")]


def test_a_series_says_whose_and_where_and_how_much() -> None:
    pod = view("p", [asking({"cpu": "1500m"}, {"memory": "1Gi"})], nodeName="n1", priority=7, schedulerName="default-scheduler")
    rest = 'namespace="ns",node="n1",pod="p",priority="7",resource="{}",scheduler="default-scheduler",unit="{}"'
    assert shown(pod) == [
        f"request{{{rest.format('cpu', 'cores')}}} 1.5",
        f"limit{{{rest.format('memory', 'bytes')}}} 1073741824.0",
    ]


def amounts(pod: PodView, kind: str) -> dict[str, float]:
    found = {}
    for line in shown(pod):
        if line.startswith(kind):
            found[line.split('resource="')[1].split('"')[0]] = float(line.split("} ")[1])
    return found


def test_containers_add_up_and_init_containers_are_a_peak() -> None:
    init = [asking({"cpu": "1"}, {"cpu": "2"}, restartPolicy="Always"), asking({"cpu": "4"}, {"cpu": "5"})]
    pod = view("p", [asking({"cpu": "1"}, {"cpu": "1"}), asking({"cpu": "1"}, {"cpu": "1"})], initContainers=init)
    assert amounts(pod, "request") == {"cpu": 5.0}
    assert amounts(pod, "limit") == {"cpu": 7.0}


def test_overhead_widens_only_what_is_limited() -> None:
    pod = view("p", [asking({"cpu": "1"}, {"cpu": "2"})], overhead={"cpu": "500m", "memory": "1Mi"})
    assert amounts(pod, "request") == {"cpu": 1.5, "memory": 1048576.0}
    assert amounts(pod, "limit") == {"cpu": 2.5}


def test_the_pods_own_limits_replace_the_sum() -> None:
    pod = view("p", [asking({"cpu": "1"}, {"cpu": "2"})], resources={"limits": {"cpu": "9"}, "requests": {"cpu": "3"}})
    assert amounts(pod, "request") == {"cpu": 3.0}
    assert amounts(pod, "limit") == {"cpu": 9.0}


def test_who_is_left_out() -> None:
    one = [asking({"cpu": "1"})]
    ended = view("ended", one, {"phase": "Succeeded"}, nodeName="n1")
    never_placed = view("never-placed", one, {"phase": "Failed"})
    nothing = view("nothing", [asking({"cpu": "0"})])
    assert ["never-placed" in line for line in shown(ended, never_placed, nothing)] == [True]
    assert 'priority=""' in shown(never_placed)[0]


UNITS = [
    ("cpu", "cores"),
    ("memory", "bytes"),
    ("ephemeral-storage", "bytes"),
    ("storage", "bytes"),
    ("hugepages-2Mi", "bytes"),
    ("attachable-volumes-aws-ebs", "integer"),
    ("example.com/gpu", ""),
]


@pytest.mark.parametrize(("resource", "unit"), UNITS)
def test_units(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit


def test_many_pods_come_in_chunks_and_the_whole_is_prometheus_text() -> None:
    books = [view(f"p{number}", [asking({"cpu": "1"}, {"cpu": "2"})], schedulerName='a"b') for number in range(3)]
    pods = books * CHUNK
    parts = list(lines(pods))
    assert len(parts) == 2 * (1 + 3)
    families = {family.name: family for family in text_string_to_metric_families("".join(parts))}
    assert len(families["kube_pod_resource_limit"].samples) == len(pods)
    sample = families["kube_pod_resource_request"].samples[0]
    assert (sample.labels["scheduler"], sample.value) == ('a"b', 1.0)


async def test_only_the_leader_tells() -> None:
    leading = [False]
    pods = [view("p", [asking({"cpu": "1"})])]
    async with client_for(build_app(new_parts(pods=lambda: pods, is_leader=lambda: leading[0]))) as client:
        answer = await client.get("/metrics/resources")
        assert (answer.status, await answer.text()) == (200, "")
        leading[0] = True
        assert 'kube_pod_resource_request{namespace="ns"' in await (await client.get("/metrics/resources")).text()
