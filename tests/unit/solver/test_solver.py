"""A cluster that is asked, and worlds in which it is changed."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched import Cluster as PublicCluster
from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod, codec
from kubesched.kube.api.meta import OwnerReference
from kubesched.scheduler.framework import Plugin, Reason, Rejections
from kubesched.solver import AsyncCluster, BadObject, Cluster, NodeTemplate, UnknownObject, WorldError
from kubesched.testing import even, node, pod, taint
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import Policy
from kubesched.tools.why.story import story_of_pod


def three_nodes(*more: Any, **how: Any) -> Cluster:
    return Cluster.from_objects([*(node(f"n{i}", cpu="4") for i in range(3)), *more], at=5.0, **how)


def asking(name: str, cpu: str = "3", **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, **more)


# Where does it fit


def test_fits_says_which_nodes_pass_with_which_scores_and_why_others_do_not() -> None:
    cluster = three_nodes(asking("there", on="n0"), node("gpu", taints=[taint("gpu")]))
    answer = cluster.fits(asking("web"))
    assert (answer.n_feasible, answer.n_nodes, answer.node in ("n1", "n2"), bool(answer)) == (2, 4, True, True)
    assert answer.nodes is not None
    full, free, tainted = (answer.nodes.of(name) for name in ("n0", "n1", "gpu"))
    assert (full.plugin, full.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))
    assert (tainted.plugin, tainted.reasons) == ("TaintToleration", ("node(s) had untolerated taint(s)",))
    assert free.fits and free.total == sum(free.scores.values())
    assert answer.as_dict()["nodes"][0] == {
        "node": "n0",
        "fits": False,
        "plugin": "NodeResourcesFit",
        "reasons": ["Insufficient cpu"],
    }
    assert [each.node for each in answer.nodes[1:3]] == ["n1", "n2"]


def test_the_brief_answer_is_the_whole_one_without_the_nodes() -> None:
    cluster = three_nodes(asking("there", on="n0"))
    for _ in range(3):  # computed, then cached
        for asked in (asking("web"), asking("large", "9")):
            whole, brief = cluster.fits(asked), cluster.fits(asked, nodes=False)
            assert brief.nodes is None
            told = whole.as_dict()
            del told["nodes"]
            assert brief.as_dict() == told
    assert repr(cluster.fits(asking("large", "9"))) == (
        "<default/large fits nowhere: 0/3 nodes are available: 3 Insufficient cpu. (0 of 3 nodes)>"
    )


def test_pods_and_nodes_may_be_mappings_or_names() -> None:
    raw_node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "2", "pods": "10"}},
    }
    raw_pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    cluster = Cluster.from_objects([raw_node, asking("waits", "1"), asking("runs", "1", on="n")])
    assert cluster.fits(raw_pod).node == cluster.fits("waits").node == cluster.fits("default/runs").node == "n"
    assert [each.name for each in cluster.pending()] == ["waits"]


def test_a_gated_pod_fits_nowhere_and_why_is_the_document_of_the_command() -> None:
    cluster = three_nodes(asking("waits", "9"))
    assert cluster.fits(pod("gated", gates=["later"])).message == "waiting for scheduling gates: [later]"
    document = cluster.why("waits", preempt=True)
    assert (document["state"], document["feasibleCount"], document["preemption"]["helps"]) == ("pending", 0, False)
    assert cluster.why(asking("new"))["feasibleCount"] == 3
    captured, waits = Captured(5.0, [*(node(f"n{i}", cpu="4") for i in range(3)), asking("waits", "9")]), asking("waits", "9")
    assert story_of_pod(captured, Policy.read(None, (), ()), waits, 5) == document


def test_plugins_profiles_and_configuration_decide_as_in_run() -> None:
    class Picky(Plugin):
        def filter(self, pod: Any, nodes: Any, state: Any) -> Rejections:
            return Rejections.where(nodes.codes("kubernetes.io/hostname") != nodes.codes("kubernetes.io/hostname")[0], LATER)

    LATER = Reason("not the first", resolvable=False)
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- {schedulerName: default-scheduler}
- {schedulerName: picky, plugins: {filter: {enabled: [{name: Picky}]}}}
"""
    cluster = three_nodes(configuration=text, plugins=[Picky])
    assert cluster.fits(asking("a")).n_feasible == 3
    answer = cluster.fits(asking("b", scheduler="picky"))
    assert answer.node == "n0" and answer.nodes is not None and answer.nodes.of("n1").reasons == ("not the first",)
    told = cluster.place([asking("a"), asking("b", scheduler="picky"), asking("c", scheduler="nobody")])
    assert told.of("b").node == "n0" and told.explain("c") == ("default/c waits: for a scheduler that is not configured here")


# What if


def test_a_world_is_changed_and_asked_and_leaves_nothing() -> None:
    cluster = three_nodes(asking("there", on="n0"))
    with cluster.what_if() as world:
        assert world.add_nodes(node("big", cpu="16"), 2) == ["big-0", "big-1"]
        told = world.place([asking(f"w{i}") for i in range(14)])
        assert (len(told.placed), told.nodes_needed, told.new_nodes) == (12, 2, ("big-0", "big-1"))
        assert told.nodes == {"big-0": 5, "big-1": 5, "n1": 1, "n2": 1}
        assert told.explain("w13") == "default/w13 waits: 0/5 nodes are available: 5 Insufficient cpu."
        assert told.as_dict()["summary"] == {"pods": 14, "placed": 12, "pending": 2, "victims": 0, "nodesNeeded": 2}
        world.delete("w3")
        assert len(world.place([asking("later")]).placed) == 1
    assert cluster.fits(asking("a")).n_nodes == 3 and cluster.fits(asking("a")).n_feasible == 2
    assert repr(told) == "<12 placed, 2 unplaced, 2 new nodes needed>"


def test_drained_pods_go_elsewhere_in_the_order_of_their_priority_and_wait_for_room() -> None:
    owner = OwnerReference(kind="DaemonSet", name="agent", uid="u", controller=True)
    agent = asking("agent", "100m", on="n0")
    agent = replace(agent, metadata=replace(agent.metadata, owner_references=(owner,)))
    cluster = three_nodes(asking("low", on="n0"), asking("there", on="n1"), agent)
    with cluster.what_if() as world:
        assert world.drain("n0") == ["default/low"]
        told = world.place([asking("high", priority=10)])
        assert told.of("high").node == "n2" and told.of("low").why.endswith("1 node(s) were unschedulable, 2 Insufficient cpu.")
        with world.what_if() as inner:
            inner.add_nodes(node("new"))
            assert inner.place().nodes == {"new-0": 1}
        world.cordon("n0", on=False)
        assert world.place().nodes == {"n0": 1}
        assert world.place().pods == ()


def test_a_node_that_is_removed_takes_its_pods_along() -> None:
    cluster = three_nodes(asking("there", on="n0"))
    with cluster.what_if() as world:
        assert world.remove_node("n0") == ["default/there"]
        assert world.fits(asking("web")).n_nodes == 2
        with pytest.raises(UnknownObject, match="pod default/there: there is no such pod"):
            world.delete("there")
    assert cluster.fits(asking("web")).n_nodes == 3 and cluster.find("default/there") is not None


def test_with_preemption_victims_leave_and_are_listed() -> None:
    cluster = three_nodes(*(asking(f"low{i}", on=f"n{i}", priority=i) for i in range(3)))
    with cluster.what_if() as world:
        assert (
            world.place([asking("vip", priority=10)]).unplaced[0].why.startswith("0/3 nodes are available: 3 Insufficient cpu.")
        )
        told = world.place([asking("vip", priority=10), asking("vip2", priority=10)], preempt=True)
        assert [each.as_dict() for each in told.victims] == [
            {"namespace": "default", "name": f"low{i}", "node": f"n{i}", "priority": i, "by": f"default/vip{'2' * i}"}
            for i in range(2)
        ]
        assert told.nodes == {"n0": 1, "n1": 1}
    assert cluster.find("default/low0") is not None


def test_a_pod_that_waits_for_another_of_the_same_question_is_tried_again() -> None:
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    follower = asking("follower", "1", priority=5, affinity=affinity)
    told = three_nodes().place([follower, asking("db", "1", labels={"app": "db"})])
    assert told.of("follower").node == told.of("db").node != ""


GANG = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "gang", "namespace": "default", "uid": "g", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}
GANG_GATES = ("GenericWorkload=true", "GangScheduling=true")


def member(name: str) -> dict[str, Any]:
    raw = codec.to_dict(asking(name))
    raw["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    return raw


@pytest.mark.parametrize(("n_members", "n_placed"), [(2, 0), (3, 3), (4, 0)], ids=["too few", "fits", "too large"])
def test_a_gang_is_placed_whole_or_not_at_all(n_members: int, n_placed: int) -> None:
    gang = dict(GANG, spec={"schedulingPolicy": {"gang": {"minCount": max(n_members, 3)}}})
    cluster = three_nodes(gang, feature_gates=GANG_GATES)
    told = cluster.place([member(f"m{i}") for i in range(n_members)])
    assert len(told.placed) == n_placed
    assert all(pod.why for pod in told.unplaced)


def test_quotas_keep_pods_out() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default", "uid": "q"},
        "spec": {"hard": {"requests.cpu": "4"}},
        "status": {"hard": {"requests.cpu": "4"}, "used": {"requests.cpu": "0"}},
    }
    told = three_nodes(quota).place([asking("a"), asking("b")])
    assert told.of("a").node and "exceeded quota: small" in told.of("b").why


def test_devices_that_a_placed_pod_holds_are_not_free_until_the_world_closes() -> None:
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "uid": "s"},
        "spec": {
            "driver": "gpu.test",
            "nodeName": "n1",
            "pool": {"name": "n1", "resourceSliceCount": 1, "generation": 1},
            "devices": [{"name": "d0"}],
        },
    }
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claims = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        }
        for name in ("c0", "c1")
    ]
    cluster = three_nodes(slice_, device_class, *claims)
    pods = []
    for i in range(2):
        raw = codec.to_dict(asking(f"g{i}", "1"))
        raw["spec"]["resourceClaims"] = [{"name": "r", "resourceClaimName": f"c{i}"}]
        pods.append(raw)
    for _ in range(2):
        with cluster.what_if() as world:
            told = world.place(pods)
            assert told.of("g0").node == "n1" and "cannot allocate all claims" in told.of("g1").why
            world.delete("g0")
            assert world.place(pods[1:]).nodes == {"n1": 1}


# Rules of worlds


def test_only_the_innermost_open_world_may_be_asked_or_changed() -> None:
    cluster = three_nodes()
    unopened = cluster.what_if()
    with pytest.raises(WorldError, match="closed"):
        unopened.place([])
    with cluster.what_if() as outer:
        for ask in (lambda: cluster.fits(asking("a")), lambda: cluster.place([]), lambda: cluster.what_if().__enter__()):
            with pytest.raises(WorldError, match="open"):
                ask()
        with outer.what_if():
            for change in (lambda: outer.fits(asking("a")), lambda: outer.cordon("n0"), outer.close):
                with pytest.raises(WorldError, match="another world open inside"):
                    change()
        outer.cordon("n0")
    with pytest.raises(WorldError, match="closed"):
        outer.fits(asking("a"))
    outer.close()  # again: it stays closed
    assert cluster.fits(asking("a")).n_feasible == 3


def test_changes_wait_while_a_world_is_open() -> None:
    cluster = three_nodes()
    before = cluster.version
    with cluster.what_if() as world:
        cluster.put(node("n3"))
        with world.what_if() as inner:
            cluster.apply(None, asking("new", on="n0"))
            assert inner.fits(asking("a")).n_nodes == 3
        assert world.fits(asking("a")).n_feasible == 3 and cluster.version == before
    assert (cluster.fits(asking("a")).n_nodes, cluster.fits(asking("a")).n_feasible) == (4, 3)
    assert cluster.version == before + 2 == cluster.changed(before, 0)
    cluster.remove(node("n3"), asking("new", on="n0"))
    assert cluster.fits(asking("a")).n_feasible == 3


def test_another_thread_waits_until_a_world_is_closed() -> None:
    cluster, seen = three_nodes(), []
    thread = threading.Thread(target=lambda: seen.append(cluster.fits(asking("a")).n_feasible))
    with cluster.what_if() as world:
        world.cordon("n0")
        thread.start()
        time.sleep(0.02)
        assert seen == []
    thread.join()
    assert seen == [3]


def test_answers_are_plain_values() -> None:
    cluster = three_nodes()
    template = NodeTemplate(node("big", cpu="16"), price=1.5)
    answers = [
        cluster.fits(asking("a")),
        cluster.place([asking("a"), asking("b", "9")]),
        cluster.capacity(asking("a")),
        cluster.cheapest_nodes([asking("b", "9")], [template]),
        template,
    ]
    for answer in answers:
        copy = pickle.loads(pickle.dumps(answer))
        assert repr(copy) == repr(answer)
        assert not hasattr(answer, "as_dict") or copy.as_dict() == answer.as_dict()


def test_answers_are_arrow_tables_where_asked() -> None:
    pytest.importorskip("pyarrow")
    cluster = three_nodes(asking("there", on="n0"))
    table = cluster.fits(asking("a"))
    assert table.nodes is not None and table.nodes.to_arrow().column("reasons").to_pylist() == ["Insufficient cpu", "", ""]
    assert cluster.place([asking("b", "9")]).to_arrow().column("node").to_pylist() == [None]


# How many more, and which nodes


def test_capacity_counts_copies_and_says_what_stops_the_next() -> None:
    cluster = three_nodes(asking("there", on="n0"))
    room = cluster.capacity(asking("a", "1"))
    assert (room.count, room.nodes, room.is_limited) == (9, {"n0": 1, "n1": 4, "n2": 4}, False)
    assert room.message == "0/3 nodes are available: 3 Insufficient cpu."
    spread = asking("s", "1", labels={"app": "s"}, spread=[even({"app": "s"}, "kubernetes.io/hostname")])
    assert cluster.capacity(spread).nodes == {"n0": 1, "n1": 2, "n2": 2}
    assert (cluster.capacity(asking("a", "1"), limit=2).count, cluster.capacity(asking("a", "1"), limit=2).is_limited) == (
        2,
        True,
    )
    assert cluster.capacity("there").nodes == {"n1": 1, "n2": 1}
    with cluster.what_if() as world:
        world.place([asking("x")])
        assert world.capacity(asking("a", "1")).count == 6


def test_cheapest_nodes_use_what_is_there_then_the_best_price() -> None:
    cluster = three_nodes()
    templates = [NodeTemplate(node("small"), 1.0), NodeTemplate(node("big", cpu="16"), 3.0, max=1, name="large")]
    found = cluster.cheapest_nodes([*(asking(f"w{i}") for i in range(9)), asking("huge", "99")], templates)
    assert (found.counts, found.price, found.unplaced) == ({"large": 1, "small": 1}, 4.0, ("default/huge",))
    assert found.as_dict()["newNodes"][0]["name"] == "large-0"
    with cluster.what_if() as world:
        world.drain("n0")
        assert world.cheapest_nodes([], templates).nodes == ()
    assert cluster.fits(asking("a")).n_nodes == 3


# What cannot be used

NO_OFFER = node("bare")
NO_OFFER = replace(NO_OFFER, status=replace(NO_OFFER.status, allocatable={}))
WRONG: list[tuple[Any, str]] = [
    (lambda w: w.add_nodes(NO_OFFER), "node bare: status.allocatable is missing"),
    (lambda w: w.add_nodes(node("x"), -1), "node x: count: -1 is not between 0 and 100000"),
    (lambda w: w.add_nodes(asking("p")), "Pod p: kind: Node is expected, not Pod"),
    (lambda w: w.drain("gone"), "node gone: there is no such node"),
    (lambda w: w.cordon("gone"), "node gone: there is no such node"),
    (lambda w: w.remove_node("gone"), "node gone: there is no such node"),
    (lambda w: w.delete("gone"), "pod default/gone: there is no such pod"),
    (lambda w: w.delete("waits"), "pod default/waits: it is on no node"),
    (lambda w: w.place(["gone"]), "pod gone: there is no pending pod of this name"),
    (lambda w: w.place([asking("a"), asking("a")]), "pod default/a: it is given twice"),
    (lambda w: w.place(asking("a")), "place: expected a list of pods, found a single one"),
    (lambda w: w.place("a"), "place: expected a list of pods, found a single one"),
    (lambda w: w.place([asking("there")]), "pod default/there: it is there already, on node n0"),
    (lambda w: w.place(asking(f"p{i}") for i in range(200_002)), "place: there are more than 200000 pods"),
    (lambda w: w.add([asking("a")]), "pod default/a: spec.nodeName is empty; place it"),
    (lambda w: w.fits("gone"), "pod gone: there is no such pod"),
    (lambda w: w.why("gone"), "pod gone: there is no such pod"),
    (lambda w: w.fits(asking("a", scheduler="x")), "pod default/a: spec.schedulerName: 'x' is none of default-scheduler"),
    (lambda w: w.fits({"metadata": {"name": "a"}, "spec": {"containerz": []}}), "pod a: unknown field spec.containerz"),
    (lambda w: w.fits({"metadata": {"name": "a"}}), "pod a: spec.containers is empty"),
    (lambda w: w.fits({"spec": {"containers": [{"name": "c"}]}}), "pod: metadata.name is missing"),
    (lambda w: w.fits(7), "an object is a struct or a mapping, not int"),
    (lambda w: w.capacity(asking("a"), limit=0), "capacity: limit: 0 is not 1 or more"),
    (lambda w: w.cheapest_nodes([], [NodeTemplate(node("x"), price=-1)]), "template x: price: -1 is not 0 or more"),
    (lambda w: w.cheapest_nodes([], [NodeTemplate(node("x"))] * 2), "template x: name: 2 templates have it"),
]


@pytest.mark.parametrize(("ask", "text"), WRONG, ids=[text for _, text in WRONG])
def test_what_cannot_be_used_is_one_line_and_changes_nothing(ask: Any, text: str) -> None:
    cluster = three_nodes(asking("there", on="n0"), asking("waits"))
    with cluster.what_if() as world:
        with pytest.raises(SchedulerError) as raised:
            ask(world)
        assert str(raised.value) == text
        assert world.fits(asking("a")).n_feasible == 2
    assert cluster.fits(asking("a")).n_feasible == 2


def test_a_plugin_that_breaks_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Plugin):
        def reserve(self, pod: Any, node_name: str, state: Any) -> Any:
            raise RuntimeError("out of order")

    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    text += "profiles: [{plugins: {reserve: {enabled: [{name: Broken}]}}}]"
    cluster = three_nodes(configuration=text, plugins=[Broken])
    told = cluster.place([asking("a")])
    assert "out of order" in told.of("a").why
    assert cluster.fits(asking("a")).n_feasible == 3 and cluster.engine.store.n_pods == 0


# Reading and asking otherwise


def test_a_snapshot_file_is_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\nstatus: {allocatable: {cpu: '2', pods: '9'}}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n"
    )
    cluster = PublicCluster.from_snapshot(file)
    assert cluster.fits(asking("a", "1")).node == "n0"
    assert [each.name for each in cluster.pending()] == ["p"]


def test_an_asyncio_program_asks_without_being_blocked() -> None:
    async def program() -> None:
        async with AsyncCluster(three_nodes()) as cluster:
            order: list[str] = []

            async def ask() -> None:
                order.append(f"{(await cluster.fits(asking('a'))).n_feasible} fit")

            async with cluster.what_if() as world:
                asked = asyncio.create_task(ask())
                await world.cordon("n0")
                assert (await world.fits(asking("a"))).n_feasible == 2
                async with world.what_if() as inner:
                    await inner.drain("n1")
                    assert (await inner.place([asking("b")])).nodes == {"n2": 1}
                await asyncio.sleep(0)
                order.append("world closed")
            await asked
            assert order == ["world closed", "3 fit"]
            assert (await cluster.capacity(asking("a"))).count == 3
            with pytest.raises(BadObject):
                await cluster.fits({})

    asyncio.run(program())


def test_a_question_that_is_cancelled_leaves_no_world_open() -> None:
    async def program() -> None:
        asked = AsyncCluster(three_nodes())

        async def open_and_stay() -> None:
            async with asked.what_if() as world:
                await world.cordon("n0")
                await asyncio.sleep(60)

        for seconds in (0.0, 0.05):
            task = asyncio.create_task(open_and_stay())
            await asyncio.sleep(seconds)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert (await asked.fits(asking("a"))).n_feasible == 3
        await asked.close()

    asyncio.run(program())


def test_a_world_inside_a_running_loop_needs_no_thread() -> None:
    async def cell() -> int:
        return len(three_nodes().place([asking("a")]).placed)

    assert asyncio.run(cell()) == 1
