"""The journal: what was acknowledged is there after any end, and damage is not mistaken for an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.storage.write_ahead_log import FILE_NAME, WriteAheadLog
from kubesched.errors import ConfigError


def names(store: ObjectStore) -> list[str]:
    return [one["metadata"]["name"] for one in store.list("nodes").items]


def reopened(directory: Path) -> ObjectStore:
    return ObjectStore(ManualClock(), data_dir=directory)


def test_objects_and_versions_survive(tmp_path: Path) -> None:
    store = reopened(tmp_path)
    for number in range(5):
        store.create("nodes", {"metadata": {"name": f"n{number}"}})
    store.delete("nodes", "n2")
    store.patch("nodes", "n3", {"metadata": {"labels": {"a": "b"}}})
    before = [entry.raw for entry in store.list("nodes").entries]
    version = store.resource_version
    store.close()
    again = reopened(tmp_path)
    assert [entry.raw for entry in again.list("nodes").entries] == before
    assert int(again.resource_version) >= int(version)
    assert int(again.create("nodes", {"metadata": {"name": "new"}})["metadata"]["resourceVersion"]) > int(version)
    again.close()


def test_custom_resources_are_served_again(tmp_path: Path) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "x.io", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": [version]}
    store = reopened(tmp_path)
    store.create("customresourcedefinitions", {"metadata": {"name": "things.x.io"}, "spec": spec})
    store.create("things.x.io", {"metadata": {"name": "one"}, "extra": 1})
    store.close()
    again = reopened(tmp_path)
    assert again.get("things.x.io", "one")["extra"] == 1
    again.close()


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0, max_value=3000))
def test_a_file_cut_anywhere_keeps_a_prefix_of_what_was_written(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    directory = tmp_path_factory.mktemp("cut")
    store = reopened(directory)
    start = (directory / FILE_NAME).stat().st_size
    for number in range(8):
        store.create("nodes", {"metadata": {"name": f"n{number}"}})
    store.close()
    data = (directory / FILE_NAME).read_bytes()
    (directory / FILE_NAME).write_bytes(data[: min(start + cut, len(data))])
    again = reopened(directory)
    found = names(again)
    assert found == [f"n{number}" for number in range(len(found))]
    again.create("nodes", {"metadata": {"name": "zz"}})
    again.close()
    once_more = reopened(directory)
    assert names(once_more) == [*found, "zz"]
    once_more.close()


def test_damage_in_the_middle_stops_the_start(tmp_path: Path) -> None:
    store = reopened(tmp_path)
    store.create("nodes", {"metadata": {"name": "n"}})
    store.create("nodes", {"metadata": {"name": "m"}})
    store.close()
    data = bytearray((tmp_path / FILE_NAME).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / FILE_NAME).write_bytes(data)
    with pytest.raises(ConfigError, match="is damaged at byte"):
        reopened(tmp_path)


def test_another_file_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("something else entirely")
    with pytest.raises(ConfigError, match="is not a kubesched object log"):
        reopened(tmp_path)


def test_two_servers_cannot_share_a_directory(tmp_path: Path) -> None:
    store = reopened(tmp_path)
    with pytest.raises(ConfigError, match="is in use by another server"):
        reopened(tmp_path)
    store.close()


def test_an_unknown_policy_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown policy 'sometimes'"):
        WriteAheadLog(tmp_path, "sometimes")


def test_an_outdated_file_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched.embedded.storage.write_ahead_log.REWRITE_BYTES", 50_000)
    store = reopened(tmp_path)
    store.create("nodes", {"metadata": {"name": "n"}})
    for number in range(500):
        store.patch("nodes", "n", {"metadata": {"labels": {"n": str(number)}}})
    assert (tmp_path / FILE_NAME).stat().st_size < 100_000
    store.close()
    assert reopened(tmp_path).get("nodes", "n")["metadata"]["labels"] == {"n": "499"}


def test_a_full_disk_is_an_error_and_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = reopened(tmp_path)
    store.create("nodes", {"metadata": {"name": "kept"}})

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("kubesched.embedded.storage.write_ahead_log._write_all", full)
        with pytest.raises(OSError, match="No space left"):
            store.create("nodes", {"metadata": {"name": "lost"}})
    assert names(store) == ["kept"]
    store.create("nodes", {"metadata": {"name": "later"}})
    store.close()
    assert names(reopened(tmp_path)) == ["kept", "later"]


def test_events_of_a_former_life_end_too(tmp_path: Path) -> None:
    event = {"involvedObject": {"namespace": "default"}, "reason": "r"}
    store = reopened(tmp_path)
    store.create("events", {"metadata": {"name": "old"}, **event})
    store.close()
    clock = ManualClock()
    again = ObjectStore(clock, data_dir=tmp_path)
    clock.advance(3601)
    again.create("events", {"metadata": {"name": "new"}, **event})
    assert [one["metadata"]["name"] for one in again.list("events").items] == ["new"]
    again.close()
