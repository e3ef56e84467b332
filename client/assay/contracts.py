"""The contract of tools: what a model can rely on when it calls them, and its fingerprint."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

_NOTES = frozenset({"description", "title", "examples", "example", "$comment", "deprecated"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"default", "enum", "const"})
_SETS = frozenset({"required", "enum"})


def contract_fingerprint(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the fingerprint of tool schemas in OpenAI's format: SHA-256, in hex, of what matters to a call.

    Names, parameters, their types, bounds, defaults and which are required count. Descriptions, titles, examples and
    all orders that mean nothing (of tools, of keys, of `required` and `enum`) do not.

    Raises:
        ValueError: a tool has no name.
    """
    contracts = [_contract(tool) for tool in tools]
    return hashlib.sha256("\n".join(sorted(contracts)).encode()).hexdigest()


def _contract(tool: Mapping[str, Any]) -> str:
    inner = tool.get("function")
    function = inner if isinstance(inner, Mapping) else tool
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a tool has no name")
    parameters = function.get("parameters") or {}
    return _written({"name": name, "parameters": _without_notes(parameters)})


def _without_notes(schema: Any) -> Any:
    """Return a schema without notes, and with its sets in one order."""
    if isinstance(schema, list):
        return [_without_notes(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return _number(schema)
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOTES:
            continue
        if key in _MAPS and isinstance(value, Mapping):
            kept[key] = {name: _without_notes(inner) for name, inner in value.items()}
        elif key in _SETS and isinstance(value, list):
            kept[key] = sorted((_data(inner) for inner in value), key=_written)
        else:
            kept[key] = _data(value) if key in _DATA else _without_notes(value)
    return kept


def _data(value: Any) -> Any:
    if isinstance(value, list):
        return [_data(inner) for inner in value]
    if isinstance(value, Mapping):
        return {key: _data(inner) for key, inner in value.items()}
    return _number(value)


def _number(value: Any) -> Any:
    """Return 1 for 1.0: JSON knows one of them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
