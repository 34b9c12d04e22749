"""The assume caches: what is promised about volumes and claims, and until when."""

from __future__ import annotations

import pytest
from volume_scene import pv, pvc

from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.scheduler.cluster import Objects
from kubesched.scheduler.cluster.claims import ClaimCache, PromiseError, VolumeCache, class_of_claim, class_of_volume

OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def test_a_promise_stands_on_the_version_it_was_made_on() -> None:
    objects = Objects([pv("v")])
    cache = VolumeCache(objects)
    promised = pv("v", claim="c")
    cache.assume(promised)
    assert cache.get("v") is promised
    assert cache.stored("v") is not promised
    objects.put(pv("v"))  # told again, nothing new
    assert cache.get("v") is promised
    objects.put(pv("v", version="2"))
    assert cache.get("v") == pv("v", version="2")
    assert list(cache.promised()) == []


def test_without_versions_any_news_end_a_promise() -> None:
    objects = Objects([pv("v", version="")])
    cache = VolumeCache(objects)
    cache.assume(pv("v", claim="c", version=""))
    assert cache.get("v") == pv("v", claim="c", version="")
    objects.put(pv("v", version=""))
    assert cache.get("v") == pv("v", version="")


def test_only_what_exists_in_this_version_can_be_promised() -> None:
    cache = ClaimCache(Objects([pvc("c", version="7")]))
    with pytest.raises(PromiseError, match='persistentvolumeclaims "default/d" not found'):
        cache.assume(pvc("d"))
    with pytest.raises(PromiseError, match=r'"default/c" is out of sync \(stored: 7, assume: 6\)'):
        cache.assume(pvc("c", version="6"))
    with pytest.raises(PromiseError, match='persistentvolumes "v" not found'):
        VolumeCache(Objects()).assume(pv("v"))


def test_taking_back_leaves_what_was_written() -> None:
    cache = VolumeCache(Objects([pv("v")]))
    cache.assume(pv("v", claim="c"))
    cache.restore(pv("v", claim="c", version="2"))  # as the API answered our write
    assert cache.get("v") == pv("v", claim="c")
    cache.restore(pv("v", claim="c"))
    assert cache.get("v") == pv("v")
    cache.restore(pv("v"))
    cache.restore(pv("unknown"))


def test_what_is_deleted_is_gone_at_once() -> None:
    objects = Objects([pv("v")])
    cache = VolumeCache(objects)
    cache.assume(pv("v", claim="c"))
    objects.drop(PersistentVolume, "v")
    assert cache.get("v") is None
    assert list(cache.promised()) == []


def test_overtaken_promises_are_not_kept_for_ever() -> None:
    objects = Objects()
    cache = ClaimCache(objects)
    for i in range(2000):
        objects.put(pvc(f"c{i}"))
        cache.assume(pvc(f"c{i}", annotations={"a": "b"}))
        if i % 2:
            objects.put(pvc(f"c{i}", version="2"))
        else:
            objects.drop(PersistentVolumeClaim, f"c{i}", "default")
    assert len(cache._promises) < 600


def test_followers_are_told_which_promises_changed() -> None:
    cache = VolumeCache(Objects([pv("v"), pv("w")]))
    start = cache.touched.end
    cache.assume(pv("v", claim="c"))
    middle = cache.touched.end
    cache.restore(pv("v"))
    assert cache.touched.since(start) == ["v", "v"]
    assert cache.touched.since(middle) == ["v"]
    assert cache.touched.since(cache.touched.end) == []
    for _ in range(10_000):
        cache.assume(pv("w", claim="c"))
    assert cache.touched.since(start) is None


def test_the_class_of_claims_and_volumes() -> None:
    assert class_of_claim(pvc("c", cls=None)) == ""
    assert class_of_claim(pvc("c", cls="s")) == "s"
    assert class_of_claim(pvc("c", cls="s", annotations={OLD_CLASS: ""})) == ""
    assert class_of_volume(pv("v", cls="s")) == "s"
    assert class_of_volume(pv("v", cls="s", annotations={OLD_CLASS: "t"})) == "t"
