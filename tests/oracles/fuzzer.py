"""Random clusters as they stand on the wire, odd in every way an API server lets through, and in some it would not.

In: a `Random`. Out: plain dictionaries: nodes, placed and incoming pods, the objects around them, and arguments for the
plugins. Everything follows from the `Random` handed in. `kubesched.testing` makes the tame ones that plugin authors are
checked with; these are for comparing two ways of deciding: selectors that match everything, nothing or cannot be read, labels
with empty values, nodes without labels, allocatable of zero, quantities in strange spellings, pods on their way out.
"""

from __future__ import annotations

from random import Random
from typing import Any

Raw = dict[str, Any]

HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
KEYS = (*(ZONE,) * 6, *(HOSTNAME,) * 6, "disk", "disk", "rank", "nowhere")
"""What domains are made of; no node has the last."""
NAMESPACES = ("default", "default", "team-a", "team-b", "lost")
"""The last has no Namespace object."""
SCALARS = ("example.com/gpu", "hugepages-2Mi", "attachable-volumes-x", "foo.kubernetes.io/bar", "other.org/fpga")
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "SomethingOfTomorrow")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
UNREADABLE = (
    {"key": "app", "operator": "In", "values": []},
    {"key": "app", "operator": "Like", "values": ["web"]},
    {"key": "app", "operator": "NotIn", "values": ["not a value"]},
    {"key": "a b", "operator": "Exists"},
)


THEMES: dict[str, dict[str, float]] = {
    "everything": {},
    "resources": {"taints": 0.05, "affinity": 0.0, "spread": 0.0, "node selector": 0.0, "ports": 0.0, "sizes": 1.0},
    "nodes": {"affinity": 0.6, "pod affinity": 0.0, "spread": 0.0, "taints": 1.5, "ports": 0.4, "node affinity": 0.9},
    "pods": {"affinity": 0.9, "pod affinity": 0.7, "node affinity": 0.1, "spread": 0.0, "taints": 0.1, "crowd": 0.6},
    "spread": {"affinity": 0.15, "pod affinity": 0.0, "spread": 0.9, "taints": 0.4, "ports": 0.0, "crowd": 0.8},
    "siblings": {"affinity": 0.1, "spread": 0.0, "taints": 0.2, "ports": 0.0, "crowd": 0.9, "owners": 0.6, "defaults": 0.8},
}
"""What a cluster is about, as probabilities that differ from the usual ones: one that is about everything at once hides
most of it behind whatever refuses first."""
_USUAL = {
    "taints": 0.7,
    "affinity": 0.45,
    "node affinity": 0.35,
    "pod affinity": 0.45,
    "spread": 0.35,
    "node selector": 0.15,
    "ports": 0.12,
    "crowd": 0.0,
    "owners": 0.2,
    "defaults": 0.4,
    "sizes": 0.0,
}


class Fuzzer:
    """A source of odd objects about a theme."""

    def __init__(self, random: Random, theme: str = "everything") -> None:
        self.random = random
        self.odds = {**_USUAL, **THEMES[theme]}
        self.unreadable = 0.004
        """How often a selector cannot be read; most of a pod's selectors must be readable to get anywhere."""

    def often(self, what: str) -> bool:
        """Return True as often as the theme wants it."""
        return self.chance(self.odds[what])

    def chance(self, probability: float) -> bool:
        """Return True so often."""
        return self.random.random() < probability

    def one(self, *choices: Any) -> Any:
        """Return one of the choices."""
        return self.random.choice(choices)

    def objects(self, n_nodes: int, n_pods: int) -> list[Raw]:
        """Return a cluster: nodes, pods on them and on nodes that are not there, and everything around."""
        nodes = [self.node(f"n{i}") for i in range(n_nodes)]
        names = [node["metadata"]["name"] for node in nodes] or ["gone"]
        places = [self.random.choice(names) if self.chance(0.97) else "gone" for _ in range(n_pods)]
        pods = [self.pod(f"old-{i}", on=name) for i, name in enumerate(places)]
        return [*self.surroundings(), *nodes, *pods]

    def surroundings(self) -> list[Raw]:
        """Return namespaces, services and controllers."""
        labels: Raw = {"default": {}, "team-a": {"team": "a"}, "team-b": {"team": "b", "empty": ""}}
        found = [_object("v1", "Namespace", name, labels=given) for name, given in labels.items()]
        for i in range(self.random.randrange(4)):
            selector = self.one(None, {}, {"app": "web"}, {"app": "db"}, {"tier": ""}, {"app": "web", "tier": "x"})
            found.append(_object("v1", "Service", f"service-{i}", self.namespace(), selector=selector))
        for namespace in ("default", "team-a"):
            for version, kind in (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")):
                if self.chance(0.7):
                    found.append(_object(version, kind, "owner", namespace, selector=self.selector()))
            if self.chance(0.7):
                selector = self.one(None, {"app": "web"}, {"tier": "x"})
                found.append(_object("v1", "ReplicationController", "owner", namespace, selector=selector))
        return found

    # Nodes

    def node(self, name: str) -> Raw:
        """Return a node."""
        labels = None if self.chance(0.04) else self.node_labels(name)
        spec: Raw = {"taints": [self.taint() for _ in range(self.one(0, 0, 1, 1, 2, 3)) if self.often("taints")]}
        if self.chance(0.07):
            spec["unschedulable"] = True
        status: Raw = {
            "allocatable": self.offer(),
            "capacity": {"cpu": "1000", "memory": "1000Gi", "pods": "1000"},
            "images": [self.image() for _ in range(self.one(0, 0, 1, 2, 4))],
        }
        if self.chance(0.4):
            status["declaredFeatures"] = self.random.sample(FEATURES, self.random.randrange(1, 4))
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
            "spec": spec,
            "status": status,
        }

    def node_labels(self, name: str) -> dict[str, str]:
        """Return a node's labels."""
        labels = {}
        if self.chance(0.93):
            labels[HOSTNAME] = name if self.chance(0.95) else "shared-host"
        if self.chance(0.85):
            labels[ZONE] = self.one("a", "a", "b", "b", "c", "")
        if self.chance(0.6):
            labels["disk"] = self.one("ssd", "hdd", "")
        if self.chance(0.5):
            labels["rank"] = self.one("0", "1", "5", "-3", "007", "+4", "five", "9223372036854775808", "")
        if self.chance(0.2):
            labels[REGION] = self.one("north", "south")
        return labels

    def offer(self) -> Raw:
        """Return what a node has to give."""
        offer: Raw = {
            "cpu": self.one("4", "20", "8", "12500m", "16", "0.5", "1e1", "9999999u"),
            "memory": self.one("8Gi", "16Gi", "11.5Gi", "4e9", "20000M", "12345678901", "0.1Ti"),
            "pods": self.one("110", "110", "110", "110", "6", "3", 20),
        }
        if self.chance(0.05):
            offer[self.one("cpu", "memory", "pods")] = "0"
        if self.chance(0.8):
            offer["ephemeral-storage"] = self.one("10Gi", "1G", "0")
        for scalar in SCALARS:
            if self.chance(0.4):
                offer[scalar] = self.one("8", "2", "1", "0", "1k")
        if self.chance(0.1):
            offer["unknown"] = "5"
        if self.chance(0.05):
            del offer[self.one("cpu", "memory", "pods")]
        return offer

    def taint(self) -> Raw:
        """Return a taint."""
        return {
            "key": self.one("gpu", "soft", "down", "level"),
            "value": self.one("", "x", "3", "007"),
            "effect": self.one("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"),
        }

    def image(self) -> Raw:
        """Return an image that a node holds, under one or more names."""
        names = self.random.sample(
            ("app:latest", "db:1", "reg.example/db:1", "reg.example:5000/app:latest", "small:2", "app@sha256:0123"),
            self.one(1, 1, 2, 3),
        )
        return {"names": names, "sizeBytes": self.one(5 << 20, 40 << 20, 250 << 20, 900 << 20, 3 << 30)}

    # Pods

    def pod(self, name: str, on: str = "") -> Raw:
        """Return a pod; with `on` one that runs there."""
        metadata: Raw = {"name": name, "namespace": self.namespace(), "uid": f"uid-{name}", "labels": self.pod_labels()}
        spec: Raw = {
            "containers": [self.container(f"c{i}") for i in range(self.one(1, 1, 1, 2, 3))],
            "tolerations": [self.toleration() for _ in range(self.one(0, 0, 1, 1, 2))],
            "priority": self.one(None, 0, 5, 10, -1),
        }
        pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}
        if self.chance(0.01):
            spec["containers"] = []
        if self.chance(0.2):
            spec["initContainers"] = [self.init_container(f"i{i}") for i in range(self.one(1, 2, 3))]
        if on:
            spec["nodeName"] = on
            self.age(pod)
        elif self.chance(0.02):
            spec["nodeName"] = self.one("n0", "n1", "gone")
        if self.chance(0.1):
            spec["overhead"] = self.requests(0.5)
        if self.chance(0.08):
            spec["resources"] = {
                "requests": self.one(
                    {"cpu": "1"},
                    {"memory": "1Gi"},
                    {"cpu": "300m", "memory": "2Gi"},
                    {"hugepages-2Mi": "2"},
                    {"example.com/gpu": "1"},
                    {},
                )
            }
        if self.often("node selector"):
            spec["nodeSelector"] = self.one({}, {"disk": "ssd"}, {"disk": ""}, {ZONE: "a"}, {"nowhere": ""}, {"disk": "x y"})
        if self.often("affinity"):
            spec["affinity"] = self.affinity(is_placed=bool(on))
        if not on and self.often("spread"):
            spec["topologySpreadConstraints"] = [self.spread() for _ in range(self.one(1, 1, 2, 3))]
        if self.often("owners"):
            metadata["ownerReferences"] = [self.owner() for _ in range(self.one(1, 2))]
        if self.chance(0.05):
            spec.update(hostNetwork=True, hostUsers=self.one(None, True, False, False))
        if self.chance(0.05):
            spec["volumes"] = [{"name": "v", "image": {"reference": self.image_name()}}]
        return pod

    def age(self, pod: Raw) -> None:
        """Let something happen to a running pod: a resize, its deletion."""
        status: Raw = {"phase": "Running"}
        if self.chance(0.06):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if self.chance(0.1):
            named = [c["name"] for c in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))]
            reports = [
                {
                    "name": one,
                    "resources": self.one(None, {"requests": self.requests(0.7)}),
                    "allocatedResources": self.requests(0.7),
                }
                for one in named
            ]
            status["containerStatuses"] = [r for r in reports if r["name"].startswith("c")]
            status["initContainerStatuses"] = [r for r in reports if r["name"].startswith("i")]
            pending = self.one((), ("Infeasible",), ("Deferred",), ("Deferred", "Infeasible"))
            status["conditions"] = [{"type": "PodResizePending", "status": "False", "reason": reason} for reason in pending]
            if self.chance(0.5):
                status["resources"] = {"requests": self.one({}, {"cpu": "700m"}, {"memory": "100Mi"})}
                status["allocatedResources"] = self.one({}, {"cpu": "600m", "memory": "3Gi"})
        pod["status"] = status

    def namespace(self) -> str:
        """Return the name of a namespace."""
        return "default" if self.often("crowd") else self.random.choice(NAMESPACES)

    def pod_labels(self) -> dict[str, str] | None:
        """Return a pod's labels; in a crowd most are alike."""
        if self.often("crowd"):
            return {"app": "web", "tier": self.one("x", "x", "y", ""), "pod-template-hash": self.one("1", "2")}
        if self.chance(0.05):
            return None
        labels = {"app": self.one("web", "web", "db", "batch", "")} if self.chance(0.9) else {}
        if self.chance(0.4):
            labels["tier"] = self.one("", "x", "y")
        if self.chance(0.2):
            labels["pod-template-hash"] = self.one("1", "2")
        return labels

    def container(self, name: str) -> Raw:
        """Return a container."""
        container: Raw = {"name": name, "image": self.image_name(), "resources": {"requests": self.requests(0.7)}}
        if self.often("ports"):
            container["ports"] = [self.port() for _ in range(self.one(1, 1, 2))]
        if self.chance(0.02):
            container["restartPolicyRules"] = [{"action": self.one("Restart", "RestartAllContainers")}]
        return container

    def init_container(self, name: str) -> Raw:
        """Return an init container, or a sidecar."""
        container = self.container(name)
        if self.chance(0.4):
            container["restartPolicy"] = "Always"
        return container

    def image_name(self) -> str:
        """Return an image as a pod names it."""
        return str(
            self.one(
                "app",
                "app:latest",
                "db:1",
                "reg.example/db:1",
                "reg.example:5000/app",
                "small:2",
                "app@sha256:0123",
                "app:latest@sha256:0123",
                "nobody/has:it",
                "",
            )
        )

    def requests(self, probability: float) -> Raw:
        """Return requests in strange spellings."""
        asked: Raw = {}
        large = self.often("sizes")
        if self.chance(probability):
            asked["cpu"] = self.one("100m", "250m", "0.5", "0.5m", "0", "1e-1", "1001u", *(("1", "2", "5") if large else ()))
        if self.chance(probability):
            asked["memory"] = self.one(
                "64Mi", "512Mi", "100m", "0.1Ki", "1e8", "0", "128974848", *(("1Gi", "2.5Gi", "6e9") if large else ())
            )
        if self.chance(0.04):
            asked["ephemeral-storage"] = self.one("1Gi", "500M", "0")
        if self.chance(0.3 if large else 0.05):
            asked[self.random.choice(SCALARS)] = self.one("1", "2", "0")
        return asked

    def port(self) -> Raw:
        """Return a port; most take one of the node's."""
        port: Raw = {"containerPort": 80, "hostPort": self.one(80, 80, 443, 0)}
        if self.chance(0.4):
            port["protocol"] = self.one("TCP", "UDP", "")
        if self.chance(0.4):
            port["hostIP"] = self.one("0.0.0.0", "127.0.0.1", "10.0.0.1", "::", "")
        return port

    def toleration(self) -> Raw:
        """Return a toleration."""
        toleration: Raw = {"key": self.one("gpu", "soft", "down", "level", "node.kubernetes.io/unschedulable", "")}
        toleration["operator"] = self.one("Exists", "Exists", "Exists", "Equal", "", "Lt", "Gt", "Odd")
        if toleration["operator"] != "Exists":
            toleration["value"] = self.one("", "x", "3", "5", "007", "-1")
        if self.chance(0.5):
            toleration["effect"] = self.one("NoSchedule", "PreferNoSchedule", "NoExecute")
        return toleration

    def owner(self) -> Raw:
        """Return a reference to an owner."""
        version, kind = self.one(
            ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController"), ("batch/v1", "Job")
        )
        return {
            "apiVersion": version,
            "kind": kind,
            "name": self.one("owner", "owner", "gone"),
            "uid": "u",
            "controller": self.chance(0.8),
        }

    # Selectors

    def selector(self, *, of_namespaces: bool = False) -> Raw | None:
        """Return a label selector: absent, for everything, or for some."""
        if self.chance(0.05):
            return None
        if self.chance(0.06):
            return {}
        if not of_namespaces and self.often("crowd"):
            return {"matchLabels": {"app": "web"}}
        if self.chance(self.unreadable):
            return {"matchExpressions": [self.random.choice(UNREADABLE)]}
        key, values = self.one(("app", ("web", "db", "")), ("tier", ("", "x")))
        if of_namespaces:
            key, values = "team", ("a", "b")
        if self.chance(0.5):
            return {"matchLabels": {key: self.random.choice(values)}}
        return {"matchExpressions": [self.expression(key, values) for _ in range(self.one(1, 1, 2))]}

    def expression(self, key: str, values: tuple[str, ...], *more: str) -> Raw:
        """Return one expression of a selector."""
        operator = self.one("In", "NotIn", "Exists", "DoesNotExist", *more)
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        if operator in ("Gt", "Lt"):
            return {"key": key, "operator": operator, "values": [self.one("0", "3", "4", "10")]}
        some = self.random.sample(values, self.random.randrange(1, len(values) + 1))
        return {"key": key, "operator": operator, "values": some}

    def node_term(self) -> Raw:
        """Return a term of a node selector."""
        term: Raw = {}
        if self.chance(0.85):
            key, values = self.one(("disk", ("ssd", "hdd", "")), (ZONE, ("a", "b")), ("nowhere", ("x",)))
            term["matchExpressions"] = [self.expression(key, values)]
            if self.chance(0.3):
                term["matchExpressions"].append(self.expression("rank", ("5", "007"), "Gt", "Lt", "Gt", "Lt"))
            if self.chance(4 * self.unreadable):
                negative = {"key": "rank", "operator": "Gt", "values": ["-1"]}
                term["matchExpressions"].append(self.one(*UNREADABLE, negative))
        if self.chance(0.15):
            term["matchFields"] = [self.node_field() for _ in range(self.one(1, 1, 2))]
        return term

    def node_field(self) -> Raw:
        """Return an expression about a node's own name."""
        return {
            "key": self.one("metadata.name", "metadata.name", "metadata.name", "spec.odd"),
            "operator": self.one("In", "In", "In", "NotIn"),
            "values": self.random.sample(("n0", "n1", "n2", ""), self.one(1, 1, 1, 2)),
        }

    def node_affinity(self) -> Raw:
        """Return an affinity to nodes."""
        affinity: Raw = {}
        if self.chance(0.5):
            affinity[REQUIRED] = {"nodeSelectorTerms": [self.node_term() for _ in range(self.one(0, 1, 1, 1, 2))]}
        if self.chance(0.6):
            affinity[PREFERRED] = [
                {"weight": self.one(0, 1, 7, 50, 100), "preference": self.node_term()} for _ in range(self.one(0, 1, 2, 3))
            ]
        return affinity

    def affinity(self, *, is_placed: bool) -> Raw:
        """Return an affinity to nodes and to other pods."""
        affinity: Raw = {}
        if not is_placed and self.often("node affinity"):
            affinity["nodeAffinity"] = self.node_affinity()
        for kind in ("podAffinity", "podAntiAffinity"):
            if self.often("pod affinity"):
                stated: Raw = {}
                if self.chance(0.4):
                    stated[REQUIRED] = [self.pod_term() for _ in range(self.one(1, 1, 2))]
                if self.chance(0.6):
                    stated[PREFERRED] = [
                        {"weight": self.one(1, 10, 100), "podAffinityTerm": self.pod_term()} for _ in range(self.one(1, 2))
                    ]
                affinity[kind] = stated
        return affinity

    def pod_term(self) -> Raw:
        """Return a term about other pods."""
        term: Raw = {"topologyKey": self.random.choice(KEYS), "labelSelector": self.selector()}
        if self.chance(0.25):
            term["namespaces"] = self.random.sample(("default", "team-a", "lost"), self.one(0, 1, 2))
        if self.chance(0.35):
            term["namespaceSelector"] = self.selector(of_namespaces=True)
        return term

    def spread(self) -> Raw:
        """Return a topology spread constraint."""
        action = self.one("DoNotSchedule", "ScheduleAnyway")
        constraint: Raw = {
            "maxSkew": self.one(1, 1, 1, 2, 3),
            "topologyKey": self.random.choice(KEYS),
            "whenUnsatisfiable": action,
            "labelSelector": self.selector(),
        }
        if self.chance(0.2):
            constraint["minDomains"] = self.one(1, 2, 3, 5)
        if self.chance(0.3):
            constraint["nodeAffinityPolicy"] = self.one("Honor", "Ignore")
        if self.chance(0.3):
            constraint["nodeTaintsPolicy"] = self.one("Honor", "Ignore")
        if self.chance(0.2):
            constraint["matchLabelKeys"] = self.random.sample(("pod-template-hash", "tier", "absent"), self.one(1, 2))
        return constraint

    # Arguments

    def args(self) -> dict[str, Raw]:
        """Return arguments for some of the plugins, as a configuration file holds them."""
        args: dict[str, Raw] = {}
        if self.chance(0.6):
            args["NodeResourcesFit"] = self.fit_args()
        if self.chance(0.4):
            resources = [{"name": name, "weight": 1} for name in self.resources()]
            args["NodeResourcesBalancedAllocation"] = {"resources": resources}
        if self.chance(0.2):
            args["NodeAffinity"] = {"addedAffinity": self.added_affinity()}
        if self.chance(0.4):
            args["InterPodAffinity"] = {
                "hardPodAffinityWeight": self.one(0, 1, 50),
                "ignorePreferredTermsOfExistingPods": self.chance(0.5),
            }
        if self.often("defaults"):
            args["PodTopologySpread"] = {"defaultingType": "List", "defaultConstraints": self.default_constraints()}
        return args

    def resources(self) -> list[str]:
        """Return the names of some resources."""
        return self.random.sample(("cpu", "memory", "ephemeral-storage", "unknown", *SCALARS), self.one(1, 2, 3, 4))

    def fit_args(self) -> Raw:
        """Return arguments for NodeResourcesFit."""
        kind = self.one("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
        resources = [{"name": name, "weight": self.one(1, 1, 3, 7)} for name in self.resources()]
        strategy: Raw = {"type": kind, "resources": resources}
        if kind == "RequestedToCapacityRatio":
            points = sorted(self.random.sample(range(101), self.one(1, 2, 3, 4)))
            shape = [{"utilization": x, "score": self.random.randrange(11)} for x in points]
            strategy["requestedToCapacityRatio"] = {"shape": shape}
        args: Raw = {"scoringStrategy": strategy}
        if self.chance(0.3):
            args["ignoredResources"] = ["example.com/gpu"]
        if self.chance(0.3):
            args["ignoredResourceGroups"] = ["other.org", "foo.kubernetes.io"]
        return args

    def default_constraints(self) -> list[Raw]:
        """Return constraints for pods that bring none; each key and action once, none with a selector."""
        found = {}
        for _ in range(self.one(0, 1, 2, 3)):
            constraint = self.spread()
            del constraint["labelSelector"]
            found[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
        return list(found.values())

    def added_affinity(self) -> Raw:
        """Return an affinity that a configuration may add: every term can be read, and wishes weigh something."""
        kept, self.unreadable = self.unreadable, 0.0
        terms = [self.node_term() for _ in range(4)]
        self.unreadable = kept
        for term in terms:
            if "matchFields" in term:
                term["matchFields"] = [{"key": "metadata.name", "operator": self.one("In", "NotIn"), "values": ["n1"]}]
        affinity: Raw = {}
        if self.chance(0.5):
            affinity[REQUIRED] = {"nodeSelectorTerms": terms[:2]}
        if self.chance(0.6):
            affinity[PREFERRED] = [{"weight": self.one(1, 7, 50), "preference": term} for term in terms[2:]]
        return affinity


def document(args: dict[str, Raw]) -> Raw:
    """Return a configuration file's content that gives plugins these arguments."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": name, "args": given} for name, given in sorted(args.items())],
            }
        ],
    }


def _object(
    version: str, kind: str, name: str, namespace: str = "", labels: dict[str, str] | None = None, selector: Raw | None = None
) -> Raw:
    metadata: Raw = {"name": name, "uid": f"uid-{kind}-{namespace}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    if labels is not None:
        metadata["labels"] = labels
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
