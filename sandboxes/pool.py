"""The warm sandboxes of one worker process: for each profile one in use and spares that get warm meanwhile.

A sandbox is replaced after a number of jobs, when it has grown, when it is lost, and when a job got past a bound by
more than measuring explains. The spare takes its place at once, so that no job waits for a start.
"""

import contextlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Literal, Self, assert_never

from sandboxes.base import Job, Outcome, Profile, SandboxLost, SandboxUnavailable
from sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox
from sandboxes.process import ProcessConfig, ProcessSandbox
from sandboxes.zygote_sandbox import ZygoteSandbox

Backend = Literal["bubblewrap", "docker", "process"]

_CPU_SLACK_SECONDS = 1.0
_MEMORY_SLACK = 1.5
_JOBS_BETWEEN_MEASURING = 50


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """How a worker's sandboxes are made and how long they are used."""

    backend: Backend = "bubblewrap"
    bwrap: str | None = None
    """Path of the bwrap program; found by itself when not given."""
    docker_image: str = "assay-sandbox:latest"
    docker_runtime: str | None = None
    """Another runtime of the engine, such as `runsc` (gVisor)."""
    process_anywhere: bool = False
    """Let the process backend start also where the place is not known to be an isolation of its own."""
    recycle_after_jobs: int = 1000
    """Jobs after which a sandbox is replaced by a fresh one."""
    spares: int = 1
    """Sandboxes kept warm beside the one in use, for each profile."""
    own_memory_bytes: int = 1 << 30
    """A sandbox whose own processes hold more than this between two jobs is replaced."""
    docker_memory_bytes: int = 4 << 30
    """Bound of a container, jobs included."""
    docker_cpus: float | None = None
    """CPUs that a container may use at most; no bound when not given."""


def start_sandbox(profile: Profile, config: SandboxConfig) -> ZygoteSandbox:
    """Start a sandbox of the configured backend; it gets warm by itself.

    Raises:
        SandboxUnavailable: this machine cannot run that backend; the message says what to change.
    """
    match config.backend:
        case "bubblewrap":
            return BubblewrapSandbox(profile, BubblewrapConfig(config.bwrap))
        case "docker":
            # Imported where it is used: a machine without an engine need not load its client.
            from sandboxes.docker_engine import DockerConfig, DockerSandbox  # noqa: PLC0415

            return DockerSandbox(
                profile,
                DockerConfig(
                    config.docker_image, config.docker_runtime, config.docker_memory_bytes, cpus=config.docker_cpus
                ),
            )
        case "process":
            return ProcessSandbox(profile, ProcessConfig(config.process_anywhere))
    assert_never(config.backend)


@dataclass(slots=True)
class PoolState:
    """What a pool has done so far, for one profile."""

    profile: str
    warm: int = 0
    """Sandboxes there now, the one in use among them."""
    started: int = 0
    jobs: int = 0
    recycled: int = 0
    """Replaced after their number of jobs, or since they had grown."""
    lost: int = 0
    """Died, or stopped making sense."""
    doubted: int = 0
    """Replaced because a job got past a bound."""


def total(states: Iterable[PoolState]) -> list[PoolState]:
    """Return the states of several pools as if they were one, by profile."""
    totals: dict[str, PoolState] = {}
    for state in states:
        whole = totals.setdefault(state.profile, PoolState(state.profile))
        for field_ in fields(PoolState):
            if field_.name != "profile":
                setattr(whole, field_.name, getattr(whole, field_.name) + getattr(state, field_.name))
    return [totals[name] for name in sorted(totals)]


@dataclass(slots=True)
class _Shelf:
    """The sandboxes of one profile; the first is in use."""

    state: PoolState
    sandboxes: deque[ZygoteSandbox] = field(default_factory=deque)
    jobs_of_first: int = 0


class LocalSandboxes:
    """See `sandboxes.base.Sandboxes`. For one thread, which must live as long: the kernel ends sandboxes with it."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._shelves: dict[Profile, _Shelf] = {}

    def warm(self, profiles: Iterable[Profile]) -> None:
        """Start the sandboxes of these profiles, unless they are running, and wait until the first ones are warm.

        Raises:
            SandboxUnavailable: this machine cannot isolate.
        """
        profiles = list(profiles)
        shelves = [self._filled(profile) for profile in profiles]
        for profile, shelf in zip(profiles, shelves, strict=True):
            self._first_warm(profile, shelf)

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        """See `sandboxes.base.Sandboxes.run`."""
        shelf = self._filled(profile)
        sandbox = self._first_warm(profile, shelf)
        try:
            outcomes = sandbox.run(job)
        except SandboxLost:
            shelf.state.lost += 1
            self._replace_first(profile, shelf)
            raise
        shelf.state.jobs += 1
        shelf.jobs_of_first += 1
        if _past_a_bound(job, outcomes):
            shelf.state.doubted += 1
            self._replace_first(profile, shelf)
        elif shelf.jobs_of_first >= self._config.recycle_after_jobs or self._has_grown(shelf, sandbox):
            shelf.state.recycled += 1
            self._replace_first(profile, shelf)
        return outcomes

    def _has_grown(self, shelf: _Shelf, sandbox: ZygoteSandbox) -> bool:
        return (
            shelf.jobs_of_first % _JOBS_BETWEEN_MEASURING == 0
            and sandbox.own_memory_bytes() > self._config.own_memory_bytes
        )

    def state(self) -> list[PoolState]:
        """Return what the pool has done so far, by profile."""
        for shelf in self._shelves.values():
            shelf.state.warm = len(shelf.sandboxes)
        return [shelf.state for shelf in self._shelves.values()]

    def _filled(self, profile: Profile) -> _Shelf:
        shelf = self._shelves.setdefault(profile, _Shelf(PoolState(profile.name)))
        while len(shelf.sandboxes) < 1 + self._config.spares:
            shelf.sandboxes.append(start_sandbox(profile, self._config))
            shelf.state.started += 1
        return shelf

    def _first_warm(self, profile: Profile, shelf: _Shelf) -> ZygoteSandbox:
        """Return the sandbox in use, once it is warm; a spare that died while it waited is replaced."""
        for _ in range(self._config.spares + 1):
            try:
                shelf.sandboxes[0].wait_until_warm()
                break
            except SandboxUnavailable:
                if shelf.state.jobs == 0:
                    raise  # nothing ever worked here: no use in trying again
                shelf.state.lost += 1
                self._replace_first(profile, shelf)
        shelf.sandboxes[0].wait_until_warm()
        return shelf.sandboxes[0]

    def _replace_first(self, profile: Profile, shelf: _Shelf) -> None:
        shelf.sandboxes.popleft().close()
        shelf.jobs_of_first = 0
        self._filled(profile)

    def close(self) -> None:
        """End all sandboxes."""
        with contextlib.ExitStack() as closing:
            for shelf in self._shelves.values():
                for sandbox in shelf.sandboxes:
                    closing.callback(sandbox.close)
            self._shelves.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _past_a_bound(job: Job, outcomes: list[Outcome]) -> bool:
    """Whether a job used more than its bounds by so much that something did not hold it."""
    limits = job.limits
    return any(
        outcome.cpu_seconds > limits.cpu_seconds * 1.5 + _CPU_SLACK_SECONDS
        or outcome.peak_memory_bytes > limits.memory_bytes * _MEMORY_SLACK
        for outcome in outcomes
    )
