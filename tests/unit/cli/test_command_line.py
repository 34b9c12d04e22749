"""The command line as a whole: quick help, short summaries, completion, and how it ends."""

from __future__ import annotations

import errno
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from kubesched.cli import COMMANDS, cli
from kubesched.cli.bench import CLUSTER_KINDS, KINDS
from kubesched.cli.completion import SHELLS
from kubesched.embedded.storage.write_ahead_log import SYNC_POLICIES
from kubesched.scheduler.legacy import RELEASES
from kubesched.scheduler.legacy.policies import componentconfig
from kubesched.server.options.own_flags import FAILURE_DOMAINS, LEGACY_RELEASES
from kubesched.testing import node, pod
from kubesched.tools.bench import cluster as cluster_bench
from kubesched.tools.bench import workloads
from kubesched.tools.snapshots.captured import Captured


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Return every command below one, with the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        yield from commands(inner, (*words, name))


ALL = dict(commands(cli))
NAMES = [" ".join(words) for words in ALL]


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False)


def test_help_imports_neither_numpy_nor_aiohttp_nor_plugins() -> None:
    code = """
import json, sys
from click.testing import CliRunner
from kubesched.cli import cli
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(cli, [*words, "--help"])
    assert done.exit_code == 0 and done.output, words
print(json.dumps(sorted({name.partition(".")[0] if not name.startswith("kubesched.") else name
                         for name in sys.modules})))
"""
    done = python(code, json.dumps([[], *(list(words) for words in ALL)]))
    assert done.returncode == 0, done.stderr
    heavy = {"numpy", "aiohttp", "prometheus_client", "kubernetes_asyncio", "cryptography", "yaml"}
    rooms = {
        f"kubesched.{room}"
        for room in (
            "embedded",
            "kube.client",
            "scheduler.cluster",
            "scheduler.engine",
            "scheduler.framework",
            "scheduler.legacy",
            "scheduler.plugins",
            "server.app",
            "server.web",
            "tools",
        )
    }
    assert not (heavy | rooms) & set(json.loads(done.stdout))


@pytest.mark.parametrize("words", ALL, ids=NAMES)
def test_every_command_shows_an_example(words: tuple[str, ...]) -> None:
    assert f"Example:  kubesched {words[0]}" in CliRunner().invoke(cli, [*words, "--help"]).output


@pytest.mark.parametrize("words", ALL, ids=NAMES)
def test_what_a_command_declares_is_what_it_takes(words: tuple[str, ...]) -> None:
    callback = ALL[words].callback
    assert callback is not None
    declared = {param.name for param in ALL[words].params}
    parameters = set(inspect.signature(callback).parameters)
    for name, cls in getattr(callback, "values", {}).items():
        assert cls.declared.keys() <= declared
        declared = declared - cls.declared.keys() | {name}
    assert declared == parameters
    assert len(parameters) <= 8


def test_choices_are_those_of_the_rooms_that_know_them() -> None:
    assert tuple(str(release) for release in RELEASES if release.minor != 3) == LEGACY_RELEASES
    assert componentconfig.FAILURE_DOMAINS == FAILURE_DOMAINS
    assert ((*workloads.KINDS, "novelty"), cluster_bench.KINDS) == (KINDS, CLUSTER_KINDS)
    fsync = next(param for param in ALL[("apiserver",)].params if param.name == "fsync")
    assert isinstance(fsync.type, click.Choice) and tuple(fsync.type.choices) == SYNC_POLICIES


@pytest.mark.parametrize("group", [[], ["bench"], ["config"], ["plugins"]], ids=lambda words: " ".join(words) or "kubesched")
def test_summaries_are_short_enough_for_80_columns(group: list[str]) -> None:
    text = CliRunner().invoke(cli, [*group, "--help"], terminal_width=80).output
    listed = text.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), text


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_a_script_for_the_shell(shell: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell])
    assert (done.exit_code, f"_KUBESCHED_COMPLETE={shell}_complete" in done.stdout) == (0, True)


COMPLETED = [
    ("a command", "kubesched pl", ["plan", "plugins"]),
    ("a command of a group", "kubesched plugins c", ["check"]),
    ("an option", "kubesched plan --fail", ["--fail-on-pending"]),
    ("a choice", "kubesched why -o j", ["json"]),
    (
        "a flag of kube-scheduler",
        "kubesched run --leader-elect-ren",
        ["--leader-elect-renew-deadline"],
    ),
]


@pytest.mark.parametrize(("typed", "expected"), [case[1:] for case in COMPLETED], ids=[case[0] for case in COMPLETED])
def test_a_shell_completes(typed: str, expected: list[str]) -> None:
    words = typed.split()
    environment = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), "_KUBESCHED_COMPLETE": "bash_complete"}
    done = CliRunner().invoke(cli, [], prog_name="kubesched", complete_var="_KUBESCHED_COMPLETE", env=environment)
    found = [line.partition(",")[2] for line in done.stdout.splitlines()]
    assert found == expected


# --- how it ends ------------------------------------------------------------------------------------------------------

_MAIN = "from kubesched.cli import main; main()"


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubesched.cli.options.ManifestOptions.read", interrupted)
    done = CliRunner().invoke(cli, ["plan", "-f", "x.yaml"])
    assert (done.exit_code, done.output) == (130, "")


def test_ctrl_c_in_a_terminal_is_130() -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "plan", "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    _await_reading(started.pid)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=30)
    assert (started.returncode, out, err) == (130, b"", b"")


def _await_reading(pid: int) -> None:
    """Wait until a process sleeps in a read of its standard input."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with open(f"/proc/{pid}/syscall", encoding="utf-8") as file:
            if file.read().startswith("0 0x0 "):
                return
        time.sleep(0.01)
    raise AssertionError("it does not read its standard input")


@pytest.mark.parametrize("words", [["--help"], ["plugins", "list", "-o", "json"], ["run", "--help"]], ids=" ".join)
def test_a_closed_pipe_is_141(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", _MAIN, *words], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_another_error_of_the_system_is_not_taken_for_a_closed_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("kubesched.cli.options.ManifestOptions.read", full)
    assert isinstance(CliRunner().invoke(cli, ["plan", "-f", "x.yaml"]).exception, OSError)


def test_every_name_is_a_command() -> None:
    assert {words[0] for words in ALL} == set(COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "-"],
        ["simulate", "-", "--duration", "1s"],
        ["decisions", "--inbox-log", "-"],
        ["why", "--snapshot", "-"],
        ["rebalance", "--goal", "fewer-nodes", "--snapshot", "-"],
        ["compare", "default", "default", "--snapshot", "-"],
        ["compare", "default", "default", "--scenario", "-", "--duration", "1s"],
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_commands_read_a_cluster_from_the_standard_input(words: list[str]) -> None:
    snapshot = b"".join(Captured(5.0, [node("a"), pod("p")]).lines())
    done = CliRunner().invoke(cli, words, input=snapshot, catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "") and done.stdout


@pytest.mark.parametrize("more", [["--no-memo"], ["--decision-records", "5"]])
def test_a_history_of_novelties_has_no_settings_of_its_own(more: list[str]) -> None:
    done = CliRunner().invoke(cli, ["bench", "engine", "--kind", "novelty", *more])
    assert done.exit_code == 2 and "--kind novelty runs the default configuration" in done.output
