"""Judging outputs by a program of the task's author, in a sandbox of its own.

The completion's code is not there, and what it printed is data. A checker that crashes, runs into a limit or says
neither yes nor no is the author's fault, never a score.
"""

from collections.abc import Sequence

from assay.tasks import Checker, StdinTest
from pydantic import JsonValue

from sandboxes.base import Case, Job, Limits, Outcome
from verifiers.base import Failure
from verifiers.code.findings import printable
from verifiers.code.series import PROGRAM_FILE, Run

_GUEST = "verifiers.code.checker_guest:run_checker"
_LIMITS = Limits(cpu_seconds=10.0, wall_seconds=40.0, memory_bytes=1 << 30, file_bytes=1 << 28)
_ACCEPTED, _REJECTED = 0, 1


def check_outputs(
    checker: Checker, tests: Sequence[StdinTest], printed: Sequence[bytes], run: Run
) -> list[bool] | Failure:
    """Return for each test whether the checker accepts what was printed, or how the checker failed.

    A checker that cannot make anything of an output rejects it, if it can tell of the expected output.

    Args:
        checker: the program.
        tests: their inputs and expected outputs are the checker's to read.
        printed: what the completion printed in each.
        run: runs a job in a sandbox.
    """
    accepted = []
    for test, output in zip(tests, printed, strict=True):
        # A job each: outputs are large, and one checker's run must not be the next one's to tamper with.
        (outcome,) = run(_job(checker, test, output))
        if _exit_code(outcome) not in (_ACCEPTED, _REJECTED):
            (rehearsal,) = run(_job(checker, test, test.output.encode("utf-8", "surrogatepass")))
            if _exit_code(rehearsal) not in (_ACCEPTED, _REJECTED):
                return Failure("bad_reference", f"the checker does not decide: {_ending(rehearsal)}")
        accepted.append(_exit_code(outcome) == _ACCEPTED)
    return accepted


def _job(checker: Checker, test: StdinTest, output: bytes) -> Job:
    argument: JsonValue = {
        "input": _as_text(test.input.encode("utf-8", "surrogatepass")),
        "output": _as_text(output),
        "expected": _as_text(test.output.encode("utf-8", "surrogatepass")),
    }
    files = {PROGRAM_FILE: checker.code.encode("utf-8", "surrogatepass")}
    return Job(guest=_GUEST, cases=[Case(argument=argument)], limits=_LIMITS, files=files)


def _as_text(content: bytes) -> str:
    """Return bytes as text of one character a byte, so that JSON carries them."""
    return content.decode("latin-1")


def _exit_code(outcome: Outcome) -> int | None:
    found = outcome.result if outcome.returned and outcome.ok and isinstance(outcome.result, dict) else {}
    code = found.get("exit_code")
    return code if isinstance(code, int) else None


def _ending(outcome: Outcome) -> str:
    if isinstance(outcome.result, dict) and "raised" in outcome.result:
        return printable(str(outcome.result["raised"]))
    code = _exit_code(outcome)
    if code is not None:
        return f"exit code {code}; 0 accepts and 1 rejects"
    return outcome.limit or f"exit code {outcome.exit_code}, signal {outcome.signal}"
