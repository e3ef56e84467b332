"""Chunks and turns of the local dispatcher's queue."""

import pytest
from assay import CodeTask, FormatTask, MathTask
from hypothesis import given
from hypothesis import strategies as st

from service.dispatch.queue import Chunk, FairQueue, Line, QueuedTask, allowance_seconds, cut


def queued(index: int, verifier: str = "format", size: int = 1) -> QueuedTask:
    return QueuedTask(index, f"{index}", verifier, b"x" * size, 1.0)


def line(*chunks: list[int]) -> Line:
    made = Line()
    made.chunks.extend(Chunk([queued(index) for index in chunk]) for chunk in chunks)
    return made


def drain(queue: FairQueue) -> list[list[int]]:
    taken = []
    while (turn := queue.take()) is not None:
        taken.append([task.index for task in turn[1].tasks])
    return taken


@pytest.mark.parametrize(
    ("count", "batch", "workers", "sizes"),
    [
        (8, 256, 2, [4, 4]),
        (8, 1, 2, [1] * 8),
        (9, 4, 2, [3, 3, 3]),
        (1, 256, 4, [1]),
        (3, 256, 8, [1, 1, 1]),
        (600, 256, 1, [200, 200, 200]),
        (5, 0, 2, [1] * 5),
    ],
)
def test_chunks_are_even_and_give_every_worker_some(count: int, batch: int, workers: int, sizes: list[int]) -> None:
    chunks = cut([queued(index) for index in range(count)], {"format": batch}, workers)
    assert [len(chunk.tasks) for chunk in chunks] == sizes


def test_tasks_of_one_verifier_are_graded_together_wherever_they_stand() -> None:
    tasks = [queued(index, "math" if index % 2 else "format") for index in range(8)]
    chunks = cut(tasks, {"math": 2, "format": 100}, 1)
    assert [[task.index for task in chunk.tasks] for chunk in chunks] == [[0, 2, 4, 6], [1, 3], [5, 7]]


@given(st.lists(st.sampled_from(["math", "format", "code"]), max_size=200), st.integers(1, 50), st.integers(1, 20))
def test_every_task_is_in_one_chunk(verifiers: list[str], batch: int, workers: int) -> None:
    sizes = {"math": batch, "format": 256, "code": 1}
    chunks = cut([queued(index, verifier) for index, verifier in enumerate(verifiers)], sizes, workers)
    assert sorted(task.index for chunk in chunks for task in chunk.tasks) == list(range(len(verifiers)))
    for chunk in chunks:
        names = {task.verifier for task in chunk.tasks}
        assert len(names) == 1
        assert 1 <= len(chunk.tasks) <= sizes[names.pop()]


def test_lines_are_served_in_turn() -> None:
    queue = FairQueue()
    queue.add(line([0], [1], [2], [3]))
    queue.add(line([10], [11]))
    queue.add(line([20]))
    assert drain(queue) == [[0], [10], [20], [1], [11], [2], [3]]


def test_after_a_crash_tasks_are_next_and_alone() -> None:
    queue = FairQueue()
    crashed, other = line([0, 1, 2], [3, 4]), line([10], [11])
    queue.add(crashed)
    queue.add(other)
    taken = queue.take()
    assert taken is not None
    queue.put_back(crashed, taken[1].tasks[1:])
    assert drain(queue) == [[10], [1], [11], [2], [3, 4]]

    queue.put_back(crashed, [queued(5)])
    assert drain(queue) == [[5]]


def test_what_waits_is_counted() -> None:
    queue = FairQueue()
    first, second = Line(), Line()
    first.chunks.append(Chunk([queued(0, size=10), queued(1, size=5)]))
    first.chunks.append(Chunk([queued(2, size=1)]))
    second.chunks.append(Chunk([queued(3, size=100)]))
    queue.add(first)
    queue.add(second)
    assert (queue.waiting_tasks, queue.waiting_bytes) == (4, 116)
    taken = queue.take()
    assert taken is not None
    assert (queue.waiting_tasks, queue.waiting_bytes) == (2, 101)
    queue.put_back(first, taken[1].tasks)
    assert (queue.waiting_tasks, queue.waiting_bytes) == (4, 116)
    assert [task.index for task in queue.remove(first)] == [0, 1, 2]
    assert (queue.waiting_tasks, queue.waiting_bytes) == (1, 100)
    assert queue.remove(first) == []
    assert drain(queue) == [[3]]
    assert (queue.waiting_tasks, queue.waiting_bytes) == (0, 0)


def test_allowances_cover_the_tasks_own_limits() -> None:
    tests = [{"output": "1"}] * 10
    reference = {"style": "stdin", "tests": tests}
    code = {"verifier": "code", "completion": "x", "reference": reference}
    default = CodeTask.model_validate(code)
    own = CodeTask.model_validate({**code, "options": {"wall_seconds": 7}})
    assert allowance_seconds(default) == 2 * 10 * (3 * 5 + 5)
    assert allowance_seconds(own) == 2 * 10 * 7
    none = CodeTask.model_validate({**code, "reference": {"style": "stdin", "tests": []}})
    assert allowance_seconds(none) > 0
    assert allowance_seconds(MathTask(verifier="math", completion="x", reference="1")) >= 30
    assert allowance_seconds(FormatTask(verifier="format", completion="x")) > 0
