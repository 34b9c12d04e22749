"""The sample cluster and workload that `kubesched demo` shows: everyday manifests, and one pod that fits nowhere."""

from __future__ import annotations

from typing import Any

from kubesched.kube.values import HOSTNAME, ZONE

ZONES = ("zone-a", "zone-b", "zone-c")
NAMESPACE = "demo"
GPU = "example.com/gpu"
RULES = {
    "web": "even over zones",
    "api": "apart, if possible",
    "trainer": "a GPU each",
    "cache": "a StatefulSet",
    "report": "a Job; it ends",
    "whale": "40 cpu, 100Gi",
}
"""What is special about each workload, in words."""
_GPUS_A_NODE = 4


def node(i: int) -> dict[str, Any]:
    """Return node number i: three zones, two sizes, every tenth with a GPU and a taint that keeps others off it."""
    is_large, has_gpu = i % 4 == 0, i % 10 == 9
    offer = {
        "cpu": "16" if is_large else "8",
        "memory": "64Gi" if is_large else "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        **({GPU: str(_GPUS_A_NODE)} if has_gpu else {}),
    }
    name = f"node-{i:03d}"
    labels = {HOSTNAME: name, ZONE: ZONES[i % 3], "size": "large" if is_large else "small"}
    taints = [{"key": GPU, "effect": "NoSchedule"}] if has_gpu else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"capacity": offer, "allocatable": offer},
    }


def workload(n_pods: int, n_nodes: int) -> list[dict[str, Any]]:
    """Return manifests that make so many pods. On nodes that are large enough, one of them is left over."""
    shares = {"web": 0.4, "api": 0.25, "trainer": 0.05, "cache": 0.1}
    counts = {name: max(1, round(n_pods * share)) for name, share in shares.items()}
    counts["trainer"] = min(counts["trainer"], _GPUS_A_NODE * ((n_nodes + 1) // 10))
    counts["report"] = max(1, n_pods - sum(counts.values()) - 1)
    selector = {name: {"matchLabels": {"app": name}} for name in counts}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _deployment(
            "web",
            counts["web"],
            "250m",
            "256Mi",
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector["web"]}
            ],
        ),
        _deployment(
            "api",
            counts["api"],
            "500m",
            "512Mi",
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "podAffinityTerm": {"labelSelector": selector["api"], "topologyKey": HOSTNAME}}
                    ]
                }
            },
        ),
        _deployment(
            "trainer", counts["trainer"], "1", "4Gi", extra={GPU: "1"}, tolerations=[{"key": GPU, "operator": "Exists"}]
        ),
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "cache", "namespace": NAMESPACE},
            "spec": {
                "replicas": counts["cache"],
                "serviceName": "cache",
                "podManagementPolicy": "Parallel",
                "selector": selector["cache"],
                "template": _template("cache", "200m", "1Gi"),
            },
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "report", "namespace": NAMESPACE},
            "spec": {
                "parallelism": counts["report"],
                "completions": counts["report"],
                "template": _template("report", "100m", "128Mi", restartPolicy="Never"),
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "whale", "namespace": NAMESPACE, "labels": {"app": "whale"}},
            "spec": _template("whale", "40", "100Gi")["spec"],
        },
    ]


def _deployment(
    name: str, replicas: int, cpu: str, memory: str, extra: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(name, cpu, memory, extra, **spec),
        },
    }


def _template(name: str, cpu: str, memory: str, extra: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, **(extra or {})}
    container = {"name": "main", "image": f"example.com/{name}:1", "resources": {"requests": amounts, "limits": extra or {}}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
