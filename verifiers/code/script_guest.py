"""Runs a program as a script. Runs inside the sandbox, in the completion's own process."""

import types
from typing import Any

from verifiers.code.interpreter import PROGRAM_FILE, end_program, prepare_streams, read_program, start_program

_SAMPLE = """
import sys
numbers = [int(word) for word in "3 4".split()]
print(sum(numbers), max(numbers), *sorted(numbers), sep=" ")
for line in sys.stdin:
    print(line.strip().upper(), f"{len(line):>4}")
"""
_TIMES = 12  # the interpreter adapts code to what it does after a few runs


def prepare() -> None:
    """Run a sample program over and over in the zygote, so that what every program needs is warm, and make streams."""
    for _ in range(_TIMES):
        _run(_SAMPLE, start_program("__main__"))
    prepare_streams()


def run_script(_argument: Any) -> None:
    """Run the work folder's program as `__main__`, with all that belongs to the interpreter's end.

    Raises:
        SystemExit: the program left with it.
        BaseException: whatever else ended the program; its threads are then not waited for, since it has failed anyway.
    """
    source = read_program()
    module = start_program("__main__")
    ending = _run(source, module)
    if ending is None or isinstance(ending, SystemExit):
        end_program()
    if ending is not None:
        raise ending


def _run(source: str, module: types.ModuleType) -> BaseException | None:
    """Run the program and return what it ended with, its frames alone in the traceback."""
    try:
        code = compile(source, PROGRAM_FILE, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - in the sandbox
    except BaseException as ending:
        own = ending.__traceback__
        return ending.with_traceback(own.tb_next if own is not None else None)
    return None
