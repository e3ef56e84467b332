"""Becomes a compiled program. Runs inside the sandbox, in the completion's own process."""

import os
import signal
from pathlib import Path
from typing import Any, NoReturn


def run_program(argument: dict[str, Any]) -> NoReturn:
    """Replace this process by the program.

    Args:
        argument: `command`, `environment`, and `executables`: files of the work folder that are programs.
    """
    for name in argument["executables"]:
        Path(name).chmod(0o755)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, other programs do not expect that
        signal.signal(number, signal.SIG_DFL)
    command = argument["command"]
    os.execve(command[0], command, argument["environment"])  # noqa: S606 - in the sandbox
