"""Reads one expression, LaTeX or plain ASCII, into sympy. Runs inside sandboxes only.

The parser is latex2sympy2_extended, which math-verify is built on. No text ever reaches `sympify`, `parse_expr` or
`eval`: letters become symbols, digits become rationals, and nothing else is made from text. Its converter is put right
where it changes a value: `3(4)` is 12, not 7; `12 345` is nothing; `0.1` is a tenth, not a binary fraction.
"""

import importlib.metadata
import re
from fractions import Fraction
from typing import Any

from verifiers.math.descent import read_quickly


def _antlr_version(distribution_name: str) -> str:
    """Answer for the one package whose metadata latex2sympy2_extended asks for; sandboxes hold modules, no metadata."""
    return "4.13.2" if distribution_name == "antlr4-python3-runtime" else _installed_version(distribution_name)


_installed_version = importlib.metadata.version
importlib.metadata.version = _antlr_version
try:
    import sympy
    from antlr4 import PredictionMode  # type: ignore[import-untyped]
    from latex2sympy2_extended import latex2sympy2
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig
finally:
    importlib.metadata.version = _installed_version

_INFINITIES = {r"\infty": sympy.oo, r"+\infty": sympy.oo, r"-\infty": -sympy.oo}

MAX_DEPTH = 60
"""Brackets within brackets."""

_MAX_EXPONENT = 10_000

_ALLOWED = re.compile(r"[\x20-\x7e]*")
_FORBIDDEN = re.compile(
    r"[#@`\"?]|\\(?:input|include|write|read|def|let|newcommand|catcode|csname|variable)(?![A-Za-z])"
)
_TEXT_COMMAND = re.compile(
    r"\\(?:text|operatorname|overline|bar|vec|hat|overrightarrow|widetilde|tilde)\*? ?\{[^{}]*\}"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{4,}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end) ?\{(?:[pbvBV]?(?:small)?matrix|array)\}(?:\{[lcr|]*\})?")
_TWO_NUMBERS = re.compile(r"(?<![_^\d.])[\d.]+ +[\d.]")

_REPEATING = re.compile(r"(?P<integer>\d*)\.(?P<fixed>\d{0,40})\\overline ?\{ ?(?P<cycle>\d{1,40}) ?\}")
_FRAC_DIGITS = re.compile(r"\\frac ?(?:(?P<a>\d) ?(?P<b>\d)|(?P<c>\d) ?(?=\{)|(?P<d>[A-Za-z]) ?(?P<e>[A-Za-z\d]))")
_FRAC_BRACE_DIGIT = re.compile(r"(\\frac ?\{[^{}]*\}) ?([A-Za-z\d])")
_SQRT_DIGIT = re.compile(r"\\sqrt ?(\[[^\[\]]{1,20}\])? ?(\d|[A-Za-z])")
_LOG_DIGIT = re.compile(r"\\log ?_ ?(\d)(?=\d)")
_PRIMES = re.compile(r"(?<=[A-Za-z)}])'{1,3}|\^ ?\{ ?(?:\\prime ?){1,3}\}|\^ ?\\prime")
# `1e-3` is a number; `2e-3`, where the whole factor is not 1, may as well be a multiple of e less three.
_E_NOTATION = re.compile(
    r"(?<![\w.}\\])(\d+\.\d*(?=e)|\.\d+(?=e)|\d+(?=e\+?\d|E)|1(?=e-))[eE]([-+]?\d{1,4})(?![\d.^{])"
)
_MIXED = re.compile(r"^([-+]? ?\d+) +(\d+) ?/ ?(\d+)$")
_CAPITAL_I = re.compile(r"(?<![A-Za-z\\{])I(?![A-Za-z])|(?<=\{)I(?=[^A-Za-z])")  # a current or an interval, not i
_INVERSE = re.compile(r"^ ?([A-Za-z]) ?\^ ?\{ ?- ?1 ?\} ?(?=\([A-Za-z]\)$)")
_NAMES = re.compile(
    r"(?<![A-Za-z\\])(sqrt|pi|sin|cos|tan|sec|csc|cot|arcsin|arccos|arctan|sinh|cosh|tanh|log|ln|exp|infinity|infty|"
    r"inf|oo|theta|alpha|beta|gamma|delta|lambda|omega)(?![A-Za-z])"
)
_NAMES_AFTER_LETTERS = {"infinity": r"\infty ", "inf": r"\infty ", "oo": r"\infty "}
_SYNONYMS = {
    r"\lg": r"\log_{10}",
    r"\varnothing": r"\emptyset",
    r"\dbinom": r"\binom",
    r"\tbinom": r"\binom",
    r"\operatorname{arccot}": r"\arccot",
    r"\operatorname{arcsin}": r"\arcsin",
    r"\operatorname{arccos}": r"\arccos",
    r"\operatorname{arctan}": r"\arctan",
    r"\tg": r"\tan",
    r"\ctg": r"\cot",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\vert": "|",
    r"\mid": "|",
    r"\ast": r"\cdot",
    r"\lbrack": "[",
    r"\rbrack": "]",
}
_SYNONYM = re.compile("|".join(re.escape(name) + ("(?![A-Za-z])" if name[-1] != "}" else "") for name in _SYNONYMS))


class Unreadable(Exception):
    """The text is not an expression that this can read."""


class _Converter(latex2sympy2._Latex2Sympy):  # type: ignore[misc]
    """The converter from parse tree to sympy, exact about numbers."""

    prediction = PredictionMode.LL

    def create_parser(self, latex_str: str) -> Any:
        """Return the parser, in the prediction mode that was asked for."""
        parser = super().create_parser(latex_str)
        parser._interp.predictionMode = self.prediction
        return parser

    def parse_number(self, text: str) -> Any:
        """Return the exact rational of a number token."""
        text = text.replace(",", "").replace("E", "e")
        mantissa, _, exponent = text.partition("e")
        power = int(exponent or 0)
        if abs(power) > _MAX_EXPONENT:
            raise Unreadable("exponent too large")
        return sympy.Rational(Fraction(mantissa)) * sympy.Rational(10) ** power

    def convert_atom(self, atom: Any) -> Any:
        """Convert an atom; a percentage is its value."""
        number = atom.number_subexpr()
        if number and number.subexpr():  # digits in another base: a name for something, not the number they look like
            return sympy.Symbol(re.sub(r"[\s{}]", "", number.getText()), real=True)
        if atom.PERCENT_NUMBER():
            return self.parse_number(re.sub(r"[\\%,\s]", "", atom.PERCENT_NUMBER().getText())) / 100
        return super().convert_atom(atom)

    def convert_binom(self, binom: Any) -> Any:
        """Convert without evaluating, so that a huge one costs nothing."""
        return sympy.binomial(self.convert_expr(binom.upper), self.convert_expr(binom.lower), evaluate=False)

    def convert_func(self, func: Any) -> Any:
        """Convert a function; an odd root of a negative number is the real one."""
        if not func.FUNC_SQRT() or not func.root:
            return super().convert_func(func)
        base, root = self.convert_expr(func.base), self.convert_expr(func.root)
        if not root.is_Integer or root % 2 == 0 or base.is_nonnegative:
            return sympy.Pow(base, sympy.Pow(root, -1), evaluate=False)
        power = sympy.Pow(sympy.Abs(base), sympy.Pow(root, -1), evaluate=False)
        return sympy.Mul(sympy.sign(base), power, evaluate=False)

    def convert_postfix_list(self, arr: Any, i: int = 0) -> Any:
        r"""Convert a product without signs between its factors; only `2\frac{1}{2}` is a sum."""
        if i == 0 and len(arr) == 2 and _is_mixed(arr):
            whole, part = self.convert_postfix(arr[0]), self.convert_postfix(arr[1])
            if not 0 < part < 1:
                raise Unreadable("a mixed number whose fraction is not below one")
            return whole + part
        factors = []
        for position in range(i, len(arr)):
            if position and _two_numbers(arr[position - 1], arr[position]):
                raise Unreadable("two numbers side by side")
            factor = self.convert_postfix(arr[position])
            if isinstance(factor, list):  # a derivative, of all that follows
                if len(factor) != 1 or position + 1 == len(arr):
                    raise Unreadable("a derivative of nothing")
                factors.append(sympy.Derivative(self.convert_postfix_list(arr, position + 1), factor[0]))
                break
            factors.append(factor)
        product = factors[-1]
        for factor in reversed(factors[:-1]):
            is_matrix = getattr(factor, "is_Matrix", False) or getattr(product, "is_Matrix", False)
            product = self.mat_mul_flat(factor, product) if is_matrix else self.mul_flat(factor, product)
        return product


def read_expression(text: str) -> Any:
    """Read an expression or a matrix.

    Args:
        text: Normalised; no relation, list or interval.

    Returns:
        A sympy `Expr` or matrix, not evaluated.

    Raises:
        Unreadable: it is none, whatever the reason.
    """
    if (infinity := _INFINITIES.get(text.strip())) is not None:
        return infinity
    latex = to_latex(text)
    if (quick := read_quickly(latex)) is not None:
        return with_constants(quick)
    return read_fully(latex)


def read_fully(latex: str) -> Any:
    """Read with the full parser what `to_latex` prepared; see `read_expression`."""
    try:
        tree = _parse(latex)
    except (MemoryError, Unreadable):
        raise
    except Exception as failure:  # the parser raises bare Exception, and the converter anything
        raise Unreadable(type(failure).__name__) from None
    if not isinstance(tree, sympy.Expr | sympy.MatrixBase | sympy.MatrixExpr):
        raise Unreadable(f"a {type(tree).__name__} is no expression")
    return with_constants(tree)


def _parse(latex: str) -> Any:
    """Parse with the fast prediction, which either gives what the full one does or fails, then with the full one."""
    converter = _Converter(None, is_real=True, config=ConversionConfig(lowercase_symbols=False))
    converter.prediction = PredictionMode.SLL
    try:
        return converter.parse(latex)
    except (MemoryError, Unreadable):
        raise
    except Exception:  # anything, as above; what fails for another reason fails again
        converter.prediction = PredictionMode.LL
        return converter.parse(latex)


def to_latex(text: str) -> str:
    """Bring plain ASCII mathematics and sloppy LaTeX to what the grammar reads.

    Raises:
        Unreadable: it holds what no expression holds.
    """
    if not _ALLOWED.fullmatch(text) or _FORBIDDEN.search(text):
        raise Unreadable("characters of no expression")
    if _depth(text) > MAX_DEPTH:
        raise Unreadable("too deep")
    text = _E_NOTATION.sub(_power_of_ten, text)
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text)
    text = _INVERSE.sub(r"\1_{inv}", text)
    text = _SYNONYM.sub(lambda m: _SYNONYMS[m[0]] + " ", text)
    text = _REPEATING.sub(_repeating_fraction, text)
    text = text.replace("**", "^").replace("*", r"\cdot ")
    text = _NAMES.sub(lambda m: _NAMES_AFTER_LETTERS.get(m[1], rf"\{m[1]} "), text)
    if _WORD.search(_COMMAND.sub(" ", _TEXT_COMMAND.sub(" ", _ENVIRONMENT.sub(" ", text)))):
        raise Unreadable("words")
    text = _CAPITAL_I.sub(r"\\mathit{I}", text)
    text = _braced(text, "^")
    text = _braced(text, r"\sqrt ")
    text = _braced(text, r"\sqrt")
    text = _PRIMES.sub(lambda m: "_{" + "p" * max(1, m[0].count("'") + m[0].count("prime")) + "}", text)
    if "'" in text:
        raise Unreadable("a quote")
    text = _LOG_DIGIT.sub(r"\\log_{\1} ", text)
    text = _SQRT_DIGIT.sub(r"\\sqrt\1{\2}", text)
    text = _FRAC_BRACE_DIGIT.sub(r"\1{\2}", _FRAC_DIGITS.sub(_braced_fraction, text))
    if _TWO_NUMBERS.search(text):
        raise Unreadable("two numbers side by side")
    return text


def _power_of_ten(match: re.Match[str]) -> str:
    r"""Write `2e5` as `(2\cdot 10^{5})`, or as the one number token that the grammar has for all of a text."""
    if match[0] == match.string.lstrip("+-"):
        return f"{match[1]}E{match[2]}"
    return rf"({match[1]}\cdot 10^{{{int(match[2])}}})"


def _braced(text: str, operator: str) -> str:
    """Turn the brackets right after every occurrence of an operator, `^(…)` or `sqrt(…)`, into braces."""
    start = text.find(operator + "(")
    while start >= 0:
        opening = start + len(operator)
        closing = _closing(text, opening)
        if closing is None:
            return text
        text = f"{text[:start]}{operator.rstrip()}{{{text[opening + 1 : closing]}}}{text[closing + 1 :]}"
        start = text.find(operator + "(", start + 1)
    return text


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return None


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


def _repeating_fraction(match: re.Match[str]) -> str:
    r"""Write `0.1\overline{6}` as the fraction it is."""
    integer, fixed, cycle = match["integer"] or "0", match["fixed"], match["cycle"]
    top = int(integer + fixed + cycle) - int(integer + fixed)
    return rf"\frac{{{top}}}{{{10 ** len(fixed) * (10 ** len(cycle) - 1)}}}"


def _braced_fraction(match: re.Match[str]) -> str:
    if match["a"]:
        return rf"\frac{{{match['a']}}}{{{match['b']}}}"
    if match["c"]:
        return rf"\frac{{{match['c']}}}"
    return rf"\frac{{{match['d']}}}{{{match['e']}}}"


def _is_mixed(arr: Any) -> bool:
    r"""Whether two factors are written as a whole number and a fraction of whole numbers: `2\frac{1}{2}`."""
    whole, part = arr[0].getText(), arr[1].getText()
    return whole.isdigit() and re.fullmatch(r"\\frac\{\d+\}\{\d+\}", part) is not None


def _two_numbers(one: Any, other: Any) -> bool:
    """Whether a digit follows a digit, with no sign between the numbers."""
    return one.getText()[-1:].isdigit() and other.getText()[:1] in set("0123456789.")


def with_constants(tree: Any) -> Any:
    """Take the letter i for the imaginary unit, except where it counts a sum's terms, and the letter e for e."""
    symbols = tree.free_symbols
    bound = {symbol for loop in tree.atoms(sympy.Sum, sympy.Product) for symbol in loop.variables}
    constants = {
        symbol: {"i": sympy.I, "e": sympy.E}[symbol.name]
        for symbol in symbols - bound
        if symbol.name in {"i", "e"} and not _has_index_i(bound, symbol)
    }
    return tree.xreplace(constants) if constants else tree


def _has_index_i(bound: set[Any], symbol: Any) -> bool:
    return any(other.name == symbol.name for other in bound)
