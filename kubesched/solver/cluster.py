"""A cluster that can be asked: where would this pod go, and what if.

In: API objects, at once or one change after another. Out: answers, as plain values. A `Cluster` owns one engine, the same as
`run` has: store, profiles, equivalence caches. A change costs what it changes. Nothing here writes to a cluster.

`what_if()` copies nothing. It opens a `World` on that engine; what is changed in it is undone when it closes (`world.py`).
One thread at a time: a world holds the cluster until it closes. Changes that arrive meanwhile wait and are applied then.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kubesched.kube.api import INFO, Node, Pod, TopLevel
from kubesched.kube.client import kubectl_credentials
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Version
from kubesched.scheduler.engine import (
    Attempt,
    Engine,
    NoObserver,
    Ports,
    StillClock,
    SystemClock,
    assemble,
    attempt,
    default_configuration,
    pod_report,
    registry_with,
)
from kubesched.scheduler.framework import Clock, Failed, Placed, Plugin, Profile, Unschedulable, catalogue
from kubesched.server.options.server_release import release_of
from kubesched.solver.cheapest import NewNodes, NodeTemplate
from kubesched.solver.errors import BadObject, UnknownObject, WorldError
from kubesched.solver.following import Follower
from kubesched.solver.node_groups import DaemonSetPods
from kubesched.solver.objects import Given, object_of, pod_of, unplaced
from kubesched.solver.placing import Leaving, StillLoop
from kubesched.solver.results import NO_ROW, Fits, NodeTable, Placement, Room
from kubesched.solver.undo import UndoLog
from kubesched.solver.world import World

if TYPE_CHECKING:
    from kubesched.tools.snapshots.captured import Captured

NOT_LOOKED_AT = "the pod is nominated to another node"
"""Why the other nodes do not count for a pod whose nominated node takes it: nobody looks at them then."""
Change = tuple[str, Any, Any]
"""(kind, before, after); None stands for "not there"."""


class Refusals(NoObserver):
    """Keeps why pods did not get a node."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}

    def pod_failed(self, pod: PodView, reason: str, message: str) -> None:
        """Keep the message of the last attempt."""
        self.messages[pod.uid] = message


class Cluster:
    """A cluster in memory, and everything that decides about its pods."""

    def __init__(
        self,
        objects: Iterable[Given] = (),
        *,
        configuration: config.Configuration | str | Path | None = None,
        feature_gates: Iterable[str] = (),
        plugins: Iterable[type[Plugin]] = (),
        release: Version | None = None,
        seed: int = 0,
        at: float | None = None,
        clock: Clock | None = None,
        build: Callable[[Ports], Engine] | None = None,
    ) -> None:
        """Begin with objects. The rest says how pods are decided, as for `run`.

        `at` is the time, which stands still; now, if not given. Of a cluster that is followed the `clock` goes. `build`
        makes the engine, instead of the arguments that say how pods are decided.
        """
        self.refusals = Refusals()
        self._lock = threading.RLock()
        self._arrived: deque[Change] = deque()
        self._worlds: list[World] = []
        self._uids: dict[str, str] = {}
        self._version = 0
        self._moved = threading.Condition()
        self._follower: Follower | None = None
        self._daemons: tuple[int, DaemonSetPods] | None = None
        ports = Ports(clock=clock or StillClock(time.time() if at is None else at), observer=self.refusals, seed=seed)
        switched, fitting = tuple(feature_gates), config.Gates.fitting
        self.gates = fitting(switched) if release is None else config.Gates.parse(switched, emulated=release)
        self.engine = build(ports) if build is not None else _built(ports, self.gates, configuration, tuple(plugins))
        self.engine.failures.writes = False
        self.leaving = Leaving()
        self.engine.attempts.evictions = self.leaving
        self.loop = StillLoop()
        self.seed = seed
        for obj in sorted(map(object_of, objects), key=_after_what_it_needs):
            self._apply(INFO[type(obj)].kind, None, obj)

    def __repr__(self) -> str:
        store = self.engine.store
        return f"Cluster({len(store.nodes)} nodes, {store.n_pods} pods placed, {len(self.pending())} pending)"

    @classmethod
    def from_objects(cls, objects: Iterable[Given], **how: Any) -> Cluster:
        """Return a cluster of API objects, as structs or as mappings."""
        return cls(objects, **how)

    @classmethod
    def from_snapshot(cls, path: str | Path, **how: Any) -> Cluster:
        """Return the cluster in a file: from `kubesched snapshot` or kubectl, an inbox log, or manifests; `-` is stdin."""
        from kubesched.tools.plan.cluster_files import read_cluster_file  # with an API server in it: half a second

        return cls.from_captured(read_cluster_file(Path(path)), **how)

    @classmethod
    def from_captured(cls, captured: Captured, **how: Any) -> Cluster:
        """Return the cluster that was captured, at its time, with its seed, decided as its release decides."""
        of_file = {"at": captured.at, "seed": captured.seed, "release": captured.release}
        return cls(captured.objects, **of_file | how)

    @classmethod
    def from_kubeconfig(cls, kubeconfig: str = "", context: str = "", **how: Any) -> Cluster:
        """Return a live cluster, which a background thread follows until `close`. Nothing is written to it.

        It returns when the first lists are in; without a kubeconfig it takes the one that kubectl would take.
        """
        source = kubectl_credentials(kubeconfig, context)
        if "release" not in how:
            how["release"] = release_of(source)
        cluster = cls(clock=SystemClock(), **how)
        cluster._follower = Follower(cluster, source)
        cluster._follower.start()
        return cluster

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Follow the live cluster no more; what was heard until now can still be asked about."""
        if self._follower is not None:
            self._follower.stop()

    # Following

    @property
    def version(self) -> int:
        """Return a number that moves with every change that was taken in."""
        return self._version

    def changed(self, version: int, seconds: float | None = None) -> int:
        """Wait until the version is another one, or so many seconds; return the version."""
        with self._moved:
            self._moved.wait_for(lambda: self._version != version, seconds)
            return self._version

    def apply(self, old: Given | None, new: Given | None) -> None:
        """Take in one change, as a watch tells it: None stands for "not there". It waits while a world is open."""
        before, after = (object_of(each) if each is not None else None for each in (old, new))
        some = after if after is not None else before
        if some is None:
            raise BadObject("a change needs an object before or after it")
        self.arrived(INFO[type(some)].kind, before, after)

    def arrived(self, kind: str, old: Any, new: Any) -> bool:
        """Take in a change that may be of a kind of which only plugins know; return whether it had not to wait."""
        self._arrived.append((kind, old, new))
        return self.take_in()

    def take_in(self) -> bool:
        """Take in what has arrived, unless somebody has the cluster to himself just now; return whether nothing waits."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._worlds:
                    self._take_in()
            finally:
                self._lock.release()
        return not self._arrived

    def put(self, *objects: Given) -> None:
        """Add objects, or replace them by their newer versions."""
        for given in objects:
            obj = object_of(given)
            self.apply(self._known(obj), obj)

    def remove(self, *objects: Given) -> None:
        """Take in that objects are gone."""
        for given in objects:
            obj = object_of(given)
            self.apply(self._known(obj) or obj, None)

    def _known(self, obj: TopLevel) -> TopLevel | None:
        meta, store = obj.metadata, self.engine.store
        if isinstance(obj, Pod):
            view = self.find(obj.key)
            return view.pod if view is not None else None
        if isinstance(obj, Node):
            return store.node(meta.name)
        found: TopLevel | None = store.objects.get(type(obj), meta.name, meta.namespace or "")
        return found

    def _take_in(self) -> None:
        if self._arrived:
            while self._arrived:
                self._apply(*self._arrived.popleft())
            with self._moved:
                self._moved.notify_all()

    def _apply(self, kind: str, old: Any, new: Any) -> None:
        if kind == "Pod":
            if old is not None:
                self._uids.pop(old.key, None)
            if new is not None:
                self._uids[new.key] = new.metadata.uid
        self.engine.intake.apply(kind, old, new)
        self.drain_inbox()
        self._version += 1

    def drain_inbox(self) -> None:
        """Drop what plugins posted for a loop that does not run here: it only wakes pods that wait."""
        if len(self.engine.inbox):
            self.engine.inbox.take()

    # What is there

    def find(self, key: str) -> PodView | None:
        """Return a pod by namespace/name; None if it is not there."""
        uid = self._uids.get(key)
        placed = self.engine.store.pod(uid) if uid is not None else None
        return placed or self.engine.intake.pod(key)

    def key_of(self, given: Given | str) -> str:
        """Return the namespace/name of a pod, or of a name."""
        if isinstance(given, str):
            return given if "/" in given else f"default/{given}"
        return pod_of(given).key

    def pending_pod(self, name: str) -> Pod:
        """Return a pod without a node by its name."""
        found = self.engine.intake.pod(self.key_of(name))
        if found is None:
            raise UnknownObject(f"pod {name}: there is no pending pod of this name")
        return found.pod

    def pending(self) -> list[Pod]:
        """Return the pods that wait for a node, in the order in which they came."""
        is_placed = self.engine.store.pod
        return [view.pod for view in self.engine.intake.pending() if is_placed(view.uid) is None]

    def know(self, pod: PodView, undo: UndoLog) -> None:
        """Find a pod by its name from now on."""
        before = self._uids.get(pod.key)
        self._uids[pod.key] = pod.uid
        undo.add(partial(self._set_uid, pod.key, before))

    def forget(self, pod: PodView, undo: UndoLog) -> None:
        """Do not find a pod by its name any more."""
        undo.add(partial(self._set_uid, pod.key, self._uids.pop(pod.key, None)))

    def _set_uid(self, key: str, uid: str | None) -> None:
        if uid is None:
            self._uids.pop(key, None)
        else:
            self._uids[key] = uid

    # Asking

    def fits(self, pod: Given | str, *, nodes: bool = True) -> Fits:
        """Return where a pod fits and which node it would get, and what every node says unless `nodes` is False.

        A pod that has a node is looked at as if one more like it came. Nothing is booked and nobody is evicted.
        """
        with self._asking():
            return self.fits_now(pod, nodes=nodes)

    def _asking(self) -> threading.RLock:
        """Take in what arrived, and return the lock to hold; raise WorldError while a world is open."""
        with self._lock:
            if self._worlds:
                raise WorldError("the cluster has an open world; ask the world, or close it first")
            self._take_in()
        return self._lock

    def view_of(self, pod: Given | str) -> tuple[PodView, Profile]:
        """Return a pod as the engine sees it, on no node, and the profile that decides it."""
        if isinstance(pod, str):
            found = self.find(pod if "/" in pod else f"default/{pod}")
            if found is None:
                raise UnknownObject(f"pod {pod}: there is no such pod")
            pod = found.pod
        asked = unplaced(pod_of(pod))
        profile = self.engine.profiles.get(asked.spec.scheduler_name)
        if profile is None:
            known = ", ".join(self.engine.profiles)
            raise BadObject(f"pod {asked.key}: spec.schedulerName: {asked.spec.scheduler_name!r} is none of {known}")
        return self.engine.store.view(asked), profile

    def fits_now(self, pod: Given | str, *, nodes: bool) -> Fits:
        """Return the answer of the cluster as it is now, in the innermost world."""
        view, profile = self.view_of(pod)
        engine = self.engine
        gate = profile.pre_enqueue(view)
        snapshot = engine.store.snapshot()
        if not gate.is_success:
            return Fits(view.key, message=gate.message, n_nodes=snapshot.n)
        rules = replace(engine.attempts.rules, preempts=False, scores_single=nodes)
        cache = None if nodes else engine.attempts.caches.get(profile.name)
        made = attempt(view, snapshot, profile, rules, cache)
        decision = made.decision
        node, message, n_feasible = "", "", 0
        if isinstance(decision, Placed):
            node, n_feasible = decision.node_name, decision.feasible
        elif isinstance(decision, Unschedulable | Failed):
            message = decision.message
        table = table_of(made) if nodes else None
        return Fits(view.key, node, message, n_feasible, snapshot.n, table)

    def why(self, pod: Given | str, *, top: int = 5, preempt: bool = False) -> dict[str, Any]:
        """Return why a pod is pending, or why it is where it is: the document that `why -o json` prints (with `preempt`)."""
        with self._asking():
            return self.why_now(pod, top=top, preempt=preempt)

    def why_now(self, pod: Given | str, *, top: int, preempt: bool) -> dict[str, Any]:
        """Return the document of the cluster as it is now, in the innermost world."""
        if isinstance(pod, str):
            found = self.find(self.key_of(pod))
            if found is None:
                raise UnknownObject(f"pod {pod}: there is no such pod")
        else:
            asked = pod_of(pod)
            found = self.engine.store.pod(asked.metadata.uid) or self.engine.store.view(asked)
        return pod_report(self.engine, found, top=top, preempts=preempt)

    def place(self, pods: Iterable[Given | str], *, preempt: bool = False) -> Placement:
        """Return where pods would go, as `World.place` in a world of its own."""
        with self.what_if() as world:
            return world.place(pods, preempt=preempt)

    def capacity(self, pod: Given | str, *, limit: int | None = None) -> Room:
        """Return how many more of a pod fit, at most `limit`: the answer of `capacity -o json`. Nobody is evicted for them."""
        with self.what_if() as world:
            return world.capacity(pod, limit=limit)

    def cheapest_nodes(self, pods: Iterable[Given | str], templates: Sequence[NodeTemplate]) -> NewNodes:
        """Return the cheapest nodes to add, of some templates, so that pods run. Nodes that are there are used first."""
        with self.what_if() as world:
            return world.cheapest_nodes(pods, templates)

    def daemons(self) -> DaemonSetPods:
        """Return the pods that DaemonSets would have on a new node, as of the last change to the cluster."""
        if self._daemons is None or self._daemons[0] != self._version:
            self._daemons = self._version, DaemonSetPods(view.pod for view in self.engine.store.pods())
        return self._daemons[1]

    # What if

    def what_if(self) -> World:
        """Open a world: a cluster like this one that can be changed and asked. Use it as a context manager."""
        return World(self, None)

    @property
    def innermost(self) -> World | None:
        """Return the world that may be asked; None if none is open."""
        return self._worlds[-1] if self._worlds else None

    def open_world(self, world: World, parent: World | None) -> None:
        """Hold the cluster for a world that opens inside another one, or in the cluster itself."""
        self._lock.acquire()
        if self.innermost is not parent or world in self._worlds:
            self._lock.release()
            raise WorldError("another world is open; open the new one inside it, or close it first")
        if parent is None:
            self._take_in()
        self._worlds.append(world)

    def close_world(self, world: World) -> None:
        """Let the cluster go. What arrived meanwhile is taken in when the outermost world closes."""
        try:
            self._worlds.remove(world)
            if not self._worlds:
                self._take_in()
        finally:
            self._lock.release()


def _built(
    ports: Ports,
    gates: config.Gates,
    configuration: config.Configuration | str | Path | None,
    plugins: tuple[type[Plugin], ...],
) -> Engine:
    """Return an empty engine; extenders are left out, as asking them is not for who only looks."""
    registry = registry_with(plugins, installed=configuration is not None)
    if configuration is None:
        configuration = default_configuration(gates, registry)
    elif not isinstance(configuration, config.Configuration):
        configuration = config.load(configuration, gates=gates, registry=catalogue(registry))
    return assemble(replace(configuration, extenders=()), gates, ports, registry=registry)


def table_of(made: Attempt) -> NodeTable:
    """Return what every node says to a pod."""
    n, verdicts = made.nodes.n, made.verdicts
    names = tuple(made.nodes.names)
    codes = np.full(n, NO_ROW, dtype=np.int32)
    refusals: list[tuple[str, tuple[str, ...]]] = []
    absent = made.pre_filtered.absent if made.pre_filtered is not None else None
    if verdicts is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        if status is not None:
            refusals.append((status.plugin, tuple(status.reasons)))
            codes[:] = 0
        elif made.feasible is not None:
            refusals.append(("", (NOT_LOOKED_AT,)))
            codes[~made.feasible] = 0
    else:
        for plugin, reasons, rows in verdicts.refusals():
            codes[rows] = len(refusals)
            refusals.append((plugin, tuple(reason.text for reason in reasons)))
        considered = verdicts.considered
        if considered is not None and not considered.all():
            codes[~considered] = len(refusals)
            refusals.append((absent.plugin if absent else "", tuple(absent.reasons) if absent else ()))
    if made.scores is None:
        return NodeTable(names, codes, tuple(refusals))
    scores = {plugin: np.array(column, dtype=np.int64) for plugin, column in made.scores.by_plugin.items()}
    return NodeTable(names, codes, tuple(refusals), made.scores.total.copy(), scores)


def _after_what_it_needs(obj: TopLevel) -> int:
    return 2 if isinstance(obj, Pod) else 1 if isinstance(obj, Node) else 0
