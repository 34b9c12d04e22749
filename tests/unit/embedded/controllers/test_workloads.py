"""Workload controllers in virtual time: a manifest behaves as on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched.embedded.verbs.patching import MERGE_PATCH

Cluster = Any  # see conftest.py


def template(app: str, **spec: object) -> dict:
    """Return a pod template with one container and the label app."""
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": f"{app}:1"}], **spec},
    }


def deployment(name: str = "web", replicas: int = 3, **spec: object) -> dict:
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template(name), **spec},
    }


def test_a_deployment_becomes_available(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment())
    cluster.run()
    status = cluster.store.get("deployments", "web")["status"]
    assert status["availableReplicas"] == status["updatedReplicas"] == status["replicas"] == 3
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("Available", "True"),
        ("Progressing", "True"),
    ]
    assert status["conditions"][1]["reason"] == "NewReplicaSetAvailable"
    assert cluster.phases("app=web") == ["Running"] * 3
    owners = {pod["metadata"]["ownerReferences"][0]["kind"] for pod in cluster.pods("app=web")}
    assert owners == {"ReplicaSet"}
    assert ("Deployment", "ScalingReplicaSet") in cluster.events()


def test_scaling_up_and_down(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment())
    cluster.run()
    cluster.store.scale("deployments", "web", 7)
    cluster.run()
    assert len(cluster.pods("app=web")) == 7
    cluster.store.scale("deployments", "web", 1)
    cluster.run()
    assert len(cluster.pods("app=web")) == 1
    cluster.store.scale("deployments", "web", 0)
    cluster.run()
    assert cluster.pods("app=web") == []
    assert cluster.store.get("deployments", "web")["status"].get("replicas", 0) == 0


def test_a_set_of_many_pods_is_not_looked_at_for_every_one_of_them(cluster: Cluster) -> None:
    reports = []
    cluster.store.listen("replicasets", lambda change: reports.append(change.version))
    cluster.store.create("deployments", deployment(replicas=300))
    cluster.run()
    assert cluster.store.get("deployments", "web")["status"]["availableReplicas"] == 300
    assert len(reports) < 100, "300 pods bound, started and ready, each at a moment of its own"
    cluster.store.scale("deployments", "web", 250)
    cluster.run()
    assert len(cluster.pods("app=web")) == 250


def test_a_rollout_keeps_to_its_bounds(cluster: Cluster) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    cluster.store.create("deployments", deployment(replicas=5, strategy=rolling))
    cluster.run()
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "web:2"}]}}}}
    cluster.store.patch("deployments", "web", body)
    lowest, highest = 5, 0
    for _ in range(400):
        cluster.run(0.1)
        pods = [pod for pod in cluster.pods("app=web") if "deletionTimestamp" not in pod["metadata"]]
        ready = [pod for pod in pods if {"Ready": "True"}.items() <= conditions(pod).items()]
        lowest, highest = min(lowest, len(ready)), max(highest, len(pods))
    assert lowest >= 4, "five wanted, one may be down"
    assert highest <= 6, "five wanted, one more allowed"
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods("app=web")} == {"web:2"}
    sets = cluster.store.list("replicasets").items
    assert sorted(one["spec"]["replicas"] for one in sets) == [0, 5]
    assert cluster.store.get("deployments", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


def conditions(pod: dict) -> dict[str, str]:
    return {one["type"]: one["status"] for one in pod["status"].get("conditions") or ()}


def test_recreate_never_runs_two_versions(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment(strategy={"type": "Recreate"}))
    cluster.run()
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "web:2"}]}}}}
    cluster.store.patch("deployments", "web", body)
    for _ in range(200):
        cluster.run(0.1)
        running = [pod for pod in cluster.pods("app=web") if "deletionTimestamp" not in pod["metadata"]]
        assert len({pod["spec"]["containers"][0]["image"] for pod in running}) <= 1
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods("app=web")} == {"web:2"}


def test_a_rollout_that_cannot_progress_says_so(cluster: Cluster) -> None:
    stuck = deployment(progressDeadlineSeconds=30)
    stuck["spec"]["template"]["metadata"]["annotations"] = {"kubesched.io/pull-error": "true"}
    cluster.store.create("deployments", stuck)
    cluster.run(120)
    progressing = cluster.store.get("deployments", "web")["status"]["conditions"][1]
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_a_deleted_pod_is_replaced_and_a_stray_one_adopted(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment())
    cluster.run()
    victim = cluster.pods("app=web")[0]["metadata"]["name"]
    cluster.store.delete("pods", victim)
    cluster.run()
    assert len(cluster.pods("app=web")) == 3
    labels = cluster.pods("app=web")[0]["metadata"]["labels"]
    cluster.store.create("pods", {"metadata": {"name": "stray", "labels": labels}, "spec": template("web")["spec"]})
    cluster.run()
    assert len(cluster.pods("app=web")) == 3


def test_deleting_a_deployment_takes_its_pods_along(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment())
    cluster.run()
    cluster.store.delete("deployments", "web")
    cluster.run()
    assert cluster.pods() == []
    assert cluster.store.list("replicasets").items == []


def test_deleting_in_the_foreground_keeps_the_owner_until_the_end(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment())
    cluster.run()
    cluster.store.delete("deployments", "web", propagation="Foreground")
    cluster.run(0.2)
    assert cluster.store.get("deployments", "web")["metadata"]["finalizers"] == ["foregroundDeletion"]
    cluster.run()
    assert cluster.store.list("deployments").items == []
    assert cluster.pods() == []


def test_orphans_stay(cluster: Cluster) -> None:
    cluster.store.create("deployments", deployment())
    cluster.run()
    cluster.store.delete("deployments", "web", propagation="Orphan")
    cluster.run()
    assert cluster.store.list("deployments").items == []
    (kept,) = cluster.store.list("replicasets").items
    assert "ownerReferences" not in kept["metadata"]
    assert len(cluster.pods()) == 3


def test_a_deleted_namespace_disappears_with_everything_in_it(cluster: Cluster) -> None:
    cluster.store.create("namespaces", {"metadata": {"name": "team"}})
    cluster.store.create("deployments", deployment(), "team")
    cluster.store.create("configmaps", {"metadata": {"name": "c"}}, "team")
    cluster.run()
    cluster.store.delete("namespaces", "team")
    cluster.run()
    assert "team" not in [one["metadata"]["name"] for one in cluster.store.list("namespaces").items]
    assert cluster.store.list("pods", "team").items == []


def stateful_set(**spec: object) -> dict:
    body = {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db")}
    return {"metadata": {"name": "db"}, "spec": {**body, **spec}}


def test_a_stateful_set_starts_in_order_and_shrinks_backwards(cluster: Cluster) -> None:
    cluster.store.create("statefulsets", stateful_set())
    seen: list[int] = []
    for _ in range(200):
        cluster.run(0.1)
        pods = cluster.pods("app=db")
        ready = [pod for pod in pods if conditions(pod).get("Ready") == "True"]
        assert len(pods) <= len(ready) + 1, "the next one waits for those before it"
        seen.append(len(pods))
    assert [pod["metadata"]["name"] for pod in cluster.pods("app=db")] == ["db-0", "db-1", "db-2"]
    cluster.store.scale("statefulsets", "db", 1)
    cluster.run()
    assert [pod["metadata"]["name"] for pod in cluster.pods("app=db")] == ["db-0"]


def test_a_stateful_set_claims_volumes_that_outlive_its_pods(cluster: Cluster) -> None:
    cluster.store.create("storageclasses", {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"})
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    body = stateful_set(volumeClaimTemplates=[claim])
    mount = {"name": "data", "mountPath": "/data"}
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    cluster.store.create("statefulsets", body)
    cluster.run()
    assert cluster.phases("app=db") == ["Running"] * 3
    claims = cluster.store.list("persistentvolumeclaims").items
    assert [one["metadata"]["name"] for one in claims] == ["data-db-0", "data-db-1", "data-db-2"]
    assert {one["status"]["phase"] for one in claims} == {"Bound"}
    cluster.store.delete("statefulsets", "db")
    cluster.run()
    assert cluster.pods() == []
    assert len(cluster.store.list("persistentvolumeclaims").items) == 3


@pytest.mark.parametrize(("partition", "updated"), [(0, 3), (2, 1)])
def test_a_stateful_set_is_updated_from_the_highest_number(cluster: Cluster, partition: int, updated: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    cluster.store.create("statefulsets", stateful_set(updateStrategy=strategy))
    cluster.run()
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "db:2"}]}}}}
    cluster.store.patch("statefulsets", "db", body)
    cluster.run(120)
    images = [pod["spec"]["containers"][0]["image"] for pod in cluster.pods("app=db")]
    assert images == ["db:1"] * (3 - updated) + ["db:2"] * updated
    assert cluster.store.get("statefulsets", "db")["status"]["updatedReplicas"] == updated


def test_a_daemon_set_runs_once_on_every_node(cluster: Cluster) -> None:
    body = {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent")}
    cluster.store.create("daemonsets", {"metadata": {"name": "agent"}, "spec": body})
    cluster.run()
    assert sorted(pod["spec"]["nodeName"] for pod in cluster.pods("app=agent")) == ["n0", "n1", "n2"]
    status = cluster.store.get("daemonsets", "agent")["status"]
    assert status["numberReady"] == status["desiredNumberScheduled"] == 3
    cluster.store.create("nodes", {"metadata": {"name": "n3"}})
    cluster.store.patch("nodes", "n0", {"spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}})
    cluster.run()
    assert sorted(pod["spec"]["nodeName"] for pod in cluster.pods("app=agent")) == ["n1", "n2", "n3"]
    new = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "agent:2"}]}}}}
    cluster.store.patch("daemonsets", "agent", new)
    cluster.run(120)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods("app=agent")} == {"agent:2"}
    assert cluster.store.get("daemonsets", "agent")["status"]["updatedNumberScheduled"] == 3


def job(annotations: dict[str, str] | None = None, **spec: object) -> dict:
    made = template("job", restartPolicy="Never")
    made["metadata"]["annotations"] = annotations or {}
    return {"metadata": {"name": "job"}, "spec": {"template": made, **spec}}


def test_a_job_completes(cluster: Cluster) -> None:
    cluster.store.create("jobs", job(completions=5, parallelism=2))
    most = 0
    for _ in range(600):
        cluster.run(0.1)
        most = max(most, len([pod for pod in cluster.pods() if pod["status"]["phase"] in ("Pending", "Running")]))
    status = cluster.store.get("jobs", "job")["status"]
    assert most == 2
    assert status["succeeded"] == 5
    assert status["conditions"][-1]["type"] == "Complete"
    assert "completionTime" in status
    assert cluster.phases() == ["Succeeded"] * 5


def test_an_indexed_job_runs_every_index(cluster: Cluster) -> None:
    cluster.store.create("jobs", job(completions=4, parallelism=4, completionMode="Indexed"))
    cluster.run()
    status = cluster.store.get("jobs", "job")["status"]
    assert status["completedIndexes"] == "0-3"
    assert status["conditions"][-1]["type"] == "Complete"


def test_a_job_gives_up(cluster: Cluster) -> None:
    cluster.store.create("jobs", job({"kubesched.io/exit-code": "3"}, backoffLimit=2))
    cluster.run(600)
    status = cluster.store.get("jobs", "job")["status"]
    assert status["failed"] == 3
    assert (status["conditions"][-1]["type"], status["conditions"][-1]["reason"]) == ("Failed", "BackoffLimitExceeded")


def test_a_job_can_be_suspended_and_goes_away_after_its_time(cluster: Cluster) -> None:
    cluster.store.create("jobs", job(suspend=True, ttlSecondsAfterFinished=100))
    cluster.run()
    assert cluster.pods() == []
    assert cluster.store.get("jobs", "job")["status"]["conditions"][0]["type"] == "Suspended"
    cluster.store.patch("jobs", "job", {"spec": {"suspend": False}}, patch_type=MERGE_PATCH)
    cluster.run()
    assert cluster.phases() == ["Succeeded"]
    cluster.run(120)
    assert cluster.store.list("jobs").items == []
    assert cluster.pods() == []


def test_the_same_seed_plays_the_same_world(new_cluster: Cluster, tmp_path: Path) -> None:
    histories = []
    for number in range(2):
        cluster = new_cluster(tmp_path / str(number))
        cluster.add_nodes(3)
        cluster.store.create("deployments", deployment(replicas=5))
        cluster.store.create("jobs", job(completions=3, parallelism=2))
        cluster.run(30)
        histories.append([entry.raw for table in cluster.store.context.storage.tables() for entry in table.entries.values()])
        cluster.store.close()
    assert histories[0] == histories[1]


def test_a_job_that_lives_for_no_seconds_can_be_seen_to_be_done(cluster: Cluster) -> None:
    seen = []
    cluster.store.listen("jobs", lambda change: seen.append((cluster.clock.now(), change.new and change.new.obj)))
    cluster.store.create("jobs", job(ttlSecondsAfterFinished=0))
    cluster.run(60)
    done = next(at for at, obj in seen if obj and "completionTime" in obj["status"])
    gone = next(at for at, obj in seen if obj is None)
    assert gone - done >= 2
    assert cluster.pods() == []
