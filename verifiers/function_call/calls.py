"""Reads calls of tools from a completion, in any of the ways that models write them. Inside sandboxes only."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from verifiers.structured.json_text import NoJson, decode, fenced, tagged

MAX_CALLS = 256

_TAG_OPEN, _TAG_CLOSE = "<tool_call>", "</tool_call>"
_MARKS = ("[TOOL_CALLS]", "<|python_tag|>")
_TRACES = re.compile(
    r"</?tool_calls?\b|<function[=\s>]|\[TOOL_CALLS\]|<\|python_tag\|>|\"(?:tool_calls|arguments)\"\s{0,9}:"
)
"""What nobody writes who calls nothing."""
_JSON_CALL_START = re.compile(r"\s*(?:\[\s*)?\{\s*\"(?:name|function|tool)\"")
"""What starts like the JSON of a call; only where it is no JSON, since much else has a name."""
_PYTHON_START = re.compile(r"\s*(?:\[\s*)?[A-Za-z_][\w.]*\(")
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,199}")


class Malformed(Exception):
    """There is something like a call that cannot be read; the message says why."""


class _Unreadable(Exception):
    """A text cannot be read in some syntax, which is no fault unless something in it looks like a call."""


@dataclass(frozen=True)
class Call:
    """One call."""

    name: str
    arguments: dict[str, Any]


def read_calls(text: str, syntax: str, names: set[str], answer_tag: str) -> list[Call]:
    """Return the calls of a completion, none where nothing looks like one.

    Args:
        text: what follows the reasoning.
        syntax: `auto`, `openai`, `tags`, `python` or `json`.
        names: those of the tools.
        answer_tag: name of the tag that may stand around the answer.

    Raises:
        Malformed: something looks like a call, but is none.
    """
    try:
        calls = _auto(text, answer_tag) if syntax == "auto" else _SYNTAXES[syntax](text)
        problem = None
    except _Unreadable as unreadable:
        calls, problem = None, str(unreadable)
    if calls is None:
        trace = _trace_of_a_call(text, names)
        if trace is None and problem is not None and (begun := _JSON_CALL_START.match(text)):
            trace = begun[0].strip()
        if trace is not None:
            raise Malformed(f"{trace!r} looks like a call, but " + (problem or "there is none that can be read"))
        return []
    if len(calls) > MAX_CALLS:
        raise Malformed(f"{len(calls)} calls are more than {MAX_CALLS}")
    return calls


def _auto(text: str, answer_tag: str) -> list[Call] | None:
    """Read the first that is there: JSON, tags, Python; bare, in an answer tag, or in a fenced block."""
    inner = tagged(text, answer_tag)
    block = fenced(text if inner is None else inner, ("json", "python", "tool_code", "tool_call", ""))
    problem: _Unreadable | None = None
    for part in (text, inner, block):
        try:
            calls = None if part is None else _bare(part)
        except _Unreadable as unreadable:
            problem = problem or unreadable
            continue
        if calls is not None:
            return calls
    if problem is not None:
        raise problem
    return None


def _bare(text: str) -> list[Call] | None:
    problem: _Unreadable | None = None
    text = _without_mark(text)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _json_calls(_decoded(text))
        except _Unreadable as unreadable:
            problem = unreadable
    if _TAG_OPEN in text:
        return _tags(text)
    if _PYTHON_START.match(text):
        return _python(text)
    if problem is not None:
        raise problem
    return None


def _openai(text: str) -> list[Call] | None:
    value = _decoded(_json_part(text))
    is_message = isinstance(value, dict) and "tool_calls" in value
    return _json_calls(value) if is_message or isinstance(value, list) else None


def _json(text: str) -> list[Call] | None:
    value = _decoded(_json_part(text))
    is_message = isinstance(value, dict) and "tool_calls" in value
    return None if is_message else _json_calls(value)


def _json_part(text: str) -> str:
    """Return the text, or its fenced block where it does not start like JSON."""
    text = _without_mark(text)
    block = None if text.lstrip()[:1] in ("{", "[") else fenced(text, ("json", ""))
    return text if block is None else block


def _without_mark(text: str) -> str:
    """Return the text without the mark that Mistral's and Llama's models put before their calls."""
    stripped = text.lstrip()
    mark = next((mark for mark in _MARKS if stripped.startswith(mark)), "")
    return stripped[len(mark) :] if mark else text


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except NoJson as problem:
        raise _Unreadable(problem.problem or problem.reason) from None


def _json_calls(value: Any) -> list[Call] | None:
    """Return the calls that a JSON value is; None where it is none."""
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    elif isinstance(value, dict) and "tool_calls" in value and value["tool_calls"] is None:
        return []
    entries = value if isinstance(value, list) else [value]
    if not any(map(_looks_like_a_call, entries)):
        return [] if value == [] else None
    return [_json_call(entry) for entry in entries]


def _looks_like_a_call(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    if isinstance(entry.get("function"), dict):
        return True
    return isinstance(entry.get("name"), str) and any(key in entry for key in _argument_keys(entry))


def _argument_keys(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys under which arguments may stand; Anthropic's `tool_use` has `input`."""
    return ("input",) if entry.get("type") == "tool_use" else ("arguments", "parameters")


def _json_call(entry: Any) -> Call:
    if not _looks_like_a_call(entry):
        raise Malformed("an entry of the list is no call")
    function = entry["function"] if isinstance(entry.get("function"), dict) else entry
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise Malformed("a call has no name")
    given = [function[key] for key in _argument_keys(function) if key in function]
    if len(given) > 1:
        raise Malformed(f"the call of {name[:100]} has arguments twice")
    arguments = given[0] if given else {}
    if isinstance(arguments, str):
        arguments = _decoded_arguments(name, arguments)
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise Malformed(f"the arguments of {name[:100]} are no object")
    return Call(name, arguments)


def _decoded_arguments(name: str, text: str) -> Any:
    """Return arguments that are written as JSON in a string, as OpenAI's interface has them; empty means none."""
    if not text.strip():
        return {}
    try:
        return decode(text)
    except NoJson as problem:
        raise Malformed(f"the arguments of {name[:100]}: {problem.problem or problem.reason}") from None


def _tags(text: str) -> list[Call] | None:
    """Read `<tool_call>` tags of Hermes and Qwen; text around them is no call."""
    calls: list[Call] = []
    position = 0
    while (start := text.find(_TAG_OPEN, position)) >= 0:
        end = text.find(_TAG_CLOSE, start)
        if end < 0:
            raise Malformed(f"{_TAG_OPEN} is never closed")
        try:
            value = decode(text[start + len(_TAG_OPEN) : end])
        except NoJson as problem:
            raise Malformed(problem.problem or problem.reason) from None
        inner = _json_calls(value)
        if not inner:
            raise Malformed(f"what {_TAG_OPEN} holds is no call")
        calls += inner
        if len(calls) > MAX_CALLS:
            break
        position = end + len(_TAG_CLOSE)
    return calls or None


def _python(text: str) -> list[Call] | None:
    """Read calls in Python's syntax: one a line, or a list of them."""
    if not _PYTHON_START.match(text):
        block = fenced(text, ("python", "tool_code", ""))
        if block is None or not _PYTHON_START.match(block):
            return None
        text = block
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError) as problem:
        raise _Unreadable(f"it is no Python ({problem.msg if isinstance(problem, SyntaxError) else problem})") from None
    return [_python_call(node) for statement in tree.body for node in _called(statement)]


def _called(statement: ast.stmt) -> Iterator[ast.Call]:
    value = statement.value if isinstance(statement, ast.Expr) else None
    for node in value.elts if isinstance(value, ast.List) else [value]:
        if not isinstance(node, ast.Call):
            raise Malformed("beside calls there is other code")
        yield node


def _python_call(node: ast.Call) -> Call:
    name = _dotted(node.func)
    if node.args:
        raise Malformed(f"{name[:100]} is called with arguments that are not named")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise Malformed(f"{name[:100]} is called with ** arguments")
        if keyword.arg in arguments:  # which only Python's compiler refuses, not its parser
            raise Malformed(f"{name[:100]} is called with {keyword.arg[:100]} twice")
        arguments[keyword.arg] = _literal(keyword.value)
    return Call(name, arguments)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise Malformed("what is called is no name")
    return ".".join([node.id, *reversed(parts)])


def _literal(node: ast.expr) -> Any:
    """Return the JSON value of a literal; a tuple is a list."""
    match node:
        case ast.Constant(value=str(text)):
            return _text(text)
        case ast.Constant(value=None | bool() | int() | float()):
            return node.value
        case ast.List() | ast.Tuple():
            return [_literal(inner) for inner in node.elts]
        case ast.Dict():
            keys = list(map(_key, node.keys))
            if len(set(keys)) < len(keys):
                raise Malformed("a dictionary has a key twice")
            return dict(zip(keys, map(_literal, node.values), strict=True))
        case ast.UnaryOp(op=sign, operand=ast.Constant(value=int(number) | float(number))) if number is not True:
            if isinstance(sign, ast.USub | ast.UAdd) and number is not False:
                return -number if isinstance(sign, ast.USub) else number
    raise Malformed("an argument is no literal value")


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _text(node.value)
    raise Malformed("a key of a dictionary is no string")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Malformed("an escape of half a surrogate pair is no text") from None
    return value


_SYNTAXES = {"openai": _openai, "tags": _tags, "python": _python, "json": _json}


def _trace_of_a_call(text: str, names: set[str]) -> str | None:
    """Return what in a text looks like the start of a call, or of a broken one."""
    trace = _TRACES.search(text)
    if trace is not None:
        return trace[0]
    for match in _NAME.finditer(text):
        name = match[0]
        if name in names:
            before, after = text[max(0, match.start() - 12) : match.start()], text[match.end() : match.end() + 2]
            if after[:1] == "(" or (after[:1] == '"' and re.search(r'"name"\s{0,3}:\s{0,3}"$', before)):
                return name
    return None
