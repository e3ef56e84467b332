"""Tests that call a function; the expected value never enters the program's sandbox, the value comes out as data."""

from collections.abc import Sequence
from dataclasses import dataclass

from assay.tasks import CodeOptions, FunctionTest, FunctionTests
from pydantic import JsonValue

from sandboxes.base import Case, Outcome
from verifiers.base import Failure, Judgement
from verifiers.code.extraction import Program
from verifiers.code.findings import printable
from verifiers.code.series import Run, Style, grade_series
from verifiers.code.values import (
    BadValueError,
    Form,
    TooDeepError,
    ValueRules,
    form_of,
    same_value,
    shown_arguments,
    shown_value,
)

_REASONS = {"unreadable": "unreadable_result"}


@dataclass(frozen=True, slots=True)
class _Call:
    """A test, its values as plain-data forms."""

    args: list[Form]
    kwargs: dict[str, Form]
    expected: Form
    weight: float
    hidden: bool


def grade_functions(
    reference: FunctionTests, options: CodeOptions, program: Program | None, run: Run
) -> Judgement | Failure:
    """Call the program's function with every test's arguments and compare what it returns.

    Args:
        reference: the tests.
        options: the task's options.
        program: what was extracted, if anything.
        run: runs a job in a sandbox.
    """
    if not reference.tests:
        return Failure("bad_reference", "reference.tests is empty: a program that nothing checks cannot pass")
    calls = []
    for place, test in enumerate(reference.tests):
        changed = reference.compare_argument
        if changed is not None and changed >= len(test.args):
            message = f"reference.tests[{place}] has no argument {changed}, which compare_argument names"
            return Failure("bad_reference", message)
        try:
            calls.append(_read(test))
        except BadValueError as bad:
            return Failure("bad_reference", f"reference.tests[{place}]: {bad}")
    return grade_series(_FunctionStyle(reference, options), calls, options, program, run)


def _read(test: FunctionTest) -> _Call:
    args = [form_of(arg) for arg in test.args]
    kwargs = {name: form_of(value) for name, value in test.kwargs.items()}
    return _Call(args, kwargs, form_of(test.expected), test.weight, test.hidden)


class _FunctionStyle(Style[_Call]):
    guest = "verifiers.code.function_guest:call_function"
    wants_result = True

    def __init__(self, reference: FunctionTests, options: CodeOptions) -> None:
        self.files = reference.files
        self._rules = ValueRules.of(options)
        self._argument: dict[str, JsonValue] = {
            "prompt": reference.prompt,
            "entry_point": reference.entry_point,
            "compare_argument": reference.compare_argument,
        }

    def case(self, test: _Call) -> Case:
        return Case(argument={**self._argument, "args": test.args, "kwargs": test.kwargs})

    def size(self, test: _Call) -> int:
        return 8 * (len(str(test.args)) + len(str(test.kwargs)))

    def judge(self, tests: Sequence[_Call], outcomes: Sequence[Outcome]) -> list[str] | Failure:
        return [self._status(test, outcome) for test, outcome in zip(tests, outcomes, strict=True)]

    def _status(self, test: _Call, outcome: Outcome) -> str:
        found = outcome.result
        if not outcome.returned or not isinstance(found, dict):
            return "crashed"  # it left before its function returned
        if "missing" in found:
            return "missing_name"
        if "value" not in found:
            return "unreadable"
        try:
            return "passed" if same_value(found["value"], test.expected, self._rules) else "failed"
        except TooDeepError:
            return "unreadable"

    def show(self, test: _Call, outcome: Outcome, status: str) -> dict[str, JsonValue]:
        entry: dict[str, JsonValue] = {"args": printable(shown_arguments(test.args, test.kwargs))}
        found = outcome.result if isinstance(outcome.result, dict) else {}
        if status == "unreadable":
            return {**entry, "error": printable(str(found.get("unreadable", "nested too deep"))[:300])}
        if status != "failed":
            return entry
        return {
            **entry,
            "expected": printable(shown_value(test.expected)),
            "got": printable(shown_value(found.get("value"))),
        }

    def reason(self, status: str) -> str:
        return _REASONS.get(status) or super().reason(status)
