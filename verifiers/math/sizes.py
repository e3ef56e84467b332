"""Bounds how large a number an expression can become before anything evaluates it. Runs inside sandboxes only."""

import math
from typing import Any

import sympy

MAX_BITS = 200_000.0
"""Larger numbers are not evaluated."""

_SYMBOL_BITS = 16.0


def bits(expression: Any) -> float:
    """Return an upper bound of log2 of any number met while evaluating; infinity when it is beyond MAX_BITS."""
    if isinstance(expression, sympy.Rational):
        return float(max(abs(int(expression.p)), int(expression.q)).bit_length())
    if not getattr(expression, "args", ()):
        return _SYMBOL_BITS
    inner = [bits(argument) for argument in expression.args]
    if max(inner) > MAX_BITS:
        return math.inf
    return _bounded(_own_bits(expression, inner))


def _own_bits(expression: Any, inner: list[float]) -> float:
    if isinstance(expression, sympy.Pow):
        return max(inner[0], 1.0) * _magnitude(inner[1]) + inner[1]
    if isinstance(expression, sympy.exp | sympy.sinh | sympy.cosh | sympy.tanh):
        return 1.5 * _magnitude(inner[0])
    if isinstance(expression, sympy.factorial | sympy.gamma | sympy.binomial):
        return _magnitude(inner[0]) * max(inner[0], 1.0)
    if isinstance(expression, sympy.Add | sympy.Mul):
        return sum(inner) + len(inner)
    return max(inner) + 1


def _magnitude(bit_count: float) -> float:
    return 2.0**bit_count if bit_count < 64 else math.inf


def _bounded(bit_count: float) -> float:
    return bit_count if bit_count <= MAX_BITS else math.inf
