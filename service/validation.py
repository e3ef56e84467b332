"""From a request's bytes to a `GradeRequest`, or to a problem that names each wrong field as the body has it."""

import difflib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, cast

from assay.tasks import Task
from assay.wire import GradeRequest, ProblemField
from pydantic import FailFast, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails, from_json, to_json

from service.errors import MAX_FIELDS, InvalidRequest, MalformedBody

_MAX_ERRORS_LOOKED_AT = 1000
_MAX_NAME_CHARS = 64
_MAX_MESSAGE_CHARS = 500
_VALID_TASK = {"verifier": "format", "completion": ""}

_TASK: TypeAdapter[Any] = TypeAdapter(Task)


def request_parser(max_tasks: int) -> Callable[[bytes], GradeRequest]:
    """Return the function that parses and validates a body.

    It raises:
        MalformedBody: the body is not JSON in UTF-8, or too deeply nested.
        InvalidRequest: fields are wrong; each is named by its path in the body.
    """
    # Stops at the first wrong task: a body of millions of wrong ones must not become millions of error objects.
    bounded = create_model(
        "BoundedGradeRequest",
        __base__=GradeRequest,
        tasks=(Annotated[list[Task], FailFast()], Field(min_length=1, max_length=max_tasks)),
    )

    def parse(body: bytes) -> GradeRequest:
        try:
            return bounded.model_validate_json(body)
        except ValidationError as error:
            first = _details(error)
        if first[0]["type"] == "json_invalid":
            raise _malformed(body, first[0])
        raise InvalidRequest.of(_wrong_fields(body, first, max_tasks))

    return parse


def _details(error: ValidationError) -> list[ErrorDetails]:
    """Return what is wrong, up to the number that is shown.

    Raises:
        InvalidRequest: so much is wrong that looking at each would take long; none is named.
    """
    if error.error_count() > _MAX_ERRORS_LOOKED_AT:
        message = f"{error.error_count()} wrong or unknown fields; send one task first to see them named"
        raise InvalidRequest.of([ProblemField(field="body", message=message)])
    return error.errors(include_url=False, include_input=False)[:MAX_FIELDS]


def _malformed(body: bytes, error: ErrorDetails) -> MalformedBody:
    try:
        body.decode()
    except UnicodeDecodeError as bad:
        return MalformedBody(f"the body is not UTF-8: byte {bad.start} cannot be decoded ({bad.reason})")
    reason = str(error.get("ctx", {}).get("error", error["msg"]))
    if "recursion limit" in reason:
        reason = f"nested too deeply, {reason}"
    if "hex escape" in reason:
        reason += " (an escape of half a surrogate pair is not text)"
    return MalformedBody(f"the body is not valid JSON: {reason}")


def _wrong_fields(body: bytes, first: Sequence[ErrorDetails], max_tasks: int) -> list[ProblemField]:
    """Return the wrong fields of a request that is JSON, up to the number that is shown."""
    data = from_json(body)
    if not isinstance(data, dict) or not isinstance(data.get("tasks"), list):
        return _described(first)
    if len(data["tasks"]) > max_tasks:
        return [ProblemField(field="tasks", message=_too_many(len(data["tasks"]), max_tasks))]
    if not data["tasks"]:
        return _described(first)
    errors: list[ErrorDetails] = []
    try:
        GradeRequest.model_validate_json(_json({**data, "tasks": [_VALID_TASK]}))
    except ValidationError as error:
        errors += _details(error)
    for position, task in enumerate(data["tasks"]):
        if len(errors) >= MAX_FIELDS:
            break
        try:
            _TASK.validate_json(_json(task))
        except ValidationError as error:
            errors += [{**details, "loc": ("tasks", position, *details["loc"])} for details in _details(error)]
    return _described(errors or first)


def _too_many(count: int, maximum: int) -> str:
    return f"{count} tasks in one request; send at most {maximum} at a time"


def _json(value: object) -> bytes:
    return to_json(value, inf_nan_mode="constants")


def _described(errors: Sequence[ErrorDetails]) -> list[ProblemField]:
    """Return one entry per field; what a union's alternatives have against the same field is joined."""
    messages: dict[str, list[str]] = {}
    for error in errors:
        field, message = _describe(error)
        known = messages.setdefault(field, [])
        if message not in known:
            known.append(message)
    return [ProblemField(field=field, message="; or: ".join(texts)) for field, texts in messages.items()]


def _describe(error: ErrorDetails) -> tuple[str, str]:
    path, schema = _follow(error["loc"])
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            message = "required, but missing"
        case "extra_forbidden":
            message = _unknown_field(str(error["loc"][-1]), schema)
        case "union_tag_invalid":
            path = _joined(path, _unquoted(context["discriminator"]))
            message = (
                f"unknown {_unquoted(context['discriminator'])} {_cut(str(context['tag']))!r}; "
                f"known: {context['expected_tags']}"
            )
        case "union_tag_not_found":
            path = _joined(path, _unquoted(context["discriminator"]))
            known = ", ".join(repr(tag) for tag in schema.get("choices", {}))
            message = f"required, but missing; one of: {known}"
        case "too_short" if path == "tasks":
            message = "no tasks; send at least one"
        case _:
            message = error["msg"].removeprefix("Value error, ")
    return path or "body", message[:_MAX_MESSAGE_CHARS]


def _unknown_field(name: str, schema: dict[str, Any]) -> str:
    known = list(schema.get("fields", {}))
    close = difflib.get_close_matches(name[:_MAX_NAME_CHARS], known, n=1)
    if close:
        return f"unknown field; did you mean {close[0]!r}?"
    return f"unknown field; known here: {', '.join(known)}" if known else "unknown field"


def _follow(location: Sequence[int | str]) -> tuple[str, dict[str, Any]]:
    """Translate pydantic's location into the path in the body, and return the schema of the innermost object.

    Pydantic puts the names of chosen union members between the keys; the schema tells which ones those are.
    """
    root = cast("dict[str, Any]", GradeRequest.__pydantic_core_schema__)
    definitions = {entry["ref"]: entry for entry in root.get("definitions", [])}
    schema: dict[str, Any] | None = root
    path = ""
    innermost: dict[str, Any] = {}
    for step in location:
        schema = _unwrapped(schema, definitions)
        kind = schema.get("type")
        if kind == "tagged-union":
            schema = schema["choices"].get(step)
            continue
        if kind == "union":
            schema = None
            if isinstance(step, str):
                continue
        if isinstance(step, int):
            path += f"[{step}]"
            schema = schema.get("items_schema") if schema else None
            if isinstance(schema, list):  # a tuple's
                schema = schema[0]
        else:
            path = _joined(path, _cut(step))
            if schema is not None and kind == "dict":
                innermost, schema = {}, schema["values_schema"]
                continue
            innermost = schema if schema and kind == "model-fields" else {}
            schema = innermost.get("fields", {}).get(step, {}).get("schema")
    end = _unwrapped(schema, definitions)
    return path, end if end.get("type") == "tagged-union" else innermost


def _unwrapped(schema: dict[str, Any] | None, definitions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Take off what has no place in a location: defaults, nullability, models around their fields, references."""
    while schema is not None:
        if schema["type"] == "definition-ref":
            schema = definitions.get(schema["schema_ref"])
        elif schema["type"] not in {"list", "tuple", "union", "tagged-union", "model-fields"} and "schema" in schema:
            schema = schema["schema"]
        else:
            return schema
    return {}


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _cut(name: str) -> str:
    return name if len(name) <= _MAX_NAME_CHARS else name[:_MAX_NAME_CHARS] + "…"


def _unquoted(name: str) -> str:
    return name.strip("'")
