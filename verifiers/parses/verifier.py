"""The parses verifier: what follows the reasoning goes to the sandbox, where it is parsed and never run."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from assay.tasks import FormatSpec, ParsesTask
from pydantic import JsonValue
from pydantic_core import to_json

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.structured.grading import answer_part, grade_together
from verifiers.structured.together import PROFILE, Checked, Item

_GUEST = "verifiers.parses.engine:check"


class ParsesVerifier(Verifier[ParsesTask]):
    """Decides whether an answer parses in a language."""

    name: ClassVar[str] = "parses"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = (
        "The answer parses: JSON, YAML, TOML, XML, Python, a dialect of SQL, CSV, or a grammar of one's own."
    )
    profile: ClassVar[Profile | None] = PROFILE
    batch_size: ClassVar[int] = 64
    example: ClassVar[dict[str, Any]] = {
        "verifier": "parses",
        "completion": "All names:\n```sql\nSELECT name FROM city ORDER BY name\n```",
        "reference": {"language": "sql", "dialect": "sqlite"},
    }
    task_type = ParsesTask

    def grade(self, tasks: Sequence[ParsesTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """Yield one judgement or failure per task, in order; all are parsed in one forked child."""
        yield from grade_together(_GUEST, [_item(task) for task in tasks], sandboxes, _judge)


def _item(task: ParsesTask) -> Item:
    form = task.format or FormatSpec()
    spec: dict[str, JsonValue] = task.reference.model_dump(mode="json")
    what: dict[str, JsonValue] = {
        "text": answer_part(task.completion, form),
        "extract": task.options.extract,
        "answer_tag": form.answer_tag or "answer",
    }
    return Item(spec, to_json(spec), what)


def _judge(_position: int, result: dict[str, Any], check: Checked) -> Judgement:
    return Judgement(
        result["reason"],
        accuracy=result["score"],
        details={"problem": result["problem"]} if "problem" in result else {},
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )
