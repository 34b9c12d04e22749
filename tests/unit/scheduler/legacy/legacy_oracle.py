"""Predicates and priorities one node at a time, on the objects as the wire has them: slow, and close to the old text.

Nothing here uses columns or the classes under test. A predicate returns the reasons of 1.13 and later, a priority the
final scores (map and reduce) of the feasible nodes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from legacy_clusters import MEBI, REGION, ZONE, World

Raw = dict[str, Any]
_SUFFIXES = {"Gi": 1024**3, "Mi": MEBI, "": 1}


def amount(name: str, text: str) -> int:
    """Return a quantity as the whole number that is counted with."""
    number, suffix = re.fullmatch(r"(\d+)(m|Mi|Gi|)", text).groups()  # type: ignore[union-attr]
    if name == "cpu":
        return int(number) if suffix == "m" else int(number) * 1000
    return int(number) * _SUFFIXES[suffix]


def amounts(quantities: Mapping[str, str]) -> Counter[str]:
    return Counter({name: amount(name, text) for name, text in quantities.items()})


def total(pod: Raw, kind: str) -> dict[str, int]:
    """Return containers together or the largest init container, for each resource."""
    result: dict[str, int] = {}
    for container in pod["spec"]["containers"]:
        for name, value in amounts(container["resources"].get(kind, {})).items():
            result[name] = result.get(name, 0) + value
    for container in pod["spec"].get("initContainers", ()):
        for name, value in amounts(container["resources"].get(kind, {})).items():
            if value > result.get(name, 0):
                result[name] = value
    return result


def plain(pods: Sequence[Raw], name: str) -> int:
    return sum(amounts(c["resources"].get("requests", {}))[name] for p in pods for c in p["spec"]["containers"])


def non_zero(pods: Sequence[Raw], name: str) -> int:
    default = {"cpu": 100, "memory": 200 * MEBI}
    result = 0
    for pod in pods:
        for container in pod["spec"]["containers"]:
            requests = container["resources"].get("requests", {})
            result += amount(name, requests[name]) if name in requests else default.get(name, 0)
    return result


def offered(node: Raw, name: str) -> int:
    allocatable = node["status"]["allocatable"]
    return amount(name, allocatable[name]) if name in allocatable else 0


def labels(raw: Raw) -> dict[str, str]:
    found: dict[str, str] = raw["metadata"].get("labels") or {}
    return found


# Predicates


def pod_fits_resources(world: World, node: Raw) -> list[str]:
    there = world.on(node["metadata"]["name"])
    reasons = ["Insufficient pods"] if len(there) + 1 > offered(node, "pods") else []
    wanted = total(world.incoming, "requests")
    scalars = [name for name in wanted if "/" in name]
    if not any(wanted.get(name) for name in ("cpu", "memory", "ephemeral-storage")) and not scalars:
        return reasons
    for name in ("cpu", "memory", "ephemeral-storage", *scalars):
        if offered(node, name) < plain(there, name) + wanted.get(name, 0):
            reasons.append(f"Insufficient {name}")
    return reasons


def host_name(world: World, node: Raw) -> list[str]:
    wanted = world.incoming["spec"].get("nodeName")
    return [] if wanted in (None, "", node["metadata"]["name"]) else ["node(s) didn't match the requested hostname"]


def pod_fits_host_ports(world: World, node: Raw) -> list[str]:
    def ports(pod: Raw) -> list[tuple[str, str, int]]:
        return [
            (p.get("hostIP") or "0.0.0.0", p.get("protocol") or "TCP", p["hostPort"])
            for c in pod["spec"]["containers"]
            for p in c.get("ports", ())
            if p.get("hostPort")
        ]

    taken = [port for pod in world.on(node["metadata"]["name"]) for port in ports(pod)]
    for ip, protocol, number in ports(world.incoming):
        for other_ip, other_protocol, other in taken:
            same = (protocol, number) == (other_protocol, other)
            if same and ("0.0.0.0" in (ip, other_ip) or ip == other_ip):
                return ["node(s) didn't have free ports for the requested pod ports"]
    return []


def expression_holds(expression: Raw, found: Mapping[str, str]) -> bool:
    value = found.get(expression["key"])
    if expression["operator"] == "In":
        return value in expression["values"]
    assert expression["operator"] == "Gt"
    return value is not None and int(value) > int(expression["values"][0])


def match_node_selector(world: World, node: Raw) -> list[str]:
    reason = ["node(s) didn't match node selector"]
    spec, own = world.incoming["spec"], labels(node)
    if any(own.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return reason
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return []
    for term in required["nodeSelectorTerms"]:
        expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
        if not expressions and not fields:
            continue
        if all(expression_holds(e, own) for e in expressions) and all(
            expression_holds(e, {"metadata.name": node["metadata"]["name"]}) for e in fields
        ):
            return []
    return reason


def tolerated(world: World, taint: Raw, effects: tuple[str, ...] | None = None) -> bool:
    for toleration in world.incoming["spec"].get("tolerations", ()):
        if effects is not None and toleration.get("effect", "") not in effects:
            continue
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def pod_tolerates_node_taints(world: World, node: Raw) -> list[str]:
    for taint in node["spec"].get("taints", ()):
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerated(world, taint):
            return ["node(s) had taints that the pod didn't tolerate"]
    return []


def check_node_unschedulable(world: World, node: Raw) -> list[str]:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not tolerated(world, taint):
        return ["node(s) were unschedulable"]
    return []


def conditions(node: Raw) -> dict[str, str]:
    return {c["type"]: c["status"] for c in node["status"]["conditions"]}


def check_node_condition(world: World, node: Raw) -> list[str]:
    found = conditions(node)
    reasons = []
    if found.get("Ready", "True") != "True":
        reasons.append("node(s) were not ready")
    if found.get("OutOfDisk", "False") != "False":
        reasons.append("node(s) were out of disk space")
    if found.get("NetworkUnavailable", "False") != "False":
        reasons.append("node(s) had unavailable network")
    if node["spec"].get("unschedulable"):
        reasons.append("node(s) were unschedulable")
    return reasons


def best_effort(pod: Raw) -> bool:
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
        for kind in ("requests", "limits"):
            found = amounts(container["resources"].get(kind, {}))
            if found["cpu"] or found["memory"]:
                return False
    return True


def check_node_memory_pressure(world: World, node: Raw) -> list[str]:
    pressed = conditions(node).get("MemoryPressure") == "True"
    return ["node(s) had memory pressure"] if pressed and best_effort(world.incoming) else []


def check_node_disk_pressure(world: World, node: Raw) -> list[str]:
    return ["node(s) had disk pressure"] if conditions(node).get("DiskPressure") == "True" else []


def check_node_pid_pressure(world: World, node: Raw) -> list[str]:
    return ["node(s) had pid pressure"] if conditions(node).get("PIDPressure") == "True" else []


def term_is_about(term: Raw, owner: Raw, other: Raw) -> bool:
    namespaces = term.get("namespaces") or [owner["metadata"]["namespace"]]
    wanted = term["labelSelector"]["matchLabels"]
    return other["metadata"]["namespace"] in namespaces and wanted.items() <= labels(other).items()


def terms_of(pod: Raw, kind: str, when: str) -> list[Raw]:
    stated = pod["spec"].get("affinity", {}).get(kind, {})
    found: list[Raw] = stated.get(f"{when}DuringSchedulingIgnoredDuringExecution", [])
    return found


def together(world: World, term: Raw, one: Raw, pod: Raw) -> bool:
    """Return whether a node is in the same domain of a term as a placed pod."""
    key = term["topologyKey"]
    mine, theirs = labels(one).get(key), labels(home(world, pod)).get(key)
    return mine is not None and mine == theirs


def home(world: World, pod: Raw) -> Raw:
    return next(node for node in world.nodes if node["metadata"]["name"] == pod["spec"]["nodeName"])


def match_inter_pod_affinity(world: World, node: Raw) -> list[str]:
    generic, incoming = "node(s) didn't match pod affinity/anti-affinity", world.incoming
    for other in world.placed:
        for term in terms_of(other, "podAntiAffinity", "required"):
            if term_is_about(term, other, incoming) and together(world, term, node, other):
                return [generic, "node(s) didn't satisfy existing pods anti-affinity rules"]
    wanted = terms_of(incoming, "podAffinity", "required")
    if wanted:
        friends = [p for p in world.placed if all(term_is_about(term, incoming, p) for term in wanted)]
        near = all(any(together(world, t, node, p) for p in friends) for t in wanted)
        anywhere = any(t["topologyKey"] in labels(home(world, p)) for t in wanted for p in friends)
        itself = all(term_is_about(term, incoming, incoming) for term in wanted)
        if not near and (anywhere or not itself):
            return [generic, "node(s) didn't match pod affinity rules"]
    for term in terms_of(incoming, "podAntiAffinity", "required"):
        for other in world.placed:
            if term_is_about(term, incoming, other) and together(world, term, node, other):
                return [generic, "node(s) didn't match pod anti-affinity rules"]
    return []


def spread_constraints(world: World, when: str) -> list[Raw]:
    return [c for c in world.incoming["spec"].get("topologySpreadConstraints", ()) if c["whenUnsatisfiable"] == when]


def eligible_nodes(world: World, constraints: Sequence[Raw]) -> list[Raw]:
    return [
        n for n in world.nodes if not match_node_selector(world, n) and all(c["topologyKey"] in labels(n) for c in constraints)
    ]


def matching_in_domain(world: World, constraint: Raw, value: str, eligible: Sequence[Raw]) -> int:
    wanted, count = constraint["labelSelector"]["matchLabels"], 0
    for node in eligible:
        if labels(node)[constraint["topologyKey"]] == value:
            for pod in world.on(node["metadata"]["name"]):
                count += (
                    pod["metadata"]["namespace"] == world.incoming["metadata"]["namespace"]
                    and wanted.items() <= labels(pod).items()
                )
    return count


def even_pods_spread(world: World, node: Raw) -> list[str]:
    constraints = spread_constraints(world, "DoNotSchedule")
    eligible = eligible_nodes(world, constraints)
    if not eligible:
        return []
    for constraint in constraints:
        key = constraint["topologyKey"]
        if key not in labels(node):
            return ["node(s) didn't match pod topology spread constraints"]
        counts = {labels(n)[key]: matching_in_domain(world, constraint, labels(n)[key], eligible) for n in eligible}
        own = constraint["labelSelector"]["matchLabels"].items() <= labels(world.incoming).items()
        if counts.get(labels(node)[key], 0) + own - min(counts.values(), default=0) > constraint["maxSkew"]:
            return ["node(s) didn't match pod topology spread constraints"]
    return []


def services_of(world: World) -> list[Raw]:
    return [
        s
        for s in world.of("Service")
        if s["spec"]["selector"] is not None
        and s["metadata"]["namespace"] == world.incoming["metadata"]["namespace"]
        and s["spec"]["selector"].items() <= labels(world.incoming).items()
    ]


def check_service_affinity(world: World, node: Raw, wanted_labels: Sequence[str], visit: Sequence[str]) -> list[str]:
    selector = world.incoming["spec"].get("nodeSelector", {})
    wanted = {key: selector[key] for key in wanted_labels if key in selector}
    if len(wanted) < len(wanted_labels) and services_of(world):
        company = [
            p
            for name in visit
            for p in world.on(name)
            if p["metadata"]["namespace"] == world.incoming["metadata"]["namespace"]
            and labels(world.incoming).items() <= labels(p).items()
        ]
        if company:
            there = labels(home(world, company[0]))
            wanted = {**{key: there[key] for key in wanted_labels if key in there}, **wanted}
    return [] if wanted.items() <= labels(node).items() else ["node(s) didn't match service affinity"]


def labels_presence(world: World, node: Raw, present: Sequence[str], absent: Sequence[str]) -> list[str]:
    own = labels(node)
    good = all(key in own for key in present) and not any(key in own for key in absent)
    return [] if good else ["node(s) didn't have the requested labels"]


PREDICATES: dict[str, Callable[[World, Raw], list[str]]] = {
    "PodFitsResources": pod_fits_resources,
    "HostName": host_name,
    "PodFitsHostPorts": pod_fits_host_ports,
    "MatchNodeSelector": match_node_selector,
    "PodToleratesNodeTaints": pod_tolerates_node_taints,
    "CheckNodeUnschedulable": check_node_unschedulable,
    "CheckNodeCondition": check_node_condition,
    "CheckNodeMemoryPressure": check_node_memory_pressure,
    "CheckNodeDiskPressure": check_node_disk_pressure,
    "CheckNodePIDPressure": check_node_pid_pressure,
    "MatchInterPodAffinity": match_inter_pod_affinity,
    "EvenPodsSpread": even_pods_spread,
}


# Priorities: (world, feasible nodes, the best score) -> scores


Scores = dict[str, int]


def requested(world: World, node: Raw, name: str) -> tuple[int, int]:
    there = world.on(node["metadata"]["name"])
    return non_zero([*there, world.incoming], name), offered(node, name)


def least_requested(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    def share(used: int, room: int) -> int:
        return 0 if room == 0 or used > room else (room - used) * most // room

    return {n["metadata"]["name"]: sum(share(*requested(world, n, r)) for r in ("cpu", "memory")) // 2 for n in nodes}


def most_requested(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    def share(used: int, room: int) -> int:
        return 0 if room == 0 or used > room else used * most // room

    return {n["metadata"]["name"]: sum(share(*requested(world, n, r)) for r in ("cpu", "memory")) // 2 for n in nodes}


def balanced(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    scores = {}
    for node in nodes:
        both = [requested(world, node, resource) for resource in ("cpu", "memory")]
        degrees = [used / room if room else 1.0 for used, room in both]
        fine = all(degree < 1 for degree in degrees)
        scores[node["metadata"]["name"]] = int((1 - abs(degrees[0] - degrees[1])) * most) if fine else 0
    return scores


def capacity_ratio(world: World, nodes: Sequence[Raw], shape: Sequence[tuple[int, int]], weights: Mapping[str, int]) -> Scores:
    def line(x: int) -> int:
        for i, (at, score) in enumerate(shape):
            if x <= at:
                if i == 0:
                    return score
                before, low = shape[i - 1]
                return low + int((score - low) * (x - before) / (at - before))
        return shape[-1][1]

    scores = {}
    for node in nodes:
        top = bottom = 0
        for name, weight in weights.items():
            used, room = requested(world, node, name)
            score = line(100 if room == 0 or used > room else 100 - (room - used) * 100 // room)
            if score > 0:
                top, bottom = top + score * weight, bottom + weight
        scores[node["metadata"]["name"]] = math.floor(top / bottom + 0.5) if bottom else 0
    return scores


Selects = Callable[[Mapping[str, str]], bool]


def selectors(world: World, *, keep_empty: bool, services_only: bool = False) -> list[Selects]:
    found: list[Selects] = []
    for item in services_of(world):
        if item["spec"]["selector"] or keep_empty:  # an empty one selects everybody, which only matters to an "or"
            found.append(lambda own, s=item["spec"]["selector"]: s.items() <= own.items())
    if services_only or not labels(world.incoming):
        return found
    for item in world.of("ReplicationController"):
        wanted = item["spec"]["selector"]
        if wanted and wanted.items() <= labels(world.incoming).items():
            found.append(lambda own, s=wanted: s.items() <= own.items())
    for _ in world.of("ReplicaSet"):
        if labels(world.incoming).get("tier") in ("x", "y"):
            found.append(lambda own: own.get("tier") in ("x", "y"))
    return found


def count_siblings(world: World, node: Raw, matches: Callable[[Mapping[str, str]], bool]) -> int:
    return sum(
        p["metadata"]["namespace"] == world.incoming["metadata"]["namespace"]
        and "deletionTimestamp" not in p["metadata"]
        and matches(labels(p))
        for p in world.on(node["metadata"]["name"])
    )


def spread(world: World, nodes: Sequence[Raw], most: int, *, any_of: bool = False, services_only: bool = False) -> Scores:
    found = selectors(world, keep_empty=any_of, services_only=services_only)
    combined = any if any_of else all
    counts = {
        n["metadata"]["name"]: count_siblings(world, n, lambda own: combined(s(own) for s in found)) if found else 0
        for n in nodes
    }
    zones: dict[str, str] = {}
    for node in nodes:
        zone, region = labels(node).get(ZONE, ""), labels(node).get(REGION, "")
        if zone or region:
            zones[node["metadata"]["name"]] = f"{region}:\x00:{zone}"
    per_zone = Counter[str]()
    for name, zone in zones.items():
        per_zone[zone] += counts[name]
    most_here, most_zone = max(counts.values(), default=0), max(per_zone.values(), default=0)
    scores = {}
    for name, count in counts.items():
        score = most * ((most_here - count) / most_here) if most_here else float(most)
        if name in zones:
            of_zone = most * ((most_zone - per_zone[zones[name]]) / most_zone) if most_zone else float(most)
            score = score * (1.0 - 2.0 / 3.0) + 2.0 / 3.0 * of_zone
        scores[name] = int(score)
    return scores


def service_anti_affinity(world: World, nodes: Sequence[Raw], most: int, wanted: Sequence[str]) -> Scores:
    first = services_of(world)[:1]
    selector = first[0]["spec"]["selector"] if first else {}
    counts = {
        n["metadata"]["name"]: count_siblings(world, n, lambda own: selector.items() <= own.items()) if selector else 0
        for n in nodes
    }
    everywhere = sum(counts.values())
    scores = {}
    for node in nodes:
        score = 0.0
        for label in wanted:
            value = labels(node).get(label)
            if value is None:
                continue
            here = sum(counts[n["metadata"]["name"]] for n in nodes if labels(n).get(label) == value)
            score += (most * ((everywhere - here) / everywhere) if everywhere else float(most)) / len(wanted)
        scores[node["metadata"]["name"]] = int(score)
    return scores


def inter_pod_affinity(world: World, nodes: Sequence[Raw], most: int, hard_weight: int = 1) -> Scores:
    raw = {}
    for node in nodes:
        score = 0
        for other in world.placed:
            for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                for wish in terms_of(world.incoming, kind, "preferred"):
                    term = wish["podAffinityTerm"]
                    if term_is_about(term, world.incoming, other) and together(world, term, node, other):
                        score += sign * wish["weight"]
                for wish in terms_of(other, kind, "preferred"):
                    term = wish["podAffinityTerm"]
                    if term_is_about(term, other, world.incoming) and together(world, term, node, other):
                        score += sign * wish["weight"]
            for term in terms_of(other, "podAffinity", "required"):
                if term_is_about(term, other, world.incoming) and together(world, term, node, other):
                    score += hard_weight
        raw[node["metadata"]["name"]] = score
    low, high = min([0, *raw.values()]), max([0, *raw.values()])
    return {name: int(most * ((score - low) / (high - low))) if high > low else 0 for name, score in raw.items()}


def share_of_largest(raw: Scores, most: int, *, reverse: bool = False) -> Scores:
    largest = max(raw.values(), default=0)
    shares = {name: score * most // largest if largest else 0 for name, score in raw.items()}
    return {name: most - share for name, share in shares.items()} if reverse else shares


def node_affinity(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    affinity = world.incoming["spec"].get("affinity", {}).get("nodeAffinity", {})
    raw = {}
    for node in nodes:
        raw[node["metadata"]["name"]] = sum(
            wish["weight"]
            for wish in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
            if wish["preference"].get("matchExpressions")
            and all(expression_holds(e, labels(node)) for e in wish["preference"]["matchExpressions"])
        )
    return share_of_largest(raw, most)


def taint_toleration(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    raw = {
        n["metadata"]["name"]: sum(
            t["effect"] == "PreferNoSchedule" and not tolerated(world, t, ("", "PreferNoSchedule"))
            for t in n["spec"].get("taints", ())
        )
        for n in nodes
    }
    return share_of_largest(raw, most, reverse=True)


def prefer_avoid_pods(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    owners = [
        o for o in world.incoming["metadata"].get("ownerReferences", ()) if o["kind"] in ("ReplicationController", "ReplicaSet")
    ]
    scores = {}
    for node in nodes:
        text = node["metadata"]["annotations"].get("scheduler.alpha.kubernetes.io/preferAvoidPods", "{}")
        try:
            entries = json.loads(text).get("preferAvoidPods", [])
        except json.JSONDecodeError:
            entries = []
        avoided = [e["podSignature"].get("podController", {}) for e in entries]
        hit = any(a.get("kind") == o["kind"] and a.get("uid") == o["uid"] for a in avoided for o in owners)
        scores[node["metadata"]["name"]] = 0 if hit else most
    return scores


def image_locality(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    def tagged(name: str) -> str:
        return name if ":" in name else f"{name}:latest"

    least, largest = 23 * MEBI, 1000 * MEBI
    scores = {}
    for node in nodes:
        total_bytes = 0
        for container in world.incoming["spec"]["containers"]:
            name = tagged(container["image"])
            holders = [n for n in world.nodes if any(name in i["names"] for i in n["status"]["images"])]
            if node in holders:
                size = next(i["sizeBytes"] for i in holders[0]["status"]["images"] if name in i["names"])
                total_bytes += int(size * (len(holders) / len(world.nodes)))
        clamped = min(max(total_bytes, least), largest)
        scores[node["metadata"]["name"]] = most * (clamped - least) // (largest - least)
    return scores


def old_image_locality(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    least, largest = 23 * MEBI, 1000 * MEBI
    scores = {}
    for node in nodes:
        total_bytes = sum(
            image["sizeBytes"]
            for container in world.incoming["spec"]["containers"]
            for image in node["status"]["images"]
            if container["image"] in image["names"]
        )
        if total_bytes < least:
            score = 0
        elif total_bytes >= largest:
            score = most
        else:
            score = most * (total_bytes - least) // (largest - least) + 1
        scores[node["metadata"]["name"]] = score
    return scores


def resource_limits(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    limits = total(world.incoming, "limits")
    return {n["metadata"]["name"]: int(any(0 < limits.get(r, 0) <= offered(n, r) for r in ("cpu", "memory"))) for n in nodes}


def even_pods_spread_priority(world: World, nodes: Sequence[Raw], most: int) -> Scores:
    constraints = spread_constraints(world, "ScheduleAnyway")
    if not constraints:
        return {n["metadata"]["name"]: 0 for n in nodes}
    counted = eligible_nodes(world, constraints)
    raw: Scores = {}
    for node in nodes:
        if all(c["topologyKey"] in labels(node) for c in constraints):
            raw[node["metadata"]["name"]] = sum(
                matching_in_domain(world, c, labels(node)[c["topologyKey"]], counted) for c in constraints
            )
    everything, least = sum(raw.values()), min(raw.values(), default=0)
    scores = {}
    for node in nodes:
        name = node["metadata"]["name"]
        if raw and everything == least:
            scores[name] = most
        else:
            scores[name] = int(most * ((everything - raw[name]) / (everything - least))) if name in raw else 0
    return scores


PRIORITIES: dict[str, Callable[[World, Sequence[Raw], int], Scores]] = {
    "LeastRequestedPriority": least_requested,
    "MostRequestedPriority": most_requested,
    "BalancedResourceAllocation": balanced,
    "SelectorSpreadPriority": spread,
    "ServiceSpreadingPriority": spread,
    "InterPodAffinityPriority": inter_pod_affinity,
    "NodeAffinityPriority": node_affinity,
    "TaintTolerationPriority": taint_toleration,
    "NodePreferAvoidPodsPriority": prefer_avoid_pods,
    "ImageLocalityPriority": image_locality,
    "ResourceLimitsPriority": resource_limits,
    "EvenPodsSpreadPriority": even_pods_spread_priority,
    "EqualPriority": lambda world, nodes, most: {n["metadata"]["name"]: 1 for n in nodes},
}
