"""Matches answers against patterns. Runs inside sandboxes only."""

import re
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import re2  # type: ignore[import-untyped]

PROBES = ("", "a", "Zz 09", "\u00ff\u4e2d", "-+*/=", "no answer at all\n\n\t?", "<x>{[(;:,.!\"'`~)]}</x>")
"""Texts that have nothing in common: what accepts them all accepts everything."""

_SHOWN_CHARACTERS = 200


class BadPattern(Exception):
    """The pattern cannot be used; the message says why."""


def check(argument: dict[str, Any]) -> list[dict[str, Any]]:
    """Match texts.

    Args:
        argument: `specs`, each with `pattern`, `groups`, `mode`, `engine`, `ignore_case`, `multiline`, `dot_all`,
            `which`; and `items`, pairs of a spec's position and `text`, or `probe`: True, which only compiles it.

    Returns:
        For each item `bad_reference` (why), or `score`, `reason` and, where there is a match, `groups`.
    """
    compiled: dict[int, Pattern | str] = {}
    results: list[dict[str, Any]] = []
    for place, what in argument["items"]:
        if place not in compiled:
            compiled[place] = _compiled(argument["specs"][place])
        pattern = compiled[place]
        if isinstance(pattern, str):
            results.append({"bad_reference": pattern})
        elif what.get("probe"):
            results.append({"score": 0.0, "reason": "probed"})  # compiling has tried it on PROBES
        else:
            results.append(pattern.judge(what["text"]))
    return results


def _compiled(spec: dict[str, Any]) -> "Pattern | str":
    try:
        return Pattern(spec)
    except BadPattern as problem:
        return str(problem)[:1000]


class Pattern:
    """A pattern that is ready to match."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Take a spec as `check` has it.

        Raises:
            BadPattern: it cannot be used.
        """
        self._is_search = spec["mode"] == "search"
        self._which: str = spec["which"]
        self._wanted: dict[str, list[str | None]] = {
            name: value if isinstance(value, list) else [value] for name, value in spec["groups"].items()
        }
        self._pattern: Any = _re2(spec) if spec["engine"] == "re2" else _python(spec)
        unknown = [name for name in self._wanted if name not in self._pattern.groupindex]
        if unknown:
            raise BadPattern(f"the pattern has no group named {unknown[0][:100]!r}")
        if not self._wanted and all(next(self._matches(text), None) is not None for text in PROBES):
            raise BadPattern("the pattern matches every text, so nothing would be checked")

    def judge(self, text: str) -> dict[str, Any]:
        """Judge one text."""
        last = None
        for last in self._matches(text):
            if self._which == "first" or (self._which == "every" and self._different(last) is not None):
                break
        if last is None:
            return {"score": 0.0, "reason": "no_match"}
        different = self._different(last)
        if different is not None:
            return {"score": 0.0, "reason": "different_group", "group": different, "groups": _shown(last)}
        return {"score": 1.0, "reason": "match", "groups": _shown(last)}

    def _different(self, match: Any) -> str | None:
        """Return a group of a match that holds none of its values."""
        return next((name for name, wanted in self._wanted.items() if match.group(name) not in wanted), None)

    def _matches(self, text: str) -> Iterator[Any]:
        if self._is_search:
            yield from self._pattern.finditer(text)
        elif (match := self._pattern.fullmatch(text)) is not None:
            yield match


def _re2(spec: dict[str, Any]) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not spec["ignore_case"]
    options.dot_nl = spec["dot_all"]
    flags = "(?m)" if spec["multiline"] else ""
    try:
        return re2.compile(flags + spec["pattern"], options)
    except re2.error as problem:
        said = problem.args[0]
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        hint = "; RE2 has no look-around and no back-references, which `engine: python` has"
        needs_python = "perl operator" in text or "escape sequence" in text
        raise BadPattern(f"no pattern of RE2: {text[:200]}{hint if needs_python else ''}") from None


def _python(spec: dict[str, Any]) -> re.Pattern[str]:
    flags = (
        (re.IGNORECASE if spec["ignore_case"] else 0)
        | (re.MULTILINE if spec["multiline"] else 0)
        | (re.DOTALL if spec["dot_all"] else 0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(spec["pattern"], flags)
        except (re.error, OverflowError, RecursionError) as problem:
            raise BadPattern(f"no pattern of Python: {str(problem)[:200]}") from None


def _shown(match: Any) -> dict[str, str | None]:
    """Return the named groups, cut small."""
    return {
        name: None if value is None else value[:_SHOWN_CHARACTERS]
        for name, value in islice(sorted(match.groupdict().items()), 20)
    }
