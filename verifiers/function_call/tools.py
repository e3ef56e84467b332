"""Tools: their schemas, made ready to check the arguments of calls. Runs inside sandboxes only."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from verifiers.json_schema.expansion import Unbounded, check_expansion
from verifiers.structured.json_text import equal

_TYPES = {
    "dict": "object",
    "map": "object",
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "str": "string",
    "list": "array",
    "tuple": "array",
}
"""Names of types that tool descriptions use beside those of JSON Schema; `any` takes every value."""

_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=1 << 48)


_DRAFTS: dict[str, type[jsonschema_rs.Validator]] = {
    "draft-04": jsonschema_rs.Draft4Validator,
    "draft-06": jsonschema_rs.Draft6Validator,
    "draft-07": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
}


class BadReference(Exception):
    """The tools or the expected calls cannot be used; the message says why."""


@dataclass(frozen=True)
class Tool:
    """One tool."""

    name: str
    properties: dict[str, Any]
    required: frozenset[str]
    takes_others: bool
    """Whether arguments that are not described are allowed, as only `additionalProperties` can say."""
    validator: jsonschema_rs.Validator = field(repr=False)

    def problems(self, arguments: dict[str, Any]) -> Iterator[tuple[str | None, str]]:
        """Yield (argument, what is wrong with it) by the tool's schema; the argument is None for all together."""
        if not self.takes_others:
            for name in arguments:
                if name not in self.properties:
                    yield name, "the tool has no such argument"
        if self.validator.is_valid(arguments):
            return
        for error in self.validator.iter_errors(arguments):
            argument = str(error.instance_path[0]) if error.instance_path else None
            if argument is None or not self.has_default(argument, arguments[argument]):  # a default is always right
                yield argument, error.message

    def has_default(self, name: str, value: Any) -> bool:
        """Whether an optional argument has this value when it is left out."""
        described = self.properties.get(name)
        if name in self.required or not isinstance(described, dict) or "default" not in described:
            return False
        return equal(described["default"], value)


class Tools:
    """All tools of a task, by name."""

    def __init__(self, listed: list[Any]) -> None:
        """Take tools in OpenAI's format.

        Raises:
            BadReference: one of them cannot be used, or two have one name.
        """
        self._tools: dict[str, Tool] = {}
        for position, entry in enumerate(listed):
            tool = _tool(entry, f"tools[{position}]")
            if tool.name in self._tools:
                raise BadReference(f"tools[{position}]: the name {tool.name[:100]!r} is taken already")
            self._tools[tool.name] = tool

    @property
    def names(self) -> set[str]:
        """Names of all tools."""
        return set(self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool of a name."""
        return self._tools.get(name)


def _tool(entry: Any, place: str) -> Tool:
    inner = entry.get("function") if isinstance(entry, dict) else None
    function = inner if isinstance(inner, dict) else entry
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        raise BadReference(f"{place}: has no name")
    parameters = function.get("parameters")
    schema = json_schema(parameters if parameters is not None else {"type": "object", "properties": {}})
    properties = schema.get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        raise BadReference(f"{place}: `parameters` is no schema of an object")
    required = schema.get("required", [])
    return Tool(
        name=name,
        properties=properties,
        required=frozenset(required if isinstance(required, list) else ()),
        takes_others=schema.get("additionalProperties", False) is not False or "patternProperties" in schema,
        validator=_validator(schema, place),
    )


def _validator(schema: Any, place: str) -> jsonschema_rs.Validator:
    try:
        check_expansion(schema, siblings_of_ref=True)
        kind = _draft_of(schema)
        return kind(schema, validate_formats=False, offline=True, pattern_options=_PATTERNS)
    except (ValueError, Unbounded, jsonschema_rs.ReferencingError) as problem:
        raise BadReference(f"{place}: {str(getattr(problem, 'message', problem))[:300]}") from None


def _draft_of(schema: Any) -> type[jsonschema_rs.Validator]:
    """Return the validator of the draft that a schema names; 2020-12 where it names none that is known."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    for draft, validator in _DRAFTS.items():
        if isinstance(named, str) and draft in named:
            return validator
    return jsonschema_rs.Draft202012Validator


def json_schema(described: Any) -> Any:
    """Return a description of parameters as JSON Schema.

    Types are lower case and its own (not `dict`, `float`, `tuple`, `any`), and `nullable`, of OpenAPI 3.0, takes null.
    """
    if not isinstance(described, dict):
        return described
    schema: dict[str, Any] = {}
    for key, value in described.items():
        if key == "type" and isinstance(value, str | list):
            types = [_type(name) for name in ([value] if isinstance(value, str) else value)]
            if "any" not in types:
                schema[key] = types[0] if isinstance(value, str) else types
        elif key in _MAPS and isinstance(value, dict):
            schema[key] = {name: json_schema(inner) for name, inner in value.items()}
        elif key in _SCHEMAS:
            schema[key] = json_schema(value)
        elif key in _LISTS and isinstance(value, list):
            schema[key] = [json_schema(inner) for inner in value]
        else:
            schema[key] = value
    if described.get("nullable") is not True:
        return schema
    default = {"default": schema["default"]} if "default" in schema else {}
    return {"anyOf": [schema, {"type": "null"}]} | default


def _type(name: Any) -> Any:
    return _TYPES.get(name.lower(), name.lower()) if isinstance(name, str) else name


def validator_of(schema: Any, place: str) -> jsonschema_rs.Validator:
    """Return the validator of a schema in a reference.

    Raises:
        BadReference: it is none.
    """
    return _validator(schema, place)
