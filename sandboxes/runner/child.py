"""A case's process: takes on its bounds, gives up its powers, then calls the function it was made for."""

import builtins
import errno
import gc
import importlib
import json
import os
import random
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from sandboxes.runner import linux
from sandboxes.runner.place import Place, Role
from sandboxes.runner.seccomp import SystemCallFilters

_PAGE = resource.getpagesize()
_LIBRARY = __file__.removesuffix("sandboxes/runner/child.py")
_SHARED_MAPPINGS_FACTOR = 4  # address space also counts what is only reserved: thread stacks, arenas, libraries
_LIMIT_OF_ERRNO = {errno.EMFILE: "open_files", errno.EFBIG: "file_size", errno.ENOSPC: "file_size"}


class Descriptors(NamedTuple):
    """What a child is given; everything else is closed."""

    stdin: int
    stdout: int
    stderr: int
    result: int
    """A pipe for what the function returned, or how it failed."""
    fault: int
    """A pipe for a set-up that failed; closed before the function is called, so that no completion can write to it."""
    channel: int | None
    """A socket to the case's other process."""


def run_child(
    function: str,
    read_argument: Callable[[], Any],
    given: Descriptors,
    limits: dict[str, float],
    *,
    place: Place,
    role: Role,
    system_calls: SystemCallFilters,
) -> NoReturn:
    """Become the case's process and never return.

    The argument is read here, so that a driver's never enters the warden's memory, which guests inherit. Where the
    place has uids for the roles, the process changes to its own; elsewhere it only gives up its capabilities.
    """
    code = 1
    try:
        result, fault = 3, 4
        try:
            arguments = [read_argument()]
            others_of_uid = place.others_of_uid()
            place.fence(role)
            channel = _keep_only(given)
            os.setsid()
            os.chdir(place.work_folder)
            os.umask(0o022)
            _bound_resources(limits, others_of_uid)
            # The guest is open to the other processes of its uid, which are its own; the driver is to none.
            _give_up_powers(place.uid_of(role), system_calls, undumpable=role == "driver")
            signal.signal(signal.SIGINT, signal.default_int_handler)
            random.seed(0)
            gc.enable()
            if channel is not None:
                arguments.append(socket.socket(fileno=channel))
        except BaseException as failure:
            os.write(fault, f"{type(failure).__name__}: {failure}".encode()[:1000])
            raise
        os.close(fault)
        code = _call(function, arguments, result)
    finally:
        os._exit(code)


def _keep_only(given: Descriptors) -> int | None:
    """Put the given descriptors at 0 to 4, the channel at 5, and close all others; return the channel's number."""
    wanted = [d for d in given if d is not None]
    # First out of the way of the low numbers, so that no dup2 overwrites one that is still needed.
    parked = [os.dup2(d, 100 + i, inheritable=False) for i, d in enumerate(wanted)]
    for number, descriptor in enumerate(parked):
        os.dup2(descriptor, number, inheritable=number < 3)
    linux.close_from(len(wanted))
    return 5 if given.channel is not None else None


def bound_for_all() -> None:
    """Set the bounds that no job chooses; called once, in the zygote."""
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        resource.setrlimit(kind, (0, 0))


def _bound_resources(limits: dict[str, float], others_of_uid: int) -> None:
    # Relative to what is mapped already, so that a big interpreter leaves a completion no less than a small one.
    file = os.open("/proc/self/statm", os.O_RDONLY)
    mapped = os.read(file, 200).split()
    os.close(file)
    memory = int(limits["memory_bytes"])
    for kind, bound in (
        # The warden acts on the exact bound of CPU time; this one holds if it cannot.
        (resource.RLIMIT_CPU, int(limits["cpu_seconds"]) + 2),
        (resource.RLIMIT_DATA, int(mapped[5]) * _PAGE + memory),
        (resource.RLIMIT_AS, int(mapped[0]) * _PAGE + memory * _SHARED_MAPPINGS_FACTOR),
        (resource.RLIMIT_FSIZE, int(limits["file_bytes"])),
        (resource.RLIMIT_NOFILE, int(limits["open_files"])),
        (resource.RLIMIT_NPROC, int(limits["processes"]) + others_of_uid),
    ):
        _, hard = resource.getrlimit(kind)
        value = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (value, value))


def _give_up_powers(uid: int | None, system_calls: SystemCallFilters, *, undumpable: bool) -> None:
    if uid is not None:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    linux.drop_capabilities()
    if undumpable:
        linux.set_undumpable()
    else:
        linux.set_dumpable()  # there is nothing in it to hide, and the warden must see how much memory is shared
    system_calls.install_last()


def _call(function: str, arguments: list[Any], result: int) -> int:
    """Call `module:function` and return the exit code."""
    module_name, _, name = function.partition(":")
    try:
        value = getattr(importlib.import_module(module_name), name)(*arguments)
        # As text in the text: whoever wants the value parses it, the warden does not.
        _write_note(result, {"value": json.dumps(value)})
        return 0
    except SystemExit as leaving:
        return _exit_code(leaving)
    except BaseException as failure:
        _print_traceback(failure)
        _write_note(result, {"limit": limit_of(failure), "failure": _last_line(failure)})
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                continue


def limit_of(failure: BaseException) -> str | None:
    """Name the bound that an exception stands for, if it does."""
    if isinstance(failure, MemoryError):
        return "memory"
    if isinstance(failure, BlockingIOError) and failure.errno == errno.EAGAIN:
        return "processes"
    if isinstance(failure, OSError):
        return _LIMIT_OF_ERRNO.get(failure.errno or 0)
    if isinstance(failure, RuntimeError) and str(failure) == "can't start new thread":
        return "processes"
    return None


def _exit_code(leaving: SystemExit) -> int:
    """Do what the interpreter does with the argument of sys.exit."""
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    builtins.print(leaving.code, file=sys.stderr)  # noqa: T201
    return 1


def _print_traceback(failure: BaseException) -> None:
    """Print the traceback to standard error without the frames of preloaded modules."""
    step = failure.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename.startswith(_LIBRARY):
        step = step.tb_next
    try:
        traceback.print_exception(type(failure), failure, step, file=sys.stderr)
    except BaseException:
        os.write(2, b"(the traceback could not be printed)\n")


def _last_line(failure: BaseException) -> str:
    try:
        return "".join(traceback.format_exception_only(failure)).strip()[-2000:]
    except BaseException:
        return type(failure).__name__


def _write_note(descriptor: int, note: dict[str, Any]) -> None:
    """Write one line; it carries the process id, since a completion's forks come this way as well."""
    view = memoryview(json.dumps({"pid": os.getpid(), **note}).encode() + b"\n")
    while view:
        view = view[os.write(descriptor, view) :]
