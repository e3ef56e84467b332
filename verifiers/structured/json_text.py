"""Strict JSON, found in a text and read from it. Runs inside sandboxes only: numbers of any length are read."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_DEPTH = 500
"""Objects and arrays within one another."""

_SPACE = " \t\n\r"
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"'
_BRACKET = re.compile(rf"{_QUOTED}|[\[{{]|[\]}}]")
_OPENING = re.compile(r"[\[{]")
_FENCE = re.compile(r"^[ \t]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$", re.MULTILINE)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")

sys.set_int_max_str_digits(0)  # the length of a text bounds its numbers, the child's CPU time the work on them
sys.setrecursionlimit(20_000)  # several frames for each of MAX_DEPTH levels


class NoJson(Exception):
    """There is no JSON that counts."""

    def __init__(self, reason: str, problem: str = "") -> None:
        """Take the reason, a short code, and what is wrong, for people."""
        super().__init__(reason)
        self.reason = reason
        self.problem = problem


@dataclass(frozen=True)
class Strictness:
    """What is accepted beyond RFC 8259."""

    duplicate_keys: bool = False
    nan: bool = False
    trailing_text: bool = False


@dataclass(frozen=True)
class Found:
    """A value and where it stands."""

    value: Any
    start: int
    end: int
    source: str


def find(text: str, extract: str, answer_tag: str, strictness: Strictness) -> Found:
    """Find the JSON value that counts.

    Args:
        text: what follows the reasoning.
        extract: `auto`, `whole`, `fence`, `answer_tag`, `first` or `last`.
        answer_tag: name of the tag of answers.
        strictness: what is accepted beyond JSON.

    Raises:
        NoJson: there is none; `reason` is `no_answer`, `not_json`, `too_deep`, or what of `strictness` it breaks.
    """
    if extract in ("first", "last"):
        return _balanced(text, extract, strictness)
    if extract != "auto":
        start, end = _PLACES[extract](text, answer_tag)
        return _read(text, start, end, extract, strictness)
    try:
        return _read(text, 0, len(text), "whole", strictness)
    except NoJson as problem:
        if problem.reason not in ("not_json", "trailing_text"):
            raise
        first = problem
    for source in ("answer_tag", "fence"):
        try:
            start, end = _PLACES[source](text, answer_tag)
        except NoJson as problem:
            if problem.problem == "absent":
                continue
            raise
        if source == "answer_tag" and _FENCE.search(text, start, end):
            start, end = _shifted(_fence(text[start:end], answer_tag), start)
        return _read(text, start, end, source, strictness)
    raise first


def decode(text: str, strictness: Strictness = Strictness()) -> Any:
    """Return the one JSON value that a text is.

    Raises:
        NoJson: it is none.
    """
    return _read(text, 0, len(text), "whole", strictness).value


def equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1 is 1.0 but not true, keys have no order, NaN equals nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return type(one) is type(other) and one == other if isinstance(one, str) or one is None else bool(one == other)


def holds(value: Any, test: Callable[[Any], bool]) -> bool:
    """Whether a scalar that passes the test stands anywhere in a value."""
    if isinstance(value, dict):
        return any(holds(inner, test) for inner in value.values())
    if isinstance(value, list):
        return any(holds(inner, test) for inner in value)
    return test(value)


def is_no_finite(value: Any) -> bool:
    """Whether a scalar is a NaN or an infinity."""
    return isinstance(value, float) and not math.isfinite(value)


def is_decimal(value: Any) -> bool:
    """Whether a scalar is a number beyond the range of floats, with a point or an exponent."""
    return isinstance(value, Decimal)


def _read(text: str, start: int, end: int, source: str, strictness: Strictness) -> Found:
    """Read the value between two positions, with nothing around it but white space."""
    while start < end and text[start] in _SPACE:
        start += 1
    while end > start and text[end - 1] in _SPACE:
        end -= 1
    if start == end:
        raise NoJson("no_answer", "empty")
    _check_depth(text, start, end)
    part = text[start:end]
    try:
        value, stop = _DECODERS[strictness.duplicate_keys, strictness.nan].raw_decode(part)
    except json.JSONDecodeError as error:
        raise NoJson("not_json", f"{error.msg} at character {error.pos}") from None
    if stop < len(part) and not strictness.trailing_text:
        raise NoJson("trailing_text", f"text after the value, at character {stop}")
    if _HALF_PAIR.search(part, 0, stop) and not _is_text(value):
        raise NoJson("not_text", "an escape of half a surrogate pair is no text")
    return Found(value, start, start + stop, source)


def _check_depth(text: str, start: int, end: int) -> None:
    if text.count("{", start, end) + text.count("[", start, end) <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKET.finditer(text, start, end):
        sign = match[0]
        if sign in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise NoJson("too_deep", f"more than {MAX_DEPTH} levels")
        elif sign in "}]":
            depth -= 1


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True


def _float(digits: str) -> float | Decimal:
    """Read a number with a fraction or an exponent; one beyond the range of floats stays exact."""
    value = float(digits)
    if math.isfinite(value):
        return value
    try:
        return Decimal(digits)
    except InvalidOperation:
        raise NoJson("number_too_large", "an exponent of more than 18 digits") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise NoJson("duplicate_keys", f"the key {key[:100]!r} comes twice in one object")
        read[key] = value
    return read


def _no_constant(name: str) -> Any:
    raise NoJson("not_a_number", f"{name} is not JSON")


_DECODERS = {
    (duplicates, nan): json.JSONDecoder(
        object_pairs_hook=None if duplicates else _without_duplicates,
        parse_constant=None if nan else _no_constant,
        parse_float=_float,
    )
    for duplicates in (False, True)
    for nan in (False, True)
}


def _whole(text: str, _answer_tag: str) -> tuple[int, int]:
    return 0, len(text)


def tagged(text: str, tag: str) -> str | None:
    """Return what the last complete tag of a name holds; None where there is none."""
    try:
        start, end = _answer(text, tag)
    except NoJson:
        return None
    return text[start:end]


def fenced(text: str, languages: tuple[str, ...]) -> str | None:
    """Return the last complete fenced block of the first of the languages that there is; "" stands for none."""
    blocks, _ = _blocks(text)
    place = next((blocks[language] for language in languages if language in blocks), None)
    return None if place is None else text[place[0] : place[1]]


def is_fence_open(text: str, languages: tuple[str, ...]) -> bool:
    """Whether the text ends within a fenced block of one of the languages."""
    return _blocks(text)[1] in languages


def _answer(text: str, answer_tag: str) -> tuple[int, int]:
    """Return where the content of the last answer tag stands."""
    opening, closing = f"<{answer_tag}>", f"</{answer_tag}>"
    start = text.rfind(opening)
    if start < 0:
        raise NoJson("no_answer", "absent")
    end = text.find(closing, start)
    if end < 0:
        raise NoJson("no_answer", "unclosed")
    return start + len(opening), end


def _fence(text: str, _answer_tag: str) -> tuple[int, int]:
    """Return where the content of the last fenced block of JSON stands; of one without a language where none has."""
    blocks, unclosed = _blocks(text)
    if unclosed in ("json", ""):
        raise NoJson("no_answer", "unclosed")
    for language in ("json", ""):
        if language in blocks:
            return blocks[language]
    raise NoJson("no_answer", "absent")


def _blocks(text: str) -> tuple[dict[str, tuple[int, int]], str | None]:
    """Return where the content of the last block of each language stands, and the language of one left open."""
    blocks: dict[str, tuple[int, int]] = {}
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match["mark"].startswith(opened["mark"]) and not match["info"].strip():
            blocks[opened["info"].strip().lower()] = (opened.end(), match.start())
            opened = None
    return blocks, None if opened is None else opened["info"].strip().lower()


_PLACES: dict[str, Callable[[str, str], tuple[int, int]]] = {"whole": _whole, "answer_tag": _answer, "fence": _fence}


def _shifted(place: tuple[int, int], by: int) -> tuple[int, int]:
    return place[0] + by, place[1] + by


def _balanced(text: str, which: str, strictness: Strictness) -> Found:
    """Return the first or last object or array that is JSON."""
    spans = list(balanced_spans(text))
    reason = NoJson("no_answer", "absent")
    for start, end in spans if which == "first" else reversed(spans):
        try:
            return _read(text, start, end, which, strictness)
        except NoJson as problem:
            if problem.reason != "not_json":
                raise
            reason = problem
    raise reason


def balanced_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the outermost complete objects and arrays stand, strings within them read as strings.

    One pass: a bracket that is never closed hides nothing that stands complete behind it.
    """
    found: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    position = 0
    while match := (_BRACKET if opened else _OPENING).search(text, position):
        position = match.end()
        sign = match[0]
        if sign in "{[":
            opened.append((sign, match.start()))
        elif sign in "}]":
            if opened[-1][0] != ("{" if sign == "}" else "["):
                opened.clear()
                continue
            start = opened.pop()[1]
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, position))
    yield from found
