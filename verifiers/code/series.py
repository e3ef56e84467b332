"""Running a series of tests, each in a process of its own, and scoring it. What a test is, the style says."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from assay.tasks import Base64File, CodeOptions
from pydantic import JsonValue

from sandboxes.base import Case, Job, Outcome
from verifiers.base import Failure, Judgement
from verifiers.code.extraction import Program
from verifiers.code.findings import (
    broken_limit,
    does_not_compile,
    error_of,
    extracted_of,
    limits_of,
    printable,
    reason_not_compiled,
    span_of,
)

Run = Callable[[Job], list[Outcome]]
PROGRAM_FILE = "main.py"
_TESTS_IN_A_JOB = 64
_BYTES_IN_A_JOB = 32 << 20
_TIME_LIMITS = ("cpu_timeout", "wall_timeout")
_MOST_TIME_LIMITS = 16
"""Tests that may run into a time limit before the rest of the tests is skipped."""
_MOST_SHOWN = 5
"""Failed tests whose content is shown."""


class Test(Protocol):
    """What all tests have."""

    @property
    def weight(self) -> float:
        """Its share in a weighted score."""

    @property
    def hidden(self) -> bool:
        """Whether its content is kept out of verdicts."""


TestT = TypeVar("TestT", bound=Test)


class Style(ABC, Generic[TestT]):
    """A kind of tests."""

    guest: str
    """See `sandboxes.base.Job.guest`."""
    wants_result = False
    files: dict[str, str | Base64File]
    """Placed in the work folder beside the program."""

    @abstractmethod
    def case(self, test: TestT) -> Case:
        """Return what a test gives to the program's process."""

    @abstractmethod
    def size(self, test: TestT) -> int:
        """Return about how many bytes that is."""

    @abstractmethod
    def judge(self, tests: Sequence[TestT], outcomes: Sequence[Outcome]) -> list[str] | Failure:
        """Return the status of each test whose program came to a good end, or why that cannot be told."""

    @abstractmethod
    def show(self, test: TestT, outcome: Outcome, status: str) -> dict[str, JsonValue]:
        """Return a failed test for the verdict: what it gave, expected and got, cut small."""

    def reason(self, status: str) -> str:
        """Return the reason of a completion whose first failed test has this status."""
        return "tests_failed" if status == "failed" else status


@dataclass(slots=True)
class _Results:
    statuses: list[str] = field(default_factory=list)
    details: list[JsonValue] = field(default_factory=list)
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    compiles: bool = True
    shown: int = 0


def grade_series(
    style: Style[TestT],
    tests: Sequence[TestT],
    options: CodeOptions,
    program: Program | None,
    run: Run,
) -> Judgement | Failure:
    """Run the program on every test and judge what it did.

    Args:
        style: the tests' kind.
        tests: at least one.
        options: the task's options.
        program: what was extracted, if anything.
        run: runs a job in a sandbox.
    """
    if program is None:
        nothing: dict[str, JsonValue] = {"passed": 0, "total": len(tests)}
        return Judgement(reason="no_code_found", accuracy=0.0, details=nothing)
    placed = {path: as_bytes(content) for path, content in style.files.items()}
    placed[PROGRAM_FILE] = program.text.encode("utf-8", "surrogatepass")
    results = _run_tests(style, tests, placed, options, run)
    if isinstance(results, Failure):
        return results
    details: dict[str, JsonValue] = {"passed": results.statuses.count("passed"), "total": len(tests)}
    details |= {**span_of(program), "tests": results.details}
    return Judgement(
        reason=_reason(style, results, program),
        accuracy=_score(tests, results.statuses, options),
        extracted=extracted_of(program),
        details=details,
        cpu_seconds=results.cpu_seconds,
        peak_memory_bytes=results.peak_memory_bytes,
    )


def as_bytes(content: str | Base64File) -> bytes:
    """Return the bytes of a file of the task's."""
    return content.content() if isinstance(content, Base64File) else content.encode("utf-8", "surrogatepass")


def _score(tests: Sequence[TestT], statuses: list[str], options: CodeOptions) -> float:
    passed = [status == "passed" for status in statuses]
    if all(passed):
        return 1.0
    if options.scoring == "fraction":
        return sum(passed) / len(tests)
    if options.scoring == "weighted":
        earned = sum(test.weight for test, is_passed in zip(tests, passed, strict=True) if is_passed)
        return earned / sum(test.weight for test in tests)
    return 0.0


def _run_tests(
    style: Style[TestT], tests: Sequence[TestT], files: dict[str, bytes], options: CodeOptions, run: Run
) -> _Results | Failure:
    """Run the tests until all are run, or the rest cannot matter or would take too long."""
    results = _Results()
    all_must_pass = options.scoring == "all" and options.stop_at_first_failure is not False
    for chunk in _chunks(style, tests, one_by_one=options.stop_at_first_failure is True):
        job = Job(
            guest=style.guest,
            cases=[style.case(test) for test in chunk],
            limits=limits_of(options),
            files=files,
            wants_result=style.wants_result,
            stop_after_failure=all_must_pass,
        )
        failure = _add(results, style, chunk, run(job), options)
        if failure is not None:
            return failure
        failed = any(status != "passed" for status in results.statuses)
        slow = sum(status in _TIME_LIMITS for status in results.statuses) >= _MOST_TIME_LIMITS
        if not results.compiles or slow or (all_must_pass and failed):
            break
    skipped = len(tests) - len(results.statuses)
    results.statuses += ["skipped"] * skipped
    results.details += [{"status": "skipped"} for _ in range(skipped)]
    return results


def _chunks(style: Style[TestT], tests: Sequence[TestT], *, one_by_one: bool) -> Iterator[list[TestT]]:
    chunk: list[TestT] = []
    size = 0
    most = 1 if one_by_one else _TESTS_IN_A_JOB
    for test in tests:
        if chunk and (len(chunk) == most or size + style.size(test) > _BYTES_IN_A_JOB):
            yield chunk
            chunk, size = [], 0
        chunk.append(test)
        size += style.size(test)
    yield chunk


def _add(
    results: _Results, style: Style[TestT], tests: list[TestT], outcomes: list[Outcome], options: CodeOptions
) -> Failure | None:
    """Take in the outcomes of a chunk, of which the last may be missing."""
    ended_well = [place for place, outcome in enumerate(outcomes) if outcome.ok]
    judged = style.judge([tests[place] for place in ended_well], [outcomes[place] for place in ended_well])
    if isinstance(judged, Failure):
        return judged
    statuses = dict(zip(ended_well, judged, strict=True))
    for place, outcome in enumerate(outcomes):
        test, status = tests[place], statuses.get(place) or broken_limit(outcome) or "crashed"
        entry: dict[str, JsonValue] = {"status": status}
        if status != "passed" and options.echo_tests and not test.hidden and results.shown < _MOST_SHOWN:
            results.shown += 1
            entry |= style.show(test, outcome, status)
            if status == "crashed":
                entry["error"] = printable(error_of(outcome))
        results.statuses.append(status)
        results.details.append(entry)
        results.cpu_seconds += outcome.cpu_seconds
        results.peak_memory_bytes = max(results.peak_memory_bytes, outcome.peak_memory_bytes)
        if len(results.statuses) == 1 and status == "crashed":
            results.compiles = not does_not_compile(outcome)
    return None


def _reason(style: Style[TestT], results: _Results, program: Program) -> str:
    """Return the reason of the whole: of the first test that did not pass."""
    if not results.compiles:
        return reason_not_compiled(program)
    return style.reason(next((status for status in results.statuses if status != "passed"), "passed"))
