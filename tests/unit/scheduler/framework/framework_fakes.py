"""A few nodes, and plugins that say what they are told to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot, Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, Diagnosis, Plugin, PostFiltered, Profile, Rejections, Status
from kubesched.testing import node, pod


def small_store(*names: str) -> Store:
    store = Store()
    for name in names or ("a", "b", "c"):
        store.put_node(node(name))
    return store


def snapshot(*names: str) -> Snapshot:
    return small_store(*names).snapshot()


def some_pod(store: Store | None = None) -> PodView:
    return (store or Store()).view(pod("p"))


class Says(Plugin):
    """Answers every point with what it was given; points that it was given nothing for are not asked."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(None, EngineHandle(Store().objects))
        self.answers = answers
        self.asked: list[str] = []

    def _say(self, point: str) -> Any:
        self.asked.append(point)
        return self.answers.get(point)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
        return self._say("pre_filter")

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        found: Rejections | None = self._say("filter")
        return found or Rejections.none(nodes)

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        found: PostFiltered = self._say("post_filter")
        return found

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        found: Status | None = self._say("pre_score")
        return found

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return np.array(self._say("score"), dtype=np.int64)


def named(name: str, **answers: Any) -> Says:
    """Return a plugin of that name."""
    return type(name, (Says,), {})(**answers)


def profile_of(*plugins: Plugin, weights: Sequence[int] = ()) -> Profile:
    """Return a profile with all plugins at all points, in order."""
    entries = [(plugin, weights[i] if weights else 1) for i, plugin in enumerate(plugins)]
    return Profile("fake", dict.fromkeys(("pre_filter", "filter", "post_filter", "pre_score", "score"), entries))
