"""The Berkeley function-calling data as tasks: its answers, and what must not be taken for one."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.verifiers.structured_cases import load

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple")
SYNTAXES = ("json", "tags", "openai", "python")


def rows(shared_data: Path, category: str) -> Iterator[tuple[str, list[Any], list[dict[str, Any]]]]:
    """Yield id, tools and answers of a category: for each call its name and the values of each argument."""
    folder = shared_data / "bfcl"
    name = f"BFCL_v4_{category}.json"
    answers = {row["id"]: row["ground_truth"] for row in load(folder / "possible_answer" / name)}
    for row in load(folder / name):
        yield row["id"], row["function"], answers[row["id"]]


def reference_of(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return answers as expected calls. An empty string among the values says that the argument may be left out."""
    return [_expected(name, values) for answer in answers for name, values in answer.items()]


def _expected(name: str, arguments: dict[str, list[Any]]) -> dict[str, Any]:
    call: dict[str, Any] = {"name": name, "any_of": {}, "matching": {}, "optional": []}
    for argument, values in arguments.items():
        stated = [value for value in values if value != ""]
        if not stated:
            continue  # it can only be left out
        if any(map(_holds_an_object, stated)):
            call["matching"][argument] = {"anyOf": [_schema(value) for value in stated]}
        else:
            call["any_of"][argument] = stated
        if len(stated) < len(values):
            call["optional"].append(argument)
    return call


def _holds_an_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_an_object, value)))


def _schema(value: Any) -> dict[str, Any]:
    """Return the schema of a value of which each key of an object has a list of values, any of them right."""
    if isinstance(value, list):
        return {
            "type": "array",
            "prefixItems": [_schema(inner) for inner in value],
            "minItems": len(value),
            "items": False,
        }
    if not isinstance(value, dict):
        return {"const": value}
    return {
        "type": "object",
        "properties": {
            key: {"anyOf": [_schema(inner) for inner in values if inner != ""] or [False]}
            for key, values in value.items()
        },
        "required": [key for key, values in value.items() if "" not in values],
        "additionalProperties": False,
    }


def first_calls(answers: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that the first of all values make."""
    return [
        (name, {argument: _first(values[0]) for argument, values in arguments.items() if values and values[0] != ""})
        for answer in answers
        for name, arguments in answer.items()
    ]


def _first(value: Any) -> Any:
    if isinstance(value, list):
        return [_first(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _first(values[0]) for key, values in value.items() if values[0] != ""}
    return value


def written(calls: list[tuple[str, dict[str, Any]]], syntax: str) -> str:
    """Return calls as a model writes them."""
    entries = [{"name": name, "arguments": arguments} for name, arguments in calls]
    match syntax:
        case "json":
            return json.dumps(entries if len(entries) > 1 else entries[0])
        case "tags":
            return "\n".join(f"<tool_call>\n{json.dumps(entry)}\n</tool_call>" for entry in entries)
        case "openai":
            listed = [
                {"id": f"call_{position}", "type": "function", "function": entry | {"arguments": json.dumps(arguments)}}
                for position, (entry, (_, arguments)) in enumerate(zip(entries, calls, strict=True))
            ]
            return json.dumps({"role": "assistant", "content": None, "tool_calls": listed})
        case _:
            texts = [f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})" for name, arguments in calls]
            return f"[{', '.join(texts)}]"


def mutations(
    calls: list[tuple[str, dict[str, Any]]], tools: list[dict[str, Any]], reference: list[dict[str, Any]]
) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Yield the kind of a mutation and the calls with it, each of which is wrong."""
    yield "no_call", []
    yield "wrong_name", [(f"{calls[0][0]}_2", calls[0][1]), *calls[1:]]
    other = next((tool["name"] for tool in tools if tool["name"] != calls[-1][0]), None)
    if other is not None:
        yield "other_tool", [*calls[:-1], (other, calls[-1][1])]
    yield "unknown_argument", [*calls[:-1], (calls[-1][0], calls[-1][1] | {"not_in_the_tool": 1})]
    yield "call_missing", calls[:-1]
    yield "call_twice", [*calls, calls[0]]
    for position, (name, arguments) in enumerate(calls):
        tool = next(tool for tool in tools if tool["name"] == name)
        for argument in arguments:
            changed = copy.deepcopy(calls)
            if argument not in reference[position]["optional"] and argument in tool["parameters"]["required"]:
                del changed[position][1][argument]
                yield "missing_argument", changed
            for kind, mutate in (("changed_value", _changed), ("wrong_type", _of_another_type)):
                changed = copy.deepcopy(calls)
                changed[position][1][argument] = mutate(arguments[argument])
                if changed[position][1][argument] not in reference[position]["any_of"].get(argument, ()):
                    yield kind, changed


def _changed(value: Any) -> Any:
    """Return another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value * 3 + 12345
        case str():
            return f"{value} and more"
        case list():
            return [*value, value[0] if value else 1]
        case dict():
            return {**value, "not_in_it": 1}
    return "something"


def _of_another_type(value: Any) -> Any:
    return [value] if isinstance(value, str) else json.dumps(value)
