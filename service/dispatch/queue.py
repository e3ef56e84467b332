"""The queue of the local dispatcher: submissions, cut into chunks, served in turn."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from assay.tasks import CodeTask, FormatTask, MathTask, StdinTests, Task

_FORMAT_SECONDS = 1.0
_MATH_SECONDS = 120.0
_CHECK_SECONDS = 120.0
"""Of the structured answers: one check alone, and one of the reference."""


@dataclass(slots=True, eq=False)
class QueuedTask:
    """One task on its way to a worker."""

    index: int
    """Position in its submission."""
    id: str
    verifier: str
    payload: bytes
    """The task as JSON."""
    allowance_seconds: float
    """The longest that grading it can take within its own limits."""
    crashes: int = 0
    """Workers lost while they had this task."""


@dataclass(slots=True, eq=False)
class Chunk:
    """Tasks of one verifier that are graded in one call."""

    tasks: list[QueuedTask]

    @property
    def allowance_seconds(self) -> float:
        """The longest that grading all of them can take."""
        return sum(task.allowance_seconds for task in self.tasks)


def allowance_seconds(task: Task) -> float:
    """Return an upper bound of the time that grading the task takes, one retry after a lost sandbox included."""
    if isinstance(task, FormatTask):
        return _FORMAT_SECONDS
    if isinstance(task, MathTask):
        return 2 * _MATH_SECONDS
    if not isinstance(task, CodeTask):
        return 2 * _CHECK_SECONDS
    runs = len(task.reference.tests) if isinstance(task.reference, StdinTests) else 1
    options = task.options
    wall = options.wall_seconds if options.wall_seconds is not None else 3 * options.cpu_seconds + 5
    return 2 * max(1, runs) * wall


def cut(tasks: Sequence[QueuedTask], batch_sizes: dict[str, int], workers: int) -> list[Chunk]:
    """Cut tasks into chunks of one verifier each, as large as it likes but small enough that all workers get some.

    Tasks keep their order within a verifier, and chunks are in the order of their first tasks.
    """
    by_verifier: dict[str, list[QueuedTask]] = {}
    for task in tasks:
        by_verifier.setdefault(task.verifier, []).append(task)
    chunks: list[Chunk] = []
    for verifier, group in by_verifier.items():
        count = max(math.ceil(len(group) / max(1, batch_sizes[verifier])), min(workers, len(group)))
        small, larger = divmod(len(group), count)
        start = 0
        for position in range(count):
            end = start + small + (position < larger)
            chunks.append(Chunk(group[start:end]))
            start = end
    return sorted(chunks, key=lambda chunk: chunk.tasks[0].index)


@dataclass(slots=True, eq=False)
class Line:
    """The waiting chunks of one submission."""

    chunks: deque[Chunk] = field(default_factory=deque)

    def tasks(self) -> Iterator[QueuedTask]:
        """Iterate over the waiting tasks."""
        for chunk in self.chunks:
            yield from chunk.tasks


class FairQueue:
    """Lines served in turn, a chunk each, so that a long one never starves a short one that came later."""

    def __init__(self) -> None:
        self._turns: deque[Line] = deque()
        self.waiting_tasks = 0
        self.waiting_bytes = 0

    def add(self, line: Line) -> None:
        """Put a line with waiting chunks at the end of the turns."""
        for task in line.tasks():
            self.waiting_tasks += 1
            self.waiting_bytes += len(task.payload)
        self._turns.append(line)

    def put_back(self, line: Line, tasks: Sequence[QueuedTask]) -> None:
        """Queue tasks again after a crash: next in their line, each alone."""
        if not line.chunks:
            self._turns.appendleft(line)
        for task in reversed(tasks):
            line.chunks.appendleft(Chunk([task]))
            self.waiting_tasks += 1
            self.waiting_bytes += len(task.payload)

    def take(self) -> tuple[Line, Chunk] | None:
        """Remove and return the next chunk; None when nothing waits."""
        if not self._turns:
            return None
        line = self._turns.popleft()
        chunk = line.chunks.popleft()
        self._forget(chunk.tasks)
        if line.chunks:
            self._turns.append(line)
        return line, chunk

    def remove(self, line: Line) -> list[QueuedTask]:
        """Remove a whole line and return its waiting tasks."""
        if not line.chunks:
            return []
        tasks = list(line.tasks())
        line.chunks.clear()
        self._turns.remove(line)
        self._forget(tasks)
        return tasks

    def lines(self) -> list[Line]:
        """Return the lines that have something waiting."""
        return list(self._turns)

    def _forget(self, tasks: Sequence[QueuedTask]) -> None:
        self.waiting_tasks -= len(tasks)
        self.waiting_bytes -= sum(len(task.payload) for task in tasks)
