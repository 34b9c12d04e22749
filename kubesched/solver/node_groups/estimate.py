"""Which nodes to add so that pods run: tried in an engine's own store, and taken back.

In: pods that wait, an engine that believes in a cluster, and groups that may grow. Out: nodes to add, cheapest first. Every
verdict is that of the engine's filters on nodes that do not exist yet; which node a pod is put on here is first fit, hardest
pods first, because that packs well. Where it will really go is the scheduler's to say when the nodes are there: whoever asks
adds the nodes, lets it decide, and asks again if somebody still waits.

Alike pods are tried together. If no filter has anything to say about them that depends on other nodes (`depends_on`), nodes
that are alike take equally many of them: one is filled pod by pod, and the others are booked like it. Otherwise each pod is
decided for itself, from what the engine remembers of its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.kube.api import Node, Pod, node_allocatable
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.engine import Attempt, Engine, Rules, attempt
from kubesched.scheduler.framework import LevelRows, Placed, Profile, compares_nodes, is_kept, own_inputs
from kubesched.solver.node_groups.daemonset_pods import DaemonSetPods
from kubesched.solver.node_groups.group import NodeGroup
from kubesched.solver.node_groups.sizes import GroupSizes

Contents = tuple[tuple[bytes, int], ...]
"""What was put on a new node: how many pods of which class, in that order."""


@dataclass(slots=True)
class NewNode:
    """A node to add, and the pods that it is for."""

    node: Node
    group: NodeGroup
    pods: list[Pod] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.node.metadata.name


@dataclass(frozen=True, slots=True, order=True)
class _Option:
    """A group that could take pods; the smallest is taken."""

    weight: int
    """Below zero: groups of a higher weight go first."""
    price_of_pod: float
    waste: float
    name: str
    n_of_variant: int
    variant: int
    per_node: int


class _FirstFit:
    """Takes a node that is there before a new one, and of the new ones the first."""

    chooser = "first fit"

    def __init__(self) -> None:
        self.new_names: list[str] = []
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._nodes: Snapshot | None = None

    def rows(self, nodes: Snapshot) -> Ints:
        """Return all rows in the order in which they are taken."""
        if self._nodes is not nodes:
            new = nodes.rows_of(self.new_names)
            is_old = np.ones(nodes.n, dtype=np.bool_)
            is_old[new] = False
            self._rows, self._nodes = np.concatenate([np.flatnonzero(is_old), new]), nodes
        return self._rows

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the first row that is not refused."""
        rows = self.rows(nodes)
        return int(rows[int((totals[rows] >= 0).argmax())])


class NodeEstimator:
    """Tries nodes in an engine's store."""

    def __init__(self, engine: Engine, sizes: GroupSizes, daemons: DaemonSetPods | None = None) -> None:
        self._engine = engine
        self._store = engine.store
        self._sizes = sizes
        self._daemons = daemons or DaemonSetPods()
        self._ties = _FirstFit()
        self._rules = Rules(self._ties, preempts=False)
        self._new: dict[str, NewNode] = {}
        self._contents: dict[str, Contents] = {}
        self._learned: dict[tuple[bytes, str, Contents], int] = {}
        """How many pods of a class a new node takes."""
        self._booked: list[str] = []
        self._put: list[str] = []
        self.without_node: list[Pod] = []
        """The pods that the last estimate put nowhere."""

    def estimate(self, pods: Sequence[Pod], coming: Sequence[Node] = ()) -> list[NewNode]:
        """Return the nodes to add; those that are `coming` already are used first. The groups count them from now on."""
        try:
            for node in coming:
                self._put_node(node)
            for views in self._classes(pods):
                rest = self._fit(views)
                tried: set[tuple[str, int]] = set()
                while rest:
                    option = self._cheapest(rest, tried)
                    if option is None:
                        break
                    n_before = len(rest)
                    self._grow(option, max(n_before // option.per_node, 1), tried)
                    rest = self._fit(rest)
                    if len(rest) == n_before:
                        tried.add((option.name, option.variant))
                    else:
                        tried.clear()  # who refused for the balance between zones may not any more
            self.without_node = [pod for pod in pods if self._store.pod(pod.metadata.uid) is None]
            used = [new for new in self._new.values() if new.pods]
            for new in reversed(self._new.values()):
                if not new.pods:
                    self._sizes.take_back(new.name)
            return used
        finally:
            self._take_back()

    def _classes(self, pods: Sequence[Pod]) -> list[list[PodView]]:
        """Return alike pods together: the most important first, then those that the fewest groups can take, the largest."""
        found: dict[tuple[str, bytes], list[PodView]] = {}
        for pod in pods:
            if pod.spec.scheduler_name in self._engine.profiles and self._store.pod(pod.metadata.uid) is None:
                view = self._store.view(pod)
                found.setdefault((pod.spec.scheduler_name, view.template.signature), []).append(view)
        offers = [node_allocatable(self._sizes.next_node(group)) for group in self._sizes.groups.values()]
        largest = {name: max(offer.get(name, 0) for offer in offers) or 1 for name in ("cpu", "memory")}

        def hardest(views: list[PodView]) -> tuple[int, int, float]:
            asked, n_groups = self._asked(views[0]), sum(bool(self._most(views[0], offer)) for offer in offers)
            return -views[0].priority, n_groups, -sum(asked.get(name, 0) / amount for name, amount in largest.items())

        return sorted(found.values(), key=hardest)

    def _asked(self, view: PodView) -> dict[str, int]:
        names = self._store.templates.resources.values
        return {names[resource]: amount for resource, amount in view.requests if amount}

    def _most(self, view: PodView, offer: dict[str, int]) -> int:
        """Return how many pods a node has the resources for at most."""
        return min([offer.get("pods", 0), *(offer.get(name, 0) // amount for name, amount in self._asked(view).items())])

    # Choosing

    def _cheapest(self, views: list[PodView], tried: set[tuple[str, int]]) -> _Option | None:
        """Return the group that takes pods at the lowest price of a pod, and which of its nodes.

        What a node has the resources for bounds the price from below, so that groups which cannot win are not tried."""
        view, best = views[0], None
        for bound in self._bounds(view, len(views), tried):
            if best is not None and best <= bound:
                break
            group = self._sizes.groups[bound.name]
            per_node = self._probe(group, bound.variant, views)
            if per_node:
                offer = node_allocatable(self._sizes.next_node(group))
                price, waste = group.price / per_node, self._waste(view, per_node, offer)
                option = _Option(-group.weight, price, waste, group.name, bound.n_of_variant, bound.variant, per_node)
                best = option if best is None else min(best, option)
            else:
                tried.add((bound.name, bound.variant))
        return best

    def _bounds(self, view: PodView, n: int, tried: set[tuple[str, int]]) -> list[_Option]:
        """Return the groups that could take pods at best, the best first."""
        found = []
        for group in self._sizes.groups.values():
            offer = node_allocatable(self._sizes.next_node(group))
            most = min(self._most(view, offer), n)
            if most and self._sizes.room(group):
                price, waste = group.price / most, self._waste(view, most, offer)
                found += [
                    _Option(-group.weight, price, waste, group.name, self._sizes.n_of_variant[group.name, i], i, most)
                    for i in range(self._sizes.n_variants(group))
                    if (group.name, i) not in tried
                ]
        return sorted(found)

    def _waste(self, view: PodView, count: int, offer: dict[str, int]) -> float:
        """Return the share of a node's cpu and memory that so many pods leave."""
        asked = self._asked(view)
        return 2.0 - sum(count * asked.get(name, 0) / offer[name] for name in ("cpu", "memory") if offer.get(name))

    def _probe(self, group: NodeGroup, variant: int, views: list[PodView]) -> int:
        """Return how many of the pods another node of a group takes."""
        node = self._sizes.next_node(group, variant)
        n_booked, n_put = len(self._booked), len(self._put)
        self._put_node(node)
        try:
            return self._fill(node.metadata.name, views, (views[0].template.signature, group.name, ()))
        finally:
            self._undo(n_booked, n_put)

    def _grow(self, option: _Option, count: int, tried: set[tuple[str, int]]) -> None:
        """Add nodes of a group, evenly of all its variants that were not refused."""
        group, sizes = self._sizes.groups[option.name], self._sizes
        variants = [i for i in range(sizes.n_variants(group)) if (group.name, i) not in tried]
        for _ in range(min(count, sizes.room(group))):
            node = sizes.add(group, min(variants, key=lambda i: sizes.n_of_variant[group.name, i]))
            self._put_node(node)
            self._new[node.metadata.name] = NewNode(node, group)

    # Trying

    def _fit(self, views: list[PodView]) -> list[PodView]:
        """Put alike pods on nodes that are there, or that were added; return those that find none."""
        made = attempt(views[0], self._store.snapshot(), self._profile(views[0]), self._rules)
        is_plain = not (views[0].pod.spec.volumes or views[0].pod.spec.resource_claims)
        if is_plain and not isinstance(made.decision, Placed):
            return views
        if made.feasible is not None and self._is_about_nodes_alone(made):
            return self._fit_by_node(made.nodes, made.feasible, views)
        rest: list[PodView] = []
        memo = self._engine.attempts.caches.get(self._profile(views[0]).name)
        for i, view in enumerate(views):
            decision = attempt(view, self._store.snapshot(), self._profile(view), self._rules, memo).decision
            if isinstance(decision, Placed):
                self._book(view, decision.node_name)
            elif is_plain:
                return views[i:]  # the others are like it
            else:
                rest.append(view)
        return rest

    def _fit_by_node(self, nodes: Snapshot, feasible: Bools, views: list[PodView]) -> list[PodView]:
        """Fill one node after the other; those that are like one that was filled are booked like it."""
        rows, signature, done = self._ties.rows(nodes), views[0].template.signature, 0
        for name in [nodes.name(row) for row in rows[feasible[rows]].tolist()]:
            new, contents = self._new.get(name), self._contents.get(name, ())
            key = (signature, new.group.name, contents) if new is not None else None
            n = self._learned.get(key) if key is not None else None
            if n is None:
                n = self._fill(name, views[done:], key)
            else:
                for view in views[done : done + n]:
                    self._book(view, name)
            self._contents[name] = (*contents, (signature, min(n, len(views) - done)))
            done += n
            if done >= len(views):
                break
        return views[done:]

    def _fill(self, name: str, views: list[PodView], key: tuple[bytes, str, Contents] | None) -> int:
        """Put alike pods on one node until it refuses; return how many it takes."""
        for n, view in enumerate(views):
            nodes = self._store.snapshot()
            only = np.zeros(nodes.n, dtype=np.bool_)
            only[nodes.row(name)] = True
            made = attempt(view, nodes, self._profile(view), self._rules, within=only)
            if not isinstance(made.decision, Placed):
                if n and key is not None and self._is_about_nodes_alone(made):  # none at all may be for its labels
                    self._learned[key] = n
                return n
            self._book(view, name)
        return len(views)

    def _is_about_nodes_alone(self, made: Attempt) -> bool:
        """Return whether no filter's verdict on a node depends on anything but that node and its pods."""
        profile, own = self._profile(made.pod), own_inputs(made.pod, made.nodes.objects)
        return all(
            plugin.name in made.state.skip_filter or (is_kept(plugin, own) and not compares_nodes(plugin))
            for plugin in profile.filters
        )

    def _profile(self, view: PodView) -> Profile:
        return self._engine.profiles[view.pod.spec.scheduler_name]

    # The store

    def _put_node(self, node: Node) -> None:
        self._store.put_node(node)
        self._put.append(node.metadata.name)
        self._ties.new_names.append(node.metadata.name)
        for pod in self._daemons.on(node):
            if self._store.pod(pod.metadata.uid) is None:
                self._store.put_pod(pod)
                self._booked.append(pod.metadata.uid)

    def _book(self, view: PodView, node_name: str) -> None:
        self._store.assume(view, node_name)
        self._booked.append(view.uid)
        new = self._new.get(node_name)
        if new is not None:
            new.pods.append(view.pod)

    def _undo(self, n_booked: int, n_put: int) -> None:
        """Take back what was put into the store since there were so many pods and nodes."""
        while len(self._booked) > n_booked:
            self._store.remove_pod(self._booked.pop())
        while len(self._put) > n_put:
            self._store.remove_node(self._put.pop())
            self._ties.new_names.pop()

    def _take_back(self) -> None:
        self._undo(0, 0)
        self._new.clear()
        self._contents.clear()
        self._learned.clear()
