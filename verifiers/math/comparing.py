"""Whether an answer equals the reference, both read. Runs inside sandboxes only.

The reference says what kind of thing is asked for: an ordered tuple, a set or list, an interval, an equation, a value.
An answer of another kind is different, except where the two are two ways to write one thing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy

from verifiers.math.expressions import approximate, as_rational, equal_expressions, proportional
from verifiers.math.reading import ELLIPSIS, Constant, Group, Node, Relation, Union, Value

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_COMPLEX_SETS = {"R": (-sympy.oo, sympy.oo)}


@dataclass(frozen=True)
class Comparison:
    """How the values of a task are compared."""

    relative_tolerance: Fraction | None = None
    absolute_tolerance: Fraction | None = None

    def equal(self, reference: Node, answer: Node) -> bool:  # noqa: PLR0911 - one way for each kind
        """Whether the answer is the reference, written the same or another way."""
        reference, answer = _result(_single(reference), answer), _single(answer)
        if isinstance(reference, Relation) or isinstance(answer, Relation):
            return self._relations(reference, answer)
        if isinstance(reference, Group) and _lists_relations(reference):
            return self._lists(reference, answer)
        if isinstance(reference, Union) and isinstance(answer, Group) and _lists_relations(answer):
            return self._as_union(answer, reference)
        if isinstance(reference, Value) and isinstance(answer, Value):
            return self._values(reference, answer)
        if isinstance(reference, Constant) or isinstance(answer, Constant):
            return self._constants(reference, answer)
        if isinstance(reference, Union) or isinstance(answer, Union):
            return self._unions(reference, answer)
        if isinstance(reference, Group) and isinstance(answer, Group):
            return self._groups(reference, answer)
        return self._column(reference, answer)

    def _values(self, reference: Value, answer: Value) -> bool:
        left, right = reference.expression, answer.expression
        matrices = [isinstance(side, sympy.MatrixBase | sympy.MatrixExpr) for side in (left, right)]
        if any(matrices):
            return all(matrices) and self._matrices(left, right)
        if equal_expressions(left, right):
            return True
        return self._rounded(reference, answer) or self._within_tolerance(left, right)

    def _rounded(self, reference: Value, answer: Value) -> bool:
        """Whether one side is a long decimal, and the other the exact number that it is a rounded value of."""
        places, other_places = reference.decimal_places, answer.decimal_places
        if (places is None) == (other_places is None):
            return False
        unit = Fraction(1, 10 ** (places if places is not None else other_places or 0))
        return _difference_below(reference.expression, answer.expression, unit)

    def _within_tolerance(self, reference: Any, answer: Any) -> bool:
        if self.absolute_tolerance is not None and _difference_below(
            reference, answer, self.absolute_tolerance, inclusive=True
        ):
            return True
        if self.relative_tolerance is None:
            return False
        size = approximate(reference, 30)
        return size is not None and _difference_below(
            reference, answer, self.relative_tolerance * abs(_fraction(size)), inclusive=True
        )

    def _matrices(self, reference: Any, answer: Any) -> bool:
        left, right = (sympy.Matrix(side.doit()) for side in (reference, answer))
        return bool(left.shape == right.shape) and all(
            self._values(Value(one), Value(other)) for one, other in zip(left, right, strict=True)
        )

    def _constants(self, reference: Node, answer: Node) -> bool:
        if isinstance(reference, Constant) and isinstance(answer, Constant):
            return reference.name == answer.name
        constant, other = (reference, answer) if isinstance(reference, Constant) else (answer, reference)
        assert isinstance(constant, Constant)
        ends = _COMPLEX_SETS.get(constant.name)
        return (
            ends is not None
            and isinstance(other, Group)
            and (other.opening, other.closing) == ("(", "(")
            and self._ordered([Value(end) for end in ends], other.items)
        )

    def _unions(self, reference: Node, answer: Node) -> bool:
        return (
            isinstance(reference, Union)
            and isinstance(answer, Union)
            and self._unordered(reference.parts, answer.parts)
        )

    def _groups(self, reference: Group, answer: Group) -> bool:
        brackets = (reference.opening, reference.closing), (answer.opening, answer.closing)
        if all(pair in {("", ""), ("{", "{")} for pair in brackets):
            if ELLIPSIS in (*reference.items, *answer.items):
                return self._ordered(reference.items, answer.items)
            return self._unordered(reference.items, answer.items)
        if brackets[0] == brackets[1]:
            return self._ordered(reference.items, answer.items)
        if ("", "") in brackets and ("{", "{") not in brackets:
            # The brackets of a tuple were left out, or a list was put in brackets: its order is as written.
            return self._ordered(reference.items, answer.items)
        tuples = all(pair in {("(", "("), ("[", "[")} for pair in brackets)
        return tuples and len(reference.items) > 2 and self._ordered(reference.items, answer.items)

    def _column(self, reference: Node, answer: Node) -> bool:
        """Whether a column vector and a tuple have the same entries."""
        vector, group = (reference, answer) if isinstance(reference, Value) else (answer, reference)
        if not isinstance(vector, Value) or not isinstance(group, Group) or group.opening != "(":
            return False
        if not isinstance(vector.expression, sympy.MatrixBase) or vector.expression.shape[1] != 1:
            return False
        return self._ordered([Value(entry) for entry in vector.expression], group.items)

    def _ordered(self, reference: Sequence[Node], answer: Sequence[Node]) -> bool:
        return len(reference) == len(answer) and all(
            self.equal(one, other) for one, other in zip(reference, answer, strict=True)
        )

    def _unordered(self, reference: Sequence[Node], answer: Sequence[Node]) -> bool:
        """Whether the items can be paired off; items written twice count once on either side."""
        wanted, left = self._distinct(reference), self._distinct(answer)
        if len(wanted) != len(left):
            return False
        for item in wanted:
            match = next((position for position, other in enumerate(left) if self.equal(item, other)), None)
            if match is None:
                return False
            left.pop(match)
        return True

    def _distinct(self, items: Sequence[Node]) -> list[Node]:
        distinct: list[Node] = []
        exact = Comparison()
        for item in items:
            if not any(exact.equal(known, item) for known in distinct):
                distinct.append(item)
        return distinct

    def _lists(self, reference: Group, answer: Node) -> bool:
        """Compare a list of relations, such as `x=2, x=3` or `x=1, y=2`, with one, or with its bare values."""
        if not isinstance(answer, Group):
            return self._as_union(reference, answer)
        if _lists_relations(answer):
            if reference.opening not in {"", answer.opening} and answer.opening:
                return False
            return self._unordered(_spread(reference.items), _spread(answer.items)) or self._as_union(reference, answer)
        names = {name for item in reference.items if (name := _assigned_name(item)) is not None}
        values = [_assigned_value(item) for item in _spread(reference.items)]
        if any(value is None for value in values):
            return False
        bare = [value for value in values if value is not None]
        # One name's values form a set; several names' values belong to the names in the order they are given.
        return self._unordered(bare, answer.items) if len(names) == 1 else self._ordered(bare, answer.items)

    def _as_union(self, reference: Group, answer: Node) -> bool:
        """Compare `x<1 or x>2` with a union of intervals."""
        parts = [_interval(item) for item in reference.items if isinstance(item, Relation)]
        if not isinstance(answer, Union) or len(parts) != len(reference.items) or None in parts:
            return False
        return self._unordered([part for part in parts if part is not None], answer.parts)

    def _relations(self, reference: Node, answer: Node) -> bool:  # noqa: PLR0911 - one way for each pair of kinds
        name, value = _assignment(reference)
        answer_name, answer_value = _assignment(answer)
        if value is not None and answer_value is not None:
            if name == answer_name and self.equal(value, answer_value):
                return True
            return not _is_closed(value) and self._equations(reference, answer)
        if value is not None:
            if isinstance(answer, Relation):
                return (not _is_closed(value) and self._equations(reference, answer)) or self._inequalities(
                    value, answer
                )
            return self.equal(value, answer)
        if answer_value is not None:
            if isinstance(reference, Relation):
                return self._equations(reference, answer) or self._inequalities(reference, answer_value)
            return self._equations(reference, answer) or self.equal(reference, answer_value)
        return self._equations(reference, answer) or self._inequalities(reference, answer)

    def _equations(self, reference: Node, answer: Node) -> bool:
        """Whether two equations of two sides are one times a constant; or a chain ends in the value asked for."""
        if isinstance(answer, Relation) and set(answer.operators) == {"="} and not isinstance(reference, Relation):
            return all(self.equal(reference, side) for side in answer.sides)
        if self._same_sides(reference, answer):
            return True
        left, right = _two_sides(reference), _two_sides(answer)
        if left is None or right is None or left[1] != right[1] or left[1] not in {"=", "!="}:
            return False
        return proportional(left[0], right[0]) != 0

    def _same_sides(self, reference: Node, answer: Node) -> bool:
        """Whether two statements about numbers, such as `cos(0)=1`, are the same side by side."""
        return (
            isinstance(reference, Relation)
            and isinstance(answer, Relation)
            and reference.operators == answer.operators
            and self._ordered(reference.sides, answer.sides)
        )

    def _inequalities(self, reference: Node, answer: Node) -> bool:
        interval, other = _interval(reference), _interval(answer)
        if interval is not None and isinstance(answer, Relation) and other is None:
            return False  # what was asked for is solved; the problem restated is no solution
        if interval is not None or other is not None:
            one = interval if isinstance(reference, Relation) else reference
            two = other if isinstance(answer, Relation) else answer
            if one is None or two is None or not _same_variable(reference, answer):
                return False
            return self._ordered_ends(one, two)
        left, right = _two_sides(reference), _two_sides(answer)
        if left is None or right is None or "=" in (left[1], right[1]):
            return False
        sign = proportional(left[0], right[0])
        return sign != 0 and (right[1] if sign > 0 else _FLIPPED.get(right[1])) == left[1]

    def _ordered_ends(self, reference: Node, answer: Node) -> bool:
        if isinstance(reference, Constant) or isinstance(answer, Constant):
            return self._constants(reference, answer)
        return (
            isinstance(reference, Group)
            and isinstance(answer, Group)
            and (reference.opening, reference.closing) == (answer.opening, answer.closing)
            and self._ordered(reference.items, answer.items)
        )


def _single(node: Node) -> Node:
    """Take a list or set of one for its item, and `x ∈ {…}` for a set of values."""
    while isinstance(node, Group) and len(node.items) == 1 and node.opening in {"", "{"}:
        node = node.items[0]
    return node


def _result(reference: Node, answer: Node) -> Node:
    """Take a calculation such as `log(100) = 2` for its result where only a value is answered."""
    if not isinstance(reference, Relation) or isinstance(answer, Relation) or set(reference.operators) != {"="}:
        return reference
    is_calculation = _name(reference.sides[0]) is None and all(map(_is_closed, reference.sides))
    return reference.sides[-1] if is_calculation else reference


def _lists_relations(group: Group) -> bool:
    return any(isinstance(item, Relation) for item in group.items)


def _spread(items: Sequence[Node]) -> list[Node]:
    """Give the values after `x=2, 3` the name of the one before."""
    spread: list[Node] = []
    for item in items:
        previous = spread[-1] if spread else None
        if isinstance(item, Value) and isinstance(previous, Relation) and _assignment(previous)[1] is not None:
            item = Relation((previous.sides[0], item), ("=",))  # noqa: PLW2901 - the item as it is meant
        spread.append(item)
    return spread


def _assignment(node: Node) -> tuple[str | None, Node | None]:
    """Return name and value of `x = 5`, `f(x) = …`, `x = a = b` or `x ∈ S`; None where it is no such relation."""
    if not isinstance(node, Relation) or not set(node.operators) <= {"=", "in"}:
        return None, None
    if len(node.sides) == 2 and node.operators == ("=",) and _symbols(node.sides[1]) and _is_closed(node.sides[0]):
        node = Relation(node.sides[::-1], node.operators)  # 5 = x
    name = _name(node.sides[0])
    value = node.sides[-1]
    if name is None or (isinstance(value, Value) and value.expression.free_symbols & _symbols(node.sides[0])):
        return None, None
    return name, value


def _assigned_name(node: Node) -> str | None:
    return _assignment(node)[0]


def _assigned_value(node: Node) -> Node | None:
    return _assignment(node)[1]


def _name(node: Node) -> str | None:
    """Return the name that a side is: a variable, an applied function, or a tuple of them."""
    if isinstance(node, Group):
        names = [_name(item) for item in node.items]
        return None if None in names else f"({','.join(str(name) for name in names)})"
    if not isinstance(node, Value):
        return None
    expression = node.expression
    if isinstance(expression, sympy.Pow) and expression.exp == -1:  # the inverse of a matrix that has a name
        expression = expression.base
    is_name = isinstance(expression, sympy.Symbol | sympy.core.function.AppliedUndef)
    is_product_of_letters = isinstance(expression, sympy.Mul) and all(
        isinstance(factor, sympy.Symbol) for factor in expression.args
    )
    return sympy.srepr(node.expression) if is_name or is_product_of_letters else None


def _symbols(node: Node) -> set[Any]:
    """Return the variables that a name itself stands for: not the x of f(x)."""
    if isinstance(node, Value) and isinstance(node.expression, sympy.Symbol):
        return {node.expression}
    return set()


def _is_closed(node: Node) -> bool:
    """Whether a value holds no variable."""
    if isinstance(node, Value):
        return not node.expression.free_symbols
    if isinstance(node, Group):
        return all(_is_closed(item) for item in node.items)
    return True


def _two_sides(node: Node) -> tuple[Any, str] | None:
    """Return left minus right, and the operator, of a relation of two expressions."""
    if not isinstance(node, Relation) or len(node.sides) != 2:
        return None
    left, right = node.sides
    if not isinstance(left, Value) or not isinstance(right, Value):
        return None
    if isinstance(left.expression, sympy.MatrixBase) or isinstance(right.expression, sympy.MatrixBase):
        return None
    return sympy.Add(left.expression, sympy.Mul(-1, right.expression)), node.operators[0]


def _interval(node: Node) -> Group | None:
    """Return the interval that `x < 3` or `1 < x <= 2` describes; None when no variable stands alone."""
    if not isinstance(node, Relation) or not set(node.operators) <= set(_FLIPPED):
        return None
    sides, operators = node.sides, node.operators
    if operators[0] in {">", ">="}:
        sides, operators = sides[::-1], tuple(_FLIPPED[sign] for sign in operators[::-1])
    if not set(operators) <= {"<", "<="}:
        return None
    variable = next((position for position, side in enumerate(sides) if _symbols(side)), None)
    ends = [side for position, side in enumerate(sides) if position != variable]
    if variable is None or len(sides) > 3 or (len(sides) == 3 and variable != 1) or not all(map(_is_closed, ends)):
        return None
    low: Node = sides[variable - 1] if variable > 0 else Value(-sympy.oo)
    high: Node = sides[variable + 1] if variable + 1 < len(sides) else Value(sympy.oo)
    opening = "[" if variable > 0 and operators[variable - 1] == "<=" else "("
    closing = "[" if variable + 1 < len(sides) and operators[variable] == "<=" else "("
    return Group(opening, closing, (low, high))


def _same_variable(one: Node, other: Node) -> bool:
    """Whether two relations are about the same variable; an interval is about any."""
    if not isinstance(one, Relation) or not isinstance(other, Relation):
        return True
    names = [set().union(*(_symbols(side) for side in node.sides)) for node in (one, other)]
    return names[0] == names[1]


def _difference_below(one: Any, other: Any, bound: Fraction, *, inclusive: bool = False) -> bool:
    left, right = as_rational(one), as_rational(other)
    if left is None or right is None:
        left, right = approximate(one, 60), approximate(other, 60)
    if left is None or right is None or not (left.is_real and right.is_real):
        return False
    difference = abs(_fraction(left) - _fraction(right))
    return difference <= bound if inclusive else difference < bound


def _fraction(number: Any) -> Fraction:
    rational = sympy.Rational(number)
    return Fraction(int(rational.p), int(rational.q))
