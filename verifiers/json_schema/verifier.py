"""The json_schema verifier: what follows the reasoning goes to the sandbox, where JSON is found, read and checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.tasks import FormatSpec, JsonSchemaTask
from assay.verdict import Extracted
from pydantic import JsonValue
from pydantic_core import to_json

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.reasoning import after_reasoning, without_end_of_turn
from verifiers.structured.together import PROFILE, Checked, Item, check_together, overloaded

_GUEST = "verifiers.json_schema.engine:check"
_EXTRACTED_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class _Read:
    """A task's text, and what is checked of it."""

    text: str
    item: Item

    @property
    def probe(self) -> Item:
        """What tells whether the schema alone breaks a limit."""
        return Item(self.item.spec, self.item.key, {"probe": True})


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
        read = [_read(task) for task in tasks]
        checked = check_together(_GUEST, [entry.item for entry in read], sandboxes)
        doubtful = [entry for entry, check in zip(read, checked, strict=True) if check.result is None]
        probed = iter(check_together(_GUEST, [entry.probe for entry in doubtful], sandboxes, alone=True))
        for entry, check in zip(read, checked, strict=True):
            yield _judge(entry, check) if check.result is not None else _judge_broken(check, next(probed))


def _read(task: JsonSchemaTask) -> _Read:
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
    text = answer_part(task.completion, form)
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
    return _Read(text or "", Item(spec, to_json(spec, inf_nan_mode="constants"), what))


def answer_part(completion: str, form: FormatSpec) -> str | None:
    """Return the part of a completion in which its JSON stands; None when its reasoning does not end.

    A completion that starts with JSON has no reasoning: a tag within its strings is text.
    """
    if not form.think_prefilled and completion.lstrip()[:1] in ("{", "["):
        return without_end_of_turn(completion)
    return after_reasoning(completion, form)


def _judge(entry: _Read, check: Checked) -> Judgement | Failure:
    result = check.result
    assert result is not None
    if "bad_schema" in result:
        return Failure("bad_reference", f"reference: {result['bad_schema']}")
    extracted = None
    if "source" in result:
        text = entry.text[result["start"] : result["end"]]
        extracted = Extracted(text=text[:_EXTRACTED_CHARACTERS], source=result["source"])
    return Judgement(
        result["reason"],
        accuracy=result["score"],
        extracted=extracted,
        details={name: result[name] for name in ("problem", "errors", "error_count") if name in result},
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )


def _judge_broken(check: Checked, probed: Checked) -> Judgement | Failure:
    """Judge a check that did not come back: the schema's fault when it does not come back alone either."""
    lost = overloaded(check) or overloaded(probed)
    if lost is not None:
        return lost
    if probed.result is None:
        return Failure("bad_reference", f"reference: using it broke a limit of the sandbox ({probed.limit})")
    if "bad_schema" in probed.result:
        return Failure("bad_reference", f"reference: {probed.result['bad_schema']}")
    return Judgement(
        check.limit,
        accuracy=0.0,
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )
