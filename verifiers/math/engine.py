"""Compares answers with their references. Runs inside sandboxes only, in forked children.

`compare_together` makes many comparisons in one child and gives up on a slow one; `compare` makes one, with no timeout
of its own: the child's CPU and memory bounds end it, and the verifier then asks for the reference alone to learn whose
fault it was. A comparison that ends within both has the same result in both.
"""

import signal
import sys
import time
from fractions import Fraction
from functools import lru_cache
from types import FrameType
from typing import Any

from verifiers.math.comparing import Comparison
from verifiers.math.leaves import Unreadable
from verifiers.math.reading import Node, read
from verifiers.math.values import is_worked_out

TOGETHER_SECONDS = 0.1
"""CPU time of one comparison among others; a slower one is left to a child of its own."""

_ALL_TOGETHER_SECONDS = 0.5
"""After so much CPU time in one child, the rest is left to the next."""

_WARM_UP = (
    r"\frac{1}{2}+2x^{2}-\sqrt{3}y_{1}\cdot 4",
    r"\sin^{2}(x)\cos 2x+\ln|x|-e^{-x/5}",
    r"(x+2)(x-1)/3",
    r"\begin{pmatrix}1 & 2 \\ 3 & 4\end{pmatrix}",
    r"f(x)+a_1!+\binom{n}{k}",
    r"2\pi r-5\log_{2}(8)",
    r"x^{2/3}\sqrt[3]{5ab}",
    "(((1)))",
    r"\sum_{n=0}^{\infty}\frac{1}{n^2}",
    r"-\frac{x^{2}-3x+1}{(x-2)(x+5)}",
    r"3x^{4}y^{2}-16x+9",
    r"\frac{-7\pi}{4}+\frac{2\sqrt{2}}{3}",
    r"(2a-b)^{2}+ab^{3}c",
    r"\frac{5\sqrt[4]{7r^{2}}}{2}",
    r"12-3i",
    r"e^{2x}(c_{1}\cos 3x+c_{2}\sin 3x)",
    r"\ln(2)+\ln 5x-\log 7",
    r"\tan^{-1}(x)+\arctan x+\sec\theta",
    r"1.5\times 10^{-4}",
    r"2^{100}-1+n!",
    r"|x-3|+\lfloor x\rfloor",
    r"[\begin{array}{rr}1 & -2 \\ 0 & 5\end{array}]",
    r"\frac{a}{b}:2+3*4",
    r"\int x^{2} dx+\frac{d}{dx}x^{3}",
    r"-x^{-1}-y^{\frac{1}{2}}",
    r"2\frac{1}{3}",
    r"\sqrt{x^{2}+1}/(2x)",
)


class _Slow(BaseException):
    """The comparison took more than its share; no `except Exception` of a library catches this."""


def compare_together(argument: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Make comparisons one after the other.

    Args:
        argument: for each, the argument of `compare`.

    Returns:
        The result of each from the first on, then None for one that was slow or took too much memory, and nothing for
        those after it, which were not begun: what is interrupted may leave sympy's caches half filled.
    """
    results: list[dict[str, Any] | None] = []
    signal.signal(signal.SIGPROF, _interrupt)
    for pair in argument:
        if time.process_time() > _ALL_TOGETHER_SECONDS and results:
            break
        try:
            signal.setitimer(signal.ITIMER_PROF, TOGETHER_SECONDS, TOGETHER_SECONDS / 2)
            results.append(compare(pair))
        except (_Slow, MemoryError):
            results.append(None)
            break
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return results


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise _Slow


def compare(argument: dict[str, Any]) -> dict[str, Any]:
    """Compare an answer with references, any of which is right.

    Args:
        argument: `references` (list of normalised texts), `unmatched` (further ones, that are only read), `answer`
            (normalised text, or None to only read the references), `relative_tolerance` and `absolute_tolerance`
            (numbers or None), `form` (`value` or `any`).

    Returns:
        `reference`: position, in both lists together, of one that cannot be read, with `problem`; or `equal` (bool),
        with `unevaluated` where only its form is wrong; or `answer`: `unreadable`, with `problem`; or `read`: True when
        there was no answer.
    """
    references: list[Node] = []
    for position, text in enumerate([*argument["references"], *argument["unmatched"]]):
        try:
            references.append(_read_once(text))
        except (Unreadable, RecursionError) as failure:
            return {"reference": position, "problem": str(failure)[:200]}
    if argument["answer"] is None:
        return {"read": True}
    if argument["answer"] in argument["references"]:  # where a value is asked for too, since the reference is one
        return {"equal": True}
    try:
        answer = _read_once(argument["answer"])
    except (Unreadable, RecursionError) as failure:
        return {"answer": "unreadable", "problem": str(failure)[:200]}
    comparison = Comparison(*(_exact(argument.get(f"{kind}_tolerance")) for kind in ("relative", "absolute")))
    decision = _decide(comparison, references[: len(argument["references"])], answer)
    if decision["equal"] and argument.get("form") == "value" and not is_worked_out(answer):
        return {"equal": False, "unevaluated": True}
    return decision


def _exact(tolerance: float | None) -> Fraction | None:
    return Fraction(repr(tolerance)) if tolerance is not None else None


@lru_cache(maxsize=64)
def _read_once(text: str) -> Node:
    """Read a text once for all comparisons in this child."""
    return read(text)


def _decide(comparison: Comparison, references: list[Node], answer: Node) -> dict[str, Any]:
    """Return whether any reference is equal; one that cannot be compared is not."""
    problem = None
    for reference in references:
        try:
            if comparison.equal(reference, answer):
                return {"equal": True}
        except MemoryError:
            raise
        except Exception as failure:  # sympy fails in many ways on what nobody would write; none proves equality
            problem = type(failure).__name__
    return {"equal": False} if problem is None else {"equal": False, "problem": problem}


def _warm_up() -> None:
    """Fill the parser's tables and sympy's caches, which every forked child then shares."""
    sys.set_int_max_str_digits(0)  # the length of a text bounds its numbers, the child's CPU time all others
    sys.setrecursionlimit(3000)  # the parser takes some thirty frames for a pair of brackets
    for text in _WARM_UP:
        node = read(text)
        Comparison().equal(node, read("1+" + text if text[0] in "0123456789f(" else text))


_warm_up()
