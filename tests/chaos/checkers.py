"""What must never happen, and what must be so once everything has calmed down.

In: a world. Out: violations in its history, in the moment in which they happen: a pod whose node changes, a node over its
capacity, a write of somebody who does not lead, a device or volume that two have, an eviction of whom nobody is above. And, on
request, what still stands between the world and its rest: a pod that fits, or might evict others, and is not bound; a cache
that differs from the API; a condition that is not so; something that is booked, queued or under way for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from chaos.processes import Process
from chaos.users import HIGH_PRIORITY
from chaos.world import SchedulerHost, World
from kubesched.embedded.storage.write_ahead_log import Record
from kubesched.kube.api.resource import ResourceClaim
from kubesched.scheduler.cluster.device_claims import DeviceClaims

_FINISHED = ("Succeeded", "Failed")
_LEASE = "kube-system/kube-scheduler"
IN_MEMORY = "(in kube-scheduler memory)"
"""What is said of a pod that was preempted while it waited for a permit: it has no node to lose."""
MOST_LINKS = 120
"""Connections of one scheduler: a watch for every kind, and as many writes as may be under way."""


class Checker:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._violated = world.history.violated
        self._node_of: dict[str, str] = {}
        self._last_binder: dict[str, SchedulerHost] = {}
        self._bound_in: dict[str, tuple[str, int]] = {}
        """The process that last asked for the binding of a pod on no node, and how many leaders there had been by then."""
        self._known_given: dict[str, set[tuple[str, ...]]] = {}
        """The devices that a scheduler knew to be given when it last sent the status of a claim: it had heard so, or has given
        them itself."""
        self._sent: dict[str, dict[str, set[tuple[str, ...]]]] = {}
        """What each process gave to which claim."""
        self._holders: dict[tuple[str, ...], str] = {}
        self._members: dict[str, set[str]] = {}
        self._leaders: list[str] = []
        """Who had the lease, one after the other."""
        self._unaware: dict[tuple[str, str], set[Judgement]] = {}
        """What a process said of a pod and could not know better."""
        self._misjudged: set[str] = set()
        world.server.wrote = self.wrote
        world.network.on_request = self.requested

    # While it happens

    def requested(self, process: Process, method: str, path: str, data: bytes) -> None:
        """Look at a request in the moment in which a client sends it."""
        # Standbys want the lease too, and tell what they see; everything else is the leader's.
        if method == "GET" or "/leases" in path or "/events" in path or not process.name.startswith("scheduler-"):
            return
        number = int(process.name.removeprefix("scheduler-").partition(".")[0])
        if path.endswith("/binding"):
            parts = path.split("/")
            key = f"{parts[4]}/{parts[6]}"
            self._last_binder[key] = self._world.schedulers[number]
            if not self._is_on_a_node(key):  # else it was another's, of which a watch that lags has not told
                self._bound_in[key] = process.name, len(self._leaders)
            self._unaware.pop((key, process.name), None)  # it knows better now
        if path.endswith("/status") and "/resourceclaims/" in path:
            parts = path.split("/")
            key, sent = f"{parts[5]}/{parts[7]}", self._sent.setdefault(process.name, {})
            own = {device for claim, devices in sent.items() if claim != key for device in devices}
            self._known_given[key] = own | _given(self._world.schedulers[number], parts[5], parts[7])
            # What the claim has already, as he may just have learned, is not his gift.
            mine = f"resourceclaims.resource.k8s.io {key}"
            told = _devices(msgspec.json.decode(data.partition(b"\r\n\r\n")[2]))
            sent[key] = {device for device in told if self._holders.get(device) != mine}
        if path.endswith("/status") and "/pods/" in path:
            self._note_judge(path, data, process, self._world.schedulers[number])
        if "/pods/" in path and path.partition("?")[0].endswith(("/status", "/binding")):
            self._check_order(path, process)
        if method == "DELETE" and "/pods/" in path:
            self._check_victim(path)
        holder = self._leader()
        if holder and holder != process.name.replace(".", "_"):
            self._violated(f"{process.name} sends {method} {path} while {holder} leads")

    def wrote(self, record: Record) -> None:
        """Look at a write of the server."""
        _, table, key, raw = record
        if table == "events" and raw:
            self._check_event(msgspec.json.decode(raw))
        if key == _LEASE and raw:
            holder = msgspec.json.decode(raw)["spec"].get("holderIdentity", "")
            if self._leaders[-1:] != [holder]:
                self._leaders.append(holder)
        if table in _HOLDINGS:
            self._check_holdings(table, key, list(_HOLDINGS[table](msgspec.json.decode(raw))) if raw else [])
        if table != "pods" or not raw:
            return
        pod = msgspec.json.decode(raw)
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        before = self._node_of.get(uid, "")
        if before and node != before:
            self._violated(f"pod {key} moves from {before} to {node or 'nowhere'}")
        judgements = _judgements(pod.get("status", {}))
        if node and judgements:
            excused = (said for (about, _), said in self._unaware.items() if about == key)
            self._misjudged.update(uid for said in excused if judgements <= said)
        self._members.setdefault(_group(pod), set()).add(uid)
        if node and not before:
            self._node_of[uid] = node
            self._check_room(key, pod, node)
            self._check_gang(key, _group(pod))

    def _check_event(self, event: dict[str, Any]) -> None:
        """Complain about an event that says what is not so."""
        reason, text, uid = event.get("reason", ""), event.get("message", ""), event["involvedObject"].get("uid", "")
        if reason == "Scheduled" and text.rpartition(" ")[2] != self._node_of.get(uid, ""):
            self._violated(f"an event says {text}, which is on {self._node_of.get(uid, 'no node')}")
        elif (
            reason == "Preempted"
            and IN_MEMORY not in text
            and any(_uid(pod) == uid and _lives(pod) for pod in self._world.server.entries("pods"))
        ):
            self._violated(f"an event says {text} of {event['involvedObject']['name']}, which lives")
        elif reason == "LeaderElection" and text.partition(" ")[0] not in self._leaders:
            self._violated(f"an event says {text}, who never had the lease")

    def _check_gang(self, key: str, name: str) -> None:
        """Complain when a pod of a gang is bound that has never had enough members."""
        for group in self._world.server.entries("podgroups.scheduling.k8s.io") if name else ():
            if group["metadata"]["name"] == name and len(self._members[name]) < _least(group):
                self._violated(f"pod {key} is bound, and its gang has never had more than {len(self._members[name])} members")

    def _check_holdings(self, table: str, key: str, held: list[tuple[str, ...]]) -> None:
        """Complain when something is given to two."""
        mine = f"{table} {key}"
        for thing in [thing for thing, holder in self._holders.items() if holder == mine and thing not in held]:
            del self._holders[thing]
        for thing in held:
            other = self._holders.setdefault(thing, mine)
            # As with room on a node: whoever has a watch that lags behind decides on what he knows.
            if other != mine and thing in self._known_given.get(key, held):
                self._violated(f"{mine} gets {'/'.join(thing)}, which {other} has")

    def _pod(self, key: str) -> Any:
        """Return what the API server has of a pod; None while it is away."""
        server = self._world.server
        return server.store.context.storage.table("pods").entries.get(key) if server.is_up else None

    def _is_on_a_node(self, key: str) -> bool:
        entry = self._pod(key)
        return entry is not None and bool(entry.obj["spec"].get("nodeName"))

    def _note_judge(self, path: str, data: bytes, process: Process, host: SchedulerHost) -> None:
        """Take down whether a scheduler that says of a pod that it found no node has not heard yet that it is on one. That is
        no fault of a watch that lags, nor of a network that delivers it when its sender is gone and another has bound the
        pod; and a kubelet, unlike ours, would put it right."""
        said = msgspec.json.decode(data.partition(b"\r\n\r\n")[2])["status"]
        parts = path.partition("?")[0].split("/")
        key, scheduler = f"{parts[4]}/{parts[6]}", host.scheduler
        entry = self._pod(key)
        store = scheduler.engine.store if scheduler is not None and scheduler.engine is not None else None
        # What its own extender did it knows, or asks about: nothing is under way to the server that it could not hear of.
        has_bound = self._world.scene.extender == "binds" and self._bound_in.get(key) == (process.name, len(self._leaders))
        if has_bound and _judgements(said) and self._is_on_a_node(key):
            self._violated(f"{process.name} says of pod {key} that it found no node, and has just had it bound")
        excused = self._unaware.setdefault((key, process.name), set())
        if entry is not None and store is not None and store.pod(_uid(entry.obj)) is None:
            excused |= _judgements(said)
        else:
            excused -= _judgements(said)

    def _check_order(self, path: str, process: Process) -> None:
        """Complain when a scheduler writes about a pod while another write of it about the same pod has no answer: a status may
        arrive after the binding then, and say that there is none."""
        pod = path.partition("?")[0].rpartition("/")[0]
        under_way = [
            one for one in self._world.network.writes_under_way(process.name) if one.partition(" ")[2].startswith(f"{pod}/")
        ]
        if len(under_way) > 1:
            self._violated(f"{process.name} sends {' and '.join(under_way)} side by side")

    def _check_victim(self, path: str) -> None:
        """Complain when a scheduler evicts a pod that no other can be above."""
        _, _, _, _, namespace, _, name = path.partition("?")[0].split("/")
        for pod in self._world.server.entries("pods") if self._world.server.is_up else ():
            meta = pod["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, name) and _priority(pod) >= HIGH_PRIORITY:
                self._violated(f"pod {namespace}/{name} is evicted, and none has a higher priority")

    def _check_room(self, key: str, pod: dict[str, Any], node_name: str) -> None:
        """Complain when a node is over its capacity and the one who decided could know that."""
        server = self._world.server
        node = next((node for node in server.entries("nodes") if node["metadata"]["name"] == node_name), None)
        if node is None:
            return
        others = [other for other in server.entries("pods") if _is_on(other, node_name) and _uid(other) != _uid(pod)]
        if _fits(node, [*others, pod]):
            return
        binder = self._last_binder.get(key)
        # Whoever has a watch that lags behind decides on what he knows; that is no fault of his, even if he has learned more
        # when PreBind lets the binding go. What he had not heard to be bound he may have booked elsewhere himself.
        known = binder.known_beside.get(_uid(pod)) if binder is not None else None
        if known is not None and all(_uid(other) in known for other in others):
            self._violated(f"pod {key} is bound to {node_name}, which has no room for it")

    def _leader(self) -> str:
        server = self._world.server
        if not server.is_up:
            return ""
        lease = server.store.context.storage.table("leases.coordination.k8s.io").entries.get(_LEASE)
        return lease.obj["spec"].get("holderIdentity", "") if lease is not None else ""

    # When everything has calmed down

    def unrest(self) -> list[str]:
        """Return what is not yet as it must be in the end."""
        return list(self._unrest())

    def _unrest(self) -> Iterator[str]:
        server = self._world.server
        if not server.is_up:
            yield "the API server is down"
            return
        leaders = [host.name for host in self._world.schedulers if host.scheduler is not None and host.scheduler.is_leader]
        if len(leaders) != 1:
            yield f"{len(leaders)} schedulers lead: {' '.join(leaders)}"
        pods = [pod for pod in server.entries("pods") if pod.get("status", {}).get("phase") not in _FINISHED]
        yield from self._forgotten(pods)
        yield from self._forgotten_gangs(pods)
        yield from self._untrue(pods)
        for host in self._world.schedulers:
            yield from self._beliefs(host, pods)

    def _forgotten(self, pods: list[dict[str, Any]]) -> Iterator[str]:
        """Yield the pods that are on no node, and would fit on one, if need be by evicting others."""
        nodes = [node for node in self._world.server.entries("nodes") if _takes_pods(node)]
        for pod in pods:
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp") or _group(pod):
                continue
            for node in nodes:
                name = node["metadata"]["name"]
                if self._lacks_something(pod, name):
                    continue
                there = [other for other in pods if _is_on(other, name)]
                held = _holders(pods, name, pod)
                if _fits(node, [pod, *there, *held]):
                    yield f"pod {pod['metadata']['name']} fits on {name} and is not bound"
                    break
                if _stopped_in_dry_run(pod):
                    continue
                if _fits(node, [pod, *held, *(other for other in there if _priority(other) >= _priority(pod))]):
                    yield f"pod {pod['metadata']['name']} might evict others from {name} and does not"
                    break

    def _forgotten_gangs(self, pods: list[dict[str, Any]]) -> Iterator[str]:
        """Yield the gangs that are all there and fit on nodes, and are not bound. Their pods ask for the same."""
        nodes = [node for node in self._world.server.entries("nodes") if _takes_pods(node)]
        for group in self._world.server.entries("podgroups.scheduling.k8s.io"):
            members = [
                pod for pod in pods if _group(pod) == group["metadata"]["name"] and not pod["metadata"].get("deletionTimestamp")
            ]
            pending = [pod for pod in members if not pod["spec"].get("nodeName")]
            if not pending or len(members) < _least(group):
                continue
            taken = 0
            for node in nodes:
                name = node["metadata"]["name"]
                there = [other for other in pods if _is_on(other, name)] + _holders(pods, name, pending[0])
                while taken < len(pending) and _fits(node, [*there, pending[taken]]):
                    there.append(pending[taken])
                    taken += 1
            if taken == len(pending):
                yield f"gang {group['metadata']['name']} fits and {len(pending)} of its {len(members)} pods are not bound"

    def _untrue(self, pods: list[dict[str, Any]]) -> Iterator[str]:
        """Yield the pods on nodes of which it is said that they found none, by somebody who could know better."""
        for pod in pods:
            if pod["spec"].get("nodeName") and _judgements(pod.get("status", {})) and _uid(pod) not in self._misjudged:
                yield f"pod {pod['metadata']['name']} is on {pod['spec']['nodeName']}, and is said to be unscheduled"

    def _lacks_something(self, pod: dict[str, Any], node_name: str) -> bool:
        """Return whether a volume claim or a device that the pod needs is not to be had on a node."""
        server = self._world.server
        for volume in pod["spec"].get("volumes") or ():
            wanted = volume["persistentVolumeClaim"]["claimName"]
            if not any(claim["metadata"]["name"] == wanted for claim in server.entries("persistentvolumeclaims")):
                return True
        claims = {claim["metadata"]["name"]: claim for claim in server.entries("resourceclaims.resource.k8s.io")}
        for reference in pod["spec"].get("resourceClaims") or ():
            claim = claims.get(reference["resourceClaimName"])
            if claim is None:
                return True
            given = list(_devices(claim))
            if given:
                return any(pool != node_name for _, _, pool, _ in given)
            taken = {device for other in claims.values() for device in _devices(other)}
            slices = server.entries("resourceslices.resource.k8s.io")
            if not any(_devices_of(one) - taken for one in slices if one["spec"].get("nodeName") == node_name):
                return True
        return False

    def _beliefs(self, host: SchedulerHost, pods: list[dict[str, Any]]) -> Iterator[str]:
        """Yield what a scheduler believes and what is not so."""
        scheduler, name = host.scheduler, host.name
        if scheduler is None or scheduler.engine is None or scheduler.reflectors is None or not scheduler.is_synced:
            yield f"{name} does not follow the API"
            return
        server, engine = self._world.server, scheduler.engine
        for kind, reflector in scheduler.reflectors.by_kind.items():
            seen = {key: obj.metadata.resource_version for key, obj in reflector.objects.items()}
            selector = reflector._watched.field_selector
            listing = server.store.list(_resource(reflector._watched), field_selector=selector)
            there = {entry.key: str(entry.version) for entry in listing.entries}
            if seen != there:
                wrong = sorted(key for key in seen.keys() | there.keys() if seen.get(key) != there.get(key))
                yield f"{name} has another {kind} {', '.join(wrong[:3])} than the API"
        held = {waiting.pod.uid for waiting in engine.waiting}
        if any(self._waits_in_vain(uid, held, pods) for uid in held):
            return
        bound = {_uid(pod): pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
        believed = {pod.uid: pod.node_name for pod in engine.store.pods()}
        if believed != bound:
            wrong = sorted(uid for uid in believed.keys() | bound.keys() if believed.get(uid) != bound.get(uid))
            yield f"{name} believes of {wrong[:3]} what is not so"
        pending = {_uid(pod) for pod in pods if not pod["spec"].get("nodeName")}
        queued = {pod.uid for pod in engine.intake.pending()}
        if queued != pending:
            yield f"{name} queues {len(queued)} pods while {len(pending)} wait"
        waiting = {pod.key for pod in engine.intake.pending() if engine.queue.find(pod.key) is None}
        if waiting:
            yield f"{name} has lost {sorted(waiting)[:3]} from its queue"
        for what, count in (
            ("assumed pods", engine.store.n_assumed),
            ("bindings under way", len(engine.bookings)),
            ("arrivals in the inbox", len(engine.inbox)),
            ("events in flight", sum(engine.queue.in_flight_events().values())),
            ("device claims promised", len(list(engine.store.objects.shared(DeviceClaims).in_flight()))),
            ("pods that wait for a permit", len(list(engine.waiting))),
            ("tasks under way", len(engine.core.tasks)),
            ("pods that are being written", len(scheduler._outside.writer._pods._last)),
            ("events to be sent", scheduler._broadcaster._waiting.qsize()),
        ):
            if count:
                yield f"{name} has {count} {what}"
        links = self._world.network.n_links_of(host.process.name if host.process is not None else "")
        if links > MOST_LINKS:
            yield f"{name} has {links} connections"

    def _waits_in_vain(self, uid: str, held: set[str], pods: list[dict[str, Any]]) -> bool:
        """Return whether a pod that waits for its permit belongs to a gang of which too few are bound or wait with it: others
        were lost since, or could not be booked and no longer fit. It is held for five minutes, as in kube-scheduler, which is
        longer than we look."""
        name = next((_group(pod) for pod in pods if _uid(pod) == uid), "")
        n_members = sum(_group(pod) == name and (_uid(pod) in held or bool(pod["spec"].get("nodeName"))) for pod in pods)
        groups = self._world.server.entries("podgroups.scheduling.k8s.io") if name else ()
        return any(group["metadata"]["name"] == name and n_members < _least(group) for group in groups)


Judgement = tuple[str, str]
"""What is said of a pod that found no node: the text, and since when it is so."""


def _judgements(status: dict[str, Any]) -> set[Judgement]:
    """Return what a status says of a pod that found no node."""
    said = (one for one in status.get("conditions") or () if (one["type"], one["status"]) == ("PodScheduled", "False"))
    return {(one.get("message", ""), one.get("lastTransitionTime", "")) for one in said}


def _holders(pods: list[dict[str, Any]], node_name: str, pending: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the members of other gangs that keep a place on a node from a pod: they were nominated when their gang was
    complete. Nobody tries them again until it is, and 1.37 counts nominated pods also while they are gated."""
    return [
        pod
        for pod in pods
        if _group(pod) not in ("", _group(pending))
        and not pod["spec"].get("nodeName")
        and pod.get("status", {}).get("nominatedNodeName") == node_name
        and _priority(pod) >= _priority(pending)
    ]


def _devices(claim: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the devices that a claim was given."""
    allocation = claim.get("status", {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        yield "device", result["driver"], result["pool"], result["device"]


def _given(host: SchedulerHost, namespace: str, name: str) -> set[tuple[str, ...]]:
    """Return the devices that other claims have, as far as a scheduler knows."""
    if host.scheduler is None or host.scheduler.engine is None:
        return set()
    objects = host.scheduler.engine.store.objects
    return {
        ("device", one.driver, one.pool, one.device)
        for claim in objects.all(ResourceClaim)
        if claim.status.allocation is not None and (claim.metadata.namespace, claim.metadata.name) != (namespace, name)
        for one in claim.status.allocation.devices.results
    }


def _devices_of(slice_: dict[str, Any]) -> set[tuple[str, ...]]:
    spec = slice_["spec"]
    return {("device", spec["driver"], spec["pool"]["name"], device["name"]) for device in spec["devices"]}


def _volumes(claim: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the volume that a claim is bound to."""
    if name := claim["spec"].get("volumeName"):
        yield "volume", name


def _claims(volume: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the claim that a volume is bound to."""
    if (claim := volume["spec"].get("claimRef")) and volume.get("status", {}).get("phase") == "Bound":
        yield "claim", claim.get("uid", "")


_HOLDINGS: dict[str, Callable[[dict[str, Any]], Iterator[tuple[str, ...]]]] = {
    "resourceclaims.resource.k8s.io": _devices,
    "persistentvolumeclaims": _volumes,
    "persistentvolumes": _claims,
}
"""What objects of a kind have that nobody else may have."""


_IN_DRY_RUN = ("cannot allocate all claims", "didn't find available persistent volumes to bind")


def _stopped_in_dry_run(pod: dict[str, Any]) -> bool:
    """Return whether the last attempt would have evicted others, had a device been free, or had it known that a claim is bound
    that it believed to wait for another node. News of a claim wakes only pods that it kept off nodes at Filter, as in
    kube-scheduler; this one was refused before, so it waits for another pod or node."""
    told = next((c["message"] for c in pod["status"].get("conditions") or () if c["type"] == "PodScheduled"), "")
    return any(text in told.partition("preemption: ")[2] for text in _IN_DRY_RUN)


def _priority(pod: dict[str, Any]) -> int:
    return int(pod["spec"].get("priority") or 0)


def _group(pod: dict[str, Any]) -> str:
    """Return the name of the gang that a pod belongs to."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName", ""))


def _least(group: dict[str, Any]) -> int:
    """Return how many members a gang needs."""
    return int(group["spec"]["schedulingPolicy"]["gang"]["minCount"])


def _uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def _resource(watched: Any) -> str:
    group = watched.api_versions[0].rpartition("/")[0]
    return f"{watched.plural}.{group}" if group else str(watched.plural)


def _is_on(pod: dict[str, Any], node_name: str) -> bool:
    return pod["spec"].get("nodeName") == node_name and pod.get("status", {}).get("phase") not in _FINISHED


def _lives(pod: dict[str, Any]) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod.get("status", {}).get("phase") not in _FINISHED


def _takes_pods(node: dict[str, Any]) -> bool:
    return not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def _cpu(pod: dict[str, Any]) -> int:
    return sum(_milli(one.get("resources", {}).get("requests", {}).get("cpu", "0")) for one in pod["spec"]["containers"])


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _fits(node: dict[str, Any], pods: list[dict[str, Any]]) -> bool:
    room = node["status"].get("allocatable") or node["status"].get("capacity") or {}
    return sum(map(_cpu, pods)) <= _milli(room.get("cpu", "0")) and len(pods) <= int(room.get("pods", "0"))
