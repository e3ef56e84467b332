"""Framing between the host and a warden: a 4-byte big-endian length, then that many bytes of JSON.

Bytes travel as Latin-1 text, one character a byte, so that no output, however broken, fails to encode.
"""

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
MAX_FRAME_BYTES = 1 << 30


class FrameError(Exception):
    """The peer sent something that is not a frame."""


def send(channel: socket.socket, message: Any) -> None:
    """Send one message.

    Raises:
        FrameError: it is larger than a frame may be.
        OSError: the peer is gone.
    """
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"message of {len(body)} bytes is larger than a frame may be")
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket, max_bytes: int = MAX_FRAME_BYTES) -> Any:
    """Return the next message, or None when the peer closed between two messages.

    Raises:
        FrameError: too large, cut short, or not JSON.
        OSError: the channel broke or timed out.
    """
    head = _exactly(channel, _LENGTH.size)
    if not head:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > max_bytes:
        raise FrameError(f"frame of {length} bytes is larger than the {max_bytes} allowed")
    body = _exactly(channel, length)
    if len(body) != length:
        raise FrameError("the peer closed within a frame")
    try:
        return json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"frame is not JSON: {error}") from None


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            if parts:
                raise FrameError("the peer closed within a frame")
            return b""
        parts += part
    return bytes(parts)
