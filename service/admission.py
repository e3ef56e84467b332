"""Admission: turns a request's tasks into resolved ones, which carry all that their verdicts depend on.

A resolved task has an id, its reward and its format; its limits are within the server's. What cannot be graded as
asked is refused here, by field, so that a worker never sees it.
"""

from collections.abc import Iterable, Iterator

from assay.reward import RewardSpec
from assay.tasks import (
    AssertTests,
    CodeOptions,
    CodeReference,
    CodeTask,
    FormatSpec,
    FormatTask,
    MathTask,
    PytestTests,
    ScoredTask,
    StdinTests,
    Task,
)
from assay.wire import GradeRequest, ProblemField

from service.errors import MAX_FIELDS, InvalidRequest
from service.settings import Settings


def admit(request: GradeRequest, settings: Settings) -> list[Task]:
    """Return the request's tasks, resolved.

    Raises:
        InvalidRequest: an id is used twice, or tasks are beyond the server's bounds.
    """
    refused: list[ProblemField] = []
    seen: dict[str, int] = {}
    resolved: list[Task] = []
    for position, task in enumerate(request.tasks):
        task_id = task.id if task.id is not None else str(position)
        first = seen.setdefault(task_id, position)
        if first != position:
            refused.append(_duplicate(task_id, first, position))
        refused.extend(excesses(task, f"tasks[{position}]", settings))
        if len(refused) >= MAX_FIELDS:
            break
        resolved.append(resolve(task, task_id, request.reward, request.format))
    if refused:
        raise InvalidRequest.of(refused)
    return resolved


def resolve(task: Task, task_id: str, reward: RewardSpec, format: FormatSpec | None) -> Task:
    """Return the task with its id and the defaults of its request filled in."""
    update: dict[str, object] = {}
    if task.id is None:
        update["id"] = task_id
    if task.reward is None:
        update["reward"] = reward
    if format is not None and isinstance(task, ScoredTask) and task.format is None:
        update["format"] = format
    if format is not None and isinstance(task, FormatTask) and "options" not in task.model_fields_set:
        update["options"] = format
    return task.model_copy(update=update) if update else task


def excesses(task: Task, path: str, settings: Settings) -> Iterator[ProblemField]:
    """Yield what of the task at `path` is beyond the server's bounds."""
    if len(task.completion) > settings.max_completion_chars:
        message = f"{len(task.completion)} characters; at most {settings.max_completion_chars} are allowed"
        yield ProblemField(field=f"{path}.completion", message=message)
    if isinstance(task, FormatTask):
        return
    size = _reference_bytes(task)
    if size > settings.max_reference_bytes:
        message = f"{size} bytes; at most {settings.max_reference_bytes} are allowed"
        yield ProblemField(field=f"{path}.reference", message=message)
    if isinstance(task, CodeTask):
        yield from _excessive_limits(task.options, f"{path}.options", settings)


def _excessive_limits(options: CodeOptions, path: str, settings: Settings) -> Iterator[ProblemField]:
    bounds: tuple[tuple[str, float | None, float], ...] = (
        ("cpu_seconds", options.cpu_seconds, settings.max_cpu_seconds),
        ("wall_seconds", options.wall_seconds, settings.max_wall_seconds),
        ("memory_mb", options.memory_mb, settings.max_memory_mb),
        ("output_kb", options.output_kb, settings.max_output_kb),
    )
    for name, value, maximum in bounds:
        if value is not None and value > maximum:
            message = f"{value:g} is more than this server's maximum of {maximum:g}"
            yield ProblemField(field=f"{path}.{name}", message=message)


def _reference_bytes(task: Task) -> int:
    """Return the size of all that the completion is graded against."""
    texts = _texts(task.reference) if isinstance(task, (MathTask, CodeTask)) else None
    if texts is None:
        return len(task.__pydantic_serializer__.to_json(task, exclude={"completion"}))
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)


def _texts(reference: str | list[str] | CodeReference) -> Iterable[str] | None:
    """Return the texts of a reference that is made of few; None where it is quicker to write it all out."""
    match reference:
        case str():
            return (reference,)
        case list():
            return reference
        case StdinTests(checker=None) if not reference.files:
            return (text for test in reference.tests for text in (test.input, test.output))
        case AssertTests():
            return reference.code, reference.prompt
        case PytestTests():
            return (reference.code,)
        case _:
            return None


def _duplicate(task_id: str, first: int, position: int) -> ProblemField:
    shown = task_id if len(task_id) <= 40 else task_id[:40] + "…"
    message = f"the id {shown!r} is already that of tasks[{first}]; ids must be unique in a request"
    return ProblemField(field=f"tasks[{position}].id", message=message)
