"""Pods and nodes shaped as in the openb trace of Alibaba's GPU cluster of 2023, for `bench engine --kind gpu`.

In: numbers. Out: API objects. The tables hold the twelve most frequent shapes of pods, the largest pods, and the seven most
frequent shapes of nodes. Among many objects each shape has the share that it has in the trace. A GPU is 1000 units of
`alibabacloud.com/gpu-milli`, so pods can share one.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

from kubesched.contrib.gpu_table import MILLI, MODEL
from kubesched.kube.api import Node, Pod, Quantity, ResourceRequirements
from kubesched.tools.bench.builders import make_node, make_pod

_GOLDEN = 0.6180339887498949
"""The fractional parts of its multiples are spread evenly between 0 and 1, for any number of multiples."""


class _PodShape(NamedTuple):
    frequency: int
    """How many the trace has."""
    gpu_milli: int
    cpu_milli: int
    memory_mib: int


class _NodeShape(NamedTuple):
    frequency: int
    gpus: int
    cpus: int
    memory_gib: int
    model: str


PODS = (
    _PodShape(1047, 810, 3152, 5600),
    _PodShape(857, 1000, 11300, 49152),
    _PodShape(534, 1000, 11400, 48128),
    _PodShape(470, 1000, 3152, 5600),
    _PodShape(388, 470, 11908, 47104),
    _PodShape(364, 0, 12500, 57344),
    _PodShape(360, 470, 8000, 30517),
    _PodShape(284, 0, 32000, 49152),
    _PodShape(255, 1000, 18708, 64512),
    _PodShape(237, 650, 11908, 47104),
    _PodShape(195, 1000, 9810, 41560),
    _PodShape(163, 0, 8000, 30517),
    _PodShape(44, 8000, 88000, 327680),
    _PodShape(16, 2000, 16200, 66560),
    _PodShape(15, 4000, 32200, 132096),
)
NODES = (
    _NodeShape(549, 8, 96, 384, "G2"),
    _NodeShape(387, 2, 104, 512, "T4"),
    _NodeShape(107, 2, 16, 120, "P100"),
    _NodeShape(39, 8, 128, 768, "G3"),
    _NodeShape(28, 4, 32, 128, "V100M16"),
    _NodeShape(22, 2, 64, 256, "P100"),
    _NodeShape(21, 8, 96, 768, "V100M32"),
)


T = TypeVar("T", _PodShape, _NodeShape)


def _chosen(shapes: Sequence[T], i: int) -> T:
    n_before = list(accumulate(shape.frequency for shape in shapes))
    return shapes[bisect(n_before, i * _GOLDEN % 1.0 * n_before[-1])]


def node(i: int) -> Node:
    """Return node number i, in one of ten zones."""
    shape = _chosen(NODES, i)
    memory, gpus = f"{shape.memory_gib}Gi", str(1000 * shape.gpus)
    return make_node(i, {"cpu": str(shape.cpus), "memory": memory, "pods": "110", MILLI: gpus}, {MODEL: shape.model})


def pod(i: int) -> Pod:
    """Return pod number i."""
    shape = _chosen(PODS, i)
    amounts: dict[str, Quantity] = {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_mib}Mi"}
    if shape.gpu_milli:
        amounts[MILLI] = str(shape.gpu_milli)
    return make_pod(i, {"app": "training"}, ResourceRequirements(requests=amounts, limits=amounts))
