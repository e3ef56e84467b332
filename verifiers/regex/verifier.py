"""The regex verifier: the answer is found by reading, and matched in the sandbox."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from assay.tasks import RegexTask
from assay.verdict import Extracted
from pydantic import JsonValue
from pydantic_core import to_json

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.structured.grading import grade_together
from verifiers.structured.together import PROFILE, Checked, Item
from verifiers.text_answers import FoundText, find_text

_GUEST = "verifiers.regex.engine:check"
_EXTRACTED_CHARACTERS = 2000


class RegexVerifier(Verifier[RegexTask]):
    """Decides whether an answer matches a pattern."""

    name: ClassVar[str] = "regex"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = "The answer matches the pattern, and its named groups hold the expected values."
    profile: ClassVar[Profile | None] = PROFILE
    batch_size: ClassVar[int] = 256
    example: ClassVar[dict[str, Any]] = {
        "verifier": "regex",
        "completion": "<think>A leap year.</think><answer>2024-02-29</answer>",
        "reference": r"(?P<year>\d{4})-(?P<month>\d\d)-\d\d",
        "groups": {"year": "2024"},
    }
    task_type = RegexTask

    def grade(self, tasks: Sequence[RegexTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """Yield one judgement or failure per task, in order; all are matched in one forked child."""
        found = [_find(task) for task in tasks]
        items = [_item(task, answer) for task, answer in zip(tasks, found, strict=True)]

        def judge(position: int, result: dict[str, Any], check: Checked) -> Judgement:
            return _judge(found[position], result, check)

        yield from grade_together(_GUEST, items, sandboxes, judge)


def _find(task: RegexTask) -> FoundText:
    options = task.options
    return find_text(
        task.completion, options.extract, options.answer_tags, task.format, max_characters=len(task.completion)
    )


def _item(task: RegexTask, found: FoundText) -> Item:
    options = task.options
    spec: dict[str, JsonValue] = {
        "pattern": task.reference,
        "groups": {name: list(value) if isinstance(value, list) else value for name, value in task.groups.items()},
        "mode": options.mode,
        "engine": options.engine,
        "ignore_case": options.ignore_case,
        "multiline": options.multiline,
        "dot_all": options.dot_all,
        "which": options.which,
    }
    if not found.readings:
        return Item(spec, to_json(spec), {"probe": True})
    text = found.readings[0] if options.strip else found.raw
    return Item(spec, to_json(spec), {"text": text})


def _judge(found: FoundText, result: dict[str, Any], check: Checked) -> Judgement:
    if not found.readings:
        return Judgement("no_answer", accuracy=0.0, details={"problem": found.source})
    return Judgement(
        result["reason"],
        accuracy=result["score"],
        extracted=Extracted(text=found.readings[0][:_EXTRACTED_CHARACTERS], source=found.source),
        details={name: result[name] for name in ("group", "groups") if result.get(name)},
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )
