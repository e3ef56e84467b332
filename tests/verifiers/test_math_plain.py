"""The fast path never contradicts the symbolic comparison, and reads no more than it understands."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers.math.engine import compare
from verifiers.math.plain import MAX_DIGITS, Tolerance, decide, read_number, write


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """A number, written in one of many ways."""
    sign = draw(st.sampled_from(["", "-", "+", "−"]))
    whole = draw(st.integers(0, 99_999))
    top, bottom = draw(st.integers(0, 30)), draw(st.integers(1, 12))
    digits = draw(st.text("0123456789", min_size=1, max_size=4))
    written = draw(
        st.sampled_from(
            [
                f"{whole}",
                f"{whole:,}",
                f"0{whole}",
                f"{whole}.{digits}",
                f".{digits}",
                f"{whole}.",
                f"{top}/{bottom}",
                f"\\frac{{{top}}}{{{bottom}}}",
                f"\\dfrac{{{top}}}{{-{bottom}}}",
                f"{top}\\frac{{{top % bottom}}}{{{bottom}}}",
                f"{top} {top % bottom}/{bottom}",
                f"{whole} \\times 10^{{-{bottom}}}",
                f"{whole} \\cdot 10^{top % 7}",
                f"{whole}e{top % 7}",
                f"{whole}.{digits}e-{bottom}",
                f"{whole}E{top % 7}",
                f"${whole}$",
                f"\\text{{{whole}}}",
            ]
        )
    )
    return sign + written


@settings(deadline=None, max_examples=300)
@given(numbers(), numbers(), st.sampled_from([None, 0.01]))
def test_agrees_with_the_symbolic_comparison(reference: str, answer: str, tolerance: float | None) -> None:
    one, other = (write(text, ignore_units=True) for text in (reference, answer))
    verdict = decide(one, other, Tolerance(tolerance))
    result = compare(
        {
            "references": [one.symbolic],
            "unmatched": [],
            "answer": other.symbolic,
            "relative_tolerance": tolerance,
        }
    )
    if verdict is not None:
        assert result == {"equal": verdict}, (one, other)


FORMS = ("{0.numerator}/{0.denominator}", r"\frac{{{0.numerator}}}{{{0.denominator}}}")


@given(st.fractions(max_denominator=50), st.sampled_from(FORMS))
def test_reads_what_was_written(value: Fraction, form: str) -> None:
    assert read_number(form.format(value)) == (value, None)


@given(st.text(max_size=40))
def test_any_text_is_read_or_left(text: str) -> None:
    written = write(text, ignore_units=True)
    decide(written, written)
    assert written.number is None or decide(written, written) is True


NO_PLAIN_NUMBERS = (
    "", "+", ".", "1.2.3", "1,23", "0,123", "1/0", "1/2/3", "5 9/4", "2 3", "1e", "2e-3", "1e5x",
    "٣", "²", "1_000", "0x10", "1 /",
    "--3", "1 0/3", "0 1/2", r"\frac{1}{0}", "10^5", "inf", "nan", "1" * (MAX_DIGITS + 1),
)  # fmt: skip


@pytest.mark.parametrize("text", NO_PLAIN_NUMBERS)
def test_leaves_what_is_no_plain_number(text: str) -> None:
    assert read_number(text) is None
