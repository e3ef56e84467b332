"""The warden: takes one job after the other from the host, has its cases forked, and watches their bounds.

It alone holds the channel to the host. No case's process descends from it, so that none inherits what it knows; none
can look into it (it is undumpable), nor signal it (they see no process of it, or by their uid or Landlock may not).
"""

import contextlib
import gc
import os
import socket
import time
from typing import Any

from sandboxes.runner import frames
from sandboxes.runner.brief import memory_file, write_brief
from sandboxes.runner.frames import DescriptorEnd
from sandboxes.runner.place import Forked, Place, Role
from sandboxes.runner.watch import Connections, HostGone, Watch, Watched, ZygoteGone
from sandboxes.runner.zygote import Line

_OUTPUTS_PER_JOB = 64


class SetUpError(Exception):
    """A case's process could not be set up: the sandbox's fault, never the completion's."""


class Warden:
    """Serves one host, by way of one zygote."""

    def __init__(self, host: DescriptorEnd, line: Line, zygote: int, place: Place) -> None:
        self._host = host
        self._line = line
        self._zygote = zygote
        self._place = place

    def serve(self) -> int:
        """Run the host's jobs until it goes or something is in doubt, and return this process's exit code."""
        gc.freeze()
        while (job := frames.receive(self._host.read)) is not None:
            try:
                self._run_job(job)
                frames.send(self._host.write, {"done": True})
            except HostGone:
                return 0
            except (SetUpError, ZygoteGone, OSError) as error:
                with contextlib.suppress(OSError):
                    frames.send(self._host.write, {"fault": f"{type(error).__name__}: {error}"})
                return 1
        return 0

    def _run_job(self, job: dict[str, Any]) -> None:
        output_left = int(job["limits"]["output_bytes"]) * _OUTPUTS_PER_JOB
        with contextlib.ExitStack() as open_until_end:
            briefs = _Briefs(job, self._read_secret() if job["driver"] is not None else None, open_until_end)
            for case in job["cases"]:
                outcome = self._run_case(job, case, briefs, output_left)
                frames.send(self._host.write, {"outcome": outcome})  # one by one, so that little is ever held here
                output_left -= (len(outcome["stdout"]) + len(outcome["stderr"])) * 3 // 4  # it is in base64
                if job["stop_after_failure"] and (outcome["exit_code"] != 0 or outcome["limit"]):
                    break

    def _read_secret(self) -> bytes:
        """Return the driver's argument, which comes in a frame of its own."""
        secret = frames.receive_unread(self._host.read)
        if secret is None:
            raise HostGone
        return secret

    def _run_case(
        self, job: dict[str, Any], case: dict[str, Any], briefs: "_Briefs", output_left: int
    ) -> dict[str, Any]:
        limits = {**job["limits"], "output_bytes": max(0, min(job["limits"]["output_bytes"], output_left))}
        self._place.make_work_folder()
        with contextlib.ExitStack() as open_until_end:
            watch = self._start(job, case, briefs, limits, open_until_end)
            watch.run()
        self._place.remove_work_folder()
        return watch.outcome(wants_result=job["wants_result"])

    def _start(
        self,
        job: dict[str, Any],
        case: dict[str, Any],
        briefs: "_Briefs",
        limits: dict[str, float],
        open_until_end: contextlib.ExitStack,
    ) -> Watch:
        started = time.monotonic()
        stdin = frames.to_bytes(case["stdin"])
        guest = _Equipment("guest", job["guest"], self._place)
        if job["driver"] is None:
            equipment = [guest]
            shared = None
            guest.give(stdin, briefs.guests(case["argument"]), None)
        else:
            driver = _Equipment("driver", job["driver"], self._place)
            equipment = [driver, guest]
            shared, drivers_end = socket.socketpair()
            open_until_end.enter_context(shared)
            driver.give(b"", briefs.drivers(), drivers_end.fileno())
            guest.give(stdin, briefs.guests(case["argument"]), shared.fileno())
        parts = [
            {"role": part.role, "function": part.function, "has_channel": len(equipment) > 1} for part in equipment
        ]
        given = [descriptor for part in equipment for descriptor in part.given]
        self._line.tell({"parts": parts, "limits": limits}, given)
        for part in equipment:
            part.close_given()
            part.keep_until_end(open_until_end)
        if job["driver"] is not None:
            drivers_end.close()
        forked, pidfds = self._hear_of_forks()
        watch = Watch(limits, started, self._place, Connections(self._host.incoming, self._line, self._zygote))
        for part, process, pidfd in zip(equipment, forked, pidfds, strict=True):
            open_until_end.callback(os.close, pidfd)
            fault = part.await_set_up()
            if fault:
                raise SetUpError(fault)
            watch.add(part.role, Watched(process, pidfd, part.stdout, part.stderr, part.result))
        watch.guest_end = shared
        return watch

    def _hear_of_forks(self) -> tuple[list[Forked], list[int]]:
        heard = self._line.hear()
        if heard is None:
            raise ZygoteGone("the zygote ended")
        answer, pidfds = heard
        if isinstance(answer, dict):
            raise SetUpError(answer["fault"])
        return [Forked(*process) for process in answer], pidfds


class _Briefs:
    """The briefs of a job; cases with the same argument share one."""

    def __init__(self, job: dict[str, Any], secret: bytes | None, open_until_end: contextlib.ExitStack) -> None:
        self._files = {path: frames.to_bytes(content) for path, content in job["files"].items()}
        self._secret = secret
        self._open_until_end = open_until_end
        self._last: tuple[str, int] | None = None

    def guests(self, argument: str) -> int:
        """Return the brief of a guest with this argument, in JSON."""
        if self._last is None or self._last[0] != argument:
            brief = write_brief(argument.encode("utf-8", "surrogatepass"), self._files)
            self._open_until_end.callback(os.close, brief)
            self._last = argument, brief
        return self._last[1]

    def drivers(self) -> int:
        """Return the driver's brief."""
        assert self._secret is not None
        brief = write_brief(self._secret, {})
        self._open_until_end.callback(os.close, brief)
        return brief


class _Equipment:
    """What a case's process is given, and the warden's ends of it."""

    def __init__(self, role: Role, function: str, place: Place) -> None:
        self.role: Role = role
        self.function = function
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        self.result, result = os.pipe()
        self._fault, fault = os.pipe()
        self._written = [stdout, stderr, result, fault]
        self._stdin = -1
        self.given: list[int] = []
        """In the order of `sandboxes.runner.child.Given`."""
        for descriptor in (self.stdout, self.stderr, self.result):
            os.set_blocking(descriptor, False)  # a guest may take its own output back
        uid = place.uid_of(role)
        if uid is not None:
            for descriptor in (stdout, stderr):  # so that the child may open /dev/stdout
                os.fchown(descriptor, uid, uid)

    def give(self, stdin: bytes, brief: int, channel: int | None) -> None:
        """Choose the rest of what is given."""
        self._stdin = memory_file(stdin) if stdin else os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        stdout, stderr, result, fault = self._written
        self.given = [self._stdin, stdout, stderr, result, fault if channel is None else channel, fault, brief]

    def close_given(self) -> None:
        """Close what was handed on and is of no use here."""
        for descriptor in (self._stdin, *self._written):
            os.close(descriptor)

    def keep_until_end(self, open_until_end: contextlib.ExitStack) -> None:
        """Close this side's ends at the case's end."""
        for descriptor in (self.stdout, self.stderr, self.result, self._fault):
            open_until_end.callback(os.close, descriptor)

    def await_set_up(self) -> str:
        """Wait until the process is set up, and return what went wrong, if anything did.

        The process closes its end once it is set up, so this wait is short.
        """
        return os.read(self._fault, 1000).decode(errors="replace")
