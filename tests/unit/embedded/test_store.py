"""The store: verbs with the API's meaning, without HTTP."""

import pytest

from kubesched import errors
from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.storage import event_ttl
from kubesched.embedded.verbs.patching import JSON_PATCH, MERGE_PATCH


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(ManualClock(), seed=7)


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


def test_creating_twice_is_refused(store: ObjectStore) -> None:
    store.create("pods", pod())
    with pytest.raises(errors.AlreadyExists, match='pods "web" already exists'):
        store.create("pods", pod())


def test_a_namespace_that_is_not_there_is_named(store: ObjectStore) -> None:
    with pytest.raises(errors.NotFound, match='namespaces "nowhere" not found'):
        store.create("pods", pod(), "nowhere")


def test_an_update_of_an_old_version_conflicts(store: ObjectStore) -> None:
    first = store.create("nodes", {"metadata": {"name": "n"}})
    store.patch("nodes", "n", {"spec": {"unschedulable": True}})
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        store.update("nodes", {**first, "spec": {}})


def test_an_update_that_changes_nothing_writes_nothing(store: ObjectStore) -> None:
    made = store.create("nodes", {"metadata": {"name": "n"}})
    before = store.resource_version
    assert store.update("nodes", made)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert store.resource_version == before


def test_status_and_spec_are_written_apart(store: ObjectStore) -> None:
    made = store.create("pods", pod())
    both = {**made, "status": {"phase": "Running"}, "spec": {**made["spec"], "activeDeadlineSeconds": 5}}
    assert store.update("pods", both)["status"]["phase"] == "Pending"
    now = store.get("pods", "web")
    both = {**now, "status": {"phase": "Running"}, "spec": {**now["spec"], "activeDeadlineSeconds": 9}}
    after = store.update("pods", both, subresource="status")
    assert after["status"]["phase"] == "Running"
    assert after["spec"]["activeDeadlineSeconds"] == 5


def test_generation_counts_changes_of_the_spec_only(store: ObjectStore) -> None:
    store.create("pods", pod())
    store.patch("pods", "web", {"metadata": {"labels": {"a": "b"}}})
    assert store.get("pods", "web")["metadata"]["generation"] == 1
    store.patch("pods", "web", {"spec": {"activeDeadlineSeconds": 5}})
    assert store.get("pods", "web")["metadata"]["generation"] == 2


PATCHES = [
    ("merge patch", MERGE_PATCH, {"metadata": {"labels": {"a": "b", "c": None}}}),
    ("JSON patch", JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
]


@pytest.mark.parametrize(("patch_type", "body"), [row[1:] for row in PATCHES], ids=[row[0] for row in PATCHES])
def test_patches_change_the_object(store: ObjectStore, patch_type: str, body: object) -> None:
    store.create("pods", pod())
    after = store.patch("pods", "web", body, patch_type=patch_type)
    assert after["metadata"]["labels"] == {"a": "b"}


def test_a_strategic_patch_merges_conditions_by_type(store: ObjectStore) -> None:
    store.create("pods", pod(schedulingGates=[{"name": "g"}]))
    body = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    after = store.patch("pods", "web", body, subresource="status")
    assert [one["type"] for one in after["status"]["conditions"]] == ["Ready", "PodScheduled"]


def test_binding_sets_the_node_and_clears_the_nomination(store: ObjectStore) -> None:
    store.create("nodes", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z1"}}})
    store.create("pods", pod())
    store.patch("pods", "web", {"status": {"nominatedNodeName": "n"}}, subresource="status")
    bound = store.bind("default", "web", "n")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z1"}
    assert "nominatedNodeName" not in bound["status"]
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]


def test_binding_refusals_say_what_the_reference_says(store: ObjectStore) -> None:
    store.create("pods", pod())
    with pytest.raises(errors.Conflict, match="Precondition failed: UID in precondition: other"):
        store.bind("default", "web", "n", uid="other")
    store.bind("default", "web", "n")
    with pytest.raises(errors.Conflict, match='pod web is already assigned to node "n"') as found:
        store.bind("default", "web", "m")
    assert found.value.message.startswith('Operation cannot be fulfilled on pods/binding "web": ')
    store.delete("pods", "web")
    with pytest.raises(errors.Conflict, match="pod web is being deleted, cannot be assigned to a host"):
        store.bind("default", "web", "m")
    store.create("pods", pod("gated", schedulingGates=[{"name": "g"}]))
    with pytest.raises(errors.Conflict, match=r"pod gated has non-empty \.spec\.schedulingGates"):
        store.bind("default", "gated", "n")
    with pytest.raises(errors.NotFound, match='pods "gone" not found'):
        store.bind("default", "gone", "n")


def test_a_pod_on_a_node_gets_its_grace_and_one_without_goes_at_once(store: ObjectStore) -> None:
    store.create("pods", pod("waiting"))
    store.delete("pods", "waiting")
    store.create("pods", pod("running"))
    store.bind("default", "running", "n")
    marked = store.delete("pods", "running")
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert [one["metadata"]["name"] for one in store.list("pods").items] == ["running"]
    store.delete("pods", "running", grace_seconds=0)
    assert store.list("pods").items == []


def test_an_object_with_finalizers_waits_for_them(store: ObjectStore) -> None:
    store.create("configmaps", {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}})
    assert "deletionTimestamp" in store.delete("configmaps", "c")["metadata"]
    store.patch("configmaps", "c", {"metadata": {"finalizers": None}}, patch_type=MERGE_PATCH)
    with pytest.raises(errors.NotFound):
        store.get("configmaps", "c")


def test_the_two_event_apis_show_the_same_events(store: ObjectStore) -> None:
    store.create(
        "events.events.k8s.io",
        {
            "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
            "note": "bound",
            "reason": "Scheduled",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "me",
        },
    )
    core = store.get("events", "e")
    assert core["message"] == "bound"
    assert core["involvedObject"]["name"] == "web"
    assert core["apiVersion"] == "v1"
    assert store.get("events.events.k8s.io", "e")["note"] == "bound"
    assert len(store.list("events", field_selector="involvedObject.name=web").items) == 1


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


def test_preconditions_of_a_deletion(store: ObjectStore) -> None:
    made = store.create("configmaps", {"metadata": {"name": "c"}})
    with pytest.raises(errors.Conflict, match=r"the UID in the precondition \(other\)"):
        store.delete("configmaps", "c", uid="other")
    with pytest.raises(errors.Conflict, match=r"the ResourceVersion in the precondition \(1\)"):
        store.delete("configmaps", "c", resource_version="1")
    store.delete("configmaps", "c", uid=made["metadata"]["uid"])


def test_what_nobody_serves_is_named(store: ObjectStore) -> None:
    with pytest.raises(errors.BadRequest, match='doesn\'t have a resource type "widgets"'):
        store.list("widgets")
