"""The Linux calls that Python's standard library lacks, through libc."""

import ctypes
import itertools
import os
import signal
import time
from collections.abc import Set

_CLONE_VM = 0x0000_0100
_CLONE_FILES = 0x0000_0400
CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC = 32, 4096, 16384
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x2008_0522

# Made once: children are forked, and what they need not make they need not copy.
_CAPABILITY_HEADER = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()
_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
_libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
_holding_the_interpreter = ctypes.PyDLL(None, use_errno=True)
_STACK_BYTES = 16384
_stacks = itertools.cycle([ctypes.create_string_buffer(_STACK_BYTES) for _ in range(8)])
_pause = ctypes.cast(_libc.pause, ctypes.c_void_p)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def prctl(option: int, argument: int = 0, third: int = 0) -> None:
    """Change a property of this process; OSError when the kernel refuses."""
    _check(_libc.prctl(option, argument, third, 0, 0), f"prctl({option})")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent dies. Undone by a change of uid."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def become_subreaper() -> None:
    """Make this process the new parent of every process below it that loses its own."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_undumpable() -> None:
    """Close this process's /proc entries and memory to every other process of its uid."""
    prctl(_PR_SET_DUMPABLE, 0)


def set_dumpable() -> None:
    """Open this process's /proc entries to its uid and to who has power over it; undone by a change of uid."""
    prctl(_PR_SET_DUMPABLE, 1)


def set_no_new_privileges() -> None:
    """Make set-uid programs and file capabilities powerless for this process and its children."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def fork() -> int:
    """Fork as `os.fork` does, for a process with one thread, which needs none of what Python does in a child first.

    All that (new locks, a new seed of `random`, hooks of modules) costs more than the fork itself.
    """
    pid = int(_holding_the_interpreter.fork())
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"fork: {os.strerror(number)}")
    return pid


def start_idle_process() -> int:
    """Start a process that does nothing until it is killed, and return its process id.

    It shares this process's memory and descriptors, so that it costs next to nothing. There may be eight at a time.
    """
    top = ctypes.addressof(next(_stacks)) + _STACK_BYTES & ~15
    pid = int(_libc.clone(_pause, top, _CLONE_VM | _CLONE_FILES | signal.SIGCHLD, None))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"clone: {os.strerror(number)}")
    return pid


def unshare(flags: int) -> None:
    """Move this process (for a pid namespace: its next child) into new namespaces."""
    _check(_libc.unshare(flags), "unshare")


def join_namespace(descriptor: int, kind: int) -> None:
    """Enter the namespace behind a descriptor of /proc/*/ns/*."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount a file system."""
    _check(_libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()), f"mount {target}")


def unmount(target: str) -> None:
    """Detach the file system mounted at a path."""
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make a mounted folder the root, and put the old root at a folder in it."""
    number = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
    _check(_libc.syscall(number, new.encode(), old.encode()), "pivot_root")


def drop_bounding_set() -> None:
    """Take every capability out of the set that an exec could ever give back."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break


def drop_capabilities() -> None:
    """Give up every capability of this process."""
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _check(_libc.capset(_CAPABILITY_HEADER, _NO_CAPABILITIES), "capset")


def close_from(lowest: int) -> None:
    """Close every descriptor from `lowest` up."""
    _check(_libc.close_range(ctypes.c_uint(lowest), ctypes.c_uint(0xFFFF_FFFF), 0), "close_range")


def descendants(pid: int, besides: Set[int] = frozenset()) -> list[int]:
    """Return the processes below one, from the top down; `besides` and what is below them are left out.

    One that starts or ends meanwhile may be missing.
    """
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = [child for child in _children(waiting.pop()) if child not in besides]
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
        except OSError:
            continue
    return found


def parent(pid: int) -> int | None:
    """Return the process id of a process's parent, 0 when it is in no namespace below this one's; None when gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def process_cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads, in seconds, while it lives (its children left out).

    The clock id is the one of clock_getcpuclockid(3).

    Raises:
        OSError: there is no such process.
    """
    return time.clock_gettime((~pid << 3) | 2)
