"""`kubesched shadow`: beside a live scheduler, without any write: do we agree, and if not, why."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from prometheus_client import CollectorRegistry

from kubesched.cli.layout import print_table, say
from kubesched.cli.printing import fewer, print_document, warned
from kubesched.errors import SchedulerError
from kubesched.kube.client.connection import Observers, connect
from kubesched.kube.client.credentials import CredentialSource, kubectl_credentials
from kubesched.kube.client.scheduler_client import SchedulerAddress, ask_for_configuration
from kubesched.scheduler import config
from kubesched.scheduler.config.releases.versions import text_of
from kubesched.scheduler.engine.handle import SystemClock
from kubesched.server import web
from kubesched.server.web.shadow_app import DOCUMENT, shadow_app
from kubesched.tools.shadow.following import follow
from kubesched.tools.shadow.judging import Judge, Judged, Settings
from kubesched.tools.shadow.report import Report
from kubesched.tools.shadow.snapshots import Snapshots
from kubesched.tools.snapshots.sources import Policy, live_release

_QPS = 50.0
_NODE_WIDTH = 24
_MEANINGS = {
    "same": "our node",
    "tie": "another of our best nodes",
    "sampled": "the best of a part of the nodes (percentageOfNodesToScore)",
    "worse": "a node with a lower score",
    "infeasible": "a node that we refuse",
    "failed": "our own attempt broke",
}


def run_shadow(
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    configz: str,
    token: str,
    ca_file: str | None,
    is_trusting: bool,
    window_seconds: float,
    control: float,
    folder: Path | None,
    max_snapshots: int,
    most_pods: int | None,
    seconds: float | None,
    shows_all: bool,
    seed: int,
    port: int | None,
    host: str,
    has_exit_code: bool,
    output: str,
) -> None:
    if configz and config_file is not None:
        raise click.UsageError("--config and --configz both say how the live scheduler decides: give one")
    is_asked = configz.startswith(("http://", "https://"))
    if (token or ca_file or is_trusting) and not is_asked:
        raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --configz URL")
    source: Path | str | None = config_file
    if configz:
        address = SchedulerAddress(configz, token, ca_file or "", not is_trusting, "--configz")
        source = _from_configz(configz, asyncio.run(ask_for_configuration(address)) if is_asked else _read(Path(configz)))
    try:
        policy = Policy.for_dry_run(source, feature_gates, plugins, live_release(kubeconfig, context))
    except SchedulerError as error:
        raise error if not configz else SchedulerError(f"{configz}: {error}") from error
    judged_by = Settings(policy.configuration, policy.gates, policy.registry, seed, window_seconds, control)
    run = Run(
        kubectl_credentials(kubeconfig, context),
        judged_by,
        Snapshots(folder, max_snapshots) if folder is not None else None,
        most_pods,
        seconds,
        None if port is None else (host, port),
        prints=output == "table",
        shows_all=shows_all,
    )
    with warned():
        asyncio.run(run.run())
    document = run.document()
    if output == "table":
        _print_summary(document, folder)
    else:
        print_document(document, output)
    if has_exit_code and run.report.n_differences:
        sys.exit(1)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SchedulerError(f"{file}: {error.strerror or error}") from error


def _from_configz(where: str, text: str) -> str:
    try:
        document, n_extenders = config.from_configz(text)
    except SchedulerError as error:
        raise SchedulerError(f"{where}: {error}") from error
    if n_extenders:
        click.echo("Warning: extenders are not asked", err=True)
    return document


@dataclass(slots=True)
class Run:
    """One run of the command, and what came of it."""

    source: CredentialSource
    judged_by: Settings
    snapshots: Snapshots | None
    most_pods: int | None
    seconds: float | None
    served_at: tuple[str, int] | None
    prints: bool
    shows_all: bool
    report: Report = field(default_factory=lambda: Report(time.time()))
    verbs: Counter[str] = field(default_factory=Counter)
    """How many requests of each verb were answered; watches, which are GETs, aside."""
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _has_title: bool = False

    def document(self) -> dict[str, Any]:
        """Return what was found so far."""
        return {**self.report.document(), "requests": dict(self.verbs)}

    async def run(self) -> None:
        """Follow and judge until stopped."""
        loop, clock = asyncio.get_running_loop(), SystemClock()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopped.set)
        judge = self.report.judge = Judge(self.judged_by, self._tell, clock)
        observers = Observers(answer=self._count)
        connection = await connect(self.source, name="shadow", qps=_QPS, burst=int(2 * _QPS), observers=observers)
        try:
            async with self._serving(judge):
                await follow(judge, connection, self._stopped, warn=_warn, began=self._began)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            await connection.close()
            if self.snapshots is not None:
                self.snapshots.close()

    @contextlib.asynccontextmanager
    async def _serving(self, judge: Judge) -> AsyncIterator[None]:
        if self.served_at is None:
            yield
            return
        host, port = self.served_at
        registry = CollectorRegistry()
        registry.register(self.report)
        server = await web.serve_insecurely(shadow_app(registry, self.document, lambda: judge.is_judging, host), host, port)
        click.echo(f"Serving http://{host}:{server.port}{DOCUMENT} and /metrics", err=True)
        try:
            yield
        finally:
            await server.stop()

    def _count(self, verb: str, code: str, seconds: float) -> None:
        self.verbs[verb] += 1

    def _began(self) -> None:
        assert self.report.judge is not None
        store, names = self.report.judge.history.store, ", ".join(self.report.judge.engine.profiles)
        n_nodes, n_pods, release = len(store.nodes), store.n_pods, text_of(self.judged_by.gates.emulated)
        click.echo(f"Following {n_nodes} nodes and {n_pods} pods, judging {names} as of {release}; Ctrl-C ends it", err=True)
        self.report.started = time.time()
        if self.seconds is not None:
            asyncio.get_running_loop().call_later(self.seconds, self._stopped.set)

    def _tell(self, judged: Judged) -> None:
        if judged.is_control:
            self.report.add(judged)
            return
        snapshot = self.snapshots.keep(judged) if self.snapshots is not None else ""
        document = self.report.add(judged, snapshot)
        if self.prints and (self.shows_all or not judged.comparison.kind.is_agreement):
            self._print(document)
        if self.most_pods is not None and self.report.n_judged >= self.most_pods:
            self._stopped.set()

    def _print(self, told: dict[str, Any]) -> None:
        """Print a line at once; columns are as wide as most names are, since nobody knows what comes."""
        if not self._has_title:
            self._has_title = True
            click.echo(_line("AGREEMENT", "THEIRS", "OURS", "POD", "WHY"))
        name = f"{told['agreement']}{' (' + told['note'] + ')' if told['note'] else ''}"
        click.echo(_line(name, told["chosen"], told["ours"] or "-", told["pod"], why(told)))


def _line(agreement: str, theirs: str, ours: str, pod: str, text: str) -> str:
    return f"{agreement:16}  {theirs:{_NODE_WIDTH}}  {ours:{_NODE_WIDTH}}  {pod:{_NODE_WIDTH}}  {text}".rstrip()


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)


def why(told: dict[str, Any]) -> str:
    """Return in words what makes a difference, or what explains it."""
    if "stateSeen" in told:
        return f"decided {told['stateSeen']}"
    if "behind" in told:
        parts = ", ".join(f"{plugin} {points:+d}" for plugin, points in told["byPlugin"].items())
        return f"behind by {told['behind']}: {parts}"
    if "reasons" in told:
        by = f"{told['refusedBy']}: " if told["refusedBy"] else ""
        return by + "; ".join(told["reasons"])
    return ""


def _print_summary(document: dict[str, Any], folder: Path | None) -> None:
    n, found = document["judged"], document["agreement"]
    if not n:
        say("No pod was placed by the schedulers that are judged.")
    else:
        rows = [[kind, str(count), f"{100 * count / n:.2f} %", _MEANINGS[kind]] for kind, count in found.items() if count]
        if document["differences"]:
            say()
        print_table(["AGREEMENT", "PODS", "", ""], rows, right=(1, 2))
        taken = [f"{document[name]} {words}" for name, words in _NOTES.items() if document[name]]
        say(f"{n} placements in {document['seconds']:g} s, {document['explainedPercent']:g} % explained{_also(taken)}.")
    if document["missed"]:
        say(f"{document['missed']} more could not be judged: we were cut off, or too far behind.")
    if (drawn := document["control"])["drawn"]:
        wrong = drawn["foundOut"] + drawn["passedAsRaces"]
        say(
            f"Control: {drawn['drawn']} nodes drawn by lot, {drawn['level']} of them as good as ours; of the other {wrong} "
            f"{drawn['foundOut']} were found out and {drawn['passedAsRaces']} would have passed as races."
        )
    if document["otherSchedulers"]:
        say(f"Not judged, as no profile has their name: {fewer(document['otherSchedulers'], 5)}.")
    sent = ", ".join(f"{count} {verb}" for verb, count in sorted(document["requests"].items()))
    say(f"Requests sent, apart from watches: {sent}.")
    n_differences = n - sum(found[kind] for kind in ("same", "tie", "sampled"))
    if n_differences and folder is None:
        say("With --snapshots FOLDER each difference is kept as a file that `kubesched replay` decides again.")
    elif n_differences:
        say(f"Snapshots are in {folder}: `kubesched replay FILE` decides one again, `why POD --snapshot FILE` explains it.")


_NOTES = {"races": "as races", "promised": "by what the pods had been promised"}


def _also(parts: list[str]) -> str:
    return f" ({', '.join(parts)})" if parts else ""
