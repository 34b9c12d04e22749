"""`kubesched serve` and `observe`: what is wrong with a command line is said before anything is started."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.errors import SchedulerError

WRONG: list[tuple[list[str], str]] = [
    (
        ["serve", "--insecure", "--bind-address", "10.0.0.1"],
        "--insecure is for a loopback address, and --bind-address is 10.0.0.1",
    ),
    (["serve", "--grpc-port", "many"], "'many' is no port, and not off"),
    (["serve", "--grpc-port", "70000"], "'70000' is no port, and not off"),
    (["serve", "--expander", "--grpc-port", "off"], "--expander needs gRPC and a cluster to follow"),
    (["serve", "--expander", "--no-cluster"], "--expander needs gRPC and a cluster to follow"),
    (["serve", "--kueue", "--no-cluster"], "--kueue needs a cluster to follow"),
    (["serve", "--node-groups", __file__], "--node-groups says what nodes cost to --expander"),
    (["observe", "--insecure", "--bind-address", "::"], "--insecure is for a loopback address"),
    (["observe", "--config", __file__, "--configz", "x"], "--config and --configz both say how the live scheduler decides"),
]


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_wrong_usage(words: list[str], says: str) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2 and says in done.output, done.output


def test_without_grpcio_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "grpc" else find(name, *more))
    for words in (["serve", "--no-cluster"], ["bench", "serve"]):
        done = CliRunner().invoke(cli, words)
        assert isinstance(done.exception, SchedulerError)
        assert "pip install 'kubesched[serve]', or serve HTTP alone with --grpc-port=off" in str(done.exception)


def test_the_benchmark_asks_while_the_cluster_changes() -> None:
    pytest.importorskip("grpc")
    size = ["--nodes", "5", "--pods", "10", "--callers", "2", "--rate", "40", "--changes", "50", "--seconds", "2"]
    done = CliRunner().invoke(cli, ["bench", "serve", *size, "-o", "json"])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["questions_per_s"], told["refused"]) == (40.0, 0) and told["changes_per_s"] > 20
    assert 0 < told["p50_ms"] <= told["p99_ms"] <= told["max_ms"] and told["follower_mib"][1] > 10
