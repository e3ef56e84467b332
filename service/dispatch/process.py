"""One worker process as the gateway sees it: its start, its socket, its end."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import orjson

from sandboxes.pool import PoolState
from service import frames
from service.dispatch.base import WorkersUnavailable

_SETTINGS_PREFIX = "ASSAY_"  # settings, keys among them: a worker gets what it needs in its first frame


class WorkerProcess(asyncio.Protocol):
    """A worker process and the gateway's end of its socket. Create with `spawn`, on the event loop's thread."""

    def __init__(self, on_verdict: Callable[["WorkerProcess", bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        """Done when the worker is warm; `WorkersUnavailable` when it says that this machine cannot run it."""
        self.ended: asyncio.Future[int] = loop.create_future()
        """The exit code, negative for a signal, once the process is gone."""
        self.pool: list[PoolState] = []
        """What the worker last said of its sandboxes, by profile."""
        self._on_verdict = on_verdict
        self._reader = frames.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(
        cls, config: frames.WorkerConfig, on_verdict: Callable[["WorkerProcess", bytes], None]
    ) -> "WorkerProcess":
        """Start a worker process. `on_verdict(worker, verdict JSON)` is called for each verdict it sends."""
        worker = cls(on_verdict)
        ours, theirs = socket.socketpair()
        with theirs:
            # The call stays on this thread: the kernel kills the worker when the thread that started it ends.
            worker._process = _start(theirs)
        try:
            ours.setblocking(False)
            await asyncio.get_running_loop().create_unix_connection(lambda: worker, sock=ours)
        except BaseException:
            ours.close()
            worker.kill()
            raise
        worker.send(frames.encode(frames.HELLO, config.model_dump_json().encode()))
        return worker

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None
        return self._process.pid

    def send(self, frame: bytes) -> None:
        """Send a frame; what a dying worker does not read is lost."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    def kill(self) -> None:
        """End the process at once; `ended` follows."""
        assert self._process is not None
        self._process.kill()

    def close(self) -> None:
        """Let the process end by itself when it has answered what it has; `ended` follows."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        """Act on each frame from the worker."""
        for kind, payload in self._reader.feed(data):
            if kind == frames.VERDICT:
                self._on_verdict(self, payload)
            elif kind == frames.POOL:
                self.pool = [PoolState(**state) for state in orjson.loads(payload)["profiles"]]
            elif kind == frames.READY:
                if not self.ready.done():
                    self.ready.set_result(None)
            elif kind == frames.UNAVAILABLE and not self.ready.done():
                self.ready.set_exception(WorkersUnavailable(orjson.loads(payload)["message"]))

    def connection_lost(self, _error: Exception | None) -> None:
        """The worker closed its end: whatever it is still doing, it is of no use any more."""
        self.kill()
        self._reaper = asyncio.get_running_loop().create_task(self._reap())

    async def _reap(self) -> None:
        assert self._process is not None
        code = await asyncio.to_thread(self._process.wait)
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"the worker ended at start with exit code {code}"))
        with contextlib.suppress(asyncio.InvalidStateError):
            self.ended.set_result(code)


def _start(channel: socket.socket) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parent.parent.parent)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS_PREFIX)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [
            sys.executable,
            "-P",  # the working folder is not a place to import from
            "-m",
            "service.worker",
            f"--channel={channel.fileno()}",
            f"--parent={os.getpid()}",
        ],
        stdin=subprocess.DEVNULL,
        stdout=sys.__stderr__ if _has_descriptor(sys.__stderr__) else subprocess.DEVNULL,
        pass_fds=[channel.fileno()],
        env=environment,
        start_new_session=True,  # a Ctrl-C at the terminal is the gateway's to handle
    )


def _has_descriptor(stream: object) -> bool:
    try:
        stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False
    return True
