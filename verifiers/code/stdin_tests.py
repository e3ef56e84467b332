"""Tests by standard input and output; the expected output never enters the program's sandbox."""

from collections.abc import Sequence

from assay.tasks import CodeOptions, StdinTest, StdinTests
from pydantic import JsonValue

from sandboxes.base import Case, Outcome
from verifiers.base import Failure, Judgement
from verifiers.code.checker import check_outputs
from verifiers.code.compare import comparer, shown
from verifiers.code.extraction import Program
from verifiers.code.findings import stable
from verifiers.code.series import Run, Style, grade_series


def grade_stdin(reference: StdinTests, options: CodeOptions, program: Program | None, run: Run) -> Judgement | Failure:
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
    if reference.checker is None and not any(test.output.strip() for test in tests):
        return Failure("bad_reference", "every expected output is empty, as if producing it had failed")
    style = _StdinStyle(reference, options, run)
    return grade_series(style, tests, options, program, run)


class _StdinStyle(Style[StdinTest]):
    guest = "verifiers.code.script_guest:run_script"

    def __init__(self, reference: StdinTests, options: CodeOptions, run: Run) -> None:
        self.files = reference.files
        self._checker = reference.checker
        self._compare = comparer(options)
        self._run = run

    def case(self, test: StdinTest) -> Case:
        return Case(stdin=_encode(test.input))

    def size(self, test: StdinTest) -> int:
        return len(test.input)

    def judge(self, tests: Sequence[StdinTest], outcomes: Sequence[Outcome]) -> list[str] | Failure:
        printed = [outcome.stdout for outcome in outcomes]
        if self._checker is not None:
            checked = check_outputs(self._checker, tests, printed, self._run)
            if isinstance(checked, Failure):
                return checked
        else:
            checked = [self._compare(p, _encode(t.output)) for p, t in zip(printed, tests, strict=True)]
        return ["passed" if is_right else "failed" for is_right in checked]

    def show(self, test: StdinTest, outcome: Outcome, status: str) -> dict[str, JsonValue]:
        entry: dict[str, JsonValue] = {"input": shown(test.input.encode("utf-8", "replace"))}
        if status == "crashed":
            return entry
        expected, got = shown(test.output.encode("utf-8", "replace")), stable(shown(outcome.stdout))
        return {**entry, "expected": expected, "got": got}


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
