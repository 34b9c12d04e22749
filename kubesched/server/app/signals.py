"""Signals: SIGTERM and SIGINT stop the scheduler, SIGUSR2 makes it log its state."""

from __future__ import annotations

import asyncio
import signal

from kubesched.server.app.scheduler import Scheduler


def stop_on_signals(scheduler: Scheduler) -> None:
    """Handle the signals. A second SIGTERM or SIGINT ends the process at once with exit code 1."""
    loop = asyncio.get_running_loop()
    seen = 0

    def handle() -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            # As kube-scheduler: the first signal ends the program in order, the second one does not wait for that.
            raise SystemExit(1)
        scheduler.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle)
    loop.add_signal_handler(signal.SIGUSR2, scheduler.debug)
