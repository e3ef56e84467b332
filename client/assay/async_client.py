"""The client for asynchronous code: `AsyncAssay`."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import httpx

from assay.chunks import Chunk, TaskLike, cut
from assay.errors import AssayError, DeadlineExceeded, Refused, Ungraded
from assay.exchange import Deadline, Exchange, RetryPolicy
from assay.reward import RewardSpec
from assay.tasks import FormatSpec
from assay.verdict import Verdict

logger = logging.getLogger("assay")

OnError = Literal["raise", "none"] | float
"""What stands for a reward where the grading failed: an exception, None (mask that sample), or a number."""
Progress = Callable[[int], None]
"""Called with the number of tasks answered so far in this call."""


class AsyncAssay:
    """Calls an Assay service from asynchronous code.

        async with AsyncAssay("http://127.0.0.1:8000") as assay:
            rewards = await assay.rewards(tasks, on_error="none")

    One object serves any number of event loops and threads, each loop with connections of its own. It can be pickled,
    and used after a fork.
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
        """Prepare; nothing is connected yet.

        Args:
            url: the service's address, without `/v1`; the environment's ASSAY_URL when left out.
            api_key: sent as a bearer token; the environment's ASSAY_API_KEY when left out.
            connections: requests under way at the same time, for each event loop.
            chunk_tasks: tasks in one request.
            chunk_bytes: bytes of tasks in one request.
            deadline_seconds: time for one call of `grade`, `stream` or `rewards`, with all its retries.
            retry: what is tried again, how often.

        Raises:
            ValueError: there is no address, it is none of HTTP, or a number is not positive.
        """
        url = url or os.environ.get("ASSAY_URL")
        if not url:
            raise ValueError("no service: give url, set ASSAY_URL, or start one by Assay.local()")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url is {url!r}; it must start with http:// or https://")
        for name, value in {"connections": connections, "chunk_tasks": chunk_tasks, "chunk_bytes": chunk_bytes}.items():
            if value < 1:
                raise ValueError(f"{name} is {value}; it must be 1 or more")
        _check_deadline(deadline_seconds)
        self.url = url.rstrip("/")
        self._api_key = api_key or os.environ.get("ASSAY_API_KEY")
        self._connections = connections
        self._chunk_tasks = chunk_tasks
        self._chunk_bytes = chunk_bytes
        self._deadline_seconds = deadline_seconds
        self._retry = retry or RetryPolicy()
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Callable[..., "AsyncAssay"], tuple[dict[str, Any]]]:
        """Pickle the configuration; connections belong to one process."""
        return _rebuilt, (self.configuration(),)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments that make an equal client."""
        return {
            "url": self.url,
            "api_key": self._api_key,
            "connections": self._connections,
            "chunk_tasks": self._chunk_tasks,
            "chunk_bytes": self._chunk_bytes,
            "deadline_seconds": self._deadline_seconds,
            "retry": self._retry,
        }

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close this event loop's connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the next call opens new ones."""
        lane = self._by_loop.pop(asyncio.get_running_loop(), None)
        if lane is not None:
            await lane.client.aclose()

    async def grade(
        self,
        tasks: Iterable[TaskLike],
        *,
        reward: RewardSpec | None = None,
        format: FormatSpec | None = None,
        deadline_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> list[Verdict]:
        """Grade tasks and return their verdicts in order; a task that could not be graded has an error as its verdict.

        Args:
            tasks: tasks, or their fields as the HTTP interface has them.
            reward: how scores become rewards, for tasks that do not say so themselves.
            format: the form to score, for tasks that do not say so themselves.
            deadline_seconds: time for this call; the client's when left out.
            progress: called with the number of tasks answered so far.

        Raises:
            Refused: the service refused a task, or the key.
            ServiceFailure: some tasks have no answer; `DeadlineExceeded` when time was the reason.
            ValueError: a task is not JSON.
        """
        found: dict[int, Verdict] = {}
        async for position, verdict in self.stream(
            tasks, reward=reward, format=format, deadline_seconds=deadline_seconds, progress=progress
        ):
            found[position] = verdict
        return [found[position] for position in range(len(found))]

    async def stream(
        self,
        tasks: Iterable[TaskLike],
        *,
        reward: RewardSpec | None = None,
        format: FormatSpec | None = None,
        deadline_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> AsyncIterator[tuple[int, Verdict]]:
        """Yield (position, verdict) as requests are answered, each task's once; arguments and errors as in `grade`.

        Tasks are read only as far ahead as requests go out. What is under way is abandoned with the iterator.
        """
        done = 0
        async for chunk, answer in self._answers(tasks, reward, format, deadline_seconds):
            if isinstance(answer, AssayError):
                raise answer
            for key, verdict in zip(chunk.tasks, answer, strict=True):
                done += 1
                yield int(key), verdict
            if progress is not None:
                progress(done)

    async def rewards(
        self,
        tasks: Iterable[TaskLike],
        *,
        on_error: OnError = "raise",
        reward: RewardSpec | None = None,
        format: FormatSpec | None = None,
        deadline_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> list[float | None]:
        """Grade tasks and return their rewards in order.

        Args:
            tasks: as in `grade`.
            on_error: what stands where there is no reward after all retries. `raise`; `none`, a None that the trainer
                masks; or a number. With the latter two a service that cannot be reached stops no training either, and
                a warning is logged; a request that is wrong is raised in any case.
            reward: as in `grade`.
            format: as in `grade`.
            deadline_seconds: as in `grade`.
            progress: as in `grade`.

        Raises:
            Ungraded: tasks ended in an error, and `on_error` is `raise`.
            Refused: the service refused a task, or the key.
            ServiceFailure: some tasks have no answer, and `on_error` is `raise`.
            ValueError: a task is not JSON.
        """
        substitute = _substitute(on_error)
        found: dict[int, float | None] = {}
        failed: list[Verdict] = []
        async for chunk, answer in self._answers(tasks, reward, format, deadline_seconds):
            if isinstance(answer, AssayError):
                if on_error == "raise" or isinstance(answer, Refused):
                    raise answer
                logger.warning("%d tasks have no reward: %s", len(chunk.tasks), answer)
                found |= {int(key): substitute for key in chunk.tasks}
            else:
                failed += [verdict for verdict in answer if verdict.reward is None]
                for key, verdict in zip(chunk.tasks, answer, strict=True):
                    found[int(key)] = substitute if verdict.reward is None else verdict.reward
            if progress is not None:
                progress(len(found))
        if failed and on_error == "raise":
            raise Ungraded(failed)
        if failed:
            logger.warning("%d tasks have no reward; the first: %s", len(failed), Ungraded(failed[:1]))
        return [found[position] for position in range(len(found))]

    async def _answers(
        self,
        tasks: Iterable[TaskLike],
        reward: RewardSpec | None,
        format: FormatSpec | None,
        deadline_seconds: float | None,
    ) -> AsyncIterator[tuple[Chunk, list[Verdict] | AssayError]]:
        """Yield each chunk with its verdicts, or with what went wrong; a few requests are under way at a time."""
        seconds = self._deadline_seconds if deadline_seconds is None else deadline_seconds
        _check_deadline(seconds)
        deadline = Deadline.after(seconds)
        head = "".join(
            f'"{name}":{model.model_dump_json()},'
            for name, model in {"reward": reward, "format": format}.items()
            if model is not None
        )
        lane = self._lane()
        chunks: Iterator[Chunk] = cut(tasks, self._chunk_tasks, self._chunk_bytes)
        under_way: set[asyncio.Task[tuple[Chunk, list[Verdict] | AssayError]]] = set()
        try:
            for chunk in chunks:
                under_way.add(asyncio.ensure_future(lane.grade(chunk, head, deadline)))
                while len(under_way) >= self._connections:
                    done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        yield task.result()
            while under_way:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    def _lane(self) -> "_Lane":
        loop = asyncio.get_running_loop()
        lane = self._by_loop.get(loop)
        if lane is None or lane.process != os.getpid():
            lane = _Lane(self.url, self._api_key, self._connections, self._retry)
            self._by_loop[loop] = lane
        return lane


class _Lane:
    """One event loop's connections."""

    def __init__(self, url: str, api_key: str | None, connections: int, retry: RetryPolicy) -> None:
        self.process = os.getpid()
        self.client = httpx.AsyncClient(
            headers={"authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(None, connect=10.0),  # the exchange times each try as a whole
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            follow_redirects=False,
        )
        self._exchange = Exchange(self.client, url, retry)
        self._room = asyncio.Semaphore(connections)

    async def grade(self, chunk: Chunk, head: str, deadline: Deadline) -> tuple[Chunk, list[Verdict] | AssayError]:
        """Return the chunk with its verdicts, or with what went wrong."""
        try:
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                await self._room.acquire()
        except TimeoutError:
            return chunk, DeadlineExceeded("the call's deadline passed while its tasks waited for earlier ones")
        try:
            return chunk, await self._exchange.grade(chunk, head, deadline)
        except AssayError as error:
            return chunk, error
        finally:
            self._room.release()


def _rebuilt(configuration: dict[str, Any]) -> AsyncAssay:
    return AsyncAssay(**configuration)


def _check_deadline(seconds: float) -> None:
    if not 0 < seconds <= 86_400:
        raise ValueError(f"deadline_seconds is {seconds}; it must be more than 0 and at most a day (86400)")


def _substitute(on_error: OnError) -> float | None:
    if isinstance(on_error, str):
        if on_error not in {"raise", "none"}:
            raise ValueError(f"on_error is {on_error!r}; it must be 'raise', 'none' or a number")
        return None
    return float(on_error)
