"""The system-call filters of a sandbox, as BPF programs made by hand (seccomp(2), linux/filter.h).

There are two. The first, long one is installed once, and warden, zygote and all their children inherit it. The last,
short one is installed in each case's process and refuses what the warden and the zygote still need. Installing costs
with the filter's length.

System calls up to the newest that is listed are allowed but for those refused by name; any newer one answers ENOSYS, as
on an older kernel. A call made for another architecture ends the process.
"""

import ctypes
import errno
import os
import signal
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

from sandboxes.runner.system_calls import FIRST_UNIFIED, UNIFIED, Table, table

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06

_ALLOW = 0x7FFF_0000
_KILL_PROCESS = 0x8000_0000
_ERRNO = 0x0005_0000

_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_NEW_NAMESPACES = 0x7E02_0000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_OWN_PARENT = 0x8000  # CLONE_PARENT: the zygote would have to collect a child that it never forked
_X32_BIT = 0x4000_0000
_SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS
_BUFFER_OPTIONS = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and their FORCE forms
_SOCKET_TYPE = 0xF  # the rest of the argument is SOCK_NONBLOCK and SOCK_CLOEXEC

_NEEDED_BY_NAMESPACES = {"mount", "umount2", "unshare", "setns"}
_NEEDED_BY_WARDEN = {"memfd_create", "sendmsg"}
"""For what a case's process is given: files in memory, handed on to the zygote."""
_LANDLOCK = {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
_OF_SOCKETS = {"connect", "bind", "listen"}
_OF_ATTRIBUTES = {"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"}
_OF_MODES_AND_TIMES = {"chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat"}
_OF_OWNERS = {"chown", "fchown", "lchown", "fchownat"}
_OF_SCHEDULING = {"sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr"}
_OF_SIGNALS = {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}
_FCNTL_REFUSED = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_IOCTL_KIND = 0xFF00
_IOCTL_KINDS_REFUSED = (ord("f") << 8, ord("X") << 8, 0x89 << 8)  # flags and keys of files, owners of sockets


class Duties(NamedTuple):
    """What the filters must do because nothing else does it; by default namespaces and uids part processes."""

    no_namespaces: bool = False
    """Keep every socket from a job, since the network is the host's; no namespaces are made, but Landlock's."""
    one_uid: bool = False
    """Guest, driver, warden and worker have one uid: keep from a job what its uid may do to their files (Landlock lets
    modes, times and attributes be changed), to their priority, and through file owners and leases to their course."""
    signals: bool = False
    """Nothing bounds whom a process may signal, so it may signal only itself."""


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refusal(number: int) -> bytes:
    return _instruction(_RETURN, 0, 0, _ERRNO | number)


_ALLOWED = _instruction(_RETURN, 0, 0, _ALLOW)


def _argument(index: int) -> bytes:
    return _instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _if_call(number: int, program: list[bytes]) -> list[bytes]:
    """Run a program, which ends with an answer on every way, when the call is this one."""
    return [_instruction(_IF_EQUAL, 0, len(program), number), *program]


def _answer(target: Table, names: Iterable[str], number: int) -> list[bytes]:
    """Refuse calls with this error; 0 tells the caller that it was done, although it was not."""
    known = {**target.refused, **target.named}
    numbers = sorted(known[name] for name in names if name in known)
    return [part for call in numbers for part in _if_call(call, [_refusal(number)])]


def _only(argument: int, value: int) -> list[bytes]:
    """Allow the call if an argument has this value."""
    return [_argument(argument), _instruction(_IF_EQUAL, 1, 0, value), _refusal(errno.EPERM), _ALLOWED]


def _head(architecture: int) -> list[bytes]:
    """Check the architecture and leave the call's number in the accumulator."""
    return [
        _instruction(_LOAD, 0, 0, _ARCHITECTURE),
        _instruction(_IF_EQUAL, 1, 0, architecture),
        _instruction(_RETURN, 0, 0, _KILL_PROCESS),
        _instruction(_LOAD, 0, 0, _NUMBER),
    ]


def first_program(machine: str, duties: Duties) -> bytes:
    """Return the sandbox's program for a machine as `os.uname().machine` names it.

    Raises:
        OSError: there is no table for that machine.
    """
    target = table(machine)
    needed = _NEEDED_BY_WARDEN | (set() if duties.no_namespaces else _NEEDED_BY_NAMESPACES)
    program = [
        *_head(target.architecture),
        _instruction(_IF_AT_LEAST, 0, 1, _X32_BIT),
        _instruction(_RETURN, 0, 0, _KILL_PROCESS),
        # clone3 hides its flags in memory, out of a filter's sight; libc falls back to clone.
        *_answer(target, {"clone3"}, errno.ENOSYS),
        *_if_call(
            target.named["clone"],
            [
                _argument(0),
                _instruction(_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES | _OWN_PARENT),
                _refusal(errno.EPERM),
                _ALLOWED,
            ],
        ),
        *(_no_sockets(target) if duties.no_namespaces else _only_unix_sockets(target)),
        # Its own bounds a process may lower; those of the warden and the driver, which may share its uid, it may not.
        *_if_call(target.named["prlimit64"], _only(0, 0)),
        # Shared memory without a file is counted for no process once unmapped there, so nobody could bound it.
        *_if_call(
            target.named["mmap"],
            [
                _argument(3),
                _instruction(_AND, 0, 0, _SHARED_ANONYMOUS),
                _instruction(_IF_EQUAL, 0, 1, _SHARED_ANONYMOUS),
                _refusal(errno.EPERM),
                _ALLOWED,
            ],
        ),
        # Larger socket buffers are kernel memory that counts for no process either.
        *_if_call(target.named["setsockopt"], [_argument(2), *_refuse_values(_BUFFER_OPTIONS), _ALLOWED]),
        *_answer(target, target.refused.keys() - needed, errno.EPERM),
    ]
    unknown = {"clone3"} | (set() if duties.no_namespaces else _LANDLOCK)
    for number in sorted(UNIFIED[name] for name in UNIFIED.keys() - unknown):
        program += _if_call(number, [_ALLOWED])
    program += [_instruction(_IF_AT_LEAST, 0, 1, FIRST_UNIFIED), _refusal(errno.ENOSYS), _ALLOWED]
    return b"".join(program)


def _only_unix_sockets(target: Table) -> list[bytes]:
    return [
        _instruction(_IF_EQUAL, 1, 0, target.named["socket"]),
        _instruction(_IF_EQUAL, 0, 4, target.named["socketpair"]),
        _argument(0),
        _instruction(_IF_EQUAL, 1, 0, socket.AF_UNIX),
        _refusal(errno.EAFNOSUPPORT),
        _ALLOWED,
    ]


def _no_sockets(target: Table) -> list[bytes]:
    """Leave pairs of connected unix sockets alone; a datagram one could still send to any other by its name."""
    pair = [
        _argument(0),
        _instruction(_IF_EQUAL, 1, 0, socket.AF_UNIX),
        _refusal(errno.EAFNOSUPPORT),
        _argument(1),
        _instruction(_AND, 0, 0, _SOCKET_TYPE),
        _instruction(_IF_EQUAL, 1, 0, socket.SOCK_STREAM),
        _refusal(errno.EPERM),
        _ALLOWED,
    ]
    return [
        *_answer(target, {"socket"}, errno.EAFNOSUPPORT),
        *_if_call(target.named["socketpair"], pair),
        *_answer(target, _OF_SOCKETS, errno.EPERM),
    ]


def last_program(machine: str, duties: Duties, pid: int) -> bytes:
    """Return the program of a case's process `pid`, on top of the zygote's; raises like `first_program`."""
    target = table(machine)
    refused = _NEEDED_BY_WARDEN | (_LANDLOCK if duties.no_namespaces else _NEEDED_BY_NAMESPACES)
    program = [*_head(target.architecture), *_answer(target, refused, errno.EPERM), *_no_ignored_children(target)]
    if duties.one_uid:
        program += _powers_of_a_uid(target)
    if duties.signals:
        for name in sorted(_OF_SIGNALS):
            program += _if_call(target.named[name], _only(0, pid))
        program += _answer(target, {"pidfd_send_signal"}, errno.EPERM)
    return b"".join([*program, _ALLOWED])


def _no_ignored_children(target: Table) -> list[bytes]:
    """Refuse a handler for the end of children: a parent that ignores it has them vanish with the CPU time they used.

    Reading the handler (no new action: a null pointer) stays allowed.
    """
    action = [
        _argument(0),
        _instruction(_IF_EQUAL, 0, 5, signal.SIGCHLD),
        _argument(1),
        _instruction(_IF_EQUAL, 0, 2, 0),
        _instruction(_LOAD, 0, 0, _ARGUMENTS + 8 + 4),
        _instruction(_IF_EQUAL, 1, 0, 0),
        _refusal(errno.EPERM),
        _ALLOWED,
    ]
    return _if_call(target.named["rt_sigaction"], action)


def _powers_of_a_uid(target: Table) -> list[bytes]:
    program = [
        # An error would fail every honest `shutil.copy`; what it copies is all the same to the job that ends here.
        *_answer(target, _OF_MODES_AND_TIMES, 0),
        *_answer(target, _OF_OWNERS, errno.EPERM),
        *_answer(target, _OF_ATTRIBUTES, errno.EOPNOTSUPP),
    ]
    for name in sorted(_OF_SCHEDULING):
        program += _if_call(target.named[name], _only(0, 0))
    own_priority = [_argument(0), _instruction(_IF_EQUAL, 1, 0, os.PRIO_PROCESS), _refusal(errno.EPERM), *_only(1, 0)]
    program += _if_call(target.named["setpriority"], own_priority)
    program += _if_call(target.named["fcntl"], [_argument(1), *_refuse_values(_FCNTL_REFUSED), _ALLOWED])
    kinds = [_argument(1), _instruction(_AND, 0, 0, _IOCTL_KIND), *_refuse_values(_IOCTL_KINDS_REFUSED), _ALLOWED]
    return program + _if_call(target.named["ioctl"], kinds)


def _refuse_values(values: Iterable[int]) -> list[bytes]:
    return [part for value in values for part in _if_call(value, [_refusal(errno.EPERM)])]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class SystemCallFilters:
    """Both filters, ready to be installed. Installing needs no-new-privileges, and cannot be undone."""

    def __init__(self, machine: str, duties: Duties) -> None:
        self._machine = machine
        self._duties = duties
        self._first = _Ready(first_program(machine, duties))
        self._last = _Ready(last_program(machine, duties, pid=0))

    def install_first(self) -> None:
        """Filter this process's system calls, and those of all its children, from now on.

        Raises:
            OSError: the kernel refused it.
        """
        self._first.install()

    def install_last(self) -> None:
        """Take from a case's process the calls that only warden and zygote need; raises like `install_first`."""
        if self._duties.signals:
            _Ready(last_program(self._machine, self._duties, os.getpid())).install()
        else:
            self._last.install()


class _Ready:
    """A program in the form that the kernel takes."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = _Program(len(code) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        if _libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(self._program), 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"seccomp filter: {os.strerror(number)}")
