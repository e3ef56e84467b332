"""A connection between two processes of the runner: messages with descriptors."""

import json
import socket
from typing import Any

_MESSAGE_BYTES = 1 << 16
_DESCRIPTORS = 32


class Line:
    """An end of it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        """Return the end's descriptor."""
        return self._end.fileno()

    def tell(self, message: Any, descriptors: list[int] | None = None) -> None:
        """Send a message; OSError when the other end is gone."""
        data = json.dumps(message, separators=(",", ":")).encode()
        if descriptors:
            socket.send_fds(self._end, [data], descriptors)
        else:
            self._end.send(data)

    def hear(self) -> tuple[Any, list[int]] | None:
        """Return the next message and its descriptors; None when the other end is gone."""
        data, descriptors, _, _ = socket.recv_fds(self._end, _MESSAGE_BYTES, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        return (json.loads(data), descriptors) if data else None
