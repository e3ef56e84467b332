"""Framing between the host and a warden: a 4-byte big-endian length, then that many bytes of JSON.

Bytes travel in base64, so that no output makes a message much longer than itself. The two ends are
functions, since the way between may be a socket, a pair of pipes, or a stream through a container engine.
"""

import base64
import json
import os
import struct
from collections.abc import Callable
from typing import Any

Read = Callable[[int], bytes]
"""Returns at least one and at most so many bytes; none at the end."""
Write = Callable[[bytes], object]
"""Writes all of it."""

_LENGTH = struct.Struct("!I")
MAX_FRAME_BYTES = 1 << 30
_READ_AT_MOST = 1 << 20


def from_bytes(data: bytes) -> str:
    """Return bytes as text for a message."""
    return base64.b64encode(data).decode("ascii")


def to_bytes(text: str) -> bytes:
    """Return the bytes that `from_bytes` made text of; ValueError when it did not."""
    return base64.b64decode(text, validate=True)


class FrameError(Exception):
    """The peer sent something that is not a frame."""


def send(write: Write, message: Any) -> None:
    """Send one message.

    Raises:
        FrameError: it is larger than a frame may be.
        OSError: the peer is gone.
    """
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"message of {len(body)} bytes is larger than a frame may be")
    write(_LENGTH.pack(len(body)) + body)


def receive(read: Read, max_bytes: int = MAX_FRAME_BYTES) -> Any:
    """Return the next message, or None when the peer closed between two messages.

    Raises:
        FrameError: too large, cut short, or not JSON.
        OSError: the channel broke or timed out.
    """
    body = receive_unread(read, max_bytes)
    if body is None:
        return None
    try:
        return json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"frame is not JSON: {error}") from None


def receive_unread(read: Read, max_bytes: int = MAX_FRAME_BYTES) -> bytes | None:
    """Return the next message as it came, or None when the peer closed between two messages.

    Raises:
        FrameError: too large, or cut short.
        OSError: the channel broke or timed out.
    """
    head = _exactly(read, _LENGTH.size)
    if not head:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > max_bytes:
        raise FrameError(f"frame of {length} bytes is larger than the {max_bytes} allowed")
    body = _exactly(read, length)
    if len(body) != length:
        raise FrameError("the peer closed within a frame")
    return body


def _exactly(read: Read, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = read(min(size - len(parts), _READ_AT_MOST))
        if not part:
            if parts:
                raise FrameError("the peer closed within a frame")
            return b""
        parts += part
    return bytes(parts)


class DescriptorEnd:
    """An end of the channel that is a pair of descriptors, which may be the same."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = incoming
        self.outgoing = outgoing

    def read(self, size: int) -> bytes:
        """See `Read`."""
        return os.read(self.incoming, size)

    def write(self, data: bytes) -> None:
        """See `Write`."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.outgoing, view) :]
