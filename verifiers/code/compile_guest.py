"""Compiles a program. Runs inside the sandbox; the compiler is trusted, the program is only its input."""

import base64
import subprocess
from pathlib import Path
from typing import Any

_MOST_LOG = 4000


def compile_program(argument: dict[str, Any]) -> dict[str, Any]:
    """Run the compiler in the work folder, in which the source is.

    Args:
        argument: `command`, `environment`, `artifacts` (patterns).

    Returns:
        `exit_code`, `log` (its begin) and `files` (base64, by path); or `missing`: the command that is not there.
    """
    command = argument["command"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=argument["environment"],
            check=False,
        )
    except FileNotFoundError:
        return {"missing": command[0]}
    made = sorted({path for pattern in argument["artifacts"] for path in Path().glob(pattern)})
    files = {str(path): base64.b64encode(path.read_bytes()).decode() for path in made if done.returncode == 0}
    return {"exit_code": done.returncode, "log": done.stdout[:_MOST_LOG].decode("utf-8", "replace"), "files": files}
