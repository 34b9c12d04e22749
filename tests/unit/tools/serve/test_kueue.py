"""The AdmissionCheck controller against an API server that serves Kueue's kinds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from asking import AtOnce

from kubesched.embedded import ApiServer
from kubesched.kube.client import Connection, KubeconfigSource, connect
from kubesched.solver import Cluster
from kubesched.testing import node, taint
from kubesched.tools.serve import kueue
from kubesched.tools.serve.kueue import CONTROLLER, AdmissionChecks
from kubesched.tools.serve.service import Service
from kubesched.tools.serve.wire import LATE, Refusal

Object = dict[str, Any]
CRDS = Path(__file__).with_name("kueue_crds.yaml")
THEN = "2026-01-01T00:00:00Z"


@dataclass
class Kueue:
    """A cluster with Kueue's kinds and our controller; the test does what Kueue would."""

    server: ApiServer
    service: AtOnce
    version: str

    def submit(self, name: str, count: int, cpu: str = "1", *, checks: tuple[str, ...] = ("fits",), **status: Any) -> None:
        template = {"metadata": {"labels": {"job": name}}, "spec": {"containers": [a_container(cpu)]}}
        spec = {"podSets": [{"name": "main", "count": count, "template": template}]}
        self.create("workloads", {"kind": "Workload", "metadata": {"name": name}, "spec": spec})
        self.reserve(name, checks, **status)

    def reserve(self, name: str, checks: tuple[str, ...] = ("fits",), *, has_quota: bool = True, **status: Any) -> None:
        pending = [{"name": each, "state": "Pending", "lastTransitionTime": THEN, "message": ""} for each in checks]
        quota = {"type": "QuotaReserved", "status": "True" if has_quota else "False"}
        patch = {"status": {"admissionChecks": pending, "conditions": [quota], **status}}
        kind = "application/merge-patch+json"
        self.server.store.patch(self.named("workloads"), name, patch, "default", patch_type=kind, subresource="status")

    def create(self, plural: str, obj: Object) -> None:
        obj = {"apiVersion": f"kueue.x-k8s.io/{self.version}", **obj}
        self.server.store.create(self.named(plural), obj, "default" if plural == "workloads" else "")

    def named(self, plural: str) -> str:
        return f"{plural}.kueue.x-k8s.io"

    def state(self, name: str, check: str = "fits") -> tuple[str, str]:
        found = self.server.store.get(self.named("workloads"), name, "default")["status"]["admissionChecks"]
        (told,) = [each for each in found if each["name"] == check]
        return told["state"], told["message"]

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)


def a_container(cpu: str) -> Object:
    return {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}


@asynccontextmanager
async def running(tmp_path: Path, cluster: Cluster, version: str = "v1beta2") -> AsyncIterator[Kueue]:
    async with ApiServer() as server:
        for definition in yaml.safe_load_all(CRDS.read_text(encoding="utf-8").replace("VERSION", version)):
            server.store.create("customresourcedefinitions", definition)
        service = AtOnce(cluster)
        made = Kueue(server, service, version)
        for name, controller in (("fits", CONTROLLER), ("other", "example.com/budget")):
            made.create(
                "admissionchecks",
                {"kind": "AdmissionCheck", "metadata": {"name": name}, "spec": {"controllerName": controller}},
            )
        connection = await connect(KubeconfigSource(str(server.write_kubeconfig(tmp_path / "kubeconfig"))), qps=-1)
        task = asyncio.create_task(AdmissionChecks(cast(Service, service), connection).run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await connection.close()


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_a_workload_is_ready_if_all_its_pods_fit_and_told_why_if_not(tmp_path: Path, version: str) -> None:
    async with running(tmp_path, Cluster([node("n1", cpu="4"), node("n2", cpu="4")]), version) as found:
        found.submit("small", 4)
        await found.until(lambda: found.state("small")[0] == "Ready")
        assert found.state("small")[1].startswith("all 4 pods fit now: n1 x2, n2 x2")
        found.submit("huge", 3, "3")
        await found.until(lambda: found.state("huge")[0] == "Retry")
        assert found.state("huge")[1].startswith(
            "3 of 3 pods do not fit now; huge-main-0: 0/2 nodes are available: 2 Insufficient cpu"
        )
        told = found.server.store.get(found.named("workloads"), "huge", "default")["status"]["admissionChecks"][0]
        assert told["requeueAfterSeconds"] == kueue.RETRY_AFTER_SECONDS and told["lastTransitionTime"] > THEN


async def test_our_checks_become_active_and_those_of_others_are_left_alone(tmp_path: Path) -> None:
    async with running(tmp_path, Cluster([node("n1")])) as found:

        def conditions(name: str) -> list[Object]:
            status = found.server.store.get(found.named("admissionchecks"), name).get("status") or {}
            return list(status.get("conditions", []))

        await found.until(lambda: bool(conditions("fits")))
        assert (conditions("fits")[0]["type"], conditions("fits")[0]["status"]) == ("Active", "True")
        found.submit("both", 1, checks=("other", "fits"))
        await found.until(lambda: found.state("both")[0] == "Ready")
        assert found.state("both", "other") == ("Pending", "") and conditions("other") == []


async def test_nothing_is_said_before_there_is_quota(tmp_path: Path) -> None:
    async with running(tmp_path, Cluster([node("n1", cpu="4")])) as found:
        found.submit("early", 1, has_quota=False)
        found.submit("late", 1)
        await found.until(lambda: found.state("late")[0] == "Ready")
        assert found.state("early")[0] == "Pending"
        found.reserve("early")
        await found.until(lambda: found.state("early")[0] == "Ready")


async def test_two_workloads_are_not_promised_the_same_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, Cluster([node("n1", cpu="4")])) as found:
        found.submit("first", 3)
        await found.until(lambda: found.state("first")[0] == "Ready")
        found.submit("second", 3)
        await found.until(lambda: found.state("second")[0] == "Retry")
        found.server.store.delete(found.named("workloads"), "first", "default")
        await asyncio.sleep(0.1)
        found.reserve("second")
        await found.until(lambda: found.state("second")[0] == "Ready")


async def test_pods_are_placed_as_their_flavor_has_them_started(tmp_path: Path) -> None:
    spot = node("spot", cpu="4", labels={"type": "spot"}, taints=[taint("spot")])
    async with running(tmp_path, Cluster([node("n1", cpu="64"), spot])) as found:
        found.create(
            "resourceflavors",
            {
                "kind": "ResourceFlavor",
                "metadata": {"name": "spot"},
                "spec": {"nodeLabels": {"type": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]},
            },
        )
        assigned = {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "spot"}, "count": 3}]}
        await asyncio.sleep(0.2)
        found.submit("on-spot", 9, admission=assigned)
        await found.until(lambda: found.state("on-spot")[0] == "Ready")
        assert found.state("on-spot")[1] == "all 3 pods fit now: spot x3"


async def test_a_workload_that_cannot_be_checked_now_is_checked_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kueue, "_AGAIN_SECONDS", 0.1)
    async with running(tmp_path, Cluster([node("n1", cpu="4")])) as found:
        found.service.refuses = Refusal(LATE, "not answered within 30 s")
        found.submit("patient", 1)
        await found.until(lambda: len(found.service.asked) > 1)
        assert found.state("patient")[0] == "Pending"
        found.service.refuses = None
        await found.until(lambda: found.state("patient")[0] == "Ready")


async def test_a_template_that_is_no_pod_is_refused_with_its_field(tmp_path: Path) -> None:
    async with running(tmp_path, Cluster([node("n1", cpu="4")])) as found:
        found.submit("typo", 1, "many")
        await found.until(lambda: found.state("typo")[0] == "Retry")
        assert found.state("typo")[1].startswith("its pods cannot be placed: pods[0].spec.containers[0].resources.requests.cpu")


async def test_an_object_of_another_shape_ends_nothing_and_is_looked_at_once_at_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kueue, "_AGAIN_SECONDS", 0.2)
    service = AtOnce(Cluster([node("n1", cpu="4")]))
    checks = AdmissionChecks(cast(Service, service), cast(Connection, None))
    tell(checks, "AdmissionCheck", "fits", {"spec": {"controllerName": CONTROLLER}, **ACTIVE})
    task = asyncio.create_task(checks._answer())
    pod_set = {"count": 1, "template": {"spec": {"nodeSelector": ["x"]}}}  # dict() of it is a ValueError
    status = {
        "conditions": [{"type": "QuotaReserved", "status": "True"}],
        "admissionChecks": [{"name": "fits", "state": "Pending"}],
    }
    for _ in range(10):
        tell(checks, "Workload", "default/w", {"metadata": {}, "spec": {"podSets": [pod_set]}, "status": status})
        await asyncio.sleep(0.01)
    assert not task.done()
    caplog.clear()
    await asyncio.sleep(0.3)
    assert caplog.text.count("default/w cannot be checked") <= 2
    task.cancel()


ACTIVE = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}


def tell(checks: AdmissionChecks, kind: str, key: str, content: Object) -> None:
    """Deliver an object as reflectors do."""
    checks.deliver(kind, None, SimpleNamespace(key=key, content=content))
