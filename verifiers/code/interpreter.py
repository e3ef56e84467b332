"""Makes the warm process look like a Python that was just started for one program, and ends it like one.

Runs inside the sandbox, in the completion's own process. Nothing here protects anything: what must not be reached is
not in this process.
"""

import _sitebuiltins
import atexit
import builtins
import io
import sys
import threading
import types
from pathlib import Path

PROGRAM_FILE = "main.py"
_OWN_FOLDER = str(Path(__file__).parents[2])


def read_program() -> str:
    """Return the source that the job put in the work folder, line ends as they are."""
    return Path(PROGRAM_FILE).read_bytes().decode("utf-8", "surrogatepass")


def start_program(name: str) -> types.ModuleType:
    """Return the empty module in which the program will run, with fresh streams, arguments and module table.

    Args:
        name: the module's `__name__`; `__main__` is always an empty or this module.
    """
    _open_streams()
    _add_site_builtins()
    sys.path[:] = [str(Path.cwd()), *(entry for entry in sys.path if entry and entry != _OWN_FOLDER)]
    sys.argv = [PROGRAM_FILE]
    module = types.ModuleType(name)
    module.__file__ = str(Path(PROGRAM_FILE).absolute())
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules[name] = module
    _forgive_own_frames()
    return module


def end_program() -> None:
    """Do what the interpreter does at its end: wait for threads, call exit handlers, write out what is buffered."""
    threading._shutdown()  # type: ignore[attr-defined]  # there is no public name for it
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


def _open_streams() -> None:
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


def _add_site_builtins() -> None:
    """Define what the module `site`, which the sandbox leaves out, adds to the builtin names."""
    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    for name, text in (("copyright", sys.copyright), ("credits", "See www.python.org for more information.")):
        setattr(builtins, name, _sitebuiltins._Printer(name, text))
    license_text = "See https://www.python.org/psf/license/"
    setattr(builtins, "license", _sitebuiltins._Printer("license", license_text))  # noqa: B010 - all alike
    setattr(builtins, "help", _sitebuiltins._Helper())  # noqa: B010


def _forgive_own_frames() -> None:
    """Raise the recursion limit by the frames that are not the program's, so that it has as many as it expects."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)
