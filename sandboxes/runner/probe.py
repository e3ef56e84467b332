"""The smallest job, which shows that a sandbox works."""

import os


def answer(argument: object) -> dict[str, object]:
    """Return the argument with the uid and process id that a job sees for itself."""
    return {"argument": argument, "uid": os.getuid(), "pid": os.getpid()}
