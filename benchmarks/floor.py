"""What one isolated run costs, beside the cheapest things that a machine can do in its place."""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass

from sandboxes.base import Job, Profile
from sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox, find_bwrap

SECONDS = 1.5
CONCURRENCY = 2
_PYTHON = (sys.executable, "-I", "-S", "-c", "pass")
_BWRAP = ("--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev")
_JOB = Job(guest="sandboxes.runner.probe:answer")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way of running costs."""

    name: str
    p50_ms: float
    """Median time of one run, one after the other."""
    per_second: float
    """Runs a second, two at a time."""


def costs() -> Iterator[Cost]:
    """Measure each way, from the cheapest to the dearest that does without Assay, and Assay."""
    resident_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    yield _cost(f"fork of a loaded interpreter of {resident_mb} MB", [_fork] * CONCURRENCY)
    yield _cost("python -I -S -c pass", [lambda: _start(*_PYTHON)] * CONCURRENCY)
    bwrap = find_bwrap()
    yield _cost("bwrap … python -I -S -c pass", [lambda: _start(bwrap, *_BWRAP, *_PYTHON)] * CONCURRENCY)
    with ExitStack() as stack:
        warm = [
            stack.enter_context(closing(BubblewrapSandbox(Profile("bench", ()), BubblewrapConfig())))
            for _ in range(CONCURRENCY)
        ]
        yield _cost("a job in a warm sandbox", [_job_runner(sandbox) for sandbox in warm])


def _job_runner(sandbox: BubblewrapSandbox) -> Callable[[], object]:
    return lambda: sandbox.run(_JOB)


def _cost(name: str, runs: list[Callable[[], object]]) -> Cost:
    for run in runs:
        run()
    durations = _repeat(runs[0])
    with ThreadPoolExecutor(len(runs)) as pool:
        counts = [len(done) for done in pool.map(_repeat, runs)]
    return Cost(name, statistics.median(durations) * 1e3, sum(counts) / SECONDS)


def _repeat(run: Callable[[], object]) -> list[float]:
    durations = []
    end = time.perf_counter() + SECONDS
    while (started := time.perf_counter()) < end:
        run()
        durations.append(time.perf_counter() - started)
    return durations


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _start(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
