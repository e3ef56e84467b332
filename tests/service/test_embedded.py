"""Embedded grading: the dispatcher behind a plain iterator."""

import itertools
import time
from collections.abc import Iterator

import pytest
from assay import CodeTask, FormatTask, RewardSpec
from pydantic import TypeAdapter

from service.embedded import EmbeddedGrader
from service.errors import InvalidRequest
from service.settings import Settings
from tests.service.conftest import BAD, GOOD, sleeper


@pytest.fixture(scope="module")
def grader() -> Iterator[EmbeddedGrader]:
    with EmbeddedGrader(Settings(workers=2, warm_verifiers=())) as running:
        yield running


def tasks(count: int) -> Iterator[FormatTask]:
    for index in range(count):
        yield FormatTask(verifier="format", completion=GOOD if index % 3 else BAD)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 5000])
def test_every_task_gets_one_verdict(grader: EmbeddedGrader, count: int) -> None:
    verdicts = dict(grader.grade(tasks(count)))
    assert sorted(verdicts) == list(range(count))
    assert [verdicts[index].format for index in range(count)] == [1.0 if index % 3 else 0.0 for index in range(count)]
    assert [verdicts[index].id for index in range(count)] == [str(index) for index in range(count)]


def test_defaults_are_filled_in(grader: EmbeddedGrader) -> None:
    verdicts = dict(grader.grade(tasks(2), reward=RewardSpec(format_weight=0.25)))
    assert [verdicts[index].reward for index in range(2)] == [0.0, 0.25]


def test_the_input_is_read_only_as_far_ahead_as_needed(grader: EmbeddedGrader) -> None:
    read = 0

    def endless() -> Iterator[FormatTask]:
        nonlocal read
        for read in itertools.count(1):  # noqa: B007
            yield FormatTask(verifier="format", completion=GOOD)

    seen = sum(1 for _ in itertools.islice(grader.grade(endless()), 2000))
    assert seen == 2000
    assert read <= 2000 + 1000


def test_a_failing_input_ends_the_iteration_and_the_grader_goes_on(grader: EmbeddedGrader) -> None:
    def failing() -> Iterator[FormatTask]:
        yield from tasks(100)
        raise KeyError("line 101")

    with pytest.raises(KeyError, match="line 101"):
        list(grader.grade(failing()))
    assert len(list(grader.grade(tasks(10)))) == 10


def test_a_task_beyond_the_servers_bounds_is_named(grader: EmbeddedGrader) -> None:
    too_long = FormatTask(verifier="format", completion="x" * 1_000_001)
    with pytest.raises(InvalidRequest) as refused:
        list(grader.grade([*tasks(70), too_long]))
    assert refused.value.fields[0].field == "tasks[70].completion"


def test_a_queue_smaller_than_the_window_is_waited_for() -> None:
    with EmbeddedGrader(Settings(workers=1, warm_verifiers=(), queue_limit=20, max_tasks=20)) as grader:
        assert len(list(grader.grade(tasks(1000)))) == 1000


def test_an_exception_ends_the_workers_at_once() -> None:
    started = time.monotonic()
    task: CodeTask = TypeAdapter(CodeTask).validate_python(sleeper(60))
    with pytest.raises(KeyError), EmbeddedGrader(Settings(workers=1, warm_verifiers=())) as grader:  # noqa: PT012
        for _ in grader.grade([*tasks(1), task]):
            raise KeyError
        raise AssertionError("no verdict came")
    assert time.monotonic() - started < 15
