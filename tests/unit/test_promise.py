"""What a release promised is kept, or the CHANGELOG says what to use instead."""

from __future__ import annotations

import os
import re

import click
import pytest
import record_promise as promise
from click.testing import CliRunner

from kubesched.deprecation import deprecated, replacement

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


def test_a_deprecated_function_works_warns_and_names_its_replacement() -> None:
    @deprecated("double", gone_in="1.3")
    def twice(number: int) -> int:
        return 2 * number

    with pytest.warns(DeprecationWarning, match=r"twice is deprecated\. Use double\. It will be gone in 1\.3\.") as said:
        assert twice(4) == 8
    assert said[0].filename == __file__  # of the caller, who is to change it


def old_program(told: str | bool) -> click.Command:
    @click.group()
    def program() -> None: ...

    @program.command(deprecated=told)
    @click.option("--old", deprecated=told)
    def run(old: str) -> None:
        click.echo(f"ran with {old}")

    return program


def test_a_deprecated_command_and_option_work_and_name_their_replacement_on_stderr() -> None:
    done = CliRunner().invoke(old_program(replacement("--new", gone_in="1.3")), ["run", "--old", "x"])
    assert (done.exit_code, done.stdout) == (0, "ran with x\n")
    assert [line.partition(" Use ")[2] for line in done.stderr.splitlines()] == ["--new. It will be gone in 1.3."] * 2


def test_what_commands_deprecate_names_its_replacement() -> None:
    assert list(promise.without_replacement(old_program(True))) == ["run", "run --old"]
    assert list(promise.without_replacement(promise.cli)) == []
