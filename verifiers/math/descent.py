r"""Reads the usual expressions in a hundredth of the time of the full parser. Runs inside sandboxes only.

Numbers, letters, `+ - \cdot / ^`, fractions, roots, brackets, `\pi`, a few functions and matrices of these: whatever is
written so that only one reading is possible. All else is left to the full parser in `verifiers.math.leaves`; a test
holds the two to the same values on real answers.
"""

import re
from fractions import Fraction
from typing import Any, NoReturn

import sympy

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|([A-Za-z])|\\([A-Za-z]+)|([-+*/^{}()\[\]_]))")
_FUNCTIONS = {
    "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan, "cot": sympy.cot, "sec": sympy.sec, "csc": sympy.csc,
    "ln": sympy.log, "arctan": sympy.atan, "arcsin": sympy.asin, "arccos": sympy.acos,
}  # fmt: skip
_GREEK = frozenset("alpha beta gamma delta theta lambda mu rho sigma tau phi omega".split())  # noqa: SIM905
_OF_OTHERS = frozenset("dI")  # a differential; a current or an interval
_OF_FUNCTIONS = frozenset("fghFGHPE")
_TRANSPOSED = sympy.Symbol("T", real=True)
_PRODUCTS = frozenset({r"\cdot", r"\times"})
_ENDS = frozenset({"", "+", "-", ")", "}"})
_MATRIX = re.compile(
    r"(?P<opening>[(\[]?) ?\\begin ?\{(?P<kind>[pb]?matrix|array)\}(?: ?\{[lcr ]{1,40}\})?"
    r"(?P<body>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\\end ?\{(?P=kind)\} ?(?P<closing>[)\]]?)"
)
_BRACKETS_OF_MATRIX = frozenset({"()", "[]"})
MAX_DEPTH = 40
_MAX_DIGITS = 4000


class Undecided(Exception):
    """The text is not of the kind that this reads; it may be an expression all the same."""


def read_quickly(latex: str) -> Any | None:
    """Read an expression or a matrix, not evaluated; None when it takes the full parser.

    Args:
        latex: As `verifiers.math.leaves` prepares it for the full parser.
    """
    try:
        return _Reader(latex).whole()
    except Undecided:
        pass
    return _read_matrix(latex.strip())


def _read_matrix(latex: str) -> Any | None:
    match = _MATRIX.fullmatch(latex)
    if match is None or r"\begin" in match["body"]:
        return None
    has_brackets = match["opening"] + match["closing"] in _BRACKETS_OF_MATRIX
    if has_brackets == (match["kind"][0] in "pb"):
        return None
    rows = [row.split("&") for row in match["body"].strip().removesuffix("\\\\").split("\\\\")]
    if len({len(row) for row in rows}) != 1:
        return None
    try:
        return sympy.Matrix([[_Reader(entry).whole() for entry in row] for row in rows])
    except Undecided:
        return None


class _Reader:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, latex: str) -> None:
        self._tokens = _split(latex)
        self._at = 0
        self._depth = 0

    def whole(self) -> Any:
        """Read all of it."""
        tree = self._sum()
        if self._next:
            self._give_up()
        return tree

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        sign = self._tokens[self._at]
        self._at += 1
        return sign

    def _expect(self, sign: str) -> None:
        if self._take() != sign:
            self._give_up()

    def _give_up(self) -> NoReturn:
        raise Undecided

    def _sum(self) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._give_up()
        terms = [self._term()]
        while self._next in {"+", "-"}:
            terms.append(self._term())
        self._depth -= 1
        return terms[0] if len(terms) == 1 else sympy.Add(*terms, evaluate=False)

    def _term(self) -> Any:
        """Read one term with its sign."""
        is_negative = False
        if self._next in {"+", "-"}:
            is_negative = self._take() == "-"
        product = self._product()
        return _negated(product) if is_negative else product

    def _product(self) -> Any:
        product = self._factors(divided=False)
        while self._next in _PRODUCTS or self._next == "/":
            if self._take() == "/":
                product = _quotient(product, self._factors(divided=True))
            else:
                product = sympy.Mul(product, self._factors(divided=False), evaluate=False)
        return product

    def _factors(self, *, divided: bool) -> Any:
        """Read factors side by side; after a division sign only one, since it is open how far the sign reaches."""
        first_token = self._next
        product = self._power()
        while True:
            sign = self._next
            if sign in _ENDS or sign in _PRODUCTS or sign in {"/", "]"}:
                return product
            is_mixed = sign == r"\frac" and first_token[0].isdigit()
            if divided or sign[0].isdigit() or sign[0] == "." or sign == "^" or is_mixed:
                self._give_up()
            product = sympy.Mul(product, self._power(), evaluate=False)

    def _power(self) -> Any:
        base, is_function = self._atom()
        if self._next != "^":
            return base
        if is_function:
            self._give_up()
        self._take()
        sign = self._take()
        if sign == "{":
            exponent = self._sum()
            self._expect("}")
            if exponent == _TRANSPOSED:
                self._give_up()
        elif (sign.isdigit() and len(sign) == 1) or (sign.isalpha() and sign not in "TIdi"):
            exponent = sympy.Integer(int(sign)) if sign.isdigit() else sympy.Symbol(sign, real=True)
        else:
            self._give_up()
        if self._next == "^":
            self._give_up()
        return sympy.Pow(base, exponent, evaluate=False)

    def _atom(self) -> tuple[Any, bool]:  # noqa: PLR0911 - one way for each kind
        """Read one atom; say whether it is a function's value, whose power is written elsewhere."""
        sign = self._take()
        if sign[:1].isdigit() or sign[:1] == ".":
            return _number(sign), False
        if (len(sign) == 1 and sign.isalpha()) or sign[1:] in _GREEK:
            return self._symbol(sign.removeprefix("\\")), False
        if sign == "(":
            inner = self._sum()
            self._expect(")")
            return inner, False
        if sign == r"\pi":
            return sympy.pi, False
        if sign == r"\frac":
            top, bottom = self._braced(), self._braced()
            return _quotient(top, bottom), self._next == "^"
        if sign == r"\sqrt":
            return self._root(), self._next == "^"
        if sign[1:] in _FUNCTIONS:
            return self._function(_FUNCTIONS[sign[1:]]), True
        raise Undecided

    def _symbol(self, name: str) -> Any:
        if name in _OF_OTHERS:
            self._give_up()
        if self._next == "_":
            if name in {"e", "i"}:
                self._give_up()
            self._take()
            name += "_" + self._index()
        if self._next == "(" and self._tokens[self._at + 1].isalpha() and self._tokens[self._at + 2] == ")":
            return self._applied(name)
        if self._next == "[" or (self._next == "(" and (name in _OF_FUNCTIONS or not self._is_sum_ahead())):
            self._give_up()  # a function of that name?
        return sympy.Symbol(name, real=True)

    def _applied(self, name: str) -> Any:
        """Read `(x)` after the name of an unknown function."""
        self._take()
        argument = self._take()
        self._take()
        if len(argument) > 1 or argument in {"e", "i"} or "_" in name or self._next == "^":
            self._give_up()
        return sympy.Function(name)(sympy.Symbol(argument, real=True))

    def _index(self) -> str:
        is_braced = self._next == "{"
        if is_braced:
            self._take()
        index = self._take()
        if not index.isalnum() or (not is_braced and len(index) > 1):
            self._give_up()
        if is_braced:
            self._expect("}")
        return index

    def _is_sum_ahead(self) -> bool:
        """Whether the bracket that opens here holds a sum, so that it is a factor and no argument."""
        depth = 0
        for position in range(self._at, len(self._tokens)):
            sign = self._tokens[position]
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(sign, 0)
            if depth == 0:
                return False
            if depth == 1 and sign in {"+", "-"} and self._tokens[position - 1] != "(":
                return True
        return False

    def _braced(self) -> Any:
        self._expect("{")
        inner = self._sum()
        self._expect("}")
        return inner

    def _root(self) -> Any:
        if self._next != "[":
            return sympy.Pow(self._braced(), sympy.Rational(1, 2), evaluate=False)
        self._take()
        index = self._take()
        self._expect("]")
        base = self._braced()
        if not index.isdigit() or int(index) < 2 or not base.is_nonnegative:
            self._give_up()  # an odd root of a negative number is the real one
        return sympy.Pow(base, sympy.Rational(1, int(index)), evaluate=False)

    def _function(self, function: Any) -> Any:
        power = self._power_of_function() if self._next == "^" else None
        if self._next == "(":
            self._take()
            argument = self._sum()
            self._expect(")")
        else:
            argument = self._bare_argument()
        if self._next not in _ENDS and self._next[1:] not in _FUNCTIONS:
            self._give_up()  # does it reach further?
        value = function(argument, evaluate=False)
        return value if power is None else sympy.Pow(value, power, evaluate=False)

    def _power_of_function(self) -> Any:
        r"""Read the power in `\sin^{2} x`; -1 would mean the inverse."""
        self._take()
        is_braced = self._next == "{"
        if is_braced:
            self._take()
        power = self._take()
        if not power.isdigit() or (len(power) > 1 and not is_braced):
            self._give_up()
        if is_braced:
            self._expect("}")
        return sympy.Integer(int(power))

    def _bare_argument(self) -> Any:
        r"""Read what `\cos 2 \pi x` is applied to: a number, letters and pi, side by side."""
        factors: list[Any] = []
        while not factors or self._next not in _ENDS:
            if factors and (self._next[:1].isdigit() or self._next[1:] in _FUNCTIONS):
                break
            sign = self._next
            if not (sign[:1].isalnum() or sign == r"\pi" or sign[1:] in _GREEK):
                self._give_up()
            factors.append(self._atom()[0])
        return factors[0] if len(factors) == 1 else sympy.Mul(*factors, evaluate=False)


def _split(latex: str) -> list[str]:
    """Split into tokens, an empty one at the end."""
    tokens, position, end = [], 0, len(latex.rstrip())
    while position < end:
        match = _TOKEN.match(latex, position)
        if match is None:
            raise Undecided
        tokens.append(f"\\{match[3]}" if match[3] else match[1] or match[2] or match[4])
        position = match.end()
    return [*tokens, ""]


def _number(sign: str) -> Any:
    if len(sign) > _MAX_DIGITS:
        raise Undecided
    return sympy.Rational(Fraction(sign))


def _negated(product: Any) -> Any:
    return -product if product.is_Rational else sympy.Mul(-1, product, evaluate=False)


def _quotient(top: Any, bottom: Any) -> Any:
    if bottom.is_Rational:
        if bottom == 0:
            raise Undecided
        if top.is_Rational:
            return top / bottom
    return sympy.Mul(top, sympy.Pow(bottom, -1, evaluate=False), evaluate=False)
