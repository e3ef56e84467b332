"""What isolated runs cost, beside the cheapest things that a machine can do in their place."""

import contextlib
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

import docker
from docker.errors import DockerException

from sandboxes.base import Case, Job, SandboxUnavailable
from sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox, find_bwrap
from sandboxes.docker_engine import DockerConfig, DockerSandbox
from sandboxes.zygote_sandbox import ZygoteSandbox
from verifiers.code.verifier import PROFILE

SECONDS = 3.0
CONCURRENCY = 2
TESTS = 10
_PYTHON = (sys.executable, "-I", "-S", "-c", "pass")
_BWRAP = ("--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev")
_PROGRAM = b"print(sum(map(int, input().split())))\n"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way of running costs."""

    name: str
    p50_ms: float
    """Median time of one run, one after the other."""
    per_second: float
    """Runs a second, two at a time."""
    of_floor: float
    """`per_second` by that of the first way, the bare fork."""


def costs() -> Iterator[Cost]:
    """Measure each way, from the cheapest to the dearest that does without Assay, and Assay.

    Those of the docker engine are left out where none answers, or where it lacks the image (`assay image build`).
    """
    resident_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    floor = _measure(f"fork of a loaded interpreter of {resident_mb} MB", [_fork] * CONCURRENCY)
    yield floor
    bwrap = find_bwrap()
    ways: list[tuple[str, tuple[str, ...]]] = [
        ("python -I -S -c pass", _PYTHON),
        ("bwrap … python -I -S -c pass", (bwrap, *_BWRAP, *_PYTHON)),
    ]
    for name, command in ways:
        yield _measure(name, [lambda command=command: _start(*command)] * CONCURRENCY, floor)  # type: ignore[misc]
    yield from _of_docker(floor)
    yield from _of_assay("bubblewrap", lambda: BubblewrapSandbox(PROFILE, BubblewrapConfig()), floor)
    with contextlib.suppress(SandboxUnavailable):
        yield from _of_assay("docker", lambda: DockerSandbox(PROFILE, DockerConfig()), floor)


def _of_docker(floor: Cost) -> Iterator[Cost]:
    image = DockerConfig().image
    with ExitStack() as stack:
        try:
            client = docker.from_env()
            stack.callback(client.close)
            client.images.get(image)
            sleeper = ["-c", "import time; time.sleep(600)"]
            running = client.containers.run(image, sleeper, network_mode="none", detach=True, auto_remove=True)
            stack.callback(running.kill)
        except DockerException:
            return
        inside = ("-I", "-S", "-c", "pass")
        ways = {
            "docker exec … python": ("docker", "exec", str(running.id), "/usr/bin/python3", *inside),
            "docker run … python": ("docker", "run", "--rm", "--network", "none", image, *inside),
        }
        for name, command in ways.items():
            yield _measure(name, [lambda command=command: _start(*command)] * CONCURRENCY, floor)  # type: ignore[misc]


def _of_assay(backend: str, start: Callable[[], ZygoteSandbox], floor: Cost) -> Iterator[Cost]:
    """Measure a program with standard input, once and in a job of many."""
    with ExitStack() as stack:
        warm = [stack.enter_context(closing(start())) for _ in range(CONCURRENCY)]
        for tests in (1, TESTS):
            name = f"a job of {tests} test{'s' if tests > 1 else ''}, warm {backend}"
            cost = _measure(name, [_job_runner(sandbox, tests) for sandbox in warm], floor)
            yield cost
            if tests > 1:
                yield Cost(
                    "    each of these tests", cost.p50_ms / tests, cost.per_second * tests, cost.of_floor * tests
                )


def _job_runner(sandbox: ZygoteSandbox, tests: int) -> Callable[[], object]:
    job = Job(
        guest="verifiers.code.script_guest:run_script",
        cases=[Case(stdin=b"%d 4\n" % number) for number in range(tests)],
        files={"main.py": _PROGRAM},
        wants_result=False,
    )

    def run() -> None:
        outputs = [outcome.stdout for outcome in sandbox.run(job)]
        assert outputs == [b"%d\n" % (number + 4) for number in range(tests)], outputs

    return run


def _measure(name: str, runs: list[Callable[[], object]], floor: Cost | None = None) -> Cost:
    for run in runs:
        run()
    durations = _repeat(runs[0])
    with ThreadPoolExecutor(len(runs)) as pool:
        counts = [len(done) for done in pool.map(_repeat, runs)]
    per_second = sum(counts) / SECONDS
    return Cost(name, statistics.median(durations) * 1e3, per_second, per_second / floor.per_second if floor else 1.0)


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
