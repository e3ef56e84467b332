"""Grading by standard input and output: one sandbox job, one fork a test; the expected output never enters it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from assay.tasks import CodeOptions, StdinTest, StdinTests
from pydantic import JsonValue

from sandboxes.base import Case, Job, Outcome
from verifiers.base import Failure, Judgement
from verifiers.code.compare import COMPARERS, shown
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
    stable,
)

_GUEST = "verifiers.code.script_guest:run_script"
_PROGRAM_FILE = "main.py"
_TESTS_IN_A_JOB = 64
_BYTES_IN_A_JOB = 32 << 20
_TIME_LIMITS = ("cpu_timeout", "wall_timeout")
_MOST_TIME_LIMITS = 16
"""Tests that may run into a time limit before the rest of the tests is skipped."""
_MOST_SHOWN = 5
"""Failed tests whose input and output are shown."""


@dataclass(slots=True)
class _Results:
    statuses: list[str] = field(default_factory=list)
    details: list[JsonValue] = field(default_factory=list)
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    compiles: bool = True
    shown: int = 0


def grade_stdin(
    reference: StdinTests, options: CodeOptions, program: Program | None, run: Callable[[Job], list[Outcome]]
) -> Judgement | Failure:
    """Run the program on every test's input and compare what it prints.

    Args:
        reference: the tests.
        options: the task's options.
        program: what was extracted, if anything.
        run: runs a job in a sandbox.
    """
    tests = reference.tests
    if not tests:
        return Failure("bad_reference", "reference.tests is empty: a program that nothing checks cannot pass")
    if not any(test.output.strip() for test in tests):
        return Failure("bad_reference", "every expected output is empty, as if producing it had failed")
    if program is None:
        nothing: dict[str, JsonValue] = {"passed": 0, "total": len(tests)}
        return Judgement(reason="no_code_found", accuracy=0.0, details=nothing)
    results = _run_tests(tests, options, program, run)
    passed = results.statuses.count("passed")
    details: dict[str, JsonValue] = {"passed": passed, "total": len(tests), **span_of(program)}
    details["tests"] = results.details
    accuracy = passed / len(tests) if options.scoring == "fraction" else float(passed == len(tests))
    return Judgement(
        reason=_reason(results, program),
        accuracy=accuracy,
        extracted=extracted_of(program),
        details=details,
        cpu_seconds=results.cpu_seconds,
        peak_memory_bytes=results.peak_memory_bytes,
    )


def _run_tests(
    tests: list[StdinTest], options: CodeOptions, program: Program, run: Callable[[Job], list[Outcome]]
) -> _Results:
    """Run the tests until all are run, or the rest cannot matter or would take too long."""
    results = _Results()
    all_must_pass = options.scoring == "all"
    for chunk in _chunks(tests):
        job = Job(
            guest=_GUEST,
            cases=[Case(stdin=test.input.encode("utf-8", "surrogatepass")) for test in chunk],
            limits=limits_of(options),
            files={_PROGRAM_FILE: program.text.encode("utf-8", "surrogatepass")},
            wants_result=False,
            stop_after_failure=all_must_pass,
        )
        outcomes = run(job)
        for test, outcome in zip(chunk, outcomes, strict=False):
            _add(results, test, outcome, options)
        failed = any(status != "passed" for status in results.statuses)
        slow = sum(status in _TIME_LIMITS for status in results.statuses) >= _MOST_TIME_LIMITS
        if not results.compiles or slow or (all_must_pass and failed):
            break
    skipped = len(tests) - len(results.statuses)
    results.statuses += ["skipped"] * skipped
    results.details += [{"status": "skipped"} for _ in range(skipped)]
    return results


def _chunks(tests: list[StdinTest]) -> Iterator[list[StdinTest]]:
    chunk: list[StdinTest] = []
    size = 0
    for test in tests:
        if chunk and (len(chunk) == _TESTS_IN_A_JOB or size + len(test.input) > _BYTES_IN_A_JOB):
            yield chunk
            chunk, size = [], 0
        chunk.append(test)
        size += len(test.input)
    yield chunk


def _add(results: _Results, test: StdinTest, outcome: Outcome, options: CodeOptions) -> None:
    status = _status(test, outcome, options)
    entry: dict[str, JsonValue] = {"status": status}
    if status != "passed" and options.echo_tests and results.shown < _MOST_SHOWN:
        results.shown += 1
        entry |= _shown(test, outcome, status)
    results.statuses.append(status)
    results.details.append(entry)
    results.cpu_seconds += outcome.cpu_seconds
    results.peak_memory_bytes = max(results.peak_memory_bytes, outcome.peak_memory_bytes)
    if len(results.statuses) == 1 and status == "crashed":
        results.compiles = not does_not_compile(outcome)


def _status(test: StdinTest, outcome: Outcome, options: CodeOptions) -> str:
    limit = broken_limit(outcome)
    if limit is not None:
        return limit
    if not outcome.ok:
        return "crashed"
    expected = test.output.encode("utf-8", "surrogatepass")
    return "passed" if COMPARERS[options.compare](outcome.stdout, expected) else "failed"


def _shown(test: StdinTest, outcome: Outcome, status: str) -> dict[str, JsonValue]:
    entry: dict[str, JsonValue] = {"input": shown(test.input.encode("utf-8", "replace"))}
    if status == "crashed":
        return {**entry, "error": printable(error_of(outcome))}
    expected, got = shown(test.output.encode("utf-8", "replace")), stable(shown(outcome.stdout))
    return {**entry, "expected": expected, "got": got}


def _reason(results: _Results, program: Program) -> str:
    """Return the reason of the whole: of the first test that did not pass."""
    if not results.compiles:
        return reason_not_compiled(program)
    first = next((status for status in results.statuses if status != "passed"), "passed")
    return "tests_failed" if first == "failed" else first
