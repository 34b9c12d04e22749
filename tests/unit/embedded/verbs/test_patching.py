"""Patches and server-side apply, as tables of before, patch and after."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import errors
from kubesched.embedded import ObjectStore
from kubesched.embedded.verbs.patching import APPLY_PATCH, json_patch

JSON_CASES = [
    ("add to an object", {"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ("add into a list", {"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ("append", {"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ("remove", {"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
    ("remove from a list", {"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    ("replace", {"a": {"b": 1}}, [{"op": "replace", "path": "/a/b", "value": 2}], {"a": {"b": 2}}),
    ("move", {"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    ("copy", {"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    ("a slash in a key", {"x/y": 1}, [{"op": "replace", "path": "/x~1y", "value": 2}], {"x/y": 2}),
    ("test, then change", {"a": 1}, [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}], {}),
]


@pytest.mark.parametrize(("before", "patch", "after"), [row[1:] for row in JSON_CASES], ids=[row[0] for row in JSON_CASES])
def test_json_patch(before: Any, patch: Any, after: Any) -> None:
    kept = str(before)
    assert json_patch(before, patch) == after
    assert str(before) == kept, "the original is untouched"


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "remove", "path": "/no"}],
        [{"op": "replace", "path": "/l/9", "value": 1}],
        [{"op": "test", "path": "/a", "value": 2}],
        [{"op": "add", "path": "/a/b/c", "value": 1}],
        [{"op": "add", "path": "/l/9", "value": 1}],
        [{"op": "move", "from": "/o", "path": "/o/p"}],
        [{"op": "jump", "path": "/a"}],
        [{"op": "add", "path": "/a"}],
        [{"path": "/a"}],
        {"op": "add"},
        [7],
        [{"op": "add", "path": f"/l/{'9' * 5000}", "value": 1}],
        [{"op": "copy", "from": "/l", "path": "/l/-"}] * 40,
        [{"op": "add", "path": "/t", "value": "x" * 1_000_000}, *[{"op": "copy", "from": "/t", "path": "/l/-"}] * 10_000][
            :9_999
        ],
    ],
)
def test_json_patches_that_do_not_fit_are_refused(patch: Any) -> None:
    with pytest.raises((errors.Invalid, errors.BadRequest)):
        json_patch({"a": 1, "l": [], "o": {}}, patch)


# --- server-side apply


def config(**data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def apply(store: ObjectStore, body: dict, manager: str, force: bool = False) -> dict:
    return store.patch("configmaps", "c", body, patch_type=APPLY_PATCH, field_manager=manager, force=force)


def test_apply_creates_and_removes_what_its_manager_no_longer_wants(store: ObjectStore) -> None:
    apply(store, config(a="1", b="2"), "one")
    assert apply(store, config(a="1"), "one")["data"] == {"a": "1"}


def test_what_two_managers_want_stays_until_both_are_done(store: ObjectStore) -> None:
    apply(store, config(a="1", b="2"), "one")
    apply(store, config(b="2"), "two")
    assert apply(store, config(a="1"), "one")["data"] == {"a": "1", "b": "2"}
    assert apply(store, config(c="3"), "two")["data"] == {"a": "1", "c": "3"}


def test_a_conflict_names_the_field_and_the_manager(store: ObjectStore) -> None:
    apply(store, config(a="1"), "one")
    with pytest.raises(errors.Conflict, match=r'conflict with "one": \.data\.a') as found:
        apply(store, config(a="2"), "two")
    assert found.value.details["causes"][0]["reason"] == "FieldManagerConflict"
    assert apply(store, config(a="2"), "two", force=True)["data"] == {"a": "2"}
    with pytest.raises(errors.Conflict, match='conflict with "two"'):
        apply(store, config(a="1"), "one")


def test_an_ordinary_write_takes_a_field_over(store: ObjectStore) -> None:
    apply(store, config(a="1"), "one")
    store.patch("configmaps", "c", {"data": {"a": "9"}}, field_manager="editor")
    with pytest.raises(errors.Conflict, match='conflict with "editor" using v1'):
        apply(store, config(a="1"), "one")


def test_apply_needs_a_manager(store: ObjectStore) -> None:
    with pytest.raises(errors.Invalid, match="fieldManager: Required value"):
        apply(store, config(a="1"), "")


def test_the_first_apply_on_a_plain_object_conflicts_with_what_was_before(store: ObjectStore) -> None:
    store.create("configmaps", config(a="1"))
    with pytest.raises(errors.Conflict, match="before-first-apply"):
        apply(store, config(a="2"), "one")
    assert apply(store, config(a="1", b="2"), "one")["data"] == {"a": "1", "b": "2"}
