"""Bounds how large a number an expression can become before anything evaluates it. Runs inside sandboxes only."""

import math
from typing import Any, NamedTuple

import sympy

MAX_BITS = 200_000.0
"""Larger numbers are not evaluated."""

MAX_TERM_BITS = 14.0
"""Of the number of terms of a sum or a product."""

SYMBOL_BITS = 5.0
"""Of most points at which expressions are compared, which lie below 32."""


class _Size(NamedTuple):
    """Upper bounds of one node of an expression."""

    magnitude: float
    """Of log2 of its absolute value, not below 0."""
    bits: float
    """Of the digits of any number met while evaluating it, and of the absolute value of log2 of its value."""


def is_bounded(*expressions: Any, symbol_bits: float = SYMBOL_BITS) -> bool:
    """Whether evaluating the expressions, variables below 2^symbol_bits, meets no number of more than MAX_BITS bits."""
    return all(_size(expression, symbol_bits).bits <= MAX_BITS for expression in expressions)


def _size(expression: Any, symbol_bits: float) -> _Size:
    if isinstance(expression, sympy.Rational):
        top, bottom = abs(int(expression.p)), int(expression.q)
        magnitude = math.log2(top) - math.log2(bottom) if top else 0.0
        return _Size(max(0.0, magnitude), float(max(top, bottom).bit_length()))
    if not getattr(expression, "args", ()):
        return _Size(symbol_bits, symbol_bits)
    inner = [_size(argument, symbol_bits) for argument in expression.args]
    widest = max(size.bits for size in inner)
    is_small = widest <= MAX_BITS and not _has_too_many_terms(expression, symbol_bits)
    magnitude, bits = _of_node(expression, inner, widest) if is_small else (math.inf, math.inf)
    return _Size(magnitude, max(bits, widest))


def _has_too_many_terms(expression: Any, symbol_bits: float) -> bool:
    """Whether a product, or a sum without a simple closed form, runs over more terms than are worth carrying out.

    An integral of an integral counts as one, unless it is of a polynomial: only a clock bounds how long it takes.
    """
    if isinstance(expression, sympy.Integral):
        is_nested = len(expression.limits) > 1 or expression.function.has(sympy.Integral)
        return is_nested and not _innermost(expression).is_polynomial()
    if not isinstance(expression, sympy.Sum | sympy.Product):
        return False
    if isinstance(expression, sympy.Sum) and expression.function.is_polynomial(*expression.variables):
        return False
    return (
        sum(max(_size(end, symbol_bits).magnitude for end in limit[1:]) for limit in expression.limits) > MAX_TERM_BITS
    )


def _innermost(expression: Any) -> Any:
    while isinstance(expression, sympy.Integral):
        expression = expression.function
    return expression


def _of_node(expression: Any, inner: list[_Size], widest: float) -> tuple[float, float]:  # noqa: PLR0911
    highest = max(size.magnitude for size in inner)
    if isinstance(expression, sympy.Pow):
        grown = max(inner[0].bits, 1.0) * _value(inner[1])
        if not expression.base.is_Integer:
            return grown, grown
        exact = inner[0].magnitude * _value(inner[1])
        return (0.0 if expression.exp.is_negative else exact), exact + 1
    if isinstance(expression, sympy.exp | sympy.sinh | sympy.cosh | sympy.tanh):
        return 1.5 * _value(inner[0]), 1.5 * _value(inner[0])
    if isinstance(expression, sympy.factorial | sympy.gamma | sympy.binomial):
        grown = _value(inner[0]) * max(inner[0].magnitude, 1.0)
        return grown, grown
    if isinstance(expression, sympy.Mul):
        return sum(size.magnitude for size in inner), sum(size.bits for size in inner)
    if isinstance(expression, sympy.Add):
        return highest + len(inner), sum(size.bits for size in inner)
    return highest + 1, widest + 1


def _value(size: _Size) -> float:
    return 2.0**size.magnitude if size.magnitude < 64 else math.inf
