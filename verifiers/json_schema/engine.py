"""Checks JSON against schemas. Runs inside sandboxes only.

Drafts 4 to 2020-12 are checked by jsonschema-rs, draft 3, and values that hold a NaN, by jsonschema.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar

import jsonschema
import jsonschema_rs
import referencing
import referencing.exceptions
from jsonschema_specifications import REGISTRY as SPECIFICATIONS  # type: ignore[import-untyped]
from referencing import jsonschema as specifications

from verifiers.json_schema.eager import pattern_python_refuses, unresolved_in_draft_3
from verifiers.json_schema.expansion import Unbounded, check_expansion
from verifiers.structured.json_text import Found, NoJson, Strictness, equal, find, holds, is_decimal, is_no_finite

_SHOWN_ERRORS = 5
_SHOWN_CHARACTERS = 200
_COUNTED_ERRORS = 1000

_ANNOTATIONS = {
    *("$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary"),
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
}
"""Keywords that refuse nothing."""

# The child's CPU time bounds patterns: a bound of the engine's own would be a silent "no match", within `not` a match.
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=1 << 48)

_TRIVIAL: tuple[Any, ...] = (None, True, 0, "", [], {})

_FAST: dict[str, type[jsonschema_rs.Validator]] = {
    "4": jsonschema_rs.Draft4Validator,
    "6": jsonschema_rs.Draft6Validator,
    "7": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}
_PLAIN: dict[str, Any] = {
    "3": jsonschema.Draft3Validator,
    "4": jsonschema.Draft4Validator,
    "6": jsonschema.Draft6Validator,
    "7": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "2020-12": jsonschema.Draft202012Validator,
}
_SPECIFICATIONS: dict[str, Any] = {
    "3": specifications.DRAFT3,
    "4": specifications.DRAFT4,
    "6": specifications.DRAFT6,
    "7": specifications.DRAFT7,
    "2019-09": specifications.DRAFT201909,
    "2020-12": specifications.DRAFT202012,
}
_DRAFTS = {
    "json-schema.org/draft-03/schema": "3",
    "json-schema.org/draft-04/schema": "4",
    "json-schema.org/draft-06/schema": "6",
    "json-schema.org/draft-07/schema": "7",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft/2020-12/schema": "2020-12",
}


class BadSchema(Exception):
    """The schema cannot be used; the message says why."""


@dataclass(frozen=True)
class _Error:
    """One thing that is wrong with a value."""

    path: tuple[str | int, ...]
    keyword: str
    message: str
    is_root_required: bool
    """A property that the schema itself requires is missing."""

    @property
    def pointer(self) -> str:
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


def check(argument: dict[str, Any]) -> list[dict[str, Any]]:
    """Check texts against schemas.

    Args:
        argument: `specs`, each with `schema`, `schemas`, `accepted` (list or None), `draft`, `check_formats`,
            `scoring`; and `items`, pairs of a spec's position and what is checked: `text` (None: the reasoning never
            ended), `extract`, `answer_tag`, `strictness`; or `probe`: True, which tries the spec alone.

    Returns:
        For each item `bad_reference` (why), or `score` and `reason`, and where a value was found `start`, `end`,
        `source`; where it is wrong, `errors` or `problem`.
    """
    compiled: dict[int, Schema | str] = {}
    results = []
    for place, what in argument["items"]:
        if place not in compiled:
            compiled[place] = _compiled(argument["specs"][place])
        schema = compiled[place]
        results.append({"bad_reference": schema} if isinstance(schema, str) else _check_text(schema, what))
    return results


def _compiled(spec: dict[str, Any]) -> "Schema | str":
    try:
        return Schema(spec)
    except BadSchema as problem:
        return str(problem)[:1000]
    except referencing.exceptions.Unresolvable as problem:
        return _unresolvable(str(problem.ref))


def _check_text(schema: "Schema", what: dict[str, Any]) -> dict[str, Any]:
    if what.get("probe"):
        schema.probe()
        return {"score": 0.0, "reason": "probed"}
    if what["text"] is None:
        return {"score": 0.0, "reason": "no_answer", "problem": "unfinished_reasoning"}
    try:
        found = find(what["text"], what["extract"], what["answer_tag"], Strictness(**what["strictness"]))
    except NoJson as problem:
        return {"score": 0.0, "reason": problem.reason, "problem": problem.problem}
    try:
        return schema.judge(found, may_hold_nan=what["strictness"]["nan"]) | {
            "start": found.start,
            "end": found.end,
            "source": found.source,
        }
    except referencing.exceptions.Unresolvable as problem:  # draft 3 looks references up when it needs them
        return {"bad_reference": _unresolvable(str(problem.ref))}
    except OverflowError:  # of jsonschema, which divides integers as floats
        return {"score": 0.0, "reason": "number_too_large", "problem": "beyond the range of floats"}


class _Formats(jsonschema.FormatChecker):
    """Checks formats as jsonschema-rs does, but for two that only draft 3 has."""

    _OLD_NAMES: ClassVar[dict[str, str]] = {"ip-address": "ipv4", "host-name": "hostname"}
    _DRAFT_3: ClassVar[tuple[str, ...]] = ("color", "time")

    def __init__(self, draft: str) -> None:
        super().__init__()
        self._draft = draft

    def check(self, instance: object, format: str) -> None:
        if self._draft == "3" and format in self._DRAFT_3:
            jsonschema.Draft3Validator.FORMAT_CHECKER.check(instance, format)
        elif isinstance(instance, str) and not _format(self._OLD_NAMES.get(format, format)).is_valid(instance):
            raise jsonschema.FormatError(f"{instance!r} is not a {format!r}")


@lru_cache(maxsize=100)
def _format(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)


class Schema:
    """A schema that is ready to check values."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Take a spec as `check` has it.

        Raises:
            BadSchema: it cannot be used.
        """
        self._schema = spec["schema"]
        self._schemas: dict[str, Any] = spec["schemas"]
        self._accepted: list[Any] | None = spec["accepted"]
        self._formats: bool = spec["check_formats"]
        self._draft = self._draft_of(spec["draft"])
        self._check_sense()
        self._is_valid, self._errors = self._engine()
        self._required = self._required_properties() if spec["scoring"] == "required" else None
        self._check_accepted()

    def judge(self, found: Found, *, may_hold_nan: bool) -> dict[str, Any]:
        """Return `score`, `reason` and, where it is wrong, `errors`."""
        value = found.value
        has_nan = may_hold_nan and holds(value, is_no_finite)
        if (has_nan or self._draft == "3") and holds(value, is_decimal):
            return {"score": 0.0, "reason": "number_too_large", "problem": "beyond the range of floats"}
        try:
            is_valid, errors = self._plain() if has_nan else (self._is_valid, self._errors)
        except BadSchema as problem:  # of the engine for values with a NaN only: it is not the schema's fault
            return {"score": 0.0, "reason": "not_a_number", "problem": f"beside a NaN: {problem}"[:_SHOWN_CHARACTERS]}
        if is_valid(value):
            if self._accepted is None or any(equal(value, accepted) for accepted in self._accepted):
                return {"score": 1.0, "reason": "valid" if self._accepted is None else "equal"}
            return {"score": self._share(value, ()), "reason": "different"}
        wrong = sorted(islice(errors(value), _COUNTED_ERRORS), key=lambda error: (error.pointer, error.keyword))
        shown = [
            {"path": error.pointer[:_SHOWN_CHARACTERS], "keyword": error.keyword, "message": _cut(error.message)}
            for error in wrong[:_SHOWN_ERRORS]
        ]
        score = self._share(value, errors(value)) if self._required is not None else 0.0
        return {"score": score, "reason": "invalid", "errors": shown, "error_count": len(wrong)}

    def probe(self) -> None:
        """Check values that nobody could object to, to see what the schema alone costs."""
        for value in (*_TRIVIAL, *(self._accepted or ())):
            self._is_valid(value)

    def _draft_of(self, asked: str) -> str:
        """Return the draft, `custom` where the schema names a meta-schema of the bundle."""
        if asked != "auto":
            return asked
        named = self._schema.get("$schema") if isinstance(self._schema, dict) else None
        if named is None:
            return "2020-12"
        if not isinstance(named, str):
            raise BadSchema("$schema is not a string")
        known = _DRAFTS.get(named.rstrip("#").partition("://")[2])
        if known is not None:
            return known
        if named.rstrip("#") in self._schemas or named in self._schemas:
            return "custom"
        raise BadSchema(
            f"$schema names no draft that is known here ({_cut(named)}); give `options.draft`, "
            "or put the meta-schema into `schemas`"
        )

    def _check_sense(self) -> None:
        if self._accepted is None and not self._refuses_something():
            raise BadSchema("it accepts every value, so nothing would be checked")
        try:
            check_expansion(self._schema, siblings_of_ref=self._draft not in ("3", "4", "6", "7"))
        except Unbounded as problem:
            raise BadSchema(str(problem)) from None

    def _check_accepted(self) -> None:
        for position, accepted in enumerate(self._accepted or ()):
            if not self._is_valid(accepted):
                message = next(self._errors(accepted)).message
                raise BadSchema(f"accepted[{position}] does not satisfy it: {_cut(message)}")

    def _refuses_something(self) -> bool:
        if not isinstance(self._schema, dict):
            return not self._schema
        return not self._schema.keys() <= _ANNOTATIONS

    def _engine(self) -> "tuple[Callable[[Any], bool], Callable[[Any], Iterator[_Error]]]":
        return self._plain() if self._draft == "3" else self._fast()

    def _fast(self) -> "tuple[Callable[[Any], bool], Callable[[Any], Iterator[_Error]]]":
        build = jsonschema_rs.validator_for if self._draft == "custom" else _FAST[self._draft]
        try:
            validator = build(
                self._schema,
                validate_formats=self._formats,
                retriever=self._retrieve,
                registry=self._registry_of_meta_schemas(),
                pattern_options=_PATTERNS,
            )
        except (ValueError, jsonschema_rs.ReferencingError) as problem:
            raise BadSchema(_explained(str(getattr(problem, "message", problem)))) from None

        def errors(value: Any) -> Iterator[_Error]:
            for error in validator.iter_errors(value):
                path = tuple(error.instance_path)
                yield _Error(path, error.kind.name, error.message, list(error.schema_path) == ["required"])

        return validator.is_valid, errors

    def _plain(self) -> "tuple[Callable[[Any], bool], Callable[[Any], Iterator[_Error]]]":
        draft = self._draft if self._draft in _PLAIN else "2020-12"
        kind = _PLAIN[draft]
        try:
            kind.check_schema(self._schema)
        except jsonschema.SchemaError as problem:
            raise BadSchema(f"it is no valid schema of draft {draft}: {_cut(problem.message)}") from None
        pattern = pattern_python_refuses(self._schema, *self._schemas.values())
        if pattern is not None:
            raise BadSchema(f"{_cut(pattern)!r} is no pattern of Python, whose engine checks this")
        resources = [(uri, _resource(schema, draft)) for uri, schema in self._schemas.items()]
        own = referencing.Registry(retrieve=_refuse).with_resources(resources)  # type: ignore[call-arg]
        registry = SPECIFICATIONS.combine(own)
        unresolved = unresolved_in_draft_3(self._schema, registry) if draft == "3" else None
        if unresolved is not None:
            raise BadSchema(_unresolvable(unresolved))
        validator = kind(
            self._schema,
            registry=registry,
            format_checker=_Formats(draft) if self._formats else None,
        )

        def errors(value: Any) -> Iterator[_Error]:
            for error in validator.iter_errors(value):
                path, keyword = tuple(error.absolute_path), str(error.validator)
                if draft == "3" and keyword == "required":
                    path = path[:-1]  # which is the keyword there
                place = list(error.absolute_schema_path)
                is_required = place == ["required"] or (draft == "3" and place[::2] == ["properties", "required"])
                yield _Error(path, keyword, error.message, is_required)

        return validator.is_valid, errors

    def _retrieve(self, uri: str) -> Any:
        bare = uri.partition("#")[0]
        for name in (uri, bare, bare + "#"):
            if name in self._schemas:
                return self._schemas[name]
        raise LookupError(uri)

    def _registry_of_meta_schemas(self) -> jsonschema_rs.Registry | None:
        """Return those schemas of the bundle that others name as their `$schema`: only from there they are read."""
        documents = [self._schema, *self._schemas.values()]
        named = {str(document.get("$schema")).rstrip("#") for document in documents if isinstance(document, dict)}
        resources = [(uri, schema) for uri, schema in self._schemas.items() if uri.rstrip("#") in named]
        return jsonschema_rs.Registry(resources, retriever=self._retrieve) if resources else None

    def _required_properties(self) -> list[str]:
        required = self._schema.get("required") if isinstance(self._schema, dict) else None
        if self._draft == "3" and isinstance(self._schema, dict):
            properties = self._schema.get("properties", {})
            required = [name for name, inner in properties.items() if inner.get("required") is True]
        if not required:
            raise BadSchema("it has no `required` properties, by which `scoring` goes")
        return list(required)

    def _share(self, value: Any, errors: Iterable[_Error]) -> float:
        """Return the score of a wrong value: the share of required properties that are right, below 1."""
        if self._required is None or not isinstance(value, dict):
            return 0.0
        wrong: set[str | int] = set()
        rest_is_wrong = False
        for error in errors:  # all of them: one that is not looked at would be taken for right
            if error.path:
                wrong.add(error.path[0])
            elif not error.is_root_required:
                rest_is_wrong = True
        rest_is_wrong = rest_is_wrong or not wrong <= set(self._required)
        valid = [name for name in self._required if name in value and name not in wrong]
        if self._accepted is None:
            return self._ratio(len(valid), rest_is_wrong)
        return max(self._share_of_equal(value, valid, accepted, rest_is_wrong) for accepted in self._accepted)

    def _share_of_equal(self, value: dict[str, Any], valid: list[str], accepted: Any, rest_is_wrong: bool) -> float:
        """Return the share of the required properties that are valid and equal to those of an accepted value."""
        if not isinstance(accepted, dict):
            return 0.0
        assert self._required is not None
        same = [name for name in valid if name in accepted and equal(value[name], accepted[name])]
        others = (value.keys() | accepted.keys()) - set(self._required)
        is_rest_equal = all(
            name in value and name in accepted and equal(value[name], accepted[name]) for name in others
        )
        return self._ratio(len(same), rest_is_wrong or not is_rest_equal)

    def _ratio(self, right: int, rest_is_wrong: bool) -> float:
        """Return the share of required properties; what else is wrong, or must be where all are right, is one more."""
        assert self._required is not None
        return right / (len(self._required) + (rest_is_wrong or right == len(self._required)))


def _resource(schema: Any, draft: str) -> Any:
    return _SPECIFICATIONS[draft].create_resource(copy.deepcopy(schema))


def _refuse(uri: str) -> Any:
    raise referencing.exceptions.NoSuchResource(ref=uri)  # type: ignore[call-arg]


def _explained(problem: str) -> str:
    if "is not present in a registry" in problem:
        return _unresolvable(problem.partition("'")[2].partition("'")[0])
    return f"it is no valid schema: {_cut(problem)}"


def _unresolvable(uri: str) -> str:
    return f"{_cut(uri)!r} is not among the given `schemas`; nothing is ever fetched"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
