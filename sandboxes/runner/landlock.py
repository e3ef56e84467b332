"""Landlock (landlock(7)): a process takes from itself, and from all that it will start, files, TCP and signals.

What a kernel knows is told by its ABI's number; rights are asked for only where it knows them.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

# Added after the system-call tables were unified: the same number on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_LOG_SAME_EXEC_OFF = 1  # whatever a hostile job tries must not fill the host's audit log

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP = 0b11  # bind and connect
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

READ = EXECUTE | READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE
ALL_OF_A_FOLDER = (1 << 15) - 1 & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK)

FIRST_WITH_TRUNCATE = 3
FIRST_WITH_SIGNALS = 6

_libc = ctypes.CDLL(None, use_errno=True)


class Rule(NamedTuple):
    """What remains of files: these rights for the file, or for all beneath the folder, of an open descriptor."""

    descriptor: int
    rights: int


def supported() -> int:
    """Return the number of the kernel's ABI; 0 where there is no Landlock."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)))


def open_rule(path: str, rights: int) -> Rule:
    """Return a rule for a path, whose descriptor stays open.

    Raises:
        OSError: there is nothing at that path.
    """
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return Rule(descriptor, rights if os.path.isdir(path) else rights & _OF_A_FILE)


def scope_signals(abi: int) -> None:
    """Let this process, and all that it will start, signal only each other from now on.

    Raises:
        OSError: the kernel refused it.
    """
    # Moving a file to another folder is refused by every ruleset that does not say otherwise.
    ruleset = _ruleset(_REFER, 0, _ABSTRACT_SOCKETS_AND_SIGNALS, abi)
    everything = open_rule("/", _REFER)
    _add(ruleset, everything)
    os.close(everything.descriptor)
    _restrict(ruleset, abi)


def fence(abi: int, rules: Iterable[Rule]) -> None:
    """Take every file but those of the rules, TCP, abstract sockets and signals to others, as far as the ABI can.

    Raises:
        OSError: the kernel refused it.
    """
    handled = (1 << _file_rights(abi)) - 1
    ruleset = _ruleset(handled, _TCP if abi >= 4 else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0, abi)
    for rule in rules:
        _add(ruleset, rule._replace(rights=rule.rights & handled))
    _restrict(ruleset, abi)


def _file_rights(abi: int) -> int:
    """Return how many rights of files an ABI knows: the first had 13, then came moving, truncating, device ioctl."""
    return 13 + sum(abi >= since for since in (2, 3, 5))


def _ruleset(files: int, tcp: int, scoped: int, abi: int) -> int:
    known = 8 + 8 * (abi >= 4) + 8 * (abi >= 6)  # the structure grew
    return _check(_libc.syscall(_CREATE_RULESET, struct.pack("=QQQ", files, tcp, scoped)[:known], known, 0))


def _add(ruleset: int, rule: Rule) -> None:
    beneath = struct.pack("=Qi", rule.rights, rule.descriptor)
    _check(_libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, beneath, 0))


def _restrict(ruleset: int, abi: int) -> None:
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, _LOG_SAME_EXEC_OFF if abi >= 7 else 0))
    os.close(ruleset)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
