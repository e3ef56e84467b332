"""A guest and a driver for tests of what one can do to the other; runs inside the sandbox."""

import contextlib
import socket
from typing import Any


def guest(argument: str, channel: socket.socket) -> None:
    """Run hostile source with the channel in reach."""
    exec(compile(argument, "attempt.py", "exec"), {"channel": channel})


def driver(argument: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    """Keep a secret, answer each line with its length, and return what was heard until the guest's end."""
    heard = b""
    while part := channel.recv(65_536):
        heard += part
        with contextlib.suppress(OSError):  # the guest may have gone
            channel.sendall(b"%d\n" % len(part))
    return {"heard": heard.decode("latin-1"), "kept": argument["secret"]}
