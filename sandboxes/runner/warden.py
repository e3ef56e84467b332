"""The warden: process 1 of a job's namespaces. It starts the job's cases, one by one, and watches their bounds.

It alone holds the channel to the host. A case's processes have other uids, or cannot look into it (it is undumpable),
and cannot signal it (process 1 ignores what it did not ask for). When it ends, the kernel ends all that is left.
"""

import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from sandboxes.runner import linux
from sandboxes.runner.child import DRIVER_UID, GUEST_UID, WORK_FOLDER, Descriptors, run_child
from sandboxes.runner.frames import DescriptorEnd, receive, send
from sandboxes.runner.seccomp import SystemCallFilters
from sandboxes.runner.watch import HostGone, Watch, Watched

HOST_CLOSED = 3
"""Exit code that says the host is gone."""


class SetUpError(Exception):
    """A case's process could not be set up: the sandbox's fault, never the completion's."""


def run_job(host: DescriptorEnd, system_calls: SystemCallFilters, *, separate_uids: bool) -> int:
    """Make the namespaces, wait for a job, run it, answer, and return this process's exit code."""
    linux.die_with_parent(signal.SIGKILL)
    linux.set_undumpable()
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    job = receive(host.read)
    if job is None:
        return HOST_CLOSED
    outcomes: list[dict[str, Any]] = []
    try:
        for case in job["cases"]:
            outcomes.append(Case(host, job, case, system_calls, separate_uids=separate_uids).run())
            if job["stop_after_failure"] and (outcomes[-1]["exit_code"] != 0 or outcomes[-1]["limit"]):
                break
    except HostGone:
        return HOST_CLOSED
    except (SetUpError, OSError) as error:
        send(host.write, {"fault": f"{type(error).__name__}: {error}"})
        return 1
    send(host.write, {"outcomes": outcomes})
    return 0


class Case:
    """One case: its work folder, its guest process, and its driver when it has one."""

    def __init__(
        self,
        host: DescriptorEnd,
        job: dict[str, Any],
        case: dict[str, Any],
        system_calls: SystemCallFilters,
        *,
        separate_uids: bool,
    ) -> None:
        self._host = host
        self._job = job
        self._case = case
        self._limits: dict[str, float] = job["limits"]
        self._system_calls = system_calls
        self._separate_uids = separate_uids

    def run(self) -> dict[str, Any]:
        """Run the case to its end, leave no process and no file, and return its outcome."""
        self._make_work_folder()
        try:
            return self._run()
        finally:
            end_all_processes()
            linux.unmount(WORK_FOLDER)

    def _run(self) -> dict[str, Any]:
        watch = Watch(self._limits, time.monotonic(), self._host.incoming)
        driver = self._job["driver"]
        with contextlib.ExitStack() as open_until_end:
            guest_end = driver_end = None
            if driver is not None:
                guest_end, driver_end = (open_until_end.enter_context(end) for end in socket.socketpair())
                watch.driver = self._start(open_until_end, driver, self._read_secret, DRIVER_UID, driver_end)
                driver_end.close()
            watch.guest = self._start(open_until_end, self._job["guest"], self._read_open, GUEST_UID, guest_end)
            watch.guest_end = guest_end
            watch.run()
        return watch.outcome()

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
        uid: int,
        channel: socket.socket | None,
    ) -> Watched:
        pipes = {name: os.pipe() for name in ("stdout", "stderr", "result", "fault")}
        stdin = _input_file(self._case["stdin"].encode("latin-1") if uid == GUEST_UID else b"")
        if self._separate_uids:
            for name in ("stdout", "stderr"):  # so that the child may open /dev/stdout
                os.fchown(pipes[name][1], uid, uid)
        pid = os.fork()
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
                uid=uid if self._separate_uids else None,
                undumpable=uid == DRIVER_UID,
                system_calls=self._system_calls,
            )
        os.close(stdin)
        for read_end, write_end in pipes.values():
            os.close(write_end)
            open_until_end.callback(os.close, read_end)
        # The child closes its end once it is set up, so this wait is short.
        fault = os.read(pipes["fault"][0], 1000)
        if fault:
            raise SetUpError(fault.decode(errors="replace"))
        return Watched(pid, pipes["stdout"][0], pipes["stderr"][0], pipes["result"][0])

    def _make_work_folder(self) -> None:
        size = int(self._limits["file_bytes"])
        owner = GUEST_UID if self._separate_uids else os.getuid()
        options = (
            f"size={size},nr_inodes=4096,mode=0700,uid={owner},gid={owner if self._separate_uids else os.getgid()}"
        )
        linux.mount("work", WORK_FOLDER, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
        for path, content in self._job["files"].items():
            self._write_file(path, content.encode("latin-1"), owner)

    def _write_file(self, path: str, content: bytes, owner: int) -> None:
        folder = WORK_FOLDER
        *parents, name = path.split("/")
        for parent in parents:
            folder = f"{folder}/{parent}"
            if not os.path.isdir(folder):
                os.mkdir(folder)
                self._give(folder, owner)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(content)
        self._give(f"{folder}/{name}", owner)

    def _give(self, path: str, owner: int) -> None:
        if self._separate_uids:
            shutil.chown(path, owner, owner)


def _input_file(stdin: bytes) -> int:
    """Return a descriptor from which a child reads its standard input."""
    if not stdin:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    file = os.memfd_create("stdin")
    view = memoryview(stdin)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def end_all_processes() -> None:
    """Kill every other process of the job's namespace and wait until they are gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        except InterruptedError:
            continue
