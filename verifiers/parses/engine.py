"""Parses texts in several languages, without running anything of them. Runs inside sandboxes only."""

import ast
import csv
import io
import logging
import tomllib
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from xml.parsers import expat

import lark
import sqlglot
import sqlglot.errors
import yaml
from sqlglot import expressions

from verifiers.regex.engine import PROBES
from verifiers.structured.json_text import NoJson, decode, fenced, is_fence_open, tagged

_SHOWN_CHARACTERS = 200

_LABELS: dict[str, tuple[str, ...]] = {
    "json": ("json",),
    "yaml": ("yaml", "yml"),
    "toml": ("toml",),
    "xml": ("xml", "html", "svg"),
    "python": ("python", "py", "python3"),
    "sql": ("sql", "sqlite", "duckdb", "postgres", "postgresql", "mysql"),
    "csv": ("csv", "tsv"),
    "lark": (),
}

_STATEMENTS = (
    expressions.Query,
    expressions.Insert,
    expressions.Update,
    expressions.Delete,
    expressions.Merge,
    expressions.Create,
    expressions.Drop,
    expressions.Alter,
    expressions.TruncateTable,
)

_ODD_FAILURES = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""How parsers fail on what they did not foresee: `!!int` without a number is an IndexError of PyYAML."""

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class NotParsed(Exception):
    """The text does not parse, or says nothing."""

    def __init__(self, reason: str, problem: str) -> None:
        """Take the reason, a short code, and what is wrong, for people."""
        super().__init__(problem)
        self.reason = reason
        self.problem = problem


class BadLanguage(Exception):
    """The language cannot be used; the message says why."""


_Parse = Callable[[str], None]


def check(argument: dict[str, Any]) -> list[dict[str, Any]]:
    """Parse texts.

    Args:
        argument: `specs`, each a `Language` as JSON; and `items`, pairs of a spec's position and what is parsed: `text`
            (None: the reasoning never ended), `extract`, `answer_tag`; or `probe`: True, which tries the spec alone.

    Returns:
        For each item `bad_reference` (why), or `score`, `reason`, and where it does not parse `problem`.
    """
    ready: dict[int, _Parse | str] = {}
    results = []
    for place, what in argument["items"]:
        spec = argument["specs"][place]
        if place not in ready:
            ready[place] = _ready(spec)
        parse = ready[place]
        results.append({"bad_reference": parse} if isinstance(parse, str) else _judge(parse, spec, what))
    return results


def _ready(spec: dict[str, Any]) -> "_Parse | str":
    if spec["language"] != "lark":
        return lambda text: _PARSERS[spec["language"]](text, spec)
    try:
        return _lark(spec)
    except BadLanguage as problem:
        return str(problem)[:1000]


def _judge(parse: _Parse, spec: dict[str, Any], what: dict[str, Any]) -> dict[str, Any]:
    if what.get("probe"):
        return {"score": 0.0, "reason": "probed"}
    if what["text"] is None:
        return {"score": 0.0, "reason": "no_answer", "problem": "unfinished_reasoning"}
    try:
        text = _extract(what["text"], what["extract"], what["answer_tag"], spec["language"])
        if not text.strip():
            raise NotParsed("no_answer", "empty")
        parse(text)
    except NotParsed as problem:
        return {"score": 0.0, "reason": problem.reason, "problem": problem.problem[:_SHOWN_CHARACTERS]}
    return {"score": 1.0, "reason": "parsed"}


def _extract(text: str, extract: str, answer_tag: str, language: str) -> str:
    """Return the text that is parsed."""
    if extract == "whole" or (extract == "auto" and language == "xml" and _is_document(text, answer_tag)):
        return text
    inner = tagged(text, answer_tag) if extract != "fence" else None
    if inner is None and extract != "fence" and f"<{answer_tag}>" in text:
        raise NotParsed("no_answer", "unclosed")
    if extract == "answer_tag":
        if inner is None:
            raise NotParsed("no_answer", "absent")
        return inner
    part = text if inner is None else inner
    labels = (*_LABELS[language], "")
    if is_fence_open(part, labels):
        raise NotParsed("no_answer", "unclosed")
    block = fenced(part, labels)
    if block is None and extract == "fence":
        raise NotParsed("no_answer", "absent")
    return part if block is None else block


def _is_document(text: str, answer_tag: str) -> bool:
    """Whether a text is XML itself, in which an answer tag is an element like any other."""
    start = text.lstrip()
    return start.startswith("<") and not start.startswith(f"<{answer_tag}>")


def _json(text: str, spec: dict[str, Any]) -> None:
    try:
        value = decode(text)
    except NoJson as problem:
        raise NotParsed("not_parsed", problem.problem or problem.reason) from None
    if not spec["scalars"] and not isinstance(value, dict | list):
        raise NotParsed("trivial", "only a scalar")


def _yaml(text: str, spec: dict[str, Any]) -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.compose_all(text, Loader=loader))
        if len(documents) != 1:
            raise NotParsed("not_parsed", f"{len(documents)} documents")
        _refuse_key_twice(documents[0])
        value = yaml.load(text, Loader=loader)  # noqa: S506 (both are the safe one)
    except (yaml.YAMLError, *_ODD_FAILURES) as problem:
        raise NotParsed("not_parsed", " ".join(str(problem).split())) from None
    if not spec["scalars"] and not isinstance(value, dict | list):
        raise NotParsed("trivial", "only a scalar")


def _refuse_key_twice(root: yaml.Node) -> None:
    seen: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            merges = sum(tag == "tag:yaml.org,2002:merge" for tag, _ in keys)
            if len(set(keys)) < len(keys) - max(0, merges - 1):
                raise NotParsed("not_parsed", "a key twice in one mapping")
            pending += [part for pair in node.value for part in pair]


def _toml(text: str, _spec: dict[str, Any]) -> None:
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        raise NotParsed("not_parsed", str(problem)) from None
    if not value:
        raise NotParsed("trivial", "no key")


def _xml(text: str, spec: dict[str, Any]) -> None:
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    roots: list[str] = []

    def start(name: str, _attributes: dict[str, str]) -> None:
        if not roots:
            roots.append(name.rpartition(" ")[2])

    def refuse(*_: object) -> None:
        raise NotParsed("doctype", "a document type, which could define entities")

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text.strip().encode(), True)
    except expat.ExpatError as problem:
        raise NotParsed("not_parsed", str(problem)) from None
    if spec["root"] is not None and roots[0] != spec["root"]:
        raise NotParsed("wrong_root", f"the root is {roots[0]}")


def _python(text: str, _spec: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
            compile(text, "<answer>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as problem:
            said = problem.msg if isinstance(problem, SyntaxError) else str(problem)
            line = f" in line {problem.lineno}" if isinstance(problem, SyntaxError) and problem.lineno else ""
            raise NotParsed("not_parsed", f"{said}{line}") from None
    if all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Name | ast.Constant) for node in tree.body):
        raise NotParsed("trivial", "only names and constants, as every word is")


def _sql(text: str, spec: dict[str, Any]) -> None:
    try:
        parsed = sqlglot.parse(text, dialect=spec["dialect"])
    except (sqlglot.errors.SqlglotError, *_ODD_FAILURES) as problem:
        first = str(problem).partition("\n")[0]
        raise NotParsed("not_parsed", first) from None
    statements = [statement for statement in parsed if statement is not None]
    if not statements:
        raise NotParsed("trivial", "no statement")
    if len(statements) > 1 and not spec["several"]:
        raise NotParsed("several_statements", f"{len(statements)} statements")
    for statement in statements:
        if not isinstance(statement, _STATEMENTS):
            raise NotParsed("not_parsed", f"{type(statement).__name__} is no query and no change of data or tables")


def _csv(text: str, spec: dict[str, Any]) -> None:
    columns = spec["columns"]
    count = len(columns) if isinstance(columns, list) else columns
    rows = 0
    try:
        for number, row in enumerate(_rows(text.strip("\r\n"), spec["delimiter"])):
            if len(row) != count:
                raise NotParsed("wrong_columns", f"row {number + 1} has {len(row)} columns, not {count}")
            if number == 0 and isinstance(columns, list) and [name.strip() for name in row] != columns:
                raise NotParsed("wrong_columns", "the first row does not hold the names of the columns")
            rows += 1
    except csv.Error as problem:
        raise NotParsed("not_parsed", str(problem)) from None
    if rows - isinstance(columns, list) < spec["min_rows"]:
        raise NotParsed("too_few_rows", f"fewer than {spec['min_rows']} rows")


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(1 << 30)
    yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _lark(spec: dict[str, Any]) -> _Parse:
    """Return the parser of a grammar."""
    try:
        grammar = lark.Lark(spec["grammar"], start=spec["start"], parser=spec["parser"])
    except (lark.exceptions.LarkError, RecursionError, ValueError, KeyError, AttributeError, OSError) as problem:
        raise BadLanguage(f"the grammar cannot be used: {' '.join(str(problem).split())[:300]}") from None

    def parse(text: str) -> None:
        try:
            grammar.parse(text)
        except (lark.exceptions.LarkError, RecursionError) as problem:
            raise NotParsed("not_parsed", " ".join(str(problem).split())) from None

    if all(_accepts(parse, text) for text in PROBES):
        raise BadLanguage("the grammar accepts every text, so nothing would be checked")
    return lambda text: parse(text.strip("\n") if text.startswith("\n") or text.endswith("\n") else text)


def _accepts(parse: _Parse, text: str) -> bool:
    try:
        parse(text)
    except NotParsed:
        return False
    return True


_PARSERS: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "json": _json,
    "yaml": _yaml,
    "toml": _toml,
    "xml": _xml,
    "python": _python,
    "sql": _sql,
    "csv": _csv,
}
