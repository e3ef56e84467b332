r"""Reads the structure of an answer: lists, tuples, sets, intervals, relations. Runs inside sandboxes only.

Only what stands between the separators goes to the LaTeX parser, which would make `(1,2)` an interval, `(2,1)` a tuple
and drop what is written twice. Here brackets stay as written, and `verifiers.math.comparing` decides what they mean.
"""

import re
from dataclasses import dataclass
from typing import Any

import sympy

from verifiers.math.leaves import Unreadable, read_expression

MAX_ITEMS = 200


@dataclass(frozen=True)
class Value:
    """One expression or matrix."""

    expression: Any
    decimal_places: int | None = None
    """Of a plain decimal that is long enough to be a rounded value."""


@dataclass(frozen=True)
class Constant:
    """A named set, or a short text such as `even`."""

    name: str


@dataclass(frozen=True)
class Group:
    """Items in brackets, or separated by commas without any."""

    opening: str
    """`(`, `[`, `{`, or empty."""
    closing: str
    items: tuple["Node", ...]


@dataclass(frozen=True)
class Union:
    """Sets joined with a cup."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Relation:
    """Two or more sides with an operator between each two: `=`, `!=`, `<`, `<=`, `>`, `>=`, `in`."""

    sides: tuple["Node", ...]
    operators: tuple[str, ...]


ELLIPSIS = Constant("…")
"""Stands for items that were left out of a list, which thereby has an order."""

Node = Value | Constant | Group | Union | Relation

_OPERATORS = {
    "=": "=",
    r"\ne": "!=",
    r"\neq": "!=",
    "!=": "!=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
    r"\lt": "<",
    r"\gt": ">",
    r"\le": "<=",
    r"\ge": ">=",
    r"\in": "in",
    ":=": "=",
    r"\equiv": "=",
    r"\approx": "=",
}
_BARE_NAME = re.compile(r"[A-Za-z](?: ?_ ?(?:\{[A-Za-z0-9 ]{1,10}\}|[A-Za-z0-9]))?")
_TOKEN = re.compile(
    r"\\begin ?\{[a-z]+\*?\}|\\end ?\{[a-z]+\*?\}|\\[{}]|\\l(?:angle|brace)(?![A-Za-z])|\\r(?:angle|brace)(?![A-Za-z])"
    r"|\\(?:neq|ne|lt|gt|le|ge|in|equiv|cup|approx|text ?\{ ?(?:and|or) ?\})(?![A-Za-z])|[<>!:]=|[()\[\]{}=<>,;:]"
)
_OPENING = {"(": "(", "[": "[", "{": "", r"\{": "{", r"\langle": "(", r"\lbrace": "{"}
_CLOSING = {")": "(", "]": "[", "}": "", r"\}": "{", r"\rangle": "(", r"\rbrace": "{"}
_CONJUNCTION = re.compile(r" ?,? ?(?:\\text ?\{ ?,? ?(?:and|or) ?\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])) ?")
_ELLIPSIS = re.compile(r"\\(?:l|c|d)?dots(?![A-Za-z])|\.\.\.")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"[-+]? ?(\d*)\.(\d+)")
_ROUNDED_DIGITS = 12
_PLUS_MINUS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_SETS = {r"\mathbb{R}": "R", r"\mathbb{Z}": "Z", r"\mathbb{N}": "N", r"\mathbb{Q}": "Q", r"\mathbb{C}": "C"}
_SETS |= {r"\emptyset": "empty", r"\varnothing": "empty", r"\{\}": "empty", r"\{ \}": "empty"}
_TEXT = re.compile(r"\\text ?\{([^{}\\]*[A-Za-z]{2}[^{}\\]*)\}")
_BUILDER = re.compile(
    r"^\\\{ ?(?:[A-Za-z](?: ?\\in ?[^|:]{1,30}?)?|\([A-Za-z, ]{1,30}\))"
    r" ?(?:\\mid(?![A-Za-z])|\||:)(?P<condition>.*)\\\}$"
)


def read(text: str) -> Node:
    """Read an answer.

    Args:
        text: Normalised, as the worker sends it.

    Raises:
        Unreadable: it is no mathematics that can be compared.
    """
    text = _CONJUNCTION.sub(", ", text).strip().removeprefix(",").strip()
    text = _THOUSANDS.sub(lambda m: m[0].replace(",", "") if _is_outermost(text, m.start()) else m[0], text)
    return _read_list(text)


def _read_list(text: str) -> Node:
    parts = [part.strip() for part in _split(text, {",", ";"})[0]]
    if len(parts) == 1:
        nodes = _read_signs(parts[0])
        return nodes[0] if len(nodes) == 1 else Group("", "", tuple(nodes))
    if len(parts) > MAX_ITEMS or not all(parts):
        raise Unreadable("a list with empty places")
    return Group("", "", tuple(node for part in parts for node in _read_signs(part)))


def _read_signs(text: str) -> list[Node]:
    r"""Read one item, which `\pm` makes two."""
    signs = len(_PLUS_MINUS.findall(text))
    if signs == 0:
        return [_read_relation(text)]
    if signs > 1 and r"\mp" not in text:
        raise Unreadable("signs that may or may not go together")
    upper = text.replace(r"\pm", "+").replace(r"\mp", "-")
    lower = text.replace(r"\pm", "-").replace(r"\mp", "+")
    return [_read_relation(upper), _read_relation(lower)]


def _read_relation(text: str) -> Node:
    sides, operators = _split(text, set(_OPERATORS))
    if r"\approx" in operators and not _BARE_NAME.fullmatch(sides[0].strip()):
        cut = operators.index(r"\approx")  # what follows is a rounded value of what was said
        sides, operators = (sides[: cut + 1], operators[:cut]) if sides[0].strip() else (sides[1:], operators[1:])
    if not operators:
        return _read_union(sides[0])
    if not all(side.strip() for side in sides):
        raise Unreadable("a relation without one of its sides")
    return Relation(tuple(_read_union(side) for side in sides), tuple(_OPERATORS[sign] for sign in operators))


def _read_union(text: str) -> Node:
    parts, _ = _split(text, {r"\cup"})
    if len(parts) == 1:
        return _read_item(text.strip())
    return Union(tuple(_read_item(part.strip()) for part in parts))


def _read_item(text: str) -> Node:  # noqa: PLR0911 - one way for each kind
    if not text:
        raise Unreadable("nothing")
    if _ELLIPSIS.fullmatch(text):
        return ELLIPSIS
    if _ELLIPSIS.search(text):
        raise Unreadable("an ellipsis")
    if text in _SETS:
        return Constant(_SETS[text])
    if match := _TEXT.fullmatch(text):
        return Constant(" ".join(match[1].lower().split()))
    if builder := _BUILDER.match(text):
        return _read_list(_CONJUNCTION.sub(", ", builder["condition"]))
    if text.startswith("{") and _closes_last(_brackets(text)):
        return _read_item(text[1:-1].strip())
    ratio = _split(text, {":"})[0]
    if len(ratio) > 2:  # 1:2:3 is no division
        return Group("(", ":", tuple(_read_item(part.strip()) for part in ratio))
    group = _read_group(text)
    return group if group is not None else _read_value(text)


def _read_group(text: str) -> Node | None:
    """Read brackets around the whole text; None when there are none, or they only hold one expression together."""
    tokens = _brackets(text)
    if not tokens or tokens[0].start() != 0 or tokens[-1].end() != len(text) or tokens[0][0] == "{":
        return None
    opening, closing = _OPENING.get(tokens[0][0]), _CLOSING.get(tokens[-1][0])
    if not opening or not closing or not _closes_last(tokens):
        return None
    inner = text[tokens[0].end() : tokens[-1].start()].strip()
    parts = [part.strip() for part in _split(inner, {",", ";"})[0]]
    if opening != "{" and len(parts) == 1:
        # One thing in brackets is that thing, as long as it is more than an expression; those the parser reads itself.
        return None if opening == closing and not _split(inner, set(_OPERATORS))[1] else _read_relation(inner)
    if len(parts) > MAX_ITEMS or not all(parts):
        raise Unreadable("brackets with empty places")
    return Group(opening, closing, tuple(node for part in parts for node in _read_signs(part)))


def _brackets(text: str) -> list[re.Match[str]]:
    return [match for match in _TOKEN.finditer(text) if match[0] in _OPENING or match[0] in _CLOSING]


def _closes_last(tokens: list[re.Match[str]]) -> bool:
    """Whether the first bracket is closed by the last one and not before."""
    depth = 0
    for position, token in enumerate(tokens):
        depth += 1 if token[0] in _OPENING else -1
        if depth == 0 and position < len(tokens) - 1:
            return False
    return depth == 0 and bool(tokens) and tokens[-1].end() == len(tokens[-1].string)


def _read_value(text: str) -> Value:
    match = _DECIMAL.fullmatch(text)
    rounded = match is not None and len((match[1] + match[2]).lstrip("0")) >= _ROUNDED_DIGITS
    expression = read_expression(text)
    if expression.has(sympy.nan, sympy.zoo):
        raise Unreadable("no value")
    return Value(expression, len(match[2]) if match and rounded else None)


def _split(text: str, separators: set[str]) -> tuple[list[str], list[str]]:
    """Split at the separators that stand outside all brackets; return the parts and the separators between them.

    Raises:
        Unreadable: a bracket closes that was not opened, or one is left open.
    """
    parts, found, depth, start = [], [], 0, 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _OPENING or token.startswith(r"\begin"):
            depth += 1
        elif token in _CLOSING or token.startswith(r"\end"):
            depth -= 1
            if depth < 0:
                raise Unreadable("a bracket too many")
        elif depth == 0 and token in separators:
            parts.append(text[start : match.start()])
            found.append(token)
            start = match.end()
    if depth:
        raise Unreadable("a bracket left open")
    return [*parts, text[start:]], found


def _is_outermost(text: str, position: int) -> bool:
    depth = 0
    for match in _TOKEN.finditer(text, 0, position):
        depth += {True: 1, False: 0}[match[0] in _OPENING and match[0] != "{"]
        depth -= {True: 1, False: 0}[match[0] in _CLOSING and match[0] != "}"]
    return depth == 0
