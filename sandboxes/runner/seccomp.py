"""The system-call filters of a sandbox, as BPF programs made by hand (seccomp(2), linux/filter.h).

There are two. The first, long one is installed once in the zygote, and all its children inherit it. The last, short one
is installed in each case's process and refuses what the warden still needs. Installing costs with the filter's length.

System calls up to the newest that is listed here are allowed but for those refused by name; any newer one answers
ENOSYS, as on an older kernel. A call made for another architecture ends the process.
"""

import ctypes
import errno
import os
import struct
from typing import NamedTuple

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_AND = 0x54
_RETURN = 0x06

_ALLOW = 0x7FFF_0000
_KILL_PROCESS = 0x8000_0000
_ERRNO = 0x0005_0000

_NUMBER, _ARCHITECTURE = 0, 4
_FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT, _FOURTH_ARGUMENT = 16, 24, 32, 40  # their low halves

_NEW_NAMESPACES = 0x7E02_0000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_AF_UNIX = 1
_SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS
_BUFFER_OPTIONS = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and their FORCE forms
_SIGCHLD = 17
_X32_BIT = 0x4000_0000

_REFUSED_X86_64 = {
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "shmdt": 67, "msgget": 68,
    "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "ptrace": 101, "syslog": 103, "uselib": 134, "personality": 135,
    "ustat": 136, "sysfs": 139, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "adjtimex": 159,
    "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "create_module": 174,
    "init_module": 175, "delete_module": 176, "get_kernel_syms": 177, "query_module": 178, "quotactl": 179,
    "nfsservctl": 180, "lookup_dcookie": 212, "semtimedop": 220, "clock_settime": 227, "mbind": 237,
    "set_mempolicy": 238, "get_mempolicy": 239, "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242,
    "mq_timedreceive": 243, "mq_notify": 244, "mq_getsetattr": 245, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256, "unshare": 272, "move_pages": 279,
    "vmsplice": 278, "perf_event_open": 298, "fanotify_init": 300, "fanotify_mark": 301,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "memfd_create": 319, "kexec_file_load": 320,
    "bpf": 321, "userfaultfd": 323, "pkey_mprotect": 329, "pkey_alloc": 330, "pkey_free": 331, "io_pgetevents": 333,
    "io_setup": 206, "io_destroy": 207, "io_getevents": 208, "io_submit": 209, "io_cancel": 210,
    "remap_file_pages": 216, "memfd_secret": 447, "sendmsg": 46, "sendmmsg": 307, "flock": 73, "inotify_init": 253,
    "inotify_add_watch": 254, "inotify_init1": 294,
}  # fmt: skip
_REFUSED_AARCH64 = {
    "io_setup": 0, "io_destroy": 1, "io_submit": 2, "io_cancel": 3, "io_getevents": 4, "lookup_dcookie": 18,
    "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51, "vhangup": 58, "quotactl": 60,
    "vmsplice": 75, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "ioprio_set": 30, "reboot": 142,
    "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "mq_open": 180, "mq_unlink": 181,
    "mq_timedsend": 182, "mq_timedreceive": 183, "mq_notify": 184, "mq_getsetattr": 185, "msgget": 186, "msgctl": 187,
    "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194,
    "shmctl": 195, "shmat": 196, "shmdt": 197, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224,
    "swapoff": 225, "remap_file_pages": 234, "mbind": 235, "get_mempolicy": 236, "set_mempolicy": 237,
    "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241, "fanotify_init": 262, "fanotify_mark": 263,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
    "pkey_mprotect": 288, "pkey_alloc": 289, "pkey_free": 290, "io_pgetevents": 292, "kexec_file_load": 294,
    "personality": 92, "memfd_secret": 447, "sendmsg": 211, "sendmmsg": 269, "flock": 32, "inotify_init1": 26,
    "inotify_add_watch": 27,
}  # fmt: skip
_NEEDED_BY_WARDEN = {"mount", "umount2", "unshare", "setns", "memfd_create"}


class _Table(NamedTuple):
    """What the programs need to know of a machine: an audit architecture, and numbers of system calls."""

    architecture: int
    clone: int
    socket: int
    socketpair: int
    prlimit: int
    mmap: int
    setsockopt: int
    sigaction: int
    refused: dict[str, int]


_TABLES = {
    "x86_64": _Table(0xC000_003E, 56, 41, 53, 302, 9, 54, 13, _REFUSED_X86_64),
    "aarch64": _Table(0xC000_00B7, 220, 198, 199, 261, 222, 208, 134, _REFUSED_AARCH64),
}
_CLONE3 = 435
_FIRST_UNIFIED = 424  # from here on numbers are the same on every architecture
_ALLOWED_UNIFIED = {
    "pidfd_send_signal": 424, "pidfd_open": 434, "close_range": 436, "openat2": 437, "faccessat2": 439,
    "epoll_pwait2": 441, "futex_waitv": 449, "fchmodat2": 452, "futex_wake": 454, "futex_wait": 455,
    "futex_requeue": 456,
}  # fmt: skip


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refusal(number: int) -> bytes:
    return _instruction(_RETURN, 0, 0, _ERRNO | number)


_ALLOWED = _instruction(_RETURN, 0, 0, _ALLOW)


def _head(architecture: int) -> list[bytes]:
    """Check the architecture and leave the call's number in the accumulator."""
    return [
        _instruction(_LOAD, 0, 0, _ARCHITECTURE),
        _instruction(_IF_EQUAL, 1, 0, architecture),
        _instruction(_RETURN, 0, 0, _KILL_PROCESS),
        _instruction(_LOAD, 0, 0, _NUMBER),
    ]


def _refuse(numbers: set[int]) -> list[bytes]:
    return [
        part for number in sorted(numbers) for part in (_instruction(_IF_EQUAL, 0, 1, number), _refusal(errno.EPERM))
    ]


def first_program(machine: str) -> bytes:
    """Return the zygote's program for a machine as `os.uname().machine` names it.

    Raises:
        OSError: there is no table for that machine.
    """
    table = _table(machine)
    program = [
        *_head(table.architecture),
        _instruction(_IF_AT_LEAST, 0, 1, _X32_BIT),
        _instruction(_RETURN, 0, 0, _KILL_PROCESS),
        # clone3 hides its flags in memory, out of a filter's sight; libc falls back to clone.
        _instruction(_IF_EQUAL, 0, 1, _CLONE3),
        _refusal(errno.ENOSYS),
        _instruction(_IF_EQUAL, 0, 4, table.clone),
        _instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
        _instruction(_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        _refusal(errno.EPERM),
        _ALLOWED,
        _instruction(_IF_EQUAL, 1, 0, table.socket),
        _instruction(_IF_EQUAL, 0, 4, table.socketpair),
        _instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
        _instruction(_IF_EQUAL, 1, 0, _AF_UNIX),
        _refusal(errno.EAFNOSUPPORT),
        _ALLOWED,
        # Its own bounds a process may lower; those of the warden and the driver, which may share its uid, it may not.
        _instruction(_IF_EQUAL, 0, 4, table.prlimit),
        _instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
        _instruction(_IF_EQUAL, 1, 0, 0),
        _refusal(errno.EPERM),
        _ALLOWED,
        # Shared memory without a file is counted for no process once unmapped there, so nobody could bound it.
        _instruction(_IF_EQUAL, 0, 5, table.mmap),
        _instruction(_LOAD, 0, 0, _FOURTH_ARGUMENT),
        _instruction(_AND, 0, 0, _SHARED_ANONYMOUS),
        _instruction(_IF_EQUAL, 0, 1, _SHARED_ANONYMOUS),
        _refusal(errno.EPERM),
        _ALLOWED,
        # Larger socket buffers are kernel memory that counts for no process either.
        _instruction(_IF_EQUAL, 0, 2 + 2 * len(_BUFFER_OPTIONS), table.setsockopt),
        _instruction(_LOAD, 0, 0, _THIRD_ARGUMENT),
        *(
            part
            for option in _BUFFER_OPTIONS
            for part in (_instruction(_IF_EQUAL, 0, 1, option), _refusal(errno.EPERM))
        ),
        _ALLOWED,
        *_refuse({number for name, number in table.refused.items() if name not in _NEEDED_BY_WARDEN}),
    ]
    for number in sorted(_ALLOWED_UNIFIED.values()):
        program += [_instruction(_IF_EQUAL, 0, 1, number), _ALLOWED]
    program += [_instruction(_IF_AT_LEAST, 0, 1, _FIRST_UNIFIED), _refusal(errno.ENOSYS), _ALLOWED]
    return b"".join(program)


def last_program(machine: str) -> bytes:
    """Return the program of a case's process, on top of the zygote's; raises like `first_program`."""
    table = _table(machine)
    refused = {table.refused[name] for name in _NEEDED_BY_WARDEN}
    return b"".join(
        [
            *_head(table.architecture),
            *_refuse(refused),
            # A parent that ignores its children's end has them vanish with the CPU time they used. Reading the handler
            # (no new action: a null pointer) stays allowed.
            _instruction(_IF_EQUAL, 0, 7, table.sigaction),
            _instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
            _instruction(_IF_EQUAL, 0, 5, _SIGCHLD),
            _instruction(_LOAD, 0, 0, _SECOND_ARGUMENT),
            _instruction(_IF_EQUAL, 0, 2, 0),
            _instruction(_LOAD, 0, 0, _SECOND_ARGUMENT + 4),
            _instruction(_IF_EQUAL, 1, 0, 0),
            _refusal(errno.EPERM),
            _ALLOWED,
        ]
    )


def _table(machine: str) -> _Table:
    try:
        return _TABLES[machine]
    except KeyError:
        raise OSError(errno.ENOSYS, f"no system-call table for {machine}") from None


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class SystemCallFilters:
    """Both filters, ready to be installed. Installing needs no-new-privileges, and cannot be undone."""

    def __init__(self, machine: str) -> None:
        self._codes = [
            ctypes.create_string_buffer(code, len(code)) for code in (first_program(machine), last_program(machine))
        ]
        self._first, self._last = (_Program(len(code) // 8, ctypes.addressof(code)) for code in self._codes)

    def install_first(self) -> None:
        """Filter the zygote's system calls, and those of all its children, from now on.

        Raises:
            OSError: the kernel refused it.
        """
        _install(self._first)

    def install_last(self) -> None:
        """Take from a case's process the calls that only a warden needs; raises like `install_first`."""
        _install(self._last)


def _install(program: _Program) -> None:
    if _libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp filter: {os.strerror(number)}")
