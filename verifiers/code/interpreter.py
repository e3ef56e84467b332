"""Makes the warm process look like a Python that was just started for one program, and ends it like one.

Runs inside the sandbox, in the completion's own process. Nothing here protects anything: what must not be reached is
not in this process.
"""

import atexit
import io
import os
import sys
import threading
import types
from pathlib import Path

PROGRAM_FILE = "main.py"
_OWN_FOLDER = str(Path(__file__).parents[2])
_prepared: list[object] = []


def read_program() -> str:
    """Return the source that the job put in the work folder, line ends as they are."""
    with open(PROGRAM_FILE, "rb") as file:  # noqa: PTH123 - a path object costs more than the reading
        return file.read().decode("utf-8", "surrogatepass")


def start_program(name: str) -> types.ModuleType:
    """Return the empty module in which the program will run, with fresh streams, arguments and module table.

    Args:
        name: the module's `__name__`; `__main__` is always an empty or this module.
    """
    if sys.stdin not in _prepared:
        open_streams()
    folder = os.getcwd()  # noqa: PTH109 - as in `read_program`
    sys.path[:] = [folder, *(entry for entry in sys.path if entry and entry != _OWN_FOLDER)]
    sys.argv = [PROGRAM_FILE]
    module = types.ModuleType(name)
    module.__file__ = f"{folder}/{PROGRAM_FILE}"
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules[name] = module
    _forgive_own_frames()
    return module


def prepare_streams() -> None:
    """Make the streams once, in the zygote, that the programs of all jobs find; only while nothing was read or written.

    They are those of a program that reads a file and writes to pipes, as a job's do.
    """
    file = os.memfd_create("input", os.MFD_CLOEXEC)
    reading, writing = os.pipe()
    kept = [os.dup(number) for number in range(3)]
    for number, descriptor in enumerate((file, writing, writing)):
        os.dup2(descriptor, number)
    open_streams()
    for number, descriptor in enumerate(kept):
        os.dup2(descriptor, number)
    for descriptor in (file, reading, writing, *kept):
        os.close(descriptor)
    _prepared.append(sys.stdin)


def end_program() -> None:
    """Do what the interpreter does at its end: wait for threads, call exit handlers, write out what is buffered."""
    threading._shutdown()  # type: ignore[attr-defined]  # there is no public name for it
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


def open_streams() -> None:
    """Give this process new standard streams."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mode = "r" if number == 0 else "w"
        raw = io.FileIO(number, mode, closefd=False)
        raw.name = f"<{name}>"  # all layers of the stream answer with it
        buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
        stream = io.TextIOWrapper(
            buffer,
            encoding="utf-8",
            errors="backslashreplace" if name == "stderr" else "strict",
            line_buffering=name == "stderr",
        )
        stream.mode = mode  # type: ignore[misc]  # as the interpreter does itself
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _forgive_own_frames() -> None:
    """Raise the recursion limit by the frames that are not the program's, so that it has as many as it expects."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)
