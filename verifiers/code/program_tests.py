"""Grading a program of a compiled language by test code of that language, in one process.

The test code stands behind the program and is run by a harness, which reads a token from standard input before the
program's own code runs, and writes it only when all tests have run to their end. A program that exits, prints or
raises does not get there; one that searches its own memory for the token can, so that verdicts say `shared_process`.
"""

import re
import secrets
from functools import partial

from assay.tasks import AssertTests, CodeOptions
from pydantic import JsonValue

from sandboxes.base import Case, Job, Outcome
from verifiers.base import Failure, Judgement
from verifiers.code.compiling import RunIn, compile_files
from verifiers.code.extraction import Program
from verifiers.code.findings import (
    broken_limit,
    error_of,
    extracted_of,
    limits_of,
    printable,
    reason_refused,
    span_of,
    stable,
)
from verifiers.code.languages import TOKEN_BYTES, Language
from verifiers.code.stdin_programs import PROGRAM_GUEST, argument_of, out_of_memory

_KEY = secrets.token_hex(8)
"""A word that no program knows; one for a worker's life, so that what was compiled can be used again."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACROS = {"assert", "errno", "stdin", "stdout", "stderr", "isnan", "isinf", "signbit", "offsetof", "defined"}
_OPERATORS = {"and", "and_eq", "bitand", "bitor", "compl", "not", "not_eq", "or", "or_eq", "xor", "xor_eq"}
_ERROR = re.compile(r"Error\b|Exception\b|Assertion")


def grade_program(
    language: Language, reference: AssertTests, options: CodeOptions, program: Program | None, run: RunIn
) -> Judgement | Failure:
    """Compile the program with the tests and run both.

    Args:
        language: of both.
        reference: the test code, its entry point, and the prompt that the program continues.
        options: the task's options.
        program: what was extracted, if anything.
        run: runs a job in a sandbox of a profile.
    """
    if not reference.code.strip():
        return Failure("bad_reference", "reference.code is empty: a program that nothing checks cannot pass")
    if program is None:
        return Judgement(reason="no_code_found", accuracy=0.0)
    harness = language.harness
    judged = partial(Judgement, extracted=extracted_of(program), integrity="shared_process")
    details: dict[str, JsonValue] = dict(span_of(program))
    taken = _taken_names(language, reference, program.text)
    if taken:
        error = f"the program declares what the tests use by the same name: {', '.join(taken)}"
        return judged(reason="tests_failed", accuracy=0.0, details={**details, "error": error})
    text = _assemble(language, reference, program.text) + _tests(language, reference)
    files = {language.source: text, **harness.files}
    encoded = {
        name: content.replace("_KEY", f"_{_KEY}").encode("utf-8", "surrogatepass") for name, content in files.items()
    }
    compiled = compile_files(language, harness.compile, encoded, run)
    if isinstance(compiled, Failure):
        return compiled
    if compiled.error is not None:
        return judged(reason=reason_refused(program), accuracy=0.0, details={**details, "error": compiled.error})
    token = secrets.token_hex(TOKEN_BYTES // 2).encode()
    case = Case(argument=argument_of(language, harness.run, compiled, options), stdin=token)
    job = Job(guest=PROGRAM_GUEST, cases=[case], limits=limits_of(options), files=compiled.files, wants_result=False)
    (outcome,) = run(language.profile(), job)
    limit = broken_limit(outcome) or ("memory" if out_of_memory(language, outcome) else None)
    passed = outcome.ok and limit is None and outcome.stdout.endswith(token)
    if not passed and options.echo_tests:
        ended = "the program ended before the tests did" if outcome.ok else _said(outcome)
        details["error"] = ended
    return judged(
        reason="passed" if passed else limit or ("crashed" if outcome.ok else "tests_failed"),
        accuracy=float(passed),
        details=details,
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
    )


def _said(outcome: Outcome) -> str:
    """Return the line in which a program that failed names an error, else the last one."""
    lines = outcome.stderr.decode("utf-8", "backslashreplace").splitlines()
    found = next((line for line in reversed(lines) if _ERROR.search(line)), None)
    return printable(stable(found.strip())[:300] if found is not None else error_of(outcome))


def _taken_names(language: Language, reference: AssertTests, code: str) -> list[str]:
    """Return what the program declares although the tests use it and the prompt does not declare it."""
    pattern = language.harness.declaration
    if not pattern:
        return []
    given = {*re.findall(pattern, reference.prompt), "Solution", reference.entry_point}
    return sorted(({*re.findall(pattern, code)} - given) & {*_WORD.findall(reference.code)})


def _tests(language: Language, reference: AssertTests) -> str:
    """Return the tests, behind what makes their words mean what they mean."""
    harness, code = language.harness, reference.code
    for pattern, name in harness.renames:
        code = re.sub(pattern, name, code)
    words = (
        sorted({word for word in _WORD.findall(code) if word.islower()} - _MACROS - _OPERATORS)
        if harness.restore
        else ()
    )
    return "\n" + "".join(harness.restore.replace("NAME", w) for w in words) + harness.before_tests + code + "\n"


def _assemble(language: Language, reference: AssertTests, code: str) -> str:
    if not reference.prompt.strip():
        return code
    if language.stands_alone(code, reference.entry_point):
        heads = re.findall(language.harness.heads, reference.prompt, re.MULTILINE)
        return "\n".join([*(head for head in heads if head.strip() not in code), code])
    return reference.prompt + code
