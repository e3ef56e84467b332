"""A guest and a driver for tests of what one can do to the other; runs inside the sandbox."""

import contextlib
import socket
import sys
from typing import Any

prepared: list[str] = []


def prepare() -> None:
    """Do once what every process is to find; nothing that is printed or read here reaches the channel."""
    sys.stdout.write("this is not for the host")
    sys.stdout.flush()
    prepared.append(f"read {sys.stdin.read(9)!r}")


def tell(_argument: object) -> list[str]:
    """Return what was prepared."""
    return prepared


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
