"""Runs a checker on one output. Runs inside the sandbox, in a process in which no completion's code is."""

import sys
import traceback
from pathlib import Path
from typing import Any

from verifiers.code.interpreter import PROGRAM_FILE, end_program, read_program, start_program

_NAMES = ("input", "output", "expected")


def run_checker(argument: dict[str, str]) -> dict[str, Any]:
    """Run the work folder's program as a script with three files, and return how it ended.

    Args:
        argument: the files' contents by name, a character a byte.

    Returns:
        `exit_code`, or `raised`: the last line of its traceback.
    """
    for name in _NAMES:
        Path(f"{name}.txt").write_bytes(argument[name].encode("latin-1"))
    source = read_program()
    module = start_program("__main__")
    sys.argv += [f"{name}.txt" for name in _NAMES]
    try:
        exec(compile(source, PROGRAM_FILE, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - in the sandbox
        end_program()
    except SystemExit as leaving:
        code = 0 if leaving.code is None else leaving.code
        return {"exit_code": code} if isinstance(code, int) else {"raised": str(code)[:300]}
    except BaseException as raised:
        return {"raised": "".join(traceback.format_exception_only(raised)).strip()[-300:]}
    return {"exit_code": 0}
