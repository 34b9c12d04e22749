"""The books: claims ahead of the watch, devices held, and which class answers to which resource."""

import msgspec
import pytest
from dra_world import DRIVER, allocation, claim, device, device_class, node, resource_slice

from kubesched.kube.api.resource import DeviceClass, ResourceClaim
from kubesched.scheduler.cluster import Objects, Store
from kubesched.scheduler.cluster.device_claims import ClaimError, DeviceClaims, DeviceId
from kubesched.scheduler.cluster.device_classes import DeviceClassMap
from kubesched.scheduler.plugins.shared.device_classes import DeviceCounts, delegated, device_columns

D1 = DeviceId(DRIVER, "p", "d1")


def books(*claims):
    objects = Objects(claims)
    return objects, objects.shared(DeviceClaims)


def test_the_api_counts_only_if_it_is_newer_than_what_was_assumed():
    objects, book = books(claim("a", resourceVersion="5"))
    book.assume(claim("a", resourceVersion="7", status=allocation("d1")))
    assert D1 in book.exclusive
    objects.put(claim("a", resourceVersion="6"))
    book.refresh()
    assert D1 in book.exclusive and book.get("a", "default").metadata.resource_version == "7"
    objects.put(claim("a", resourceVersion="8"))
    book.refresh()
    assert D1 not in book.exclusive and book.get("a", "default").metadata.resource_version == "8"


def test_devices_that_a_version_ahead_of_the_watch_gives_back_are_told_once():
    _, book = books(claim("a", resourceVersion="5"))
    freed = []
    book.freed = freed.append
    given, emptied = claim("a", resourceVersion="7", status=allocation("d1")), claim("a", resourceVersion="8")
    book.assume(given)
    assert not freed
    book.assume(emptied)
    assert freed == [given] and not book.exclusive
    assert book.before(claim("a", resourceVersion="5"), emptied) is emptied, "when the watch tells it, it is no news"


def test_an_older_version_or_a_claim_that_is_gone_cannot_be_assumed():
    _, book = books(claim("a", resourceVersion="5"))
    with pytest.raises(ClaimError, match=r'ResourceClaim "default/a" is out of sync \(stored: 5, assume: 4\)'):
        book.assume(claim("a", resourceVersion="4"))
    with pytest.raises(ClaimError, match='could not find ResourceClaim "default/b"'):
        book.assume(claim("b"))


def test_a_deleted_claim_gives_its_devices_back():
    objects, book = books(claim("a", status=allocation("d1")))
    book.assume(claim("a", resourceVersion="2", status=allocation("d1")))
    objects.drop(ResourceClaim, "a", "default")
    book.refresh()
    assert not book.exclusive and book.get("a", "default") is None


def test_a_promise_stands_until_it_is_released_and_the_claim_takes_over():
    objects, book = books(claim("a"))
    promised = claim("a", status=allocation("d1"))
    book.promise(promised, "uid-p")
    assert D1 in book.exclusive and book.promised("uid-a") is promised
    objects.put(claim("a", resourceVersion="2", status=allocation("d1")))
    book.refresh()
    book.release("uid-a")
    assert D1 in book.exclusive and book.exclusive[D1] == 1
    book.release("uid-a")
    assert book.exclusive[D1] == 1, "there was nothing left to be released"


def test_a_shared_promise_stands_until_its_last_pod_lets_go():
    _, book = books(claim("a"))
    book.promise(claim("a", status=allocation("d1")), "uid-p")
    book.promise(claim("a", status=allocation("d2")), "uid-q")
    assert list(book.exclusive) == [D1], "the second pod takes what the first was promised"
    assert book.is_promised_to("uid-a", {"uid-q", "uid-x"}) and not book.is_promised_to("uid-a", {"uid-x"})
    book.release("uid-a", "uid-p")
    assert D1 in book.exclusive
    assert not book.is_promised_to("uid-a", {"uid-p"})
    book.release("uid-a", "uid-q")
    assert not book.exclusive


def test_admin_access_holds_nothing_and_shares_add_up():
    results = [
        {"request": "r", "driver": DRIVER, "pool": "p", "device": "d1", "adminAccess": True},
        *(
            {
                "request": "r",
                "driver": DRIVER,
                "pool": "p",
                "device": "d2",
                "shareID": str(i),
                "consumedCapacity": {"cores": "1500m"},
            }
            for i in range(2)
        ),
    ]
    objects, book = books(claim("a", status=allocation(*results)))
    shared = DeviceId(DRIVER, "p", "d2")
    assert not book.exclusive and book.shares == {shared: 2} and book.consumed == {shared: {"cores": 3 * 10**9}}
    objects.put(claim("a", resourceVersion="2"))
    book.refresh()
    assert not book.shares and not book.consumed


def test_touched_pools_are_told_once_each_change():
    objects, book = books(claim("a"))
    start = book.touched.end
    objects.put(claim("a", resourceVersion="2", status=allocation("d1")))
    book.refresh()
    objects.put(claim("a", resourceVersion="3", status=allocation("d1"), labels={"x": "y"}))
    book.refresh()
    assert book.touched.since(start) == [(DRIVER, "p")]


def test_the_books_survive_a_log_that_does_not_reach_back():
    objects, book = books(claim("a", status=allocation("d1")), claim("b"))
    for i in range(10_000):
        objects.put(claim("b", resourceVersion=str(i + 2), status=allocation("d2") if i % 2 else None))
    objects.drop(ResourceClaim, "a", "default")
    book.refresh()
    assert set(book.exclusive) == {DeviceId(DRIVER, "p", "d2")}


# Classes


def served(name, created=None, resource="example.com/gpu"):
    found = device_class(name, extendedResourceName=resource)
    return found if created is None else _created(found, created)


def _created(device_class_, moment):
    metadata = msgspec.structs.replace(device_class_.metadata, creation_timestamp=moment)
    return msgspec.structs.replace(device_class_, metadata=metadata)


def test_classes_answer_to_their_own_name_and_to_the_one_they_state():
    objects = Objects([served("gpu")])
    found = objects.shared(DeviceClassMap)
    assert found.find("example.com/gpu").name == "gpu"
    assert found.find("deviceclass.resource.kubernetes.io/gpu").name == "gpu"
    assert delegated("example.com/gpu", objects) and not delegated("example.com/other", objects)


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (("a", "2024-01-01T00:00:00Z"), ("b", "2025-01-01T00:00:00Z"), "b"),
        (("b", "2025-01-01T00:00:00Z"), ("a", "2024-01-01T00:00:00Z"), "b"),
        (("b", "2025-01-01T00:00:00Z"), ("a", "2025-01-01T00:00:00Z"), "a"),
    ],
    ids=["the newer", "the newer, seen first", "of equal age the smaller name"],
)
def test_two_classes_want_the_same_name(first, second, winner):
    objects = Objects([served(*first)])
    found = objects.shared(DeviceClassMap)
    assert found.find("example.com/gpu").name == first[0]
    objects.put(served(*second))
    assert found.find("example.com/gpu").name == winner


def test_the_quirks_of_the_map():
    objects = Objects([served("new", "2025-01-01T00:00:00Z")])
    found = objects.shared(DeviceClassMap)
    found.find("")
    objects.put(served("old", "2024-01-01T00:00:00Z"))
    assert found.find("deviceclass.resource.kubernetes.io/old") is None
    objects.drop(DeviceClass, "old")
    assert found.find("example.com/gpu") is None
    objects.put(served("new", "2025-01-01T00:00:00Z", "example.com/other"))
    assert found.find("example.com/other").name == "new"


def test_devices_of_a_class_are_counted_for_every_node():
    store = Store()
    for name, labels in (("n1", {"zone": "a"}), ("n2", {}), ("n3", {})):
        store.put_node(node(name, labels))
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
    own = [device("o1", {"gpu": True}, nodeName="n2"), device("o2", {"gpu": True}, allNodes=True)]
    for each in (
        device_class("gpu", f'device.attributes["{DRIVER}"].gpu', extendedResourceName="example.com/gpu"),
        resource_slice("s1", [device("d1", {"gpu": True}), device("d2", {"gpu": False})], "n1"),
        resource_slice("s2", [device("e", {"gpu": True})], pool="q", nodeSelector=zone),
        resource_slice("s3", own, pool="own", perDeviceNodeSelection=True),
        resource_slice("s4", [device("broken")], "n3", pool="broken"),
        claim("x", status=allocation("d1")),
    ):
        store.objects.put(each)
    there, used = device_columns("example.com/gpu", store.snapshot())
    assert there.tolist() == [3, 2, 0] and used.tolist() == [1, 0, 0]
    store.objects.put(claim("x", resourceVersion="2"))
    assert device_columns("example.com/gpu", store.snapshot())[1].tolist() == [0, 0, 0]
    assert device_columns("example.com/none", store.snapshot().take([1]))[0].tolist() == [0]


def test_counts_of_a_class_that_is_gone_are_not_kept():
    store = Store()
    store.put_node(node("n1"))
    store.objects.put(device_class("gpu", "true", extendedResourceName="example.com/gpu"))
    device_columns("example.com/gpu", store.snapshot())
    store.objects.drop(DeviceClass, "gpu")
    device_columns("example.com/other", store.snapshot())
    assert list(store.objects.shared(DeviceCounts)._columns) == ["example.com/other"]
