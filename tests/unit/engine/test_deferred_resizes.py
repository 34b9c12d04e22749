"""Running pods whose resize the kubelet put off: with the gate others are evicted beside them, and nobody is bound or told."""

from typing import Any

import msgspec
import pytest
from group_scene import Scene

from kubesched.api.node import NodePodPreemptionPolicy
from kubesched.api.pod import PodCondition
from kubesched.simulator.clock import run_virtually
from kubesched.testing import node, pod

GATE = "InPlacePodVerticalScalingSchedulerPreemption=true"
DEFERRED = PodCondition(type="PodResizePending", status="True", reason="Deferred")


def growing(cpu: str, conditions: Any = (DEFERRED,), **given: Any) -> Any:
    return pod("big", on="n1", priority=10, requests={"cpu": cpu}, conditions=conditions, **given)


def low(name: str, cpu: str = "1", on: str = "n1") -> Any:
    return pod(name, on=on, priority=1, requests={"cpu": cpu})


@pytest.mark.parametrize("is_on", [False, True])
def test_room_is_made_on_the_pods_own_node(is_on: bool) -> None:
    async def main() -> None:
        gates = GATE if is_on else ""
        scene = Scene(node("n1", cpu="4"), low("a"), low("b"), growing("2", ()), gates=gates, release=(1, 37))
        await scene.settle()
        assert scene.deleted == []
        scene.put(growing("3"))
        await scene.settle(5)
        assert len(scene.deleted) == (1 if is_on else 0), "one of them is enough"
        assert scene.bound == {} and scene.statuses.get("big") is None
        assert not [note for name, reason, note in scene.events if name == "big"]
        assert scene.place("big") == ("unschedulable" if is_on else "")
        scene.put(growing("3", ()))
        await scene.settle()
        assert scene.place("big") == "", "the kubelet has done it"

    run_virtually(main())


def test_a_node_may_want_no_evictions_for_it() -> None:
    async def main() -> None:
        plain = node("n1", cpu="4")
        policy = NodePodPreemptionPolicy(disable_resize_preemption=("autoscaler",))
        closed = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, pod_preemption_policy=policy))
        scene = Scene(closed, low("a", "2"), growing("3"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.deleted == []
        scene.put(plain)
        await scene.settle(5)
        assert scene.deleted == ["a"]

    run_virtually(main())


def test_other_nodes_and_other_filters_do_not_matter() -> None:
    async def main() -> None:
        cordoned = node("n1", cpu="4", cordoned=True)
        scene = Scene(cordoned, node("n2", cpu="8"), low("a", "2"), growing("3"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.deleted == ["a"]
        assert scene.bound == {}

    run_virtually(main())


def test_a_pod_that_goes_leaves_the_queue() -> None:
    async def main() -> None:
        big = growing("3")
        scene = Scene(node("n1", cpu="2"), big, gates=GATE, release=(1, 37))
        await scene.settle()
        assert scene.place("big") == "unschedulable"
        scene.drop(big)
        await scene.settle()
        assert scene.place("big") == "" and scene.engine.intake.n_pending == 0

    run_virtually(main())
