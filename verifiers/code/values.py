"""Comparing a value that a completion returned with the expected one, both as plain data (see `verifiers.code.plain`).

The returned value is what a hostile process sent. It is compared in the form in which it came: nothing is built of it,
and the comparison ends at the first difference, so that it costs no more than the expected value is large.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.tasks import CodeOptions
from pydantic import JsonValue

Form = Any
_RELATIVE_TOLERANCE = 1e-9
_MAX_DEPTH = 100
_SMALL = 1 << 63
_MOST_MATCHED = 200
"""Items of two lists without order that are matched one by one, where sorting alone finds them different."""
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_LISTS = ("tuple", "namedtuple", "set", "frozenset")
_DICTS = ("dict", "counter", "ordered", "default", "object")
_SHOWN_CHARS = 400


class BadValueError(ValueError):
    """A value of the task's author that stands for nothing; the message says why."""


class TooDeepError(Exception):
    """A returned value is nested deeper than values may be."""


@dataclass(frozen=True, slots=True)
class ValueRules:
    """When two values count as equal."""

    relative_tolerance: float
    absolute_tolerance: float
    tuples_are_lists: bool
    list_order: str
    nan_equal: bool

    @classmethod
    def of(cls, options: CodeOptions) -> "ValueRules":
        """Return the rules that a task's options ask for."""
        relative = options.relative_tolerance
        return cls(
            _RELATIVE_TOLERANCE if relative is None else relative,
            options.absolute_tolerance or 0.0,
            options.tuples_are_lists,
            options.list_order,
            options.nan_equal,
        )


def form_of(value: JsonValue) -> Form:
    """Return the plain-data form of JSON in which `{"$tuple": […]}` and the like stand for what JSON lacks.

    Objects become the form `object`, a dictionary whose keys, other than in JSON, may also be the numbers so spelled.

    Raises:
        BadValueError: a tag's content is not what the tag asks for, or the value is nested more than 100 deep.
    """
    return _form_of(value, 0)


def _form_of(value: JsonValue, depth: int) -> Form:
    if depth > _MAX_DEPTH:
        raise BadValueError(f"nested more than {_MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_form_of(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if len(value) == 1:
            ((tag, body),) = value.items()
            if tag in _TAGS:
                return _TAGS[tag](body, depth + 1)
        return {"object": [[_text_form(key), _form_of(item, depth + 1)] for key, item in value.items()]}
    if isinstance(value, str):
        return _text_form(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -_SMALL < value < _SMALL:
        return {"int": hex(value)}
    return value


def _text_form(text: str) -> Form:
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"str": text.encode("utf-32-le", "surrogatepass").hex()}
    return text


def _items_tag(tag: str) -> Callable[[JsonValue, int], Form]:
    def build(body: JsonValue, depth: int) -> Form:
        if not isinstance(body, list):
            raise BadValueError(f"${tag} needs a list")
        return {tag: [_form_of(item, depth) for item in body]}

    return build


def _dict_tag(body: JsonValue, depth: int) -> Form:
    pairs = []
    for pair in body if isinstance(body, list) else [None]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise BadValueError("$dict needs a list of pairs")
        pairs.append([_form_of(part, depth) for part in pair])
    return {"dict": pairs}


def _float_tag(body: JsonValue, _depth: int) -> Form:
    if not isinstance(body, str) or body not in _FLOATS:
        raise BadValueError("$float needs one of 'nan', 'inf', '-inf'")
    return _FLOATS[body]


def _bytes_tag(body: JsonValue, _depth: int) -> Form:
    try:
        return {"bytes": bytes.fromhex(body if isinstance(body, str) else "-").hex()}
    except ValueError:
        raise BadValueError("$bytes needs hexadecimal digits") from None


_TAGS: dict[str, Callable[[JsonValue, int], Form]] = {
    "$tuple": _items_tag("tuple"),
    "$set": _items_tag("set"),
    "$dict": _dict_tag,
    "$float": _float_tag,
    "$bytes": _bytes_tag,
}


def same_value(got: Form, wanted: Form, rules: ValueRules) -> bool:
    """Whether a returned value equals the expected one.

    A bool is no number; an int equals a float only exactly, unless the expected one is the float.

    Raises:
        TooDeepError: the returned value is nested too deep to tell.
    """
    try:
        return _same(got, wanted, rules, 0)
    except RecursionError:  # what nothing expected has may be nested deeper than anything that is compared
        raise TooDeepError from None


def _same(got: Form, wanted: Form, rules: ValueRules, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        raise TooDeepError
    if wanted is None or isinstance(wanted, bool):
        return got is wanted
    number = _number(wanted)
    if number is not None:
        found = _number(got)
        return found is not None and _same_number(found, number, rules)
    wanted_items = _items(wanted)
    if wanted_items is not None:
        return _same_items(got, wanted, wanted_items, rules, depth)
    tag = _tag(wanted)
    if tag in _DICTS:
        return _same_dict(got, wanted[tag], rules, depth, spelled=tag == "object")
    return type(got) is type(wanted) and bool(got == wanted)  # texts and bytes


def _same_items(got: Form, wanted: Form, wanted_items: list[Form], rules: ValueRules, depth: int) -> bool:
    got_items = _items(got)
    if got_items is None or len(got_items) != len(wanted_items):
        return False
    got_kind, wanted_kind = _kind(got), _kind(wanted)
    free = rules.list_order == "any" or (rules.list_order == "outer" and depth == 0)
    if wanted_kind == "set" or (free and wanted_kind == "list" and got_kind == "set"):
        return got_kind == "set" and _same_unordered(got_items, wanted_items, rules, depth)
    if got_kind != wanted_kind and ("set" in (got_kind, wanted_kind) or not rules.tuples_are_lists):
        return False
    if free:
        return _same_unordered(got_items, wanted_items, rules, depth)
    return all(_same(g, w, rules, depth + 1) for g, w in zip(got_items, wanted_items, strict=True))


def _same_unordered(got: list[Form], wanted: list[Form], rules: ValueRules, depth: int) -> bool:
    """Whether the items can be paired so that all pairs are equal."""
    got, wanted = (sorted(items, key=_sort_key) for items in (got, wanted))
    if all(_same(g, w, rules, depth + 1) for g, w in zip(got, wanted, strict=True)):
        return True
    # Tolerances, order inside the items and keys that are spelled numbers can sort equal items apart.
    return len(got) <= _MOST_MATCHED and _can_be_paired(
        [[place for place, g in enumerate(got) if _same(g, w, rules, depth + 1)] for w in wanted]
    )


def _can_be_paired(choices: list[list[int]]) -> bool:
    """Whether each can have one of its choices for itself (Kuhn's augmenting paths)."""
    owner: dict[int, int] = {}

    def place(who: int, tried: set[int]) -> bool:
        for choice in choices[who]:
            if choice not in tried:
                tried.add(choice)
                if choice not in owner or place(owner[choice], tried):
                    owner[choice] = who
                    return True
        return False

    return all(place(who, set()) for who in range(len(choices)))


def _same_dict(got: Form, wanted: list[Form], rules: ValueRules, depth: int, *, spelled: bool) -> bool:
    tag = _tag(got)
    body = got[tag] if tag in _DICTS and tag != "object" else None
    if tag == "default":
        body = body[1] if type(body) is list and len(body) == 2 else None
    pairs = _pairs(body)
    if pairs is None or len(pairs) != len(wanted):
        return False
    by_key: dict[Any, Form] = {}
    for key, value in pairs:
        by_key[_key(key, spelled=spelled)] = value
    if len(by_key) != len(wanted):
        return False
    for key, value in wanted:
        own = _key(key, spelled=spelled)
        if own not in by_key or not _same(by_key[own], value, rules, depth + 1):
            return False
    return True


def _pairs(body: Any) -> list[tuple[Form, Form]] | None:
    if type(body) is not list or not all(type(pair) is list and len(pair) == 2 for pair in body):
        return None
    return [(key, value) for key, value in body]


def _key(form: Form, *, spelled: bool) -> Any:
    """Return what a key is looked up by. JSON's keys are texts: a number is looked up as it is spelled."""
    if spelled:
        return form if type(form) is str else json.dumps(form)
    return _sort_key(form)


def _tag(form: Form) -> str | None:
    return next(iter(form)) if type(form) is dict and len(form) == 1 else None


def _items(form: Form) -> list[Form] | None:
    """Return the items of a list, tuple or set."""
    if type(form) is list:
        return form
    tag = _tag(form)
    if tag not in _LISTS:
        return None
    body = form[tag]
    if tag == "namedtuple":
        body = body[2] if type(body) is list and len(body) == 3 else None
    return body if type(body) is list else None


def _kind(form: Form) -> str:
    if type(form) is list:
        return "list"
    return "set" if _tag(form) in ("set", "frozenset") else "tuple"


def _number(form: Form) -> int | float | None:
    if type(form) in (int, float):
        return form  # type: ignore[no-any-return]
    if _tag(form) == "int" and type(form["int"]) is str:
        try:
            return int(form["int"], 16)
        except ValueError:
            return None
    return None


def _same_number(got: float, wanted: float, rules: ValueRules) -> bool:
    if got != got or wanted != wanted:  # noqa: PLR0124 - NaN
        return rules.nan_equal and got != got and wanted != wanted  # noqa: PLR0124
    if got == wanted or isinstance(wanted, int):
        return got == wanted
    try:
        return math.isclose(got, wanted, rel_tol=rules.relative_tolerance, abs_tol=rules.absolute_tolerance)
    except OverflowError:  # an int beyond all floats
        return False


def _sort_key(form: Form, depth: int = 0) -> Any:
    """Return what orders forms of all kinds; equal numbers and the same items give the same key."""
    if depth > _MAX_DEPTH:
        raise TooDeepError
    if form is None or isinstance(form, bool):
        return (0, (form is not None) + bool(form))
    number = _number(form)
    if number is not None:
        return (1, -math.inf, 0) if number != number else (1, number, 1)  # noqa: PLR0124
    if isinstance(form, str):
        return (2, form)
    items = _items(form)
    if items is not None:
        keys = [_sort_key(item, depth + 1) for item in items]
        return (3, tuple(sorted(keys) if _kind(form) == "set" else keys))
    tag = _tag(form)
    pairs = _pairs(form[tag]) if tag in ("dict", "object") else None
    if pairs is not None:
        return (4, tuple(sorted((_sort_key(key, depth + 1), _sort_key(value, depth + 1)) for key, value in pairs)))
    return (5, json.dumps(form, sort_keys=True))


def shown_value(form: Form) -> str:
    """Return the form as short text that looks like Python."""
    return _cut(_spell(form, 0))


def shown_arguments(args: Sequence[Form], kwargs: dict[str, Form]) -> str:
    """Return the arguments of a call as short text."""
    return _cut(", ".join([*(_spell(a, 0) for a in args), *(f"{name}={_spell(a, 0)}" for name, a in kwargs.items())]))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS // 2]} … {text[-_SHOWN_CHARS // 2 :]}"


def _spell(form: Form, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return "…"
    number = _number(form)
    if number is not None:
        return hex(number) if isinstance(number, int) and abs(number) > _SMALL else repr(number)
    items = _items(form)
    if items is not None:
        left, right = {"list": ("[", "]"), "tuple": ("(", ")"), "set": ("{", "}")}[_kind(form)]
        inner = ", ".join(_spell(item, depth + 1) for item in items[:50]) + (", …" if len(items) > 50 else "")
        return f"{left}{inner}{',' if left == '(' and len(items) == 1 else ''}{right}"
    tag = _tag(form)
    pairs = _pairs(form[tag]) if tag in ("dict", "object") else None
    if pairs is not None:
        return f"{{{', '.join(f'{_spell(key, depth + 1)}: {_spell(value, depth + 1)}' for key, value in pairs[:50])}}}"
    if type(form) is dict:
        body = form.get(tag or "")
        return f"{tag}({body[:_SHOWN_CHARS] if isinstance(body, str) else '…'})"
    return repr(form[:_SHOWN_CHARS] if type(form) is str else form)
