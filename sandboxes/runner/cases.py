"""How the warden has a job's cases run: each by the zygote, or all by a foreman that the zygote forks for the job."""

import contextlib
import os
import signal
import socket
import time
from typing import Any, NamedTuple

from sandboxes.runner import frames
from sandboxes.runner.brief import memory_file, write_brief
from sandboxes.runner.line import Line
from sandboxes.runner.place import Forked, Place, Role
from sandboxes.runner.watch import SandboxBroken, Watch, Watched


class Hands(NamedTuple):
    """What a warden works with."""

    host: int
    """Descriptor of the channel to the host."""
    line: Line
    """To the zygote."""
    zygote: int
    """The zygote's process id."""
    place: Place

    def hear(self) -> tuple[Any, list[int]]:
        """Return what the zygote says next.

        Raises:
            SandboxBroken: nothing, or that something went wrong.
        """
        heard = self.line.hear()
        if heard is None:
            raise SandboxBroken("the zygote ended")
        if isinstance(heard[0], dict) and "fault" in heard[0]:
            raise SandboxBroken(heard[0]["fault"])
        return heard


class CaseByCase:
    """Has the zygote fork each case's processes, apart from all others: a guest, and a driver where the job has one."""

    def __init__(
        self, hands: Hands, job: dict[str, Any], secret: bytes | None, open_until_end: contextlib.ExitStack
    ) -> None:
        self._hands = hands
        self._job = job
        self._secret = secret
        self._briefs = _Briefs(job, open_until_end)

    def run(self, case: dict[str, Any], limits: dict[str, float]) -> dict[str, Any]:
        """Run a case to its end, leave no process and no file, and return its outcome.

        Raises:
            SandboxBroken: it could not be run.
            HostGone: the host did not wait for it.
        """
        place = self._hands.place
        place.make_work_folder()
        with contextlib.ExitStack() as open_until_end:
            watch = self._start(case, limits, open_until_end)
            watch.run()
        place.remove_work_folder()
        return watch.outcome(wants_result=self._job["wants_result"])

    def _start(self, case: dict[str, Any], limits: dict[str, float], open_until_end: contextlib.ExitStack) -> Watch:
        started = time.monotonic()
        parts = [_Part("guest", self._job["guest"], self._hands.place)]
        stdin, brief = frames.to_bytes(case["stdin"]), self._briefs.brief(case["argument"])
        guest_end = None
        if self._secret is None:
            parts[0].give(stdin, brief, None)
        else:
            parts.insert(0, _Part("driver", self._job["driver"], self._hands.place))
            guest_end, drivers_end = socket.socketpair()
            open_until_end.enter_context(guest_end)
            secret = write_brief(self._secret, {})
            parts[0].give(b"", secret, drivers_end.fileno())
            parts[1].give(stdin, brief, guest_end.fileno())
        asked = [{"role": part.role, "function": part.function, "has_channel": len(parts) > 1} for part in parts]
        given = [descriptor for part in parts for descriptor in part.given]
        self._hands.line.tell({"parts": asked, "limits": limits}, given)
        for part in parts:
            part.pipes.close_given()
            open_until_end.callback(part.pipes.close)
        if guest_end is not None:
            os.close(secret)
            drivers_end.close()
        return self._watch(parts, limits, started, guest_end, open_until_end)

    def _watch(
        self,
        parts: list["_Part"],
        limits: dict[str, float],
        started: float,
        guest_end: socket.socket | None,
        open_until_end: contextlib.ExitStack,
    ) -> Watch:
        answer, pidfds = self._hands.hear()
        forked = [Forked(*process) for process in answer]
        watch = Watch(limits, started, self._hands, self._hands.line)
        watch.guest_end = guest_end
        for part, process, pidfd in zip(parts, forked, pidfds, strict=True):
            open_until_end.callback(os.close, pidfd)
            fault = os.read(part.pipes.fault, 1000)  # ends as soon as the process is set up
            if fault:
                raise SandboxBroken(fault.decode(errors="replace"))
            watch.add(part.role, Watched(process.pid, part.pipes.outputs, _Killer(pidfd)))
        return watch


class AllByForeman:
    """Has the zygote fork a foreman for the job, once, and the foreman each case's guest."""

    def __init__(self, hands: Hands, job: dict[str, Any], open_until_end: contextlib.ExitStack) -> None:
        self._hands = hands
        self._job = job
        self._files = write_brief(b"null", {path: frames.to_bytes(content) for path, content in job["files"].items()})
        open_until_end.callback(os.close, self._files)
        fault, foremans_fault = os.pipe()
        open_until_end.callback(os.close, fault)
        # A stream would do, but only here are messages with descriptors taken apart again one by one.
        own_end, foremans_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line = Line(own_end)
        self._hands.line.tell(
            {"foreman": job["guest"], "limits": job["limits"]}, [foremans_end.fileno(), self._files, foremans_fault]
        )
        foremans_end.close()
        os.close(foremans_fault)
        _, pidfds = self._hands.hear()
        os.close(pidfds[0])
        said = os.read(fault, 1000)
        if said:
            raise SandboxBroken(said.decode(errors="replace"))
        open_until_end.callback(self._dismiss, own_end)

    def _dismiss(self, own_end: socket.socket) -> None:
        own_end.close()
        self._hands.hear()  # of its end

    def run(self, case: dict[str, Any], limits: dict[str, float]) -> dict[str, Any]:
        """See `CaseByCase.run`."""
        started = time.monotonic()
        pipes = _Pipes(self._hands.place.uid_of("guest"), with_fault=False)
        stdin = _input(frames.to_bytes(case["stdin"]))
        given = [stdin, *pipes.given]
        if case["argument"] != "null":
            given.append(write_brief(case["argument"].encode("utf-8", "surrogatepass"), {}))
        self._line.tell({"run": True}, given)
        pipes.close_given()
        for descriptor in (stdin, *given[1 + len(pipes.given) :]):
            os.close(descriptor)
        watch = Watch(limits, started, self._hands, self._line)
        watch.add("guest", Watched(None, pipes.outputs, lambda: self._line.tell({"end": True})))
        watch.run()
        pipes.close()
        return watch.outcome(wants_result=self._job["wants_result"])


class _Killer:
    """Kills a process by its descriptor."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd

    def __call__(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


class _Briefs:
    """The guests' briefs of a job; cases with the same argument share one."""

    def __init__(self, job: dict[str, Any], open_until_end: contextlib.ExitStack) -> None:
        self._files = {path: frames.to_bytes(content) for path, content in job["files"].items()}
        self._open_until_end = open_until_end
        self._last: tuple[str, int] | None = None

    def brief(self, argument: str) -> int:
        """Return the descriptor of the brief with this argument, in JSON."""
        if self._last is None or self._last[0] != argument:
            brief = write_brief(argument.encode("utf-8", "surrogatepass"), self._files)
            self._open_until_end.callback(os.close, brief)
            self._last = argument, brief
        return self._last[1]


class _Pipes:
    """What a process writes to."""

    def __init__(self, uid: int | None, *, with_fault: bool) -> None:
        """Make them; `uid` is the process's own where it changes to one."""
        pairs = [os.pipe() for _ in range(4 if with_fault else 3)]
        self.outputs = (pairs[0][0], pairs[1][0], pairs[2][0])
        """The warden's ends: standard output, standard error, result."""
        self.fault = pairs[3][0] if with_fault else -1
        """The warden's end for a set-up that fails."""
        self.given = [write_end for _, write_end in pairs]
        """The process's ends."""
        for descriptor in self.outputs:
            os.set_blocking(descriptor, False)  # a guest may take its own output back
        if uid is not None:
            for descriptor in self.given[:2]:  # so that the process may open /dev/stdout
                os.fchown(descriptor, uid, uid)

    def close_given(self) -> None:
        """Close the process's ends, which it has by now."""
        for descriptor in self.given:
            os.close(descriptor)

    def close(self) -> None:
        """Close the warden's ends."""
        for descriptor in (*self.outputs, *((self.fault,) if self.fault >= 0 else ())):
            os.close(descriptor)


class _Part:
    """One process of a case, as the zygote is asked for it."""

    def __init__(self, role: Role, function: str, place: Place) -> None:
        self.role: Role = role
        self.function = function
        self.pipes = _Pipes(place.uid_of(role), with_fault=True)
        self.given: list[int] = []
        """In the order of `sandboxes.runner.child.Given`."""

    def give(self, stdin: bytes, brief: int, channel: int | None) -> None:
        """Choose the rest of what is given."""
        stdout, stderr, result, fault = self.pipes.given
        self.pipes.given.append(_input(stdin))
        self.given = [self.pipes.given[-1], stdout, stderr, result, fault if channel is None else channel, fault, brief]


def _input(stdin: bytes) -> int:
    """Return a descriptor from which a process reads its standard input."""
    return memory_file(stdin) if stdin else os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
