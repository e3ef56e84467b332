"""Comparing what a program printed with what it should have, as bytes, so that no output is too broken to compare."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from assay.tasks import CodeOptions

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_INTEGER = re.compile(rb"[+-]?\d+")
_MAX_NUMBER_CHARS = 400
_TOLERANCE = 1e-6

Comparer = Callable[[bytes, bytes], bool]


def comparer(options: CodeOptions) -> Comparer:
    """Return what compares a printed with an expected output, by the task's options."""
    if options.compare == "numeric":
        relative, absolute = options.relative_tolerance, options.absolute_tolerance
        return SameNumbers(
            _TOLERANCE if relative is None else relative,
            _TOLERANCE if absolute is None else absolute,
            options.nan_equal,
        )
    return _COMPARERS[options.compare]


def same_lines(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs agree but for white space at the end of lines and empty lines at the end."""
    return _lines(printed) == _lines(expected)


def same_lines_in_any_order(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs have the same lines, each as often, but for white space at their ends and empty lines."""
    return _sorted_lines(printed) == _sorted_lines(expected)


def same_bytes(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs are the same, byte for byte."""
    return printed == expected


def same_tokens(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs hold the same words in the same order, whatever white space is between them."""
    return printed.split() == expected.split()


@dataclass(frozen=True, slots=True)
class SameNumbers:
    """Whether outputs hold the same words, and numbers within a tolerance where both have one.

    Two numbers that are both written as integers must be equal.
    """

    relative_tolerance: float
    absolute_tolerance: float
    nan_equal: bool

    def __call__(self, printed: bytes, expected: bytes) -> bool:
        """Compare; a word that differs must be a number on both sides."""
        got, wanted = printed.split(), expected.split()
        return len(got) == len(wanted) and all(map(self._same, got, wanted))

    def _same(self, got: bytes, wanted: bytes) -> bool:
        if not (_is_number(got) and _is_number(wanted)):
            return got == wanted
        if _INTEGER.fullmatch(got) and _INTEGER.fullmatch(wanted):
            return got == wanted or int(got) == int(wanted)
        a, b = float(got), float(wanted)
        if math.isnan(a) or math.isnan(b):
            return self.nan_equal and math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=self.relative_tolerance, abs_tol=self.absolute_tolerance)


def _is_number(word: bytes) -> bool:
    return len(word) <= _MAX_NUMBER_CHARS and _NUMBER.fullmatch(word) is not None


_COMPARERS: dict[str, Comparer] = {
    "lines": same_lines,
    "exact": same_bytes,
    "tokens": same_tokens,
    "unordered_lines": same_lines_in_any_order,
}


def shown(output: bytes, length: int = 200) -> str:
    """Return output as short text: its begin and its end, bytes that are not UTF-8 spelled out."""
    if len(output) > 2 * length:
        return f"{_text(output[:length])} … {_text(output[-length:])}"
    text = _text(output)
    return text if len(text) <= 2 * length else f"{text[:length]} … {text[-length:]}"


def _text(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")


def _lines(output: bytes) -> list[bytes]:
    return [line.rstrip() for line in output.rstrip().split(b"\n")]


def _sorted_lines(output: bytes) -> list[bytes]:
    return sorted(line for line in _lines(output) if line)
