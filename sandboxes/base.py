"""The sandbox interface: jobs go in, outcomes come out.

A job is one isolated set-up (namespaces, work folder) in which one or more cases run, each in a forked child of its
own. What runs is named by `module:function` of a module that the sandbox's profile preloads: trusted code, which may
then execute untrusted text it gets as its argument. A case may add a driver, a second process that the guest cannot
reach, connected to it by a socket; tests of a completion's functions run there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import JsonValue

Limit = Literal["cpu_timeout", "wall_timeout", "memory", "output", "processes", "file_size", "open_files"]
"""A bound that a job's process broke, by name."""


class SandboxError(Exception):
    """Base of what the sandbox itself can fail at; never caused by what a completion's code did within its bounds."""


class SandboxUnavailable(SandboxError):
    """This machine cannot isolate; the message says what to change. It stops a start: there is no weaker mode."""


class SandboxLost(SandboxError):
    """The sandbox died or stopped making sense in the middle of a job; the job has no outcome."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one case. Each is reported by name when hit."""

    cpu_seconds: float = 5.0
    wall_seconds: float = 20.0
    memory_bytes: int = 512 << 20
    """Resident memory of all of the case's processes together; each one's address space is bounded as well."""
    output_bytes: int = 1 << 20
    """Standard output and standard error, each. All cases of a job together may write 64 times as much."""
    result_bytes: int = 4 << 20
    """What a trusted function may return."""
    processes: int = 32
    """Processes and threads of one case."""
    open_files: int = 128
    file_bytes: int = 64 << 20
    """Size of the work folder, and of any one file."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a sandbox has ready: modules loaded once, before any job, and the packages they need."""

    name: str
    modules: tuple[str, ...]
    """Modules of this project to preload; each must import nothing outside the standard library and `packages`."""
    packages: tuple[str, ...] = ()
    """Top-level packages of the environment that are visible inside, such as `sympy`."""
    paths: tuple[str, ...] = ()
    """Programs and folders of this machine that are visible inside at their own place, such as a compiler."""
    prepare: str | None = None
    """`module:function`, called once in the sandbox before any job: what all jobs would else do for themselves."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run inside a job."""

    argument: JsonValue = None
    """Argument of the job's guest function."""
    driver_argument: JsonValue = None
    """Argument of the job's driver function, when there is one."""
    stdin: bytes = b""


@dataclass(frozen=True, slots=True)
class Job:
    """One isolated set-up and the cases that run in it, in order."""

    guest: str
    """`module:function` run in the case's process: `function(argument)`, or `function(argument, socket)` with a driver.

    Its return value, JSON, is the outcome's `result` when there is no driver. Untrusted code that it runs may forge
    that value; a verifier that needs it unforged uses a driver.
    """
    driver: str | None = None
    """`module:function` run as `function(argument, socket)` in a process that the guest cannot reach."""
    cases: Sequence[Case] = (Case(),)
    limits: Limits = Limits()
    files: dict[str, bytes] = field(default_factory=dict)
    """Placed in the work folder before the first case; relative paths without `..`."""
    wants_result: bool = True
    """Whether what the guest function returns is asked for; off where the guest runs only untrusted code."""
    stop_after_failure: bool = False
    """Skip the cases after the first one that did not exit with 0; skipped cases have no outcome."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case did: facts, no judgement."""

    exit_code: int | None
    """Exit code of the guest; None when a signal or a limit ended it."""
    signal: int | None
    limit: Limit | None
    """The bound that ended the guest."""
    stdout: bytes
    stderr: bytes
    result: JsonValue = None
    """What the guest function returned, or the driver function where there is a driver; None when it did not return."""
    returned: bool = False
    """The function that gives `result` ran to its end."""
    driver_failure: str | None = None
    """How the driver ended when it did not return: a limit's name, or the last line of its traceback."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether the guest ended by itself with exit code 0."""
        return self.exit_code == 0 and self.limit is None


class Sandbox(Protocol):
    """A warm, isolated place that runs one job at a time. A lifetime ends with `close`."""

    def run(self, job: Job) -> list[Outcome]:
        """Run the job's cases and return their outcomes, in order.

        Returns fewer outcomes than cases only when `stop_after_failure` ended the job early.

        Raises:
            SandboxLost: the sandbox is gone or in doubt, and must not be used again.
        """
        ...

    def close(self) -> None:
        """End the sandbox and everything in it. Safe to call twice."""
        ...


class Sandboxes(Protocol):
    """A source of warm sandboxes, by profile."""

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        """Run the job in a sandbox of that profile.

        Raises:
            SandboxLost: the sandbox died during the job. It is replaced for the next one.
            SandboxUnavailable: this machine cannot isolate.
        """
        ...
