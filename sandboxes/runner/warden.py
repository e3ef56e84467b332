"""The warden: one for each job. It starts the job's cases, one by one, watches their bounds, and ends what they leave.

It alone holds the channel to the host. A case's processes have other uids, or cannot look into it (it is undumpable),
and cannot signal it (by their uid, by Landlock, or since process 1 of a namespace ignores what it did not ask for).
"""

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from sandboxes.runner import linux
from sandboxes.runner.child import Descriptors, run_child
from sandboxes.runner.frames import DescriptorEnd, receive, send, to_bytes
from sandboxes.runner.place import Place, Role
from sandboxes.runner.seccomp import SystemCallFilters
from sandboxes.runner.watch import HostGone, Watch, Watched

_OUTPUTS_PER_JOB = 64
HOST_CLOSED = 3
"""Exit code that says the host is gone."""


class SetUpError(Exception):
    """A case's process could not be set up: the sandbox's fault, never the completion's."""


def run_job(host: DescriptorEnd, system_calls: SystemCallFilters, place: Place) -> int:
    """Part from the other processes, wait for a job, run it, answer, and return this process's exit code."""
    linux.die_with_parent(signal.SIGKILL)
    linux.set_undumpable()
    place.enter()
    job = receive(host.read)
    if job is None:
        return HOST_CLOSED
    output_left = int(job["limits"]["output_bytes"]) * _OUTPUTS_PER_JOB
    try:
        for case in job["cases"]:
            outcome = Case(host, job, case, system_calls, place).run(output_left)
            send(host.write, {"outcome": outcome})  # one by one, so that little is ever held here
            output_left -= (len(outcome["stdout"]) + len(outcome["stderr"])) * 3 // 4  # it is in base64
            if job["stop_after_failure"] and (outcome["exit_code"] != 0 or outcome["limit"]):
                break
    except HostGone:
        return HOST_CLOSED
    except (SetUpError, OSError) as error:
        send(host.write, {"fault": f"{type(error).__name__}: {error}"})
        return 1
    send(host.write, {"done": True})
    return 0


class Case:
    """One case: its work folder, its guest process, and its driver when it has one."""

    def __init__(
        self,
        host: DescriptorEnd,
        job: dict[str, Any],
        case: dict[str, Any],
        system_calls: SystemCallFilters,
        place: Place,
    ) -> None:
        self._host = host
        self._job = job
        self._case = case
        self._limits: dict[str, float] = job["limits"]
        self._system_calls = system_calls
        self._place = place

    def run(self, output_left: int) -> dict[str, Any]:
        """Run the case to its end, leave no process and no file, and return its outcome."""
        self._make_work_folder()
        heirs_cpu_seconds = 0.0
        try:
            watch = self._run(output_left)
        finally:
            heirs_cpu_seconds = self._place.end_processes()
            self._place.remove_work_folder()
        return watch.outcome(heirs_cpu_seconds, wants_result=self._job["wants_result"])

    def _run(self, output_left: int) -> Watch:
        limits = {**self._limits, "output_bytes": max(0, min(self._limits["output_bytes"], output_left))}
        watch = Watch(limits, time.monotonic(), self._host.incoming, self._place)
        driver = self._job["driver"]
        with contextlib.ExitStack() as open_until_end:
            guest_end = driver_end = None
            if driver is not None:
                guest_end, driver_end = (open_until_end.enter_context(end) for end in socket.socketpair())
                watch.driver = self._start(open_until_end, driver, self._read_secret, "driver", driver_end)
                driver_end.close()
            watch.guest = self._start(open_until_end, self._job["guest"], self._read_open, "guest", guest_end)
            watch.guest_end = guest_end
            watch.run()
        return watch

    def _read_open(self) -> Any:
        return self._case["argument"]

    def _read_secret(self) -> Any:
        """Read the driver's argument from the host; called in the driver's own process."""
        return receive(self._host.read)

    def _start(
        self,
        open_until_end: contextlib.ExitStack,
        function: str,
        read_argument: Callable[[], Any],
        role: Role,
        channel: socket.socket | None,
    ) -> Watched:
        pipes = {name: os.pipe() for name in ("stdout", "stderr", "result", "fault")}
        stdin = _input_file(to_bytes(self._case["stdin"]) if role == "guest" else b"")
        uid = self._place.uid_of(role)
        if uid is not None:
            for name in ("stdout", "stderr"):  # so that the child may open /dev/stdout
                os.fchown(pipes[name][1], uid, uid)
        if role == "guest":
            pid, own_pid = self._place.fork_guest(beside_driver=channel is not None)
        else:
            pid = own_pid = os.fork()
        if pid == 0:
            run_child(
                function,
                read_argument,
                Descriptors(
                    stdin=stdin,
                    **{name: write_end for name, (_, write_end) in pipes.items()},
                    channel=channel.fileno() if channel else None,
                ),
                self._limits,
                place=self._place,
                role=role,
                system_calls=self._system_calls,
            )
        os.close(stdin)
        for read_end, write_end in pipes.values():
            os.close(write_end)
            open_until_end.callback(os.close, read_end)
            os.set_blocking(read_end, read_end == pipes["fault"][0])  # a guest may take its own output back
        # The child closes its end once it is set up, so this wait is short.
        fault = os.read(pipes["fault"][0], 1000)
        if fault:
            raise SetUpError(fault.decode(errors="replace"))
        return Watched(pid, own_pid, stdout=pipes["stdout"][0], stderr=pipes["stderr"][0], result=pipes["result"][0])

    def _make_work_folder(self) -> None:
        self._place.make_work_folder(self._limits)
        for path, content in self._job["files"].items():
            self._write_file(path, to_bytes(content))

    def _write_file(self, path: str, content: bytes) -> None:
        folder = self._place.work_folder
        *parents, name = path.split("/")
        for parent in parents:
            folder = f"{folder}/{parent}"
            if not os.path.isdir(folder):
                os.mkdir(folder)
                self._give(folder)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(content)
        self._give(f"{folder}/{name}")

    def _give(self, path: str) -> None:
        owner = self._place.uid_of("guest")
        if owner is not None:
            os.chown(path, owner, owner)


def _input_file(stdin: bytes) -> int:
    """Return a descriptor from which a child reads its standard input, and which nobody can change any more."""
    if not stdin:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    file = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(stdin)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    fcntl.fcntl(
        file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    )
    return file
