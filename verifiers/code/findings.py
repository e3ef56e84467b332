"""From what a run did to what a verdict says: parts that all test styles share."""

import re

from assay.tasks import CodeOptions
from assay.verdict import Extracted
from pydantic import JsonValue

from sandboxes.base import Limits, Outcome
from verifiers.code.extraction import Program

_SHOWN_PROGRAM = 4000
_SHOWN_ERROR = 300
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
_LIMITS = ("cpu_timeout", "wall_timeout", "memory", "output", "processes", "file_size", "open_files")
_COMPILE_ERRORS = ("SyntaxError", "IndentationError", "TabError", "UnicodeEncodeError", "RecursionError", "ValueError")


def limits_of(options: CodeOptions) -> Limits:
    """Return the bounds of one test."""
    wall = options.wall_seconds if options.wall_seconds is not None else 3 * options.cpu_seconds + 5
    return Limits(
        cpu_seconds=options.cpu_seconds,
        wall_seconds=wall,
        memory_bytes=options.memory_mb << 20,
        output_bytes=options.output_kb << 10,
    )


def broken_limit(outcome: Outcome) -> str | None:
    """Return the limit that ended the guest, `crashed` for a name that is none: the guest may have written it."""
    if outcome.limit is None:
        return None
    return outcome.limit if outcome.limit in _LIMITS else "crashed"


def extracted_of(program: Program | None) -> Extracted | None:
    """Return the program as the verdict shows it."""
    if program is None:
        return None
    return Extracted(text=printable(program.text[:_SHOWN_PROGRAM]), source=program.source)


def span_of(program: Program | None) -> dict[str, JsonValue]:
    """Return where in the completion the program stands, as a part of the verdict's details."""
    return {} if program is None else {"span": [program.start, program.end]}


def does_not_compile(outcome: Outcome) -> bool:
    """Whether the program's text was no Python: its traceback has no steps and names an error of the compiler."""
    bare = outcome.stderr.startswith(b'  File "main.py"') or outcome.stderr.count(b"\n") == 1
    return bare and error_of(outcome).partition(":")[0] in _COMPILE_ERRORS


def reason_not_compiled(program: Program | None) -> str:
    """Return the reason for text that is no Python: prose without a code block was never meant as a program."""
    return "no_code_found" if program is None or program.source in ("text", "answer") else "syntax_error"


def reason_refused(program: Program | None) -> str:
    """Return the reason for what a compiler refused: prose without a code block was never meant as a program."""
    return "no_code_found" if program is None or program.source in ("text", "answer") else "compile_error"


def error_of(outcome: Outcome) -> str:
    """Return the last line of a program's traceback, or how it ended; the same in every run."""
    lines = outcome.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    if lines:
        return stable(lines[-1])[:_SHOWN_ERROR]
    if outcome.signal is not None:
        return f"ended by signal {outcome.signal}"
    return f"ended with exit code {outcome.exit_code}"


def stable(text: str) -> str:
    """Return the text without what differs between runs: memory addresses."""
    return _ADDRESS.sub("0x…", text)


def printable(text: str) -> str:
    """Return the text with lone surrogates, which JSON in UTF-8 cannot carry, replaced."""
    return text.encode("utf-8", "replace").decode()
