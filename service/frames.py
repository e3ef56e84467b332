"""Messages between the gateway and a worker process: length-prefixed frames on a socket.

A frame is 4 bytes, the length of what follows (big-endian); 1 byte, its kind; then JSON.
"""

import socket
from collections.abc import Iterator
from typing import Any

import orjson
from assay.tasks import Task
from pydantic import BaseModel, ConfigDict

from sandboxes.pool import SandboxConfig

HELLO = b"H"
"""Gateway to worker, once: `WorkerConfig`."""
READY = b"R"
"""Worker to gateway, once: the worker is warm."""
UNAVAILABLE = b"U"
"""Worker to gateway, instead of READY: {"message": why this machine cannot run a worker}."""
CHUNK = b"C"
"""Gateway to worker: `ChunkMessage`."""
VERDICT = b"V"
"""Worker to gateway, once for each task of the chunk, in order: the verdict."""
POOL = b"P"
"""Worker to gateway, now and then: {"profiles": [`sandboxes.pool.PoolState`, …]}."""

_HEADER = 5
_MAX_FRAME = (1 << 32) - 1


def encode(kind: bytes, payload: bytes) -> bytes:
    """Return the frame of an already encoded payload."""
    size = len(payload) + 1
    if size > _MAX_FRAME:
        raise ValueError(f"a frame of {size} bytes is too large")
    return size.to_bytes(4, "big") + kind + payload


def encode_json(kind: bytes, message: dict[str, Any]) -> bytes:
    """Return the frame of a message."""
    return encode(kind, orjson.dumps(message))


class WorkerConfig(BaseModel):
    """What a worker is told at start; it reads no settings itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sandboxes: SandboxConfig
    warm_verifiers: tuple[str, ...]
    """Verifiers whose sandboxes are started before the worker is ready."""
    log_level: str


class ChunkMessage(BaseModel):
    """Tasks to grade together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: list[Task]
    queue_ms: list[float]
    """How long each task waited."""


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Take bytes and yield each frame that is complete, as (kind, payload)."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _HEADER:
            end = start + 4 + int.from_bytes(buffer[start : start + 4], "big")
            if len(buffer) < end:
                break
            yield bytes(buffer[start + 4 : start + _HEADER]), bytes(buffer[start + _HEADER : end])
            start = end
        del buffer[:start]


def receive(channel: socket.socket) -> tuple[bytes, bytes] | None:
    """Block until a frame is there and return (kind, payload); None when the other side has gone."""
    header = _receive_exactly(channel, _HEADER)
    if header is None:
        return None
    payload = _receive_exactly(channel, int.from_bytes(header[:4], "big") - 1)
    if payload is None:
        return None
    return bytes(header[4:]), bytes(payload)


def _receive_exactly(channel: socket.socket, size: int) -> bytearray | None:
    buffer = bytearray(size)
    view = memoryview(buffer)
    filled = 0
    while filled < size:
        count = channel.recv_into(view[filled:])
        if count == 0:
            return None
        filled += count
    return buffer
