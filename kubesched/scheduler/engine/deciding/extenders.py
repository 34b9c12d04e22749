"""HTTP extenders: other programs that filter, score, preempt and bind.

In: the feasible nodes of an attempt, its totals, its candidates for preemption, or its node. Out: the same, as the extenders
leave them. Requests and answers are the JSON of kube-scheduler; a `Poster` sends the bytes. If an ignorable extender fails, the
attempt goes on without it. If another one fails, the attempt ends with an error that names the extender.

A call waits for its answer. So an engine with extenders makes its attempts in a thread of their own: nothing else touches the
store meanwhile, and watches and leases go on.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec
import numpy as np

from kubesched.errors import PluginError, SchedulerError
from kubesched.kube.api import Pod, codec
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.config import Extender as ExtenderConfig
from kubesched.scheduler.framework import Code, Diagnosis, Preemption, Status

MAX_EXTENDER_SCORE = 10
SCALE = 100 // MAX_EXTENDER_SCORE
LARGEST_SUM = 1 << 53
"""No score comes near it, and sums of several stay in 64 bits."""
MOST_BINDINGS = 64
"""Bindings that extenders carry out at a time."""
EXTENDER = "Extender"

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Poster(Protocol):
    """Sends a body and returns the answer's. Raises SchedulerError with one line when there is none."""

    def post(self, url: str, body: bytes, extender: ExtenderConfig) -> bytes:
        """Post JSON; wait at most the extender's time-out."""
        ...


Act = Callable[[], Awaitable[None]]
LetBind = Callable[[PodView, str, Act], Awaitable[None]]
"""Lets somebody else bind a pod to a node; raises SchedulerError unless it is done."""


async def just_bind(pod: PodView, node_name: str, act: Act) -> None:
    """Let it happen, and believe what is said about it."""
    await act()


def _naming_extender(run: Callable[Concatenate[Extender, P], R]) -> Callable[Concatenate[Extender, P], R]:
    """Name the extender in the error if its answer has a shape that the method cannot read."""

    @functools.wraps(run)
    def run_named(self: Extender, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return run(self, *args, **kwargs)
        except SchedulerError:
            raise
        except Exception as error:  # the extender's author wrote the answer, so anything may be in it
            verb = getattr(self.given, f"{run.__name__}_verb")
            raise SchedulerError(f'extender "{self.name}": the answer to {verb} cannot be used: {error!r}') from error

    return run_named


class Extender:
    """One extender."""

    def __init__(self, given: ExtenderConfig, poster: Poster) -> None:
        self.given = given
        self.name = given.url_prefix
        self._poster = poster
        self._managed = frozenset(resource.name for resource in given.managed_resources)

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender wants to be asked about a pod: if it manages nothing, about every pod."""
        if not self._managed:
            return True
        return any(
            name in self._managed
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for name in (*container.resources.requests, *container.resources.limits)
        )

    @_naming_extender
    def filter(self, pod: PodView, names: Sequence[str], nodes: Snapshot) -> tuple[list[str], dict[str, Status]]:
        """Return the nodes that pass, and the statuses of those that do not."""
        given, name = self.given, self.name
        answer = self._ask(given.filter_verb, self._about(pod, names, nodes))
        if not isinstance(answer, dict):
            raise SchedulerError(f'extender "{name}": an object is wanted as the result of filtering, found {_shown(answer)}')
        listed = _field(answer, "Nodes")
        items = _field(listed, "items") if isinstance(listed, dict) else None
        try:
            passed = [item["metadata"]["name"] for item in items] if items is not None else None
        except (TypeError, KeyError) as error:
            raise SchedulerError(f'extender "{name}": a node without a name in the result of filtering') from error
        texts = _field(answer, "NodeNames")
        are_texts = texts is None or (isinstance(texts, list) and all(isinstance(text, str) for text in texts))
        failed, unresolvable = _field(answer, "FailedNodes") or {}, _field(answer, "FailedAndUnresolvableNodes") or {}
        if not are_texts or not isinstance(failed, dict) or not isinstance(unresolvable, dict):
            raise SchedulerError(f'extender "{name}": node names and reasons by node name are wanted, found {_shown(answer)}')
        if error_text := str(_field(answer, "Error") or ""):
            # The extender's own error is the text of the attempt's error, without a prefix, as in kube-scheduler.
            raise SchedulerError(error_text)
        # Kept quirk: an extender that is `nodeCacheCapable` answers with names; one that answers with whole nodes all the same
        # is read too. An answer with neither lets no node pass.
        if given.node_cache_capable and texts is not None:
            passed = texts
        allowed = set(names)
        for passing in passed or ():
            if passing not in allowed:
                raise SchedulerError(
                    f'extender "{name}" claims a filtered node "{passing}" which is not found in the input node list'
                )
        statuses = {node: Status(Code.UNSCHEDULABLE, (str(reason),)) for node, reason in failed.items()}
        statuses |= {node: Status(Code.UNRESOLVABLE, (str(reason),)) for node, reason in unresolvable.items()}
        return list(passed or ()), statuses

    @_naming_extender
    def prioritize(self, pod: PodView, names: Sequence[str], nodes: Snapshot) -> dict[str, int]:
        """Return what the extender adds to the nodes' totals."""
        given = self.given
        answer = self._ask(given.prioritize_verb, self._about(pod, names, nodes))
        if not isinstance(answer, list):
            raise SchedulerError(f'extender "{self.name}": a list of hosts and scores is wanted, found {_shown(answer)}')
        added: dict[str, int] = {}
        for entry in answer:
            host, score = _field(entry, "Host"), _field(entry, "Score")
            if not isinstance(host, str) or not isinstance(score, int):
                raise SchedulerError(f'extender "{self.name}": a host and a whole score are wanted, found {_shown(entry)}')
            added[host] = added.get(host, 0) + score * given.weight * SCALE
            if abs(added[host]) > LARGEST_SUM:
                raise SchedulerError(f'extender "{self.name}": the score of host "{host}" is out of range')
        return added

    @_naming_extender
    def bind(self, pod: PodView, node_name: str) -> None:
        """Have the extender bind a pod; raise SchedulerError if it does not."""
        arguments = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        answer = self._ask(self.given.bind_verb, arguments)
        error = _field(answer, "Error")
        if not isinstance(answer, dict | None) or not isinstance(error, str | None):
            raise SchedulerError(f'extender "{self.name}": the result of a binding is wanted, found {_shown(answer)}')
        if error:
            raise SchedulerError(error)

    @_naming_extender
    def preempt(self, pod: PodView, candidates: Sequence[Preemption], nodes: Snapshot) -> list[Preemption]:
        """Return the candidates that the extender leaves, with the victims that it names."""
        arguments: dict[str, Any] = {"Pod": codec.to_dict(pod.pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self.given.node_cache_capable:
            arguments["NodeNameToMetaVictims"] = {
                c.node_name: {"Pods": [{"UID": v.uid} for v in c.victims], "NumPDBViolations": c.violations} for c in candidates
            }
        else:
            arguments["NodeNameToVictims"] = {
                c.node_name: {"Pods": [codec.to_dict(v.pod) for v in c.victims], "NumPDBViolations": c.violations}
                for c in candidates
            }
        answer = _field(self._ask(self.given.preempt_verb, arguments), "NodeNameToMetaVictims") or {}
        if not isinstance(answer, dict):
            raise SchedulerError(f'extender "{self.name}": victims by node are wanted, found {_shown(answer)}')
        plugin = candidates[0].plugin if candidates else ""
        return [self._candidate(name, victims, nodes, plugin) for name, victims in answer.items()]

    def _candidate(self, node_name: str, victims: Any, nodes: Snapshot, plugin: str) -> Preemption:
        row = nodes.row(node_name)
        if row < 0:
            raise SchedulerError(f'nodeinfo not found for node name "{node_name}"')
        # Victims come back as uids. They are looked up on the node, so that an extender cannot evict pods that are elsewhere or
        # gone.
        by_uid = {other.uid: other for other in nodes.pods_on(row)}
        found: list[PodView] = []
        for victim in _field(victims, "Pods") or ():
            uid = _field(victim, "UID")
            if uid not in by_uid:
                raise SchedulerError(
                    f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {node_name}, but "
                    "the pod is not found on that node"
                )
            found.append(by_uid[uid])
        return Preemption(node_name, tuple(found), int(_field(victims, "NumPDBViolations") or 0), plugin)

    def _about(self, pod: PodView, names: Sequence[str], nodes: Snapshot) -> dict[str, Any]:
        """Return the arguments of filter and prioritize: names for an extender that knows the nodes, else the nodes."""
        about: dict[str, Any] = {"Pod": codec.to_dict(pod.pod), "Nodes": None, "NodeNames": None}
        if self.given.node_cache_capable:
            about["NodeNames"] = list(names)
        else:
            items = [codec.to_dict(nodes.node(nodes.row(name))) for name in names]
            about["Nodes"] = {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items}
        return about

    def _ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        url = f"{self.given.url_prefix.rstrip('/')}/{verb}"
        body = self._poster.post(url, msgspec.json.encode(arguments), self.given)
        if not body:
            raise SchedulerError(f'extender "{self.name}": the answer to {verb} is empty')
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise SchedulerError(f'extender "{self.name}": the answer to {verb} is not JSON: {error}') from error
        except RecursionError as error:
            raise SchedulerError(f'extender "{self.name}": the answer to {verb} is nested too deep') from error


class Extenders:
    """All extenders, those that may be ignored last."""

    def __init__(
        self,
        given: Iterable[ExtenderConfig],
        poster: Poster,
        *,
        scores_bare_nodes: bool = True,
        let_bind: LetBind = just_bind,
    ) -> None:
        self._scores_bare, self._let_bind = scores_bare_nodes, let_bind
        self._binding = ThreadPoolExecutor(MOST_BINDINGS, "bind")  # its threads begin with the first binding
        self.all = [Extender(one, poster) for one in sorted(given, key=lambda one: one.ignorable)]

    def __bool__(self) -> bool:
        return bool(self.all)

    def filter(self, pod: PodView, nodes: Snapshot, feasible: Bools, diagnosis: Diagnosis) -> tuple[Bools, bool]:
        """Return which nodes pass the extenders too, and whether scoring must take nodes without their pods.

        An extender that is sent whole nodes answers with whole nodes, and the reference then scores these as if no pod
        were on them: a quirk, kept.
        """
        # One extender after another, each with what the one before left. That is kube-scheduler's order, and an extender sees
        # it.
        names = [nodes.name(row) for row in np.flatnonzero(feasible).tolist()]
        before, are_bare = len(names), False
        for extender in self.all:
            if not names:
                break
            if not extender.given.filter_verb or not extender.is_interested(pod.pod):
                continue
            try:
                names, statuses = extender.filter(pod, names, nodes)
            except SchedulerError as error:
                self._tolerate(extender, "Filter", error, pod)
                continue
            are_bare = are_bare or (self._scores_bare and not extender.given.node_cache_capable)
            diagnosis.extra.update(statuses)
        if len(names) == before:
            return feasible, are_bare
        diagnosis.unschedulable_plugins.add(EXTENDER)
        return nodes.mask(nodes.rows_of(names).tolist()), are_bare

    def prioritize(self, pod: PodView, nodes: Snapshot, feasible: Bools, totals: Ints) -> None:
        """Add the extenders' scores to the totals; one that fails adds nothing. All are asked at once, as in the reference."""
        names = [nodes.name(row) for row in np.flatnonzero(feasible).tolist()]
        asked = [e for e in self.all if e.given.prioritize_verb and e.is_interested(pod.pod)]
        if not asked:
            return
        if len(asked) == 1:  # as mostly: nobody beside it is kept waiting, and a thread costs more than the rest of this
            answers = [_scores(asked[0], pod, names, nodes)]
        else:
            with ThreadPoolExecutor(len(asked), "prioritize") as threads:
                answers = list(threads.map(lambda extender: _scores(extender, pod, names, nodes), asked))
        for added in answers:
            for name, score in added.items():
                row = nodes.row(name)
                if row >= 0 and feasible[row]:
                    totals[row] += score

    def narrow(self, pod: PodView, candidates: Sequence[Preemption], nodes: Snapshot) -> list[Preemption]:
        """Let the extenders strike out candidates for preemption, or change their victims."""
        left = list(candidates)
        for extender in self.all:
            if not left:
                break
            if not extender.given.preempt_verb or not extender.is_interested(pod.pod):
                continue
            try:
                answered = extender.preempt(pod, left, nodes)
            except SchedulerError as error:
                self._tolerate(extender, "PostFilter", error, pod)
                continue
            # A candidate without victims would mean that the pod fits there now. Kept quirk: an extender that may be ignored
            # loses only the candidate; with any other the preemption fails.
            empty = [candidate for candidate in answered if not candidate.victims]
            if empty and not extender.given.ignorable:
                raise SchedulerError(f'expected at least one victim pod on node "{empty[0].node_name}"')
            left = [candidate for candidate in answered if candidate.victims]
        return left

    async def bind(self, pod: PodView, node_name: str) -> bool:
        """Have the first extender that can bind the pod do it; False if there is none. Waits in a thread that decisions do
        not need."""
        for extender in self.all:
            if not extender.given.bind_verb or not extender.is_interested(pod.pod):
                continue
            loop = asyncio.get_running_loop()
            act = functools.partial(loop.run_in_executor, self._binding, extender.bind, pod, node_name)
            try:
                # A lost answer is not a lost binding: `let_bind` of the server reads the pod and accepts it if it is on the
                # node.
                await self._let_bind(pod, node_name, act)
                return True
            except SchedulerError as error:
                self._tolerate(extender, "Bind", error, pod)
        return False

    def _tolerate(self, extender: Extender, point: str, error: SchedulerError, pod: PodView) -> None:
        if not extender.given.ignorable:
            raise PluginError(EXTENDER, point, str(error), pod.key) from error
        log.warning("extender %s is passed over for pod %s: %s", extender.name, pod.key, error)


class BareNodes(Snapshot):
    """A snapshot as if no pod were on any node; for scoring after an extender answered with whole nodes."""

    __slots__ = ()

    @classmethod
    def of(cls, nodes: Snapshot) -> BareNodes:
        """Return the bare view of the same rows."""
        return cls(nodes.whole, nodes.rows)

    def requested(self, resource: int) -> Ints:
        """Return zeros."""
        return np.zeros(self.n, dtype=np.int64)

    def non_zero_requested(self, resource: int) -> Ints:
        """Return zeros."""
        return np.zeros(self.n, dtype=np.int64)

    def requested_at(self, resource: int, row: int) -> int:
        """Return zero."""
        return 0

    def non_zero_requested_at(self, resource: int, row: int) -> int:
        """Return zero."""
        return 0

    def usage_at(self, resource: int, row: int) -> tuple[int, int]:
        """Return what a node offers, and zero."""
        return self.allocatable_at(resource, row), 0

    def free_pods_at(self, row: int) -> int:
        """Return how many pods a node takes."""
        return int(self.allowed_pods[row])

    @property
    def pod_count(self) -> Ints:
        """Return zeros."""
        return np.zeros(self.n, dtype=np.int64)

    def pods_on(self, row: int) -> Iterable[PodView]:
        """Return nobody."""
        return ()


def _scores(extender: Extender, pod: PodView, names: Sequence[str], nodes: Snapshot) -> dict[str, int]:
    try:
        return extender.prioritize(pod, names, nodes)
    except SchedulerError as error:
        log.info("extender %s does not score pod %s: %s", extender.name, pod.key, error)
        return {}


def _field(value: Any, name: str) -> Any:
    """Return a field whatever the case of its name, as the reference decodes; None if it is not there."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return next((found for key, found in value.items() if key.lower() == name.lower()), None)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 120 else text[:117] + "..."
