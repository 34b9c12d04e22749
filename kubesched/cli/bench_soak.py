"""`kubesched bench soak`: hours of churn, failovers and faults, and the report of it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import click

from kubesched.cli.printing import print_document
from kubesched.errors import ConfigError, SchedulerError
from kubesched.http import raise_file_limit
from kubesched.scheduler.config.documents.durations import Duration
from kubesched.tools.bench.soak.faults import KINDS
from kubesched.tools.bench.soak.page import markdown
from kubesched.tools.bench.soak.run import Soak, run


def run_bench_soak(
    nodes: int,
    pods: int,
    duration: str,
    rate: float,
    schedulers: int,
    fault_every: str,
    kinds_of_faults: tuple[str, ...],
    no_faults: bool,
    kubeconfig: str,
    seed: int,
    page: Path | None,
    output: str,
) -> None:
    if no_faults and kinds_of_faults:
        raise click.UsageError("--fault and --no-faults exclude each other")
    soak = Soak(
        nodes,
        pods,
        _seconds("--duration", duration),
        rate,
        schedulers,
        _seconds("--fault-every", fault_every),
        () if no_faults else kinds_of_faults or KINDS,
        kubeconfig=kubeconfig,
        seed=seed,
    )
    raise_file_limit()
    report = asyncio.run(_run(soak, page))
    if page is not None:
        _write(page, report)
    if output == "table":
        click.echo(markdown(report))
    else:
        print_document(report, output)
    if report["complaints"]:
        raise SchedulerError(f"{len(report['complaints'])} things are wrong, the first: {report['complaints'][0]}")


async def _run(soak: Soak, page: Path | None) -> dict[str, Any]:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    def publish(report: dict[str, Any]) -> None:
        if page is not None:
            _write(page, report)

    return await run(soak, stopped, lambda text: click.echo(text, err=True), publish)


def _write(page: Path, report: dict[str, Any]) -> None:
    try:
        page.write_text(markdown(report), encoding="utf-8")
    except OSError as error:
        raise SchedulerError(f"{page} cannot be written: {error.strerror}") from error


def _seconds(flag: str, text: str) -> float:
    try:
        found = Duration.parse(text).seconds
    except ConfigError as error:
        raise click.BadParameter(str(error), param_hint=flag) from error
    if found <= 0:
        raise click.BadParameter(f"{text} is no length of time", param_hint=flag)
    return found
