"""A place made of namespaces: a user namespace for the sandbox, and for each case's process a pid and a mount one."""

import os
import signal
import sys

from sandboxes.runner import linux
from sandboxes.runner.place import FILES_PER_CASE, Forked, Place, Role
from sandboxes.runner.root import WORK_FOLDER, enter_own_root
from sandboxes.runner.seccomp import Duties

GUEST_UID = 1000
DRIVER_UID = 1001
_OTHERS_OF_UID = 8  # processes of the sandbox itself that have the guest's uid where there is only one
_PROC_FLAGS = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
_OWN_PID = 2  # after the idle process 1


class NamespacedPlace(Place):
    """See `Place`.

    Process 1 of a namespace is an idle one, or a foreman: a program's own must not be, since process 1 is deaf to most
    signals. When it ends, the kernel ends all that is left in the namespace.
    """

    work_folder = WORK_FOLDER
    duties = Duties()
    has_namespaces = True

    def __init__(self, base_uid: int | None, *, in_container: bool) -> None:
        self._base_uid = base_uid
        self._in_container = in_container
        self._own_namespace = -1
        self._work_options = ""

    def arrive(self) -> None:
        """See `Place.arrive`; here bwrap, or the container's end, already sees to it."""

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
        owner = (os.getuid(), os.getgid()) if self._base_uid is None else (GUEST_UID, GUEST_UID)
        self._work_options = f"nr_inodes={FILES_PER_CASE},mode=0700,uid={owner[0]},gid={owner[1]}"

    def leave(self) -> None:
        """See `Place.leave`; here the kernel leaves nothing of a namespace without processes."""

    def make_work_folder(self) -> None:
        """See `Place.make_work_folder`; here each process mounts its own."""

    def remove_work_folder(self) -> None:
        """See `Place.remove_work_folder`; here it goes with the last process in its namespace."""

    def is_overfull(self, limits: dict[str, float], *, at_end: bool) -> bool:  # noqa: ARG002
        """See `Place.is_overfull`; here the file system itself has the bounds."""
        return False

    def processes(self, zygote: int, guest: int | None, driver: int | None) -> list[int]:  # noqa: ARG002
        """See `Place.processes`; those of the namespaces below are seen from here as well.

        What the zygote has forked beside the guest is the sandbox's own: no case's process can become a child of it.
        """
        here = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        apart = (os.getpid(), zygote)
        return [pid for pid in here if pid == guest or (pid not in apart and linux.parent(pid) not in (zygote, None))]

    def become_zygote(self) -> None:
        """See `Place.become_zygote`."""
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self, role: Role) -> Forked:  # noqa: ARG002
        """See `Place.fork`."""
        linux.unshare(linux.CLONE_NEWPID)
        first = linux.start_idle_process()
        pid = linux.fork()
        if pid != 0:
            # Without this the next unshare would nest, which the kernel refuses.
            linux.join_namespace(self._own_namespace, linux.CLONE_NEWPID)
        return Forked(pid, _OWN_PID, first)

    def fork_foreman(self) -> Forked:
        """See `Place.fork_foreman`; here it is process 1 itself."""
        linux.unshare(linux.CLONE_NEWPID)
        pid = linux.fork()
        if pid != 0:
            linux.join_namespace(self._own_namespace, linux.CLONE_NEWPID)
        return Forked(pid, 1)

    def end(self, ended: Forked, living: Forked | None) -> float:  # noqa: ARG002
        """See `Place.end`."""
        if ended.first is None:
            return 0.0  # it was process 1 itself
        os.kill(ended.first, signal.SIGKILL)
        _, _, usage = os.wait4(ended.first, 0)  # returns when the namespace is empty
        return usage.ru_utime + usage.ru_stime

    def leave_zygote(self) -> None:
        """See `Place.leave_zygote`; here it ends with the warden, which is process 1."""

    def part(self) -> None:
        """See `Place.part`."""
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("proc", "/proc", "proc", _PROC_FLAGS)

    def furnish(self, limits: dict[str, float]) -> None:
        """See `Place.furnish`."""
        options = f"size={int(limits['file_bytes'])},{self._work_options}"
        linux.mount("work", WORK_FOLDER, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)

    def uid_of(self, role: Role) -> int | None:
        """See `Place.uid_of`."""
        if self._base_uid is None:
            return None
        return GUEST_UID if role == "guest" else DRIVER_UID

    def others_of_uid(self) -> int:
        """See `Place.others_of_uid`."""
        return _OTHERS_OF_UID if self._base_uid is None else 0

    def fence(self, role: Role) -> None:
        """See `Place.fence`; here nothing is in sight that would have to be fenced off."""


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
    """Enter a user namespace in which this process's uid is the guests', and has the powers that are needed."""
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{GUEST_UID} {uid} 1"), ("gid_map", f"{GUEST_UID} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _become_first_process() -> None:
    """Go on as process 1 of a pid namespace that belongs to the user namespace; what started it only waits.

    Only so may the zygote return to its own pid namespace after each fork.
    """
    linux.unshare(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid != 0:
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    linux.mount("proc", "/proc", "proc", _PROC_FLAGS)
