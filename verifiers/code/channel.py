"""Messages between the two processes of an assert-style run: a 4-byte length, then that many bytes of JSON.

Runs inside the sandbox, on both sides. The driver's side reads what a hostile process wrote, so every bound is checked
before anything is built from a message.
"""

import json
import re
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
MAX_BYTES = 16 << 20
FORWARDED = frozenset(
    """
    call iter next len getitem setitem delitem contains enter exit reversed format hash bool
    int float complex index bytes abs neg pos invert round trunc floor ceil
    lt le gt ge eq ne add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor
    radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
    iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
    """.split()  # noqa: SIM905 - a list would take a page
)
"""Special methods that the driver's stand-in for an object has when the object has them."""
_MAX_CONTAINERS = 1_000_000
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)  # one without an end is all the rest: linear


class ChannelClosed(BaseException):
    """The other process is gone. Not an `Exception`: no test code that catches errors may catch this."""


class Violation(BaseException):
    """The other process sent what is not a message. Not an `Exception`, for the same reason."""


class TooLargeError(Exception):
    """A message would be larger than the other side accepts."""


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send one message.

    Raises:
        TooLargeError: nothing was sent.
        ChannelClosed: the other process is gone.
    """
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_BYTES:
        raise TooLargeError(f"{len(body)} bytes, {MAX_BYTES} are allowed")
    try:
        channel.sendall(_LENGTH.pack(len(body)) + body)
    except OSError:
        raise ChannelClosed from None


def receive(channel: socket.socket) -> dict[str, Any]:
    """Return the next message.

    Raises:
        ChannelClosed: the other process is gone.
        Violation: what came is not a message.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    if length > MAX_BYTES:
        raise Violation(f"a message of {length} bytes")
    body = _exactly(channel, length)
    if _brackets(body) > _MAX_CONTAINERS and _brackets(_STRING.sub(b"", body)) > _MAX_CONTAINERS:
        raise Violation("a message of too many containers")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise Violation("a message that is not JSON") from None
    if type(message) is not dict:
        raise Violation("a message that is not an object")
    return message


def _brackets(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = channel.recv(min(size - len(parts), 1 << 20))
        except OSError:
            raise ChannelClosed from None
        if not part:
            raise ChannelClosed
        parts += part
    return bytes(parts)
