"""Structured answers: tasks per second through the dispatcher in batches, beside the bare libraries in one process."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import jsonschema
import jsonschema_rs
from assay import ExpectedCall, FunctionCallTask, JsonSchemaTask, RewardSpec, Task

from service.admission import resolve
from service.dispatch.local import LocalDispatcher
from service.settings import Settings

BATCH = 256
BATCHES_IN_FLIGHT = 6
SECONDS = 4.0
"""How long each way is measured."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is graded, and the bare libraries' way to the same accuracies."""

    name: str
    tasks: list[Task]
    bare: dict[str, Callable[[], list[float]]]
    """Grades all tasks once in this process, with everything prepared, by the name of the library."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Tasks a second."""

    assay: float
    bare: dict[str, float]
    agrees: dict[str, int]
    """Tasks of which the bare library gives the same accuracy."""


def comparisons() -> Iterator[Comparison]:
    """Yield all comparisons."""
    yield json_schema_comparison(4 * BATCH)
    yield function_call_comparison(4 * BATCH)


def measure(comparison: Comparison, settings: Settings) -> Measured:
    """Measure Assay, then each bare library."""
    per_second, accuracies = asyncio.run(_through_the_dispatcher(comparison.tasks, settings))
    bare, agrees = {}, {}
    for name, grade in comparison.bare.items():
        started = time.perf_counter()
        rounds = 0
        while rounds == 0 or time.perf_counter() - started < SECONDS / 4:
            answers = grade()
            rounds += 1
        bare[name] = rounds * len(answers) / (time.perf_counter() - started)
        agrees[name] = sum(map(float.__eq__, answers, accuracies))
    return Measured(per_second, bare, agrees)


async def _through_the_dispatcher(tasks: list[Task], settings: Settings) -> tuple[float, list[float]]:
    """Return tasks a second, and the accuracy of each task; an error counts as -1."""
    dispatcher = LocalDispatcher(settings)
    await dispatcher.start()
    resolved = [resolve(task, str(index), RewardSpec(), None) for index, task in enumerate(tasks)]
    batches = [resolved[start : start + BATCH] for start in range(0, len(resolved), BATCH)]
    accuracies = [-1.0] * len(tasks)
    done = 0

    async def grade(batch: list[Task]) -> None:
        nonlocal done
        async for _, verdict in dispatcher.submit(batch):
            done += 1
            if verdict.accuracy is not None:
                accuracies[int(verdict.id)] = verdict.accuracy

    async def keep_grading(source: Iterator[list[Task]], end: float) -> None:
        while time.perf_counter() < end:
            await grade(next(source))

    try:
        for batch in batches:  # each once before the clock runs: starting is not measured
            await grade(batch)
        done = 0
        started = time.perf_counter()
        source = cycle(batches)
        await asyncio.gather(*(keep_grading(source, started + SECONDS) for _ in range(BATCHES_IN_FLIGHT)))
        return done / (time.perf_counter() - started), accuracies
    finally:
        await dispatcher.stop(0)


_ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"}}},
        "items": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"}, "count": {"minimum": 1}},
                "required": ["sku", "count"],
                "additionalProperties": False,
            },
        },
        "paid": {"type": "boolean"},
    },
    "required": ["customer", "items", "paid"],
}
_BOOKING = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "nights": {"type": "integer", "minimum": 1, "maximum": 30},
        "breakfast": {"type": "boolean"},
    },
    "required": ["city", "nights"],
    "additionalProperties": False,
}


def json_schema_comparison(count: int) -> Comparison:
    """Return orders and bookings, of which every fourth is wrong, against two schemas."""
    pairs = list(islice(_orders_and_bookings(), count))
    plain = {id(schema): jsonschema.Draft202012Validator(schema) for schema in (_ORDER, _BOOKING)}
    fast = {id(schema): jsonschema_rs.Draft202012Validator(schema) for schema in (_ORDER, _BOOKING)}

    def with_library(validators: dict[int, Any]) -> Callable[[], list[float]]:
        return lambda: [float(validators[id(schema)].is_valid(json.loads(text))) for text, schema in pairs]

    return Comparison(
        "json_schema",
        [JsonSchemaTask(verifier="json_schema", completion=text, reference=schema) for text, schema in pairs],
        {"jsonschema": with_library(plain), "jsonschema-rs": with_library(fast)},
    )


def _orders_and_bookings() -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    while True:
        number += 1
        items = [{"sku": f"AB{number + step}", "count": step + 1} for step in range(1 + number % 3)]
        order: dict[str, Any] = {"customer": {"name": f"C{number}", "email": "c@a.example"}, "items": items}
        yield json.dumps(order | ({"paid": True} if number % 4 else {})), _ORDER
        yield json.dumps({"city": f"Town {number}", "nights": number % 31 if number % 4 else "2"}), _BOOKING


_TOOL_NAMES = ("book_room", "book_table", "book_flight")


def function_call_comparison(count: int) -> Comparison:
    """Return calls of three tools in tags, of which every fourth is wrong. Eight completions share a reference."""
    tools = [{"type": "function", "function": {"name": name, "parameters": _BOOKING}} for name in _TOOL_NAMES]
    rows = []
    for number in range(count):
        name, city = _TOOL_NAMES[number % 3], f"Town {number // 8}"
        arguments = {"city": city, "nights": 2 if number % 4 else 3}
        text = f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
        rows.append((text, ExpectedCall(name=name, arguments={"city": city, "nights": 2})))
    validator = jsonschema_rs.Draft202012Validator(_BOOKING)

    def bare() -> list[float]:
        answers = []
        for text, expected in rows:
            call = json.loads(text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
            is_valid = validator.is_valid(call["arguments"])
            is_right = (call["name"], call["arguments"]) == (expected.name, expected.arguments)
            answers.append(float(is_valid and is_right))
        return answers

    return Comparison(
        "function_call",
        [
            FunctionCallTask(verifier="function_call", completion=text, tools=tools, reference=[expected])
            for text, expected in rows
        ],
        {"json and jsonschema-rs": bare},
    )
