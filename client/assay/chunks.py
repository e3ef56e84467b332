"""Cutting a batch into requests: few enough tasks and bytes in each that no proxy or retry is costly."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from assay.tasks import Task

TaskLike = Task | Mapping[str, Any]
"""A task, or its fields as the HTTP interface has them."""


@dataclass(slots=True)
class Chunk:
    """The tasks of one request, under ids of the client's own: the caller's need not be unique."""

    tasks: dict[str, bytes] = field(default_factory=dict)
    """Each task as JSON, by its position in the whole batch."""
    names: dict[str, str] = field(default_factory=dict)
    """The id that the caller knows each task by."""
    size: int = 0
    """Bytes of all tasks."""


def cut(tasks: Iterable[TaskLike], most_tasks: int, most_bytes: int) -> Iterator[Chunk]:
    """Yield chunks in the batch's order; a task larger than `most_bytes` is alone in its chunk.

    Raises:
        ValueError: a task is not JSON; the message names it.
    """
    chunk = Chunk()
    for position, task in enumerate(tasks):
        key = str(position)
        encoded, name = _encoded(task, key)
        if chunk.tasks and (len(chunk.tasks) >= most_tasks or chunk.size + len(encoded) > most_bytes):
            yield chunk
            chunk = Chunk()
        chunk.tasks[key] = encoded
        chunk.names[key] = name
        chunk.size += len(encoded)
    if chunk.tasks:
        yield chunk


def _encoded(task: TaskLike, key: str) -> tuple[bytes, str]:
    """Return the task as JSON with the client's id, and the caller's id."""
    fields = _fields(task) if isinstance(task, BaseModel) else dict(task)
    name = fields.get("id")
    try:
        plain = {**fields, "id": key}
        encoded = json.dumps(plain, ensure_ascii=False, allow_nan=False, default=_dumped).encode()
    except UnicodeEncodeError:
        raise ValueError(f"tasks[{key}] holds half a surrogate pair, which is not text") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"tasks[{key}] is not JSON: {error}") from None
    return encoded, key if name is None else str(name)


def _fields(model: BaseModel) -> dict[str, Any]:
    """Return what was set, and the discriminator; what was left out is for the request or the service to fill in."""
    return model.model_dump(mode="json", include=model.model_fields_set | {"verifier"})


def _dumped(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is no JSON value")
