"""The sample cluster and workload that `kubesched demo` shows: everyday manifests, and one pod that fits nowhere."""

from __future__ import annotations

from typing import Any

from kubesched.kube.values import HOSTNAME, ZONE

Object = dict[str, Any]
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
"""A short description of each workload."""
_GPUS_A_NODE = 4


def node(i: int) -> Object:
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


def workload(n_pods: int, n_nodes: int) -> list[Object]:
    """Return manifests of `n_pods` pods. All of them fit but the whale, if there are enough nodes."""
    shares = {"web": 0.4, "api": 0.25, "trainer": 0.05, "cache": 0.1}
    counts = {name: max(1, round(n_pods * share)) for name, share in shares.items()}
    counts["trainer"] = min(counts["trainer"], _GPUS_A_NODE * ((n_nodes + 1) // 10))
    counts["report"] = max(1, n_pods - sum(counts.values()) - 1)
    selector = {name: {"matchLabels": {"app": name}} for name in counts}
    even = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector["web"]}
    apart = {"weight": 100, "podAffinityTerm": {"labelSelector": selector["api"], "topologyKey": HOSTNAME}}
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}
    gpus = {"tolerations": [{"key": GPU, "operator": "Exists"}]}

    def replicated(kind: str, name: str, template: Object, **spec: Any) -> Object:
        spec = {"replicas": counts[name], "selector": selector[name], "template": template, **spec}
        return _object("apps/v1", kind, name, spec)

    job = {"parallelism": counts["report"], "completions": counts["report"]}
    whale = _object("v1", "Pod", "whale", _template("whale", "40", "100Gi")["spec"])
    whale["metadata"]["labels"] = {"app": "whale"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        replicated("Deployment", "web", _template("web", "250m", "256Mi", topologySpreadConstraints=[even])),
        replicated("Deployment", "api", _template("api", "500m", "512Mi", affinity=affinity)),
        replicated("Deployment", "trainer", _template("trainer", "1", "4Gi", {GPU: "1"}, **gpus)),
        replicated(
            "StatefulSet", "cache", _template("cache", "200m", "1Gi"), serviceName="cache", podManagementPolicy="Parallel"
        ),
        _object("batch/v1", "Job", "report", {**job, "template": _template("report", "100m", "128Mi", restartPolicy="Never")}),
        whale,
    ]


def _object(version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _template(name: str, cpu: str, memory: str, extra: dict[str, str] | None = None, **spec: Any) -> Object:
    amounts = {"cpu": cpu, "memory": memory, **(extra or {})}
    container = {"name": "main", "image": f"example.com/{name}:1", "resources": {"requests": amounts, "limits": extra or {}}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
