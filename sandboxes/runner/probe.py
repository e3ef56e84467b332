"""The smallest jobs: one shows that a sandbox works, one that it holds."""

import os


def answer(argument: object) -> dict[str, object]:
    """Return the argument with the uid and process id that a job sees for itself."""
    return {"argument": argument, "uid": os.getuid(), "pid": os.getpid()}


def run_source(source: str) -> None:
    """Run Python source in a namespace of its own; the isolation suite's attempts come through here."""
    exec(compile(source, "attempt.py", "exec"), {"__name__": "__main__"})  # noqa: S102 - what a sandbox is for
