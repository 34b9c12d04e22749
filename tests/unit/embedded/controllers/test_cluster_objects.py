"""CronJobs, quotas, accounts, ephemeral volumes and what a cluster has from its first day, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched import errors
from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.clock import seconds_of
from kubesched.embedded.controllers import FakeCluster, Pace

Cluster = Any  # see conftest.py
MINUTE = 60.0


def cron_job(annotations: dict[str, str] | None = None, **spec: object) -> dict:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"backoffLimit": 0, "template": {"metadata": {"annotations": annotations or {}}, "spec": pod}}
    return {"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}, **spec}}


def jobs(cluster: Cluster) -> list[dict]:
    found: list[dict] = cluster.store.list("jobs").items
    return found


def to_the_minute(cluster: Cluster) -> None:
    cluster.run(MINUTE - cluster.clock.now() % MINUTE + 1)


def test_a_cron_job_starts_a_job_a_minute_and_keeps_three(cluster: Cluster) -> None:
    to_the_minute(cluster)
    cluster.store.create("cronjobs", cron_job())
    cluster.run(MINUTE)
    (first,) = jobs(cluster)
    due = seconds_of(first["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"])
    assert first["metadata"]["name"] == f"tick-{int(due) // 60}"
    held = cluster.store.get("cronjobs", "tick")["status"]
    assert [one["name"] for one in held["active"]] == [first["metadata"]["name"]]
    assert seconds_of(held["lastScheduleTime"]) == due
    cluster.run(30)
    held = cluster.store.get("cronjobs", "tick")["status"]
    assert "active" not in held and "lastSuccessfulTime" in held
    cluster.run(9 * MINUTE)
    assert len(jobs(cluster)) == 3
    assert {("CronJob", "SuccessfulCreate"), ("CronJob", "SawCompletedJob"), ("CronJob", "SuccessfulDelete")} <= set(
        cluster.events()
    )


def test_a_failed_job_is_kept_once(cluster: Cluster) -> None:
    cluster.store.create("cronjobs", cron_job({"kubesched.io/exit-code": "1"}))
    to_the_minute(cluster)
    cluster.run(5 * MINUTE + 40)
    assert [one["status"]["failed"] for one in jobs(cluster)] == [1]


@pytest.mark.parametrize(("policy", "n_running", "n_made"), [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 3)])
def test_concurrency(cluster: Cluster, policy: str, n_running: int, n_made: int) -> None:
    to_the_minute(cluster)
    cluster.store.create("cronjobs", cron_job({"kubesched.io/run-seconds": "600"}, concurrencyPolicy=policy))
    cluster.run(3 * MINUTE + 10)
    assert len(jobs(cluster)) == n_running
    assert cluster.events().count(("CronJob", "SuccessfulCreate")) == n_made


def test_a_suspended_cron_job_starts_nothing_and_catches_up_with_one(cluster: Cluster) -> None:
    cluster.store.create("cronjobs", cron_job(suspend=True))
    cluster.run(10 * MINUTE)
    assert jobs(cluster) == []
    cluster.store.patch("cronjobs", "tick", {"spec": {"suspend": False}})
    cluster.run(1)
    assert len(jobs(cluster)) == 1


def test_a_deployment_beyond_its_quota_says_so_and_goes_on_when_there_is_room(cluster: Cluster) -> None:
    cluster.store.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    cluster.store.create("replicasets", {"metadata": {"name": "web"}, "spec": spec})
    cluster.run(30)
    assert len(cluster.pods()) == 2
    (condition,) = cluster.store.get("replicasets", "web")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in condition["message"]
    assert ("ReplicaSet", "FailedCreate") in cluster.events()
    assert cluster.store.get("resourcequotas", "q")["status"] == {"hard": {"pods": "2"}, "used": {"pods": "2"}}
    cluster.store.patch("resourcequotas", "q", {"spec": {"hard": {"pods": "5"}}})
    cluster.run(60)
    assert len(cluster.pods()) == 3
    assert "conditions" not in cluster.store.get("replicasets", "web")["status"]
    assert cluster.store.get("resourcequotas", "q")["status"]["used"] == {"pods": "3"}


def test_every_namespace_has_an_account_and_the_cluster_its_first_objects(cluster: Cluster) -> None:
    cluster.store.create("namespaces", {"metadata": {"name": "team"}})
    cluster.run(1)
    accounts = {one["metadata"]["namespace"] for one in cluster.store.list("serviceaccounts").items}
    assert {"default", "kube-system", "team"} <= accounts
    cluster.store.delete("serviceaccounts", "default", "team")
    cluster.run(1)
    assert cluster.store.get("serviceaccounts", "default", "team")
    assert cluster.store.get("services", "kubernetes")["spec"]["clusterIP"] == "10.96.0.1"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = cluster.store.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim})
    assert made["spec"]["storageClassName"] == "standard"
    cluster.store.delete("namespaces", "team")
    cluster.run(10)
    with pytest.raises(errors.NotFound):
        cluster.store.get("namespaces", "team")


def test_an_ephemeral_volume_gets_a_claim_that_ends_with_its_pod(cluster: Cluster) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}}
    body = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    cluster.store.create("pods", {"metadata": {"name": "p"}, "spec": body})
    cluster.run(1)
    assert cluster.store.get("persistentvolumeclaims", "p-scratch")["metadata"]["labels"] == {"a": "b"}
    cluster.store.delete("pods", "p")
    cluster.run(60)
    assert cluster.store.list("persistentvolumeclaims").items == []


def test_a_cluster_starts_again_over_what_it_kept(tmp_path: Path) -> None:
    for _ in range(2):
        store = ObjectStore(ManualClock(), data_dir=tmp_path)
        cluster = FakeCluster(store, Pace())
        cluster.start()
        assert store.get("services", "kubernetes", "default")["spec"]["clusterIP"]
        cluster.stop()
        store.close()
