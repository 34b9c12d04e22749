"""What a release promised is kept, or the CHANGELOG says what to use instead."""

from __future__ import annotations

import os
import re

import pytest
import record_promise as promise

CHANGES = (promise.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NEWEST = re.split(r"^## ", CHANGES, flags=re.MULTILINE)[1]


def test_promises_are_kept_or_the_changelog_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(promise.ROOT)
    monkeypatch.setitem(os.environ, "KUBECONFIG", "")
    recorded = promise.RECORD.read_text(encoding="utf-8").splitlines()
    broken = promise.unexplained(recorded, promise.surface(), NEWEST)
    assert not broken, "keep them, or name them under CHANGELOG's newest heading with what replaces them, then `make promise`"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("name kubesched.Plugin.filter(self, pod, nodes, state)", "Plugin.filter"),
        ("parameter kubesched.testing.pod cpu (by name)", "testing.pod"),
        ("option kubesched why --snapshot", "--snapshot"),
        ("argument kubesched why pod", "why pod"),
        ("command kubesched why", "why"),
        ("flag --config", "--config"),
        ("json why POD: .refusals[].plugin text", "refusals[].plugin"),
        ("metric scheduler_pending_pods{queue} gauge STABLE", "scheduler_pending_pods"),
    ],
)
def test_what_is_gone_must_be_named_and_what_is_new_need_not(line: str, named: str) -> None:
    assert promise.unexplained([line], [line, "name kubesched.More()"], "") == []
    assert promise.unexplained([line], [line.replace(named, "other")], "nothing of it") == [line]
    assert promise.unexplained([line], [], f"* `{named}` is gone; use `other`.") == []
