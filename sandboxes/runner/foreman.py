"""The foreman: has the powers of a guest and is process 1 of a job's namespaces; it forks the job's cases one by one.

All that bounds and parts a guest is set up in it once, so that a case costs a fork. What a case leaves, it ends and
removes. A case has the foreman's uid, yet can do nothing to it: process 1 is deaf to signals from inside, undumpable,
and the system-call filter refuses the rest. Of the job it knows the files of the work folder, no input and no argument.
"""

import fcntl
import gc
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from sandboxes.runner import linux, tree
from sandboxes.runner.brief import Brief
from sandboxes.runner.child import call_and_note, give_up_powers, resource_bounds, take_on
from sandboxes.runner.line import Line
from sandboxes.runner.place import Place
from sandboxes.runner.seccomp import SystemCallFilters

_FIRST_OWN = 4  # descriptors below are a case's: its standard streams and the pipe for its result


class ForemansGiven(NamedTuple):
    """The descriptors that a foreman is given."""

    line: int
    """To the warden."""
    files: int
    """A brief with the files of the work folder."""
    fault: int
    """A pipe for a set-up that fails."""


def run_foreman(
    function: Callable[[Any], Any],
    given: ForemansGiven,
    limits: dict[str, float],
    place: Place,
    system_calls: SystemCallFilters,
) -> NoReturn:
    """Become the foreman of a job, whose cases have this guest function and these limits, and never return."""
    code = 1
    try:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 is deaf only to signals without a handler
            others_of_uid = place.others_of_uid() + 1  # the foreman
            given = _keep_only(given)
            place.part()
            place.furnish(limits)
            os.chdir(place.work_folder)
            os.umask(0o022)
            bounds = resource_bounds(limits, others_of_uid)
            foreman = _Foreman(function, Line(socket.socket(fileno=given.line)), given.files, bounds)
            give_up_powers(place.uid_of("guest"), system_calls)
        except BaseException as failure:
            os.write(given.fault, f"{type(failure).__name__}: {failure}".encode()[:1000])
            raise
        os.close(given.fault)
        foreman.lead()
        code = 0
    finally:
        os._exit(code)


def _keep_only(given: ForemansGiven) -> ForemansGiven:
    """Close what of the zygote is of no use here, and return the given descriptors' new numbers."""
    parked = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 100) for descriptor in given]
    for number, descriptor in enumerate(parked):
        os.dup2(descriptor, _FIRST_OWN + number, inheritable=False)
    linux.close_from(_FIRST_OWN + len(parked))
    return ForemansGiven(*range(_FIRST_OWN, _FIRST_OWN + len(parked)))


class _Foreman:
    def __init__(
        self, function: Callable[[Any], Any], line: Line, files: int, bounds: list[tuple[int, tuple[int, int]]]
    ) -> None:
        self._function = function
        self._line = line
        self._files = Brief(files)
        self._bounds = bounds
        self._work_folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        for number in range(_FIRST_OWN):
            os.dup2(self._nothing, number)
        self._poll = select.poll()
        self._poll.register(line.fileno(), select.POLLIN)

    def lead(self) -> None:
        """Run cases until the warden has none."""
        while (asked := self._line.hear()) is not None:
            message, descriptors = asked
            if "run" in message:  # an order to end what has just ended says nothing any more
                self._run(descriptors)

    def _run(self, descriptors: list[int]) -> None:
        self._files.place_files()
        for number, descriptor in enumerate(descriptors[:_FIRST_OWN]):
            os.dup2(descriptor, number, inheritable=number < 3)
        pid = linux.fork()
        if pid == 0:
            self._be_case(descriptors[_FIRST_OWN:])
        for descriptor in descriptors:
            os.close(descriptor)
        for number in range(_FIRST_OWN):
            os.dup2(self._nothing, number)
        self._await_end(pid)
        _, status, usage = os.wait4(pid, 0)
        heirs_cpu_seconds = _end_all()
        _clear(self._work_folder)
        self._line.tell(
            {
                "ended": "guest",
                "own_pid": pid,
                "status": status,
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "heirs_cpu_seconds": heirs_cpu_seconds,
                "peak_memory_bytes": usage.ru_maxrss * 1024,
            }
        )

    def _be_case(self, brief: list[int]) -> NoReturn:
        code = 1
        try:
            argument = Brief(brief[0]).argument() if brief else None
            linux.close_from(_FIRST_OWN)
            os.setsid()
            take_on(self._bounds)
            linux.set_dumpable()  # there is nothing in it to hide, and the warden must see how much is shared
            signal.signal(signal.SIGINT, signal.default_int_handler)
            gc.enable()
            code = call_and_note(self._function, [argument])
        finally:
            os._exit(code)

    def _await_end(self, pid: int) -> None:
        """Wait until a case's process ends, by itself or since the warden wants it."""
        pidfd = os.pidfd_open(pid)
        self._poll.register(pidfd, select.POLLIN)
        while all(descriptor != pidfd for descriptor, _ in self._poll.poll()):
            if self._line.hear() is None:
                os._exit(0)
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        self._poll.unregister(pidfd)
        os.close(pidfd)


def _end_all() -> float:
    """End every other process of the namespace, and return the CPU time of those that came to this one, in seconds."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return 0.0
    cpu_seconds = 0.0
    while True:
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return cpu_seconds
        cpu_seconds += usage.ru_utime + usage.ru_stime


def _clear(folder: int) -> None:
    """Make the work folder, which is the current one, what it was before the first case.

    Nothing that a case may have done must make this fail: the case's verdict would become an error.
    """
    os.fchmod(folder, 0o700)  # first, and by descriptor: all else needs what a case may have taken away
    try:
        for name in os.listdir(folder):
            os.unlink(name)
    except OSError:  # a folder
        tree.empty(".")
    for name in os.listxattr(folder):
        os.removexattr(folder, name)
