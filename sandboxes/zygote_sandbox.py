"""What all backends share that keep the runner (`sandboxes.runner`) at the other end of a channel."""

import json
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, get_args

from pydantic import JsonValue

from sandboxes.base import Case, Job, Limit, Limits, Outcome, Profile, SandboxLost, SandboxUnavailable
from sandboxes.library import LIBRARY
from sandboxes.runner import frames
from sandboxes.runner.watch import WALL_STRETCH

_LIMITS = frozenset(get_args(Limit))
_START_SECONDS = 60.0
_GRACE_SECONDS = 10.0
_SECONDS_PER_CASE = 0.5  # for setting one up, on a machine with much else to do


def start_runner(library: str = LIBRARY) -> list[str]:
    """Return arguments that make a Python inside a sandbox the runner; its own arguments follow."""
    program = f"import sys; sys.path.insert(0, {library!r}); from sandboxes.runner.main import main; sys.exit(main())"
    # Not -I, which would ignore the fixed hash seed.
    return ["-s", "-P", "-S", "-B", "-X", "utf8", "-c", program]


def profile_arguments(profile: Profile) -> list[str]:
    """Return the runner's arguments, the last ones, that say what it has ready."""
    return [*(("--prepare", profile.prepare) if profile.prepare else ()), *profile.modules]


class ZygoteSandbox(ABC):
    """A sandbox (see `sandboxes.base.Sandbox`) that is starting, or warm; subclasses start and end it."""

    def __init__(self, read: frames.Read, write: frames.Write) -> None:
        self._read = read
        self._write = write
        self._is_warm = False

    @abstractmethod
    def set_timeout(self, seconds: float) -> None:
        """Let reading and writing fail with OSError when nothing moves for so long."""

    @abstractmethod
    def explain(self, failure: str) -> str:
        """Return why the sandbox did not start and what to change; `failure` is what the channel said."""

    def own_memory_bytes(self) -> int:
        """Return the resident memory of the sandbox's own processes, between jobs; 0 where the backend bounds it."""
        return 0

    @abstractmethod
    def close(self) -> None:
        """See `sandboxes.base.Sandbox.close`."""

    def wait_until_warm(self) -> None:
        """Run a first, tiny job, unless that was done; it waits until the runner has loaded what it preloads.

        Raises:
            SandboxUnavailable: no right answer came in time. The sandbox is closed.
        """
        if self._is_warm:
            return
        self.set_timeout(_START_SECONDS)
        job = Job(guest="sandboxes.runner.probe:answer", cases=[Case(argument="ready")])
        try:
            (outcome,) = self._exchange(job)
        except SandboxLost as lost:
            reason = self.explain(str(lost))
            self.close()
            raise SandboxUnavailable(reason) from None
        if not isinstance(outcome.result, dict) or outcome.result.get("argument") != "ready":
            self.close()
            raise SandboxUnavailable(f"the sandbox gave a wrong answer to its first job: {outcome}")
        self._is_warm = True

    def run(self, job: Job) -> list[Outcome]:
        """See `sandboxes.base.Sandbox.run`."""
        self.wait_until_warm()
        if job.driver is not None and len(job.cases) != 1:
            raise ValueError("a job with a driver has one case: what its driver found must not reach another guest")
        self.set_timeout(job.limits.wall_seconds * WALL_STRETCH + _SECONDS_PER_CASE + _GRACE_SECONDS)
        try:
            return self._exchange(job)
        except SandboxLost:
            self.close()
            raise

    def _exchange(self, job: Job) -> list[Outcome]:
        try:
            frames.send(self._write, _job_message(job))
            if job.driver is not None:
                # In a frame of its own, which is handed on to the driver unread.
                frames.send(self._write, job.cases[0].driver_argument)
            outcomes: list[Outcome] = []
            while True:
                answer = frames.receive(self._read, _longest_answer(job.limits))
                if not isinstance(answer, dict):
                    raise SandboxLost("the sandbox ended without an answer")
                if "fault" in answer:
                    raise SandboxLost(f"the sandbox failed: {answer['fault']}")
                if "outcome" not in answer:
                    return outcomes
                outcomes.append(_outcome(answer["outcome"]))
        except (OSError, ValueError, KeyError, TypeError, frames.FrameError) as error:
            raise SandboxLost(f"the sandbox broke off: {error}") from None


def _longest_answer(limits: Limits) -> int:
    """Return a bound on one outcome's frame: base64 makes four characters of three bytes, JSON may double a result."""
    return 4 * limits.output_bytes + 2 * limits.result_bytes + (1 << 20)


def _job_message(job: Job) -> dict[str, Any]:
    return {
        "guest": job.guest,
        "driver": job.driver,
        "cases": [{"argument": _json(c.argument), "stdin": frames.from_bytes(c.stdin)} for c in job.cases],
        "limits": asdict(job.limits),
        "files": {path: frames.from_bytes(content) for path, content in job.files.items()},
        "wants_result": job.wants_result,
        "stop_after_failure": job.stop_after_failure,
    }


def _json(argument: JsonValue) -> str:
    """Return an argument as text, so that only the process it is for reads it."""
    return json.dumps(argument, ensure_ascii=False, separators=(",", ":"))


def _outcome(fields: dict[str, Any]) -> Outcome:
    """Return the outcome of a frame; what a guest could have put there is checked, not believed."""
    checked = dict(fields)
    if checked["limit"] not in _LIMITS:
        checked["limit"] = None
    if checked["result"] is not None:
        try:
            checked["result"] = json.loads(checked["result"])
        except (TypeError, ValueError, RecursionError):
            checked |= {"result": None, "returned": False}
    for name in ("stdout", "stderr"):
        checked[name] = frames.to_bytes(checked[name])
    return Outcome(**checked)
