"""Watches the assertions of test code: which ran, which failed, and what the two sides of a comparison were.

Runs inside the sandbox, in the driver. `assert a == b` becomes `begin()` and then `assert check(compare("==", a, b))`
with `end()` after it in any case, which evaluates the same things in the same order. Operands of an `and` are separate
assertions. In functions, a call that is a statement of its own is none of the assertion around it. A literal argument
of a call is marked as belonging to that call alone.
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
CHECK = "__assay_check__"
"""Name that rewritten code calls in each assertion."""
_BEGIN, _END = "__assay_begin__", "__assay_end__"
_COMPARE, _PART, _APART, _CALL = "__assay_compare__", "__assay_part__", "__assay_apart__", "__assay_call__"


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
        names: dict[str, Callable[..., Any]] = {
            _BEGIN: self._begin,
            CHECK: self._check,
            _END: self._end,
            _COMPARE: self._compare,
        }
        return {**names, _PART: self._part, _APART: self._apart, _CALL: self._call}

    def _begin(self) -> None:
        self._session.enter(assertion=True)
        self.sides = None

    def _apart(self) -> None:
        self._session.enter(assertion=False)

    def _part(self, outcome: Any) -> Any:
        self._session.settle()
        return outcome

    def _check(self, outcome: Any) -> bool:
        truth = bool(outcome)
        self.finished += 1
        return truth

    def _end(self) -> None:
        self._session.leave()

    def _compare(self, sign: str, left: Any, right: Any) -> Any:
        outcome = _BY_SIGN[sign](left, right)
        if not outcome:
            self.sides = (self._shown(left), self._shown(right))
        return outcome

    def _call(self, function: Any, literal: tuple[int, ...], /, *arguments: Any, **keywords: Any) -> Any:
        """Call a function; its arguments at these places exist only for the call, if it is one of the completion's."""
        if issubclass(type(function), Remote):
            self._session.fresh = {id(arguments[place]) for place in literal}
        return function(*arguments, **keywords)

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

    def __init__(self) -> None:
        self._functions = 0

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Watch an assertion."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node  # `assert False` is a guard, not a check
        begin, end = (ast.Expr(_call(name, node.test)) for name in (_BEGIN, _END))
        node.test = _call(CHECK, node.test, self._outcome(node.test))
        return ast.copy_location(ast.Try(body=[begin, node], handlers=[], orelse=[], finalbody=[end]), node)

    def _outcome(self, test: ast.expr) -> ast.expr:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            test.values = [_call(_PART, value, self._outcome(value)) for value in test.values]
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return test
        sign = ast.copy_location(ast.Constant(_OPERATORS[type(test.ops[0])][0]), test)
        return _call(_COMPARE, test, sign, test.left, test.comparators[0])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Mark arguments that are literal containers."""
        self.generic_visit(node)
        starred = next((place for place, arg in enumerate(node.args) if isinstance(arg, ast.Starred)), len(node.args))
        literal = [place for place, arg in enumerate(node.args[:starred]) if _is_literal_container(arg)]
        if not literal:
            return node
        places = ast.copy_location(ast.Tuple([ast.Constant(place) for place in literal], ast.Load()), node)
        call = _call(_CALL, node, node.func, places, *node.args)
        call.keywords = node.keywords
        return call

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Note that what is inside may run within an assertion."""
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Take a call that is a statement out of the assertion that runs it."""
        return self._set_apart(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Take the calls of an assignment out of the assertion that runs it."""
        return self._set_apart(node)

    def _set_apart(self, node: ast.Expr | ast.Assign) -> ast.AST:
        parts = list(ast.walk(node))
        self.generic_visit(node)
        suspends = any(isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await)) for part in parts)
        if not self._functions or suspends or not any(isinstance(part, ast.Call) for part in parts):
            return node
        begin, end = (ast.Expr(_call(name, node.value)) for name in (_APART, _END))
        return ast.copy_location(ast.Try(body=[begin, node], handlers=[], orelse=[], finalbody=[end]), node)


def _call(name: str, at: ast.expr, *arguments: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(arguments), []), at)


def _is_literal_container(node: ast.expr) -> bool:
    if not isinstance(node, (ast.List, ast.Dict, ast.Set, ast.Tuple)):
        return False
    parts = (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(part, parts) for part in ast.walk(node))
