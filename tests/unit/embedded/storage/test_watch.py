"""Watches: order, selection, the past, and readers that do not read."""

import pytest

from kubesched import errors
from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.storage import watch


def node(name: str, **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}}


def seen(watch: object) -> list[tuple[str, str]]:
    return [(event.type, event.obj["metadata"]["name"]) for event in watch.drain()]  # type: ignore[attr-defined]


def test_a_watch_begins_with_what_is_there(store: ObjectStore) -> None:
    store.create("nodes", node("a"))
    watch = store.watch("nodes")
    store.create("nodes", node("b"))
    store.delete("nodes", "a")
    assert seen(watch) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


def test_a_watch_from_a_version_sees_what_came_after(store: ObjectStore) -> None:
    version = store.create("nodes", node("a"))["metadata"]["resourceVersion"]
    store.create("nodes", node("b"))
    assert seen(store.watch("nodes", resource_version=version)) == [("ADDED", "b")]


def test_an_update_may_enter_or_leave_a_selection(store: ObjectStore) -> None:
    store.create("nodes", node("a", zone="x"))
    watch = store.watch("nodes", label_selector="zone=x")
    assert seen(watch) == [("ADDED", "a")]
    moved = store.patch("nodes", "a", {"metadata": {"labels": {"zone": "y"}}})
    (event,) = watch.drain()
    assert event.type == "DELETED"
    assert event.obj["metadata"]["labels"] == {"zone": "x"}, "a departure shows the object as it was"
    assert event.obj["metadata"]["resourceVersion"] == moved["metadata"]["resourceVersion"]
    store.patch("nodes", "a", {"metadata": {"labels": {"zone": "x"}}})
    assert seen(watch) == [("ADDED", "a")]


def test_a_pod_that_ends_leaves_the_scheduler_s_watch(store: ObjectStore) -> None:
    store.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    watch = store.watch("pods", field_selector="status.phase!=Succeeded,status.phase!=Failed")
    store.patch("pods", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert seen(watch) == [("ADDED", "p"), ("DELETED", "p")]


def test_the_past_is_bounded_in_bytes(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "HISTORY_BYTES", 10_000)
    versions = [store.create("configmaps", {"metadata": {"name": f"c{i}"}, "data": {"a": "x" * 4_000}}) for i in range(4)]
    resume = [one["metadata"]["resourceVersion"] for one in versions]
    with pytest.raises(errors.Gone):
        store.watch("configmaps", resource_version=resume[0])
    assert seen(store.watch("configmaps", resource_version=resume[1])) == [("ADDED", "c2"), ("ADDED", "c3")]


def test_the_past_is_told_as_it_happened(store: ObjectStore) -> None:
    first = store.create("nodes", node("a", zone="x"))["metadata"]["resourceVersion"]
    for zone in ("y", "x"):
        store.patch("nodes", "a", {"metadata": {"labels": {"zone": zone}}})
    store.delete("nodes", "a")
    told = [(event.type, event.obj["metadata"]["labels"]) for event in store.watch("nodes", resource_version=first).drain()]
    assert told == [("MODIFIED", {"zone": "y"}), ("MODIFIED", {"zone": "x"}), ("DELETED", {"zone": "x"})]
    selected = store.watch("nodes", label_selector="zone=x", resource_version=first)
    assert [event.type for event in selected.drain()] == ["DELETED", "ADDED", "DELETED"]


def test_a_forgotten_past_is_gone(store: ObjectStore) -> None:
    version = store.create("nodes", node("a"))["metadata"]["resourceVersion"]
    store.create("nodes", node("b"))
    store.compact()
    with pytest.raises(errors.Gone, match="too old resource version"):
        store.watch("nodes", resource_version=version)
    assert seen(store.watch("nodes", resource_version=store.resource_version)) == []


def test_the_past_is_bounded() -> None:
    store = ObjectStore(ManualClock(), history_limit=3)
    version = store.create("nodes", node("a"))["metadata"]["resourceVersion"]
    for number in range(5):
        store.patch("nodes", "a", {"metadata": {"labels": {"n": str(number)}}})
    with pytest.raises(errors.Gone):
        store.watch("nodes", resource_version=version)


def test_a_reader_that_does_not_read_is_closed_and_holds_nobody_back(store: ObjectStore) -> None:
    slow = store.watch("nodes", buffer_limit=2)
    quick = store.watch("nodes")
    for number in range(4):
        store.create("nodes", node(f"n{number}"))
    assert slow.closed
    assert slow.drain() == []
    assert len(quick.drain()) == 4


def test_a_listener_that_writes_does_not_disturb_the_order(store: ObjectStore) -> None:
    def echo(change: object) -> None:
        name = change.new.obj["metadata"]["name"]  # type: ignore[attr-defined]
        if not name.endswith("-echo"):
            store.create("nodes", node(f"{name}-echo"))

    watch = store.watch("nodes")
    store.listen("nodes", echo)
    late = store.watch("nodes")
    store.create("nodes", node("a"))
    store.create("nodes", node("b"))
    expected = [("ADDED", "a"), ("ADDED", "a-echo"), ("ADDED", "b"), ("ADDED", "b-echo")]
    assert seen(watch) == expected
    assert seen(late) == expected


async def test_a_watch_can_be_iterated(store: ObjectStore) -> None:
    watch = store.watch("nodes")
    store.create("nodes", node("a"))
    async for event in watch:
        assert event.obj["metadata"]["name"] == "a"
        watch.close()


PAGES = [1, 2, 3, 7, 100]


@pytest.mark.parametrize("limit", PAGES)
def test_pages_show_one_version_although_the_world_moves(store: ObjectStore, limit: int) -> None:
    for number in range(7):
        store.create("nodes", node(f"n{number}"))
    page = store.list("nodes", limit=limit)
    names = [one["metadata"]["name"] for one in page.items]
    while page.continue_token:
        store.delete("nodes", names[0]) if names[0] in [n["metadata"]["name"] for n in store.list("nodes").items] else None
        store.create("nodes", {"metadata": {"generateName": "new-"}})
        page = store.list("nodes", limit=limit, continue_token=page.continue_token)
        names += [one["metadata"]["name"] for one in page.items]
    assert names == [f"n{number}" for number in range(7)]


def test_an_outdated_page_offers_to_go_on_inconsistently(store: ObjectStore) -> None:
    for number in range(4):
        store.create("nodes", node(f"n{number}"))
    page = store.list("nodes", limit=2)
    store.create("nodes", node("n9"))
    store.compact()
    with pytest.raises(errors.Gone, match="The provided continue parameter is too old") as found:
        store.list("nodes", limit=2, continue_token=page.continue_token)
    rest = store.list("nodes", continue_token=found.value.details["continue"])
    assert [one["metadata"]["name"] for one in rest.items] == ["n2", "n3", "n9"]


def test_a_kubelet_sees_the_pods_of_its_node_and_no_others(store: ObjectStore) -> None:
    mine = store.watch("pods", field_selector="spec.nodeName=mine")
    other = store.watch("pods", field_selector="spec.nodeName=other")
    waiting = store.watch("pods", field_selector="spec.nodeName=")
    for name in ("p", "q"):
        store.create("pods", {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    store.bind("default", "p", "mine")
    assert seen(mine) == [("ADDED", "p")]
    assert seen(other) == []
    assert seen(waiting) == [("ADDED", "p"), ("ADDED", "q"), ("DELETED", "p")]
    mine.close()
    store.bind("default", "q", "mine")
    assert seen(mine) == []
