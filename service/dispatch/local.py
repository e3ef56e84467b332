"""The local dispatcher: a bounded queue and a pool of worker processes on this machine."""

import asyncio
import logging
import math
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import orjson
from assay.tasks import Task
from assay.verdict import ErrorKind, Timing, Verdict
from pydantic import ValidationError

from sandboxes.pool import PoolState, total
from service import frames
from service.dispatch.base import QueueFull, Stopping, WorkersUnavailable
from service.dispatch.process import WorkerProcess
from service.dispatch.queue import Chunk, FairQueue, Line, QueuedTask, allowance_seconds, cut
from service.grading import error_verdict
from service.settings import Settings
from verifiers.base import Failure
from verifiers.registry import REGISTRY

logger = logging.getLogger(__name__)

MAX_CRASHES = 2
_MAX_START_FAILURES = 3
_FIRST_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 30.0
_HANG_CHECK_SECONDS = 1.0
_RATE_WINDOW_SECONDS = 30.0
_LONGEST_RETRY_AFTER_SECONDS = 300.0
_UNMEASURED_RETRY_AFTER_SECONDS = 5.0


class LocalSubmission(Line):
    """Tasks in the local dispatcher."""

    def __init__(self, dispatcher: "LocalDispatcher", total: int) -> None:
        super().__init__()
        self.total = total
        self.arrived = time.monotonic()
        self.cancelled = False
        self.expiry: asyncio.TimerHandle | None = None
        self._dispatcher = dispatcher
        self._verdicts: asyncio.Queue[tuple[int, Verdict]] = asyncio.Queue()
        self._answered = 0

    async def __aiter__(self) -> AsyncIterator[tuple[int, Verdict]]:
        """Iterate over (position, verdict) in order of completion."""
        for _ in range(self.total):
            yield await self._verdicts.get()

    def cancel(self) -> int:
        """Give tasks that have not started an error of kind `cancelled`; return their number."""
        self.cancelled = True
        return self._dispatcher.refuse(self, "cancelled", "the task was cancelled before it started")

    def answer(self, task: QueuedTask, verdict: Verdict) -> None:
        """Deliver the verdict of one task."""
        self._verdicts.put_nowait((task.index, verdict))
        self._answered += 1
        if self._answered == self.total and self.expiry is not None:
            self.expiry.cancel()


@dataclass(slots=True, eq=False)
class _Assignment:
    """A chunk at a worker."""

    submission: LocalSubmission
    unanswered: deque[QueuedTask]
    silent_until: float
    """When a worker that has sent nothing counts as hung."""


class LocalDispatcher:
    """Grades on worker processes of this machine. All methods belong to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._config = frames.WorkerConfig(
            sandboxes=settings.sandbox_config(),
            warm_verifiers=tuple(REGISTRY) if settings.warm_verifiers is None else settings.warm_verifiers,
            log_level=settings.log_level,
        )
        self._batch_sizes = {name: verifier.batch_size for name, verifier in REGISTRY.items()}
        self._queue = FairQueue()
        self._idle: deque[WorkerProcess] = deque()
        self._workers: set[WorkerProcess] = set()
        self._assignments: dict[WorkerProcess, _Assignment] = {}
        self._finished: deque[float] = deque(maxlen=10_000)
        self._tending: list[asyncio.Task[None]] = []
        self._hang_watch: asyncio.Task[None] | None = None
        self._stop: asyncio.Task[None] | None = None
        self._stopping = False
        self._warm = False
        self._lost_pools: list[PoolState] = []

    @property
    def ready(self) -> bool:
        """Whether workers are warm and tasks are taken."""
        return self._warm and not self._stopping and bool(self._idle or self._assignments)

    def pool(self) -> list[PoolState]:
        """See `service.dispatch.base.Dispatcher.pool`; what lost workers had done stays counted."""
        return total([state for worker in self._workers for state in worker.pool] + self._lost_pools)

    @property
    def waiting_tasks(self) -> int:
        """See `service.dispatch.base.Dispatcher.waiting_tasks`."""
        return self._queue.waiting_tasks

    async def start(self) -> None:
        """Start the workers and return when all are warm.

        Raises:
            WorkersUnavailable: this machine cannot isolate, or workers end at start again and again.
        """
        loop = asyncio.get_running_loop()
        started: list[asyncio.Future[None]] = [loop.create_future() for _ in range(self._settings.workers)]
        self._tending = [loop.create_task(self._tend(first_start)) for first_start in started]
        self._hang_watch = loop.create_task(self._watch_for_hangs())
        try:
            await asyncio.gather(*started)
        except BaseException:
            for future in started:
                future.cancel()
            await self.stop()
            raise
        self._warm = True

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Cancel what waits, give what runs its grace time (the settings' when left out), end the workers."""
        if self._stop is None:
            self._stopping = True
            for line in self._queue.lines():
                assert isinstance(line, LocalSubmission)
                self.refuse(line, "cancelled", "the service is stopping; send the task again later")
            self._stop = asyncio.get_running_loop().create_task(
                self._end(self._settings.shutdown_grace_seconds if grace_seconds is None else grace_seconds)
            )
        await asyncio.shield(self._stop)

    def submit(self, tasks: Sequence[Task], *, deadline_seconds: float | None = None) -> LocalSubmission:
        """Queue resolved tasks; see `service.dispatch.base.Dispatcher.submit`."""
        if self._stopping:
            raise Stopping("the service is stopping")
        if self._queue.waiting_tasks and self._queue.waiting_tasks + len(tasks) > self._settings.queue_limit:
            raise QueueFull(self._retry_after(self._queue.waiting_tasks + len(tasks) - self._settings.queue_limit))
        queued = [_queued(index, task) for index, task in enumerate(tasks)]
        size = sum(len(task.payload) for task in queued)
        if self._queue.waiting_bytes and self._queue.waiting_bytes + size > self._settings.queue_max_bytes:
            raise QueueFull(self._retry_after(len(tasks)))
        submission = LocalSubmission(self, len(queued))
        submission.chunks.extend(cut(queued, self._batch_sizes, self._settings.workers))
        if deadline_seconds is not None:
            submission.expiry = asyncio.get_running_loop().call_later(
                deadline_seconds, self.refuse, submission, "deadline", "the deadline passed before the task started"
            )
        self._queue.add(submission)
        self._hand_out()
        return submission

    def refuse(self, submission: LocalSubmission, kind: ErrorKind, message: str) -> int:
        """Answer the submission's waiting tasks with an error; return their number."""
        waiting = self._queue.remove(submission)
        for task in waiting:
            self._answer_error(submission, task, kind, message)
        return len(waiting)

    def _hand_out(self) -> None:
        """Give waiting chunks to idle workers."""
        while self._idle and (taken := self._queue.take()) is not None:
            line, chunk = taken
            assert isinstance(line, LocalSubmission)
            self._assign(self._idle.popleft(), line, chunk)

    def _assign(self, worker: WorkerProcess, submission: LocalSubmission, chunk: Chunk) -> None:
        now = time.monotonic()
        self._assignments[worker] = _Assignment(
            submission, deque(chunk.tasks), now + chunk.allowance_seconds + self._settings.hang_margin_seconds
        )
        queue_ms = round((now - submission.arrived) * 1e3, 3)
        message = {
            "tasks": [orjson.Fragment(task.payload) for task in chunk.tasks],
            "queue_ms": [queue_ms] * len(chunk.tasks),
        }
        worker.send(frames.encode_json(frames.CHUNK, message))

    def _on_verdict(self, worker: WorkerProcess, payload: bytes) -> None:
        assignment = self._assignments.get(worker)
        try:
            verdict = Verdict.model_validate_json(payload)
        except ValidationError:
            verdict = None
        if assignment is None or verdict is None or verdict.id != assignment.unanswered[0].id:
            logger.error("worker %d sent a verdict that does not belong to its tasks; it is replaced", worker.pid)
            worker.kill()
            return
        assignment.submission.answer(assignment.unanswered.popleft(), verdict)
        now = time.monotonic()
        self._finished.append(now)
        if assignment.unanswered:
            rest = sum(task.allowance_seconds for task in assignment.unanswered)
            assignment.silent_until = now + rest + self._settings.hang_margin_seconds
            return
        del self._assignments[worker]
        self._idle.append(worker)
        self._hand_out()

    async def _tend(self, first_start: asyncio.Future[None]) -> None:
        """Keep one worker alive, replacing it when it is lost."""
        failures = 0
        while not self._stopping:
            try:
                worker = await self._spawn()
            except Exception as reason:  # whatever it was: the place of this worker must not stay empty
                failures += 1
                if not self._start_failed(first_start, failures, reason):
                    return
                await asyncio.sleep(min(_FIRST_BACKOFF_SECONDS * 2**failures, _LONGEST_BACKOFF_SECONDS))
                continue
            failures = 0
            if not first_start.done():
                first_start.set_result(None)
            self._idle.append(worker)
            self._hand_out()
            code = await asyncio.shield(worker.ended)
            self._workers.discard(worker)
            self._lost_pools = total([*self._lost_pools, *(replace(state, warm=0) for state in worker.pool)])
            self._on_lost(worker, code)

    def _start_failed(self, first_start: asyncio.Future[None], failures: int, reason: Exception) -> bool:
        """Note a failed start; return whether to try again."""
        what = str(reason) or "the worker did not become ready in time"
        if first_start.done():
            if not self._stopping:
                logger.error("a worker could not be started (attempt %d): %s", failures, what)
            return not first_start.cancelled()
        if isinstance(reason, WorkersUnavailable) or failures >= _MAX_START_FAILURES:
            first_start.set_exception(WorkersUnavailable(what))
            return False
        return True

    async def _spawn(self) -> WorkerProcess:
        """Start a worker and wait until it is warm.

        Raises:
            WorkersUnavailable: the worker says that this machine cannot run it.
            OSError: it could not be started, ended, or was not ready in time (`TimeoutError`, `ConnectionError`).
        """
        worker = await WorkerProcess.spawn(self._config, self._on_verdict)
        self._workers.add(worker)
        try:
            await asyncio.wait_for(asyncio.shield(worker.ready), self._settings.start_timeout_seconds)
        except Exception:
            worker.kill()
            await asyncio.shield(worker.ended)
            self._workers.discard(worker)
            raise
        return worker

    def _on_lost(self, worker: WorkerProcess, code: int) -> None:
        """Queue again what a lost worker left unanswered; give up on tasks that two workers were lost with."""
        if worker in self._idle:
            self._idle.remove(worker)
        assignment = self._assignments.pop(worker, None)
        if not self._stopping:
            logger.error("worker %d was lost (exit code %d); it is replaced", worker.pid, code)
        if assignment is None:
            return
        again: list[QueuedTask] = []
        for task in assignment.unanswered:
            task.crashes += 1
            if task.crashes >= MAX_CRASHES:
                message = f"{MAX_CRASHES} workers were lost while grading this task"
                self._answer_error(assignment.submission, task, "worker_lost", message)
            elif self._stopping:
                message = "the service stopped before the task was graded"
                self._answer_error(assignment.submission, task, "cancelled", message)
            elif assignment.submission.cancelled:
                message = "the task was cancelled before it was started again"
                self._answer_error(assignment.submission, task, "cancelled", message)
            else:
                again.append(task)
        if again:
            self._queue.put_back(assignment.submission, again)
            self._hand_out()

    def _answer_error(self, submission: LocalSubmission, task: QueuedTask, kind: ErrorKind, message: str) -> None:
        waited = Timing(queue_ms=round((time.monotonic() - submission.arrived) * 1e3, 3))
        version = REGISTRY[task.verifier].version
        verdict = error_verdict(task.id, task.verifier, version, Failure(kind=kind, message=message), waited)
        submission.answer(task, verdict)

    async def _watch_for_hangs(self) -> None:
        while True:
            await asyncio.sleep(_HANG_CHECK_SECONDS)
            now = time.monotonic()
            for worker, assignment in list(self._assignments.items()):
                if now > assignment.silent_until:
                    logger.error("worker %d has been silent for too long; it is killed", worker.pid)
                    worker.kill()

    async def _end(self, grace_seconds: float) -> None:
        grace_ends = time.monotonic() + grace_seconds
        while self._assignments and time.monotonic() < grace_ends:
            await asyncio.sleep(0.02)
        for worker in list(self._workers):
            if worker in self._assignments or not worker.ready.done():
                worker.kill()
            else:
                worker.close()
        await self._await_ends(2.0)
        for worker in list(self._workers):
            worker.kill()
        await self._await_ends(10.0)
        for worker in list(self._assignments):
            self._on_lost(worker, -signal.SIGKILL)
        if self._hang_watch is not None:
            self._hang_watch.cancel()
        for tending in self._tending:
            tending.cancel()
        await asyncio.gather(*self._tending, return_exceptions=True)

    async def _await_ends(self, seconds: float) -> None:
        """Wait for the workers to end and for what they left to be answered."""
        gives_up = time.monotonic() + seconds
        while self._workers and time.monotonic() < gives_up:
            await asyncio.sleep(0.01)

    def _retry_after(self, excess_tasks: int) -> float:
        """Return the seconds until that many waiting tasks are done, at the rate of the last half minute."""
        now = time.monotonic()
        recent = [finished for finished in self._finished if now - finished <= _RATE_WINDOW_SECONDS]
        if not recent:
            return _UNMEASURED_RETRY_AFTER_SECONDS
        rate = len(recent) / max(now - recent[0], 1.0)
        return float(min(max(1, math.ceil(excess_tasks / rate)), _LONGEST_RETRY_AFTER_SECONDS))


def _queued(index: int, task: Task) -> QueuedTask:
    assert task.id is not None
    payload = task.__pydantic_serializer__.to_json(task)
    return QueuedTask(index, task.id, task.verifier, payload, allowance_seconds(task))
