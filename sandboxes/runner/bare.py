"""A place that is itself the isolation and allows no namespaces, such as a Lambda function or a Fargate task.

Landlock fences each case's processes in. As root, guest and driver have uids of their own as well; as another user
they have the worker's, and the system-call filters do what uids would have done. What is left of a case is ended by the
zygote, and what is left of the sandbox by the warden: both become the parent of whatever loses its own below them.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Set
from typing import Any, NamedTuple

from sandboxes.runner import landlock, linux, tree
from sandboxes.runner.place import DEVICES, FILES_PER_CASE, Forked, Place, Role
from sandboxes.runner.seccomp import Duties

_END_SECONDS = 10.0
_PAUSE_SECONDS = 0.0005
_ROUNDS = 1000
_OTHERS_OF_UID = 256  # how many more processes the uid may have got since they were counted
_MEASURED_SHARE = 10  # measuring a work folder takes at most one in so many parts of the time
_OWN_PROC = ("fd", "maps", "stat", "statm", "status")
_WRITABLE_BY_ALL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108


class Uids(NamedTuple):
    """The uids of a sandbox that root started; no other process of the place has them."""

    guest: int
    driver: int
    reaper: int
    """Ends the processes of the others, and cannot be ended by them."""


class BarePlace(Place):
    """See `Place`."""

    def __init__(self, folder: str, uids: Uids | None, abi: int, readable: list[str]) -> None:
        """Make the place.

        Args:
            folder: the sandbox's own, with the library in it; removed with all that is in it when the sandbox ends.
            uids: None when not root.
            abi: of Landlock, 0 for none.
            readable: files and folders that jobs may read and execute.
        """
        self.work_folder = f"{folder}/work"
        self.has_namespaces = False
        self.duties = Duties(
            no_namespaces=True, one_uid=uids is None, signals=uids is None and abi < landlock.FIRST_WITH_SIGNALS
        )
        self._folder = folder
        self._uids = uids
        self._abi = abi
        self._readable = readable
        self._rules: list[landlock.Rule] = []
        self._signals_are_scoped = False
        self._measure_from = 0.0

    @classmethod
    def from_arguments(cls, text: str) -> "BarePlace":
        """Return the place that the host described (`arguments`)."""
        fields: dict[str, Any] = json.loads(text)
        uids = Uids(*fields["uids"]) if fields["uids"] else None
        return cls(fields["folder"], uids, fields["landlock"], fields["readable"])

    def arrive(self) -> None:
        """See `Place.arrive`."""
        _leave_when_told()

    def settle(self) -> None:
        """See `Place.settle`."""
        linux.become_subreaper()
        if not os.path.exists(f"/proc/self/task/{threading.get_native_id()}/children"):
            raise OSError("the kernel does not tell a process's children (/proc/PID/task/TID/children)")
        if self._abi:
            self._rules = [landlock.open_rule(path, landlock.READ) for path in self._readable if os.path.exists(path)]
            self._rules += [landlock.open_rule(f"/dev/{name}", landlock.DEVICE) for name in DEVICES]
        self._scope_signals()

    def leave(self) -> None:
        """See `Place.leave`."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # the folder goes in any case
            self._end_all()
        tree.remove(self._folder)

    def make_work_folder(self) -> None:
        """See `Place.make_work_folder`."""
        os.mkdir(self.work_folder, 0o700)
        if self._uids is not None:
            os.chown(self.work_folder, self._uids.guest, self._uids.guest)
        self._measure_from = 0.0

    def remove_work_folder(self) -> None:
        """See `Place.remove_work_folder`."""
        tree.remove(self.work_folder)
        if not self._abi and self._uids is not None:
            for folder in _WRITABLE_BY_ALL:
                tree.remove_of((self._uids.guest, self._uids.driver), folder)

    def is_overfull(self, limits: dict[str, float], *, at_end: bool) -> bool:
        """See `Place.is_overfull`."""
        started = time.monotonic()
        if started < self._measure_from and not at_end:
            return False
        is_overfull = tree.is_larger(self.work_folder, int(limits["file_bytes"]), FILES_PER_CASE)
        self._measure_from = started + _MEASURED_SHARE * (time.monotonic() - started)
        return is_overfull

    def processes(self, zygote: int, guest: int | None, driver: int | None) -> list[int]:  # noqa: ARG002
        """See `Place.processes`; what lost its parent is a child of the zygote's by now."""
        return linux.descendants(zygote, set() if driver is None else {driver})

    def become_zygote(self) -> None:
        """See `Place.become_zygote`."""
        _leave_when_told()
        linux.become_subreaper()
        self._scope_signals()

    def fork(self, role: Role) -> Forked:  # noqa: ARG002
        """See `Place.fork`."""
        pid = linux.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return Forked(pid, pid or os.getpid())

    def fork_foreman(self) -> Forked:
        """See `Place.fork_foreman`."""
        raise NotImplementedError

    def end(self, ended: Forked, living: Forked | None) -> float:  # noqa: ARG002
        """See `Place.end`."""
        if living is None:
            return self._end_all()
        _kill_descendants({living.pid})
        return 0.0  # those that have ended are collected with the rest

    def leave_zygote(self) -> None:
        """See `Place.leave_zygote`."""
        with contextlib.suppress(OSError):
            self._end_all()

    def part(self) -> None:
        """See `Place.part`; here the uid and the fence are all there is."""

    def furnish(self, limits: dict[str, float]) -> None:
        """See `Place.furnish`."""

    def _scope_signals(self) -> None:
        """Bound whom this process may signal to what it will start, so that "all" are just those."""
        if self._abi < landlock.FIRST_WITH_SIGNALS:
            return
        linux.set_no_new_privileges()
        landlock.scope_signals(self._abi)
        with contextlib.suppress(PermissionError):
            os.kill(os.getppid(), 0)
            raise OSError("Landlock does not bound signals although this kernel's should")
        self._signals_are_scoped = True

    def uid_of(self, role: Role) -> int | None:
        """See `Place.uid_of`."""
        if self._uids is None:
            return None
        return self._uids.guest if role == "guest" else self._uids.driver

    def others_of_uid(self) -> int:
        """See `Place.others_of_uid`; the machine's processes and threads are at least as many as the uid's."""
        if self._uids is not None:
            return 0
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2]) + _OTHERS_OF_UID

    def fence(self, role: Role) -> None:
        """See `Place.fence`."""
        if not self._abi:
            return
        own = [landlock.open_rule(f"/proc/self/{name}", landlock.READ) for name in _OWN_PROC]
        if role == "guest":
            own.append(landlock.open_rule(self.work_folder, landlock.ALL_OF_A_FOLDER))
        landlock.fence(self._abi, [*self._rules, *own])

    def _end_all(self) -> float:
        """End everything below this process, wait until it is gone, and return its CPU time in seconds."""
        until = time.monotonic() + _END_SECONDS
        cpu_seconds = 0.0
        while True:
            # Whatever loses its parent becomes this process's child, so that no child means that nothing is there.
            try:
                pid, _, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return cpu_seconds
            cpu_seconds += usage.ru_utime + usage.ru_stime
            if pid == 0:
                if time.monotonic() > until:
                    raise OSError("the processes of a job could not be ended")
                self._kill()
                time.sleep(_PAUSE_SECONDS)

    def _kill(self) -> None:
        if self._signals_are_scoped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            return
        if self._uids is not None:
            for uid in (self._uids.guest, self._uids.driver):
                _kill_uid(uid, self._uids.reaper)
        _kill_descendants()


def _leave_when_told() -> None:
    """Turn the signal by which the host ends a sandbox, and the host's own end, into an exit of this process."""

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: what leaves must not be interrupted
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    linux.die_with_parent(signal.SIGTERM)


def _kill_uid(uid: int, reaper: int) -> None:
    """Kill all processes of a uid at once.

    The process that does it has that uid only for what it may do to others; its own is another, so that they cannot
    kill it first.
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(reaper, uid, reaper)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _kill_descendants(besides: Set[int] = frozenset()) -> None:
    """Stop everything below this process until nothing new appears, so that no fork escapes, then kill it."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        found = set(linux.descendants(os.getpid(), besides)) - stopped
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= found
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
