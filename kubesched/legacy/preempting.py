"""Preemption as today, told as then: the message of a pod that fits nowhere says nothing about it."""

from __future__ import annotations

from dataclasses import replace

from kubesched.cluster import PodView, Snapshot
from kubesched.framework import Diagnosis, PostFiltered, Profile, State, Status
from kubesched.plugins.default_preemption import DefaultPreemption


class QuietPreemption(DefaultPreemption):
    """DefaultPreemption without its reasons, which old messages did not have."""

    name = "DefaultPreemption"

    def post_filter(self, pod: PodView, nodes: Snapshot, state: State, diagnosis: Diagnosis,
                    profile: Profile) -> PostFiltered:
        answer = super().post_filter(pod, nodes, state, diagnosis, profile)
        if not answer.status.is_rejected:
            return answer
        return replace(answer, status=Status(answer.status.code))
