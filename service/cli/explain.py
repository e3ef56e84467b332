"""A verdict in words, short enough for a cell of a table."""

from collections.abc import Iterator, Mapping

from assay import Verdict
from pydantic import JsonValue

MAX_CHARS = 160
_MAX_PART_CHARS = 60
_REASONS = {
    name: f"{name.replace('_', ' ')} limit" for name in ("memory", "output", "processes", "file_size", "open_files")
}
"""Reasons that say too little by themselves."""


def explain(verdict: Verdict) -> str:
    """Return why the verdict is what it is."""
    if verdict.error is not None:
        return one_line(f"{verdict.error.kind}: {verdict.error.message}")
    parts = [_REASONS.get(verdict.reason or "", (verdict.reason or "").replace("_", " ")), *_findings(verdict.details)]
    if verdict.format == 0 and "format_reason" in verdict.details:
        parts.append(f"form: {verdict.details['format_reason']}".replace("_", " "))
    return one_line("; ".join(parts))


def one_line(text: str, max_chars: int = MAX_CHARS) -> str:
    """Return the text on one line, cut, with nothing in it that a terminal would act on."""
    cut = text[: 4 * max_chars]
    words = " ".join(cut.split())
    safe = "".join(character if character.isprintable() else "·" for character in words)
    return safe if len(safe) <= max_chars else safe[: max_chars - 1] + "…"


def _findings(details: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield what the verifier found, the most telling first."""
    tests = details.get("tests")
    if isinstance(tests, list):
        yield f"{details.get('passed')} of {details.get('total')} tests"
        first = next((test for test in tests if isinstance(test, dict) and test.get("status") != "passed"), None)
        if first is not None:
            yield from _failed_test(first)
    elif "source" in details:
        yield _part(details["source"])
        yield from _failed_assertion(details)
    elif "error" in details:
        yield _part(details["error"])
    elif "errors" in details or "differences" in details:
        yield from _first_of(details.get("errors", details.get("differences")))
    elif "problem" in details:
        yield _part(details["problem"])


def _first_of(errors: JsonValue) -> Iterator[str]:
    """Yield where the first of several errors is, and what is wrong there."""
    first = errors[0] if isinstance(errors, list) and errors else None
    if isinstance(first, dict):
        place = next((first[name] for name in ("path", "argument", "name") if first.get(name)), None)
        problem = first.get("message", first.get("problem"))
        yield ": ".join(_part(part) for part in (place, problem) if part is not None)


def _failed_test(test: Mapping[str, JsonValue]) -> Iterator[str]:
    if "error" in test:
        yield _part(test["error"])
    elif test.get("status") == "failed" and "got" in test:
        yield f"{_part(test.get('input'))} gave {_part(test['got'])}, not {_part(test.get('expected'))}"


def _failed_assertion(details: Mapping[str, JsonValue]) -> Iterator[str]:
    if "error" in details:
        yield _part(details["error"])
    elif "left" in details and "right" in details:
        yield f"{_part(details['left'])} is not {_part(details['right'])}"


def _part(value: JsonValue) -> str:
    return one_line(str(value), _MAX_PART_CHARS) or "nothing"
