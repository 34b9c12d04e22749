"""Services in virtual time: who answers for them, and how they are reached."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import errors

Cluster = Any  # see conftest.py


def pod(name: str, port: int = 8080, **labels: str) -> dict:
    containers = [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": port}]}]
    return {"metadata": {"name": name, "labels": {"app": "web", **labels}}, "spec": {"containers": containers}}


def service(name: str = "web", **spec: object) -> dict:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return {"metadata": {"name": name, "labels": {"team": "a"}}, "spec": {"selector": {"app": "web"}, "ports": ports, **spec}}


def slices(cluster: Cluster) -> list[dict]:
    found: list[dict] = cluster.store.list(
        "endpointslices.discovery.k8s.io", label_selector="kubernetes.io/service-name=web"
    ).items
    return found


def addresses(cluster: Cluster) -> list[str]:
    return sorted(ip for one in slices(cluster) for end in one.get("endpoints") or () for ip in end["addresses"])


def ready_names(cluster: Cluster) -> list[str]:
    ends = [end for one in slices(cluster) for end in one.get("endpoints") or ()]
    return sorted(end["targetRef"]["name"] for end in ends if end["conditions"]["ready"])


def test_a_service_without_pods_has_an_empty_slice(cluster: Cluster) -> None:
    cluster.store.create("services", service())
    cluster.run(1)
    (one,) = slices(cluster)
    assert not one.get("endpoints") and one["addressType"] == "IPv4"
    assert one["metadata"]["ownerReferences"][0]["kind"] == "Service"
    assert "subsets" not in cluster.store.get("endpoints", "web")


def test_pods_come_and_go_in_slices_and_endpoints(cluster: Cluster) -> None:
    cluster.store.create("services", service())
    cluster.store.create("pods", pod("a"))
    cluster.store.create("pods", pod("b"))
    cluster.store.create("pods", {**pod("c"), "metadata": {"name": "c", "labels": {"app": "other"}}})
    cluster.run(10)
    (one,) = slices(cluster)
    assert ready_names(cluster) == ["a", "b"]
    assert one["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
    assert one["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    (end, _) = one["endpoints"]
    held = cluster.store.get("pods", end["targetRef"]["name"])
    assert (end["addresses"], end["nodeName"]) == ([held["status"]["podIP"]], held["spec"]["nodeName"])
    (subset,) = cluster.store.get("endpoints", "web")["subsets"]
    assert sorted(address["ip"] for address in subset["addresses"]) == addresses(cluster)
    cluster.store.delete("pods", "a")
    cluster.run(60)
    assert ready_names(cluster) == ["b"] and [entry["metadata"]["name"] for entry in slices(cluster)] == [
        one["metadata"]["name"]
    ]
    cluster.store.delete("pods", "b")
    cluster.run(60)
    assert addresses(cluster) == [] and len(slices(cluster)) == 1


def test_a_named_port_that_differs_makes_a_slice_of_its_own(cluster: Cluster) -> None:
    cluster.store.create("services", service())
    cluster.store.create("pods", pod("a", 8080))
    cluster.store.create("pods", pod("b", 9090))
    cluster.run(10)
    assert sorted(one["ports"][0]["port"] for one in slices(cluster)) == [8080, 9090]
    assert len(cluster.store.get("endpoints", "web")["subsets"]) == 2


def test_a_pod_on_its_way_out_is_there_and_not_ready(cluster: Cluster) -> None:
    cluster.store.create("services", service())
    cluster.store.create("pods", {**pod("a"), "metadata": {"name": "a", "labels": {"app": "web"}, "finalizers": ["a/b"]}})
    cluster.run(10)
    cluster.store.delete("pods", "a")
    cluster.run(0.1)
    ends = [end for one in slices(cluster) for end in one.get("endpoints") or ()]
    assert all(end["conditions"]["terminating"] and not end["conditions"]["ready"] for end in ends)
    assert "subsets" not in cluster.store.get("endpoints", "web") or not cluster.store.get("endpoints", "web")["subsets"]


def test_a_slice_holds_a_hundred_and_what_is_right_is_not_written_again(cluster: Cluster) -> None:
    cluster.store.create("services", service())
    for number in range(230):
        cluster.store.create("pods", pod(f"p{number}"))
    cluster.run(30)
    before = {one["metadata"]["name"]: one for one in slices(cluster)}
    assert sorted(len(one["endpoints"]) for one in before.values()) == [30, 100, 100]
    gone = next(one for one in before.values() if len(one["endpoints"]) == 100)["endpoints"][0]["targetRef"]["name"]
    cluster.store.delete("pods", gone)
    cluster.run(60)
    after = {one["metadata"]["name"]: one for one in slices(cluster)}
    changed = [
        name for name in before if before[name]["metadata"]["resourceVersion"] != after[name]["metadata"]["resourceVersion"]
    ]
    assert len(after) == 3 and len(changed) == 1 and len(addresses(cluster)) == 229


def test_slices_and_endpoints_go_with_their_service_and_a_deleted_slice_comes_back(cluster: Cluster) -> None:
    cluster.store.create("services", service())
    cluster.store.create("pods", pod("a"))
    cluster.run(10)
    cluster.store.delete("endpointslices.discovery.k8s.io", slices(cluster)[0]["metadata"]["name"])
    cluster.run(1)
    assert ready_names(cluster) == ["a"]
    cluster.store.delete("services", "web")
    cluster.run(10)
    assert slices(cluster) == []
    with pytest.raises(errors.NotFound):
        cluster.store.get("endpoints", "web")


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName", "externalName": "example.org"}])
def test_a_service_that_selects_nothing_has_no_slices(cluster: Cluster, spec: dict) -> None:
    cluster.store.create("services", service(**spec))
    cluster.store.create("pods", pod("a"))
    cluster.run(10)
    assert slices(cluster) == []


def test_a_load_balancer_gets_an_address_and_loses_it_with_its_type(cluster: Cluster) -> None:
    made = cluster.store.create("services", service(type="LoadBalancer"))
    cluster.store.create("services", service("other", type="LoadBalancer"))
    cluster.run(1)
    given = [cluster.store.get("services", name)["status"]["loadBalancer"]["ingress"][0]["ip"] for name in ("web", "other")]
    assert len(set(given)) == 2
    cluster.store.patch("services", "web", {"spec": {"type": "ClusterIP"}})
    cluster.run(1)
    assert cluster.store.get("services", "web")["status"]["loadBalancer"] == {}
    assert cluster.store.get("services", "web")["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    assert ("Service", "EnsuredLoadBalancer") in cluster.events()


def test_ports_on_nodes_are_given_kept_and_refused(cluster: Cluster) -> None:
    first = cluster.store.create("services", service(type="NodePort"))["spec"]["ports"][0]["nodePort"]
    assert 30_000 <= first <= 32_767
    changed = cluster.store.patch("services", "web", {"metadata": {"labels": {"x": "y"}}})
    assert changed["spec"]["ports"][0]["nodePort"] == first
    again = [{"name": "http", "port": 80, "nodePort": first}]
    with pytest.raises(errors.Invalid, match="provided port is already allocated"):
        cluster.store.create("services", service("other", type="NodePort", ports=again))
    with pytest.raises(errors.Invalid, match="valid ports is 30000-32767"):
        cluster.store.create("services", service("other", type="NodePort", ports=[{"port": 80, "nodePort": 80}]))
    with pytest.raises(errors.Invalid, match="provided IP is already allocated"):
        cluster.store.create("services", service("other", clusterIP=changed["spec"]["clusterIP"]))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"ports": []}, "spec.ports: Required value"),
        ({"ports": [{}]}, r"spec.ports\[0\].port: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"ports": [{"port": 1}, {"port": 2}]}, r"spec.ports\[0\].name: Required value"),
        ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}, r'spec.ports\[1\].name: Duplicate value: "a"'),
        ({"type": "Other"}, 'spec.type: Unsupported value: "Other"'),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
    ],
)
def test_a_service_that_makes_no_sense_is_refused(cluster: Cluster, spec: dict, why: str) -> None:
    with pytest.raises(errors.Invalid, match=why):
        cluster.store.create("services", service(**spec))
