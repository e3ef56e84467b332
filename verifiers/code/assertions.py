"""Watches the assertions of test code: which ran, which failed, and what the two sides of a comparison were.

Runs inside the sandbox, in the driver. `assert a == b` becomes `begin()` and then `assert check(compare("==", a, b))`
with `end()` after it in any case, which evaluates the same things in the same order. A literal argument of a call is
marked as belonging to that call alone.
"""

import ast
import operator
import reprlib
from collections.abc import Callable
from typing import Any

from verifiers.code.remote import Remote
from verifiers.code.session import Session

_OPERATORS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda left, right: left in right),
    ast.NotIn: ("not in", lambda left, right: left not in right),
}
_BY_SIGN = dict(_OPERATORS.values())
_BEGIN, _CHECK, _END = "__assay_begin__", "__assay_check__", "__assay_end__"
_COMPARE, _FRESH = "__assay_compare__", "__assay_fresh__"


class Assertions:
    """What is known of the assertions that ran."""

    def __init__(self, session: Session) -> None:
        self.finished = 0
        """Assertions evaluated to their end."""
        self.sides: tuple[str, str] | None = None
        """The two sides of the comparison that came out false last, cut small."""
        self._session = session
        self._repr = _ShortRepr()

    def names(self) -> dict[str, Callable[..., Any]]:
        """Return what rewritten code calls, by name."""
        return {_BEGIN: self._begin, _CHECK: self._check, _END: self._end, _COMPARE: self._compare, _FRESH: self._fresh}

    def _begin(self) -> None:
        self._session.settle()
        self._session.in_assertion = True
        self.sides = None

    def _check(self, outcome: Any) -> bool:
        truth = bool(outcome)
        self.finished += 1
        return truth

    def _end(self) -> None:
        self._session.in_assertion = False
        self._session.settle()

    def _compare(self, sign: str, left: Any, right: Any) -> Any:
        outcome = _BY_SIGN[sign](left, right)
        if not outcome:
            self.sides = (self._shown(left), self._shown(right))
        return outcome

    def _fresh(self, value: Any) -> Any:
        self._session.fresh[id(value)] = value
        return value

    def _shown(self, value: Any) -> str:
        try:
            return self._repr.repr(value)
        except BaseException:
            return f"a {type(value).__name__}"


class _ShortRepr(reprlib.Repr):
    """Bounded text of a value; objects of the completion's are not asked for theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 120
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 12
        self.maxlong = 60

    def repr1(self, x: Any, level: int) -> str:
        """Return the text of a value at some depth."""
        if issubclass(type(x), Remote):
            return f"<{type(x).__name__} object>"
        return super().repr1(x, level)


class Rewriter(ast.NodeTransformer):
    """Puts the calls of `Assertions` into test code."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Watch an assertion."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node  # `assert False` is a guard, not a check
        begin, end = (ast.Expr(_call(name, node.test)) for name in (_BEGIN, _END))
        node.test = _call(_CHECK, node.test, self._outcome(node.test))
        return ast.copy_location(ast.Try(body=[begin, node], handlers=[], orelse=[], finalbody=[end]), node)

    def _outcome(self, test: ast.expr) -> ast.expr:
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return test
        sign = ast.copy_location(ast.Constant(_OPERATORS[type(test.ops[0])][0]), test)
        return _call(_COMPARE, test, sign, test.left, test.comparators[0])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Mark arguments that are literal containers."""
        self.generic_visit(node)
        node.args = [_call(_FRESH, arg, arg) if _is_literal_container(arg) else arg for arg in node.args]
        return node


def _call(name: str, at: ast.expr, *arguments: ast.expr) -> ast.expr:
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(arguments), []), at)


def _is_literal_container(node: ast.expr) -> bool:
    if not isinstance(node, (ast.List, ast.Dict, ast.Set, ast.Tuple)):
        return False
    parts = (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(part, parts) for part in ast.walk(node))
