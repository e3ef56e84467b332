"""The function_call verifier: what follows the reasoning goes to the sandbox, where calls are read and compared."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from assay.contracts import contract_fingerprint
from assay.tasks import FormatSpec, FunctionCallTask
from assay.verdict import Extracted
from pydantic import JsonValue
from pydantic_core import to_json

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.structured.grading import answer_part, grade_together
from verifiers.structured.together import PROFILE, Checked, Item

_GUEST = "verifiers.function_call.engine:check"
_EXTRACTED_CHARACTERS = 2000


class FunctionCallVerifier(Verifier[FunctionCallTask]):
    """Decides whether a completion calls the tools as it should."""

    name: ClassVar[str] = "function_call"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = "The completion calls the tools as the reference says, or none when it says none."
    profile: ClassVar[Profile | None] = PROFILE
    batch_size: ClassVar[int] = 256
    example: ClassVar[dict[str, Any]] = {
        "verifier": "function_call",
        "completion": '<tool_call>{"name": "book_room", "arguments": {"city": "Oslo", "nights": 2}}</tool_call>',
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "book_room",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "city": {"type": "string"},
                            "nights": {"type": "integer"},
                            "breakfast": {"type": "boolean", "default": False},
                        },
                        "required": ["city", "nights"],
                    },
                },
            }
        ],
        "reference": [{"name": "book_room", "arguments": {"nights": 2}, "any_of": {"city": ["Oslo", "Oslo, Norway"]}}],
    }
    task_type = FunctionCallTask

    def grade(self, tasks: Sequence[FunctionCallTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """Yield one judgement or failure per task, in order; all are checked in one forked child."""
        changed = [_changed_contract(task) for task in tasks]
        kept = [task for task, failure in zip(tasks, changed, strict=True) if failure is None]
        texts = [answer_part(task.completion, task.format or FormatSpec()) for task in kept]
        items = [_item(task, text) for task, text in zip(kept, texts, strict=True)]

        def judge(position: int, result: dict[str, Any], check: Checked) -> Judgement:
            return _judge(texts[position] or "", result, check)

        judged = grade_together(_GUEST, items, sandboxes, judge)
        for failure in changed:
            yield next(judged) if failure is None else failure


def _changed_contract(task: FunctionCallTask) -> Failure | None:
    """Return the failure of a task that was made for other tools."""
    if task.fingerprint is None:
        return None
    try:
        fingerprint = contract_fingerprint(task.tools)
    except ValueError as problem:
        return Failure("bad_reference", f"tools: {problem}")
    if fingerprint == task.fingerprint:
        return None
    return Failure(
        "bad_reference",
        f"fingerprint: the task was made for tools of fingerprint {task.fingerprint}, but these have {fingerprint}: "
        "the tools' interface has changed",
    )


def _item(task: FunctionCallTask, text: str | None) -> Item:
    options = task.options
    form = task.format or FormatSpec()
    spec: dict[str, JsonValue] = {
        "tools": list(task.tools),
        "reference": [call.model_dump(mode="json") for call in task.reference],
        "check_tools": options.check_tools,
        "defaults_may_be_written": options.defaults_may_be_written,
        "strings": options.strings,
        "order": options.order,
        "scoring": options.scoring,
    }
    what: dict[str, JsonValue] = {
        "text": text,
        "syntax": options.syntax,
        "answer_tag": form.answer_tag or "answer",
    }
    return Item(spec, to_json(spec), what)


def _judge(text: str, result: dict[str, Any], check: Checked) -> Judgement:
    extracted = None
    if result.get("calls"):
        extracted = Extracted(text=text.strip()[:_EXTRACTED_CHARACTERS], source="calls")
    return Judgement(
        result["reason"],
        accuracy=result["score"],
        extracted=extracted,
        details={name: result[name] for name in ("problem", "calls", "differences") if name in result},
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )
