"""Tests by standard input and output; the expected output never enters the program's sandbox."""

from collections.abc import Sequence
from functools import partial

from assay.tasks import CodeOptions, StdinTest, StdinTests
from pydantic import JsonValue

from sandboxes.base import Case, Outcome
from verifiers.base import Failure, Judgement
from verifiers.code.checker import check_outputs
from verifiers.code.compare import comparer, shown
from verifiers.code.compiling import Compiled, RunIn, compile_files
from verifiers.code.extraction import Program
from verifiers.code.findings import extracted_of, reason_refused, span_of, stable
from verifiers.code.languages import Language
from verifiers.code.series import Run, Style, grade_series
from verifiers.code.stdin_programs import PROGRAM_GUEST, argument_of, out_of_memory


def grade_stdin(reference: StdinTests, options: CodeOptions, program: Program | None, run: Run) -> Judgement | Failure:
    """Run the program on every test's input and compare what it prints.

    Args:
        reference: the tests.
        options: the task's options.
        program: what was extracted, if anything.
        run: runs a job in a sandbox.
    """
    failure = _broken(reference)
    if failure is not None:
        return failure
    return grade_series(_StdinStyle(reference, options, run), reference.tests, options, program, run)


def _broken(reference: StdinTests) -> Failure | None:
    """Return why no program can be judged, if so."""
    if not reference.tests:
        return Failure("bad_reference", "reference.tests is empty: a program that nothing checks cannot pass")
    if reference.checker is None and not any(test.output.strip() for test in reference.tests):
        return Failure("bad_reference", "every expected output is empty, as if producing it had failed")
    return None


def grade_stdin_of(
    language: Language,
    reference: StdinTests,
    options: CodeOptions,
    program: Program | None,
    *,
    run: RunIn,
    check: Run,
) -> Judgement | Failure:
    """Compile the program once, and go on as `grade_stdin` does.

    Args:
        language: of the program.
        reference: the tests.
        options: the task's options.
        program: what was extracted, if anything.
        run: runs a job in a sandbox of a profile.
        check: runs a job of a checker.
    """
    failure = _broken(reference)
    if failure is not None:
        return failure
    source = program.text if program is not None else ""
    if not source:
        return grade_series(_StdinStyle(reference, options, check), reference.tests, options, None, check)
    files = {language.source: source.encode("utf-8", "surrogatepass")}
    compiled = compile_files(language, language.compile, files, run)
    if isinstance(compiled, Failure):
        return compiled
    if compiled.error is not None:
        details: dict[str, JsonValue] = {"passed": 0, "total": len(reference.tests), "error": compiled.error}
        details |= span_of(program)
        return Judgement(reason=reason_refused(program), accuracy=0.0, extracted=extracted_of(program), details=details)
    style = _ProgramStyle(language, compiled, reference, options, check)
    return grade_series(style, reference.tests, options, program, partial(run, language.profile()))


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


class _ProgramStyle(_StdinStyle):
    """The same with a compiled program."""

    guest = PROGRAM_GUEST

    def __init__(self, language: Language, compiled: Compiled, reference: StdinTests, options: CodeOptions, check: Run):
        super().__init__(reference, options, check)
        self._language = language
        self._compiled = compiled
        self._options = options

    def case(self, test: StdinTest) -> Case:
        return Case(
            argument=argument_of(self._language, self._language.run, self._compiled, self._options),
            stdin=_encode(test.input),
        )

    def crash(self, outcome: Outcome) -> str:
        return "memory" if out_of_memory(self._language, outcome) else "crashed"

    def program_files(self, program: Program) -> dict[str, bytes]:  # noqa: ARG002
        return self._compiled.files


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
