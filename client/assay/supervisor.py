"""Runs a command until standard input closes: `python -m assay.supervisor COMMAND …`.

A pipe's other end closes however its holder ends, also by SIGKILL, so the command never outlives its starter.
"""

import os
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run the command, ask it to stop when standard input ends, and return its exit code."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        threading.Thread(target=_stop_at_end_of_input, args=(process,), daemon=True).start()
        return process.wait()


def _stop_at_end_of_input(process: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):  # unbuffered: a thread in the middle of reading sys.stdin would abort this process's end
        pass
    process.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
