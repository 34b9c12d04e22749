"""Open-Gpu-Share: pods share GPUs. Filter refuses nodes whose GPUs have too little left; Reserve chooses the GPUs of the pod.

`gpuSelMethod`: best (the fullest GPU with room), worst (the emptiest), random, or a policy that chooses itself (FGDScore).
PreBind writes the choice to the pod's annotation `alibabacloud.com/gpu-index`, which the node's device plugin reads.
"""

from __future__ import annotations

import msgspec
import numpy as np

from kubesched.contrib.gpu_table import INDEX, MODEL, BadRequest, GpuRequest, GpuTable, request_of, rows_of, table_of
from kubesched.kube.api import Pod
from kubesched.scheduler.cluster import Ints
from kubesched.scheduler.config import Args, FieldError, Gates, Path, not_supported
from kubesched.scheduler.framework import (
    ADD,
    DELETE,
    NODE,
    POD,
    SKIP,
    Action,
    CycleState,
    Handle,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Rejections,
    Snapshot,
    Status,
    failed,
    on,
    unresolvable,
)

WRONG_MODEL = Reason("node(s) didn't have the GPU model", resolvable=False)
TOO_LITTLE_LEFT = Reason("Insufficient alibabacloud.com/gpu-milli")
METHODS = ("best", "worst", "random", "FGDScore")


class OpenGpuShareArgs(Args, frozen=True, rename="camel"):
    gpu_sel_method: str = "best"

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        if self.gpu_sel_method in METHODS:
            return []
        return [not_supported(path.child("gpuSelMethod"), self.gpu_sel_method, METHODS)]


class Sharing:
    """A pod's request in one attempt, and what is left on the rows that a what-if has changed."""

    __slots__ = ("asked", "imagined")

    def __init__(self, asked: GpuRequest, imagined: dict[int, Ints]) -> None:
        self.asked = asked
        self.imagined = imagined

    def clone(self) -> Sharing:
        """Return a copy that can be adjusted on its own."""
        return Sharing(self.asked, {row: left.copy() for row, left in self.imagined.items()})


class OpenGpuShare(Plugin):
    name = "Open-Gpu-Share"
    Args = OpenGpuShareArgs
    wakes_on = (on(POD, DELETE), on(NODE, ADD | Action.NODE_ALLOCATABLE | Action.NODE_LABELS))

    def __init__(self, args: OpenGpuShareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.table: GpuTable = table_of(handle.objects)
        self.table.choosers.update(worst=self._emptiest, random=self._any)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        self.table.refresh(nodes)
        try:
            asked = request_of(pod.pod)
        except BadRequest as error:
            return unresolvable(f"pod {pod.key}: {error}")
        state.write(self.name, Sharing(asked, {}))
        return None if asked.count else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes of another GPU model, then nodes with too few GPUs that have enough left."""
        sharing: Sharing = state.read(self.name)
        left = rows_of(self.table.left, nodes)
        if sharing.imagined:
            # The table is shared; a what-if may only change a copy.
            left = left.copy()
            for row, imagined in sharing.imagined.items():
                left[row if nodes.rows is None else nodes.rows == row] = imagined
        short = ~self.table.fits(sharing.asked, left)
        label, models = nodes.label(MODEL), sharing.asked.models
        if not models:
            return Rejections.where(short, TOO_LITTLE_LEFT)
        values = label.values.values if label is not None else ()
        will_do = np.array([*(value in models for value in values), False])  # the last is for nodes without the label
        return Rejections.first((~will_do[nodes.codes(MODEL)], WRONG_MODEL), (short, TOO_LITTLE_LEFT))

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        self._imagine(other, row, -1, state)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        self._imagine(other, row, 1, state)

    def _imagine(self, other: PodView, row: int, sign: int, state: CycleState) -> None:
        sharing: Sharing = state.read(self.name)
        # Only rows that the what-if touches are copied; a pod that is removed gives back the GPUs that it holds in the
        # table.
        left = sharing.imagined.get(row)
        if left is None:
            left = sharing.imagined[row] = self.table.left[row].copy()
        asked, cards = self.table.held_by(other, left)
        left[list(cards)] += sign * asked.milli

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Choose the pod's GPUs on the node and promise them in the table."""
        sharing: Sharing | None = state.find(self.name)
        row = self.table.row(node_name)
        if sharing is None or not sharing.asked.count or row < 0:
            return None
        # The chosen GPUs are a promise in the table until the pod's annotation says them, so the next pod sees them as
        # taken.
        choose = self.table.choosers.get(self.args.gpu_sel_method)
        if choose is None:
            return failed(f"gpuSelMethod {self.args.gpu_sel_method}: the profile has no such policy")
        cards = choose(pod, sharing.asked, row)
        if len(cards) < sharing.asked.count:
            return failed(f"node {node_name}: its GPUs have too little left for pod {pod.key}")
        self.table.promised[pod.uid] = cards
        return None

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        self.table.promised.pop(pod.uid, None)

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        # The annotation is written before the binding, so the kubelet's device plugin finds it when the pod arrives.
        cards = self.table.promised.get(pod.uid)
        if cards is not None:
            await self.handle.writer.update(_annotated(pod.pod, "-".join(map(str, cards))))
        return None

    def _emptiest(self, pod: PodView, asked: GpuRequest, row: int) -> tuple[int, ...]:
        """Choose the GPUs with the most left."""
        left = self.table.left[row]
        order = np.argsort(-left, kind="stable")
        return tuple(order[left[order] >= asked.milli][: asked.count].tolist())

    def _any(self, pod: PodView, asked: GpuRequest, row: int) -> tuple[int, ...]:
        """Choose random GPUs with enough left."""
        cards = np.flatnonzero(self.table.left[row] >= asked.milli).tolist()
        return tuple(cards.pop(self.handle.random.randrange(len(cards))) for _ in range(min(asked.count, len(cards))))


def _annotated(pod: Pod, cards: str) -> Pod:
    """Return the pod without its node, as the API has it, with the annotation."""
    meta = msgspec.structs.replace(pod.metadata, annotations={**(pod.metadata.annotations or {}), INDEX: cards})
    return msgspec.structs.replace(pod, metadata=meta, spec=msgspec.structs.replace(pod.spec, node_name=""))
