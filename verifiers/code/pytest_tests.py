"""Grading by a test file: pytest runs in the sandbox's driver, the completion in its guest (see docs/integrity.md)."""

from typing import Any

from assay.tasks import CodeOptions, PytestTests
from pydantic import JsonValue

from sandboxes.base import Case, Job
from verifiers.base import Failure, Judgement
from verifiers.code.assert_tests import REASONS, failure_of, integrity_of, reason_of
from verifiers.code.extraction import Program
from verifiers.code.findings import extracted_of, limits_of, printable, span_of
from verifiers.code.series import Run

_GUEST = "verifiers.code.completion_guest:serve_completion"
_DRIVER = "verifiers.code.pytest_driver:run_test_file"
_MOST_SHOWN = 5


def grade_pytest(
    reference: PytestTests, options: CodeOptions, program: Program | None, run: Run
) -> Judgement | Failure:
    """Run the test file against the program.

    Args:
        reference: the test file.
        options: the task's options.
        program: what was extracted, if anything; the tests run also when there is nothing, to see whether they could.
        run: runs a job in a sandbox with pytest.
    """
    limits = limits_of(options)
    argument: dict[str, JsonValue] = {"prompt": "", "entry_point": None}
    driver_argument: dict[str, JsonValue] = {**argument, "code": reference.code, "module": reference.module}
    driver_argument |= {"cpu_seconds": limits.cpu_seconds, "wall_seconds": limits.wall_seconds}
    text = program.text if program is not None else ""
    case = Case(argument={**argument, "code": text}, driver_argument=driver_argument)
    (outcome,) = run(Job(guest=_GUEST, driver=_DRIVER, cases=[case], limits=limits))
    found = outcome.result if outcome.returned and isinstance(outcome.result, dict) else None
    failure = failure_of(outcome, found)
    if failure is not None:
        return failure
    if program is None:
        return Judgement(reason="no_code_found", accuracy=0.0, details={"passed": 0})
    tests = found.get("tests", []) if found is not None else []
    assert isinstance(tests, list)
    reason = reason_of(outcome, found, program)
    entries = _entries(tests, options, reason)
    passed = sum(entry["status"] == "passed" for entry in entries)
    is_whole = reason == "passed" and passed == len(entries) > 0
    if reason == "passed" and not is_whole:
        reason = "tests_failed"
    accuracy = float(is_whole) if options.scoring == "all" or not entries else passed / len(entries)
    details: dict[str, JsonValue] = {"passed": passed, "total": len(entries), **span_of(program)}
    return Judgement(
        reason=reason,
        accuracy=accuracy,
        extracted=extracted_of(program),
        details={**details, "tests": list[JsonValue](entries)},
        integrity=integrity_of(found),
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
    )


def _entries(tests: list[Any], options: CodeOptions, reason: str) -> list[dict[str, JsonValue]]:
    """Return each test for the verdict; what it said only where it may be shown."""
    entries: list[dict[str, JsonValue]] = []
    shown = 0
    for number, test in enumerate(tests):
        status = test["status"] if test["status"] in ("passed", "failed") else REASONS.get(test["status"], "crashed")
        if test["status"] == "ended":
            status = reason if reason not in ("passed", "tests_failed") else "crashed"
        name = printable(test["name"]) if options.echo_tests else f"test {number + 1}"
        entry: dict[str, JsonValue] = {"name": name, "status": status}
        if status != "passed" and options.echo_tests and shown < _MOST_SHOWN:
            shown += 1
            entry["error"] = printable(str(test["message"]))
            entry |= {key: test[key] for key in ("line", "source") if key in test}
        entries.append(entry)
    return entries
