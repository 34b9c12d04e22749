"""The store: which calls a pod's state allows, what each leaves behind, and pods whose node is not there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from kubesched.kube.api.pod import Pod, PodStatus
from kubesched.scheduler.cluster import CPU, Store, StoreError
from kubesched.scheduler.cluster.changelog import Reader
from kubesched.testing import node, pod

WEB = pod("web", requests={"cpu": "500m"}, labels={"app": "web"})
BOUND = pod("web", requests={"cpu": "500m"}, labels={"app": "web"}, on="a")
UID = WEB.metadata.uid


def absent() -> Store:
    store = Store()
    store.put_node(node("a"))
    store.put_node(node("b"))
    return store


def assumed() -> Store:
    store = absent()
    store.assume(store.view(WEB), "a")
    return store


def confirmed() -> Store:
    store = absent()
    store.put_pod(BOUND)
    return store


def used(store: Store) -> dict[str, tuple[int, int]]:
    """Return for each node how much cpu its pods ask for and how many there are."""
    nodes = store.snapshot()
    return {name: (nodes.requested_at(CPU, row), int(nodes.pod_count[row])) for row, name in enumerate(nodes.names)}


def is_in(store: Store) -> str:
    if store.pod(UID) is None:
        return "absent"
    return "assumed" if store.is_assumed(UID) else "confirmed"


ON_A, NOWHERE, ON_B = {"a": (500, 1), "b": (0, 0)}, {"a": (0, 0), "b": (0, 0)}, {"a": (0, 0), "b": (500, 1)}

CALLS: list[tuple[str, Callable[[], Store], Callable[[Store], object], str, dict[str, tuple[int, int]]]] = [
    ("an absent pod can be assumed", absent, lambda s: s.assume(s.view(WEB), "a"), "assumed", ON_A),
    ("forgetting an absent pod does nothing", absent, lambda s: s.forget(UID), "absent", NOWHERE),
    ("an absent pod with a node is added", absent, lambda s: s.put_pod(BOUND), "confirmed", ON_A),
    ("an assumed pod can be forgotten", assumed, lambda s: s.forget(UID), "absent", NOWHERE),
    ("an assumed pod is confirmed", assumed, lambda s: s.put_pod(BOUND), "confirmed", ON_A),
    (
        "the API is right: a booking moves to the node that it names",
        assumed,
        lambda s: s.put_pod(pod("web", requests={"cpu": "500m"}, labels={"app": "web"}, on="b")),
        "confirmed",
        ON_B,
    ),
    ("an assumed pod can be removed", assumed, lambda s: s.remove_pod(UID), "absent", NOWHERE),
    ("a confirmed pod can be removed", confirmed, lambda s: s.remove_pod(UID), "absent", NOWHERE),
    ("a confirmed pod that did not change is counted once", confirmed, lambda s: s.put_pod(BOUND), "confirmed", ON_A),
    (
        "a confirmed pod that asks for more is counted anew",
        confirmed,
        lambda s: s.put_pod(pod("web", requests={"cpu": "2"}, on="a")),
        "confirmed",
        {"a": (2000, 1), "b": (0, 0)},
    ),
]


@pytest.mark.parametrize(("start", "call", "ends", "counted"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_calls_move_a_pod_between_its_states(
    start: Callable[[], Store], call: Callable[[Store], object], ends: str, counted: dict[str, tuple[int, int]]
) -> None:
    store = start()
    call(store)
    assert is_in(store) == ends
    assert used(store) == counted
    assert store.n_assumed == (ends == "assumed")


REFUSED: list[tuple[str, Callable[[], Store], Callable[[Store], object], str]] = [
    (
        "an assumed pod is not assumed again",
        assumed,
        lambda s: s.assume(s.view(WEB), "b"),
        f"pod {UID}(default/web) is in the cache, so can't be assumed",
    ),
    (
        "a confirmed pod is not assumed",
        confirmed,
        lambda s: s.assume(s.view(WEB), "b"),
        f"pod {UID}(default/web) is in the cache, so can't be assumed",
    ),
    (
        "a confirmed pod is not forgotten",
        confirmed,
        lambda s: s.forget(UID),
        f"pod {UID}(default/web) wasn't assumed so cannot be forgotten",
    ),
    (
        "an absent pod is not removed",
        absent,
        lambda s: s.remove_pod(UID),
        f"pod {UID} is not found in scheduler cache, so cannot be removed from it",
    ),
    ("an unknown node is not removed", absent, lambda s: s.remove_node("c"), "node c is not found"),
    ("a pod without a uid is not added", absent, lambda s: s.put_pod(_without_uid()), "pod default/web: metadata.uid is empty"),
    ("a pod without a node is not added", absent, lambda s: s.put_pod(WEB), "pod default/web: spec.nodeName is empty"),
]


def _without_uid() -> Pod:
    given = pod("web", on="a")
    return msgspec.structs.replace(given, metadata=msgspec.structs.replace(given.metadata, uid=""))


@pytest.mark.parametrize(("start", "call", "text"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_calls_that_do_not_fit_are_refused_and_change_nothing(
    start: Callable[[], Store], call: Callable[[Store], object], text: str
) -> None:
    store = start()
    state, counted = is_in(store), used(store)
    with pytest.raises(StoreError) as refused:
        call(store)
    assert str(refused.value) == text
    assert (is_in(store), used(store)) == (state, counted)


# Ghosts: pods whose node is not there


def test_a_pod_that_comes_before_its_node_is_counted_when_the_node_comes() -> None:
    store = absent()
    store.put_pod(pod("early", requests={"cpu": "1"}, on="late"))
    assert "late" not in store.snapshot().names
    store.put_node(node("late"))
    assert used(store)["late"] == (1000, 1)


def test_pods_of_a_removed_node_wait_for_it() -> None:
    store = confirmed()
    store.remove_node("a")
    assert store.snapshot().names == ["b"]
    assert store.pod(UID) is not None
    assert not store.snapshot().pod_classes().any()
    store.put_node(node("a"))
    assert used(store) == ON_A


def test_a_ghost_is_forgotten_with_its_last_pod() -> None:
    store = confirmed()
    store.remove_node("a")
    store.remove_pod(UID)
    assert store.pods_on("a") == {}
    store.put_node(node("a"))
    assert used(store) == NOWHERE


def test_the_pods_of_a_node_stand_as_in_the_reference() -> None:
    """Who goes leaves its place to the last; who changes goes and comes back."""
    store = Store()
    store.put_node(node("a"))
    made = {name: pod(name, on="a") for name in "wxyz"}
    for each in made.values():
        store.put_pod(each)

    def order() -> str:
        return "".join(view.name for view in store.snapshot().pods_on(0))

    reader, ranks = Reader(store.journal), Reader(store.slots.reordered)
    store.put_pod(msgspec.structs.replace(made["x"], status=PodStatus(phase="Running")))
    assert order() == "wzyx"
    assert ranks.changed(store.slots.reordered) == [0], "whoever ranks pods is told"
    assert reader.changed(store.journal) == [], "and nobody else"
    store.put_pod(msgspec.structs.replace(made["x"], status=PodStatus(phase="Running", reason="Other")))
    assert order() == "wzyx" and ranks.changed(store.slots.reordered) == [], "it was the last"
    with store.without([view for view in store.pods() if view.name in "wz"]):
        assert sorted(order()) == ["x", "y"]
    assert order() == "wzyx"
    store.remove_pod(made["w"].metadata.uid)
    assert order() == "xzy"
    store.put_pod(pod("x", on="a", requests={"cpu": "1"}))
    assert order() == "yzx"


def test_a_pod_changes_while_its_node_is_away() -> None:
    store = confirmed()
    store.remove_node("a")
    store.put_pod(pod("web", requests={"cpu": "3"}, on="a"))
    store.put_node(node("a"))
    assert used(store)["a"] == (3000, 1)


def test_a_booking_may_outlive_its_node_and_still_be_taken_back() -> None:
    store = assumed()
    store.remove_node("a")
    store.forget(UID)
    store.put_node(node("a"))
    assert used(store) == NOWHERE


# Rows


def test_removing_a_node_moves_another_into_its_row_with_all_its_pods() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.put_node(node(name, labels={"disk": name}, images={f"image-{name}": 7}))
    store.put_pod(pod("on-c", requests={"cpu": "1"}, on="c", host_ports=(80,)))
    store.remove_node("a")
    nodes = store.snapshot()
    row = nodes.row("c")
    assert [nodes.name(row) for row in range(nodes.n)] == ["c", "b"]
    assert [view.name for view in nodes.pods_on(row)] == ["on-c"]
    assert nodes.requested_at(CPU, row) == 1000
    assert nodes.pod_rows()[next(iter(nodes.pods_on(row))).slot] == row
    label = nodes.label("disk")
    assert label is not None and label.values.values[nodes.codes("disk")[row]] == "c"
    image = nodes.image("image-c")
    assert image is not None and image.rows == {row}
    assert nodes.image("image-a") is None


def test_a_sidecar_that_names_a_containers_port_again_leaves_with_its_pod() -> None:
    twice = pod("twice", on="a", host_ports=(80, 80))
    store = absent()
    store.put_pod(twice)
    port = store.view(twice).template.ports[0]
    assert store.snapshot().port_conflicts([port]).tolist() == [True, False]
    store.remove_pod(twice.metadata.uid)
    assert not store.snapshot().port_conflicts([port]).any()


def test_of_two_pods_that_hold_a_port_the_last_frees_it() -> None:
    store = absent()
    for name in ("one", "two"):
        store.put_pod(pod(name, on="a", host_ports=(80,)))
    port = store.view(pod("x", host_ports=(80,))).template.ports[0]
    store.remove_pod("uid-default-one")
    assert store.snapshot().port_conflicts([port]).tolist() == [True, False]
    store.remove_pod("uid-default-two")
    assert not store.snapshot().port_conflicts([port]).any()


def test_an_image_has_the_size_of_its_first_holder_until_the_last_one_drops_it() -> None:
    store = Store()
    store.put_node(node("a", images={"app": 10}))
    store.put_node(node("b", images={"app": 20}))

    def size() -> int:
        known = store.snapshot().image("app")
        assert known is not None
        return known.size

    assert size() == 10
    store.put_node(node("a"))
    assert size() == 10
    store.put_node(node("b", images={"app": 30}))
    assert size() == 30, "a sole holder registers its image again"
    store.remove_node("b")
    assert store.snapshot().image("app") is None


def test_a_snapshot_cannot_be_written_to() -> None:
    store = confirmed()
    nodes = store.snapshot()
    for column in (nodes.requested(CPU), nodes.allocatable(CPU), nodes.pod_count, nodes.taint_set, nodes.pod_rows()):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_resource_that_nobody_has_named_reads_zero() -> None:
    store = confirmed()
    number = store.templates.resources.id("example.com/only-in-arguments")
    nodes = store.snapshot()
    assert nodes.requested(number).tolist() == nodes.allocatable(number).tolist() == [0, 0]
    assert nodes.requested_at(number, 0) == nodes.allocatable_at(number, 1) == 0


def test_some_rows_of_a_snapshot_read_as_they_do_among_all() -> None:
    store = confirmed()
    some = store.snapshot().take([1, 0])
    assert some.names == ["b", "a"]
    assert some.requested(CPU).tolist() == [0, 500]
    assert (some.row("a"), some.row("b"), some.row("c")) == (1, 0, -1)
    assert some.take([1]).names == ["a"]
    assert some.everything().names == ["a", "b"]
