"""Grading by test code: the tests run in the sandbox's driver, the completion in its guest (see docs/integrity.md)."""

from collections.abc import Callable
from typing import Any

from assay.tasks import AssertTests, CodeOptions
from assay.verdict import Integrity
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

_GUEST = "verifiers.code.completion_guest:serve_completion"
_DRIVER = "verifiers.code.tests_driver:run_tests"
REASONS = {
    "passed": "passed",
    "failed": "tests_failed",
    "raised": "crashed",
    "missing_name": "missing_name",
    "violation": "protocol_violation",
    "unreadable": "unreadable_result",
    "cpu_timeout": "cpu_timeout",
    "wall_timeout": "wall_timeout",
    "memory": "memory",
}
_LIMITS = ("cpu_timeout", "wall_timeout", "memory", "output", "processes", "file_size", "open_files")


def grade_asserts(
    reference: AssertTests, options: CodeOptions, program: Program | None, run: Callable[[Job], list[Outcome]]
) -> Judgement | Failure:
    """Run the test code against the program.

    Args:
        reference: the test code, its entry point, and the prompt that the program continues.
        options: the task's options.
        program: what was extracted, if anything; the tests run also when there is nothing, to see whether they could.
        run: runs a job in a sandbox.
    """
    text = program.text if program is not None else ""
    (outcome,) = run(_job(reference, options, text))
    found = outcome.result if outcome.returned and isinstance(outcome.result, dict) else None
    failure = failure_of(outcome, found)
    if failure is not None:
        return failure
    reason = "no_code_found" if program is None else reason_of(outcome, found, program)
    return Judgement(
        reason=reason,
        accuracy=float(reason == "passed"),
        extracted=extracted_of(program),
        details={**span_of(program), **_details(outcome, found, options)},
        integrity=integrity_of(found),
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
    )


def _job(reference: AssertTests, options: CodeOptions, text: str) -> Job:
    limits = limits_of(options)
    task = {"prompt": reference.prompt, "entry_point": reference.entry_point}
    times = {"cpu_seconds": limits.cpu_seconds, "wall_seconds": limits.wall_seconds}
    case = Case(argument={**task, "code": text}, driver_argument={**task, **times, "code": reference.code})
    return Job(guest=_GUEST, driver=_DRIVER, cases=[case], limits=limits)


def failure_of(outcome: Outcome, found: dict[str, JsonValue] | None) -> Failure | None:
    """Return why the task cannot be judged, if it cannot."""
    if found is not None:
        broken = found.get("status") == "broken_tests"
        return Failure("bad_reference", printable(str(found["message"]))) if broken else None
    ending = outcome.driver_failure or ""
    if ending.startswith("ended with -") or ending in _LIMITS:
        return None
    if ending.startswith("ended with"):
        return Failure("bad_reference", "the test code ends its process")
    return Failure("internal", f"the tests' process failed: {ending}")


def integrity_of(found: dict[str, JsonValue] | None) -> Integrity:
    """Return how well a run was protected."""
    return "shared_process" if found is not None and found.get("shared") is True else "isolated"


def reason_of(outcome: Outcome, found: dict[str, Any] | None, program: Program) -> str:
    """Return the reason code of a run."""
    limit = broken_limit(outcome)
    if found is None:
        ending = outcome.driver_failure
        return limit or (ending if ending in _LIMITS else "crashed")
    status = found["status"]
    if status == "ended" or limit is not None:
        if not found["loaded"] and limit is None and does_not_compile(outcome):
            return reason_not_compiled(program)
        return limit or "crashed"
    if status == "raised" and found["message"].partition(":")[0] == "MemoryError":
        return "memory"
    return REASONS[status]


def _details(outcome: Outcome, found: dict[str, Any] | None, options: CodeOptions) -> dict[str, JsonValue]:
    if found is None:
        return {}
    details: dict[str, JsonValue] = {"calls": found["calls"]}
    if not options.echo_tests:
        return details
    if found["status"] == "ended":
        details["error"] = error_of(outcome) if outcome.stderr else "the program ended before the tests did"
    elif found["message"]:
        details["error"] = found["message"]
    where = {name: found[name] for name in ("line", "source", "left", "right") if name in found}
    return {name: printable(value) if isinstance(value, str) else value for name, value in (details | where).items()}
