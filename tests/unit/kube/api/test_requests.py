from __future__ import annotations

from typing import Any

import pytest

from kubesched.errors import MalformedObject
from kubesched.kube.api.codec import convert
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.requests import (
    NON_ZERO_DEFAULTS,
    HostPort,
    amounts,
    host_ports,
    is_extended_name,
    is_scalar_name,
    node_allocatable,
    pod_requests,
    ports_conflict,
)
from kubesched.kube.values.quantity import milli_value, parse, value

MI = 1024 * 1024


def container(name: str = "c", /, always: bool = False, **requests: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return {**made, "restartPolicy": "Always"} if always else made


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), status: Any = None, **spec: Any) -> Pod:
    raw = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
        "status": status,
    }
    return convert(raw, Pod)


def plain(subject: Pod, **options: Any) -> dict[str, int]:
    return amounts(pod_requests(subject, **options))


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("example.com/Some_thing.x", True, True),
        ("kubernetes.io/thing", False, True),
        ("sub.kubernetes.io/thing", False, True),
        ("deviceclass.resource.kubernetes.io/gpu", False, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("nvidia.com/", False, False),
        ("nvidia.com/a b", False, False),
        ("NVIDIA.com/gpu", False, False),
        ("a/b/c", False, False),
        (f"example.com/{'x' * 63}", True, True),
        (f"example.com/{'x' * 64}", False, False),
        ("cpu", False, False),
        ("storage", False, False),
        ("foo", False, False),
        ("pods", False, False),
    ],
)
def test_names(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended_name(name), is_scalar_name(name)) == (extended, scalar)


def test_amounts_count_what_is_counted_and_drop_the_rest() -> None:
    nano = {
        name: parse("1.5")
        for name in ("cpu", "memory", "ephemeral-storage", "pods", "storage", "foo", "nvidia.com/gpu", "hugepages-2Mi")
    }
    counted = {"cpu": 1500, "memory": 2, "ephemeral-storage": 2, "nvidia.com/gpu": 2, "hugepages-2Mi": 2}
    assert amounts(nano) == counted
    assert amounts(nano, pods=True) == {**counted, "pods": 2}


def test_a_scalar_of_zero_is_an_entry() -> None:
    assert amounts({"nvidia.com/gpu": 0}) == {"nvidia.com/gpu": 0}


# --- pod level --------------------------------------------------------------------------------------------------------


def test_pod_level_requests_replace_the_sum_even_by_less() -> None:
    subject = pod(
        container(cpu="2", memory="1Gi"),
        resources={"requests": {"cpu": "1", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}},
        overhead={"cpu": "100m"},
    )
    assert plain(subject) == {"cpu": 1100, "memory": 1024 * MI, "hugepages-2Mi": 4 * MI}
    assert plain(subject, pod_level=False) == {"cpu": 2100, "memory": 1024 * MI}


@pytest.mark.parametrize("resources", [{"limits": {"cpu": "9"}}, {"requests": {"nvidia.com/gpu": "1"}}, {}])
def test_pod_level_limits_and_other_names_do_not_count(resources: dict[str, Any]) -> None:
    assert plain(pod(container(cpu="1"), resources=resources)) == {"cpu": 1000}


def resized_pod(*, status: dict[str, Any]) -> Pod:
    return pod(container(cpu="3"), resources={"requests": {"cpu": "700m"}}, status=status)


POD_STATUS = {"resources": {"requests": {"cpu": "500m"}}, "allocatedResources": {"cpu": "900m"}}
INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "False", "reason": "Infeasible"}]}


@pytest.mark.parametrize(
    ("sentence", "status", "options", "cpu_milli"),
    [
        ("spec without status", POD_STATUS, {}, 700),
        ("the largest with status", POD_STATUS, {"use_status": True}, 900),
        ("spec when the gate is off", POD_STATUS, {"use_status": True, "in_place_pod_level": False}, 700),
        ("spec when no status is reported", {"allocatedResources": {"cpu": "900m"}}, {"use_status": True}, 700),
        (
            "status alone when infeasible",
            {"resources": {"requests": {"cpu": "500m"}}, "allocatedResources": {"cpu": "600m"}, **INFEASIBLE},
            {"use_status": True}, 600,
        ),
        (
            "zero when infeasible and nothing in force, before 1.37",
            {"resources": {}, **INFEASIBLE},
            {"use_status": True, "whole_pod": False}, 0,
        ),
        ("nothing at all, since", {"resources": {}, **INFEASIBLE}, {"use_status": True}, None),
    ],
)  # fmt: skip
def test_pod_level_resize(sentence: str, status: dict[str, Any], options: dict[str, bool], cpu_milli: int | None) -> None:
    assert plain(resized_pod(status=status), **options) == ({} if cpu_milli is None else {"cpu": cpu_milli}), sentence


# --- resize in place --------------------------------------------------------------------------------------------------


def container_status(in_force: str | None, allocated: str | None, name: str = "c") -> dict[str, Any]:
    made: dict[str, Any] = {"name": name}
    if in_force is not None:
        made["resources"] = {"requests": {"cpu": in_force}}
    if allocated is not None:
        made["allocatedResources"] = {"cpu": allocated}
    return made


def pending(reason: str, status: str = "True") -> dict[str, str]:
    return {"type": "PodResizePending", "status": status, "reason": reason}


@pytest.mark.parametrize(
    ("sentence", "statuses", "conditions", "cpu_milli"),
    [
        ("the largest wins", [container_status("500m", "600m")], [], 700),
        ("what is in force wins when larger", [container_status("800m", "600m")], [], 800),
        ("what is allocated wins when larger", [container_status("500m", "900m")], [], 900),
        ("infeasible forgets the spec", [container_status("500m", "600m")], [pending("Infeasible")], 600),
        ("whatever the condition's status", [container_status("500m", "600m")], [pending("Infeasible", "False")], 600),
        ("deferred does not", [container_status("500m", "600m")], [pending("Deferred")], 700),
        (
            "the first pending condition decides",
            [container_status("500m", "600m")],
            [pending("Deferred"), pending("Infeasible")], 700,
        ),
        ("another container's status", [container_status("900m", "900m", "other")], [], 700),
    ],
)  # fmt: skip
def test_resize(sentence: str, statuses: list[Any], conditions: list[Any], cpu_milli: int) -> None:
    subject = pod(container(cpu="700m"), status={"containerStatuses": statuses, "conditions": conditions})
    assert plain(subject, use_status=True) == {"cpu": cpu_milli}, sentence
    assert plain(subject) == {"cpu": 700}


def test_resize_reaches_plain_init_containers_since_1_37() -> None:
    statuses = [container_status("2", "2", "s"), container_status("9", "9", "i")]
    init = (container("i", cpu="1"), container("s", always=True, cpu="1"))
    resized = pod(init=init, status={"initContainerStatuses": statuses})
    assert plain(resized, use_status=True) == {"cpu": 9000}
    assert plain(resized, use_status=True, whole_pod=False) == {"cpu": 2000}


BY_RELEASE = [
    ("two containers that trade places", [container_status("500m", None, "c"), container_status("2", None, "d")], 2500, 4000),
    ("only what is allocated is reported", [container_status(None, "3", "c")], 3500, 2500),
]


@pytest.mark.parametrize(("statuses", "whole", "each"), [case[1:] for case in BY_RELEASE], ids=[case[0] for case in BY_RELEASE])
def test_sums_are_compared_since_1_37_and_containers_before(statuses: list[Any], whole: int, each: int) -> None:
    subject = pod(container("c", cpu="2"), container("d", cpu="500m"), status={"containerStatuses": statuses})
    assert plain(subject, use_status=True) == {"cpu": whole}
    assert plain(subject, use_status=True, whole_pod=False) == {"cpu": each}


def test_claims_add_node_resources_behind_their_gate() -> None:
    claims = [
        {"resourceClaimName": "a", "resources": {"cpu": "1"}},
        {"resourceClaimName": "b", "resources": {"cpu": "2"}},
    ]
    subject = pod(container(cpu="1"), status={"nodeAllocatableResourceClaimStatuses": claims})
    assert plain(subject) == {"cpu": 1000}
    assert plain(subject, claim_resources=True) == {"cpu": 4000}


# --- non-zero requests ------------------------------------------------------------------------------------------------


def test_defaults_for_scoring() -> None:
    total = pod_requests(pod(container(cpu="1"), container(memory="1Mi")), pod_level=False, non_missing=NON_ZERO_DEFAULTS)
    assert (milli_value(total["cpu"]), value(total["memory"])) == (1100, 201 * MI)


# --- nodes ------------------------------------------------------------------------------------------------------------


def node(allocatable: dict[str, Any], **more: Any) -> Node:
    return convert({"metadata": {"name": "n"}, "status": {"allocatable": allocatable, **more}}, Node)


# --- broken values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (
            pod(container(cpu="1"), container(memory="lots")),
            "spec.containers[1].resources.requests.memory: invalid value 'lots'",
        ),
        (pod(init=(container(cpu="1K"),)), "spec.initContainers[0].resources.requests.cpu: invalid value '1K'"),
        (pod(overhead={"cpu": ""}), "spec.overhead.cpu: invalid value ''"),
        (pod(resources={"requests": {"cpu": "x"}}), "spec.resources.requests.cpu: invalid value 'x'"),
        (
            pod(container(), status={"containerStatuses": [container_status("y", None)]}),
            "status.containerStatuses[0].resources.requests.cpu: invalid value 'y'",
        ),
        (
            pod(container(), status={"containerStatuses": [container_status("1", "y")]}),
            "status.containerStatuses[0].allocatedResources.cpu: invalid value 'y'",
        ),
    ],
)  # fmt: skip
def test_a_broken_quantity_is_named_with_pod_field_and_value(subject: Pod, text: str) -> None:
    with pytest.raises(MalformedObject) as caught:
        pod_requests(subject, use_status=True)
    assert str(caught.value) == f"pod ns/p: {text}: not a quantity"


def test_a_broken_quantity_of_a_node() -> None:
    with pytest.raises(MalformedObject) as caught:
        node_allocatable(node({"cpu": "4", "memory": "32GiB"}))
    assert str(caught.value) == "node n: status.allocatable.memory: invalid value '32GiB': not a quantity"


# --- host ports -------------------------------------------------------------------------------------------------------


def test_host_ports_of_sidecars_and_containers() -> None:
    def ported(*ports: dict[str, Any], always: bool = False) -> dict[str, Any]:
        return {"ports": list(ports), **({"restartPolicy": "Always"} if always else {})}

    subject = pod(
        ported({"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}),
        ported({"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}),
        init=(ported({"hostPort": 1}), ported({"hostPort": 2}, always=True)),
        hostNetwork=True,
    )
    assert host_ports(subject) == (
        HostPort("0.0.0.0", "TCP", 2),
        HostPort("0.0.0.0", "TCP", 8080),
        HostPort("10.0.0.1", "UDP", 53),
    )


@pytest.mark.parametrize(
    ("wanted", "taken", "expected"),
    [
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
        (("::", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("::", "TCP", 80), ("::", "TCP", 80), True),
        (("::", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("0.0.0.0", "TCP", 0), ("0.0.0.0", "TCP", 0), False),
    ],
)
def test_port_conflicts(wanted: tuple[str, str, int], taken: tuple[str, str, int], expected: bool) -> None:
    assert ports_conflict(HostPort(*wanted), HostPort(*taken)) is expected
