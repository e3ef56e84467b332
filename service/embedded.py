"""Grading without a server: the local dispatcher behind a plain iterator, for the command line."""

import asyncio
import queue
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from assay.reward import RewardSpec
from assay.tasks import FormatSpec, Task
from assay.verdict import Verdict

from service.admission import excesses, resolve
from service.dispatch.base import QueueFull
from service.dispatch.local import LocalDispatcher, LocalSubmission
from service.errors import InvalidRequest
from service.settings import Settings

T = TypeVar("T")
_Results: TypeAlias = "queue.SimpleQueue[tuple[int, Verdict] | Exception]"

_BLOCK = 64
"""Tasks submitted together."""
_BLOCKS_PER_WORKER = 4


class EmbeddedGrader:
    """Grades tasks on worker processes of this machine, from synchronous code.

    A context manager: entering starts the workers and waits until they are warm, leaving ends them.

        with EmbeddedGrader(Settings()) as grader:
            for index, verdict in grader.grade(tasks):
                ...
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._window = _BLOCK * _BLOCKS_PER_WORKER * settings.workers
        self._dispatcher: LocalDispatcher | None = None
        self._in_flight: dict[asyncio.Future[None], LocalSubmission] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="assay-dispatcher", daemon=True)

    def __enter__(self) -> Self:
        """Start the workers.

        Raises:
            WorkersUnavailable: workers cannot be started, for instance because this machine cannot isolate.
        """
        self._thread.start()
        try:
            self._call(self._start())
        except BaseException:
            self._shut_down(grace_seconds=0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the workers; at once when an exception ends the block."""
        self._shut_down(grace_seconds=0 if kind is not None else self._settings.shutdown_grace_seconds)

    def grade(
        self, tasks: Iterable[Task], reward: RewardSpec | None = None, format: FormatSpec | None = None
    ) -> Iterator[tuple[int, Verdict]]:
        """Grade tasks and yield (position, verdict) as each is done.

        The iterable is read only as far ahead as the workers need, so it may be longer than memory.

        Args:
            tasks: what to grade. A task without an id gets its position as its id.
            reward: how scores become rewards, for tasks that do not say so themselves.
            format: the form to score, for tasks that do not say so themselves.

        Raises:
            InvalidRequest: a task is beyond the bounds of the settings; tasks before it may have been graded.
        """
        source = enumerate(tasks)
        results: _Results = queue.SimpleQueue()
        in_flight = 0
        block: list[tuple[int, Task]] | None = None
        try:
            while block != []:
                if block is None:
                    block = self._resolved(list(islice(source, _BLOCK)), reward or RewardSpec(), format)
                if block and in_flight + len(block) <= max(self._window, _BLOCK):
                    try:
                        self._call(self._submit(block, results))
                        in_flight += len(block)
                        block = None
                        continue
                    except QueueFull:
                        if in_flight == 0:
                            raise
                if in_flight:
                    yield _next(results)
                    in_flight -= 1
            while in_flight:
                yield _next(results)
                in_flight -= 1
        finally:
            if in_flight and not self._loop.is_closed():  # an abandoned iterator may outlive the grader
                self._call(self._cancel())

    def _resolved(
        self, block: Sequence[tuple[int, Task]], reward: RewardSpec, format: FormatSpec | None
    ) -> list[tuple[int, Task]]:
        problems = [problem for index, task in block for problem in excesses(task, f"tasks[{index}]", self._settings)]
        if problems:
            raise InvalidRequest.of(problems)
        return [(index, resolve(task, str(index), reward, format)) for index, task in block]

    async def _submit(self, block: Sequence[tuple[int, Task]], results: _Results) -> None:
        assert self._dispatcher is not None
        submission = self._dispatcher.submit([task for _, task in block])
        first = block[0][0]

        async def deliver() -> None:
            try:
                async for position, verdict in submission:
                    results.put((first + position, verdict))
            except Exception as defect:
                results.put(defect)

        delivery = asyncio.ensure_future(deliver())
        self._in_flight[delivery] = submission
        delivery.add_done_callback(self._in_flight.pop)

    async def _cancel(self) -> None:
        for submission in list(self._in_flight.values()):
            submission.cancel()

    async def _start(self) -> None:
        self._dispatcher = LocalDispatcher(self._settings)
        await self._dispatcher.start()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _shut_down(self, grace_seconds: float) -> None:
        if self._dispatcher is not None:
            self._call(self._dispatcher.stop(grace_seconds))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _next(results: _Results) -> tuple[int, Verdict]:
    result = results.get()
    if isinstance(result, Exception):
        raise result
    return result
