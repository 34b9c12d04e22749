"""Runs trials: in processes of this machine, or on Ray.

In: an experiment and some of its trials. Out: outcomes in the order in which they finish, each with the index of its trial. The
outcome does not depend on which worker runs a trial, or on the order. If a worker dies, its trial starts again on another one.
A trial whose worker dies three times gets an outcome with that error.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.tools.experiments.experiment import Experiment, Trial
from kubesched.tools.experiments.trial import Outcome, Worker

MOST_DEATHS = 3
"""How many workers a trial may cost."""
Done = tuple[int, Outcome]
_worker: tuple[str, Worker] | None = None
"""In a worker process: the digest of the experiment (empty if it cannot change), and its `Worker`."""


def run_here(experiment: Experiment, trials: Sequence[Trial]) -> Iterator[Done]:
    """Run trials in this process, one after the other."""
    worker = Worker(experiment)
    for i, trial in enumerate(trials):
        yield i, worker.run(trial)


def run_in_processes(experiment: Experiment, trials: Sequence[Trial], workers: int = 0) -> Iterator[Done]:
    """Run trials in `workers` processes; 0 means one for each core."""
    workers = min(workers or os.cpu_count() or 1, len(trials))
    left, deaths = list(reversed(range(len(trials)))), Counter[int]()
    while left:
        pool = ProcessPoolExecutor(
            workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(experiment,)
        )
        running: dict[Future[Outcome], int] = {}
        try:
            while left or running:
                while left and len(running) < workers:  # one trial for each worker, so that few are suspected when one dies
                    i = left.pop()
                    running[pool.submit(_run, trials[i])] = i
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    yield running.pop(future), outcome
        except BrokenProcessPool:
            for i in sorted(running.values(), reverse=True):
                deaths[i] += 1
                if deaths[i] < MOST_DEATHS:
                    left.append(i)
                else:
                    yield i, Outcome({}, f"its worker died {MOST_DEATHS} times")
            workers = 1 if deaths else workers  # one at a time: then the trial that kills its worker is known
        finally:
            for process in list((pool._processes or {}).values()):
                process.terminate()  # do not wait for running simulations
            pool.shutdown(wait=False, cancel_futures=True)


def run_on_ray(experiment: Experiment, trials: Sequence[Trial], address: str = "") -> Iterator[Done]:
    """Run trials on the Ray cluster at an address, or on a local one that is shut down at the end."""
    try:
        import ray
    except ImportError as error:
        raise SchedulerError("trials on Ray need the extra: pip install 'kubesched[ray]'") from error
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the error repeats them
                ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SchedulerError(f"Ray at {address or 'this machine'}: {error}") from error
    try:
        shared = ray.put(experiment)  # once: all workers of a node share the copy
        remote = ray.remote(max_retries=MOST_DEATHS, num_cpus=1)(_run_for)
        running: dict[Any, int] = {remote.remote(shared, trial): i for i, trial in enumerate(trials)}
        while running:
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                i = running.pop(reference)
                try:
                    yield i, ray.get(reference)
                except ray.exceptions.RayTaskError:
                    raise  # a bug: the worker turns errors of a trial into outcomes
                except ray.exceptions.RayError as error:
                    yield i, Outcome({}, f"its worker died {MOST_DEATHS + 1} times: {type(error).__name__}")
    except ConnectionError as error:
        raise SchedulerError(f"Ray at {address or 'this machine'} is lost: {error}") from error
    finally:
        if is_ours:
            ray.shutdown()


def _begin(experiment: Experiment) -> None:
    global _worker
    _worker = ("", Worker(experiment))


def _run(trial: Trial) -> Outcome:
    assert _worker is not None
    return _worker[1].run(trial)


def _run_for(experiment: Experiment, trial: Trial) -> Outcome:
    """Run a trial in a process that may have run trials of another experiment before."""
    global _worker
    if _worker is None or _worker[0] != experiment.digest:
        _worker = (experiment.digest, Worker(experiment))
    return _worker[1].run(trial)
