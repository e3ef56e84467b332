"""The numbers of the system calls that the filters name, by machine."""

import errno
from typing import NamedTuple

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
_NAMED_X86_64 = {
    "mmap": 9, "rt_sigaction": 13, "ioctl": 16, "socket": 41, "connect": 42, "bind": 49, "listen": 50,
    "socketpair": 53, "setsockopt": 54, "clone": 56, "kill": 62, "fcntl": 72, "chmod": 90, "fchmod": 91,
    "chown": 92, "fchown": 93, "lchown": 94, "rt_sigqueueinfo": 129, "utime": 132, "setpriority": 141,
    "sched_setparam": 142, "sched_setscheduler": 144, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203,
    "tgkill": 234, "utimes": 235, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280,
    "rt_tgsigqueueinfo": 297, "prlimit64": 302, "sched_setattr": 314,
}  # fmt: skip
_NAMED_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "fcntl": 25, "ioctl": 29, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88,
    "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129, "tkill": 130,
    "tgkill": 131, "rt_sigaction": 134, "rt_sigqueueinfo": 138, "setpriority": 140, "socket": 198,
    "socketpair": 199, "bind": 200, "listen": 201, "connect": 203, "setsockopt": 208, "clone": 220, "mmap": 222,
    "rt_tgsigqueueinfo": 240, "prlimit64": 261, "sched_setattr": 274,
}  # fmt: skip

FIRST_UNIFIED = 424
"""From here on numbers are the same on every architecture."""
UNIFIED = {
    "pidfd_send_signal": 424, "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437, "faccessat2": 439,
    "epoll_pwait2": 441, "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
    "futex_waitv": 449, "fchmodat2": 452, "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456,
}  # fmt: skip


class Table(NamedTuple):
    """What the filters need to know of a machine."""

    architecture: int
    """As the audit subsystem numbers it."""
    refused: dict[str, int]
    """Calls that nothing graded needs."""
    named: dict[str, int]
    """Calls that are looked at more closely; old ones are missing where a machine never had them."""


_TABLES = {
    "x86_64": Table(0xC000_003E, _REFUSED_X86_64, _NAMED_X86_64 | UNIFIED),
    "aarch64": Table(0xC000_00B7, _REFUSED_AARCH64, _NAMED_AARCH64 | UNIFIED),
}


def table(machine: str) -> Table:
    """Return the table of a machine as `os.uname().machine` names it.

    Raises:
        OSError: there is none.
    """
    try:
        return _TABLES[machine]
    except KeyError:
        raise OSError(errno.ENOSYS, f"no system-call table for {machine}") from None
