"""Jobs: batches graded in the background, kept in memory for a while."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator

from assay.verdict import Verdict
from assay.wire import JobState, JobStatus

from service.dispatch.base import Submission
from service.errors import NotFound, TooManyTasks


class Job:
    """A submission, the verdicts it has so far in order of completion, and who waits for more."""

    def __init__(self, job_id: str, submission: Submission) -> None:
        self.id = job_id
        self.total = submission.total
        self.finished_at: float | None = None
        """Monotonic time of the last verdict."""
        self._submission = submission
        self._cancelled = False
        self._errors = 0
        self._log: list[tuple[int, Verdict]] = []
        self._more = asyncio.Event()
        self._collecting = asyncio.get_running_loop().create_task(self._collect())

    @property
    def state(self) -> JobState:
        """`running` until the last verdict is there, also after a cancellation."""
        if self.finished_at is None:
            return "running"
        return "cancelled" if self._cancelled else "done"

    def status(self, *, with_verdicts: bool) -> JobStatus:
        """Return the progress, and the verdicts in the request's order when asked for and complete."""
        verdicts = None
        if with_verdicts and self.finished_at is not None:
            verdicts = [verdict for _, verdict in sorted(self._log, key=lambda entry: entry[0])]
        return JobStatus.model_construct(
            id=self.id,
            state=self.state,
            total=self.total,
            done=len(self._log),
            errors=self._errors,
            verdicts=verdicts,
        )

    @property
    def events(self) -> int:
        """Number of verdicts so far, which is the last sequence number."""
        return len(self._log)

    def cancel(self) -> None:
        """Cancel the tasks that have not started."""
        if self._submission.cancel() > 0:
            self._cancelled = True

    async def follow(self, after: int, keep_alive_seconds: float) -> AsyncIterator[tuple[int, Verdict] | None]:
        """Iterate over (sequence number from 1, verdict) in order of completion, to the last one.

        Args:
            after: the last sequence number that the caller already has; 0 for all.
            keep_alive_seconds: None is yielded when there was nothing for this long.
        """
        position = after
        while position < self.total:
            while position < len(self._log):
                position += 1
                yield position, self._log[position - 1][1]
            if position >= self.total:
                return
            more = self._more
            try:
                await asyncio.wait_for(more.wait(), keep_alive_seconds)
            except TimeoutError:
                yield None

    async def _collect(self) -> None:
        async for entry in self._submission:
            self._log.append(entry)
            if entry[1].status == "error":
                self._errors += 1
            if len(self._log) == self.total:
                self.finished_at = time.monotonic()
            self._more.set()
            self._more = asyncio.Event()


class JobStore:
    """The jobs that can be asked for, bounded in number, tasks and age. Running jobs are never forgotten."""

    def __init__(self, *, max_jobs: int, max_tasks: int, ttl_seconds: float) -> None:
        self._max_jobs = max_jobs
        self._max_tasks = max_tasks
        self._ttl_seconds = ttl_seconds
        self._jobs: dict[str, Job] = {}
        self._tasks = 0

    def check_room(self, tasks: int) -> None:
        """Check that a job of that many tasks would fit once finished ones are forgotten; forget none yet.

        Raises:
            TooManyTasks: running jobs take all the room.
        """
        running = [job for job in self._jobs.values() if job.finished_at is None]
        if len(running) >= self._max_jobs or sum(job.total for job in running) + tasks > self._max_tasks:
            raise TooManyTasks(
                "running jobs take all the room of the job store; wait for one to finish, or cancel one",
                retry_after_seconds=5.0,
            )

    def add(self, submission: Submission) -> Job:
        """Keep a new job, and forget the oldest finished ones until it fits; call `check_room` first."""
        self._forget_expired()
        finished = [job for job in self._jobs.values() if job.finished_at is not None]
        for oldest in finished:
            if len(self._jobs) < self._max_jobs and self._tasks + submission.total <= self._max_tasks:
                break
            self._forget(oldest)
        job = Job(f"job_{secrets.token_hex(12)}", submission)
        self._jobs[job.id] = job
        self._tasks += job.total
        return job

    def get(self, job_id: str) -> Job:
        """Return the job.

        Raises:
            NotFound: there is none of that id (any more).
        """
        self._forget_expired()
        job = self._jobs.get(job_id)
        if job is None:
            raise NotFound(
                f"there is no job {job_id[:40]!r}; finished jobs are forgotten after {self._ttl_seconds:g} s, "
                "or earlier when there are many"
            )
        return job

    def _forget_expired(self) -> None:
        oldest_kept = time.monotonic() - self._ttl_seconds
        for job in list(self._jobs.values()):
            if job.finished_at is not None and job.finished_at < oldest_kept:
                self._forget(job)

    def _forget(self, job: Job) -> None:
        del self._jobs[job.id]
        self._tasks -= job.total
