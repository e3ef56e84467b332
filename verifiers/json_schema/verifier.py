"""The json_schema verifier: what follows the reasoning goes to the sandbox, where JSON is found, read and checked."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from assay.tasks import FormatSpec, JsonSchemaTask
from assay.verdict import Extracted
from pydantic import JsonValue
from pydantic_core import to_json

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.structured.grading import answer_part, grade_together
from verifiers.structured.together import PROFILE, Checked, Item

_GUEST = "verifiers.json_schema.engine:check"
_EXTRACTED_CHARACTERS = 2000


class JsonSchemaVerifier(Verifier[JsonSchemaTask]):
    """Decides whether the JSON in a completion satisfies a schema."""

    name: ClassVar[str] = "json_schema"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = (
        "The JSON in the completion satisfies the schema, and equals an accepted value if given."
    )
    profile: ClassVar[Profile | None] = PROFILE
    batch_size: ClassVar[int] = 256
    example: ClassVar[dict[str, Any]] = {
        "verifier": "json_schema",
        "completion": 'Booked:\n```json\n{"city": "Oslo", "nights": 2}\n```',
        "reference": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
            "required": ["city", "nights"],
            "additionalProperties": False,
        },
    }
    task_type = JsonSchemaTask

    def grade(self, tasks: Sequence[JsonSchemaTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """Yield one judgement or failure per task, in order; all are checked in one forked child."""
        texts = [answer_part(task.completion, task.format or FormatSpec()) for task in tasks]
        items = [_item(task, text) for task, text in zip(tasks, texts, strict=True)]

        def judge(position: int, result: dict[str, Any], check: Checked) -> Judgement:
            return _judge(texts[position] or "", result, check)

        yield from grade_together(_GUEST, items, sandboxes, judge)


def _item(task: JsonSchemaTask, text: str | None) -> Item:
    options = task.options
    form = task.format or FormatSpec()
    spec: dict[str, JsonValue] = {
        "schema": task.reference,
        "schemas": dict(task.schemas),
        "accepted": task.accepted,
        "draft": options.draft,
        "check_formats": options.check_formats,
        "scoring": options.scoring,
    }
    what: dict[str, JsonValue] = {
        "text": text,
        "extract": options.extract,
        "answer_tag": form.answer_tag or "answer",
        "strictness": {
            "duplicate_keys": options.allow_duplicate_keys,
            "nan": options.allow_nan,
            "trailing_text": options.allow_trailing_text,
        },
    }
    return Item(spec, to_json(spec), what)


def _judge(text: str, result: dict[str, Any], check: Checked) -> Judgement:
    extracted = None
    if "source" in result:
        shown = text[result["start"] : result["end"]]
        extracted = Extracted(text=shown[:_EXTRACTED_CHARACTERS], source=result["source"])
    return Judgement(
        result["reason"],
        accuracy=result["score"],
        extracted=extracted,
        details={name: result[name] for name in ("problem", "errors", "error_count") if name in result},
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )
