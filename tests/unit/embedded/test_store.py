"""The store: verbs with the API's meaning, without HTTP."""

import pytest

from kubesched import errors
from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.storage import event_ttl


def pod(name: str = "web", **spec: object) -> dict:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "img:1"}], **spec}}


def test_a_new_pod_has_identity_defaults_and_a_pending_status(store: ObjectStore) -> None:
    made = store.create("pods", pod())
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["metadata"]["generation"] == 1
    assert len(made["metadata"]["uid"]) == 36
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made["spec"]["priority"] == 0
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_the_same_seed_gives_the_same_names_and_uids() -> None:
    made = [
        ObjectStore(ManualClock(), seed=3).create("pods", {"metadata": {"generateName": "a-"}, "spec": pod()["spec"]})
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert made[0]["metadata"]["name"].startswith("a-")


@pytest.mark.parametrize(("n_taken", "is_found"), [(7, True), (8, False)])
def test_a_generated_name_with_a_namesake_is_generated_again_seven_times(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, n_taken: int, is_found: bool
) -> None:
    store.create("pods", pod("a-taken"))
    suffixes = iter(["taken"] * n_taken + ["fresh"])
    monkeypatch.setattr("kubesched.embedded.verbs.identity.suffix", lambda rng: next(suffixes))
    asked = {"metadata": {"generateName": "a-"}, "spec": pod()["spec"]}
    if is_found:
        assert store.create("pods", asked)["metadata"]["name"] == "a-fresh"
    else:
        with pytest.raises(errors.AlreadyExists, match="a-taken"):
            store.create("pods", asked)


def test_a_node_status_without_allocatable_offers_its_capacity(store: ObjectStore) -> None:
    store.create("nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}})
    new = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    assert store.update("nodes", new, subresource="status")["status"]["allocatable"] == {"cpu": "4"}
    patched = store.patch("nodes", "n", {"status": {"capacity": {"cpu": "8"}}}, subresource="status")["status"]
    assert patched == {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "4"}}


def test_without_priority_admission_a_pod_keeps_the_number_it_brings(store: ObjectStore) -> None:
    with pytest.raises(errors.Forbidden, match="must not be provided in pod spec"):
        store.create("pods", pod(priority=10))
    free = ObjectStore(ManualClock(), has_priority_admission=False)
    assert free.create("pods", pod(priority=10))["spec"]["priority"] == 10
    assert "priority" not in free.create("pods", pod("other"))["spec"]


def test_what_is_handed_in_is_copied(store: ObjectStore) -> None:
    mine = pod()
    store.create("pods", mine)
    mine["spec"]["containers"][0]["image"] = "other"
    assert store.get("pods", "web")["spec"]["containers"][0]["image"] == "img:1"
    assert "uid" not in mine["metadata"]


def test_an_update_that_changes_nothing_writes_nothing(store: ObjectStore) -> None:
    made = store.create("nodes", {"metadata": {"name": "n"}})
    before = store.resource_version
    assert store.update("nodes", made)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert store.resource_version == before


def test_events_live_an_hour() -> None:
    clock = ManualClock()
    store = ObjectStore(clock)
    event = {"involvedObject": {"namespace": "default"}, "reason": "r"}
    store.create("events", {"metadata": {"name": "old"}, **event})
    clock.advance(3601)
    store.create("events", {"metadata": {"name": "new"}, **event})
    assert [one["metadata"]["name"] for one in store.list("events").items] == ["new"]


def test_an_event_ends_at_the_next_write_of_anything() -> None:
    clock = ManualClock()
    store = ObjectStore(clock)
    store.create("events", {"metadata": {"name": "old"}, "involvedObject": {"namespace": "default"}, "reason": "r"})
    clock.advance(3601)
    store.create("configmaps", {"metadata": {"name": "c"}})
    assert store.list("events").items == []


def test_the_oldest_of_too_many_events_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_ttl, "MOST_EVENTS", 3)
    store = ObjectStore(ManualClock())
    for name in "abc":
        store.create("events", {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "reason": "r"})
    store.patch("events", "a", {"reason": "seen again"}, "default")
    store.delete("events", "c", "default")
    for name in "de":
        store.create("events", {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "reason": "r"})
    assert [one["metadata"]["name"] for one in store.list("events").items] == ["a", "d", "e"]


def test_a_collection_is_deleted_as_far_as_it_is_selected(store: ObjectStore) -> None:
    for number in range(4):
        store.create("configmaps", {"metadata": {"name": f"c{number}", "labels": {"even": str(number % 2 == 0)}}})
    deleted = store.delete_collection("configmaps", "default", label_selector="even=True")
    assert [one["metadata"]["name"] for one in deleted] == ["c0", "c2"]
    assert [one["metadata"]["name"] for one in store.list("configmaps").items] == ["c1", "c3"]


def test_what_nobody_serves_is_named(store: ObjectStore) -> None:
    with pytest.raises(errors.BadRequest, match='doesn\'t have a resource type "widgets"'):
        store.list("widgets")
