"""The client for ordinary code: `Assay`."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from assay.async_client import AsyncAssay, OnError, Progress
from assay.chunks import TaskLike
from assay.exchange import RetryPolicy
from assay.local import LocalServer
from assay.reward import RewardSpec
from assay.tasks import FormatSpec
from assay.verdict import Verdict

T = TypeVar("T")


class Assay:
    """Calls an Assay service from ordinary code, from any thread, also inside a running event loop.

        with Assay("http://127.0.0.1:8000") as assay:
            rewards = assay.rewards(tasks, on_error="none")

    One object may be shared by threads, used after a fork (data-loader workers) and pickled (Ray actors): each process
    gets connections of its own. Behind it is an `AsyncAssay` on a thread of its own, started by the first call.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        connections: int = 8,
        chunk_tasks: int = 64,
        chunk_bytes: int = 4 << 20,
        deadline_seconds: float = 1800.0,
        retry: RetryPolicy | None = None,
    ) -> None:
        """Prepare; nothing is connected yet. Arguments and errors are those of `AsyncAssay`."""
        self._client = AsyncAssay(
            url,
            api_key=api_key,
            connections=connections,
            chunk_tasks=chunk_tasks,
            chunk_bytes=chunk_bytes,
            deadline_seconds=deadline_seconds,
            retry=retry,
        )
        self._server: LocalServer | None = None
        self._lock = threading.Lock()
        self._background: _Background | None = None
        _ALIVE.add(self)

    @classmethod
    def local(cls, *, start_seconds: float = 120.0, settings: dict[str, str] | None = None, **arguments: Any) -> Self:
        """Start a service on this machine and return its client; closing the client, or the program's end, stops it.

        Needs the server's package in this Python's environment.

        Args:
            start_seconds: time for the service to become ready.
            settings: environment variables of the service, such as {"ASSAY_WORKERS": "2"}.
            arguments: those of `Assay`, apart from url and api_key.

        Raises:
            ServiceFailure: it did not start; the message holds what it said.
        """
        server = LocalServer(settings or {}, start_seconds)
        client = cls(server.url, api_key=server.api_key, **arguments)
        client._server = server
        return client

    @property
    def url(self) -> str:
        """The service's address."""
        return self._client.url

    def __reduce__(self) -> tuple[Callable[..., "Assay"], tuple[dict[str, Any]]]:
        """Pickle the configuration; a local service stays with the process that started it."""
        return _rebuilt, (self._client.configuration(),)

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connections, and stop the service that `local` started."""
        self.close()

    def close(self) -> None:
        """Close the connections, and stop the service that `local` started."""
        with self._lock:
            background, self._background = self._background, None
        if background is not None:
            background.stop()
        if self._server is not None:
            self._server.stop()

    def grade(
        self,
        tasks: Iterable[TaskLike],
        *,
        reward: RewardSpec | None = None,
        format: FormatSpec | None = None,
        deadline_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> list[Verdict]:
        """Grade tasks and return their verdicts in order: see `AsyncAssay.grade`; `progress` runs on another thread."""
        return self._run(
            self._client.grade(
                tasks, reward=reward, format=format, deadline_seconds=deadline_seconds, progress=progress
            )
        )

    def stream(
        self,
        tasks: Iterable[TaskLike],
        *,
        reward: RewardSpec | None = None,
        format: FormatSpec | None = None,
        deadline_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield (position, verdict) as requests are answered: see `AsyncAssay.stream`."""
        verdicts = self._client.stream(
            tasks, reward=reward, format=format, deadline_seconds=deadline_seconds, progress=progress
        )

        async def following() -> tuple[int, Verdict] | None:
            return await anext(verdicts, None)

        async def abandon() -> None:
            await verdicts.aclose()  # type: ignore[attr-defined]

        try:
            while (answer := self._run(following())) is not None:
                yield answer
        finally:
            self._run(abandon())

    def rewards(
        self,
        tasks: Iterable[TaskLike],
        *,
        on_error: OnError = "raise",
        reward: RewardSpec | None = None,
        format: FormatSpec | None = None,
        deadline_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> list[float | None]:
        """Grade tasks and return their rewards in order: see `AsyncAssay.rewards`, and `grade` here."""
        return self._run(
            self._client.rewards(
                tasks,
                on_error=on_error,
                reward=reward,
                format=format,
                deadline_seconds=deadline_seconds,
                progress=progress,
            )
        )

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._background is None:
                self._background = _Background(self._client, owner=self)
            background = self._background
        return background.run(coroutine)

    def _forked(self) -> None:
        """Begin anew in a child process: it has no such thread, the lock may be held, the connections are not its."""
        if self._background is not None:
            self._background.forgotten.detach()
            _LEFT_ALONE.append(self._background)
        _LEFT_ALONE.append(self._client)
        self._client = AsyncAssay(**self._client.configuration())
        self._background = None
        self._lock = threading.Lock()


class _Background:
    """An event loop on a thread of its own; both end with their owner, also when nobody closed it."""

    def __init__(self, client: AsyncAssay, owner: Assay) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="assay-client", daemon=True)
        self.forgotten = weakref.finalize(owner, self._halt)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine there and wait; an interrupt of the waiting thread cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Close the connections and wait for the thread's end."""
        self.forgotten()
        self._thread.join()

    def _halt(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _turn(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


_ALIVE: weakref.WeakSet[Assay] = weakref.WeakSet()
_LEFT_ALONE: list[object] = []
"""What a fork inherited; kept, because finalizers would touch the parent's connections."""


def _after_fork() -> None:
    for client in list(_ALIVE):
        client._forked()


os.register_at_fork(after_in_child=_after_fork)


def _rebuilt(configuration: dict[str, Any]) -> Assay:
    return Assay(**configuration)
