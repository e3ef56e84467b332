"""The qa verifier: a short answer in words against one or more references. All of it is reading, bounded in length."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from assay.tasks import QaTask
from assay.verdict import Extracted
from pydantic import JsonValue

from sandboxes.base import Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.text_answers import MAX_CHARACTERS, find_text
from verifiers.wording import f1, normalise

_SHOWN_CHARACTERS = 200
_EXTRACTED_CHARACTERS = 2000


class QaVerifier(Verifier[QaTask]):
    """Decides whether an answer says the same as a reference, word for word."""

    name: ClassVar[str] = "qa"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = (
        "The answer equals a reference after the usual normalisation, or shares words with it (F1)."
    )
    batch_size: ClassVar[int] = 256
    example: ClassVar[dict[str, Any]] = {
        "verifier": "qa",
        "completion": "<think>Built by Eiffel.</think><answer>The Eiffel Tower</answer>",
        "reference": ["Eiffel Tower", "La Tour Eiffel"],
    }
    task_type = QaTask

    def grade(self, tasks: Sequence[QaTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:  # noqa: ARG002
        """Yield one judgement or failure per task; nothing is run, so no sandbox is used."""
        return map(_grade, tasks)


def _grade(task: QaTask) -> Judgement | Failure:
    texts = [task.reference] if isinstance(task.reference, str) else list(task.reference)
    problem = _reference_problem(texts)
    if problem is not None:
        return Failure("bad_reference", problem)
    found = find_text(task.completion, task.options.extract, task.options.answer_tags, task.format)
    details: dict[str, JsonValue] = {"reference": _cut(" | ".join(texts), _SHOWN_CHARACTERS)}
    readings = {normalise(reading): reading for reading in reversed(found.readings)}
    readings.pop("", None)
    if not readings:
        reason = "answer_too_long" if found.source == "too_long" else "no_answer"
        source = "empty" if found.readings else found.source
        return Judgement(reason, accuracy=0.0, details=details | {"problem": source})
    references = [_normalised(text) for text in texts]
    equal = next((written for written in readings if written in references), None)
    if equal is not None:
        return _judgement("equal", 1.0, readings[equal], found.source, details)
    shared = {written: max(f1(written, reference) for reference in references) for written in readings}
    best = max(shared, key=lambda written: (shared[written], written))
    details["f1"] = round(shared[best], 6)
    if task.options.scoring == "f1" and shared[best] > 0:
        return _judgement("partly", shared[best], readings[best], found.source, details)
    return _judgement("different", 0.0, found.readings[0], found.source, details)


def _judgement(reason: str, score: float, text: str, source: str, details: dict[str, JsonValue]) -> Judgement:
    extracted = Extracted(text=_cut(text, _EXTRACTED_CHARACTERS), source=source)
    return Judgement(reason, accuracy=score, extracted=extracted, details=details)


def _reference_problem(texts: list[str]) -> str | None:
    if not texts:
        return "reference: the list is empty"
    for position, text in enumerate(texts):
        place = f"reference[{position}]" if len(texts) > 1 else "reference"
        if len(text) > MAX_CHARACTERS:
            return f"{place}: is longer than {MAX_CHARACTERS} characters"
        if not _normalised(text):
            return f"{place}: holds no word"
    return None


@lru_cache(maxsize=4096)
def _normalised(text: str) -> str:
    return normalise(text)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
