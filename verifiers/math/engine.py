"""Compares one answer with its references. Runs inside sandboxes only, one forked child a comparison.

No timeout of its own: the child's CPU and memory bounds end it, and the verifier then asks for the reference alone to
learn whose fault it was.
"""

import sys
from fractions import Fraction
from typing import Any

from verifiers.math.comparing import Comparison
from verifiers.math.leaves import Unreadable
from verifiers.math.reading import Node, read

_WARM_UP = (
    r"\frac{1}{2}+2x^{2}-\sqrt{3}y_{1}\cdot 4",
    r"\sin^{2}(x)\cos 2x+\ln|x|-e^{-x/5}",
    r"(x+2)(x-1)/3",
    r"f(x)+a_1!+\binom{n}{k}",
    r"2\pi r-5\log_{2}(8)",
    r"x^{2/3}\sqrt[3]{5ab}",
    "(((1)))",
    r"\begin{pmatrix}1 & 2 \\ 3 & 4\end{pmatrix}",
    r"\sum_{n=0}^{\infty}\frac{1}{n^2}",
)


def compare(argument: dict[str, Any]) -> dict[str, Any]:
    """Compare an answer with references, any of which is right.

    Args:
        argument: `references` (list of normalised texts), `unmatched` (further ones, that are only read), `answer`
            (normalised text, or None to only read the references), `relative_tolerance` (number or None).

    Returns:
        `reference`: position, in both lists together, of one that cannot be read, with `problem`; or `equal` (bool);
        or `answer`: `unreadable`, with `problem`; or `read`: True when there was no answer.
    """
    sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(3000)
    references: list[Node] = []
    for position, text in enumerate([*argument["references"], *argument["unmatched"]]):
        try:
            references.append(read(text))
        except (Unreadable, RecursionError) as failure:
            return {"reference": position, "problem": str(failure)[:200]}
    if argument["answer"] is None:
        return {"read": True}
    if argument["answer"] in argument["references"]:
        return {"equal": True}
    try:
        answer = read(argument["answer"])
    except (Unreadable, RecursionError) as failure:
        return {"answer": "unreadable", "problem": str(failure)[:200]}
    tolerance = argument.get("relative_tolerance")
    comparison = Comparison(Fraction(repr(tolerance)) if tolerance is not None else None)
    return _decide(comparison, references[: len(argument["references"])], answer)


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
    for text in _WARM_UP:
        node = read(text)
        Comparison().equal(node, read(text.replace("2", "5")))


_warm_up()
