"""Whether an answer is worked out: a value, and no calculation that results in it. Runs inside sandboxes only."""

from typing import Any

import sympy

from verifiers.math.expressions import as_rational
from verifiers.math.reading import Constant, Group, Node, Relation, Union, Value

_LONG_VALUE = 10**15
"""A power above this is the usual way to write its value."""

_CALCULATIONS = (sympy.Sum, sympy.Product, sympy.Integral, sympy.Derivative, sympy.Limit)


def is_worked_out(node: Node) -> bool:
    """Whether nothing is left to calculate: numbers, surds in roots, multiples of constants, polynomials are values."""
    if isinstance(node, Value):
        entries = node.expression if isinstance(node.expression, sympy.MatrixBase) else [node.expression]
        return all(map(_is_value, entries))
    if isinstance(node, Constant):
        return True
    if isinstance(node, Relation):
        # `x = 36`, and of a chain `12·3 = 36` the end.
        return is_worked_out(node.sides[-1]) if set(node.operators) == {"="} else all(map(is_worked_out, node.sides))
    assert isinstance(node, Group | Union)
    return all(map(is_worked_out, node.items if isinstance(node, Group) else node.parts))


def _is_value(expression: Any) -> bool:
    if expression.has(*_CALCULATIONS):
        return False
    if not expression.args or _is_scientific(expression) or _is_long_power(expression) or _is_reciprocal(expression):
        return True
    if _is_number(expression) and as_rational(expression) is not None:
        return False
    if isinstance(expression, sympy.Add | sympy.Mul) and not _is_collected(expression):
        return False
    return all(map(_is_value, expression.args))


def _is_collected(expression: Any) -> bool:
    """Whether at most one summand, or factor above and one below the bar, is a plain number."""
    kind = expression.func
    above = below = 0
    for part in _flat(expression, kind):
        if part == -1 and kind is sympy.Mul:
            continue
        is_below = kind is sympy.Mul and isinstance(part, sympy.Pow) and part.exp == -1
        number = part.base if is_below else part
        if number.is_Rational:
            above, below = above + (not is_below), below + is_below
    return above <= 1 and below <= 1


def _flat(expression: Any, kind: Any) -> list[Any]:
    """Return the parts of a sum of sums, or of a product of products."""
    parts = []
    for part in expression.args:
        parts += _flat(part, kind) if isinstance(part, kind) else [part]
    return parts


def _is_reciprocal(expression: Any) -> bool:
    """Whether it is what stands below a bar."""
    return isinstance(expression, sympy.Pow) and expression.exp == -1 and bool(expression.base.is_Integer)


def _is_number(expression: Any) -> bool:
    return not expression.free_symbols


def _is_scientific(expression: Any) -> bool:
    """Whether it is a decimal times a power of ten."""
    parts = expression.args if isinstance(expression, sympy.Mul) else (expression,)
    powers = [part for part in parts if isinstance(part, sympy.Pow) and part.base == 10 and part.exp.is_Integer]
    return len(powers) == 1 and all(part.is_Rational for part in parts if part not in powers) and len(parts) <= 2


def _is_long_power(expression: Any) -> bool:
    if not isinstance(expression, sympy.Pow) or not (expression.base.is_Integer and expression.exp.is_Integer):
        return False
    base, exponent = abs(int(expression.base)), abs(int(expression.exp))
    return base > 1 and exponent > 1 and exponent * (base.bit_length() - 1) >= _LONG_VALUE.bit_length()
