"""A place made of namespaces: a user namespace for the sandbox, and per job a pid and a mount namespace."""

import contextlib
import os
import signal
import sys

from sandboxes.runner import linux
from sandboxes.runner.place import FILES_PER_CASE, Place, Role
from sandboxes.runner.root import WORK_FOLDER, enter_own_root
from sandboxes.runner.seccomp import Duties

GUEST_UID = 1000
DRIVER_UID = 1001
_OTHERS_OF_UID = 8  # processes of the sandbox itself that have the guest's uid where there is only one
_PROC_FLAGS = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC


class NamespacedPlace(Place):
    """See `Place`. The warden is process 1 of its namespace: when it ends, the kernel ends all that is left."""

    work_folder = WORK_FOLDER
    duties = Duties()

    def __init__(self, base_uid: int | None, *, in_container: bool) -> None:
        self._base_uid = base_uid
        self._in_container = in_container
        self._own_namespace = -1

    def arrive(self) -> None:
        """See `Place.arrive`; here bwrap, or the container's end, already sees to it."""

    def leave(self) -> None:
        """See `Place.leave`; here the kernel leaves nothing of a namespace without processes."""

    def settle(self) -> None:
        """See `Place.settle`."""
        if self._base_uid is not None:
            _leave_root(self._base_uid)
            _become_first_process()
        elif self._in_container:
            _enter_user_namespace()
            enter_own_root(os.path.realpath(sys.executable))
            _become_first_process()
        # Process 1 is deaf to signals it has no handler for, and Python handles this one.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        linux.die_with_parent(signal.SIGKILL)
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self) -> int:
        """See `Place.fork`."""
        linux.unshare(linux.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            os.close(self._own_namespace)
        else:
            # Without this the next unshare would nest, which the kernel refuses.
            linux.join_namespace(self._own_namespace, linux.CLONE_NEWPID)
        return pid

    def fork_guest(self, *, beside_driver: bool) -> tuple[int, int]:
        """See `Place.fork_guest`.

        Beside a driver, which may share its uid, a guest gets a pid namespace of its own: it cannot name the driver,
        and so not signal it, and what it leaves behind ends with it.
        """
        if not beside_driver:
            pid = os.fork()
            return pid, pid
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            linux.unshare(linux.CLONE_NEWPID)
            pid = os.fork()
            if pid != 0:
                linux.join_namespace(own, linux.CLONE_NEWPID)
            return pid, 1
        finally:
            os.close(own)

    def enter(self) -> None:
        """See `Place.enter`."""
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("proc", "/proc", "proc", _PROC_FLAGS)

    def uid_of(self, role: Role) -> int | None:
        """See `Place.uid_of`."""
        if self._base_uid is None:
            return None
        return GUEST_UID if role == "guest" else DRIVER_UID

    def others_of_uid(self) -> int:
        """See `Place.others_of_uid`."""
        return _OTHERS_OF_UID if self._base_uid is None else 0

    def make_work_folder(self, limits: dict[str, float]) -> None:
        """See `Place.make_work_folder`."""
        owner = f"uid={os.getuid()},gid={os.getgid()}" if self._base_uid is None else f"uid={GUEST_UID},gid={GUEST_UID}"
        options = f"size={int(limits['file_bytes'])},nr_inodes={FILES_PER_CASE},mode=0700,{owner}"
        linux.mount("work", WORK_FOLDER, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)

    def remove_work_folder(self) -> None:
        """See `Place.remove_work_folder`."""
        linux.unmount(WORK_FOLDER)

    def is_overfull(self, limits: dict[str, float], *, at_end: bool) -> bool:  # noqa: ARG002
        """See `Place.is_overfull`; here the file system itself has the bounds."""
        return False

    def fence(self, role: Role) -> None:
        """See `Place.fence`; here nothing is in sight that would have to be fenced off."""

    def processes(self, besides: int | None) -> list[int]:
        """See `Place.processes`."""
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, besides)]

    def end_heirs(self, driver: int) -> None:
        """See `Place.end_heirs`; here they have ended with the first process of their namespace."""

    def end_processes(self) -> float:
        """See `Place.end_processes`."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        cpu_seconds = 0.0
        while True:
            try:
                _, _, usage = os.wait4(-1, 0)
            except ChildProcessError:
                return cpu_seconds
            cpu_seconds += usage.ru_utime + usage.ru_stime


def _leave_root(base_uid: int) -> None:
    """Leave the host's root for a user namespace in which 0 and the children's uids are unprivileged host uids."""
    linux.mount("proc", "/proc", "proc", _PROC_FLAGS)
    inside = {0: base_uid, GUEST_UID: base_uid + 1, DRIVER_UID: base_uid + 2}
    mapping = "".join(f"{uid} {host_uid} 1\n" for uid, host_uid in inside.items())
    os.setgroups([])
    target = os.getpid()
    unshared = os.pipe()
    if os.fork() == 0:
        code = 1
        try:
            os.close(unshared[1])
            os.read(unshared[0], 1)
            for name in ("gid_map", "uid_map"):
                with open(f"/proc/{target}/{name}", "w") as file:
                    file.write(mapping)
            code = 0
        finally:
            os._exit(code)
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    os.close(unshared[1])
    _, status = os.wait()
    if status != 0:
        raise OSError("the user namespace could not be mapped")
    os.close(unshared[0])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    linux.die_with_parent(signal.SIGKILL)  # the change of uid undid bwrap's own wish


def _enter_user_namespace() -> None:
    """Enter a user namespace in which this process's uid is the guests', and has the powers that a warden needs."""
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{GUEST_UID} {uid} 1"), ("gid_map", f"{GUEST_UID} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _become_first_process() -> None:
    """Go on as process 1 of a pid namespace that belongs to the user namespace; what started it only waits.

    Only so may this process return to its own pid namespace after each warden.
    """
    linux.unshare(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid != 0:
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    linux.mount("proc", "/proc", "proc", _PROC_FLAGS)
