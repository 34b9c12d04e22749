"""`kubesched decisions`: what was decided and by what, from a running scheduler, a decision log or an inbox log."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from kubesched.cli.decision_report import print_decision, print_decisions
from kubesched.cli.printing import bar, print_document
from kubesched.errors import SchedulerError
from kubesched.kube.client.scheduler_client import SchedulerAddress, ask_for_decisions, ask_for_decisions_about
from kubesched.kube.values.bounds import lines_of
from kubesched.scheduler.engine.records.decision_record import DecisionFilter, document
from kubesched.tools.simulation.replay import decide_again
from kubesched.tools.snapshots.sources import named, read_log

_AGO = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FIELDS = {"sequence", "at", "pod", "outcome", "node", "sentence", "refusals"}


def run_decisions(
    pod: str,
    namespace: str,
    server: str,
    token: str,
    ca_file: str | None,
    is_trusting: bool,
    log_file: Path | None,
    inbox_log: Path | None,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    node: str,
    outcome: str | None,
    refused_by: str,
    since: str,
    until: str,
    limit: int,
    output: str,
) -> None:
    given, _, name = pod.rpartition("/")
    if pod and (not name or (given and namespace and given != namespace)):
        raise click.UsageError(f"{pod!r} is not a pod's name" if not name else f"{pod} is not in namespace {namespace}")
    if sum(map(bool, (server, log_file, inbox_log))) != 1:
        raise click.UsageError("say where the decisions are: --server URL, --log FILE or --inbox-log FILE")
    if (config_file or feature_gates or plugins) and inbox_log is None:
        raise click.UsageError("--config, --feature-gates and --plugin go with --inbox-log: what is recorded is decided")
    if (token or ca_file or is_trusting) and not server:
        raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --server")
    where = given or namespace or ("default" if pod else "")
    key = f"{where}/{name}" if pod else ""
    asked = DecisionFilter(where, key, node, outcome or "", refused_by, _moment(since, "--since"), _moment(until, "--until"))
    if server:
        address = SchedulerAddress(server, token, ca_file or "", not is_trusting)
        found = _from_server(address, asked, where, name, limit)
    else:
        told = _from_log(log_file) if log_file is not None else _decided_again(inbox_log, config_file, feature_gates, plugins)
        found = [each for each in told if asked.takes(each)][-limit:][::-1]
    if pod and not found:
        raise SchedulerError(f"no decision about pod {key} is on record there")
    if output != "table":
        print_document({"decisions": found}, output)
    elif pod:
        for decision in found:
            print_decision(decision)
    else:
        print_decisions(found)


def _from_server(
    address: SchedulerAddress, asked: DecisionFilter, namespace: str, name: str, limit: int
) -> list[dict[str, Any]]:
    """Return what a running scheduler has, newest first: of one pod in full, otherwise page by page."""
    if name:
        told = asyncio.run(ask_for_decisions_about(address, namespace, name))
        return [each for each in told if asked.takes(each)][:limit]
    words = {"namespace": asked.namespace, "node": asked.node, "outcome": asked.outcome, "plugin": asked.plugin}
    times = {"since": asked.since, "until": asked.until}
    query = {name: text for name, text in words.items() if text} | {k: repr(v) for k, v in times.items() if v is not None}
    return asyncio.run(ask_for_decisions(address, query, limit))


def _from_log(path: Path) -> list[dict[str, Any]]:
    """Return the decisions of a log and of the files that it was before, oldest first."""
    older: list[Path] = []
    while (before := path.with_name(f"{path.name}.{len(older) + 1}")).exists():
        older.append(before)
    return [decision for file in (*reversed(older), path) for decision in _read(file)]


def _read(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines_of(path, may_be_cut_off=True), 1):
        if not line.strip():
            continue
        try:
            decision = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise SchedulerError(f"{path}, line {number}: {error}") from error
        if not decision.keys() >= _FIELDS:
            raise SchedulerError(f"{path}, line {number}: this is not a decision; was it written by `run --decision-log`?")
        yield decision


def _decided_again(
    path: Path | None, config_file: Path | None, feature_gates: tuple[str, ...], plugins: tuple[str, ...]
) -> list[dict[str, Any]]:
    assert path is not None
    lines, policy = read_log(path, config_file, feature_gates, plugins)
    with named(path), bar("deciding again", None):
        records = decide_again(lines, policy.configuration, policy.gates, policy.registry)
    return [document(record) for record in records]


def _moment(text: str, option: str) -> float | None:
    """Return a time as people write it: RFC 3339, seconds since 1970, or how long ago."""
    if not text:
        return None
    ago = _AGO.fullmatch(text.removesuffix(" ago"))
    if ago:
        return time.time() - float(ago[1]) * _SECONDS[ago[2]]
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is no time; try 2026-01-31T12:00:00Z or 10m") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def newest_placement(decisions: list[dict[str, Any]]) -> Mapping[str, Any] | None:
    """Return the newest decision that placed a pod, of some that are newest first; the newest of all if none did."""
    placed = next((each for each in decisions if each["outcome"] == "placed"), None)
    return placed or (decisions[0] if decisions else None)
