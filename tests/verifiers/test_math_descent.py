"""The quick reading of expressions has the value that the full parser gives, wherever it reads at all."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import sympy

from verifiers.math import leaves
from verifiers.math.descent import read_quickly
from verifiers.math.engine import compare
from verifiers.math.expressions import equal_expressions
from verifiers.math.leaves import Unreadable, read_fully, to_latex, with_constants
from verifiers.math.plain import write
from verifiers.math.reading import read


def expressions_of(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the quick reading is asked to read of these answers, as it is given it."""
    asked: set[str] = set()

    def note(latex: str) -> None:
        asked.add(latex)

    monkeypatch.setattr(leaves, "read_quickly", note)
    monkeypatch.setattr(leaves, "read_fully", lambda _: sympy.Integer(1))
    for text in texts:
        try:
            read(write(text, ignore_units=True).symbolic)
        except Unreadable:
            continue
    monkeypatch.undo()
    return sorted(asked)


def same(one: Any, other: Any) -> bool:
    one, other = with_constants(one), with_constants(other)
    if isinstance(one, sympy.MatrixBase):
        left, right = sympy.Matrix(one), sympy.Matrix(other)
        return left.shape == right.shape and all(map(equal_expressions, left, right))
    return equal_expressions(one, other)


def test_agrees_with_the_full_parser_on_real_answers(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (shared_data / "math" / "reference_answers.jsonl").read_text(encoding="utf-8").splitlines()
    latex = expressions_of([json.loads(row)["answer"] for row in rows], monkeypatch)
    quick = [text for text in latex if read_quickly(text) is not None]
    assert len(quick) > 0.75 * len(latex)
    for text in random.Random(5).sample(quick, 250):
        assert same(read_quickly(text), read_fully(text)), text


READ = (
    "x", "2x", "-x^2", "x(x-3)", r"\frac{n(n-1)}{2}", r"2\pi r", r"\sqrt{3}/2", r"\sin 2x\cos 3x",
    r"\sin^{2} x", r"\cos(x+1)", "f(x)", "c_{1}+a_n", r"\theta^2", r"\sqrt[3]{5}", "e^{2x}(x+1)", r"x^{\frac{1}{2}}",
    r"\begin{pmatrix}1 & -x \\ \frac{1}{2} & 4\end{pmatrix}", r"[\begin{array}{rr}1 & 2\end{array}]", "1.50", r"\ln 2",
)  # fmt: skip
LEFT = (
    "", "x^10", "2 3", r"2\frac{1}{2}", "1/2x", "x!", "dx", r"\sin^{-1} x", "x^2^3", r"\sqrt[3]{x}", "(x", "x)", "x+",
    r"\frac{1}{0}", "f(2)", "x2", r"\foo", "X^T", r"X^{T}", "|x|", r"\sin(x)^2", "x^", "x_", "()", "((((" * 20 + "x",
    r"\begin{pmatrix}1 & 2 \\ 3\end{pmatrix}", "[1", r"\begin{array}{r}1\end{array}", "x[1]", "é",
)  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_reads_what_has_one_reading(text: str) -> None:
    quick = read_quickly(to_latex(text))
    assert quick is not None
    assert same(quick, read_fully(to_latex(text)))


@pytest.mark.parametrize("text", LEFT)
def test_leaves_the_rest_to_the_full_parser(text: str) -> None:
    assert read_quickly(text) is None


def test_a_pole_at_a_compared_point_hides_no_equality() -> None:
    """At -4 and 3 the divisors are nought, and what evalf gives there is noise."""
    for one, other in (
        (r"x^2-4x-10-\frac{1}{x+4}", r"x^2-10-4x-(x+4)^{-1}"),
        (r"\frac{(1-3x)^2}{x^2(x+3)(x-3)}", r"\frac{(3x-1)(3x-1)}{x^2(x^2-9)}"),
    ):
        argument = {"references": [one], "unmatched": [], "answer": other, "relative_tolerance": None}
        assert compare(argument) == {"equal": True}
        assert compare(argument | {"answer": other + "+0.001"}) == {"equal": False}
