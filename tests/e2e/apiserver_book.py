"""The stories that every API server must answer as kube-apiserver does: verbs, versions, selectors, patches, refusals."""

from __future__ import annotations

from typing import Any

from apiserver_stories import (
    APPLY,
    APPS,
    CONFIGS,
    JSON_PATCH,
    MERGE,
    METADATA,
    METADATA_LIST,
    NS,
    PODS,
    TABLE,
    Step,
    Story,
    again,
    container,
    delete,
    get,
    named,
    patch,
    pod,
    post,
    put,
)

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container(image="nginx:1")]}}
SELECTOR = {"matchLabels": {"app": "web"}}
WORKLOAD = {"selector": SELECTOR, "template": TEMPLATE}
DEPLOYMENTS, SETS = f"{APPS}/deployments", f"{APPS}/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICES = "/apis/resource.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
JOBS, CLAIMS = "/apis/batch/v1/namespaces/{ns}/jobs", f"{NS}/persistentvolumeclaims"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
ONE_GIBI = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def story(name: str, *steps: Step, owners: bool = False) -> Story:
    return Story(name, steps, owners)


def events(version_of: int, path: str, more: str = "") -> Step:
    """Watch for a second, from where an earlier answer was."""
    return get(f"{path}?watch=1&timeoutSeconds=1&resourceVersion={{rv{version_of}}}{more}")


def bind(name: str, node: str, **metadata: Any) -> Step:
    body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
    return post(f"{PODS}/{name}/binding", body)


def asks(requests: Any = None, limits: Any = None) -> dict[str, Any]:
    """Return the containers of a pod that asks for this."""
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return {"containers": [container(resources=resources)]}


def job(restart_policy: str, **more: Any) -> dict[str, Any]:
    return named("j", spec=more | {"template": {"spec": {"containers": [container()], "restartPolicy": restart_policy}}})


def apply(manager: str, more: str = "", **fields: Any) -> Step:
    """Apply a config map "a" as a manager, with further parameters."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **fields}
    return patch(f"{CONFIGS}/a?fieldManager={manager}{more}", body, APPLY)


def apply_deployment(manager: str, **fields: Any) -> Step:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **named("d"), **fields}
    return patch(f"{DEPLOYMENTS}/d?fieldManager={manager}", body, APPLY)


def evict(name: str, **more: Any) -> Step:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return post(f"{PODS}/{name}/eviction", body)


# --- what is filled in

_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def _node_rule(**term: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}}


def _expression(**one: Any) -> dict[str, Any]:
    return _node_rule(matchExpressions=[one])


def _pod_rule(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {_REQUIRED: [term]}}}


_PROBES = {
    "livenessProbe": {"httpGet": {"port": 80}},
    "readinessProbe": {"tcpSocket": {"port": "web"}},
    "startupProbe": {"exec": {"command": ["true"]}, "periodSeconds": 3},
}
_VOLUMES = [
    {"name": "plain"},
    {"name": "config", "configMap": {"name": "x"}},
    {"name": "secret", "secret": {"secretName": "x"}},
    {"name": "host", "hostPath": {"path": "/x"}},
    {"name": "down", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    {"name": "many", "projected": {"sources": [{"configMap": {"name": "x"}}, {"secret": {"name": "y"}}]}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "x"}},
    {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": ONE_GIBI}}},
    {"name": "csi", "csi": {"driver": "d.example.com"}},
]
_SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
_TERM = {"topologyKey": "zone", "labelSelector": SELECTOR}
_AFFINITY = {
    "nodeAffinity": {
        _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]},
        _PREFERRED: [
            {"weight": 5, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}}
        ],
    },
    "podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}]},
    "podAntiAffinity": {_REQUIRED: [_TERM | {"namespaceSelector": {}}]},
}

DEFAULTS = [
    story("a pod of one container", post(PODS, pod()), get(f"{PODS}/p")),
    story("probes", post(PODS, pod(containers=[container(ports=[{"containerPort": 80, "name": "web"}], **_PROBES)]))),
    story("volumes", post(PODS, pod(volumes=_VOLUMES))),
    story(
        "ports on the host",
        post(
            PODS,
            pod(
                hostNetwork=True,
                containers=[container(ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}])],
            ),
        ),
        post(PODS, pod("q", containers=[container(ports=[{"containerPort": 80, "hostPort": 8080}])])),
    ),
    story(
        "amounts",
        post(PODS, pod(**asks(limits={"cpu": "1000m", "memory": "1024Mi", "example.com/gpu": 1}))),
        post(PODS, pod("q", **asks({"cpu": 0.1, "memory": "1e3"}, {"cpu": "0.5"}))),
        post(PODS, pod("r", **asks({"cpu": "1.5", "memory": "0.5Gi", "ephemeral-storage": "1500M"}))),
        post(PODS, pod("s", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "1Gi"}})),
        post(PODS, pod("t", **asks({"hugepages-2Mi": "4Mi", "cpu": "1"}, {"hugepages-2Mi": "4Mi"}))),
    ),
    story(
        "init containers and sidecars", post(PODS, pod(initContainers=[container("a"), container("b", restartPolicy="Always")]))
    ),
    story(
        "images",
        *(
            post(PODS, pod(f"p{at}", containers=[container() | {"image": image}]))
            for at, image in enumerate(("a", "a:latest", "a:1", "r:5000/a", "r:5000/a:2", "a@sha256:" + "0" * 64))
        ),
    ),
    story(
        "rules of placement",
        post(
            PODS,
            pod(
                labels={"app": "web"},
                affinity=_AFFINITY,
                topologySpreadConstraints=[_SPREAD],
                nodeSelector={"disk": "ssd"},
                tolerations=[
                    {"key": "a", "operator": "Exists"},
                    {"key": "b", "value": "c", "effect": "NoExecute", "tolerationSeconds": 9},
                ],
                schedulerName="other",
                schedulingGates=[{"name": "example.com/wait"}],
            ),
        ),
    ),
    story(
        "label keys",
        post(
            PODS,
            pod(
                labels={"app": "web", "rev": "7"},
                affinity={
                    "podAffinity": {_REQUIRED: [_TERM | {"matchLabelKeys": ["rev", "no"], "mismatchLabelKeys": ["app"]}]}
                },
                topologySpreadConstraints=[_SPREAD | {"matchLabelKeys": ["rev"]}],
            ),
        ),
    ),
    story("a node that is known", post(PODS, pod(nodeName="n")), get(f"{PODS}?fieldSelector=spec.nodeName%3Dn")),
    story(
        "a priority class",
        post(CLASSES, named("{ns}", value=1000, preemptionPolicy="Never")),
        post(PODS, pod(priorityClassName="{ns}")),
        post(PODS, pod("q", priorityClassName="{ns}", priority=7)),
        post(PODS, pod("r", priorityClassName="system-node-critical")),
        put(f"{CLASSES}/{{ns}}", again(0, {"value": 5})),
        delete(f"{CLASSES}/{{ns}}"),
    ),
    story(
        "a deployment",
        post(DEPLOYMENTS, named("d", spec=WORKLOAD)),
        get(f"{DEPLOYMENTS}/d/scale"),
        get(f"{DEPLOYMENTS}/d/status"),
    ),
    story("a deployment that recreates", post(DEPLOYMENTS, named("d", spec=WORKLOAD | {"strategy": {"type": "Recreate"}}))),
    story("a replica set", post(SETS, named("d", spec=WORKLOAD))),
    story(
        "a stateful set",
        post(
            f"{APPS}/statefulsets",
            named(
                "d",
                spec=WORKLOAD | {"serviceName": "s", "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": ONE_GIBI}]},
            ),
        ),
    ),
    story("a daemon set", post(f"{APPS}/daemonsets", named("d", spec=WORKLOAD))),
    story(
        "a replication controller",
        post(f"{NS}/replicationcontrollers", named("d", spec={"selector": {"app": "web"}, "template": TEMPLATE})),
    ),
    story("a job", post(JOBS, job("Never"))),
    story("an indexed job", post(JOBS, job("OnFailure", completionMode="Indexed", completions=3, parallelism=2, suspend=True))),
    story("a budget", post(BUDGETS, named("b", spec={"selector": SELECTOR, "minAvailable": "50%"}))),
    story(
        "a service",
        post(f"{NS}/services", named("s", spec={"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]})),
    ),
    story(
        "a lease",
        post(
            LEASES,
            named("l", spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.500000Z"}),
        ),
        get(f"{LEASES}/l"),
    ),
    story(
        "a node",
        post("/api/v1/nodes", named("{ns}", status={"capacity": {"cpu": 4, "memory": "32Gi"}})),
        patch("/api/v1/nodes/{ns}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        patch("/api/v1/nodes/{ns}", {"spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]}}),
        get("/api/v1/nodes/{ns}", TABLE),
        delete("/api/v1/nodes/{ns}"),
    ),
    story(
        "a namespace",
        post("/api/v1/namespaces", named("{ns}-b")),
        delete("/api/v1/namespaces/{ns}-b"),
        get("/api/v1/namespaces/{ns}-b"),
        post("/api/v1/namespaces/{ns}-b/pods", pod()),
    ),
    story("a claim", post(CLAIMS, named("c", spec=ONE_GIBI))),
    story(
        "a volume",
        post(
            "/api/v1/persistentvolumes",
            named("{ns}", spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}),
        ),
        delete("/api/v1/persistentvolumes/{ns}"),
    ),
    story(
        "a storage class",
        post(f"{STORAGE}/storageclasses", named("{ns}", provisioner="p")),
        delete(f"{STORAGE}/storageclasses/{{ns}}"),
    ),
    story(
        "a driver and its nodes",
        post(f"{STORAGE}/csidrivers", named("{ns}", spec={})),
        post(
            f"{STORAGE}/csinodes",
            named(
                "{ns}", spec={"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["zone"], "allocatable": {"count": 5}}]}
            ),
        ),
        delete(f"{STORAGE}/csidrivers/{{ns}}"),
        delete(f"{STORAGE}/csinodes/{{ns}}"),
    ),
    story(
        "a capacity",
        post(
            f"{STORAGE}/namespaces/{{ns}}/csistoragecapacities",
            named("c", storageClassName="x", capacity="1Ti", nodeTopology={"matchLabels": {"z": "a"}}),
        ),
    ),
    story(
        "an attachment",
        post(
            f"{STORAGE}/volumeattachments",
            named("{ns}", spec={"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}),
        ),
        delete(f"{STORAGE}/volumeattachments/{{ns}}"),
    ),
    story(
        "a device class",
        post(
            f"{DEVICES}/deviceclasses",
            named("{ns}", spec={"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}),
        ),
        delete(f"{DEVICES}/deviceclasses/{{ns}}"),
    ),
    story(
        "device claims",
        post(
            f"{DEVICES}/namespaces/{{ns}}/resourceclaims",
            named("c", spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}),
        ),
        post(
            f"{DEVICES}/namespaces/{{ns}}/resourceclaimtemplates",
            named(
                "t",
                spec={
                    "spec": {
                        "devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}]}
                    }
                },
            ),
        ),
    ),
    story(
        "devices",
        post(
            f"{DEVICES}/resourceslices",
            named(
                "{ns}",
                spec={
                    "driver": "gpu.example.com",
                    "nodeName": "n",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "devices": [
                        {"name": "d0", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "16Gi"}}}
                    ],
                },
            ),
        ),
        delete(f"{DEVICES}/resourceslices/{{ns}}"),
    ),
    story(
        "small things",
        post(CONFIGS, named("c", data={"a": "b"})),
        post(f"{NS}/secrets", named("s", stringData={"a": "b"})),
        get(f"{NS}/secrets/s"),
        post(f"{NS}/serviceaccounts", named("a")),
        post(f"{NS}/endpoints", named("e", subsets=[])),
        post(f"{NS}/podtemplates", named("t", template=TEMPLATE)),
        post(f"{APPS}/controllerrevisions", named("r", revision=1, data={"a": 1})),
    ),
    story(
        "a role and its binding",
        post(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            named("r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        ),
        post(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
            named(
                "b",
                roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
                subjects=[{"kind": "User", "name": "u"}],
            ),
        ),
    ),
    story(
        "events of both kinds",
        post(
            f"{NS}/events",
            {
                "metadata": {"name": "a"},
                "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
                "reason": "Failed",
                "message": "m",
                "type": "Warning",
                "source": {"component": "x"},
                "firstTimestamp": "2026-01-01T00:00:00Z",
                "lastTimestamp": "2026-01-01T00:00:00Z",
                "count": 1,
            },
        ),
        get(f"{EVENTS}/a"),
        post(
            EVENTS,
            {
                "metadata": {"name": "b"},
                "regarding": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
                "reason": "Scheduled",
                "note": "n",
                "type": "Normal",
                "action": "Binding",
                "reportingController": "s",
                "reportingInstance": "s-1",
                "eventTime": "2026-01-01T00:00:00.000000Z",
            },
        ),
        get(f"{NS}/events/b"),
        get(f"{NS}/events?fieldSelector=involvedObject.name%3Dp,type%3DWarning"),
    ),
]

# --- reading

_FOUR = [post(CONFIGS, {"metadata": {"name": f"c{at}", "labels": {"n": str(at), "odd": str(at % 2)}}}) for at in range(4)]


def _lists(*queries: str) -> list[Step]:
    return [get(f"{CONFIGS}?{query}", METADATA_LIST) for query in queries]


_OF_THE_CLUSTER = (
    "/api/v1/persistentvolumes",
    f"{STORAGE}/storageclasses",
    CLASSES,
    f"{STORAGE}/csinodes",
    f"{STORAGE}/csidrivers",
    f"{DEVICES}/deviceclasses",
)
READING = [
    story(
        "what is not there",
        get(f"{PODS}/no"),
        get("/api/v1/namespaces/no/pods"),
        get("/api/v1/namespaces/no/pods/p"),
        get(f"{NS}/widgets"),
        get("/apis/no/v1/things"),
        get("/apis/apps/v9/deployments"),
        get("/nowhere"),
        get(f"{PODS}/p/no"),
        get("/api/v1/nodes/no"),
        delete(f"{PODS}/no"),
        put(f"{PODS}/no", pod("no")),
        patch(f"{PODS}/no", {}),
        patch(f"{PODS}/no", {"metadata": {"uid": "x"}}, MERGE),
        post("/api/v1/namespaces/no/pods", pod()),
        get(f"{DEPLOYMENTS}/no/scale"),
        bind("no", "n"),
        evict("no"),
        put(f"{DEPLOYMENTS}/no/scale", named("no")),
    ),
    story(
        "label selectors",
        *_FOUR,
        *_lists(
            "labelSelector=odd%3D1",
            "labelSelector=odd%3D%3D1,n!%3D1",
            "labelSelector=n%20in%20(0,2)",
            "labelSelector=n%20notin%20(0,2)",
            "labelSelector=!n",
            "labelSelector=n",
            "labelSelector=n%3E1",
            "labelSelector=n%3C2",
            "labelSelector=",
            "labelSelector=odd%3D",
            "labelSelector=n%20in%20(1)",
            "labelSelector=n%20in%20(1,%202)",
        ),
    ),
    story(
        "label selectors that are wrong",
        *_lists(
            "labelSelector=a%3D%3D%3Db",
            "labelSelector=a%20b",
            "labelSelector=,a",
            "labelSelector=a%20in%20b",
            "labelSelector=a%20in%20(b",
            "labelSelector=-a",
            "labelSelector=a%3D-b",
            "labelSelector=!a%3Db",
            "labelSelector=a%3Ex",
        ),
    ),
    story(
        "field selectors",
        *_FOUR,
        *_lists(
            "fieldSelector=metadata.name%3Dc1",
            "fieldSelector=metadata.name!%3Dc1",
            "fieldSelector=metadata.namespace%3D{ns}",
            "fieldSelector=metadata.name%3Dc1,metadata.name%3Dc2",
            "fieldSelector=data%3Dx",
            "fieldSelector=metadata.name",
            "fieldSelector=metadata.labels.n%3D1",
            "fieldSelector=metadata.name%3D",
        ),
    ),
    story(
        "field selectors of pods",
        post(PODS, pod("a", nodeName="n1")),
        post(PODS, pod("b", restartPolicy="Never")),
        *(
            get(f"{PODS}?fieldSelector={query}", METADATA_LIST)
            for query in (
                "spec.nodeName%3Dn1",
                "spec.nodeName%3D",
                "spec.nodeName!%3D",
                "status.phase%3DPending",
                "status.phase!%3DPending",
                "spec.restartPolicy%3DNever",
                "spec.schedulerName%3Ddefault-scheduler",
                "spec.hostNetwork%3Dfalse",
                "status.podIP%3D",
                "status.nominatedNodeName%3D",
                "spec.serviceAccountName%3D",
                "spec.priority%3D0",
                "spec.nodeName%3Dn1,status.phase%3DPending",
            )
        ),
    ),
    story(
        "pages",
        *_FOUR,
        get(f"{CONFIGS}?limit=2", METADATA_LIST),
        get(f"{CONFIGS}?limit=1&continue={{token4}}", METADATA_LIST),
        get(f"{CONFIGS}?limit=5&continue={{token5}}", METADATA_LIST),
        get(f"{CONFIGS}?limit=2&labelSelector=odd%3D1", METADATA_LIST),
        get(f"{CONFIGS}?limit=1&labelSelector=odd%3D1", METADATA_LIST),
        get(f"{CONFIGS}?limit=4", METADATA_LIST),
        get(f"{CONFIGS}?continue=zzz"),
        get(f"{CONFIGS}?limit=x"),
        get(f"{CONFIGS}?limit=-1", METADATA_LIST),
        get(f"{CONFIGS}?limit=2&continue={{token4}}&resourceVersion={{rv4}}"),
        get(f"{CONFIGS}?limit=2&continue={{token4}}&resourceVersionMatch=Exact"),
    ),
    story(
        "pages while objects go",
        *_FOUR,
        get(f"{CONFIGS}?limit=2", METADATA_LIST),
        delete(f"{CONFIGS}/c3"),
        get(f"{CONFIGS}?limit=2&continue={{token4}}", METADATA_LIST),
    ),
    story(
        "versions of a list",
        *_FOUR,
        delete(f"{CONFIGS}/c3"),
        get(f"{CONFIGS}?resourceVersion=0", METADATA_LIST),
        get(f"{CONFIGS}?resourceVersion={{rv3}}&resourceVersionMatch=Exact", METADATA_LIST),
        get(f"{CONFIGS}?resourceVersion={{rv3}}&resourceVersionMatch=NotOlderThan", METADATA_LIST),
        get(f"{CONFIGS}?resourceVersion={{rv1}}&limit=10&resourceVersionMatch=Exact", METADATA_LIST),
        get(f"{CONFIGS}?resourceVersion=x"),
        get(f"{CONFIGS}?resourceVersion=-1"),
        get(f"{CONFIGS}?resourceVersionMatch=Exact"),
        get(f"{CONFIGS}?resourceVersion={{rv3}}&resourceVersionMatch=Some"),
        get(f"{CONFIGS}?resourceVersion=0&resourceVersionMatch=Exact"),
        get(f"{CONFIGS}?sendInitialEvents=true"),
    ),
    story(
        "forms",
        post(PODS, pod(labels={"a": "b"})),
        get(f"{PODS}/p", TABLE),
        get(PODS, TABLE),
        get(f"{PODS}/p", METADATA),
        get(PODS, METADATA_LIST),
        get(f"{PODS}?includeObject=None", TABLE),
        get(f"{PODS}?includeObject=Object", TABLE),
        get(PODS, "application/xml"),
        get(f"{PODS}/p", "text/html"),
        get(f"{PODS}/p", "*/*"),
        get(PODS, "application/json;as=Table;v=v9;g=meta.k8s.io"),
        get(f"{PODS}?includeObject=Some", TABLE),
    ),
    story(
        "tables",
        post(DEPLOYMENTS, named("d", spec=WORKLOAD)),
        post(SETS, named("r", spec=WORKLOAD)),
        post(f"{APPS}/statefulsets", named("s", spec=WORKLOAD | {"serviceName": "s"})),
        post(f"{APPS}/daemonsets", named("m", spec=WORKLOAD)),
        post(JOBS, job("Never")),
        post(BUDGETS, named("b", spec={"selector": SELECTOR, "minAvailable": 1})),
        post(CONFIGS, named("c", data={"a": "b", "c": "d"})),
        post(f"{NS}/secrets", named("s", data={"a": "Yg=="})),
        post(f"{NS}/services", named("s", spec={"clusterIP": "None", "ports": [{"port": 80}]})),
        post(LEASES, named("l", spec={"holderIdentity": "me"})),
        post(CLAIMS, named("c", spec=ONE_GIBI)),
        post(f"{NS}/serviceaccounts", named("a")),
        post(f"{NS}/endpoints", named("e", subsets=[{"addresses": [{"ip": "10.9.8.7"}], "ports": [{"port": 80}]}])),
        *(
            get(f"{path}?includeObject=None", TABLE)
            for path in (
                DEPLOYMENTS,
                SETS,
                f"{APPS}/statefulsets",
                f"{APPS}/daemonsets",
                JOBS,
                BUDGETS,
                CONFIGS,
                f"{NS}/secrets",
                f"{NS}/services",
                LEASES,
                CLAIMS,
                f"{NS}/endpoints",
                "/api/v1/namespaces/{ns}",
            )
        ),
    ),
    story(
        "tables of the cluster",
        post(
            "/api/v1/persistentvolumes",
            named("{ns}", spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}),
        ),
        post(f"{STORAGE}/storageclasses", named("{ns}", provisioner="p")),
        post(CLASSES, named("{ns}", value=5)),
        post(f"{STORAGE}/csinodes", named("{ns}", spec={"drivers": []})),
        post(f"{STORAGE}/csidrivers", named("{ns}", spec={})),
        post(f"{DEVICES}/deviceclasses", named("{ns}", spec={})),
        *(get(f"{path}/{{ns}}?includeObject=None", TABLE) for path in _OF_THE_CLUSTER),
        *(delete(f"{path}/{{ns}}") for path in _OF_THE_CLUSTER),
    ),
    story(
        "a table of pods",
        post(PODS, pod("a", nodeName="n")),
        post(PODS, pod("b", schedulingGates=[{"name": "g"}])),
        post(PODS, pod("c", initContainers=[container("i1")], containers=[container("x"), container("y")])),
        patch(
            f"{PODS}/a/status",
            {
                "status": {
                    "phase": "Running",
                    "podIP": "10.1.2.3",
                    "podIPs": [{"ip": "10.1.2.3"}],
                    "containerStatuses": [
                        {
                            "name": "c",
                            "ready": True,
                            "restartCount": 2,
                            "image": "i",
                            "imageID": "x",
                            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                        }
                    ],
                    "conditions": [{"type": "Ready", "status": "True"}],
                }
            },
        ),
        patch(f"{PODS}/c/status", {"status": {"phase": "Failed", "reason": "Evicted"}}),
        get(f"{PODS}?includeObject=None", TABLE),
        delete(f"{PODS}/a"),
        get(f"{PODS}/a?includeObject=None", TABLE),
    ),
]

# --- watching

WATCHING = [
    story(
        "events in order",
        get(CONFIGS),
        post(CONFIGS, named("a")),
        patch(f"{CONFIGS}/a", {"data": {"x": "y"}}),
        delete(f"{CONFIGS}/a"),
        events(0, CONFIGS),
        events(1, CONFIGS),
    ),
    story(
        "from the beginning",
        post(CONFIGS, named("a")),
        post(CONFIGS, named("b")),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1"),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&resourceVersion=0"),
        get(
            f"{CONFIGS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        ),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        get(
            f"{CONFIGS}?watch=1&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={{rv0}}"
        ),
    ),
    story(
        "in and out of a selection",
        get(CONFIGS),
        post(CONFIGS, {"metadata": {"name": "a", "labels": {"x": "1"}}}),
        patch(f"{CONFIGS}/a", {"metadata": {"labels": {"x": "2"}}}),
        patch(f"{CONFIGS}/a", {"metadata": {"labels": {"x": "1"}}}),
        patch(f"{CONFIGS}/a", {"data": {"x": "y"}}),
        patch(f"{CONFIGS}/a", {"metadata": {"labels": {"x": "3"}}}),
        delete(f"{CONFIGS}/a"),
        events(0, CONFIGS, "&labelSelector=x%3D1"),
        events(0, CONFIGS, "&fieldSelector=metadata.name%3Da"),
        events(0, CONFIGS, "&fieldSelector=metadata.name%3Db"),
    ),
    story(
        "pods without a node",
        get(PODS),
        post(PODS, pod("a")),
        bind("a", "n"),
        events(0, PODS, "&fieldSelector=spec.nodeName%3D"),
        events(0, PODS, "&fieldSelector=spec.nodeName%3Dn"),
    ),
    story(
        "pods that have ended leave",
        get(PODS),
        post(PODS, pod("a")),
        patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}, MERGE),
        events(0, PODS, "&fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed"),
    ),
    story(
        "as tables and metadata",
        get(CONFIGS),
        post(CONFIGS, named("a")),
        patch(f"{CONFIGS}/a", {"data": {"x": "y"}}),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&resourceVersion={{rv0}}", TABLE),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&resourceVersion={{rv0}}", METADATA),
    ),
    story(
        "questions that are wrong",
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&resourceVersion=x"),
        get(f"{CONFIGS}?watch=0&timeoutSeconds=x"),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&sendInitialEvents=true"),
        get(f"{CONFIGS}?watch=1&resourceVersionMatch=Exact&resourceVersion=1&timeoutSeconds=1"),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&labelSelector=a%3D%3D%3Db"),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&fieldSelector=a%3Db"),
        get(f"{CONFIGS}?watch=x&timeoutSeconds=1&limit=1"),
        get(f"{CONFIGS}?watch=1&limit=1&timeoutSeconds=1"),
        get(f"{CONFIGS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1"),
        get(f"{CONFIGS}?watch=1&continue=x&timeoutSeconds=1"),
    ),
    story("one object", post(CONFIGS, named("a")), get(f"{CONFIGS}/a?watch=1&timeoutSeconds=1")),
]

# --- writing

_METADATA_WRONG: list[tuple[str, Any]] = [
    ("no name", {}),
    ("an empty name", {"name": ""}),
    ("capitals", {"name": "A"}),
    ("a slash", {"name": "a/b"}),
    ("dots", {"name": "a..b"}),
    ("too long a name", {"name": "a" * 254}),
    ("a label key", {"name": "a", "labels": {"a b": "c"}}),
    ("a label value", {"name": "a", "labels": {"a": "b c"}}),
    ("a long label value", {"name": "a", "labels": {"a": "b" * 64}}),
    ("a long label key", {"name": "a", "labels": {"a" * 64: "b"}}),
    ("an empty label key", {"name": "a", "labels": {"": "b"}}),
    ("a prefix", {"name": "a", "labels": {"A_b/c": "d"}}),
    ("an annotation key", {"name": "a", "annotations": {"a b": "c"}}),
    ("a finalizer", {"name": "a", "finalizers": ["x y"]}),
    ("a plain finalizer", {"name": "a", "finalizers": ["x"]}),
    ("an owner", {"name": "a", "ownerReferences": [{"kind": "Pod"}]}),
    (
        "two controllers",
        {
            "name": "a",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"],
        },
    ),
    ("a version", {"name": "a", "resourceVersion": "5"}),
    ("another namespace", {"name": "a", "namespace": "other"}),
    ("a negative generation", {"name": "a", "generation": -1}),
    ("a number for a name", {"name": 5}),
    ("labels that are a list", {"name": "a", "labels": ["x"]}),
    ("a label that is a number", {"name": "a", "labels": {"x": 1}}),
    ("big annotations", {"name": "a", "annotations": {"x": "y" * 270_000}}),
    (
        "a given uid and time",
        {"name": "a", "uid": "u", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"},
    ),
    ("a deletion time", {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}),
    ("chance", {"generateName": "gen-"}),
    ("chance and a name", {"generateName": "gen-", "name": "a"}),
    ("bad chance", {"generateName": "Gen_"}),
    ("long chance", {"generateName": "g" * 300}),
]
_BODIES: list[tuple[str, Any]] = [
    ("nothing", b""),
    ("half", b"{"),
    ("a list", b"[1]"),
    ("a text", b'"x"'),
    ("null", b"null"),
    ("an empty object", b"{}"),
    ("not utf-8", b'{"metadata":{"name":"\xff"}}'),
    ("another kind", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}),
    ("another version", {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "a"}}),
    ("another group", {"kind": "ConfigMap", "apiVersion": "apps/v1", "metadata": {"name": "a"}}),
    ("a kind of no version", {"kind": "ConfigMap", "metadata": {"name": "a"}}),
    ("metadata that is a list", {"metadata": []}),
    ("metadata that is null", {"metadata": None}),
    ("data of numbers", named("a", data={"a": 1})),
    ("data that is a text", named("a", data="x")),
    ("twice the same", b'{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}'),
    ("too much after", b'{"metadata":{"name":"a"}} x'),
    ("an unknown field", named("a", foo=1)),
]
WRITING = [
    *(story(f"metadata: {name}", post(CONFIGS, {"metadata": metadata})) for name, metadata in _METADATA_WRONG),
    *(story(f"a body: {name}", post(CONFIGS, body)) for name, body in _BODIES),
    story(
        "media types",
        post(CONFIGS, b"x: y", "text/plain"),
        post(CONFIGS, {"metadata": {"name": "a"}}, ""),
        post(CONFIGS, {"metadata": {"name": "b"}}, "application/json; charset=utf-8"),
        patch(f"{CONFIGS}/a", {}, "application/json"),
        patch(f"{CONFIGS}/a", {}, "text/plain"),
    ),
    story(
        "unknown fields",
        post(f"{PODS}?fieldValidation=Strict", pod(nodeNam="x", foo={"a": 1})),
        post(f"{PODS}?fieldValidation=Warn", pod(nodeNam="x")),
        post(f"{PODS}?fieldValidation=Ignore", pod("q", nodeNam="x")),
        post(f"{PODS}?fieldValidation=Some", pod()),
        post(PODS, pod("r", containers=[container(foo=1)])),
        patch(f"{PODS}/p?fieldValidation=Strict", {"spec": {"foo": 1}}),
        patch(f"{PODS}/p?fieldValidation=Strict", {"spec": {"foo": 1}}, MERGE),
        patch(f"{PODS}/p?fieldValidation=Strict", [{"op": "add", "path": "/spec/foo", "value": 1}], JSON_PATCH),
    ),
    story(
        "dry runs",
        post(f"{CONFIGS}?dryRun=All", named("a")),
        get(f"{CONFIGS}/a"),
        post(CONFIGS, named("b")),
        patch(f"{CONFIGS}/b?dryRun=All", {"data": {"a": "b"}}),
        put(f"{CONFIGS}/b?dryRun=All", again(2, {"data": {"c": "d"}})),
        get(f"{CONFIGS}/b"),
        delete(f"{CONFIGS}/b?dryRun=All"),
        get(f"{CONFIGS}/b"),
        post(f"{CONFIGS}?dryRun=Some", named("c")),
        post(f"{CONFIGS}?dryRun=All", named("b")),
        delete(f"{CONFIGS}/b", {"dryRun": ["All"]}),
        delete(f"{CONFIGS}/b?dryRun=Some"),
        post(f"{CONFIGS}?dryRun=All", {"metadata": {"generateName": "x-"}}),
    ),
    story(
        "updates",
        post(CONFIGS, named("a", data={"x": "1"})),
        put(f"{CONFIGS}/a", again(0, {"data": {"x": "2"}})),
        put(f"{CONFIGS}/a", again(0, {"data": {"x": "3"}})),
        put(f"{CONFIGS}/a", named("a", data={"x": "4"})),
        put(f"{CONFIGS}/a", named("b")),
        put(f"{CONFIGS}/a", {"metadata": {"name": "a", "uid": "other"}}),
        put(f"{CONFIGS}/a", {"metadata": {"name": "a", "namespace": "other"}}),
        put(f"{CONFIGS}/a", {"metadata": {}}),
        put(f"{CONFIGS}/a", again(3)),
        put(f"{CONFIGS}/a", {"metadata": {"name": "a", "resourceVersion": "x"}}),
        put(f"{CONFIGS}/a", {"kind": "Pod", "metadata": {"name": "a"}}),
        put(CONFIGS, named("a")),
        post(f"{CONFIGS}/a", named("a")),
        put(f"{CONFIGS}/a/status", named("a")),
    ),
    story(
        "an update of nothing", post(CONFIGS, named("a", data={"x": "1"})), put(f"{CONFIGS}/a", again(0)), get(f"{CONFIGS}/a")
    ),
    story(
        "what may not change",
        post(f"{NS}/secrets", named("s", type="Opaque", immutable=True, data={"a": "Yg=="})),
        patch(f"{NS}/secrets/s", {"data": {"a": "Yw=="}}),
        post(CONFIGS, named("c", immutable=True)),
        patch(f"{CONFIGS}/c", {"data": {"a": "b"}}),
        patch(f"{CONFIGS}/c", {"immutable": None}),
        post(f"{NS}/secrets", named("t", data={"a": "b"})),
        post(f"{NS}/secrets", named("t", data={"a": "???"})),
    ),
    story(
        "a lease is taken over",
        post(LEASES, named("l", spec={"holderIdentity": "a", "leaseDurationSeconds": 15})),
        put(f"{LEASES}/l", again(0, {"spec.holderIdentity": "b"})),
        put(f"{LEASES}/l", again(0, {"spec.holderIdentity": "c"})),
        put(f"{LEASES}/l", named("l", spec={"holderIdentity": "c"})),
        put(f"{LEASES}/m", named("m", spec={"holderIdentity": "c"})),
        post(LEASES, named("n", spec={"leaseDurationSeconds": 0})),
        post(LEASES, named("o", spec={"leaseTransitions": -1})),
    ),
    story(
        "a pod's fixed fields",
        post(PODS, pod()),
        patch(f"{PODS}/p", {"spec": {"nodeName": "n"}}),
        patch(f"{PODS}/p", {"spec": {"nodeSelector": {"a": "b"}}}),
        patch(f"{PODS}/p", {"spec": {"containers": [container(image="j")]}}),
        patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}}),
        patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 9}}),
        patch(f"{PODS}/p", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, MERGE),
        patch(f"{PODS}/p", {"spec": {"tolerations": []}}, MERGE),
        patch(f"{PODS}/p", {"spec": {"priority": 5}}),
        patch(f"{PODS}/p", {"spec": {"schedulerName": "x"}}),
        patch(f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "g"}]}}),
        patch(f"{PODS}/p", {"spec": {"terminationGracePeriodSeconds": 1}}),
        patch(f"{PODS}/p", {"status": {"phase": "Running"}}),
        patch(f"{PODS}/p/status", {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}),
        put(f"{PODS}/p", pod(containers=[container("d")])),
    ),
    story(
        "a gated pod",
        post(PODS, pod(schedulingGates=[{"name": "a"}, {"name": "b"}], nodeSelector={"x": "1"})),
        patch(f"{PODS}/p", {"spec": {"nodeSelector": {"y": "2"}}}),
        patch(f"{PODS}/p", {"spec": {"nodeSelector": {"x": "3"}}}),
        patch(f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "c"}]}}, MERGE),
        patch(f"{PODS}/p", {"spec": _expression(key="a", operator="Exists")}),
        patch(f"{PODS}/p", {"spec": _pod_rule(**_TERM)}),
        patch(f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "b"}]}}, MERGE),
        patch(f"{PODS}/p", {"spec": {"schedulingGates": []}}, MERGE),
        patch(f"{PODS}/p", {"spec": {"nodeSelector": {"z": "2"}}}),
    ),
    story(
        "a deployment's fields",
        post(DEPLOYMENTS, named("d", spec=WORKLOAD)),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 3}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": -1}}),
        patch(f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{DEPLOYMENTS}/d/status", {"status": {"replicas": 2}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}),
        post(DEPLOYMENTS, named("e", spec={"template": TEMPLATE})),
        post(DEPLOYMENTS, named("e", spec={"selector": {"matchLabels": {"x": "y"}}, "template": TEMPLATE})),
        post(DEPLOYMENTS, named("e", spec={})),
        post(
            DEPLOYMENTS,
            named(
                "e",
                spec=WORKLOAD | {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            ),
        ),
    ),
    story(
        "a set's fixed fields",
        post(f"{APPS}/statefulsets", named("s", spec=WORKLOAD | {"serviceName": "s"})),
        patch(f"{APPS}/statefulsets/s", {"spec": {"serviceName": "t"}}),
        patch(f"{APPS}/statefulsets/s", {"spec": {"replicas": 5}}),
        post(f"{APPS}/daemonsets", named("d", spec=WORKLOAD)),
        patch(f"{APPS}/daemonsets/d", {"spec": {"selector": {"matchLabels": {"app": "x"}}}}),
        post(JOBS, job("Always")),
        post(JOBS, job("Never")),
        patch(f"{JOBS}/j", {"spec": {"completions": 5}}),
        patch(f"{JOBS}/j", {"spec": {"parallelism": 5}}),
    ),
    story(
        "a claim's fixed fields",
        post(CLAIMS, named("c", spec=ONE_GIBI | {"storageClassName": "x"})),
        patch(f"{CLAIMS}/c", {"spec": {"volumeName": "v"}}),
        patch(f"{CLAIMS}/c", {"spec": {"volumeName": "w"}}),
        patch(f"{CLAIMS}/c", {"spec": {"storageClassName": "y"}}),
        patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound"}}),
        post(CLAIMS, named("d", spec={})),
        post(CLAIMS, named("d", spec={"accessModes": ["Some"], "resources": {"requests": {"storage": "0"}}})),
    ),
    story(
        "budgets that are wrong",
        post(BUDGETS, named("a", spec={"selector": SELECTOR, "minAvailable": 1, "maxUnavailable": 1})),
        post(BUDGETS, named("b", spec={"selector": SELECTOR, "minAvailable": "x"})),
        post(BUDGETS, named("c", spec={"selector": SELECTOR, "minAvailable": -1})),
        post(BUDGETS, named("d", spec={"selector": SELECTOR, "maxUnavailable": "120%"})),
        post(BUDGETS, named("e", spec={"unhealthyPodEvictionPolicy": "Some"})),
        post(BUDGETS, named("f", spec={"minAvailable": 1})),
        put(f"{BUDGETS}/f", named("f", spec={"minAvailable": 2})),
    ),
    story(
        "classes that are wrong",
        post(CLASSES, named("{ns}", value=2_000_000_000)),
        post(CLASSES, named("system-{ns}", value=5)),
        post(CLASSES, named("{ns}", value=5, preemptionPolicy="x")),
        post(CLASSES, named("{ns}", value="x")),
        post(CLASSES, named("{ns}", value=3_000_000_000)),
        post(f"{STORAGE}/storageclasses", named("{ns}")),
        post(f"{STORAGE}/storageclasses", named("{ns}", provisioner="p", volumeBindingMode="x", reclaimPolicy="y")),
    ),
    story(
        "nodes that are wrong",
        post("/api/v1/nodes", named("{ns}", spec={"taints": [{"key": "a b", "effect": "x"}]})),
        post(
            "/api/v1/nodes",
            named(
                "{ns}",
                spec={"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "b"}]},
            ),
        ),
        post("/api/v1/nodes", named("{ns}", status={"capacity": {"cpu": "-1"}})),
        post("/api/v1/nodes", named("{ns}", status={"capacity": {"cpu": "x"}})),
        post("/api/v1/nodes", named("{ns}", spec={"podCIDR": "10.0.0.0/24"})),
        post("/api/v1/nodes", named("{ns}", spec={"taints": [{"key": "a"}]})),
        post("/api/v1/nodes", named("{ns}", spec={"unschedulable": "x"})),
    ),
]
# --- patching

_WEB = post(DEPLOYMENTS, named("d", spec=WORKLOAD))
PATCHING = [
    story(
        "merge patches",
        post(CONFIGS, {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"a": "1", "b": "2"}}),
        patch(f"{CONFIGS}/a", {"data": {"a": None, "c": "3"}}, MERGE),
        patch(f"{CONFIGS}/a", {"metadata": {"labels": None}}, MERGE),
        patch(f"{CONFIGS}/a", {"data": None}, MERGE),
        patch(f"{CONFIGS}/a", {}, MERGE),
        patch(f"{CONFIGS}/a", [], MERGE),
        patch(f"{CONFIGS}/a", b"{", MERGE),
        patch(f"{CONFIGS}/a", {"metadata": {"resourceVersion": "1"}}, MERGE),
        patch(f"{CONFIGS}/a", {"metadata": {"resourceVersion": "{rv4}"}, "data": {"z": "1"}}, MERGE),
        patch(f"{CONFIGS}/a", {"metadata": {"name": "b"}}, MERGE),
        patch(f"{CONFIGS}/a", {"kind": "Pod"}, MERGE),
        patch(f"{CONFIGS}/a", {"metadata": {"uid": "x"}}, MERGE),
        patch(f"{CONFIGS}/a", {"data": {"a": 5}}, MERGE),
        patch(f"{CONFIGS}/a", {"metadata": None}, MERGE),
    ),
    story(
        "JSON patches",
        post(CONFIGS, named("a", data={"a": "1", "b": "2"})),
        patch(f"{CONFIGS}/a", [{"op": "replace", "path": "/data/a", "value": "9"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "test", "path": "/data/a", "value": "1"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "remove", "path": "/data/no"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "move", "from": "/data/a", "path": "/data/z"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "copy", "from": "/data/z", "path": "/data/y"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "add", "path": "/metadata/labels", "value": {"a~b": "c"}}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "add", "path": "/metadata/labels", "value": {"x": "c"}}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "what", "path": "/data/a"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", {}, JSON_PATCH),
        patch(f"{CONFIGS}/a", [], JSON_PATCH),
        patch(f"{CONFIGS}/a", b"[", JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "replace", "path": "/data/no", "value": "9"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "add", "path": "/no/where", "value": "9"}], JSON_PATCH),
        patch(f"{CONFIGS}/a", [{"op": "remove", "path": "/data/z"}, {"op": "remove", "path": "/data/y"}], JSON_PATCH),
    ),
    story(
        "strategic patches",
        _WEB,
        patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "j"}]}}}}),
        patch(
            f"{DEPLOYMENTS}/d",
            {
                "spec": {
                    "template": {
                        "spec": {
                            "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}],
                            "containers": [{"name": "d", "image": "k"}],
                        }
                    }
                }
            },
        ),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [{"name": "d", "$patch": "delete"}]}}}}),
        patch(
            f"{DEPLOYMENTS}/d",
            {"spec": {"template": {"spec": {"containers": [{"name": "e", "image": "x"}, {"$patch": "replace"}]}}}},
        ),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "web"}}}}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": {"a": 1}}}}}),
        patch(f"{DEPLOYMENTS}/d", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}),
        patch(f"{DEPLOYMENTS}/d", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}),
        patch(f"{DEPLOYMENTS}/d", {"metadata": {"finalizers": None}}),
        patch(f"{DEPLOYMENTS}/d", {"spec": {"$patch": "what"}}),
    ),
    story(
        "strategic lists",
        post(PODS, pod()),
        patch(
            f"{PODS}/p/status",
            {
                "status": {
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]
                }
            },
        ),
        patch(f"{PODS}/p/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
        patch(f"{PODS}/p/status", {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}),
        patch(
            f"{PODS}/p/status",
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
                    "conditions": [{"type": "Ready", "$patch": "delete"}],
                }
            },
        ),
        patch(f"{PODS}/p/status", {"metadata": {"uid": "{uid0}"}, "status": {"nominatedNodeName": "n"}}),
        patch(
            f"{PODS}/p/status", {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "status": {"phase": "Running"}}
        ),
        patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": None}}),
    ),
    story(
        "server-side apply",
        apply("one", metadata={"name": "a", "labels": {"x": "1"}}, data={"a": "1", "b": "2"}),
        apply("two", data={"a": "2"}),
        apply("two", "&force=true", data={"a": "2"}),
        apply("one", data={"c": "3"}),
        apply("two", data={"c": "3"}),
        patch(f"{CONFIGS}/a?fieldManager=three", {"data": {"c": "4"}}, MERGE),
        apply("one", data={"c": "5"}),
        owners=True,
    ),
    story(
        "an apply of containers",
        apply_deployment("one", spec=WORKLOAD),
        apply_deployment("hpa", spec={"replicas": 5}),
        apply_deployment(
            "two",
            spec={"template": {"spec": {"containers": [{"name": "side", "image": "s", "ports": [{"containerPort": 80}]}]}}},
        ),
        apply_deployment("two", spec={"template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}),
        apply_deployment("two"),
        owners=True,
    ),
    story(
        "applies that are wrong",
        patch(f"{CONFIGS}/a", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, APPLY),
        patch(f"{CONFIGS}/a?fieldManager=x", {"metadata": {"name": "a"}}, APPLY),
        apply("x", metadata={"name": "b"}),
        apply("x", foo=1),
        patch(f"{CONFIGS}/a?fieldManager=x", b"{", APPLY),
        apply("x", metadata={"name": "a", "managedFields": [{"manager": "x"}]}),
        apply("x", metadata={"name": "a", "uid": "x"}),
        apply("x", "&dryRun=All", data={"a": "1"}),
        get(f"{CONFIGS}/a"),
        patch(f"{CONFIGS}/a?force=true", {"data": {}}, MERGE),
        patch(f"{CONFIGS}/a?fieldManager={'x' * 129}", {"data": {}}, MERGE),
    ),
    story(
        "an apply of YAML",
        patch(
            f"{CONFIGS}/a?fieldManager=x", b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: 'b'\n", APPLY
        ),
    ),
    story(
        "an apply after a create",
        post(f"{CONFIGS}?fieldManager=maker", named("a", data={"a": "1"})),
        apply("x", data={"a": "2"}),
        apply("x", data={"a": "1"}),
    ),
]

# --- ending

DELETING = [
    story("a pod without a node", post(PODS, pod()), delete(f"{PODS}/p"), get(f"{PODS}/p")),
    story(
        "a pod on a node",
        post(PODS, pod(nodeName="n")),
        delete(f"{PODS}/p"),
        get(f"{PODS}/p"),
        delete(f"{PODS}/p", {"gracePeriodSeconds": 5}),
        delete(f"{PODS}/p", {"gracePeriodSeconds": 60}),
        patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}),
        delete(f"{PODS}/p", {"gracePeriodSeconds": 0}),
        get(f"{PODS}/p"),
    ),
    story(
        "a pod that has ended",
        post(PODS, pod(nodeName="n")),
        patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}),
        delete(f"{PODS}/p"),
        get(f"{PODS}/p"),
    ),
    story("no grace", post(PODS, pod(nodeName="n", terminationGracePeriodSeconds=0)), delete(f"{PODS}/p"), get(f"{PODS}/p")),
    story(
        "preconditions",
        post(CONFIGS, named("a")),
        delete(f"{CONFIGS}/a", {"preconditions": {"uid": "x"}}),
        delete(f"{CONFIGS}/a", {"preconditions": {"resourceVersion": "1"}}),
        delete(f"{CONFIGS}/a", {"preconditions": {"uid": "{uid0}", "resourceVersion": "{rv0}"}}),
    ),
    story(
        "finalizers",
        post(CONFIGS, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}}),
        delete(f"{CONFIGS}/a"),
        delete(f"{CONFIGS}/a"),
        patch(f"{CONFIGS}/a", {"metadata": {"finalizers": ["x.y/z", "x.y/w"]}}, MERGE),
        patch(f"{CONFIGS}/a", {"data": {"a": "b"}}),
        patch(f"{CONFIGS}/a", {"metadata": {"finalizers": []}}, MERGE),
        get(f"{CONFIGS}/a"),
    ),
    story(
        "propagation",
        post(DEPLOYMENTS, named("d", spec=WORKLOAD)),
        delete(f"{DEPLOYMENTS}/d", {"propagationPolicy": "Foreground"}),
        get(f"{DEPLOYMENTS}/d"),
        post(DEPLOYMENTS, named("e", spec=WORKLOAD)),
        delete(f"{DEPLOYMENTS}/e?propagationPolicy=Orphan"),
        post(DEPLOYMENTS, named("f", spec=WORKLOAD)),
        delete(f"{DEPLOYMENTS}/f", {"propagationPolicy": "Some"}),
        delete(f"{DEPLOYMENTS}/f", {"orphanDependents": True, "propagationPolicy": "Background"}),
        delete(f"{DEPLOYMENTS}/f", {"propagationPolicy": "Background"}),
        get(f"{DEPLOYMENTS}/f"),
    ),
    story(
        "options that are wrong",
        post(CONFIGS, named("a")),
        delete(f"{CONFIGS}/a", {"gracePeriodSeconds": "x"}),
        delete(f"{CONFIGS}/a?gracePeriodSeconds=x"),
        delete(f"{CONFIGS}/a", b"{"),
        delete(f"{CONFIGS}/a", {"kind": "Pod"}),
        delete(f"{CONFIGS}/a", {"gracePeriodSeconds": -1}),
        delete(f"{CONFIGS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "foo": 1}),
    ),
    story(
        "collections",
        *_FOUR,
        delete(f"{CONFIGS}?labelSelector=odd%3D1"),
        get(CONFIGS, METADATA_LIST),
        delete(f"{CONFIGS}?dryRun=All"),
        delete(CONFIGS),
        get(CONFIGS, METADATA_LIST),
        delete("/api/v1/configmaps"),
        delete(f"{CONFIGS}?fieldSelector=x%3Dy"),
    ),
    story(
        "a collection of pods",
        post(PODS, pod("a")),
        post(PODS, pod("b", nodeName="n")),
        delete(PODS),
        get(PODS, METADATA_LIST),
        delete(f"{PODS}?gracePeriodSeconds=0"),
        get(PODS, METADATA_LIST),
    ),
    story("what may not be deleted", delete("/api/v1/namespaces/default"), delete("/api/v1/namespaces/kube-system")),
]

# --- subresources

SUBRESOURCES = [
    story(
        "bindings",
        post(PODS, pod(labels={"a": "b"})),
        bind("p", "n", uid="00000000-0000-0000-0000-000000000000"),
        bind("p", "n", labels={"x": "y"}, annotations={"k": "v"}),
        get(f"{PODS}/p"),
        bind("p", "m"),
        post(PODS, pod("q", schedulingGates=[{"name": "g"}])),
        bind("q", "n"),
        post(PODS, pod("r")),
        post(f"{PODS}/r/binding", {"metadata": {"name": "r"}, "target": {"kind": "Pod", "name": "n"}}),
        post(f"{PODS}/r/binding", {"metadata": {"name": "r"}, "target": {"name": ""}}),
        post(f"{PODS}/r/binding", {"metadata": {"name": "other"}, "target": {"name": "n"}}),
        post(f"{PODS}/r/binding", {"metadata": {}}),
        post(f"{NS}/bindings", {"metadata": {"name": "r"}, "target": {"kind": "Node", "name": "n"}}),
        get(f"{PODS}/r"),
        get(f"{PODS}/r/binding"),
        put(f"{PODS}/r/binding", {}),
        post(f"{PODS}/p/binding?dryRun=All", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
    ),
    story(
        "a binding ends a nomination",
        post(PODS, pod()),
        patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": "n"}}),
        bind("p", "n"),
        get(f"{PODS}/p"),
    ),
    story("a binding of a pod that goes", post(PODS, pod(nodeName="n")), delete(f"{PODS}/p"), bind("p", "m")),
    story(
        "a binding that only tries",
        post(PODS, pod()),
        post(f"{PODS}/p/binding?dryRun=All", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        get(f"{PODS}/p"),
    ),
    story(
        "a binding of zones",
        post(
            "/api/v1/nodes",
            {
                "metadata": {
                    "name": "{ns}",
                    "labels": {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "x": "y"},
                }
            },
        ),
        post(PODS, pod()),
        bind("p", "{ns}"),
        get(f"{PODS}/p"),
        delete("/api/v1/nodes/{ns}"),
    ),
    story(
        "scales",
        _WEB,
        get(f"{DEPLOYMENTS}/d/scale"),
        put(f"{DEPLOYMENTS}/d/scale", again(1, {"spec.replicas": 4})),
        put(f"{DEPLOYMENTS}/d/scale", again(1, {"spec.replicas": 5})),
        patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 2}}, MERGE),
        patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -2}}, MERGE),
        put(f"{DEPLOYMENTS}/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 3}}),
        put(f"{DEPLOYMENTS}/d/scale", {"metadata": {"name": "x"}, "spec": {"replicas": 3}}),
        patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": "x"}}, MERGE),
        get(f"{DEPLOYMENTS}/d"),
        get(f"{APPS}/daemonsets/d/scale"),
    ),
    story(
        "evictions",
        post(PODS, pod()),
        evict("p"),
        get(f"{PODS}/p"),
        post(PODS, pod("q", nodeName="n")),
        evict("q", deleteOptions={"gracePeriodSeconds": 3}),
        get(f"{PODS}/q"),
        post(PODS, pod("r")),
        evict("r", deleteOptions={"dryRun": ["All"]}),
        get(f"{PODS}/r"),
        post(f"{PODS}/r/eviction", {"metadata": {"name": "x"}}),
        post(f"{PODS}/r/eviction", {}),
        evict("r", deleteOptions={"preconditions": {"uid": "x"}}),
    ),
    story(
        "a budget forbids",
        post(PODS, pod(labels={"app": "web"}, nodeName="n")),
        patch(f"{PODS}/p/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        post(BUDGETS, named("b", spec={"selector": SELECTOR, "minAvailable": 1})),
        evict("p"),
        put(
            f"{BUDGETS}/b/status",
            again(
                2,
                {
                    "status": {
                        "observedGeneration": 1,
                        "disruptionsAllowed": 0,
                        "currentHealthy": 1,
                        "desiredHealthy": 1,
                        "expectedPods": 1,
                    }
                },
            ),
        ),
        evict("p"),
        put(f"{BUDGETS}/b/status", again(4, {"status.disruptionsAllowed": 1})),
        evict("p"),
        get(f"{BUDGETS}/b"),
        get(f"{PODS}/p"),
        post(BUDGETS, named("c", spec={"selector": SELECTOR, "minAvailable": 1})),
        post(PODS, pod("q", labels={"app": "web"}, nodeName="n")),
        patch(f"{PODS}/q/status", {"status": {"phase": "Running"}}),
        evict("q"),
    ),
    story(
        "a resize",
        post(PODS, pod(nodeName="n", containers=[container(resources={"requests": {"cpu": "1"}})])),
        patch(f"{PODS}/p/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}),
        patch(f"{PODS}/p/resize", {"spec": {"containers": [{"name": "c", "image": "x"}]}}),
        patch(f"{PODS}/p", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}),
    ),
    story(
        "methods that are not there",
        put(f"{CONFIGS}", {}),
        patch(CONFIGS, {}),
        post(f"{PODS}/p/status", {}),
        delete(f"{PODS}/p/status"),
        get(f"{PODS}/p/eviction"),
        put(f"{PODS}/p/eviction", {}),
        delete(f"{NS}/bindings"),
        get(f"{NS}/bindings"),
        Step("OPTIONS", CONFIGS),
        post("/api/v1/pods", pod()),
        post("/api", {}),
        post("/apis/apps/v1", {}),
        put("/version", {}),
        get(f"{PODS}/p/log"),
        post(f"{PODS}/p/exec?command=x", {}),
    ),
]
# --- custom kinds


def _crd(schema: Any, **version: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.{ns}.example.com"},
        "spec": {
            "group": "{ns}.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}],
        },
    }


_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CUSTOM = [
    story(
        "definitions that are wrong",
        post(_CRDS, {"metadata": {"name": "x"}, "spec": {}}),
        post(_CRDS, _crd({"type": "object"}) | {"metadata": {"name": "other"}}),
        post(
            _CRDS,
            {
                "metadata": {"name": "a.b"},
                "spec": {
                    "group": "b",
                    "scope": "Some",
                    "names": {"kind": "A", "plural": "a"},
                    "versions": [{"name": "v1", "served": True, "storage": False}],
                },
            },
        ),
    )
]


# --- wrong pods


def _spread(**more: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [_SPREAD | more]}


WRONG_PODS: list[tuple[str, dict[str, Any]]] = [
    ("no containers", {"containers": []}),
    ("containers null", {"containers": None}),
    ("no image", {"containers": [{"name": "c"}]}),
    ("no container name", {"containers": [{"image": "i"}]}),
    ("a bad container name", {"containers": [container("A")]}),
    ("two of a name", {"containers": [container(), container()]}),
    ("two of a name, one first", {"initContainers": [container()]}),
    ("a spaced image", {"containers": [container() | {"image": " i "}]}),
    ("restart policy", {"restartPolicy": "Maybe"}),
    ("no restart policy", {"restartPolicy": ""}),
    ("dns policy", {"dnsPolicy": "Some"}),
    ("pull policy", {"containers": [container(imagePullPolicy="Some")]}),
    ("message policy", {"containers": [container(terminationMessagePolicy="Some")]}),
    ("negative grace", {"terminationGracePeriodSeconds": -1}),
    ("deadline zero", {"activeDeadlineSeconds": 0}),
    ("preemption policy", {"preemptionPolicy": "Some"}),
    ("priority", {"priority": 5}),
    ("no such class", {"priorityClassName": "no"}),
    ("scheduler name", {"schedulerName": "A b"}),
    ("node name", {"nodeName": "A b"}),
    ("host name", {"hostname": "A b"}),
    ("service account", {"serviceAccountName": "A b"}),
    ("runtime class", {"runtimeClassName": "A b"}),
    ("node selector key", {"nodeSelector": {"a b": "c"}}),
    ("node selector value", {"nodeSelector": {"a": "b c"}}),
    ("port zero", {"containers": [container(ports=[{"containerPort": 0}])]}),
    ("port large", {"containers": [container(ports=[{"containerPort": 70000, "hostPort": 70000}])]}),
    ("port missing", {"containers": [container(ports=[{}])]}),
    ("port protocol", {"containers": [container(ports=[{"containerPort": 1, "protocol": "x"}])]}),
    ("port name", {"containers": [container(ports=[{"containerPort": 1, "name": "A b"}])]}),
    (
        "host port twice",
        {"containers": [container(ports=[{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}])]},
    ),
    ("host network port", {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 1, "hostPort": 5}])]}),
    ("request over limit", asks({"cpu": "2"}, {"cpu": "1"})),
    ("negative request", asks({"cpu": "-1"})),
    ("bad quantity", asks({"cpu": "x"})),
    ("unknown resource", asks({"foo": "1"})),
    ("a bad resource name", asks({"a b": "1"})),
    ("fraction of a device", asks({"example.com/gpu": "500m"}, {"example.com/gpu": "500m"})),
    ("request of a device alone", asks({"example.com/gpu": "1"})),
    ("device request under limit", asks({"example.com/gpu": "1"}, {"example.com/gpu": "2"})),
    ("huge pages alone", asks({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"})),
    ("huge pages unequal", asks({"hugepages-2Mi": "2Mi", "cpu": "1"}, {"hugepages-2Mi": "4Mi"})),
    ("a quantity that is a list", asks({"cpu": []})),
    ("small fractions", asks({"cpu": "0.0001"})),
    ("memory in milli", asks({"memory": "1500m"})),
    ("toleration of nothing", {"tolerations": [{"value": "x"}]}),
    ("toleration operator", {"tolerations": [{"key": "a", "operator": "Some"}]}),
    ("toleration effect", {"tolerations": [{"key": "a", "effect": "Some"}]}),
    ("toleration exists with value", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
    ("toleration key", {"tolerations": [{"key": "a b"}]}),
    ("toleration value", {"tolerations": [{"key": "a", "value": "b c"}]}),
    ("toleration seconds", {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]}),
    ("toleration less than", {"tolerations": [{"key": "a", "operator": "Lt", "value": "x"}]}),
    ("toleration greater", {"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]}),
    ("node terms empty", {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": []}}}}),
    ("node terms missing", {"affinity": {"nodeAffinity": {_REQUIRED: {}}}}),
    ("an empty node term", _node_rule()),
    ("node operator", _expression(key="a", operator="Some")),
    ("node key", _expression(key="a b", operator="Exists")),
    ("in without values", _expression(key="a", operator="In")),
    ("exists with values", _expression(key="a", operator="Exists", values=["b"])),
    ("greater of two", _expression(key="a", operator="Gt", values=["1", "2"])),
    ("greater of a word", _expression(key="a", operator="Gt", values=["x"])),
    ("a bad node value", _expression(key="a", operator="In", values=["b c"])),
    ("no operator", _expression(key="a")),
    ("match field key", _node_rule(matchFields=[{"key": "metadata.uid", "operator": "In", "values": ["x"]}])),
    ("match field operator", _node_rule(matchFields=[{"key": "metadata.name", "operator": "Exists"}])),
    ("match field of two", _node_rule(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["x", "y"]}])),
    ("match field value", _node_rule(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["A b"]}])),
    ("node weight", {"affinity": {"nodeAffinity": {_PREFERRED: [{"weight": 0, "preference": {}}]}}}),
    ("node weight large", {"affinity": {"nodeAffinity": {_PREFERRED: [{"weight": 101, "preference": {}}]}}}),
    ("no topology key", _pod_rule(labelSelector=SELECTOR)),
    ("a bad topology key", _pod_rule(labelSelector=SELECTOR, topologyKey="a b")),
    ("a bad namespace", _pod_rule(topologyKey="z", namespaces=["A b"])),
    ("pod weight", {"affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 0, "podAffinityTerm": _TERM}]}}}),
    ("a bad pod selector", _pod_rule(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a", "operator": "Some"}]})),
    (
        "a pod selector with values",
        _pod_rule(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
    ),
    (
        "a pod selector without values",
        _pod_rule(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
    ),
    ("a pod selector label", _pod_rule(topologyKey="z", labelSelector={"matchLabels": {"a b": "c d"}})),
    ("a namespace selector", _pod_rule(topologyKey="z", namespaceSelector={"matchLabels": {"a": "c d"}})),
    ("label keys in both", _pod_rule(topologyKey="z", labelSelector=SELECTOR, matchLabelKeys=["a"], mismatchLabelKeys=["a"])),
    ("label keys without selector", _pod_rule(topologyKey="z", matchLabelKeys=["a"])),
    ("a bad label key", _pod_rule(topologyKey="z", labelSelector=SELECTOR, matchLabelKeys=["a b"])),
    ("label keys that collide", _pod_rule(topologyKey="z", labelSelector={"matchLabels": {"a": "b"}}, matchLabelKeys=["a"])),
    ("skew zero", _spread(maxSkew=0)),
    ("skew negative", _spread(maxSkew=-1)),
    ("spread without key", _spread(topologyKey="")),
    ("spread action", _spread(whenUnsatisfiable="Some")),
    ("spread without action", _spread(whenUnsatisfiable="")),
    ("spread domains", _spread(minDomains=0)),
    ("spread domains anyway", _spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway")),
    ("spread policies", _spread(nodeAffinityPolicy="x", nodeTaintsPolicy="y")),
    ("spread twice", {"topologySpreadConstraints": [_SPREAD, _SPREAD | {"maxSkew": 2}]}),
    ("spread selector", _spread(labelSelector={"matchLabels": {"a b": "c"}})),
    ("spread label keys", _spread(matchLabelKeys=["a"], labelSelector=None)),
    ("spread label key collides", _spread(matchLabelKeys=["app"])),
    ("spread key bad", _spread(topologyKey="a b")),
    ("a gate's name", {"schedulingGates": [{"name": "a b"}]}),
    ("two gates of a name", {"schedulingGates": [{"name": "a"}, {"name": "a"}]}),
    ("gated on a node", {"schedulingGates": [{"name": "a"}], "nodeName": "n"}),
    ("a gate without a name", {"schedulingGates": [{}]}),
    ("two volumes of a name", {"volumes": [{"name": "a"}, {"name": "a"}]}),
    ("a volume's name", {"volumes": [{"name": "A b"}]}),
    ("a volume of two kinds", {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}]}),
    ("a claim without a name", {"volumes": [{"name": "a", "persistentVolumeClaim": {}}]}),
    ("a mount of nothing", {"containers": [container(volumeMounts=[{"name": "no", "mountPath": "/x"}])]}),
    ("a mount without path", {"volumes": [{"name": "a"}], "containers": [container(volumeMounts=[{"name": "a"}])]}),
    (
        "a mount twice",
        {
            "volumes": [{"name": "a"}],
            "containers": [container(volumeMounts=[{"name": "a", "mountPath": "/x"}, {"name": "a", "mountPath": "/x"}])],
        },
    ),
    ("a config without a name", {"volumes": [{"name": "a", "configMap": {}}]}),
    ("a host path without path", {"volumes": [{"name": "a", "hostPath": {}}]}),
    ("a volume of no kind", {"volumes": [{"name": "a", "csi": {}}]}),
    ("claims of devices", {"resourceClaims": [{"name": "a"}]}),
    ("claims of both", {"resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]}),
    ("claims twice", {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}, {"name": "a", "resourceClaimName": "b"}]}),
    ("a claim nobody declared", {"containers": [container(resources={"claims": [{"name": "no"}]})]}),
    ("a claim's name", {"resourceClaims": [{"name": "A b", "resourceClaimName": "C d"}]}),
    ("overhead", {"overhead": {"cpu": "-1"}}),
    ("overhead without class", {"overhead": {"cpu": "1"}}),
    ("os", {"os": {"name": "plan9"}}),
    ("a sidecar's policy", {"initContainers": [container("a", restartPolicy="Never")]}),
    ("a container's policy", {"containers": [container(restartPolicy="Always")]}),
    ("pod resources over", {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
    (
        "pod resources too small",
        {"resources": {"requests": {"cpu": "1"}}, "containers": [container(resources={"requests": {"cpu": "2"}})]},
    ),
    ("pod resources of devices", {"resources": {"requests": {"example.com/gpu": "1"}}}),
    ("a number for a name", {"nodeName": 5}),
    ("a text for a number", {"priority": "x"}),
    ("a list for an object", {"affinity": []}),
    ("an object for a list", {"tolerations": {}}),
    ("a text for a bool", {"hostNetwork": "true"}),
    ("a large number", {"priority": 3_000_000_000}),
    ("a fraction for a number", {"priority": 1.5}),
    (
        "several at once",
        {
            "restartPolicy": "Maybe",
            "containers": [{"name": "A"}],
            "tolerations": [{"key": "a b"}],
            "nodeSelector": {"a b": "c"},
            "terminationGracePeriodSeconds": -2,
        },
    ),
    ("probe numbers", {"containers": [container(livenessProbe={"httpGet": {"port": 80}, "periodSeconds": -1})]}),
    ("a probe of nothing", {"containers": [container(livenessProbe={})]}),
    ("env without name", {"containers": [container(env=[{"value": "x"}])]}),
    ("env name", {"containers": [container(env=[{"name": "a=b"}])]}),
]
REFUSED = [
    story(f"a pod: {name}", post(PODS, pod(**spec)), delete(f"{PODS}/p?gracePeriodSeconds=0")) for name, spec in WRONG_PODS
]

# --- who, and what there is

ACCESS = [
    story(
        "who asks",
        get(PODS, token="nobody"),
        get(PODS, token="guest"),
        get("/api/v1/nodes/n", token="guest"),
        Step("POST", CONFIGS, {"metadata": {"name": "a"}}, token="guest"),
        get("/api", token="guest"),
        get("/metrics/x", token="guest"),
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "kind": "SelfSubjectAccessReview",
                "apiVersion": "authorization.k8s.io/v1",
                "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}},
            },
        ),
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}),
    )
]
DISCOVERY = [
    story(
        "discovery",
        *(
            get(path)
            for path in (
                "/api",
                "/apis/apps",
                "/apis/apps/v1",
                "/apis/policy/v1",
                "/apis/coordination.k8s.io/v1",
                "/apis/scheduling.k8s.io/v1",
                "/apis/resource.k8s.io/v1",
                "/apis/events.k8s.io/v1",
                "/apis/apiextensions.k8s.io/v1",
                "/apis/authorization.k8s.io/v1",
                "/apis/no",
                "/apis/apps/v2",
                "/api/v2",
                "/healthz",
                "/readyz",
                "/livez",
            )
        ),
    )
]

BOOK: list[Story] = [
    *DEFAULTS,
    *READING,
    *WATCHING,
    *WRITING,
    *PATCHING,
    *DELETING,
    *SUBRESOURCES,
    *CUSTOM,
    *REFUSED,
    *ACCESS,
    *DISCOVERY,
]
assert len({one.name for one in BOOK}) == len(BOOK), "every story has a name of its own"
