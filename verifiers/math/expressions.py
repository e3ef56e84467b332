"""Whether two expressions are equal. Runs inside sandboxes only.

Numbers are compared exactly when they are rational, else to many digits with sympy's own error bounds. Expressions with
variables are compared at fixed points, since a difference at one point disproves what no simplification can, and
agreement at all of them is what a proof would give; simplification only settles what the points leave open.
"""

from typing import Any

import sympy

from verifiers.math.sizes import is_bounded

_DIGITS = 30
_AGREEMENT = sympy.Float("1e-20", 30)
_CANCELLED_DIGITS = 4000
_CANCELLED_DIGITS_AT_POINTS = 300
_NOTHING = sympy.Float("1e-30", 30)
"""What is left of a difference of which no digit is sure must be smaller than this part of the compared values."""
_ENOUGH_POINTS = 3
_PLENTY_OF_POINTS = 18  # more than there are special points
_DEEP_POINTS = 1

# Small and large, of both signs, hardly special: no simple fractions. Here and there one that is no fraction at all,
# since what has a period or steps shows nothing at numbers that are multiples of one fraction.
_POINTS: tuple[Any, ...] = tuple(
    sympy.Rational(top, 1009)
    for top in (373, 1931, -719, 3251, 97, -2593, 811, 12653, 557, -163, 2027, 7451, 3041, 89, -5417, 641, 31337, 1217)
)
_IRRATIONAL = (sympy.sqrt(11), -sympy.pi * sympy.Rational(7, 5), sympy.E / 7)
_WHOLE = (3, 7, -4)
# Where a threshold that the small points lie below has been passed; only for what stays small there.
_FAR = (
    (7.0, (sympy.Rational(-61 * 97, 89), sympy.Rational(101 * 97, 89), -97, 67)),
    (11.0, (sympy.Rational(-1009 * 167, 163), sympy.Rational(1013 * 163, 167))),
    (21.0, (sympy.Rational(-1_000_003 * 11, 13), sympy.Rational(1_000_033 * 13, 11))),
)
_STRIDES = (1, 5, 7, 11, 13, 17)


def equal_expressions(one: Any, other: Any) -> bool:
    """Whether two expressions have the same value wherever both have a real one."""
    if one == other:
        return not one.has(sympy.nan, sympy.zoo)
    if not is_bounded(one, other):
        return False
    one, other = prepare(one), prepare(other)
    if not one.free_symbols and not other.free_symbols:
        return equal_numbers(one, other)
    verdict = _compare_at_points(one, other)
    return _simplifies_to_zero(one - other) if verdict is None else verdict


def equal_numbers(one: Any, other: Any) -> bool:
    """Whether two numbers, without variables, are equal."""
    one, other = _evaluated(one), _evaluated(other)
    if one.has(sympy.nan, sympy.zoo) or other.has(sympy.nan, sympy.zoo):
        return False
    if one.is_Rational and other.is_Rational:
        return bool(one == other)
    if one.is_infinite or other.is_infinite:
        return bool(one == other)
    if _far_apart(one, other):
        return False
    return _cancel(one, other, None, _CANCELLED_DIGITS)


def proportional(one: Any, other: Any) -> int:
    """Return the sign of the constant c with one = c·other, as for two forms of one equation; 0 when there is none."""
    if not is_bounded(one, other):
        return 0
    one, other = prepare(one), prepare(other)
    if one.free_symbols != other.free_symbols:
        return 0
    ratios = []
    for values in _points(one.free_symbols):
        left, right = _at(one, values), _at(other, values)
        if left is None or right is None:
            continue
        if (left == 0) != (right == 0):
            return 0
        if right != 0:
            ratios.append((left / right).evalf(_DIGITS))
        if len(ratios) > _PLENTY_OF_POINTS:
            break
        if len(ratios) > 1 and not _agree(ratios[0], ratios[-1]):
            return 0
    if len(ratios) < _ENOUGH_POINTS or not _is_real(ratios[0]):
        return 0
    return 1 if sympy.re(ratios[0]) > 0 else -1


def as_rational(expression: Any) -> Any | None:
    """Return the rational number that an expression is, or None."""
    if expression.free_symbols or not is_bounded(expression):
        return None
    value = _evaluated(prepare(expression))
    return value if value.is_Rational else None


def approximate(expression: Any, digits: int) -> Any | None:
    """Return a real number's decimal value, or None when the expression is none."""
    if expression.free_symbols or not is_bounded(expression):
        return None
    value = prepare(expression).evalf(digits, maxn=_CANCELLED_DIGITS)
    if _lost_all_digits(value):
        return sympy.Integer(0) if _is_below(value, _NOTHING) else None
    return value if (value.is_Float and value.is_finite) or value.is_Rational else None


def prepare(expression: Any) -> Any:
    """Carry out sums, integrals, derivatives and limits, and take applied unknown functions for variables."""
    if expression.has(sympy.Sum, sympy.Product, sympy.Integral, sympy.Derivative, sympy.Limit):
        expression = expression.doit()
    applied = expression.atoms(sympy.core.function.AppliedUndef)
    if applied:
        names = {call: sympy.Symbol(f"call {sympy.srepr(call)}", real=True) for call in applied}
        expression = expression.xreplace(names)
    return expression


def _evaluated(number: Any) -> Any:
    """Evaluate a number that is known to stay small."""
    return number.doit() if not isinstance(number, sympy.Number) else number


def _far_apart(one: Any, other: Any) -> bool:
    """Whether the leading digits already differ."""
    left, right = one.evalf(_DIGITS), other.evalf(_DIGITS)
    if not (left.is_number and right.is_number) or left.has(sympy.nan) or right.has(sympy.nan):
        return True
    return not _agree(left, right) and not _lost_all_digits(left) and not _lost_all_digits(right)


def _cancel(one: Any, other: Any, values: dict[Any, Any] | None, digits: int) -> bool:
    """Whether nothing is left of the difference after so many digits have cancelled; sympy is as exact as it takes."""
    difference = sympy.Add(one, sympy.Mul(-1, other)).evalf(3, subs=values, maxn=digits)
    if not difference.is_number:
        return False
    size = abs(one.evalf(_DIGITS, subs=values))
    scale = size if size.is_Float and size._prec > 1 and size < 1 else sympy.Integer(1)
    return difference == 0 or (_lost_all_digits(difference) and _is_below(difference, _NOTHING * scale))


def _is_below(value: Any, bound: Any) -> bool:
    """Whether a number of which no digit is sure lies, error included, within a bound; evalf shows its error as it."""
    return all(bool(abs(part) < bound) for part in value.as_real_imag())


def _lost_all_digits(value: Any) -> bool:
    """Whether evalf could not find one sure digit, which it shows by a precision of one bit."""
    return any(part._prec == 1 for part in value.atoms(sympy.Float))


def _compare_at_points(one: Any, other: Any) -> bool | None:
    """Compare two expressions at fixed points; None when too few of them say anything."""
    symbols = one.free_symbols | other.free_symbols
    is_complex = one.has(sympy.I) or other.has(sympy.I)
    agreed = 0
    for values in [*_special_points(symbols, one, other), *_points(symbols)]:
        left, right = _at(one, values), _at(other, values)
        if left is None or right is None:
            continue
        comparable = is_complex or (_is_real(left) and _is_real(right))
        if _agree(left, right):
            agreed += 1
            if agreed > _PLENTY_OF_POINTS:
                return True
            if agreed <= _DEEP_POINTS and not _cancel(one, other, values, _CANCELLED_DIGITS_AT_POINTS):
                return False
        elif (
            comparable
            and not _cancel(one, other, values, _CANCELLED_DIGITS_AT_POINTS)
            and not any(_has_pole(side, values) for side in (one, other))
        ):
            return False
    return True if agreed >= _ENOUGH_POINTS else None


def _points(symbols: Any) -> list[dict[Any, Any]]:
    """Return assignments of the points to the symbols, the same for the same names: mixed, small, and all positive."""
    ordered = sorted(symbols, key=lambda symbol: str(symbol.name))
    count = len(_POINTS)
    mixed = [
        {
            symbol: _POINTS[(round_ + place * _STRIDES[place % len(_STRIDES)]) % count]
            for place, symbol in enumerate(ordered)
        }
        for round_ in range(count)
    ]
    positive = [
        {symbol: abs(_POINTS[(3 * round_ + place) % count]) for place, symbol in enumerate(ordered)}
        for round_ in range(4)
    ]
    small = [
        {symbol: sympy.Rational(41 + 17 * place + 29 * round_, 1009) for place, symbol in enumerate(ordered)}
        for round_ in range(4)
    ]
    return mixed + positive + small


def _special_points(symbols: Any, *expressions: Any) -> list[dict[Any, Any]]:
    """Return points whose kind may matter: irrational, whole, and far out where the values stay small enough."""
    ordered = sorted(symbols, key=lambda symbol: str(symbol.name))
    far: list[tuple[Any, ...]] = [points for bits, points in _FAR if is_bounded(*expressions, symbol_bits=bits)]
    chosen = [
        {symbol: sympy.sympify(points[(round_ + place) % len(points)]) for place, symbol in enumerate(ordered)}
        for points in [_IRRATIONAL, _WHOLE, *far]
        for round_ in range(len(points))
    ]
    # All variables on the same side of what they are compared with.
    for points in far:
        chosen += [{symbol: points[0] - 2 * place for place, symbol in enumerate(ordered)}] * (len(ordered) > 1)
    return chosen


def _at(expression: Any, values: dict[Any, Any]) -> Any | None:
    """Return the value at a point, or None where there is no finite one or no sure digit of it."""
    try:
        value = expression.evalf(_DIGITS, subs=values if expression.free_symbols else None)
    except (ValueError, ArithmeticError, TypeError):  # a series that diverges there, or a pole
        return None
    if value.free_symbols or not value.is_number or value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        return None
    if value.has(sympy.core.function.AppliedUndef):
        return None
    if _lost_all_digits(value):
        return sympy.Integer(0) if _is_below(value, _NOTHING) else None
    return value


def _has_pole(expression: Any, values: dict[Any, Any]) -> bool:
    """Whether a divisor is nought at a point, which evalf's rounding may hide."""
    return any(
        power.exp.is_negative and power.base.free_symbols and power.base.subs(values).evalf(_DIGITS) == 0
        for power in expression.atoms(sympy.Pow)
    )


def _is_real(value: Any) -> bool:
    imaginary = sympy.im(value)
    return bool(abs(imaginary) <= _AGREEMENT * abs(value))


def _agree(left: Any, right: Any) -> bool:
    return bool(abs(left - right) <= _AGREEMENT * max(abs(left), abs(right)))


def _simplifies_to_zero(difference: Any) -> bool:
    return bool(sympy.simplify(difference) == 0)
