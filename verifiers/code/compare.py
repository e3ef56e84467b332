"""Comparing what a program printed with what it should have, as bytes, so that no output is too broken to compare."""

from collections.abc import Callable

Comparer = Callable[[bytes, bytes], bool]


def same_lines(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs agree but for white space at the end of lines and empty lines at the end."""
    return _lines(printed) == _lines(expected)


def same_bytes(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs are the same, byte for byte."""
    return printed == expected


def same_tokens(printed: bytes, expected: bytes) -> bool:
    """Whether the outputs hold the same words in the same order, whatever white space is between them."""
    return printed.split() == expected.split()


COMPARERS: dict[str, Comparer] = {"lines": same_lines, "exact": same_bytes, "tokens": same_tokens}


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
