"""A case's process: takes on its bounds, gives up its powers, then calls the function it was made for."""

import builtins
import errno
import gc
import json
import os
import resource
import signal
import socket
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from sandboxes.runner import linux
from sandboxes.runner.brief import Brief
from sandboxes.runner.place import Place, Role
from sandboxes.runner.seccomp import SystemCallFilters

_PAGE = resource.getpagesize()
_LIBRARY = __file__.removesuffix("sandboxes/runner/child.py")
_SHARED_MAPPINGS_FACTOR = 4  # address space also counts what is only reserved: thread stacks, arenas, libraries
_LIMIT_OF_ERRNO = {errno.EMFILE: "open_files", errno.EFBIG: "file_size", errno.ENOSPC: "file_size"}


class Given(NamedTuple):
    """The descriptors that a child is given; everything else is closed."""

    stdin: int
    stdout: int
    stderr: int
    result: int
    """A pipe for what the function returned, or how it failed."""
    channel: int
    """A socket to the case's other process; anything where there is none."""
    fault: int
    """A pipe for a set-up that failed; closed before the function is called, so that no completion can write to it."""
    brief: int
    """What the process is to do; closed like `fault`."""


_RESULT, _CHANNEL, _FAULT, _BRIEF = 3, 4, 5, 6


def run_child(
    function: str,
    given: Given,
    limits: dict[str, float],
    *,
    place: Place,
    role: Role,
    has_channel: bool,
    system_calls: SystemCallFilters,
    loaded: dict[str, types.ModuleType],
) -> NoReturn:
    """Become the case's process and never return.

    Where the place has uids for the roles, the process changes to its own; elsewhere it only gives up its capabilities.

    Args:
        function: `module:function`, of a module in `loaded`.
        given: what it is given.
        limits: its bounds.
        place: where it runs.
        role: what it is for.
        has_channel: whether there is another process.
        system_calls: the filters.
        loaded: the modules that are there, by name.
    """
    code = 1
    fault = given.fault
    try:
        try:
            call = function_named(function, loaded)
            others_of_uid = place.others_of_uid()
            if role == "guest":
                place.furnish(limits)
            place.fence(role)
            _keep_only(given)
            fault = _FAULT
            os.setsid()
            os.chdir(place.work_folder)
            os.umask(0o022)
            brief = Brief(_BRIEF)
            arguments = [brief.argument()]
            take_on(resource_bounds(limits, others_of_uid))
            give_up_powers(place.uid_of(role), system_calls)
            brief.place_files()
            if role == "guest":
                linux.set_dumpable()  # there is nothing in it to hide, and the warden must see how much is shared
            # Not before: process 1 of a namespace, forked like this one, is deaf only to signals without a handler.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            gc.enable()
            if has_channel:
                arguments.append(socket.socket(fileno=_CHANNEL))
        except BaseException as failure:
            os.write(fault, f"{type(failure).__name__}: {failure}".encode()[:1000])
            raise
        linux.close_from(_CHANNEL + 1 if has_channel else _CHANNEL)
        code = call_and_note(call, arguments)
    finally:
        os._exit(code)


def _keep_only(given: Given) -> None:
    """Put the given descriptors at 0 to 6 and close all others."""
    # First out of the way of the low numbers, so that no dup2 overwrites one that is still needed.
    parked = [os.dup2(descriptor, 100 + i, inheritable=False) for i, descriptor in enumerate(given)]
    for number, descriptor in enumerate(parked):
        os.dup2(descriptor, number, inheritable=number < 3)
    linux.close_from(len(given))


def bound_for_all() -> None:
    """Set the bounds that no job chooses; called once, before there is a zygote."""
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        resource.setrlimit(kind, (0, 0))


def resource_bounds(limits: dict[str, float], others_of_uid: int) -> list[tuple[int, tuple[int, int]]]:
    """Return the arguments of `resource.setrlimit` that bound a process forked from this one, or this one itself."""
    # Relative to what is mapped already, so that a big interpreter leaves a completion no less than a small one.
    file = os.open("/proc/self/statm", os.O_RDONLY)
    mapped = os.read(file, 200).split()
    os.close(file)
    memory = int(limits["memory_bytes"])
    bounds = []
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
        bounds.append((kind, (value, value)))
    return bounds


def take_on(bounds: list[tuple[int, tuple[int, int]]]) -> None:
    """Bound this process."""
    for kind, bound in bounds:
        resource.setrlimit(kind, bound)


def give_up_powers(uid: int | None, system_calls: SystemCallFilters) -> None:
    """Change to the uid, where there is one, and leave this process no power and undumpable."""
    if uid is not None:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    linux.drop_capabilities()
    linux.set_undumpable()
    system_calls.install_last()


def function_named(name: str, loaded: dict[str, types.ModuleType]) -> Callable[..., Any]:
    """Return the function `module:function` of a loaded module."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(loaded[module], function)
    return found


def call_and_note(function: Callable[..., Any], arguments: list[Any]) -> int:
    """Call the function and return the exit code."""
    try:
        value = function(*arguments)
        # As text in the text: whoever wants the value parses it, the warden does not.
        _write_note(_RESULT, {"value": json.dumps(value)})
        return 0
    except SystemExit as leaving:
        return _exit_code(leaving)
    except BaseException as failure:
        _print_traceback(failure)
        _write_note(_RESULT, {"limit": limit_of(failure), "failure": _last_line(failure)})
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
